//! Conversion of a server's errors to the codes of the client's era.
//!
//! Laws: an error between parties of one era keeps its bytes; message and data stay; the codes -32020 to -32022 reach no
//! client with sessions.
//!
//! Used by `mcp` and `gateway`.

use serde_json::{Map, Value, json};

use super::envelope::CAPABILITIES_KEY;
use super::era_bridge::{BridgeAction, ServerEra};
use super::result::{ClientRevision, INTERACTIVE};
use crate::jsonrpc::{Call, ErrorObject};
use dualgauge_patterns::json::Json;

/// "Invalid request", JSON-RPC 2.0 §5.1.
const INVALID_REQUEST: i64 = -32600;
/// "Invalid params", JSON-RPC 2.0 §5.1.
const INVALID_PARAMS: i64 = -32602;
/// "Internal error", JSON-RPC 2.0 §5.1.
const INTERNAL: i64 = -32603;
/// "Resource not found" (MCP 2025-11-25, "Resources").
const NOT_FOUND: i64 = -32002;
/// "URL elicitation required" (MCP 2025-11-25, "Elicitation").
const URL_REQUIRED: i64 = -32042;
/// "Missing required client capability" (MCP 2026-07-28).
const MISSING_CAPABILITY: i64 = -32021;
/// The maximum number of URLs that one error may ask for.
const MOST_URLS: usize = 64;

/// An error as the client receives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConvertedError {
    /// An error with another code.
    Error(ErrorObject),
    /// A result in place of the error.
    Result(Json),
}

/// Converts an error of the response to `call`; `None` if the client can read it unchanged.
#[must_use]
pub fn convert_error(
    client: ClientRevision,
    server: ServerEra,
    call: &Call,
    error: &ErrorObject,
) -> Option<(BridgeAction, ConvertedError)> {
    let with_code = |action, code| {
        let error = ErrorObject {
            code,
            ..error.clone()
        };
        Some((action, ConvertedError::Error(error)))
    };
    let is_read = &*call.method == "resources/read";
    match (client, server, error.code) {
        (ClientRevision::Stateless, ServerEra::Sessions, NOT_FOUND) if is_read => {
            with_code(BridgeAction::MissingResource, INVALID_PARAMS)
        }
        (ClientRevision::Stateless, ServerEra::Sessions, URL_REQUIRED) => {
            match input_for_urls(call, error) {
                Some(result) => {
                    let result = ConvertedError::Result(result);
                    Some((BridgeAction::UrlElicitation, result))
                }
                None => with_code(BridgeAction::ForeignCode, INVALID_PARAMS),
            }
        }
        (ClientRevision::Sessions, ServerEra::Stateless, INVALID_PARAMS)
            if is_read && names_resource(call, error) =>
        {
            with_code(BridgeAction::MissingResource, NOT_FOUND)
        }
        (ClientRevision::Sessions, ServerEra::Stateless, MISSING_CAPABILITY) => {
            with_code(BridgeAction::ForeignCode, INVALID_REQUEST)
        }
        // The proxy wrote the headers and chose the revision, so these are no faults of the client.
        (ClientRevision::Sessions, ServerEra::Stateless, -32022 | -32020) => {
            with_code(BridgeAction::ForeignCode, INTERNAL)
        }
        (ClientRevision::Sessions | ClientRevision::Stateless, _, _) => None,
    }
}

/// Returns true if the data of an error repeats the URI that the call asks for. An error for other params does not.
fn names_resource(call: &Call, error: &ErrorObject) -> bool {
    let uri = |json: Option<&Json>| json?.member("uri")?.text()?.ok();
    let named = uri(error.data.as_ref());
    named.is_some() && named == uri(call.params.as_ref())
}

/// Returns the result that asks for the URLs of an error; `None` if the client or the method does not allow it.
fn input_for_urls(call: &Call, error: &ErrorObject) -> Option<Json> {
    let meta = call.params.as_ref()?.member("_meta")?;
    let declared = meta.member(CAPABILITIES_KEY)?.member("elicitation")?;
    if !declared.has("url") || !INTERACTIVE.contains(&&*call.method) {
        return None;
    }
    let elicitations = error.data.as_ref()?.member("elicitations")?;
    let elicitations: Vec<Value> = serde_json::from_slice(elicitations.as_bytes()).ok()?;
    let mut requests = Map::new();
    for (number, asked) in elicitations.iter().take(MOST_URLS).enumerate() {
        let (Some(url), Some(message)) = (asked["url"].as_str(), asked["message"].as_str()) else {
            continue;
        };
        let params = json!({ "mode": "url", "url": url, "message": message });
        let request = json!({ "method": "elicitation/create", "params": params });
        requests.insert(format!("url-{number}"), request);
    }
    if requests.is_empty() {
        return None;
    }
    let result = json!({ "resultType": "input_required", "inputRequests": requests });
    Some(Json::written(result.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jsonrpc::{Incoming, MessageItem, MessageLimits, parse};

    fn call(method: &str, params: &str) -> Call {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        let limits = MessageLimits {
            depth: 16,
            batch: 1,
        };
        match parse(&text.into(), limits) {
            Ok(Incoming::Single(MessageItem::Call(call))) => call,
            other => panic!("{other:?}"),
        }
    }

    fn error(code: i64, data: &'static str) -> ErrorObject {
        ErrorObject {
            code,
            message: Json::literal("\"no\""),
            data: Some(Json::literal(data)),
        }
    }

    fn code_of(converted: Option<(BridgeAction, ConvertedError)>) -> Option<i64> {
        match converted?.1 {
            ConvertedError::Error(error) => Some(error.code),
            ConvertedError::Result(result) => panic!("{result:?}"),
        }
    }

    #[test]
    fn codes_change_only_between_the_eras() {
        const URI: &str = r#"{"uri":"a:b"}"#;
        let (old, new) = (ClientRevision::Sessions, ClientRevision::Stateless);
        let (before, after) = (ServerEra::Sessions, ServerEra::Stateless);
        let read = call("resources/read", URI);
        for (client, server, code, wanted) in [
            (new, before, -32002, Some(-32602)),
            (new, after, -32002, None),
            (old, before, -32002, None),
            (old, after, -32602, Some(-32002)),
            (new, after, -32602, None),
            (old, before, -32602, None),
            (old, ServerEra::Unknown, -32602, None),
            (old, after, -32020, Some(-32603)),
            (old, after, -32021, Some(-32600)),
            (old, after, -32022, Some(-32603)),
            (old, after, -32601, None),
            (old, before, -32021, None),
            (new, after, -32021, None),
            (new, before, -32042, Some(-32602)),
            (old, before, -32042, None),
            (old, after, 7, None),
        ] {
            let got = code_of(convert_error(client, server, &read, &error(code, URI)));
            assert_eq!(got, wanted, "{client:?} {server:?} {code}");
        }
        // An error of other params, or of another method, is no missing resource.
        let other = error(-32602, r#"{"uri":"c:d"}"#);
        assert_eq!(convert_error(old, after, &read, &other), None);
        let tool = call("tools/call", URI);
        assert_eq!(convert_error(old, after, &tool, &error(-32602, URI)), None);
        assert_eq!(convert_error(new, before, &tool, &error(-32002, URI)), None);
    }

    #[test]
    fn urls_are_asked_for_by_a_result_where_the_client_can_open_them() {
        const URLS: &str = r#"{"elicitations":[{"mode":"url","elicitationId":"e","url":"https://a/","message":"m"},{"mode":"url"}]}"#;
        let (client, server) = (ClientRevision::Stateless, ServerEra::Sessions);
        let meta = |declared: &str| {
            format!(r#"{{"name":"t","_meta":{{"{CAPABILITIES_KEY}":{declared}}}}}"#)
        };
        let able = meta(r#"{"elicitation":{"url":{}}}"#);
        let asks = convert_error(
            client,
            server,
            &call("tools/call", &able),
            &error(URL_REQUIRED, URLS),
        );
        let Some((BridgeAction::UrlElicitation, ConvertedError::Result(result))) = asks else {
            panic!("{asks:?}");
        };
        let result: Value = serde_json::from_slice(result.as_bytes()).unwrap();
        let wanted = json!({ "resultType": "input_required", "inputRequests": { "url-0": {
            "method": "elicitation/create", "params": { "mode": "url", "url": "https://a/", "message": "m" } } } });
        assert_eq!(result, wanted);
        for (method, params, data) in [
            ("tools/list", &*able, URLS),
            ("tools/call", &*able, r#"{"elicitations":[]}"#),
            ("tools/call", &*able, "[]"),
            ("tools/call", &*meta(r#"{"elicitation":{"form":{}}}"#), URLS),
            ("tools/call", &*meta("{}"), URLS),
            ("tools/call", "{}", URLS),
        ] {
            let got = convert_error(
                client,
                server,
                &call(method, params),
                &error(URL_REQUIRED, data),
            );
            assert_eq!(code_of(got), Some(-32602), "{method} {params}");
        }
    }
}
