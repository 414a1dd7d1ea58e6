//! Discovery of a running server's methods: `rpc.discover`, or `tools/list`.
//!
//! Each call has a connection of its own; all share one time limit, and each response has a size limit. A response is
//! JSON, or the event stream that an MCP server may send.

mod sse;
pub(super) mod tools;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use clap::ValueEnum;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use serde_json::{Value, json};
use tokio::time::timeout;

use self::tools::all_pages;
use super::limits::LARGEST;
use super::message::{error_of, message};
use crate::cli::connection::{ConnectionFault, Sender, address, exchange, within};
use dualgauge_model::import::{DocumentKind, SourceDocument};
use dualgauge_model::mcp::EndpointFault;
use dualgauge_net::Connector;
use dualgauge_net::tls_config::{Alpn, TlsFault, client};
use dualgauge_transport::tls::{ClientTls, Pem};

/// Maximum number of pages of a list of tools; `--timeout` limits them as well.
const MOST_PAGES: usize = 10_000;
/// Timeout of `rpc.discover` before `tools/list` is tried; at most half of the total time.
const DISCOVER: Duration = Duration::from_secs(2);
const SESSION: &str = "mcp-session-id";
/// The name of the request for a document.
const GET: &str = "GET";

/// The method by which a server describes itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Method {
    /// Its OpenRPC document
    #[value(name = "rpc.discover")]
    Discover,
    /// Its tools (MCP)
    #[value(name = "tools/list")]
    Tools,
}

/// The reason why discovery failed.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum DiscoverError {
    /// The address is invalid.
    #[error("`{url}`: {why}")]
    Url {
        /// The address.
        url: String,
        /// The cause.
        why: &'static str,
    },
    /// The CA file cannot be read.
    #[error("`{0}` cannot be read")]
    Unreadable(PathBuf, #[source] io::Error),
    /// The CA file has no valid CAs.
    #[error("`{0}` has no CA certificate that can be used")]
    Authorities(PathBuf, #[source] TlsFault),
    /// A header is invalid.
    #[error("the header `{0}` cannot be sent; write `Name: value`")]
    Header(String),
    /// The connection failed, or there is no runtime.
    #[error("no connection to {0}")]
    Unreachable(String, #[source] io::Error),
    /// The connection broke, or the response is not valid HTTP.
    #[error("{0} sent no response")]
    Broken(String, #[source] hyper::Error),
    /// The response timed out.
    #[error("{server} did not answer within {limit:?}; raise `--timeout`")]
    Late {
        /// The server.
        server: String,
        /// The time limit.
        limit: Duration,
    },
    /// A response beyond the size limit.
    #[error("the answer to `{0}` is larger than {mib} MiB", mib = LARGEST / 1024 / 1024)]
    TooLarge(&'static str),
    /// A status other than 200.
    #[error("{server} answered `{method}` with the status {status}")]
    Status {
        /// The server.
        server: String,
        /// The method.
        method: &'static str,
        /// The status.
        status: StatusCode,
    },
    /// The server responded with an error.
    #[error("`{method}` was refused: {error}")]
    Refused {
        /// The method.
        method: &'static str,
        /// The `error` member, truncated.
        error: String,
    },
    /// The response is not JSON-RPC.
    #[error("the response to `{0}` is not JSON-RPC")]
    NoRpc(&'static str),
    /// More pages than the limit.
    #[error("`tools/list` has more than {MOST_PAGES} pages")]
    TooManyPages,
    /// The pages together exceed the size limit.
    #[error("the pages of `tools/list` are larger than {mib} MiB together", mib = LARGEST / 1024 / 1024)]
    TooLargeTogether,
    /// A document that is not UTF-8.
    #[error("the answer of {0} is not UTF-8")]
    NotText(String),
    /// A JSON response that is not a document.
    #[error("the answer to `{0}` is refused")]
    Document(&'static str, #[source] serde_json::Error),
    /// The link to the server was lost first.
    #[error("{0}")]
    Lost(String),
    /// A signal to stop came first.
    #[error("stopped before the server answered")]
    Interrupted,
    /// A server over HTTP with SSE names an address of its own that messages may not go to.
    #[error("the endpoint that the event stream of {0} names is refused")]
    Endpoint(String, #[source] EndpointFault),
    /// Neither method succeeded.
    #[error("the server does not describe itself: {0}; {1}")]
    Neither(Box<DiscoverError>, Box<DiscoverError>),
}

/// A server to discover.
#[derive(Debug)]
pub(super) struct DiscoverServer {
    uri: Uri,
    authority: String,
    connector: Connector,
    headers: HeaderMap,
}

/// A response, with facts from its head.
struct DiscoverAnswer {
    result: Value,
    /// The size of the response in bytes.
    size: usize,
    session: Option<HeaderValue>,
}

impl DiscoverServer {
    /// Parses an address, additional headers, and the file of the trusted CAs that replace the public ones.
    pub(super) fn parse(
        url: &str,
        headers: &[String],
        ca: Option<&Path>,
    ) -> Result<DiscoverServer, DiscoverError> {
        let wrong = |why| DiscoverError::Url {
            url: without_credentials(url),
            why,
        };
        let uri: Uri = url
            .parse()
            .map_err(|_| wrong("it is not a URL; write `https://host[:port]/path`"))?;
        let authority = uri.authority().map(ToString::to_string);
        let authority = authority.ok_or_else(|| wrong("it names no host"))?;
        if authority.contains('@') {
            return Err(wrong(
                "credentials belong into `--header`, not into the URL",
            ));
        }
        let connector = match uri.scheme_str() {
            Some("http") if ca.is_some() => {
                return Err(wrong(
                    "`--ca` is for an address that begins with `https://`",
                ));
            }
            Some("http") => Connector::new(&address(&authority, 80), None, Alpn::Http),
            Some("https") => {
                let tls = tls(uri.host().unwrap_or_default(), ca)?;
                Connector::new(&address(&authority, 443), Some(&tls), Alpn::Http)
            }
            Some(_) | None => {
                return Err(wrong("it must begin with `http://` or `https://`"));
            }
        };
        let headers = headers.iter().map(|text| header(text));
        Ok(DiscoverServer {
            uri,
            authority,
            connector,
            headers: headers.collect::<Result<_, _>>()?,
        })
    }

    /// Runs discovery by the chosen method, or by both.
    pub(super) fn ask(
        &self,
        method: Option<Method>,
        limit: Duration,
    ) -> Result<SourceDocument, DiscoverError> {
        self.in_time(limit, self.tell(method, limit))
    }

    /// Runs a request to its end, or to the time limit.
    fn in_time<T>(
        &self,
        limit: Duration,
        asking: impl Future<Output = Result<T, DiscoverError>>,
    ) -> Result<T, DiscoverError> {
        let unreachable = |source| DiscoverError::Unreachable(self.name(), source);
        let outcome = within(limit, asking).map_err(unreachable)?;
        outcome.unwrap_or_else(|| {
            Err(DiscoverError::Late {
                server: self.name(),
                limit,
            })
        })
    }

    /// Gets a document from the address; returns its name and its text.
    pub(super) fn fetch(&self, limit: Duration) -> Result<(String, String), DiscoverError> {
        let text = self.in_time(limit, self.get())?;
        let text = String::from_utf8(text).map_err(|_| DiscoverError::NotText(self.name()))?;
        Ok((self.name(), text))
    }

    async fn get(&self) -> Result<Vec<u8>, DiscoverError> {
        let mut request = Request::new(Full::new(Bytes::new()));
        *request.uri_mut() = self.target();
        *request.headers_mut() = self.headers.clone();
        let accept = HeaderValue::from_static("application/json, application/yaml, */*;q=0.5");
        request.headers_mut().entry(ACCEPT).or_insert(accept);
        let (_, text) = self.send(request, GET).await?;
        Ok(text)
    }

    /// Returns the path and query of the address.
    fn target(&self) -> Uri {
        let target = self.uri.path_and_query();
        let target = target.map_or("/", |target| target.as_str());
        target.parse().unwrap_or_default()
    }

    /// Returns the address without parts that may be secret.
    fn name(&self) -> String {
        let scheme = self.uri.scheme_str().unwrap_or("http");
        format!("{scheme}://{}{}", self.authority, self.uri.path())
    }

    async fn tell(
        &self,
        method: Option<Method>,
        limit: Duration,
    ) -> Result<SourceDocument, DiscoverError> {
        match method {
            Some(Method::Discover) => return self.discover().await,
            Some(Method::Tools) => return self.tools().await,
            None => {}
        }
        // A server that does not know the method may leave the call unanswered.
        let first = timeout(DISCOVER.min(limit / 2), self.discover()).await;
        match first {
            Ok(Err(first)) if first.is_refusal() => self.tools().await.map_err(|second| {
                if second.is_refusal() {
                    DiscoverError::Neither(Box::new(first), Box::new(second))
                } else {
                    second
                }
            }),
            Ok(outcome) => outcome,
            Err(_) => match self.tools().await {
                // The server has no tools, so it may only be slow.
                Err(second) if second.is_refusal() => self.discover().await,
                outcome => outcome,
            },
        }
    }

    async fn discover(&self) -> Result<SourceDocument, DiscoverError> {
        let answer = self.call("rpc.discover", json!({}), &self.headers).await?;
        Ok(self.given("rpc.discover", DocumentKind::OpenRpc, answer.result))
    }

    fn given(&self, method: &str, kind: DocumentKind, document: Value) -> SourceDocument {
        SourceDocument {
            name: format!("`{method}` of {}", self.name()),
            kind,
            document,
        }
    }

    /// Lists the tools; opens a session if the server requires one.
    async fn tools(&self) -> Result<SourceDocument, DiscoverError> {
        let first = self.call("tools/list", json!({}), &self.headers).await;
        let (headers, answer) = match first {
            Ok(answer) => (self.headers.clone(), answer),
            Err(fault) if fault.is_refusal() => {
                let headers = match self.initialize().await {
                    Ok(headers) => headers,
                    Err(DiscoverError::Status { status, .. }) if status.is_client_error() => {
                        let tools = self.tools_over_sse().await;
                        return tools.map_err(|own| own.after(fault));
                    }
                    Err(_) => return Err(fault),
                };
                let answer = self.call("tools/list", json!({}), &headers).await?;
                (headers, answer)
            }
            Err(fault) => return Err(fault),
        };
        let next = async |params| self.call("tools/list", params, &headers).await;
        let document = all_pages(answer, next).await?;
        Ok(self.given("tools/list", DocumentKind::Tools, document))
    }

    /// Opens an MCP session, and returns the headers that identify it.
    async fn initialize(&self) -> Result<HeaderMap, DiscoverError> {
        let params = tools::greeting();
        let answer = self.call("initialize", params, &self.headers).await?;
        let mut headers = self.headers.clone();
        if let Some(session) = answer.session {
            headers.insert(HeaderName::from_static(SESSION), session);
        }
        let version = answer.result.get("protocolVersion").and_then(Value::as_str);
        if let Some(Ok(version)) = version.map(HeaderValue::from_str) {
            headers.insert(HeaderName::from_static("mcp-protocol-version"), version);
        }
        let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        // A server that rejects the notification may still list its tools.
        let _ = self
            .post("notifications/initialized", &note, &headers)
            .await;
        Ok(headers)
    }

    async fn call(
        &self,
        method: &'static str,
        params: Value,
        headers: &HeaderMap,
    ) -> Result<DiscoverAnswer, DiscoverError> {
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let (session, text) = self.post(method, &call, headers).await?;
        let message = message(&text).map_err(|source| DiscoverError::Document(method, source))?;
        let mut message = message.ok_or(DiscoverError::NoRpc(method))?;
        if let Some(error) = error_of(&message) {
            return Err(DiscoverError::Refused { method, error });
        }
        let result = message.get_mut("result").map(Value::take);
        Ok(DiscoverAnswer {
            result: result.ok_or(DiscoverError::NoRpc(method))?,
            size: text.len(),
            session,
        })
    }

    /// Sends one request on a connection of its own; returns the session and the body of a 200.
    async fn post(
        &self,
        method: &'static str,
        message: &Value,
        headers: &HeaderMap,
    ) -> Result<(Option<HeaderValue>, Vec<u8>), DiscoverError> {
        let mut request = Request::new(Full::new(Bytes::from(message.to_string())));
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = self.target();
        *request.headers_mut() = headers.clone();
        for (name, value) in [
            (CONTENT_TYPE, "application/json"),
            (ACCEPT, "application/json, text/event-stream"),
        ] {
            request
                .headers_mut()
                .insert(name, HeaderValue::from_static(value));
        }
        self.send(request, method).await
    }

    /// Sends a request on a connection of its own; returns the session and the body of a 200.
    async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
        method: &'static str,
    ) -> Result<(Option<HeaderValue>, Vec<u8>), DiscoverError> {
        self.add_host(&mut request);
        let outcome = exchange(&self.connector, async |sender| {
            self.exchange(sender, request, method).await
        });
        outcome.await.map_err(|fault| self.fault(fault))?
    }

    async fn exchange(
        &self,
        mut sender: Sender,
        request: Request<Full<Bytes>>,
        method: &'static str,
    ) -> Result<(Option<HeaderValue>, Vec<u8>), DiscoverError> {
        let broken = |source| DiscoverError::Broken(self.name(), source);
        let response = sender.send_request(request).await.map_err(broken)?;
        let status = response.status();
        if status != StatusCode::OK {
            return Err(DiscoverError::Status {
                server: self.name(),
                method,
                status,
            });
        }
        let session = response.headers().get(SESSION).cloned();
        let body = self.collect(response.into_body(), method).await?;
        Ok((session, body))
    }

    async fn collect(
        &self,
        mut body: Incoming,
        method: &'static str,
    ) -> Result<Vec<u8>, DiscoverError> {
        let mut text = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|source| DiscoverError::Broken(self.name(), source))?;
            let Ok(more) = frame.into_data() else {
                continue;
            };
            text.extend_from_slice(&more);
            if text.len() > LARGEST {
                return Err(DiscoverError::TooLarge(method));
            }
            // An event stream may stay open after the response.
            let event_is_over =
                method != GET && (text.ends_with(b"\n\n") || text.ends_with(b"\r\n\r\n"));
            if event_is_over && !matches!(message(&text), Ok(None)) {
                break;
            }
        }
        Ok(text)
    }
}

impl DiscoverError {
    /// Returns true if the server responded without knowing the method.
    fn is_refusal(&self) -> bool {
        match self {
            DiscoverError::Status { status, .. } => status.is_client_error(),
            DiscoverError::Refused { .. } | DiscoverError::NoRpc(_) => true,
            DiscoverError::Url { .. }
            | DiscoverError::Unreadable(..)
            | DiscoverError::Authorities(..)
            | DiscoverError::Header(_)
            | DiscoverError::Unreachable(..)
            | DiscoverError::Broken(..)
            | DiscoverError::Late { .. }
            | DiscoverError::TooLarge(_)
            | DiscoverError::Interrupted
            | DiscoverError::Lost(_)
            | DiscoverError::TooManyPages
            | DiscoverError::TooLargeTogether
            | DiscoverError::NotText(_)
            | DiscoverError::Document(..)
            | DiscoverError::Endpoint(..)
            | DiscoverError::Neither(..) => false,
        }
    }
}

fn tls(host: &str, ca: Option<&Path>) -> Result<ClientTls, DiscoverError> {
    let read = ca.map(|path| {
        let text = fs::read(path).map_err(|source| DiscoverError::Unreadable(path.into(), source));
        text.map(|text| Pem::new(&text))
    });
    let tls = ClientTls {
        server_name: host.trim_matches(['[', ']']).to_owned(),
        ca: read.transpose()?,
        own: None,
    };
    if let (Some(path), Err(fault)) = (ca, client(&tls, Alpn::Http)) {
        return Err(DiscoverError::Authorities(path.into(), fault));
    }
    Ok(tls)
}

fn without_credentials(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://{rest}"),
        (None, _) | (_, None) => url.to_owned(),
    }
}

fn header(text: &str) -> Result<(HeaderName, HeaderValue), DiscoverError> {
    // The value may be a secret, so the message contains only the name.
    let name = text.split(':').next().unwrap_or_default().trim();
    let wrong = || DiscoverError::Header(name.to_owned());
    let (_, value) = text.split_once(':').ok_or_else(wrong)?;
    let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
    let mut value = HeaderValue::from_str(value.trim()).map_err(|_| wrong())?;
    value.set_sensitive(true);
    Ok((name, value))
}
