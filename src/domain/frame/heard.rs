//! Which protocol a message of a socket is in: found out anew for each of them.

use bytes::Bytes;

use crate::domain::json::{Json, Kind, unmarked};

/// One message of a socket where both protocols may be spoken.
#[derive(Debug, Clone)]
pub enum Heard {
    /// JSON-RPC, one message or several; whether it is valid is found out by those who read it.
    Rpc(Bytes),
    /// A frame: an object of the legacy protocol.
    Frame(Json),
    /// Neither. Such a message gets no answer, for nobody knows in which protocol.
    Noise(Noise),
}

/// Why a message is of no protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noise {
    /// It is no JSON, or nested too deep.
    NotJson,
    /// It is JSON, but no object.
    NotAnObject,
}

/// The member that only JSON-RPC has (JSON-RPC 2.0 §4).
const VERSION: &str = "jsonrpc";

impl Heard {
    /// Tells the protocol of a message: what has `jsonrpc` is JSON-RPC, any other object is a frame.
    #[must_use]
    pub fn of(text: &Bytes, depth: u16) -> Heard {
        // RFC 8259 §8.1 lets a reader ignore a byte order mark.
        let text = unmarked(text.clone());
        let Ok(json) = Json::parse(text.clone(), depth) else {
            return Heard::Noise(Noise::NotJson);
        };
        match json.kind() {
            Kind::Object if json.has(VERSION) => Heard::Rpc(text),
            Kind::Object => Heard::Frame(json),
            // A batch is one where any of its elements is a message.
            Kind::Array if is_batch(&json) => Heard::Rpc(text),
            Kind::Array | Kind::String | Kind::Number | Kind::Boolean | Kind::Null => {
                Heard::Noise(Noise::NotAnObject)
            }
        }
    }
}

fn is_batch(list: &Json) -> bool {
    let mut elements = list.elements().map(|place| list.piece(place));
    elements.any(|element| element.kind() == Kind::Object && element.has(VERSION))
}
