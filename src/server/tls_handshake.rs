//! The TLS handshake of a client connection, if TLS is configured. Used by `listen`.

use std::io;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::{TlsAcceptor, TlsStream};

use super::client_certificate;
use dualgauge_model::rollout::Subject;
use dualgauge_net::Socket;
use dualgauge_net::tls_config::HTTP_2;

/// Performs the handshake of a connection, if there is a TLS configuration.
///
/// # Errors
/// Fails as the handshake does: no TLS, no common version, an untrusted certificate.
pub(super) async fn handshake(
    stream: TcpStream,
    tls: Option<&Arc<ServerConfig>>,
) -> io::Result<Socket> {
    let Some(config) = tls else {
        return Ok(Socket::Plain(stream));
    };
    let stream = TlsAcceptor::from(config.clone()).accept(stream).await?;
    Ok(Socket::Secured(Box::new(TlsStream::Server(stream))))
}

/// Returns the subject of the client's certificate, which TLS has verified.
pub(super) fn subject(socket: &Socket) -> Option<Subject> {
    match socket {
        Socket::Plain(_) | Socket::Deferring(_) => None,
        Socket::Secured(stream) => {
            let chain = stream.get_ref().1.peer_certificates()?;
            client_certificate::subject(chain.first()?)
        }
    }
}

/// Returns true if ALPN selected HTTP/2.
pub(super) fn is_http2(socket: &Socket) -> bool {
    match socket {
        Socket::Plain(_) | Socket::Deferring(_) => false,
        Socket::Secured(stream) => stream.get_ref().1.alpn_protocol() == Some(HTTP_2),
    }
}
