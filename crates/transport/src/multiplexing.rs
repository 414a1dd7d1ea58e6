//! The use of HTTP/2 towards a server.

/// The use of HTTP/2 for an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Multiplexing {
    /// HTTP/1.1 only.
    Off,
    /// Offered by TLS (ALPN); the server chooses.
    Offered,
    /// HTTP/2 only; without TLS by prior knowledge (RFC 9113 §3.3).
    Required,
}
