//! How a client's connection is taken in: by a handshake where there is TLS.

use std::io;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::{TlsAcceptor, TlsStream};

use super::client_certificate;
use crate::config::compile::tls::HTTP_2;
use crate::domain::rollout::Subject;
use crate::upstream::Socket;

/// Takes a connection in.
///
/// # Errors
/// What the handshake says: no TLS, no common version, a certificate that is not believed.
pub(super) async fn take(stream: TcpStream, tls: Option<&Arc<ServerConfig>>) -> io::Result<Socket> {
    let Some(config) = tls else {
        return Ok(Socket::Plain(stream));
    };
    let stream = TlsAcceptor::from(config.clone()).accept(stream).await?;
    Ok(Socket::Secured(Box::new(TlsStream::Server(stream))))
}

/// What the client's certificate says; TLS has verified it.
pub(super) fn subject(socket: &Socket) -> Option<Subject> {
    match socket {
        Socket::Plain(_) | Socket::Deferring(_) => None,
        Socket::Secured(stream) => {
            let chain = stream.get_ref().1.peer_certificates()?;
            client_certificate::subject(chain.first()?)
        }
    }
}

/// Whether the handshake has agreed on HTTP/2.
pub(super) fn is_http2(socket: &Socket) -> bool {
    match socket {
        Socket::Plain(_) | Socket::Deferring(_) => false,
        Socket::Secured(stream) => stream.get_ref().1.alpn_protocol() == Some(HTTP_2),
    }
}
