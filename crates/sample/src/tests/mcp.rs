//! `/mcp`: sessions, and the layout of its answers.

use super::*;

#[test]
fn mcp_answers_with_spaces_and_a_session() {
    let result = r#"{"protocolVersion": "2024-11-05", "capabilities": {"tools": {"listChanged": false}, "logging": {}}, "serverInfo": {"name": "mcp-sqlite-server", "version": "1.0.0"}}"#;
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#;
    let reply = post("/mcp", body);
    assert_eq!(
        text(&reply),
        format!(r#"{{"jsonrpc": "2.0", "id": 1, "result": {result}}}"#)
    );
    assert_eq!(header(&reply, "content-type"), "application/json");
    assert_eq!(header(&reply, "mcp-protocol-version"), "2024-11-05");
    // `initialize` is answered even as a notification.
    let reply = post("/mcp", r#"{"method":"initialize"}"#);
    assert_eq!(
        text(&reply),
        format!(r#"{{"jsonrpc": "2.0", "result": {result}}}"#)
    );
}

#[test]
fn a_known_session_is_kept_and_an_unknown_one_replaced() {
    let mut sample = sample();
    let mut ping = |session: &str| {
        let headers = [
            ("content-type", "application/json"),
            ("mcp-session-id", session),
            ("mcp-protocol-version", "1999-01-01"),
        ];
        let reply = sample.answer(&request("POST", "/mcp", &headers, br#"{"method":"ping"}"#));
        header(&reply, "mcp-session-id").to_owned()
    };
    let session = ping("unknown");
    assert_ne!(session, "unknown");
    assert_eq!(ping(&session), session);
    assert_ne!(ping(""), session);
}

#[test]
fn the_stream_of_a_session_opens_with_a_numbered_event() {
    let mut sample = sample();
    let json = [("content-type", "application/json")];
    let opened = sample.answer(&request("POST", "/mcp", &json, br#"{"method":"ping"}"#));
    let session = [("mcp-session-id", header(&opened, "mcp-session-id"))];
    for id in 1..=2 {
        let reply = sample.answer(&request("GET", "/mcp", &session, b""));
        let event = format!(
            "id: {id}\r\nevent: message\r\ndata: {{\"type\": \"connection\", \"message\": \"SSE stream established\"}}\r\n\r\n"
        );
        assert_eq!(*reply.body(), Content::Open(event.into()));
        assert_eq!(header(&reply, "mcp-session-id"), session[0].1);
    }
}

#[test]
fn a_stream_without_a_session_is_refused() {
    let refusal = |headers: &[(&str, &str)]| {
        let reply = sample().answer(&request("GET", "/mcp", headers, b""));
        (reply.status().as_u16(), text(&reply).to_owned())
    };
    assert_eq!(
        refusal(&[]),
        (
            400,
            r#"{"error": "No session ID provided. Initialize first."}"#.to_owned()
        )
    );
    assert_eq!(
        refusal(&[("mcp-session-id", "unknown")]),
        (404, r#"{"error": "Invalid session ID"}"#.to_owned())
    );
}
