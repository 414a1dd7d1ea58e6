//! `old.pass`: HTTP responses that both dialects of an old RPC server share. Used throughout `model`, and by `gateway`.

use http::HeaderName;

/// HTTP responses that mean the same to the clients of both dialects, such as a challenge: they pass unchanged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HttpPass {
    /// The statuses of such responses.
    pub statuses: Vec<u16>,
    /// The headers of such responses, and of requests, that pass.
    pub headers: Vec<HeaderName>,
}

impl HttpPass {
    /// Returns true when a response with this status passes.
    #[must_use]
    pub fn includes(&self, status: u16) -> bool {
        self.statuses.contains(&status)
    }
}
