//! rustls configurations from certificates and keys.
//!
//! Settings hold PEM bytes. They are parsed here to check them, and again when a connection is opened or accepted.

use std::sync::Arc;

use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::crypto::aws_lc_rs::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};

use dualgauge_transport::tls::{ClientTls, Pem, ServerTls};

const HTTP_1: &[u8] = b"http/1.1";

/// The ALPN name of HTTP/2 (RFC 9113 §3.2).
pub const HTTP_2: &[u8] = b"h2";

/// The reason why a TLS configuration is invalid.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct TlsFault {
    /// The faulty part.
    pub part: TlsPart,
    /// The fault.
    pub message: String,
}

/// A part of a TLS configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsPart {
    /// The certificate chain of this end.
    Certificate,
    /// The private key of this end.
    Key,
    /// The trusted CAs.
    Authorities,
    /// The name of the server.
    Name,
}

/// The protocol of a connection, as offered by ALPN (RFC 7301).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alpn {
    /// Redis, without ALPN: it has no registered name.
    Redis,
    /// HTTP/1.1.
    Http,
    /// HTTP/2, or HTTP/1.1 if the server does not support it.
    Http2First,
    /// HTTP/2 only.
    Http2,
    /// WebSocket over HTTP/1.1, without ALPN: some servers accept only another name.
    WebSocket,
}

/// Returns the TLS configuration of the listener.
///
/// # Errors
/// [`TlsFault`]; never for settings that were checked before.
pub fn server(tls: &ServerTls) -> Result<Arc<ServerConfig>, TlsFault> {
    let chain = certificates(&tls.own.certificate, TlsPart::Certificate)?;
    let key = key(&tls.own.key)?;
    let provider = Arc::new(default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| fault(TlsPart::Certificate, error))?;
    let builder = match &tls.client_ca {
        None => builder.with_no_client_auth(),
        Some(ca) => {
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots(ca)?), provider)
                    .allow_unauthenticated()
                    .build()
                    .map_err(|error| fault(TlsPart::Authorities, error))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut config = builder
        .with_single_cert(chain, key)
        .map_err(|error| fault(TlsPart::Certificate, error))?;
    // The listener supports only these, so TLS rejects clients that require another protocol.
    config.alpn_protocols = match tls.offers_http2 {
        true => vec![HTTP_2.to_vec(), HTTP_1.to_vec()],
        false => vec![HTTP_1.to_vec()],
    };
    Ok(Arc::new(config))
}

/// Returns the TLS configuration of an upstream connection, and the name that the certificate must contain.
///
/// # Errors
/// [`TlsFault`]; never for settings that were checked before.
pub fn client(
    tls: &ClientTls,
    alpn: Alpn,
) -> Result<(Arc<ClientConfig>, ServerName<'static>), TlsFault> {
    let name = server_name(tls)?;
    let roots = match &tls.ca {
        Some(ca) => roots(ca)?,
        None => RootCertStore {
            roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
        },
    };
    let provider = Arc::new(default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .map_err(|error| fault(TlsPart::Authorities, error))?;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| fault(TlsPart::Authorities, error))?
        .with_webpki_verifier(verifier);
    let mut config = match &tls.own {
        None => builder.with_no_client_auth(),
        Some(own) => {
            let chain = certificates(&own.certificate, TlsPart::Certificate)?;
            builder
                .with_client_auth_cert(chain, key(&own.key)?)
                .map_err(|error| fault(TlsPart::Certificate, error))?
        }
    };
    config.alpn_protocols = match alpn {
        Alpn::Http => vec![HTTP_1.to_vec()],
        Alpn::Http2First => vec![HTTP_2.to_vec(), HTTP_1.to_vec()],
        Alpn::Http2 => vec![HTTP_2.to_vec()],
        Alpn::WebSocket | Alpn::Redis => Vec::new(),
    };
    Ok((Arc::new(config), name))
}

/// Returns the name that a server's certificate must contain.
///
/// # Errors
/// [`TlsFault`] if it is neither a host name nor an address.
pub fn server_name(tls: &ClientTls) -> Result<ServerName<'static>, TlsFault> {
    let name = ServerName::try_from(tls.server_name.clone());
    name.map_err(|error| fault(TlsPart::Name, error))
}

fn key(pem: &Pem) -> Result<PrivateKeyDer<'static>, TlsFault> {
    // The error is not shown: it could contain the key.
    PrivateKeyDer::from_pem_slice(pem.as_bytes())
        .map_err(|_| fault(TlsPart::Key, "it contains no PEM private key"))
}

fn certificates(pem: &Pem, part: TlsPart) -> Result<Vec<CertificateDer<'static>>, TlsFault> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    let read = read.ok().filter(|read| !read.is_empty());
    read.ok_or_else(|| fault(part, "it contains no PEM certificate"))
}

/// Returns the trusted CAs of a PEM file.
///
/// # Errors
/// [`TlsFault`] if it contains no certificate, or one that cannot be a CA.
pub fn roots(pem: &Pem) -> Result<RootCertStore, TlsFault> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem, TlsPart::Authorities)? {
        roots
            .add(certificate)
            .map_err(|error| fault(TlsPart::Authorities, error))?;
    }
    Ok(roots)
}

fn fault(part: TlsPart, why: impl ToString) -> TlsFault {
    TlsFault {
        part,
        message: why.to_string(),
    }
}
