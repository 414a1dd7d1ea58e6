//! A WebSocket as an upstream, whatever is spoken there: one message is one text message.
//!
//! The request for it bears the headers that its plan names, and nothing of any caller. An answer other than 101 is no link,
//! and a redirect is not followed.

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
use crate::domain::plan::{FramesPlan, SecretMap, UpstreamPlan, WebSocketPlan};

/// A server that offers a WebSocket.
#[derive(Debug, Clone)]
pub struct WebSocket {
    connector: Connector,
    /// Bounds connecting.
    limit: Duration,
    url: Arc<str>,
    headers: Arc<SecretMap>,
    message_limit: usize,
}

impl WebSocket {
    /// The server of an upstream that speaks JSON-RPC.
    #[must_use]
    pub fn new(upstream: &UpstreamPlan, plan: &WebSocketPlan) -> WebSocket {
        WebSocket::at(upstream, (&plan.headers, plan.message_limit))
    }

    /// The server of an upstream that speaks in frames.
    #[must_use]
    pub fn of_frames(upstream: &UpstreamPlan, plan: &FramesPlan) -> WebSocket {
        WebSocket::at(upstream, (&plan.headers, plan.message_limit))
    }

    fn at(upstream: &UpstreamPlan, (headers, message_limit): (&SecretMap, usize)) -> WebSocket {
        WebSocket {
            connector: Connector::from_plan(upstream, Alpn::WebSocket),
            limit: upstream.connect_timeout,
            // The scheme is no part of the request (RFC 6455 §4.1).
            url: format!("ws://{}{}", upstream.authority.as_str(), upstream.path).into(),
            headers: Arc::new(headers.clone()),
            message_limit,
        }
    }

    /// The request for a WebSocket, with a key of its own.
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
        // What a server says in place of 101 is not logged: it may be long, or show what it was sent.
        opened
            .map(|(stream, _)| MessageStream::client(stream))
            .map_err(|error| format!("it gives no WebSocket: {error}"))
    }
}
