//! An RPC call, as patterns read it. Used throughout `model`, and by `gateway`.

use http::HeaderMap;

use dualgauge_patterns::json::Json;

/// An RPC call to read.
#[derive(Debug, Clone, Copy)]
pub struct MethodCall<'a> {
    /// The method.
    pub method: &'a str,
    /// The params, if there are any.
    pub params: Option<&'a Json>,
    /// The headers of the HTTP request, if the call came in one.
    pub headers: Option<&'a HeaderMap>,
}

impl<'a> MethodCall<'a> {
    /// Creates a call.
    #[must_use]
    pub const fn new(method: &'a str, params: Option<&'a Json>) -> MethodCall<'a> {
        MethodCall {
            method,
            params,
            headers: None,
        }
    }

    /// Adds the headers of the HTTP request.
    #[must_use]
    pub const fn with_headers(self, headers: &'a HeaderMap) -> MethodCall<'a> {
        MethodCall {
            headers: Some(headers),
            ..self
        }
    }
}
