//! What a server says on a connection where it may say anything at any time.
//!
//! Only as much is read as is needed to know whom it is for; what an answer says is read by the one who waits for it.

use bytes::Bytes;

use crate::domain::json::{Json, Kind, scan_object};

use super::RequestId;
use super::message::{ERROR, Envelope, ID, JSONRPC, METHOD, PARAMS, RESULT};
use super::progress::{find, spliced};

/// One message of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// It answers a request with an id of the kind that the proxy gives, be it with neither a result nor an error.
    Answer(u64),
    /// It reports an error, and does not say of which request: the id is null or missing.
    Unaddressed,
    /// It answers a request that the proxy cannot have made.
    Foreign,
    /// A request of the server.
    Request {
        /// The server's id.
        id: RequestId,
        /// What it asks for.
        method: String,
    },
    /// A notification.
    Notification {
        /// What it tells of.
        method: String,
    },
    /// No message.
    Noise,
}

impl Heard {
    /// Reads who a message is for.
    #[must_use]
    pub fn of(text: &Bytes, depth: u16) -> Heard {
        let mut envelope = Envelope::default();
        let scanned = scan_object(text, depth, |member| envelope.note(text, member));
        if scanned.is_err() || envelope.fault.is_some() {
            return Heard::Noise;
        }
        let value = |index: usize| {
            envelope.places[index]
                .clone()
                .map(|place| Json::scanned(text, place))
        };
        let id = value(ID);
        let method = value(METHOD).and_then(|method| method.text()?.ok());
        match method {
            Some(method) => match id {
                None => Heard::Notification { method },
                Some(id) => match RequestId::new(id) {
                    Some(id) => Heard::Request { id, method },
                    None => Heard::Noise,
                },
            },
            None if is_hollow(&envelope) => hollow(id),
            None => answer(id, value(RESULT), value(ERROR)),
        }
    }
}

/// Whether it is a message of JSON-RPC that says nothing.
fn is_hollow(envelope: &Envelope) -> bool {
    let is_there = |index: usize| envelope.places[index].is_some();
    is_there(JSONRPC) && ![METHOD, PARAMS, RESULT, ERROR].into_iter().any(is_there)
}

/// Some servers answer with neither a result nor an error: no answer, but nothing else will come for who waits for it.
fn hollow(id: Option<Json>) -> Heard {
    id.and_then(|id| own(id.as_bytes()))
        .map_or(Heard::Noise, Heard::Answer)
}

/// The id of the call that a `notifications/cancelled` names, as it is written there (MCP, "Cancellation").
#[must_use]
pub fn recalled(notification: &Bytes, depth: u16) -> Option<Bytes> {
    let whole = Json::parse(notification.clone(), depth).ok()?;
    let id = whole.member("params")?.member("requestId")?;
    Some(Bytes::copy_from_slice(id.as_bytes()))
}

/// The same notification for a server that knows the call by another id; every other byte stays what it is.
#[must_use]
pub fn recalling(notification: &Bytes, id: u64, depth: u16) -> Option<Bytes> {
    let place = find(notification, &["params", "requestId"], depth)?;
    Some(spliced(notification, place, &Json::written(id.to_string())))
}

fn answer(id: Option<Json>, result: Option<Json>, error: Option<Json>) -> Heard {
    if result.is_none() && error.is_none() {
        return Heard::Noise;
    }
    let is_error = error.is_some_and(|error| error.kind() != Kind::Null);
    match id {
        None if is_error => Heard::Unaddressed,
        None => Heard::Foreign,
        Some(id) if id.kind() == Kind::Null && is_error => Heard::Unaddressed,
        Some(id) => own(id.as_bytes()).map_or(Heard::Foreign, Heard::Answer),
    }
}

/// The proxy's ids are whole numbers in their shortest form; an answer that bears one in another form is not believed
/// by the one who waits for it, either.
fn own(id: &[u8]) -> Option<u64> {
    let number: u64 = std::str::from_utf8(id).ok()?.parse().ok()?;
    (number.to_string().as_bytes() == id).then_some(number)
}
