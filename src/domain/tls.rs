//! What a connection behind TLS is made of: who shows what, and who believes whom.
//!
//! Only bytes: what they mean was checked when the plan was compiled, and whoever opens a connection reads them again.
//! Two that are equal make connections alike, so that a plan tells whether anything has changed.

use std::fmt;
use std::sync::Arc;

/// Certificates or a key in PEM form. It may be secret, and is not printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Pem(Arc<[u8]>);

impl Pem {
    /// The text of a file.
    #[must_use]
    pub fn new(text: &[u8]) -> Pem {
        Pem(text.into())
    }

    /// The text itself.
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

/// What one end shows of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsIdentity {
    /// A chain of certificates, its own first.
    pub certificate: Pem,
    /// The key of the first.
    pub key: Pem,
}

/// TLS of the listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerTls {
    /// What it shows.
    pub own: TlsIdentity,
    /// Whose certificates of clients are believed; none are asked for where there are none.
    pub client_ca: Option<Pem>,
    /// Whether HTTP/2 is offered.
    pub http2: Http2,
}

/// Whether HTTP/2 is offered beside HTTP/1.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Http2 {
    /// It is, and wanted more.
    Offered,
    /// HTTP/1.1 alone is.
    Off,
}

/// TLS towards a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientTls {
    /// The name that it is asked by, and that its certificate must bear: a host name or an address.
    pub server_name: String,
    /// Whose certificates are believed, if not those of the public authorities.
    pub ca: Option<Pem>,
    /// What is shown to a server that asks for it.
    pub own: Option<TlsIdentity>,
}
