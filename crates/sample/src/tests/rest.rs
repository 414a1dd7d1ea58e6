//! The old language, and what is refused before any language is read.

use super::*;

#[test]
fn the_health_tells_both_generations() {
    let reply = bare("GET", "/health");
    assert_eq!(
        text(&reply),
        r#"{"status":"healthy","service":"mcp-sqlite-server","version":"2.1.0","transport":"MCP Streamable HTTP","protocol_version":"2024-11-05"}"#
    );
    assert_eq!(header(&reply, "content-type"), "application/json");
}

#[test]
fn a_rest_call_that_does_not_validate_lists_its_problems() {
    let table = [
        (
            "",
            r#"{"type":"missing","loc":["body"],"msg":"Field required","input":null}"#,
        ),
        (
            r#"{"arguments":{}}"#,
            r#"{"type":"missing","loc":["body","name"],"msg":"Field required","input":{"arguments":{}}}"#,
        ),
        (
            r#"{"name":"x"}"#,
            r#"{"type":"missing","loc":["body","arguments"],"msg":"Field required","input":{"name":"x"}}"#,
        ),
        (
            "{}",
            r#"{"type":"missing","loc":["body","name"],"msg":"Field required","input":{}},{"type":"missing","loc":["body","arguments"],"msg":"Field required","input":{}}"#,
        ),
        (
            r#"{"name":"x","arguments":null}"#,
            r#"{"type":"dict_type","loc":["body","arguments"],"msg":"Input should be a valid dictionary","input":null}"#,
        ),
        (
            r#"{"name":5,"arguments":{}}"#,
            r#"{"type":"string_type","loc":["body","name"],"msg":"Input should be a valid string","input":5}"#,
        ),
        (
            "[1]",
            r#"{"type":"model_attributes_type","loc":["body"],"msg":"Input should be a valid dictionary or object to extract fields from","input":[1]}"#,
        ),
        (
            r#"{"name":"x","arguments":"#,
            r#"{"type":"json_invalid","loc":["body",24],"msg":"JSON decode error","input":{},"ctx":{"error":"Expecting value"}}"#,
        ),
    ];
    for (body, problems) in table {
        let reply = post(CALL, body);
        assert_eq!(reply.status(), 422);
        assert_eq!(text(&reply), format!(r#"{{"detail":[{problems}]}}"#));
    }
}

#[test]
fn a_body_is_opened_only_under_a_json_content_type() {
    let call = r#"{"name":"list_tables","arguments":{}}"#;
    let status = |headers: &[(&str, &str)], body: &[u8]| {
        let reply = sample().answer(&request("POST", CALL, headers, body));
        (reply.status().as_u16(), text(&reply).to_owned())
    };
    for content_type in [
        "application/json; charset=utf-8",
        "application/vnd.api+json",
        "APPLICATION/JSON",
    ] {
        let headers = [("content-type", content_type)];
        assert_eq!(status(&headers, call.as_bytes()).0, 200, "{content_type}");
    }
    for content_type in ["text/plain", "text/json", "application/jsonx", "garbage"] {
        let (code, text) = status(&[("content-type", content_type)], call.as_bytes());
        assert_eq!(code, 422, "{content_type}");
        assert_eq!(
            text,
            r#"{"detail":[{"type":"model_attributes_type","loc":["body"],"msg":"Input should be a valid dictionary or object to extract fields from","input":"{\"name\":\"list_tables\",\"arguments\":{}}"}]}"#
        );
    }
    assert_eq!(status(&[], call.as_bytes()).0, 422);
    let json = [("content-type", "application/json")];
    assert_eq!(
        status(&json, b"\xff"),
        (
            400,
            r#"{"detail":"There was an error parsing the body"}"#.to_owned()
        )
    );
    assert_eq!(status(&[], b"\xff").0, 500);
}

#[test]
fn the_old_streams_carry_one_event_and_end() {
    for (path, message) in [
        ("/mcp/v1/sse", "Connected to MCP server"),
        ("/sse", "Legacy SSE endpoint. Use GET /mcp instead."),
    ] {
        let reply = bare("GET", path);
        let event = format!(
            "event: message\r\ndata: {{\"type\": \"notification\", \"message\": \"{message}\"}}\r\n\r\n"
        );
        assert_eq!(*reply.body(), Content::Ended(event.into()));
        assert_eq!(
            header(&reply, "content-type"),
            "text/event-stream; charset=utf-8"
        );
        assert_eq!(header(&reply, "cache-control"), "no-store");
        assert_eq!(header(&reply, "x-accel-buffering"), "no");
    }
}

#[test]
fn every_other_request_is_refused_as_the_framework_does() {
    let not_found = r#"{"detail":"Not Found"}"#;
    let not_allowed = r#"{"detail":"Method Not Allowed"}"#;
    let table = [
        ("GET", "/nope", 404, "", "", not_found),
        ("POST", "/nope/", 404, "", "", not_found),
        ("GET", "/mcp/v1/", 404, "", "", not_found),
        ("GET", "/Health", 404, "", "", not_found),
        ("HEAD", "/health", 405, "GET", "", not_allowed),
        ("POST", "/health", 405, "GET", "", not_allowed),
        ("OPTIONS", CALL, 405, "POST", "", not_allowed),
        ("GET", CALL, 405, "POST", "", not_allowed),
        ("GET", "/", 405, "POST", "", not_allowed),
        ("DELETE", "/mcp", 405, "POST", "", not_allowed),
        ("HEAD", "/mcp", 405, "POST", "", not_allowed),
        (
            "GET",
            "/health/",
            307,
            "",
            "http://demo.example:99/health",
            "",
        ),
        (
            "POST",
            "/mcp/v1/tools/call//?a=b&c",
            307,
            "",
            "http://demo.example:99/mcp/v1/tools/call?a=b&c",
            "",
        ),
        ("GET", "/rpc/", 307, "", "http://demo.example:99/rpc", ""),
    ];
    for (method, target, status, allow, location, body) in table {
        let reply = bare(method, target);
        assert_eq!(reply.status(), status, "{method} {target}");
        assert_eq!(header(&reply, "allow"), allow, "{method} {target}");
        assert_eq!(header(&reply, "location"), location, "{method} {target}");
        assert_eq!(text(&reply), body, "{method} {target}");
    }
}
