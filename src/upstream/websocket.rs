//! A WebSocket server as an upstream, for any protocol: one message is one text message.
//!
//! The handshake carries the headers that the plan names, and none of a client. A response other than 101 is an
//! error, and redirects are not followed.
//!
//! Used by `legacy_socket`.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue, Request};
use tokio_tungstenite::client_async_with_config;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use super::Socket;
use super::connect::{Connector, chain};
use super::link::Transport;
use super::message_stream::{self, MessageStream};
use crate::config::compile::tls::Alpn;
use dualgauge_model::plan::{FramesPlan, SecretMap, UpstreamPlan, WebSocketPlan};

/// A server that offers a WebSocket.
#[derive(Debug, Clone)]
pub struct WebSocket {
    connector: Connector,
    /// The connect timeout.
    limit: Duration,
    url: Arc<str>,
    headers: Arc<SecretMap>,
    message_limit: usize,
}

impl WebSocket {
    /// Creates the server of a JSON-RPC upstream.
    #[must_use]
    pub fn new(upstream: &UpstreamPlan, plan: &WebSocketPlan) -> WebSocket {
        WebSocket::with_headers(upstream, &plan.headers, plan.message_limit)
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
            connector: Connector::from_plan(upstream, Alpn::WebSocket),
            limit: upstream.connect_timeout,
            // The scheme is not part of the request (RFC 6455 §4.1).
            url: format!("ws://{}{}", upstream.authority.as_str(), upstream.path).into(),
            headers: Arc::new(headers.clone()),
            message_limit,
        }
    }

    /// Returns the handshake request, with a new key.
    fn request(&self) -> Result<Request<()>, Error> {
        let mut request = (&*self.url).into_client_request()?;
        for (name, value) in self.headers.iter() {
            let pair = (HeaderName::try_from(name), HeaderValue::try_from(value));
            if let (Ok(name), Ok(value)) = pair {
                request.headers_mut().insert(name, value);
            }
        }
        Ok(request)
    }
}

impl Transport for WebSocket {
    type Link = MessageStream<Socket>;

    async fn open(&self) -> Result<MessageStream<Socket>, String> {
        let request = self.request().map_err(|error| error.to_string())?;
        let stream = self.connector.connect_within(self.limit).await;
        let stream = stream.map_err(|error| format!("it cannot be reached: {}", chain(&error)))?;
        let stream = message_stream::to_server(stream);
        let config = message_stream::config(self.message_limit);
        let opened = client_async_with_config(request, stream, Some(config)).await;
        // The body of a refusal is not logged: it may be long, or repeat the headers sent.
        opened
            .map(|(stream, _)| MessageStream::client(stream))
            .map_err(|error| format!("the WebSocket handshake failed: {error}"))
    }
}
