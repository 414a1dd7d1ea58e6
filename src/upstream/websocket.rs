//! A WebSocket server as an upstream, for any protocol: one message is one text message.
//!
//! The handshake carries the headers that the plan names, and none of a client. A response other than 101 is an
//! error, and redirects are not followed.
//!
//! Used by `legacy_socket`.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::io::{AsyncRead, AsyncWrite};

use super::http::connector;
use super::link::{Event, Link, Transport};
use dualgauge_model::plan::{FramesPlan, SecretMap, UpstreamPlan, WebSocketPlan};
use dualgauge_model::redact::Redaction;
use dualgauge_net::tls_config::Alpn;
use dualgauge_net::{
    Connector, MessageEvent, MessageStream, ReadMode, Socket, WebSocketHandshake, chain,
};

/// A server that offers a WebSocket.
#[derive(Debug, Clone)]
pub struct WebSocket {
    connector: Connector,
    /// The connect timeout.
    limit: Duration,
    handshake: WebSocketHandshake,
    redaction: Arc<Redaction>,
}

impl WebSocket {
    /// Creates the server of a JSON-RPC upstream.
    #[must_use]
    pub fn new(upstream: &UpstreamPlan, plan: &WebSocketPlan) -> WebSocket {
        let server = WebSocket::with_headers(upstream, &plan.headers, plan.message_limit);
        WebSocket {
            redaction: plan.link.redaction.clone(),
            ..server
        }
    }

    /// Creates the server of a frame upstream.
    #[must_use]
    pub fn for_legacy_socket(upstream: &UpstreamPlan, plan: &FramesPlan) -> WebSocket {
        WebSocket::with_headers(upstream, &plan.headers, plan.message_limit)
    }

    fn with_headers(
        upstream: &UpstreamPlan,
        headers: &SecretMap,
        message_limit: usize,
    ) -> WebSocket {
        WebSocket {
            connector: connector(upstream, Alpn::WebSocket),
            limit: upstream.connect_timeout,
            handshake: WebSocketHandshake {
                url: format!("ws://{}{}", upstream.authority.as_str(), upstream.path).into(),
                headers: header_map(headers),
                message_limit,
            },
            redaction: Arc::default(),
        }
    }
}

/// Returns headers from a plan, whose names and values were checked. The values are not printed: they may be secrets.
fn header_map(headers: &SecretMap) -> HeaderMap {
    let pairs = headers.iter().filter_map(|(name, value)| {
        let name = HeaderName::try_from(name).ok()?;
        let mut value = HeaderValue::try_from(value).ok()?;
        value.set_sensitive(true);
        Some((name, value))
    });
    pairs.collect()
}

impl Transport for WebSocket {
    type Link = MessageStream<Socket>;

    fn redaction(&self) -> &Redaction {
        &self.redaction
    }

    async fn open(&self) -> Result<MessageStream<Socket>, String> {
        let socket = self.connector.connect_within(self.limit).await;
        let socket = socket.map_err(|error| format!("it cannot be reached: {}", chain(&error)))?;
        self.handshake.open(socket).await
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Link for MessageStream<S> {
    async fn event(&mut self) -> Event {
        self.next(ReadMode::Open).await.into()
    }

    async fn event_while_unread(&mut self) -> Event {
        self.next(ReadMode::Shut).await.into()
    }

    fn write(&mut self, message: Bytes) {
        self.send(message);
    }

    fn ping(&mut self) {
        self.ping();
    }

    async fn close(self) {
        self.end().await;
    }
}

impl From<MessageEvent> for Event {
    fn from(event: MessageEvent) -> Event {
        match event {
            MessageEvent::Message(message) => Event::Message(message),
            MessageEvent::Overlong => Event::Overlong,
            MessageEvent::Written => Event::Written,
            MessageEvent::SignOfLife => Event::SignOfLife,
            MessageEvent::Lost(why) => Event::Lost(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_headers_are_not_printed() {
        let secrets = SecretMap::new([("authorization".to_owned(), "Bearer s3cret".to_owned())]);
        let headers = header_map(&secrets);
        assert_eq!(headers["authorization"], "Bearer s3cret");
        let printed = format!("{headers:?}");
        assert!(
            printed.contains("authorization") && !printed.contains("s3cret"),
            "{printed}"
        );
    }
}
