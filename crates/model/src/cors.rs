//! CORS: which web origins may read responses (the CORS protocol of the Fetch standard).
//!
//! This module does not know how calls are routed. Laws: an unlisted origin gets no header that would let its pages
//! read a response; a response that depends on the origin has `Vary: Origin`.
//!
//! Used by `config`, `model` and `gateway`.

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

/// The reason why a text is not an origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OriginError {
    /// The text is not of the form `scheme://host[:port]`.
    Shape,
    /// Browsers spell this origin differently.
    Spelling(String),
}

impl WebOrigin {
    /// Parses an origin.
    ///
    /// # Errors
    /// [`OriginError`], also for another spelling: browsers send one spelling only, and origins are compared byte for
    /// byte.
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

    /// Returns the origin as browsers write it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns the scheme, in lower case, and the authority of an origin.
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

/// The origins whose pages may read responses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origins {
    /// All origins.
    Any,
    /// These origins.
    Listed(Vec<WebOrigin>),
}

/// Request headers that a page may send in addition to the CORS-safelisted ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestHeaders {
    /// The headers that the browser asks for.
    Mirrored,
    /// These headers.
    Listed(Vec<HeaderName>),
}

/// The CORS policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cors {
    /// Allowed origins.
    pub origins: Origins,
    /// Allowed request headers.
    pub headers: RequestHeaders,
    /// Response headers that pages may read.
    pub expose: Vec<HeaderName>,
    /// True if pages may send the browser's credentials.
    pub allows_credentials: bool,
    /// Time that a browser may cache the preflight response; the browser's default if `None`.
    pub max_age: Option<Duration>,
}

/// Headers that the preflight response depends on.
const VARY_ON: HeaderValue = HeaderValue::from_static(
    "origin, access-control-request-method, access-control-request-headers",
);

impl Cors {
    /// Returns whether pages of an origin may read responses.
    #[must_use]
    pub fn admits(&self, origin: &HeaderValue) -> bool {
        match &self.origins {
            Origins::Any => true,
            Origins::Listed(listed) => listed
                .iter()
                .any(|known| known.as_str().as_bytes() == origin.as_bytes()),
        }
    }

    /// Adds the CORS headers to a response if the origin is allowed. `Vary` is set for every origin, for caches.
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

    /// Returns the headers of the preflight response for a path with these methods.
    #[must_use]
    pub fn preflight(&self, request: &HeaderMap, methods: &[Method]) -> HeaderMap {
        let mut answer = HeaderMap::from_iter([(VARY, VARY_ON)]);
        if !self.allow(origin(request), &mut answer) {
            return answer;
        }
        let methods = list(methods.iter().map(Method::as_str));
        let headers = match &self.headers {
            RequestHeaders::Mirrored => {
                list(requested_headers(request).iter().map(HeaderName::as_str))
            }
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

    /// Adds the origin to a response if it is allowed.
    fn allow(&self, origin: Option<&HeaderValue>, answer: &mut HeaderMap) -> bool {
        let named = match &self.origins {
            // The same value for all origins, so that caches can share the response.
            Origins::Any => Some(HeaderValue::from_static("*")),
            Origins::Listed(_) => origin.filter(|origin| self.admits(origin)).cloned(),
        };
        let Some(named) = named else {
            return false;
        };
        answer.insert(ACCESS_CONTROL_ALLOW_ORIGIN, named);
        if self.allows_credentials {
            answer.insert(
                ACCESS_CONTROL_ALLOW_CREDENTIALS,
                HeaderValue::from_static("true"),
            );
        }
        true
    }
}

/// Returns the `Origin` of a request; `None` if it has more than one.
#[must_use]
pub fn origin(headers: &HeaderMap) -> Option<&HeaderValue> {
    let mut origins = headers.get_all(ORIGIN).iter();
    let first = origins.next()?;
    origins.next().is_none().then_some(first)
}

/// Returns the method that a preflight asks for; `None` if this request is not a preflight.
#[must_use]
pub fn requested_method(method: &Method, headers: &HeaderMap) -> Option<Method> {
    if *method != Method::OPTIONS {
        return None;
    }
    origin(headers)?;
    let wanted = headers.get(ACCESS_CONTROL_REQUEST_METHOD)?;
    Method::from_bytes(wanted.as_bytes()).ok()
}

fn requested_headers(request: &HeaderMap) -> Vec<HeaderName> {
    let lines = request.get_all(ACCESS_CONTROL_REQUEST_HEADERS).iter();
    let names = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    names
        .filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok())
        .collect()
}

/// Joins names into a list header; `None` if there are none.
fn list<'a>(names: impl Iterator<Item = &'a str>) -> Option<HeaderValue> {
    let names: Vec<&str> = names.collect();
    if names.is_empty() {
        return None;
    }
    HeaderValue::try_from(names.join(", ")).ok()
}

#[cfg(test)]
mod tests;
