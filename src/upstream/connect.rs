//! The one way to a server at an address: TCP, and TLS where its plan has it, within one limit of time.
//!
//! The server's certificate is always verified. What a plan says of TLS was checked when it was compiled, so that reading
//! it again fails for nothing but a fault of this program, which is then told at each connection.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::{TlsConnector, TlsStream};

use super::Socket;
use crate::config::compile::tls::{self, Alpn};
use crate::domain::plan::UpstreamPlan;
use crate::domain::tls::ClientTls;

/// The way to one server.
#[derive(Debug, Clone)]
pub struct Connector {
    address: Arc<str>,
    way: Transport,
}

#[derive(Debug, Clone)]
enum Transport {
    Plain,
    Secured(Arc<ClientConfig>, ServerName<'static>),
    Unusable(Arc<str>),
}

/// The server, or this end, has refused to secure the connection.
#[derive(Debug, thiserror::Error)]
#[error("the TLS handshake failed")]
struct TlsError(#[source] io::Error);

impl Connector {
    /// The way to the server of a plan.
    #[must_use]
    pub fn from_plan(plan: &UpstreamPlan, spoken: Alpn) -> Connector {
        Connector::new(&plan.address(), plan.tls.as_deref(), spoken)
    }

    /// The way to `host:port`.
    #[must_use]
    pub fn new(address: &str, tls: Option<&ClientTls>, spoken: Alpn) -> Connector {
        let way = tls.map_or(Transport::Plain, |tls| Transport::secured(tls, spoken));
        Connector {
            address: address.into(),
            way,
        }
    }

    /// Opens a connection within a time.
    ///
    /// # Errors
    /// What the system or TLS says, or that it took too long.
    pub async fn connect_within(&self, limit: Duration) -> io::Result<Socket> {
        let late = |_| {
            let message = format!("no connection within {limit:?}");
            io::Error::new(io::ErrorKind::TimedOut, message)
        };
        let connected = timeout(limit, self.connect()).await;
        connected.map_err(late).flatten()
    }

    /// Opens a connection. Dropped, it leaves nothing behind.
    ///
    /// # Errors
    /// What the system or TLS says.
    pub async fn connect(&self) -> io::Result<Socket> {
        let stream = TcpStream::connect(&*self.address).await?;
        // A small message is written at once; waiting for more would only delay it.
        stream.set_nodelay(true)?;
        match &self.way {
            Transport::Plain => Ok(Socket::Plain(stream)),
            Transport::Secured(config, name) => {
                let connector = TlsConnector::from(config.clone());
                let secured = connector.connect(name.clone(), stream).await;
                let secured =
                    secured.map_err(|error| io::Error::new(error.kind(), TlsError(error)))?;
                Ok(Socket::Secured(Box::new(TlsStream::Client(secured))))
            }
            Transport::Unusable(why) => Err(io::Error::other(why.to_string())),
        }
    }
}

impl Transport {
    fn secured(tls: &ClientTls, spoken: Alpn) -> Transport {
        match tls::client(tls, spoken) {
            Ok((config, name)) => Transport::Secured(config, name),
            Err(fault) => Transport::Unusable(fault.to_string().into()),
        }
    }
}

/// An error with all its causes.
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
