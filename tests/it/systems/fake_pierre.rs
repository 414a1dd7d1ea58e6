//! Pierre as it answers: an MCP endpoint that takes the caller's token in the envelope and says everything by the
//! alphabet, and the REST mirror of its tools. What fails is in what is asked for: the coach `123` is not there, the
//! token `expired` is.

use serde_json::{Map, Value, json};

use super::asked::Asked;
use crate::scene::answer;
use crate::support::{Message, chunked};

const JSON: (&str, &str) = ("Content-Type", "application/json");
const TEXT: (&str, &str) = ("Content-Type", "text/plain; charset=utf-8");
/// The token that both faces take.
pub(super) const TOKEN: &str = "Bearer eyJ.good.token";

pub(super) const NEW_SESSION: &str = "session_4f1c";

/// A coach as REST shows it: null members and all.
pub(super) const COACH: &str = r#"{"category":"training","created_at":"2026-02-15T10:00:00+00:00","description":null,"id":"7","is_assigned":false,"is_favorite":false,"is_system":false,"last_used_at":null,"system_prompt":"Be kind","tags":[],"title":"Run","token_count":1.50,"updated_at":"2026-02-15T10:00:00+00:00","use_count":0,"visibility":"private"}"#;
/// The same coach as the tools show it.
pub(super) const COACH_OF_TOOLS: &str = r#"{"category":"training","created_at":"2026-02-15T10:00:00+00:00","description":null,"id":"7","is_active":false,"is_favorite":false,"is_system":false,"last_used_at":null,"sample_prompts":[],"system_prompt":"Be kind","tags":[],"title":"Run","token_count":1.50,"updated_at":"2026-02-15T10:00:00+00:00","use_count":0,"visibility":"private"}"#;

fn said(status: &str, body: impl ToString) -> Vec<u8> {
    answer(status, &[JSON], body.to_string())
}

fn failed(status: &str, code: &str, message: &str) -> Vec<u8> {
    let timestamp = "2026-02-15T10:00:00+00:00";
    said(
        status,
        format!(r#"{{"code":"{code}","message":"{message}","timestamp":"{timestamp}"}}"#),
    )
}

fn not_found() -> Vec<u8> {
    let message = "The requested resource was not found";
    failed("404 Not Found", "ResourceNotFound", message)
}

/// How the stream of either side begins: the data is no JSON, and the id comes first.
pub(super) const OPENING: &str = "id: 1\ndata: connected\nevent: connection\n\n: keepalive\n\n";
/// A connection that was made, as the REST side tells it: framed twice.
pub(super) const NOTICE: &str = "id: 2\ndata: data: {\"type\":\"oauth_notification\",\"id\":\"n1\",\"provider\":\"strava\",\"message\":\"Connected\",\"success\":true,\"created_at\":\"2026-02-15T10:00:00+00:00\"}\ndata: \ndata: \nevent: notification\n\n";
/// The same, as a session is told it.
pub(super) const NOTIFICATION: &str = "id: 2\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/oauth_completed\",\"params\":{\"message\":\"Connected\",\"provider\":\"strava\",\"success\":true,\"user_id\":\"u\"}}\nevent: message\n\n";
/// What goes wrong on the stream of a session.
pub(super) const STREAM_ERROR: &str = "id: 3\ndata: {\"error\":{\"code\":-32603,\"message\":\"lagged\"},\"id\":null,\"jsonrpc\":\"2.0\"}\nevent: message\n\n";

/// A stream of either side, for whoever says who he is.
fn stream(request: &Message, said: &[&str]) -> Vec<u8> {
    if request.head.one("authorization").is_none() {
        let message = "Authentication required";
        return failed("401 Unauthorized", "AuthRequired", message);
    }
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n";
    let said: Vec<&[u8]> = said.iter().map(|said| said.as_bytes()).collect();
    [head.as_bytes(), &chunked(&said)].concat()
}

/// The REST API.
pub(super) fn rest(request: &Message) -> Vec<u8> {
    let asked = Asked::of(request);
    if let Some(user) = asked.path.strip_prefix("/notifications/sse/") {
        return match user.starts_with("session_") {
            true => answer(
                "400 Bad Request",
                &[TEXT],
                "Invalid URL: UUID parsing failed",
            ),
            false => stream(request, &[OPENING, NOTICE]),
        };
    }
    if asked.path == "/mcp/tools" {
        return said(
            "200 OK",
            r#"{"tools":[{"name":"get_coach"},{"name":"list_coaches"}]}"#,
        );
    }
    match request.head.one("authorization") {
        Some(TOKEN) => {}
        Some("Bearer expired") => {
            return failed("403 Forbidden", "AuthExpired", "The token has expired");
        }
        Some("Bearer guest") => {
            return failed(
                "403 Forbidden",
                "PermissionDenied",
                "You do not have permission",
            );
        }
        _ => {
            return failed(
                "401 Unauthorized",
                "AuthRequired",
                "Authentication required",
            );
        }
    }
    let path: Vec<&str> = asked.path.split('/').skip(1).collect();
    match (asked.method.as_str(), path.as_slice()) {
        (_, ["api", "coaches", rest @ ..]) => coaches(&asked, rest),
        (_, ["fitness", "config"]) => fitness_config(&asked),
        ("GET", ["api", "providers"]) => said("200 OK", json!({ "providers": providers() })),
        _ => answer("404 Not Found", &[], ""),
    }
}

fn providers() -> Value {
    json!([{
        "capabilities": ["activities"], "connected": true, "display_name": "Strava", "provider": "strava",
        "requires_oauth": true,
    }])
}

fn page(coaches: &str, total: u32) -> Vec<u8> {
    said(
        "200 OK",
        format!(
            r#"{{"coaches":{coaches},"metadata":{{"api_version":"1.0","timestamp":"2026-02-15T10:00:00+00:00"}},"total":{total}}}"#
        ),
    )
}

fn coaches(asked: &Asked, path: &[&str]) -> Vec<u8> {
    match (asked.method.as_str(), path) {
        ("GET", []) if !matches!(asked.query("favorites_only"), "" | "true" | "false") => answer(
            "400 Bad Request",
            &[TEXT],
            "Failed to deserialize query string: provided string was not `true` or `false`",
        ),
        ("GET", []) => page(&format!("[{COACH}]"), 3),
        ("POST", []) => create(asked),
        ("GET", ["search"]) => page(&format!("[{COACH}]"), 1),
        ("GET", ["hidden"]) => page("[]", 0),
        (_, ["123", ..]) => not_found(),
        ("GET" | "PUT", ["7"]) => said("200 OK", COACH),
        ("DELETE", ["7"]) => b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(),
        ("POST", [_, "favorite"]) => said("200 OK", r#"{"is_favorite":true}"#),
        ("POST", [_, "hide"]) => said("200 OK", r#"{"is_hidden":true,"success":true}"#),
        ("DELETE", [_, "hide"]) => said("200 OK", r#"{"is_hidden":false,"success":true}"#),
        _ => answer("404 Not Found", &[], ""),
    }
}

fn create(asked: &Asked) -> Vec<u8> {
    match &asked.body {
        Ok(body) if body.get("tags").is_some_and(Value::is_null) => answer(
            "422 Unprocessable Entity",
            &[TEXT],
            "Failed to deserialize the JSON body into the target type: tags: invalid type: null, expected a sequence",
        ),
        Ok(body) if body["title"] == "" => {
            failed("400 Bad Request", "InvalidInput", "title is required")
        }
        Ok(body) if body["title"] == "twice" => failed(
            "409 Conflict",
            "ResourceAlreadyExists",
            "The resource already exists",
        ),
        Ok(_) => said("201 Created", COACH),
        Err(error) => {
            let text = format!("Failed to parse the request body as JSON: {error}");
            answer("400 Bad Request", &[TEXT], text)
        }
    }
}

fn fitness_config(asked: &Asked) -> Vec<u8> {
    match (asked.method.as_str(), asked.query("configuration_name")) {
        (_, "none") => not_found(),
        ("GET", name) => said(
            "200 OK",
            format!(
                r#"{{"configuration":{{"ftp":250}},"configuration_name":"{name}","created_at":"2026-02-15T10:00:00+00:00","id":"c1","metadata":{{"api_version":"1.0"}},"tenant_id":"t","updated_at":"2026-02-15T10:00:00+00:00","user_id":"u"}}"#
            ),
        ),
        ("PUT", _) => said(
            "200 OK",
            r#"{"id":"c1","message":"Saved","metadata":{"api_version":"1.0"}}"#,
        ),
        ("DELETE", _) => b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(),
        _ => answer("405 Method Not Allowed", &[("Allow", "GET,PUT,DELETE")], ""),
    }
}

/// The MCP endpoint.
pub(super) fn mcp(request: &Message) -> Vec<u8> {
    if request.head.start.starts_with("GET /mcp/sse/") {
        return stream(request, &[OPENING, NOTIFICATION, STREAM_ERROR]);
    }
    // Who shows a token begins a session each time.
    let own = match request.head.one("authorization") {
        Some(_) => None,
        None => request.head.one("mcp-session-id"),
    };
    let session = ("Mcp-Session-Id", own.unwrap_or(NEW_SESSION));
    let rejected = |text: &str| answer("400 Bad Request", &[TEXT], text);
    let Ok(envelope) = serde_json::from_slice::<Map<String, Value>>(&request.body) else {
        return rejected("Invalid JSON");
    };
    let (Some("2.0"), Some(method)) = (
        envelope.get("jsonrpc").and_then(Value::as_str),
        envelope.get("method").and_then(Value::as_str),
    ) else {
        return rejected("Invalid MCP request format");
    };
    if method.starts_with("notifications/") {
        return answer("202 Accepted", &[session], "");
    }
    let bearer = envelope.get("auth").and_then(Value::as_str);
    let arguments = &envelope.get("params").unwrap_or(&Value::Null)["arguments"];
    if arguments["coach_id"] == "broken" {
        return rejected("Invalid MCP request format");
    }
    // Numbers lose what a float has no place for.
    let id = envelope.get("id").unwrap_or(&Value::Null);
    let body = match reply(
        method,
        &envelope,
        bearer.or_else(|| request.head.one("authorization")),
    ) {
        Ok(result) => format!(r#"{{"id":{id},"jsonrpc":"2.0","result":{result}}}"#),
        Err(error) => format!(r#"{{"error":{error},"id":{id},"jsonrpc":"2.0"}}"#),
    };
    answer("200 OK", &[JSON, session], body)
}

fn error(code: i32, message: &str) -> Value {
    json!({ "code": code, "message": message })
}

fn unauthenticated(message: &str) -> Value {
    let data =
        json!({ "authentication_failed": true, "detailed_error": "JWT: kid 9f of key ring a" });
    json!({ "code": -32603, "message": message, "data": data })
}

fn reply(
    method: &str,
    envelope: &Map<String, Value>,
    bearer: Option<&str>,
) -> Result<String, Value> {
    match (method, bearer) {
        ("ping", _) => return Ok("{}".to_owned()),
        ("tools/list", _) => return Ok(r#"{"tools":[{"name":"get_coach"}]}"#.to_owned()),
        ("tools/call", Some(TOKEN)) => {}
        ("tools/call", Some("Bearer expired")) => {
            return Err(unauthenticated("JWT token has expired"));
        }
        ("tools/call", Some("Bearer forged")) => {
            return Err(unauthenticated("JWT token signature is invalid"));
        }
        ("tools/call", Some("Bearer bent")) => {
            let data = json!({ "hint": "three parts" });
            return Err(
                json!({ "code": -32602, "message": "JWT token is malformed", "data": data }),
            );
        }
        ("tools/call", Some("Bearer guest")) => {
            let data = json!({ "error_type": "tenant_required", "user_id": "u" });
            return Err(json!({ "code": -32603, "message": "No tenant", "data": data }));
        }
        ("tools/call", _) => return Err(unauthenticated("Authentication required")),
        _ => return Err(error(-32601, &format!("Unknown method: {method}"))),
    }
    let params = envelope.get("params").unwrap_or(&Value::Null);
    if params.get("arguments").is_none() {
        return Err(error(
            -32602,
            "Invalid tool call parameters: missing field `arguments`",
        ));
    }
    tool(params["name"].as_str().unwrap_or_default(), &params["arguments"]).map(|structured| {
        let text = json!(structured.clone()).to_string();
        // Unread notices come behind, in a block of their own.
        let notice = json!("\n\nOAuth Connection Updates:\n[SUCCESS] STRAVA: connected");
        format!(
            r#"{{"content":[{{"text":{text},"type":"text"}},{{"text":{notice},"type":"text"}}],"isError":false,"structuredContent":{structured}}}"#
        )
    })
}

fn tool(name: &str, arguments: &Value) -> Result<String, Value> {
    let invalid = |what: &str| {
        Err(error(
            -32602,
            &format!("The provided input is invalid: {what}"),
        ))
    };
    if arguments["coach_id"] == "123" {
        return Err(error(
            -32601,
            "The requested resource was not found: Coach 123 not found",
        ));
    }
    let with_coach = |done: &str| {
        Ok(format!(
            r#"{{"coach":{COACH_OF_TOOLS},"message":"{done}","success":true}}"#
        ))
    };
    match name {
        "list_coaches" => Ok(
            r#"{"coaches":[{"id":"7","title":"Run"}],"count":1,"has_more":true,"limit":1,"offset":0,"total":3}"#.to_owned(),
        ),
        "search_coaches" => Ok(
            r#"{"has_more":false,"limit":20,"offset":0,"query":"easy","results":[{"id":"7"}],"returned_count":1}"#.to_owned(),
        ),
        "list_hidden_coaches" => Ok(r#"{"coaches":[],"count":0}"#.to_owned()),
        "get_coach" => Ok(format!(r#"{{"coach":{COACH_OF_TOOLS}}}"#)),
        "create_coach" if arguments["title"] == "" => invalid("title is required"),
        "create_coach" if arguments["title"] == "boom" => Err(error(-32603, "Database error: disk full")),
        "create_coach" => with_coach("Coach created successfully"),
        "update_coach" => with_coach("Coach updated successfully"),
        "delete_coach" => Ok(r#"{"message":"Coach deleted successfully","success":true}"#.to_owned()),
        "toggle_coach_favorite" => Ok(
            r#"{"coach_id":"7","is_favorite":true,"message":"Added to favorites","success":true}"#.to_owned(),
        ),
        "hide_coach" => Ok(r#"{"coach_id":"7","is_hidden":true,"success":true}"#.to_owned()),
        "show_coach" => Ok(r#"{"coach_id":"7","is_hidden":false,"success":true}"#.to_owned()),
        "get_fitness_config" => Ok(match arguments["configuration_name"].as_str() {
            Some("none") => r#"{"config":null,"configuration_name":"none","retrieved_at":"t","source":"not_found"}"#,
            _ => r#"{"config":{"ftp":250},"configuration_name":"race","retrieved_at":"t","source":"database"}"#,
        }
        .to_owned()),
        "set_fitness_config" => Ok(r#"{"config_id":"c1","message":"Saved","success":true}"#.to_owned()),
        "delete_fitness_config" => {
            let success = arguments["configuration_name"] != "none";
            Ok(format!(r#"{{"success":{success}}}"#))
        }
        "get_connection_status" => Ok(json!({ "providers": providers() }).to_string()),
        _ => Err(error(-32601, &format!(
            "Tool '{name}' is not available for your tenant. Contact your administrator to enable it."
        ))),
    }
}
