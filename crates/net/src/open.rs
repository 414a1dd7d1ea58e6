//! Opening of connections to an endpoint, with the HTTP version that the settings and the server agree on.

use std::io;
use std::rc::Rc;

use tokio::time::timeout_at;

use super::Socket;
use super::channel::{Channel, LeasedChannel};
use super::connect::Connector;
use super::connection_pool::ConnectionPool;
use super::error::UpstreamError;
use super::http1::Http1Connection;
use super::http2::{Http2Connection, Http2Stream};
use super::http2_pool::{Http2Pool, NegotiatedVersion};
use super::retry::ConnectionNeed;
use crate::clock;
use dualgauge_transport::multiplexing::Multiplexing;

/// A connection that was just opened.
enum OpenedConnection {
    /// HTTP/1.1.
    Http1(Box<Http1Connection>),
    /// HTTP/2.
    Http2(Rc<Http2Connection>),
}

/// The error when the server does not offer a required HTTP/2.
#[derive(Debug, thiserror::Error)]
#[error("the server does not offer HTTP/2, and `http2 = true` allows nothing else")]
struct Http2NotOffered;

impl ConnectionPool {
    /// Returns the channel of a call to an endpoint: a stream of an open connection, or a new connection. Opening is
    /// boxed, because few calls open one and the others should not reserve space for it.
    pub(super) async fn channel(
        &self,
        index: usize,
        need: ConnectionNeed,
    ) -> Result<LeasedChannel, UpstreamError> {
        let pool = match need {
            ConnectionNeed::Upgrade => None,
            ConnectionNeed::Any => self.endpoints().http2_pool(index),
        };
        let Some(pool) = pool else {
            let connection = Box::pin(self.connect(index)).await?;
            return Ok(LeasedChannel::new(Channel::Http1(connection)));
        };
        let failures_before = pool.faults();
        if let Some(stream) = pool.take(self.settings()) {
            return Ok(LeasedChannel::reused(Channel::Http2(stream)));
        }
        if pool.negotiated() == NegotiatedVersion::Http1 {
            return Box::pin(self.open_new(pool)).await;
        }
        let turn = pool.turn().await;
        if let Some(stream) = pool.take(self.settings()) {
            return Ok(LeasedChannel::reused(Channel::Http2(stream)));
        }
        if let Some(error) = pool.fault_since(failures_before) {
            return Err(self.unreachable(error));
        }
        // After a switch to HTTP/1.1, each waiting call needs a connection of its own.
        let turn = turn.filter(|_| pool.negotiated() == NegotiatedVersion::Http2);
        let opened = Box::pin(self.open_new(pool)).await;
        drop(turn);
        opened
    }

    /// Opens a channel that shares nothing with other calls.
    pub(super) async fn open_channel(&self, index: usize) -> Result<Channel, UpstreamError> {
        let Some(pool) = self.endpoints().http2_pool(index) else {
            return Box::pin(self.connect(index)).await.map(Channel::Http1);
        };
        Ok(match Box::pin(self.open_any(pool.connector())).await? {
            OpenedConnection::Http1(connection) => Channel::Http1(connection),
            OpenedConnection::Http2(connection) => {
                Channel::Http2(Http2Stream::open_on(&connection))
            }
        })
    }

    async fn open_new(&self, pool: &Http2Pool) -> Result<LeasedChannel, UpstreamError> {
        let opened = self.open_any(pool.connector()).await;
        let opened = opened.inspect_err(|error| pool.failed(error))?;
        let channel = match opened {
            OpenedConnection::Http1(connection) => {
                pool.set_negotiated(NegotiatedVersion::Http1);
                Channel::Http1(connection)
            }
            OpenedConnection::Http2(connection) => {
                pool.set_negotiated(NegotiatedVersion::Http2);
                let stream = Http2Stream::open_on(&connection);
                if self.is_pooling() {
                    pool.add(connection);
                }
                Channel::Http2(stream)
            }
        };
        Ok(LeasedChannel::new(channel))
    }

    /// Opens an HTTP/1.1 connection.
    async fn connect(&self, index: usize) -> Result<Box<Http1Connection>, UpstreamError> {
        let unknown_endpoint = || self.unreachable(io::Error::other("it has no such address"));
        let connector = self
            .endpoints()
            .connector(index)
            .ok_or_else(unknown_endpoint)?;
        let socket = connector
            .connect_within(self.settings().connect_timeout)
            .await;
        let socket = socket.map_err(|source| self.unreachable(source))?;
        Http1Connection::handshake(socket, self.opens(), self.tasks()).await
    }

    /// Opens a connection with the version that the server chooses.
    async fn open_any(&self, connector: &Connector) -> Result<OpenedConnection, UpstreamError> {
        let limit = self.settings().connect_timeout;
        let deadline = clock::now() + limit;
        let socket = connector.connect_within(limit).await;
        let socket = socket.map_err(|source| self.unreachable(source))?;
        if !self.is_http2(&socket)? {
            let connection = Http1Connection::handshake(socket, self.opens(), self.tasks()).await?;
            return Ok(OpenedConnection::Http1(connection));
        }
        let aborts = self.endpoints().abuse_counter();
        let handshake =
            Http2Connection::handshake(socket, self.opens(), aborts, self.tasks(), self.settings());
        let result = timeout_at(deadline, handshake).await;
        let result = result.map_err(|_| {
            let message = format!("the server did not begin HTTP/2 within {limit:?}");
            self.unreachable(io::Error::new(io::ErrorKind::TimedOut, message))
        })?;
        let connection = result.map_err(|error| self.unreachable(io::Error::other(error)))?;
        Ok(OpenedConnection::Http2(connection))
    }

    fn is_http2(&self, socket: &Socket) -> Result<bool, UpstreamError> {
        match (socket.has_chosen_http2(), self.settings().http2) {
            (true, _) => Ok(true),
            (false, Multiplexing::Off | Multiplexing::Offered) => Ok(false),
            (false, Multiplexing::Required) if self.settings().tls.is_none() => Ok(true),
            (false, Multiplexing::Required) => {
                Err(self.unreachable(io::Error::other(Http2NotOffered)))
            }
        }
    }

    fn unreachable(&self, source: io::Error) -> UpstreamError {
        UpstreamError::Unreachable {
            upstream: self.settings().name.clone(),
            source,
        }
    }
}
