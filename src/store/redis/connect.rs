//! Opening of connections to the server: plain ones through the Redis library, TLS ones through this program's own TLS
//! stack.
//!
//! Laws: without a verified certificate there is no connection; a TLS connection is driven only during a call, so
//! dropping it leaves nothing behind.
//!
//! Used by `redis` and `redis::connection`.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ConnectionInfo, FromRedisValue,
    RedisConnectionInfo, RedisError,
};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use dualgauge_net::tls_config::{self, Alpn};
use dualgauge_transport::tls::ClientTls;

/// The address of a server and the way to connect.
pub(super) enum Connector {
    /// A plain connection.
    Plain(Client),
    /// A connection with TLS.
    Tls(Tls),
}

/// The settings of a TLS connection.
pub(super) struct Tls {
    host: String,
    port: u16,
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    login: RedisConnectionInfo,
}

/// An authenticated connection.
pub(super) enum Connection {
    /// The library's task ends when this is dropped.
    Plain(MultiplexedConnection),
    /// The connection and its driver, which runs only during a call.
    Tls(MultiplexedConnection, Driver),
}

type Driver = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Connector {
    /// Creates a connector without connecting. With `tls`, connections use TLS.
    pub(super) fn new(
        server: &ConnectionInfo,
        tls: Option<&ClientTls>,
    ) -> Result<Connector, RedisError> {
        let Some(tls) = tls else {
            return Client::open(server.clone()).map(Connector::Plain);
        };
        let ConnectionAddr::Tcp(host, port) = server.addr() else {
            let message = "TLS requires TCP";
            return Err(io::Error::other(message).into());
        };
        let login = server.redis_settings().clone();
        Tls::new(host, *port, tls, login).map(Connector::Tls)
    }

    /// Returns the address of the server, without secrets.
    pub(super) fn address(&self) -> String {
        match self {
            Connector::Plain(client) => client.get_connection_info().addr().to_string(),
            Connector::Tls(tls) => format!("{}:{}", tls.host, tls.port),
        }
    }

    /// Opens an authenticated connection. Has no timeouts: the caller sets them.
    pub(super) async fn open(&self) -> Result<Connection, RedisError> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None);
        match self {
            Connector::Plain(client) => {
                let connecting = client.get_multiplexed_async_connection_with_config(&config);
                connecting.await.map(Connection::Plain)
            }
            Connector::Tls(tls) => tls.open(config).await,
        }
    }
}

impl Tls {
    fn new(
        host: &str,
        port: u16,
        tls: &ClientTls,
        login: RedisConnectionInfo,
    ) -> Result<Tls, RedisError> {
        let (config, name) = tls_config::client(tls, Alpn::Redis).map_err(io::Error::other)?;
        Ok(Tls {
            host: host.to_owned(),
            port,
            config,
            name,
            login,
        })
    }

    async fn open(&self, config: AsyncConnectionConfig) -> Result<Connection, RedisError> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        stream.set_nodelay(true)?;
        let connector = TlsConnector::from(self.config.clone());
        let stream = connector.connect(self.name.clone(), stream).await?;
        let opened = MultiplexedConnection::new_with_config(&self.login, stream, config);
        let (connection, driver) = opened.await?;
        Ok(Connection::Tls(connection, Box::pin(driver)))
    }
}

impl Connection {
    /// Sends a command and reads its reply. A connection that has failed must not be used again.
    pub(super) async fn call<T: FromRedisValue>(&mut self, command: &Cmd) -> Result<T, RedisError> {
        match self {
            Connection::Plain(connection) => command.query_async(connection).await,
            Connection::Tls(connection, driver) => {
                // If this wait is cancelled, the caller drops the whole connection, so no later call reads this reply.
                tokio::select! {
                    reply = command.query_async(connection) => reply,
                    () = driver => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                }
            }
        }
    }
}
