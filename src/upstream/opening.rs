//! How a connection to an address of an HTTP upstream comes to be, in the version that its plan and the server want.

use std::io;
use std::rc::Rc;

use tokio::time::timeout_at;

use super::Socket;
use super::again::Wants;
use super::connect::Connector;
use super::connection::Connection;
use super::error::UpstreamError;
use super::http::{HttpUpstream, Reused};
use super::line::Line;
use super::trunk::{Ride, Trunk};
use super::trunks::{Chosen, Trunks};
use crate::domain::plan::Multiplexing;
use crate::telemetry::clock;

/// A connection that was just opened.
enum Opened {
    /// Of HTTP/1.1.
    Own(Box<Connection>),
    /// Of HTTP/2.
    Shared(Rc<Trunk>),
}

/// The server does not know what it must.
#[derive(Debug, thiserror::Error)]
#[error("the server does not offer HTTP/2, and `http2 = true` leaves nothing else")]
struct NotOffered;

impl HttpUpstream {
    /// What carries a call to an address: a part of a connection that is there, or one that is opened. Few calls open one, so
    /// that the room for it is none of every call's.
    pub(super) async fn line(
        &self,
        place: usize,
        wants: Wants,
    ) -> Result<(Line, Reused), UpstreamError> {
        let trunks = match wants {
            Wants::Upgrade => None,
            Wants::Answer => self.places().trunks(place),
        };
        let Some(trunks) = trunks else {
            let own = Box::pin(self.connect(place)).await?;
            return Ok((Line::Own(own), Reused::No));
        };
        let seen = trunks.faults();
        if let Some(ride) = trunks.take(self.plan()) {
            return Ok((Line::Shared(ride), Reused::Yes));
        }
        if trunks.chosen() == Chosen::Http1 {
            return Box::pin(self.opened(trunks)).await;
        }
        let turn = trunks.turn().await;
        if let Some(ride) = trunks.take(self.plan()) {
            return Ok((Line::Shared(ride), Reused::Yes));
        }
        if let Some(fault) = trunks.fault_since(seen) {
            return Err(self.unreachable(fault));
        }
        // Each of those who wait needs a connection of its own, then.
        let turn = turn.filter(|_| trunks.chosen() == Chosen::Http2);
        let opened = Box::pin(self.opened(trunks)).await;
        drop(turn);
        opened
    }

    /// What carries a call that shares nothing with others.
    pub(super) async fn apart(&self, place: usize) -> Result<Line, UpstreamError> {
        let Some(trunks) = self.places().trunks(place) else {
            return Box::pin(self.connect(place)).await.map(Line::Own);
        };
        Ok(match Box::pin(self.open_any(trunks.connector())).await? {
            Opened::Own(connection) => Line::Own(connection),
            Opened::Shared(trunk) => Line::Shared(Ride::on(&trunk)),
        })
    }

    async fn opened(&self, trunks: &Trunks) -> Result<(Line, Reused), UpstreamError> {
        let opened = self.open_any(trunks.connector()).await;
        let opened = opened.inspect_err(|fault| trunks.failed(fault))?;
        let line = match opened {
            Opened::Own(connection) => {
                trunks.chooses(Chosen::Http1);
                Line::Own(connection)
            }
            Opened::Shared(trunk) => {
                trunks.chooses(Chosen::Http2);
                let ride = Ride::on(&trunk);
                if self.is_pooling() {
                    trunks.add(trunk);
                }
                Line::Shared(ride)
            }
        };
        Ok((line, Reused::No))
    }

    /// Opens a connection of HTTP/1.1.
    async fn connect(&self, place: usize) -> Result<Box<Connection>, UpstreamError> {
        let nowhere = || self.unreachable(io::Error::other("it has no such address"));
        let connector = self.places().connector(place).ok_or_else(nowhere)?;
        let socket = connector.connect_within(self.plan().connect_timeout).await;
        let socket = socket.map_err(|source| self.unreachable(source))?;
        Connection::over(socket, self.opens(), self.tasks()).await
    }

    /// Opens a connection of what the server chooses.
    async fn open_any(&self, connector: &Connector) -> Result<Opened, UpstreamError> {
        let limit = self.plan().connect_timeout;
        let until = clock::now() + limit;
        let socket = connector.connect_within(limit).await;
        let socket = socket.map_err(|source| self.unreachable(source))?;
        if !self.is_http2(&socket)? {
            let own = Connection::over(socket, self.opens(), self.tasks()).await?;
            return Ok(Opened::Own(own));
        }
        let counted = (self.opens(), self.places().cuts());
        let begins = Trunk::over(socket, counted, (self.tasks(), self.plan()));
        let begun = timeout_at(until, begins).await;
        let begun = begun.map_err(|_| {
            let message = format!("the server did not begin HTTP/2 within {limit:?}");
            self.unreachable(io::Error::new(io::ErrorKind::TimedOut, message))
        })?;
        let trunk = begun.map_err(|fault| self.unreachable(io::Error::other(fault)))?;
        Ok(Opened::Shared(trunk))
    }

    fn is_http2(&self, socket: &Socket) -> Result<bool, UpstreamError> {
        match (socket.has_chosen_http2(), self.plan().http2) {
            (true, _) => Ok(true),
            (false, Multiplexing::Off | Multiplexing::Offered) => Ok(false),
            (false, Multiplexing::Required) if self.plan().tls.is_none() => Ok(true),
            (false, Multiplexing::Required) => Err(self.unreachable(io::Error::other(NotOffered))),
        }
    }

    fn unreachable(&self, source: io::Error) -> UpstreamError {
        UpstreamError::Unreachable {
            upstream: self.plan().name.clone(),
            source,
        }
    }
}
