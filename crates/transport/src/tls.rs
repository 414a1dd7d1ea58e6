//! TLS settings of the listener and of upstreams: certificates, keys and CAs.
//!
//! The module keeps raw PEM: the program checks it when it reads the configuration, and the code that opens a
//! connection parses it again. Equal values make equivalent connections, so that a reload can detect changed settings.

use std::fmt;
use std::sync::Arc;

/// Certificates or a key in PEM form. It may be secret, and is not printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Pem(Arc<[u8]>);

impl Pem {
    /// Wraps the text of a file.
    #[must_use]
    pub fn new(text: &[u8]) -> Pem {
        Pem(text.into())
    }

    /// Returns the text.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// The certificate and key that one end presents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsIdentity {
    /// A certificate chain, the leaf first.
    pub certificate: Pem,
    /// The private key of the leaf.
    pub key: Pem,
}

/// TLS of the listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerTls {
    /// The certificate and key of the proxy.
    pub own: TlsIdentity,
    /// The CAs trusted for client certificates; `None` if no certificate is requested.
    pub client_ca: Option<Pem>,
    /// True if HTTP/2 is offered and preferred, in addition to HTTP/1.1.
    pub offers_http2: bool,
}

/// TLS to an upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientTls {
    /// The name for SNI and certificate verification: a host name or an address.
    pub server_name: String,
    /// The trusted CAs; the public ones if `None`.
    pub ca: Option<Pem>,
    /// The client certificate, presented if the server requests one.
    pub own: Option<TlsIdentity>,
}
