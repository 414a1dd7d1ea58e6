//! Ends of WebSockets that a test drives message by message.

use std::io::Write;
use std::net::TcpStream;
use std::time::Instant;

use serde_json::Value;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::{Message, WebSocket, accept_hdr, client};

use crate::support::{Proxy, Upstream, WITHIN, Wire};

/// One end.
#[derive(Debug)]
pub(crate) struct End(WebSocket<TcpStream>);

/// The server's end of the next connection, and the request for it.
pub(crate) fn accept_asked(upstream: &Upstream) -> (End, Request) {
    let stream = upstream.accept().into_stream();
    let mut asked = None;
    #[expect(
        clippy::result_large_err,
        reason = "the type of a callback of the library"
    )]
    let note = |request: &Request, response: Response| {
        asked = Some(request.clone());
        Ok(response)
    };
    let socket = accept_hdr(stream, note).unwrap();
    (End(socket), asked.unwrap())
}

/// The server's end of the next connection.
pub(crate) fn accept(upstream: &Upstream) -> End {
    accept_asked(upstream).0
}

/// The server's end of a connection; nothing where the client has gone away before it is one.
pub(crate) fn opened(stream: TcpStream) -> Option<End> {
    // Without TCP_NODELAY, the second of two messages waits for the delayed acknowledgement of the first.
    stream.set_nodelay(true).ok()?;
    tokio_tungstenite::tungstenite::accept(stream).ok().map(End)
}

/// The client's end of a connection to `/rpc`.
pub(crate) fn connect(proxy: &Proxy) -> End {
    connect_with(proxy, &[]).0
}

/// The same with more headers, and the answer to the request.
pub(crate) fn connect_with(
    proxy: &Proxy,
    headers: &[(&'static str, &'static str)],
) -> (End, Response) {
    connect_at(proxy, "/rpc", headers)
}

/// The same at a path.
pub(crate) fn connect_at(
    proxy: &Proxy,
    path: &str,
    headers: &[(&'static str, &'static str)],
) -> (End, Response) {
    let url = format!("ws://{}{path}", proxy.address());
    let mut request = url.into_client_request().unwrap();
    for (name, value) in headers {
        request.headers_mut().insert(*name, value.parse().unwrap());
    }
    let (socket, answer) = client(request, proxy.connect().into_stream()).unwrap();
    (End(socket), answer.map(|_| ()))
}

/// The bound of a wait for a message. A read timeout does not bound it, because each ping of the other end restarts it.
struct Patience(Instant);

impl Patience {
    #[expect(
        clippy::disallowed_methods,
        reason = "the bound of a wait for another process"
    )]
    fn begin() -> Patience {
        Patience(Instant::now())
    }

    fn is_over(&self) -> bool {
        self.0.elapsed() > WITHIN
    }
}

impl End {
    /// The server's end of a connection; none where the other one has left by then.
    pub(crate) fn of(wire: Wire) -> Option<End> {
        tokio_tungstenite::tungstenite::accept(wire.into_stream())
            .ok()
            .map(End)
    }

    /// The client's end of a connection to anywhere.
    pub(crate) fn to(url: &str, wire: Wire) -> End {
        End(client(url, wire.into_stream()).unwrap().0)
    }

    /// Sends a text; tells whether the other end may have it.
    pub(crate) fn says(&mut self, text: String) -> bool {
        self.0.send(Message::text(text)).is_ok()
    }

    /// Sends a text.
    pub(crate) fn say(&mut self, text: impl Into<String>) {
        self.send(Message::text(text.into()));
    }

    /// Sends anything.
    pub(crate) fn send(&mut self, message: Message) {
        self.0.send(message).unwrap();
    }

    /// Sends a text in pieces.
    pub(crate) fn say_in_pieces(&mut self, text: &str, size: usize) {
        let pieces: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
        for (place, piece) in pieces.iter().enumerate() {
            let code = if place == 0 {
                Data::Text
            } else {
                Data::Continue
            };
            let last = place + 1 == pieces.len();
            let frame = Frame::message(piece.to_vec(), OpCode::Data(code), last);
            self.send(Message::Frame(frame));
        }
    }

    /// Sends bytes as they are; tells whether the other end may have them.
    pub(crate) fn says_raw(&mut self, bytes: &[u8]) -> bool {
        self.0.get_mut().write_all(bytes).is_ok()
    }

    /// Sends bytes as they are.
    pub(crate) fn say_raw(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).unwrap();
    }

    /// The next message that is no text.
    pub(crate) fn next(&mut self) -> Message {
        self.0.read().unwrap()
    }

    /// The next text, as it came.
    pub(crate) fn hear_text(&mut self) -> String {
        let waits = Patience::begin();
        loop {
            let message = self.next();
            assert!(!waits.is_over(), "no text came, only {message:?}");
            if let Message::Text(text) = message {
                return text.to_string();
            }
            let is_sign = matches!(message, Message::Ping(_) | Message::Pong(_));
            assert!(is_sign, "no text: {message:?}");
        }
    }

    /// The next text, as it came; nothing where the end is reached.
    pub(crate) fn heard(&mut self) -> Option<String> {
        let waits = Patience::begin();
        loop {
            match self.0.read() {
                Ok(Message::Text(text)) => return Some(text.to_string()),
                Ok(message) => assert!(!waits.is_over(), "no text and no end, only {message:?}"),
                Err(_) => return None,
            }
        }
    }

    /// The next text, as JSON.
    pub(crate) fn hear(&mut self) -> Value {
        serde_json::from_str(&self.hear_text()).unwrap()
    }

    /// Answers a call with what its params are.
    pub(crate) fn echo(&mut self, call: &Value) {
        let (id, params) = (&call["id"], &call["params"]);
        self.say(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"got":{params}}}}}"#
        ));
    }

    /// Takes the handshake of MCP.
    pub(crate) fn greet(&mut self) {
        let hello = self.hear();
        assert_eq!(hello["method"], "initialize", "{hello}");
        let (id, version) = (&hello["id"], &hello["params"]["protocolVersion"]);
        self.say(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":{version},"capabilities":{{}}}}}}"#
        ));
        assert_eq!(self.hear()["method"], "notifications/initialized");
    }

    /// Reads to the end: the code that the other end gave for it.
    pub(crate) fn end(self) -> Option<u16> {
        self.farewell().map(|(code, _)| code)
    }

    /// The same with the reason.
    pub(crate) fn farewell(mut self) -> Option<(u16, String)> {
        let mut said = None;
        let waits = Patience::begin();
        loop {
            match self.0.read() {
                Ok(Message::Close(frame)) => {
                    said = frame.map(|frame| (frame.code.into(), frame.reason.to_string()));
                }
                Ok(message) => assert!(!waits.is_over(), "no end, only {message:?}"),
                Err(_) => return said,
            }
        }
    }
}
