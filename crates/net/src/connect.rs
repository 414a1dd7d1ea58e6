//! Connections to a server address: TCP, and TLS if the settings have it, within one time limit.
//!
//! The server's certificate is always verified. The program checks TLS settings before it uses them; reading them again
//! fails only on a bug of the program, which each connection attempt then reports.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::{TlsConnector, TlsStream};

use super::Socket;
use crate::tls_config::{self, Alpn};
use dualgauge_transport::tls::ClientTls;

/// A factory of connections to one server address.
#[derive(Debug, Clone)]
pub struct Connector {
    address: Arc<str>,
    security: SocketSecurity,
}

#[derive(Debug, Clone)]
enum SocketSecurity {
    Plain,
    Secured(Arc<ClientConfig>, ServerName<'static>),
    Unusable(Arc<str>),
}

/// The error of a TLS handshake that the server or this end refused.
#[derive(Debug, thiserror::Error)]
#[error("the TLS handshake failed")]
struct TlsError(#[source] io::Error);

impl Connector {
    /// Creates a connector to `host:port`.
    #[must_use]
    pub fn new(address: &str, tls: Option<&ClientTls>, spoken: Alpn) -> Connector {
        let security = tls.map_or(SocketSecurity::Plain, |tls| {
            SocketSecurity::secured(tls, spoken)
        });
        Connector {
            address: address.into(),
            security,
        }
    }

    /// Opens a connection within `limit`.
    ///
    /// # Errors
    /// The error of the system or of TLS, or a timeout.
    pub async fn connect_within(&self, limit: Duration) -> io::Result<Socket> {
        let late = |_| {
            let message = format!("no connection within {limit:?}");
            io::Error::new(io::ErrorKind::TimedOut, message)
        };
        let connected = timeout(limit, self.connect()).await;
        connected.map_err(late).flatten()
    }

    /// Opens a connection. Cancel-safe: dropping the future leaves nothing behind.
    ///
    /// # Errors
    /// The error of the system or of TLS.
    pub async fn connect(&self) -> io::Result<Socket> {
        let stream = TcpStream::connect(&*self.address).await?;
        // A small message is written at once; waiting for more would only delay it.
        stream.set_nodelay(true)?;
        match &self.security {
            SocketSecurity::Plain => Ok(Socket::Plain(stream)),
            SocketSecurity::Secured(config, name) => {
                let connector = TlsConnector::from(config.clone());
                let secured = connector.connect(name.clone(), stream).await;
                let secured =
                    secured.map_err(|error| io::Error::new(error.kind(), TlsError(error)))?;
                Ok(Socket::Secured(Box::new(TlsStream::Client(secured))))
            }
            SocketSecurity::Unusable(why) => Err(io::Error::other(why.to_string())),
        }
    }
}

impl SocketSecurity {
    fn secured(tls: &ClientTls, spoken: Alpn) -> SocketSecurity {
        match tls_config::client(tls, spoken) {
            Ok((config, name)) => SocketSecurity::Secured(config, name),
            Err(fault) => SocketSecurity::Unusable(fault.to_string().into()),
        }
    }
}

/// Formats an error with all its causes.
#[must_use]
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}
