//! The source of flags: an OFREP server that is polled for the values of all its flags.
//!
//! Laws: a poll ends within its timeout, including the connection setup; a response is bounded; redirects are not
//! followed, so the token reaches no other server. Each poll has a connection of its own, so a dropped poll leaves
//! nothing behind.
//!
//! Used by `app::control`.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, ETAG, HOST, IF_NONE_MATCH, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::time::timeout;

use crate::config::compile::source::{SourceAddress, source};
use crate::config::raw::RawSource;
use crate::telemetry::clock::{timestamp, wall};
use dualgauge_model::ofrep::{ResponseFault, read_sourced, retry_after};
use dualgauge_model::rollout::ReceivedValues;
use dualgauge_net::Connector;
use dualgauge_net::tls_config::Alpn;

/// The longest response, in bytes.
pub const LONGEST_RESPONSE: usize = 8 << 20;
/// The time of the next request, in the OpenAPI document of OFREP for all flags at once.
const RETRY_LATER: HeaderName = HeaderName::from_static("retry-later");
/// The context: the flags of a source hold for all callers, and some servers require a key.
const REQUEST: &str = r#"{"context":{"targetingKey":"dualgauge"}}"#;

/// The location of a source and its options. `Debug` shows no token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceSettings {
    address: SourceAddress,
    url: String,
    prefix: String,
    /// The time between polls.
    pub interval: Duration,
    timeout: Duration,
}

/// The result of a successful poll.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolledFlags {
    /// The response has these values.
    Values {
        /// The values of the keys with the prefix.
        values: ReceivedValues,
        /// The tag of the response, for the next poll.
        tag: Option<HeaderValue>,
    },
    /// The values are those of the tag that was sent.
    Unchanged,
}

/// The reason why a poll has no values.
#[derive(Debug, thiserror::Error)]
pub enum PollError {
    /// The connection failed.
    #[error("cannot connect to the source")]
    Unreachable(#[source] io::Error),
    /// The response is not valid HTTP, or is incomplete.
    #[error("the response of the source is not valid HTTP")]
    Broken(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// There was no complete response in time.
    #[error("the source has not answered within {0:?}")]
    Late(Duration),
    /// The token is missing or wrong.
    #[error("the source refuses the token: status {0}")]
    Unauthorized(StatusCode),
    /// The source limits the rate of requests, or is overloaded.
    #[error("the source accepts no request now: status {status}")]
    Busy {
        /// The status.
        status: StatusCode,
        /// The time after which it accepts requests, if it says so.
        after: Option<Duration>,
    },
    /// Another status.
    #[error("the source answers with status {0}")]
    Status(StatusCode),
    /// The response is too long.
    #[error("the response of the source is longer than {LONGEST_RESPONSE} bytes")]
    TooLong,
    /// The response cannot be used.
    #[error(transparent)]
    Invalid(#[from] ResponseFault),
    /// The response does not mention the flags that follow the source.
    #[error("the response has none of the flags that follow the source")]
    Empty,
    /// There is no plan with the values, but the values are not the reason.
    #[error("no plan can be compiled with the values of the source: {0}")]
    NoPlan(String),
}

impl PollError {
    /// Returns the time after which the source accepts requests, if it says so.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            PollError::Busy { after, .. } => *after,
            PollError::Unreachable(_)
            | PollError::Broken(_)
            | PollError::Late(_)
            | PollError::Unauthorized(_)
            | PollError::Status(_)
            | PollError::TooLong
            | PollError::Invalid(_)
            | PollError::Empty
            | PollError::NoPlan(_) => None,
        }
    }
}

impl SourceSettings {
    /// Reads the settings from the configuration.
    #[must_use]
    pub fn new(raw: &RawSource) -> SourceSettings {
        SourceSettings {
            // Errors were reported when the configuration was compiled.
            address: source(raw, &mut Vec::new()),
            url: raw.url.value.to_string(),
            prefix: raw.prefix.value.clone(),
            interval: raw.interval.value,
            timeout: raw.timeout.value,
        }
    }

    /// Returns the base URL.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the identity of the source: its URL and its prefix. Contains no secrets.
    #[must_use]
    pub fn identity(&self) -> String {
        format!("{} {}", self.url, self.prefix)
    }

    /// Polls the source once, with the tag of the last response.
    ///
    /// # Errors
    /// Returns a [`PollError`]; the last values stay valid.
    pub async fn poll(&self, tag: Option<&HeaderValue>) -> Result<PolledFlags, PollError> {
        let polled = timeout(self.timeout, self.exchange(tag)).await;
        polled.unwrap_or(Err(PollError::Late(self.timeout)))
    }

    async fn exchange(&self, tag: Option<&HeaderValue>) -> Result<PolledFlags, PollError> {
        let SourceAddress { server, tls, .. } = &self.address;
        let connector = Connector::new(server, tls.as_ref(), Alpn::Http);
        let stream = connector.connect().await;
        let stream = stream.map_err(PollError::Unreachable)?;
        let connected = handshake(TokioIo::new(stream)).await;
        let (sender, connection) = connected.map_err(broken)?;
        // The connection ends with the exchange, which owns its sender.
        let (polled, _) = future::join(self.ask(sender, tag), connection).await;
        polled
    }

    async fn ask(
        &self,
        mut sender: SendRequest<Full<Bytes>>,
        tag: Option<&HeaderValue>,
    ) -> Result<PolledFlags, PollError> {
        let sent = sender.send_request(self.request(tag)).await;
        let response = sent.map_err(broken)?;
        match response.status() {
            StatusCode::OK => self.values(response).await,
            StatusCode::NOT_MODIFIED if tag.is_some() => Ok(PolledFlags::Unchanged),
            status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
                Err(PollError::Unauthorized(status))
            }
            status @ (StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) => {
                let after = pause(response.headers());
                Err(PollError::Busy { status, after })
            }
            status => Err(PollError::Status(status)),
        }
    }

    fn request(&self, tag: Option<&HeaderValue>) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(Bytes::from_static(REQUEST.as_bytes())));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.address.path.parse().unwrap_or_default();
        let json = HeaderValue::from_static("application/json");
        let authority = HeaderValue::from_str(&self.address.authority).ok();
        let headers = [
            (HOST, authority),
            (CONTENT_TYPE, Some(json.clone())),
            (ACCEPT, Some(json)),
            (AUTHORIZATION, self.address.authorization.clone()),
            (IF_NONE_MATCH, tag.cloned()),
        ];
        let headers = headers.into_iter();
        let headers = headers.filter_map(|(name, value)| Some((name, value?)));
        request.headers_mut().extend(headers);
        request
    }

    async fn values(&self, response: Response<Incoming>) -> Result<PolledFlags, PollError> {
        let tag = response.headers().get(ETAG).cloned();
        let body = Limited::new(response.into_body(), LONGEST_RESPONSE);
        let body = body.collect().await;
        let body = body.map_err(|error| match error.is::<LengthLimitError>() {
            true => PollError::TooLong,
            false => PollError::Broken(error),
        })?;
        let values = read_sourced(&body.to_bytes(), &self.prefix)?;
        Ok(PolledFlags::Values { values, tag })
    }
}

fn broken(error: hyper::Error) -> PollError {
    PollError::Broken(error.into())
}

/// Returns the time after which the source accepts requests.
fn pause(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER).or(headers.get(RETRY_LATER))?;
    retry_after(value.to_str().ok()?, timestamp(wall()))
}

#[cfg(test)]
mod tests;
