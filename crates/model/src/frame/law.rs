//! Laws of messages on sockets, as a function that fuzzing and tests run on any bytes.

use bytes::Bytes;

use super::SocketMessage;
use crate::route::{RouteSource, RouteTable, has_version, parse_route};
use dualgauge_patterns::json::{Json, JsonKind, unmarked};
use dualgauge_patterns::pattern::SourceTree;

/// The maximum nesting depth.
const DEPTH: u16 = 16;

/// Checks that a message has the same protocol in both directions of a socket, and that its text alone decides.
///
/// # Panics
///
/// If a check fails: this is the body of a fuzz target.
pub fn check_any_message(data: &[u8]) {
    let text = Bytes::copy_from_slice(data);
    let bare = SocketMessage::new(&text, DEPTH);
    check_text(&text, &bare);
    let routes = RouteTable::default();
    for message in [
        SocketMessage::of_client(&text, DEPTH, &routes),
        SocketMessage::of_server(&text, DEPTH, &routes),
    ] {
        assert_eq!(form(&message), form(&bare), "no frame has a version");
    }
    if let Some(routes) = versioned() {
        check_versioned(&text, &bare, &routes);
    }
}

/// Returns a table whose frame has the version of JSON-RPC 2.0.
fn versioned() -> Option<RouteTable> {
    let member = |name: &str, value: &str| (name.to_owned(), SourceTree::Text(value.to_owned()));
    let frame = SourceTree::Table(vec![
        member("jsonrpc", "2.0"),
        member("method", "old"),
        member("value", "{value}"),
    ]);
    let source = RouteSource {
        name: "r".to_owned(),
        rpc: "m".to_owned(),
        params: Some(SourceTree::Table(vec![member("value", "{value}")])),
        is_notification: true,
        ..RouteSource::of_frame(frame)
    };
    RouteTable::build(vec![parse_route(source).ok()?]).ok()
}

/// The protocol of a message and its text.
fn form(message: &SocketMessage) -> (&'static str, Option<Bytes>) {
    match message {
        SocketMessage::Rpc(text) => ("rpc", Some(text.clone())),
        SocketMessage::Frame(json) => ("frame", Some(json.clone().into_bytes())),
        SocketMessage::Unrecognized(_) => ("unrecognized", None),
    }
}

/// Checks that the message keeps its text, apart from a byte order mark and space around it.
fn check_text(text: &Bytes, message: &SocketMessage) {
    let unmarked = unmarked(text.clone());
    let trimmed = |text: &[u8]| text.trim_ascii().to_vec();
    match message {
        SocketMessage::Rpc(kept) => assert_eq!(*kept, unmarked),
        SocketMessage::Frame(json) => {
            assert_eq!(json.kind(), JsonKind::Object);
            assert_eq!(trimmed(json.as_bytes()), trimmed(&unmarked));
            assert!(!json.has("jsonrpc"), "a message with a version is JSON-RPC");
        }
        SocketMessage::Unrecognized(_) => {
            let json = Json::parse(unmarked, DEPTH);
            let is_object = json.is_ok_and(|json| json.kind() == JsonKind::Object);
            assert!(!is_object, "an object has a protocol");
        }
    }
}

/// Checks a message on a socket whose frames may have the version.
fn check_versioned(text: &Bytes, bare: &SocketMessage, routes: &RouteTable) {
    let client = SocketMessage::of_client(text, DEPTH, routes);
    let server = SocketMessage::of_server(text, DEPTH, routes);
    for message in [&client, &server] {
        let SocketMessage::Frame(json) = message else {
            assert_eq!(form(message), form(bare), "only objects become frames");
            continue;
        };
        assert_eq!(json.kind(), JsonKind::Object);
        let again = SocketMessage::of_client(&json.clone().into_bytes(), DEPTH, routes);
        assert_eq!(form(&again), form(&client), "its own text reads alike");
    }
    if let SocketMessage::Frame(json) = &client {
        let is_server = matches!(server, SocketMessage::Frame(_));
        assert!(is_server, "a frame of a client is one of a server");
        if has_version(json) {
            let method = json.member("method").and_then(|method| method.text());
            assert_eq!(method, Some(Ok("old".to_owned())), "no route reads it");
            assert!(json.has("value"), "the route needs it");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_frames_with_a_version() {
        assert!(versioned().unwrap().old().on_sockets_with_version);
    }
}
