//! The protocol of a message on a socket, decided anew for each message. Used by `explain`,
//! `frame::machine` and `gateway`.

use bytes::Bytes;

use crate::route::RouteTable;
use dualgauge_patterns::json::{Json, JsonKind, unmarked};

/// One message of a socket on which both protocols may be used.
#[derive(Debug, Clone)]
pub enum SocketMessage {
    /// JSON-RPC, one message or a batch; its readers validate it.
    Rpc(Bytes),
    /// A frame: an object of the legacy protocol.
    Frame(Json),
    /// Neither. Such a message gets no answer, because its protocol is unknown.
    Unrecognized(Unrecognized),
}

/// The reason why a message belongs to no protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unrecognized {
    /// It is no JSON, or nested too deep.
    NotJson,
    /// It is JSON, but no object.
    NotAnObject,
}

/// The member that only JSON-RPC has (JSON-RPC 2.0 §4).
const VERSION: &str = "jsonrpc";

impl SocketMessage {
    /// Classifies a message of a client. One with `jsonrpc: "2.0"` is a frame only if a frame of `routes` reads all of
    /// it, one with another version only if it has the literals of such a frame.
    #[must_use]
    pub fn of_client(text: &Bytes, depth: u16, routes: &RouteTable) -> SocketMessage {
        SocketMessage::with_version(text, depth, routes, |frame| routes.is_frame(frame))
    }

    /// Classifies a message of a server that speaks in frames. Its frames may have `jsonrpc` if those of `routes` may.
    #[must_use]
    pub fn of_server(text: &Bytes, depth: u16, routes: &RouteTable) -> SocketMessage {
        SocketMessage::with_version(text, depth, routes, |_| true)
    }

    /// Classifies a message where objects with a version may be frames.
    fn with_version(
        text: &Bytes,
        depth: u16,
        routes: &RouteTable,
        is_frame: impl FnOnce(&Json) -> bool,
    ) -> SocketMessage {
        match SocketMessage::new(text, depth) {
            SocketMessage::Rpc(text) if routes.old().on_sockets_with_version => {
                match Json::parse(text.clone(), depth) {
                    Ok(json) if json.kind() == JsonKind::Object && is_frame(&json) => {
                        SocketMessage::Frame(json)
                    }
                    Ok(_) | Err(_) => SocketMessage::Rpc(text),
                }
            }
            message @ (SocketMessage::Rpc(_)
            | SocketMessage::Frame(_)
            | SocketMessage::Unrecognized(_)) => message,
        }
    }

    /// Classifies a message: one with `jsonrpc` is JSON-RPC, any other object is a frame.
    #[must_use]
    pub fn new(text: &Bytes, depth: u16) -> SocketMessage {
        // RFC 8259 §8.1 lets a reader ignore a byte order mark.
        let text = unmarked(text.clone());
        let Ok(json) = Json::parse(text.clone(), depth) else {
            return SocketMessage::Unrecognized(Unrecognized::NotJson);
        };
        match json.kind() {
            JsonKind::Object if json.has(VERSION) => SocketMessage::Rpc(text),
            JsonKind::Object => SocketMessage::Frame(json),
            // An array is a batch if any of its elements is a message.
            JsonKind::Array if is_batch(&json) => SocketMessage::Rpc(text),
            JsonKind::Array
            | JsonKind::String
            | JsonKind::Number
            | JsonKind::Boolean
            | JsonKind::Null => SocketMessage::Unrecognized(Unrecognized::NotAnObject),
        }
    }
}

fn is_batch(list: &Json) -> bool {
    let mut elements = list.elements().map(|place| list.piece(place));
    elements.any(|element| element.kind() == JsonKind::Object && element.has(VERSION))
}
