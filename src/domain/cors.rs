//! Origins: which pages may read answers (the CORS protocol of the Fetch standard).
//!
//! It is not known here which calls are served in which way. Laws: an origin that is not listed gets nothing
//! that would let its page read an answer; an answer that depends on the origin says so in `Vary`.

use std::time::Duration;

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
    ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue, Method};

/// An origin as a browser writes it: `https://app.example`, `http://localhost:3000`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebOrigin(String);

/// Why a text is no origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OriginError {
    /// It has another shape than `scheme://host[:port]`.
    Shape,
    /// Browsers write it in this way.
    Spelling(String),
}

impl WebOrigin {
    /// The origin that a text spells.
    ///
    /// # Errors
    /// [`OriginError`], also for another spelling: browsers send one only, and it is compared byte for byte.
    pub fn parse(text: &str) -> Result<WebOrigin, OriginError> {
        let (scheme, authority) = split(text).ok_or(OriginError::Shape)?;
        let (host, port) = (authority.host(), authority.port_u16());
        let port = port.filter(|port| Some(*port) != default_port(&scheme));
        let port = port.map_or(String::new(), |port| format!(":{port}"));
        let spelled = format!("{scheme}://{}{port}", host.to_ascii_lowercase());
        if spelled == text {
            Ok(WebOrigin(spelled))
        } else {
            Err(OriginError::Spelling(spelled))
        }
    }

    /// The origin as browsers write it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The scheme, in lower case, and the authority of an origin.
pub(super) fn split(text: &str) -> Option<(String, Authority)> {
    let (scheme, authority) = text.split_once("://")?;
    let of_scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    let named = scheme.starts_with(|c: char| c.is_ascii_alphabetic());
    if !named || !scheme.chars().all(of_scheme) || authority.contains(['@', '*']) {
        return None;
    }
    let authority: Authority = authority.parse().ok()?;
    let has_port = authority.as_str().len() > authority.host().len();
    if authority.host().is_empty() || (has_port && authority.port_u16().is_none()) {
        return None;
    }
    Some((scheme.to_ascii_lowercase(), authority))
}

pub(super) fn default_port(scheme: &str) -> Option<u16> {
    match scheme {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    }
}

/// Whose pages may read answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origins {
    /// Everybody's.
    Any,
    /// Those of these origins.
    Listed(Vec<WebOrigin>),
}

/// Which headers a page may send beside those that every page may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestHeaders {
    /// Those that its browser asks for.
    Mirrored,
    /// These.
    Listed(Vec<HeaderName>),
}

/// Whether a page may call with the credentials that its browser keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WithCredentials {
    /// It may.
    Yes,
    /// It may not.
    No,
}

/// What pages of other origins may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cors {
    /// Whose pages.
    pub origins: Origins,
    /// What they may send.
    pub headers: RequestHeaders,
    /// The headers of answers that they may read.
    pub expose: Vec<HeaderName>,
    /// Whether they may send credentials.
    pub credentials: WithCredentials,
    /// How long a browser may remember the answer to a preflight; its own time where none is said.
    pub max_age: Option<Duration>,
}

/// Headers that the answer to a preflight depends on.
const ASKED: HeaderValue = HeaderValue::from_static(
    "origin, access-control-request-method, access-control-request-headers",
);

impl Cors {
    /// Whether pages of an origin may read answers.
    #[must_use]
    pub fn admits(&self, origin: &HeaderValue) -> bool {
        match &self.origins {
            Origins::Any => true,
            Origins::Listed(listed) => listed
                .iter()
                .any(|known| known.as_str().as_bytes() == origin.as_bytes()),
        }
    }

    /// Lets the pages of an admitted origin read an answer. The answer is marked for caches whoever asks.
    pub fn mark(&self, origin: Option<&HeaderValue>, answer: &mut HeaderMap) {
        if matches!(self.origins, Origins::Listed(_)) {
            answer.append(VARY, HeaderValue::from_static("origin"));
        }
        if self.allow(origin, answer)
            && let Some(names) = list(self.expose.iter().map(HeaderName::as_str))
        {
            answer.insert(ACCESS_CONTROL_EXPOSE_HEADERS, names);
        }
    }

    /// The headers of the answer to a preflight, at a path that has these methods.
    #[must_use]
    pub fn preflight(&self, asked: &HeaderMap, methods: &[Method]) -> HeaderMap {
        let mut answer = HeaderMap::from_iter([(VARY, ASKED)]);
        if !self.allow(origin(asked), &mut answer) {
            return answer;
        }
        let methods = list(methods.iter().map(Method::as_str));
        let headers = match &self.headers {
            RequestHeaders::Mirrored => list(asked_headers(asked).iter().map(HeaderName::as_str)),
            RequestHeaders::Listed(names) => list(names.iter().map(HeaderName::as_str)),
        };
        let max_age = self.max_age.map(|age| HeaderValue::from(age.as_secs()));
        let allowed = [
            (ACCESS_CONTROL_ALLOW_METHODS, methods),
            (ACCESS_CONTROL_ALLOW_HEADERS, headers),
            (ACCESS_CONTROL_MAX_AGE, max_age),
        ];
        let allowed = allowed
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)));
        answer.extend(allowed);
        answer
    }

    /// Names the origin in an answer, if it is admitted.
    fn allow(&self, origin: Option<&HeaderValue>, answer: &mut HeaderMap) -> bool {
        let named = match &self.origins {
            // The same for all, also for caches that keep the answer to a page of the same origin.
            Origins::Any => Some(HeaderValue::from_static("*")),
            Origins::Listed(_) => origin.filter(|origin| self.admits(origin)).cloned(),
        };
        let Some(named) = named else {
            return false;
        };
        answer.insert(ACCESS_CONTROL_ALLOW_ORIGIN, named);
        if self.credentials == WithCredentials::Yes {
            answer.insert(
                ACCESS_CONTROL_ALLOW_CREDENTIALS,
                HeaderValue::from_static("true"),
            );
        }
        true
    }
}

/// The one `WebOrigin` of a request. A second one is nobody's.
#[must_use]
pub fn origin(headers: &HeaderMap) -> Option<&HeaderValue> {
    let mut said = headers.get_all(ORIGIN).iter();
    let first = said.next()?;
    said.next().is_none().then_some(first)
}

/// The method of the call that a preflight asks for, if this is the head of a preflight.
#[must_use]
pub fn asked_method(method: &Method, headers: &HeaderMap) -> Option<Method> {
    if *method != Method::OPTIONS {
        return None;
    }
    origin(headers)?;
    let wanted = headers.get(ACCESS_CONTROL_REQUEST_METHOD)?;
    Method::from_bytes(wanted.as_bytes()).ok()
}

fn asked_headers(asked: &HeaderMap) -> Vec<HeaderName> {
    let lines = asked.get_all(ACCESS_CONTROL_REQUEST_HEADERS).iter();
    let names = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    names
        .filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok())
        .collect()
}

/// A list as a header has it; none where it is empty.
fn list<'a>(names: impl Iterator<Item = &'a str>) -> Option<HeaderValue> {
    let names: Vec<&str> = names.collect();
    if names.is_empty() {
        return None;
    }
    HeaderValue::try_from(names.join(", ")).ok()
}

#[cfg(test)]
mod tests;
