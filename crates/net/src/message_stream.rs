//! JSON messages over a WebSocket (RFC 6455), on either side of it.
//!
//! A message is one text frame or several. Binary messages are accepted too, because the content is parsed as JSON in
//! any case. Pings are answered by the protocol library. At most one buffer is read ahead.

pub(super) mod flood_guard;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Sink, SinkExt, Stream, StreamExt};
use http::{HeaderMap, Request};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use flood_guard::FloodGuard;

use crate::socket::Socket;

/// The time limit for the closing handshake.
const END: Duration = Duration::from_secs(2);
/// The bytes of a close frame that are available for the reason (RFC 6455 §5.5).
const REASON: usize = 123;
/// The size of the read and write buffers.
const BUFFER: usize = 16 * 1024;

/// One side of a WebSocket.
#[derive(Debug)]
pub struct MessageStream<S> {
    stream: WebSocketStream<FloodGuard<S>>,
    /// The message to write next.
    waiting: Option<Message>,
    is_ping_wanted: bool,
    wire: WriteBuffer,
    /// The status code of the close frame.
    code: CloseCode,
    /// The reason of the close frame.
    reason: Utf8Bytes,
    /// The error that ended the connection and still has to be reported.
    last: Option<String>,
}

/// An event on a WebSocket.
#[derive(Debug)]
pub enum MessageEvent {
    /// The peer sent a message.
    Message(Bytes),
    /// The peer sent a message that exceeds the size limit; [`MessageEvent::Lost`] follows.
    Overlong,
    /// The message was written completely.
    Written,
    /// The peer sent a control frame.
    SignOfLife,
    /// The connection is lost for this reason; no more events follow.
    Lost(String),
}

/// The handshake with a WebSocket server.
#[derive(Debug, Clone)]
pub struct WebSocketHandshake {
    /// The URL; its scheme is not part of the request (RFC 6455 §4.1).
    pub url: Arc<str>,
    /// Additional headers of the request.
    pub headers: HeaderMap,
    /// The maximum size of a message, in bytes.
    pub message_limit: usize,
}

impl WebSocketHandshake {
    /// Opens a WebSocket on a new connection. A response other than 101 is an error, and redirects are not followed.
    ///
    /// # Errors
    /// The reason, as text. It does not contain the body of the response, which may be long or repeat the headers.
    pub async fn open(&self, socket: Socket) -> Result<MessageStream<Socket>, String> {
        let request = self.request().map_err(|error| error.to_string())?;
        let config = Some(config(self.message_limit));
        let socket = FloodGuard::unguarded(socket);
        let opened = client_async_with_config(request, socket, config).await;
        opened
            .map(|(stream, _)| MessageStream::client(stream))
            .map_err(|error| format!("the WebSocket handshake failed: {error}"))
    }

    /// Returns the request, with a new key.
    fn request(&self) -> Result<Request<()>, Error> {
        let mut request = (&*self.url).into_client_request()?;
        for (name, value) in &self.headers {
            request.headers_mut().insert(name, value.clone());
        }
        Ok(request)
    }
}

/// The reason for closing a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloseReason {
    /// A status code of RFC 6455 §7.4, if it is not implied by the error or by leaving.
    pub code: Option<u16>,
    /// The reason text, cut to the space in a close frame.
    pub reason: String,
}

impl CloseReason {
    /// Creates a close reason without a status code.
    #[must_use]
    pub fn from_text(reason: &str) -> CloseReason {
        CloseReason {
            code: None,
            reason: reason.to_owned(),
        }
    }
}

/// The choice to read messages from the peer or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadMode {
    /// Messages are read.
    Open,
    /// Messages are not read now.
    Shut,
}

/// The data that may still be in the write buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WriteBuffer {
    Clean,
    /// A ping.
    Control,
    /// A message, whose completion is reported.
    Message,
}

/// Returns the `Sec-WebSocket-Accept` value for a key (RFC 6455 §4.2.2).
#[must_use]
pub fn accept_key(key: &[u8]) -> String {
    derive_accept_key(key)
}

/// Returns the configuration for messages of at most `limit` bytes.
fn config(limit: usize) -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(BUFFER)
        .write_buffer_size(BUFFER)
        .max_message_size(Some(limit))
        .max_frame_size(Some(limit))
}

impl<S: AsyncRead + AsyncWrite + Unpin> MessageStream<S> {
    /// Creates the client side, after its handshake.
    fn client(stream: WebSocketStream<FloodGuard<S>>) -> MessageStream<S> {
        MessageStream {
            stream,
            waiting: None,
            is_ping_wanted: false,
            wire: WriteBuffer::Clean,
            code: CloseCode::Away,
            reason: Utf8Bytes::default(),
            last: None,
        }
    }

    /// Creates the server side of an upgraded connection; messages have at most `limit` bytes.
    pub async fn server(socket: S, limit: usize) -> MessageStream<S> {
        let config = Some(config(limit));
        let socket = FloodGuard::guarded(socket);
        let stream = WebSocketStream::from_raw_socket(socket, Role::Server, config).await;
        MessageStream::client(stream)
    }

    /// Returns true if the peer has sent so many control frames and empty fragments that nothing more is read from it.
    #[must_use]
    pub fn is_flooded(&self) -> bool {
        self.stream.get_ref().is_flooded()
    }

    /// Returns true if a message is being written.
    #[must_use]
    pub fn is_writing(&self) -> bool {
        self.waiting.is_some() || self.wire == WriteBuffer::Message
    }

    /// Waits for the next event; cancel-safe, because all progress is stored in the stream.
    pub async fn next(&mut self, intake: ReadMode) -> MessageEvent {
        std::future::poll_fn(|cx| self.poll(cx, intake)).await
    }

    fn poll(&mut self, cx: &mut Context<'_>, intake: ReadMode) -> Poll<MessageEvent> {
        if let Some(why) = self.last.take() {
            return Poll::Ready(MessageEvent::Lost(why));
        }
        match self.poll_write(cx) {
            Poll::Ready(Err(error)) => return Poll::Ready(self.failed(&error)),
            Poll::Ready(Ok(WriteBuffer::Message)) => return Poll::Ready(MessageEvent::Written),
            Poll::Ready(Ok(WriteBuffer::Clean | WriteBuffer::Control)) | Poll::Pending => {}
        }
        match intake {
            ReadMode::Open => self.poll_read(cx),
            ReadMode::Shut => Poll::Pending,
        }
    }

    /// Writes pending data. Returns what was completely written.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<Result<WriteBuffer, Error>> {
        let mut stream = Pin::new(&mut self.stream);
        if self.is_ping_wanted {
            ready!(stream.as_mut().poll_ready(cx))?;
            self.is_ping_wanted = false;
            stream.as_mut().start_send(Message::Ping(Bytes::new()))?;
            if self.wire == WriteBuffer::Clean {
                self.wire = WriteBuffer::Control;
            }
        }
        if self.waiting.is_some() {
            ready!(stream.as_mut().poll_ready(cx))?;
            if let Some(message) = self.waiting.take() {
                stream.as_mut().start_send(message)?;
                self.wire = WriteBuffer::Message;
            }
        }
        if self.wire == WriteBuffer::Clean {
            return Poll::Ready(Ok(WriteBuffer::Clean));
        }
        ready!(stream.poll_flush(cx))?;
        Poll::Ready(Ok(std::mem::replace(&mut self.wire, WriteBuffer::Clean)))
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<MessageEvent> {
        let came = ready!(Pin::new(&mut self.stream).poll_next(cx));
        Poll::Ready(match came {
            Some(Ok(Message::Text(text))) => MessageEvent::Message(text.into()),
            Some(Ok(Message::Binary(bytes))) => MessageEvent::Message(bytes),
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {
                MessageEvent::SignOfLife
            }
            Some(Ok(Message::Close(frame))) => MessageEvent::Lost(closed(frame.as_ref())),
            Some(Err(error)) => self.failed(&error),
            None => MessageEvent::Lost("the peer is gone".to_owned()),
        })
    }

    /// Chooses the close code for an error (RFC 6455 §7.4.1); the connection is unusable from here on.
    fn failed(&mut self, error: &Error) -> MessageEvent {
        let why = error.to_string();
        match error {
            Error::Io(_) if self.is_flooded() => self.code = CloseCode::Policy,
            Error::Capacity(_) => {
                self.code = CloseCode::Size;
                self.last = Some(why);
                return MessageEvent::Overlong;
            }
            Error::Utf8(_) => self.code = CloseCode::Invalid,
            Error::Protocol(_) => self.code = CloseCode::Protocol,
            Error::ConnectionClosed
            | Error::AlreadyClosed
            | Error::Io(_)
            | Error::Tls(_)
            | Error::WriteBufferFull(_)
            | Error::AttackAttempt
            | Error::Url(_)
            | Error::Http(_)
            | Error::HttpFormat(_) => {}
        }
        MessageEvent::Lost(why)
    }

    /// Starts to write a message; [`MessageEvent::Written`] follows. Only one message is written at a time.
    pub fn send(&mut self, message: Bytes) {
        // JSON is always text. Anything else would be a bug in this program, and is sent unchanged as binary.
        self.waiting = Some(match Utf8Bytes::try_from(message.clone()) {
            Ok(text) => Message::Text(text),
            Err(_) => Message::Binary(message),
        });
    }

    /// Sends a ping.
    pub fn ping(&mut self) {
        self.is_ping_wanted = true;
    }

    /// Sets the close code and reason to send at the end, if there are any.
    pub fn set_close(&mut self, closing: Option<CloseReason>) {
        let Some(CloseReason { code, mut reason }) = closing else {
            return;
        };
        reason.truncate(reason.floor_char_boundary(REASON));
        self.code = code.map_or(self.code, CloseCode::from);
        self.reason = reason.into();
    }

    /// Closes the connection in good order, within a time limit. Pending data is written first.
    pub async fn end(mut self) {
        let ends = async {
            let frame = CloseFrame {
                code: self.code,
                reason: std::mem::take(&mut self.reason),
            };
            if self.stream.close(Some(frame)).await.is_err() {
                // The peer has closed first; the flush sends the answer.
                let _ = self.stream.flush().await;
            }
            while let Some(Ok(_)) = self.stream.next().await {}
            // Closing a socket with unread bytes resets it, and the peer could not read the close reason.
            let socket = self.stream.get_mut();
            let mut rest = [0; 1024];
            if socket.shutdown().await.is_ok() {
                while let Ok(1..) = socket.read(&mut rest).await {}
            }
        };
        // A connection that does not end in time is dropped.
        let _ = timeout(END, ends).await;
    }
}

fn closed(frame: Option<&CloseFrame>) -> String {
    match frame {
        None => "the peer closed it".to_owned(),
        Some(frame) => format!(
            "the peer closed it: {} {:?}",
            frame.code,
            frame.reason.as_str()
        ),
    }
}

#[cfg(test)]
mod tests;
