//! Classification of server messages on a connection where the server may send at any time.
//!
//! Only the members that determine the recipient are read; the recipient reads the content of a response.
//!
//! Used by `mcp`, `pending`, `gateway` and `upstream`.

use bytes::Bytes;

use dualgauge_patterns::json::{Json, JsonKind, Members, is_number, scan_object};

use super::RequestId;
use super::message::{ERROR, Envelope, ID, JSONRPC, METHOD, PARAMS, RESULT};
use super::progress::{find, spliced};

/// A message of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeerMessage {
    /// A response to a request with an id of the proxy's kind. It may lack a result and an error, or its content may be
    /// unreadable.
    Answer(u64),
    /// An error response without an id, or with a null one.
    Unaddressed,
    /// A response with an id that the proxy does not issue. The number is the id in another form, such as `"1"` or
    /// `1.0`.
    Misnumbered(Option<u64>),
    /// A request of the server.
    Request {
        /// The server's id.
        id: RequestId,
        /// The method.
        method: String,
    },
    /// A notification.
    Notification {
        /// The method.
        method: String,
    },
    /// Not a message.
    NotAMessage,
}

impl PeerMessage {
    /// Determines the recipient of a message.
    #[must_use]
    pub fn new(text: &Bytes, depth: u16) -> PeerMessage {
        let mut envelope = Envelope::default();
        let scanned = scan_object(text, depth, |member| envelope.note(text, member));
        if scanned.is_err() || envelope.fault.is_some() {
            return unreadable(text);
        }
        let value = |index: usize| {
            envelope.ranges[index]
                .clone()
                .map(|range| Json::scanned(text, range))
        };
        let id = value(ID);
        let method = value(METHOD).and_then(|method| method.text()?.ok());
        match method {
            Some(method) => match id {
                None => PeerMessage::Notification { method },
                Some(id) => match RequestId::new(id) {
                    Some(id) => PeerMessage::Request { id, method },
                    None => PeerMessage::NotAMessage,
                },
            },
            None if is_empty_reply(&envelope) => empty_response(id),
            None => answer(id, value(RESULT), value(ERROR)),
        }
    }
}

/// Returns whether it is a JSON-RPC message with neither a method nor a result or error.
fn is_empty_reply(envelope: &Envelope) -> bool {
    let is_there = |index: usize| envelope.ranges[index].is_some();
    is_there(JSONRPC) && ![METHOD, PARAMS, RESULT, ERROR].into_iter().any(is_there)
}

/// Some servers respond with neither a result nor an error. That still ends the wait, since nothing else will arrive.
fn empty_response(id: Option<Json>) -> PeerMessage {
    id.and_then(|id| proxy_id(id.as_bytes()))
        .map_or(PeerMessage::NotAMessage, PeerMessage::Answer)
}

/// Returns the raw id of the call that a `notifications/cancelled` names (MCP, "Cancellation").
#[must_use]
pub fn cancelled_id(notification: &Bytes, depth: u16) -> Option<Bytes> {
    let whole = Json::parse(notification.clone(), depth).ok()?;
    let id = whole.member("params")?.member("requestId")?;
    Some(Bytes::copy_from_slice(id.as_bytes()))
}

/// Returns the notification with another id of the call; every other byte is unchanged.
#[must_use]
pub fn with_cancelled_id(notification: &Bytes, id: u64, depth: u16) -> Option<Bytes> {
    let range = find(notification, &["params", "requestId"], depth)?;
    Some(spliced(notification, range, &Json::written(id.to_string())))
}

fn answer(id: Option<Json>, result: Option<Json>, error: Option<Json>) -> PeerMessage {
    if result.is_none() && error.is_none() {
        return PeerMessage::NotAMessage;
    }
    let is_error = error.is_some_and(|error| error.kind() != JsonKind::Null);
    match id {
        None if is_error => PeerMessage::Unaddressed,
        None => PeerMessage::Misnumbered(None),
        Some(id) if id.kind() == JsonKind::Null && is_error => PeerMessage::Unaddressed,
        Some(id) => response_for(id.as_bytes()),
    }
}

/// Returns the request that a response with this id is for.
fn response_for(id: &[u8]) -> PeerMessage {
    proxy_id(id).map_or_else(
        || PeerMessage::Misnumbered(id_in_other_form(id)),
        PeerMessage::Answer,
    )
}

/// Returns the recipient of an unreadable response. A response that is nested too deeply, is invalid JSON or repeats a
/// member still ends its call, if its envelope has one id. The recipient reads the content and rejects it.
fn unreadable(text: &Bytes) -> PeerMessage {
    let white = text.len() - text.trim_ascii_start().len();
    let Some(members) = Members::new(text, white) else {
        return PeerMessage::NotAMessage;
    };
    let mut ids = Vec::new();
    let (mut is_response, mut is_call) = (false, false);
    for member in members {
        match &text[member.name.clone()] {
            b"id" if ids.len() < 2 => ids.push(member.value),
            b"result" | b"error" => is_response = true,
            b"method" => is_call = true,
            _ => {}
        }
    }
    match &ids[..] {
        [id] if is_response && !is_call => response_for(&text[id.clone()]),
        _ => PeerMessage::NotAMessage,
    }
}

/// Returns the number of a proxy id in another form: as a string, or with a fraction of zeros.
fn id_in_other_form(id: &[u8]) -> Option<u64> {
    let inside = id.strip_prefix(b"\"").and_then(|id| id.strip_suffix(b"\""));
    if let Some(inside) = inside {
        return proxy_id(inside);
    }
    let text = std::str::from_utf8(id).ok().filter(|_| is_number(id))?;
    let (whole, fraction) = text.split_once('.')?;
    let is_whole = fraction.bytes().all(|digit| digit == b'0');
    proxy_id(whole.as_bytes()).filter(|_| is_whole)
}

/// Returns the number of a proxy id. Proxy ids are integers in their shortest form; the recipient rejects any other
/// form, too.
fn proxy_id(id: &[u8]) -> Option<u64> {
    let number: u64 = std::str::from_utf8(id).ok()?.parse().ok()?;
    (number.to_string().as_bytes() == id).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> PeerMessage {
        PeerMessage::new(&Bytes::copy_from_slice(text.as_bytes()), 4)
    }

    #[test]
    fn a_response_that_cannot_be_read_still_names_its_call() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        for text in [
            format!(r#" {{"jsonrpc":"2.0","id":7,"result":{deep}}}"#),
            format!(r#"{{"result":{deep},"id" : 7 }}"#),
            format!(r#"{{"error":{{"data":{deep}}},"id":7}}"#),
            r#"{"id":7,"result":NaN}"#.to_owned(),
            r#"{"id":7,"result":1,"result":2}"#.to_owned(),
            "{\"id\":7,\"result\":\"\u{1}\"}".to_owned(),
            r#"{"id":7,"result":{"a":"#.to_owned(),
        ] {
            assert_eq!(read(&text), PeerMessage::Answer(7), "{:.80}", text);
        }
        let bytes = Bytes::from_static(b"{\"id\":7,\"result\":\"\xff\"}");
        assert_eq!(PeerMessage::new(&bytes, 4), PeerMessage::Answer(7));
        for text in [
            format!(r#"{{"id":7,"method":"a","params":{deep}}}"#),
            format!(r#"{{"id":7,"result":{{"id":8}},"id":8,"a":{deep}}}"#),
            format!(r#"{{"result":{deep}}}"#),
            format!(r#"{{"id":7,"a":{deep}}}"#),
            format!(r#"["id",7,"result",{deep}]"#),
            deep,
        ] {
            assert_eq!(read(&text), PeerMessage::NotAMessage, "{:.80}", text);
        }
    }

    #[test]
    fn a_response_with_an_id_of_another_type_names_the_possible_id() {
        for (id, number) in [
            (r#""7""#, Some(7)),
            ("7.0", Some(7)),
            ("7.5", None),
            ("-7", None),
            (r#""07""#, None),
            (r#""a""#, None),
            ("true", None),
            ("[7]", None),
            (r#"{"id":7}"#, None),
        ] {
            for member in [r#""result":1"#, r#""error":{}"#] {
                let text = format!(r#"{{"jsonrpc":"2.0","id":{id},{member}}}"#);
                assert_eq!(read(&text), PeerMessage::Misnumbered(number), "{text}");
            }
        }
        for text in [r#"{"result":1}"#, r#"{"id":null,"result":1}"#] {
            assert_eq!(read(text), PeerMessage::Misnumbered(None), "{text}");
        }
    }
}
