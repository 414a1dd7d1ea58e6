//! The protocol of a message on a socket, decided anew for each message. Used by `explain`,
//! `frame::machine` and `gateway`.

use bytes::Bytes;

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
