//! The admin API of a running proxy, as the commands that ask it see it: one request, one JSON value.
//!
//! A connection for each request, a bound on time and size; the token is never printed.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::time::timeout;

use crate::config::load::environment;

/// The variable that bears the token.
const TOKEN: &str = "DUALGAUGE_TOKEN";
/// For one request, from connecting to the end of its answer.
const LIMIT: Duration = Duration::from_secs(15);
const LARGEST: usize = 16 << 20;

/// The admin listener of a proxy.
#[derive(Debug)]
pub(super) struct Admin {
    uri: Uri,
    token: Option<HeaderValue>,
}

/// Why there is no answer to go by.
#[derive(Debug, thiserror::Error)]
pub(super) enum AdminFault {
    #[error("`{0}` is no address of an admin listener; write `http://HOST:PORT`")]
    Url(String),
    #[error("`{TOKEN}` is no token: it has characters that no header may bear")]
    Token,
    #[error("no connection to {0}; is the proxy running, and is this its `admin.address`?")]
    Unreachable(String, #[source] std::io::Error),
    #[error("{0} did not answer in HTTP")]
    Broken(String, #[source] hyper::Error),
    #[error("{0} did not answer within {LIMIT:?}")]
    Late(String),
    #[error("{0} answered with something else than JSON of at most {LARGEST} bytes")]
    NoJson(String),
    #[error("{0}")]
    Refused(Refused),
    #[error("the system refused")]
    System(#[from] std::io::Error),
}

/// What the API says against a request.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) status: StatusCode,
    /// The problem document.
    pub(super) document: Value,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let detail = self.document["detail"].as_str();
        match detail {
            Some(detail) => f.write_str(detail)?,
            None => write!(f, "the proxy answered {}", self.status)?,
        }
        if let Some(hint) = self.document["hint"].as_str() {
            write!(f, " ({hint})")?;
        }
        for problem in self.document["problems"].as_array().into_iter().flatten() {
            let of = |name: &str| problem[name].as_str().unwrap_or_default();
            write!(f, "\n  {}: {} {}", of("place"), of("key"), of("message"))?;
        }
        Ok(())
    }
}

impl Admin {
    /// The listener at a URL such as `http://127.0.0.1:9090`, with the token of the environment.
    pub(super) fn at(url: &str) -> Result<Admin, AdminFault> {
        let uri = url.parse::<Uri>().ok().filter(|uri| {
            uri.scheme_str() == Some("http") && uri.host().is_some() && uri.path() == "/"
        });
        let variables = environment().into_iter();
        let token = variables.filter(|(name, _)| name == TOKEN).map(bearer);
        Ok(Admin {
            uri: uri.ok_or_else(|| AdminFault::Url(url.to_owned()))?,
            token: token.last().transpose()?,
        })
    }

    /// Reads what is at a path.
    pub(super) fn get(&self, path: &str) -> Result<Value, AdminFault> {
        self.ask(Method::GET, path, None)
    }

    /// One request; an answer that is no success is a fault.
    pub(super) fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, AdminFault> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let request = self.request(method, path, body)?;
        let exchange = runtime.block_on(async { timeout(LIMIT, self.exchange(request)).await });
        let (status, text) = exchange.map_err(|_| AdminFault::Late(self.name()))??;
        let document: Option<Value> = serde_json::from_slice(&text).ok();
        if status.is_success() {
            return document.ok_or_else(|| AdminFault::NoJson(self.name()));
        }
        Err(AdminFault::Refused(Refused {
            status,
            document: document.unwrap_or_default(),
        }))
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Request<Full<Bytes>>, AdminFault> {
        let text = body.map(Value::to_string).unwrap_or_default();
        let mut request = Request::new(Full::new(Bytes::from(text)));
        *request.method_mut() = method;
        *request.uri_mut() = path.parse().map_err(|_| AdminFault::Url(path.to_owned()))?;
        let headers = request.headers_mut();
        if let Ok(host) = HeaderValue::try_from(self.authority()) {
            headers.insert(HOST, host);
        }
        if body.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if let Some(token) = &self.token {
            headers.insert(AUTHORIZATION, token.clone());
        }
        Ok(request)
    }

    async fn exchange(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<(StatusCode, Bytes), AdminFault> {
        let broken = |source| AdminFault::Broken(self.name(), source);
        let address = match self.uri.port_u16() {
            Some(_) => self.authority().to_owned(),
            None => format!("{}:80", self.authority()),
        };
        let stream = TcpStream::connect(address).await;
        let stream = stream.map_err(|source| AdminFault::Unreachable(self.name(), source))?;
        let (mut sender, connection) = handshake(TokioIo::new(stream)).await.map_err(broken)?;
        // The connection ends with its sender, which the exchange owns.
        let exchange = async move {
            let answer = sender.send_request(request).await.map_err(broken)?;
            let status = answer.status();
            let body = Limited::new(answer.into_body(), LARGEST).collect().await;
            let body = body.map_err(|_| AdminFault::NoJson(self.name()))?;
            Ok((status, body.to_bytes()))
        };
        let (answer, _) = future::join(exchange, connection).await;
        answer
    }

    /// `host:port`, without a user or a password that the URL may bear.
    fn authority(&self) -> &str {
        let authority = self
            .uri
            .authority()
            .map_or("", |authority| authority.as_str());
        authority
            .rsplit_once('@')
            .map_or(authority, |(_, host)| host)
    }

    fn name(&self) -> String {
        format!("http://{}", self.authority())
    }
}

/// The header that a token is sent in.
fn bearer((_, token): (String, String)) -> Result<HeaderValue, AdminFault> {
    let value = HeaderValue::try_from(format!("Bearer {}", token.trim()));
    let mut value = value.map_err(|_| AdminFault::Token)?;
    value.set_sensitive(true);
    Ok(value)
}
