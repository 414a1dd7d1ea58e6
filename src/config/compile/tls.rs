//! `[listen.tls]`: the certificate of the listener, and whose certificates it believes.

use std::sync::Arc;

use tokio_rustls::rustls::crypto::aws_lc_rs::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use crate::config::problem::{Problem, Problems};
use crate::config::raw::{RawFile, RawTls};

/// What the listener needs for TLS.
///
/// # Errors
/// What is wrong with the files.
pub fn server(raw: &RawTls) -> Result<Arc<ServerConfig>, Problems> {
    let chain = certificates(&raw.certificate)?;
    // What is wrong with a key is not told: the text is one.
    let key = PrivateKeyDer::from_pem_slice(&raw.key.content.0)
        .map_err(|_| fault(&raw.key, "it has no private key in PEM form"))?;
    let provider = Arc::new(default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| fault(&raw.certificate, &error.to_string()))?;
    let builder = match &raw.client_ca {
        None => builder.with_no_client_auth(),
        Some(file) => {
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots(file)?), provider)
                    .allow_unauthenticated()
                    .build()
                    .map_err(|error| fault(file, &error.to_string()))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut config = builder
        .with_single_cert(chain, key)
        .map_err(|error| fault(&raw.certificate, &error.to_string()))?;
    // The listener speaks nothing else, and a client that wants nothing else is told so by TLS itself.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn certificates(file: &RawFile) -> Result<Vec<CertificateDer<'static>>, Problem> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&file.content.0).collect();
    let read = read.ok().filter(|read| !read.is_empty());
    read.ok_or_else(|| fault(file, "it has no certificate in PEM form"))
}

fn roots(file: &RawFile) -> Result<RootCertStore, Problem> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file)? {
        roots
            .add(certificate)
            .map_err(|error| fault(file, &error.to_string()))?;
    }
    Ok(roots)
}

fn fault(file: &RawFile, message: &str) -> Problem {
    let shown = file.path.value.display();
    file.path
        .problem(format!("`{shown}` is of no use: {message}"))
}
