//! MCP servers that a test scripts.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::scene::{Called, answer, json, json_with};
use crate::support::{Message, Upstream, chunked};

/// A server with sessions, which gives its calls these answers. Sessions are `s1`, `s2` and so on. It has no stream for
/// itself, but may have those of calls that are taken up again.
pub(crate) fn with_sessions(
    calls: impl Fn(&Message, &Called<'_>) -> Vec<u8> + Send + Sync + 'static,
) -> Upstream {
    let calls = Arc::new(calls);
    let resumed = calls.clone();
    sessions_with_streams(
        move |request| match request.head.one("last-event-id") {
            None => answer("405 Method Not Allowed", &[], ""),
            Some(_) => resumed(
                request,
                &Called {
                    id: None,
                    method: serde_json::value::RawValue::NULL,
                    params: None,
                },
            ),
        },
        move |request, called| calls(request, called),
    )
}

/// A server with sessions, which answers GETs and calls so.
pub(crate) fn sessions_with_streams(
    streams: impl Fn(&Message) -> Vec<u8> + Send + Sync + 'static,
    calls: impl Fn(&Message, &Called<'_>) -> Vec<u8> + Send + Sync + 'static,
) -> Upstream {
    sessions_observed(|_| {}, streams, calls)
}

/// The same, and `observe` sees each POST.
pub(crate) fn sessions_observed(
    observe: impl Fn(&Message) + Send + Sync + 'static,
    streams: impl Fn(&Message) -> Vec<u8> + Send + Sync + 'static,
    calls: impl Fn(&Message, &Called<'_>) -> Vec<u8> + Send + Sync + 'static,
) -> Upstream {
    Upstream::serving(session_answers(observe, streams, calls))
}

/// The answers of a server with sessions and no stream.
pub(crate) fn answers(
    calls: impl Fn(&Message, &Called<'_>) -> Vec<u8> + Send + Sync + 'static,
) -> impl Fn(&Message) -> Vec<u8> + Send + Sync + 'static {
    let streams = |_: &Message| answer("405 Method Not Allowed", &[], "");
    session_answers(|_| {}, streams, calls)
}

fn session_answers(
    observe: impl Fn(&Message) + Send + Sync + 'static,
    streams: impl Fn(&Message) -> Vec<u8> + Send + Sync + 'static,
    calls: impl Fn(&Message, &Called<'_>) -> Vec<u8> + Send + Sync + 'static,
) -> impl Fn(&Message) -> Vec<u8> + Send + Sync + 'static {
    let sessions = Mutex::new(0);
    move |request| {
        if request.head.start.starts_with("DELETE") {
            return answer("405 Method Not Allowed", &[], "");
        }
        if request.head.start.starts_with("GET") {
            return streams(request);
        }
        let body: serde_json::Value = request.json();
        observe(request);
        if body.get("method").is_none() || body.get("id").is_none() {
            return answer("202 Accepted", &[], "");
        }
        let called = Called::of(request);
        match called.method() {
            "server/discover" => answer(
                "400 Bad Request",
                &[("Content-Type", "text/plain")],
                "Bad Request: Missing session ID",
            ),
            "initialize" => {
                let mut sessions = sessions.lock().unwrap();
                *sessions += 1;
                let id = called.id();
                let session = format!("s{sessions}");
                let fields = [
                    ("Content-Type", "application/json"),
                    ("Mcp-Session-Id", &*session),
                ];
                let greeting = format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":"2025-06-18","capabilities":{{"logging":{{}},"tools":{{"listChanged":true}},"resources":{{"subscribe":true}}}},"serverInfo":{{"name":"scripted","version":"1"}}}}}}"#
                );
                answer("200 OK", &fields, greeting)
            }
            _ => calls(request, &called),
        }
    }
}

/// A server of the revision without sessions.
pub(crate) fn stateless(
    calls: impl Fn(&Message, &Called<'_>) -> Vec<u8> + Send + Sync + 'static,
) -> Upstream {
    Upstream::serving(move |request| {
        let called = Called::of(request);
        match called.method() {
            "server/discover" => result(
                &called,
                r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},
                    "_meta":{"io.modelcontextprotocol/serverInfo":{"name":"modern","version":"2"}}}"#,
            ),
            "initialize" => {
                let id = called.id();
                let error = format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"no"}}}}"#
                );
                json_with("404 Not Found", error)
            }
            _ => calls(request, &called),
        }
    })
}

/// The response to a call.
pub(crate) fn response(called: &Called<'_>, result: &str) -> String {
    let id = called.id();
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

/// The response to a call, as JSON.
pub(crate) fn result(called: &Called<'_>, result: &str) -> Vec<u8> {
    json(response(called, result))
}

/// A stream of these bytes, with its end.
pub(crate) fn stream(body: &str) -> Vec<u8> {
    let mut whole = begun(body);
    whole.extend_from_slice(b"0\r\n\r\n");
    whole
}

/// A stream that goes on after these bytes.
pub(crate) fn begun(body: &str) -> Vec<u8> {
    let mut whole =
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
            .to_vec();
    let chunks = chunked(&[body.as_bytes()]);
    whole.extend_from_slice(&chunks[..chunks.len() - b"0\r\n\r\n".len()]);
    whole
}

/// The requests for streams.
pub(crate) fn listened(server: &Upstream) -> Vec<Message> {
    let requests = server.requests().into_iter();
    requests
        .filter(|request| request.head.start.starts_with("GET"))
        .collect()
}

/// What the server was asked but for streams, as `POST initialize` and the like.
pub(crate) fn asked(server: &Upstream) -> Vec<String> {
    let requests = server.requests();
    let posted = requests.iter();
    let posted = posted.filter(|request| !request.head.start.starts_with("GET"));
    let shown = posted.map(|request| {
        let verb = request.head.start.split(' ').next().unwrap();
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let method = body["method"].as_str().unwrap_or("");
        format!("{verb} {method}")
    });
    shown.collect()
}

/// The last request of a method.
pub(crate) fn last(server: &Upstream, method: &str) -> Message {
    let requests = server.requests().into_iter().rev();
    let mut of_method = requests.filter(|request| {
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        body["method"] == method
    });
    of_method.next().unwrap()
}

/// The messages of a server with sessions that sends everything on one stream: for a call of a tool with the name of a
/// request, a log message and that request; for the client's response, the result or the error of the call. `None` for
/// anything else.
pub(crate) fn asking_on_one_stream(message: &Value) -> Option<Vec<Value>> {
    let id = &message["id"];
    let Some(method) = message["method"].as_str() else {
        let call: u64 = id.as_str()?.strip_prefix("q-")?.parse().unwrap();
        let reply = match message.get("error") {
            Some(error) => json!({ "jsonrpc": "2.0", "id": call, "error": error }),
            None => {
                json!({ "jsonrpc": "2.0", "id": call, "result": { "got": message["result"] } })
            }
        };
        return Some(vec![reply]);
    };
    match method {
        "logging/setLevel" => Some(vec![json!({ "jsonrpc": "2.0", "id": id, "result": {} })]),
        "tools/call" => Some(vec![
            json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "level": "info", "data": 1 } }),
            json!({ "jsonrpc": "2.0", "id": format!("q-{id}"), "method": message["params"]["name"], "params": {} }),
        ]),
        _ => None,
    }
}

/// The messages of a stateless server that sends everything on one stream, for a call of a tool with the name of a
/// request: a log message if the call has a level, and a result that asks for input or repeats it.
pub(crate) fn requiring_on_one_stream(message: &Value) -> Option<Vec<Value>> {
    let (id, params) = (&message["id"], &message["params"]);
    if message["method"] != "tools/call" {
        return None;
    }
    if let Some(got) = params["inputResponses"].get("one") {
        let result = json!({ "resultType": "complete", "got": got });
        return Some(vec![
            json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        ]);
    }
    let level = &params["_meta"]["io.modelcontextprotocol/logLevel"];
    let asks = json!({ "resultType": "input_required",
        "inputRequests": { "one": { "method": params["name"], "params": {} } } });
    let log = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "level": level, "data": 1 } });
    let logs = Some(log).filter(|_| level.is_string());
    let end = json!({ "jsonrpc": "2.0", "id": id, "result": asks });
    Some(logs.into_iter().chain([end]).collect())
}
