//! A client of a running process's admin API, for commands.
//!
//! Each request has a connection of its own, a time limit and a response size limit. Errors of the API are shown in its
//! own words.
//!
//! Used throughout `cli`.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use http::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, ETAG, HOST, IF_MATCH};
use http::header::{HeaderName, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use serde_json::Value;

use crate::cli::connection::{ConnectionFault, address, exchange, within};
use crate::config::load::environment;
use crate::config::problem::SourceLocation;
use dualgauge_net::Connector;
use dualgauge_net::tls_config::Alpn;

/// Maximum size of a response.
const LARGEST: usize = 32 * 1024 * 1024;
/// Timeout of a request; longer than any operation of the state's owner.
const LIMIT: Duration = Duration::from_secs(15);
/// The environment variable with the token.
const TOKEN: &str = "DUALGAUGE_TOKEN";

/// Where the admin listener is.
#[derive(Debug, Clone, Args)]
pub(super) struct AdminArguments {
    /// The admin listener of the process
    #[arg(
        long,
        value_name = "URL",
        default_value = AdminArguments::DEFAULT,
        global = true
    )]
    admin: String,
    /// A file with the token of the API; without it, the variable `DUALGAUGE_TOKEN`
    #[arg(long, value_name = "FILE", global = true)]
    token_file: Option<PathBuf>,
}

impl AdminArguments {
    /// The admin listener of a process with the default configuration.
    pub(super) const DEFAULT: &str = "http://127.0.0.1:9090";

    /// Returns the arguments for a command that needs an address only.
    pub(super) fn at(url: &str, token_file: Option<PathBuf>) -> AdminArguments {
        AdminArguments {
            admin: url.to_owned(),
            token_file,
        }
    }
}

/// The reason why a request failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum AdminFault {
    /// The address cannot be used.
    #[error("`--admin {url}`: {why}; write `http://host:port`")]
    Url { url: String, why: &'static str },
    /// The token cannot be read.
    #[error("the token file `{path}` cannot be read")]
    Token {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The token is not a valid header value.
    #[error("the token contains characters that no header may have")]
    OddToken,
    /// The connection failed.
    #[error(
        "no connection to {server}; is the process running, and is `--admin` its admin address?"
    )]
    Unreachable {
        server: String,
        #[source]
        source: io::Error,
    },
    /// Another server responded.
    #[error(
        "{server} is not an admin listener; it may be the port for calls (`listen.address`). \
         `--admin` expects the address of `admin.address`, by default `http://127.0.0.1:9090`"
    )]
    NotAdmin { server: String },
    /// The response is not valid HTTP, or was cut off.
    #[error("{0} sent no response; is it the admin address, in plain HTTP?")]
    Broken(String, #[source] Box<dyn std::error::Error + Send + Sync>),
    /// The response timed out.
    #[error("{server} did not answer within {limit:?}")]
    Late { server: String, limit: Duration },
    /// The API rejected the request, in its own words.
    #[error("{status}: {detail}")]
    Refused { status: StatusCode, detail: String },
    /// The response is not JSON.
    #[error("the response is not JSON; is `--admin` the admin address?")]
    NoJson,
}

/// The API of one process.
pub(super) struct AdminClient {
    authority: String,
    token: Option<HeaderValue>,
    /// Timeout of a request.
    limit: Duration,
}

/// One request: method, path with query, body, and the tag that the resource must still have.
#[derive(Debug, Clone)]
pub(super) struct AdminRequest<'a> {
    pub(super) method: Method,
    pub(super) path: &'a str,
    pub(super) body: Option<Value>,
    pub(super) tag: Option<&'a str>,
}

impl AdminClient {
    /// Reads the address and the token.
    pub(super) fn new(arguments: &AdminArguments) -> Result<AdminClient, AdminFault> {
        let wrong = |why| AdminFault::Url {
            url: arguments.admin.clone(),
            why,
        };
        let uri: Uri = arguments
            .admin
            .parse()
            .map_err(|_| wrong("it is not a URL"))?;
        if uri.scheme_str() != Some("http") {
            return Err(wrong("it does not begin with `http://`"));
        }
        let authority = uri.authority().map(ToString::to_string);
        let authority = authority.ok_or_else(|| wrong("it names no host"))?;
        if authority.contains('@') {
            return Err(wrong(
                "a token belongs into `--token-file`, not into the URL",
            ));
        }
        let token = token(arguments)?.map(|token| {
            let value = HeaderValue::try_from(format!("Bearer {token}"));
            value.map_err(|_| AdminFault::OddToken).map(|mut value| {
                value.set_sensitive(true);
                value
            })
        });
        Ok(AdminClient {
            authority,
            token: token.transpose()?,
            limit: LIMIT,
        })
    }

    /// Sets the timeout of a request.
    pub(super) fn within(self, limit: Duration) -> AdminClient {
        AdminClient { limit, ..self }
    }

    /// Sends a GET, and returns the JSON response.
    pub(super) fn get(&self, path: &str) -> Result<Value, AdminFault> {
        self.ask(&read(path))
    }

    /// Sends a GET, and returns the text, whatever the status.
    pub(super) fn text(&self, path: &str) -> Result<(StatusCode, String), AdminFault> {
        let response = self.answer(&read(path))?;
        let text = String::from_utf8_lossy(response.body()).into_owned();
        Ok((response.status(), text))
    }

    /// Sends a request, and returns the JSON response.
    pub(super) fn ask(&self, ask: &AdminRequest<'_>) -> Result<Value, AdminFault> {
        serde_json::from_slice(&self.body(ask)?).map_err(|_| AdminFault::NoJson)
    }

    /// Returns the body of a successful response. The token and changes are sent only to an admin listener.
    pub(super) fn body(&self, ask: &AdminRequest<'_>) -> Result<Bytes, AdminFault> {
        let probe = AdminClient {
            authority: self.authority.clone(),
            token: None,
            limit: self.limit,
        };
        if !is_admin(&probe.answer(&read("/healthz"))?) {
            return Err(AdminFault::NotAdmin {
                server: self.server(),
            });
        }
        let response = self.answer(ask)?;
        let status = response.status();
        if !status.is_success() {
            let problem = serde_json::from_slice(response.body()).unwrap_or_default();
            let detail = words(&problem, own_hint(&response));
            return Err(AdminFault::Refused { status, detail });
        }
        Ok(response.into_body())
    }

    fn answer(&self, ask: &AdminRequest<'_>) -> Result<Response<Bytes>, AdminFault> {
        let unreachable = |source| AdminFault::Unreachable {
            server: self.server(),
            source,
        };
        let outcome = within(self.limit, self.exchange(ask)).map_err(unreachable)?;
        outcome.unwrap_or_else(|| {
            Err(AdminFault::Late {
                server: self.server(),
                limit: self.limit,
            })
        })
    }

    fn server(&self) -> String {
        format!("http://{}", self.authority)
    }

    async fn exchange(&self, ask: &AdminRequest<'_>) -> Result<Response<Bytes>, AdminFault> {
        let broken = |source: hyper::Error| AdminFault::Broken(self.server(), source.into());
        let connector = Connector::new(&address(&self.authority, 80), None, Alpn::Http);
        let outcome = exchange(&connector, async |mut sender| {
            let response = sender.send_request(self.request(ask)).await;
            self.read(response.map_err(broken)?).await
        });
        outcome.await.map_err(|fault| match fault {
            ConnectionFault::Unreachable(source) => AdminFault::Unreachable {
                server: self.server(),
                source,
            },
            ConnectionFault::Broken(source) => broken(source),
        })?
    }

    fn request(&self, ask: &AdminRequest<'_>) -> Request<Full<Bytes>> {
        let body = ask.body.as_ref().map(ToString::to_string);
        let mut request = Request::new(Full::new(Bytes::from(body.unwrap_or_default())));
        *request.method_mut() = ask.method.clone();
        *request.uri_mut() = ask.path.parse().unwrap_or_default();
        let headers = request.headers_mut();
        if let Ok(host) = HeaderValue::from_str(&self.authority) {
            headers.insert(HOST, host);
        }
        // Every write has it: without a token, the API refuses others.
        if ask.body.is_some() || ask.method != Method::GET {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if let Some(token) = &self.token {
            headers.insert(AUTHORIZATION, token.clone());
        }
        let tag = ask
            .tag
            .map(|tag| HeaderValue::try_from(format!("\"{tag}\"")));
        if let Some(Ok(tag)) = tag {
            headers.insert(IF_MATCH, tag);
        }
        request
    }

    async fn read(&self, response: Response<Incoming>) -> Result<Response<Bytes>, AdminFault> {
        let (head, body) = response.into_parts();
        let body = Limited::new(body, LARGEST).collect().await;
        let body = body.map_err(|error| AdminFault::Broken(self.server(), error))?;
        Ok(Response::from_parts(head, body.to_bytes()))
    }
}

/// Returns a request that changes nothing.
fn read(path: &str) -> AdminRequest<'_> {
    AdminRequest {
        method: Method::GET,
        path,
        body: None,
        tag: None,
    }
}

/// Returns whether a response to `GET /healthz` comes from an admin listener of this or an earlier version. It is `ok`,
/// or a rejection of the host, with the headers that all admin responses have.
fn is_admin(response: &Response<Bytes>) -> bool {
    let is = |name: HeaderName, value: &str| {
        let found = response.headers().get(name);
        found.is_some_and(|found| found.as_bytes() == value.as_bytes())
    };
    let answers = match response.status() {
        StatusCode::OK => *response.body() == "ok\n",
        _ => is(CONTENT_TYPE, "application/problem+json"),
    };
    answers && is(CACHE_CONTROL, "no-store") && is(X_CONTENT_TYPE_OPTIONS, "nosniff")
}

/// Returns a hint that names options of the command line. The hint of the API names a header instead.
fn own_hint(response: &Response<Bytes>) -> Option<String> {
    match response.status() {
        StatusCode::UNAUTHORIZED => Some(format!(
            "set `{TOKEN}` or `--token-file FILE` to a token of `admin.tokens`"
        )),
        StatusCode::PRECONDITION_FAILED => {
            let tag = response.headers().get(ETAG)?.to_str().ok()?;
            let tag = tag.trim_matches('"');
            Some(format!("`--if-match {tag}` changes the current version"))
        }
        _ => None,
    }
}

/// Returns the text of a problem document (RFC 9457): the error, each fault, and suggestions. `own_hint` replaces the hint
/// of the document.
fn words(problem: &Value, own_hint: Option<String>) -> String {
    let text =
        |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let mut words = text(problem, "detail").unwrap_or_default();
    let faults = problem.get("problems").and_then(Value::as_array);
    for fault in faults.into_iter().flatten() {
        let of = [location(fault), text(fault, "key"), text(fault, "message")];
        let of = of.into_iter().flatten().filter(|part| !part.is_empty());
        words.push_str(&format!("\n  {}", of.collect::<Vec<_>>().join(": ")));
        if let Some(hint) = text(fault, "hint") {
            words.push_str(&format!(" ({hint})"));
        }
    }
    if let Some(hint) = own_hint.or_else(|| text(problem, "hint")) {
        words.push_str(&format!("\n  hint: {hint}"));
    }
    words
}

/// Returns the location of a fault; `None` for defaults and flips, which are in no file.
fn location(fault: &Value) -> Option<String> {
    let place = fault.get("place").and_then(Value::as_str)?;
    (!SourceLocation::is_implicit(place)).then(|| place.to_owned())
}

fn token(arguments: &AdminArguments) -> Result<Option<String>, AdminFault> {
    let text = match &arguments.token_file {
        Some(path) => Some(
            fs::read_to_string(path).map_err(|source| AdminFault::Token {
                path: path.clone(),
                source,
            })?,
        ),
        None => {
            let mut variables = environment().into_iter();
            variables.find_map(|(name, value)| (name == TOKEN).then_some(value))
        }
    };
    Ok(text.map(|text| text.trim().to_owned()))
}
