//! Requests of a server with sessions as input that a stateless client supplies (MCP 2026-07-28, "Multi Round-Trip
//! Requests").
//!
//! The reverse of [`super::InputRound`]: a call that the server still works on appears to the client as a result that
//! asks for input, and the client's retry as the response to the server. Laws: params, results and errors keep their
//! bytes; the server gets its own id back.
//!
//! Used by `mcp` and `gateway`.

use bytes::Bytes;

use super::input::{RESPONSES, STATE};
use crate::jsonrpc::{self, ErrorObject, RequestId, ResponseReply, parse_response};
use dualgauge_patterns::json::Json;
use dualgauge_patterns::rope::{Rope, RopeWriter};

/// The start of each request state of the proxy, which tells it from those of servers.
const STATE_PREFIX: &str = "dualgauge-input-";
/// The key of the only request of a result.
const KEY: &str = "request";

/// A request of a server that waits for the client.
#[derive(Debug, Clone)]
pub struct OpenRequest {
    id: RequestId,
    method: Json,
    params: Option<Json>,
}

impl OpenRequest {
    /// Reads a request with this id. Returns `None` if it is nested too deeply.
    #[must_use]
    pub fn new(id: RequestId, message: Bytes, depth: u16) -> Option<OpenRequest> {
        let message = Json::parse(message, depth).ok()?;
        Some(OpenRequest {
            id,
            method: message.member("method")?,
            params: message.member("params"),
        })
    }

    /// Returns a response with the id `id` that asks a stateless client for the input.
    #[must_use]
    pub fn input_required(&self, id: u64, state: &str) -> Bytes {
        let mut writer = RopeWriter::with_capacity(256);
        writer.copy(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":").as_bytes());
        writer.copy(b"{\"resultType\":\"input_required\",\"inputRequests\":{");
        writer.string(KEY);
        writer.copy(b":{");
        self.write_members(&mut writer);
        writer.copy(b"}},");
        writer.string(STATE);
        writer.push(b':');
        writer.string(state);
        writer.copy(b"}}");
        writer.finish().into_bytes()
    }

    /// Returns the request with an id of the proxy, for a client with a session.
    #[must_use]
    pub fn message(&self, id: &str) -> Bytes {
        let mut writer = RopeWriter::with_capacity(128);
        writer.copy(b"{\"jsonrpc\":\"2.0\",\"id\":");
        writer.string(id);
        writer.push(b',');
        self.write_members(&mut writer);
        writer.push(b'}');
        writer.finish().into_bytes()
    }

    fn write_members(&self, writer: &mut RopeWriter) {
        writer.copy(b"\"method\":");
        writer.value(&self.method);
        if let Some(params) = &self.params {
            writer.copy(b",\"params\":");
            writer.value(params);
        }
    }

    /// Returns the response to the server with the input in the params of a client's retry, if it is there.
    #[must_use]
    pub fn response_of_retry(&self, params: Option<&Json>) -> Option<Bytes> {
        let result = params?.member(RESPONSES)?.member(KEY)?;
        let result = Rope::from(result.into_bytes());
        Some(jsonrpc::result(&self.id, result).into_bytes())
    }

    /// Returns the response to the server with the reply in a response of a client. A response that is not valid
    /// becomes an error.
    #[must_use]
    pub fn response_of_client(&self, response: &Bytes, depth: u16) -> Bytes {
        match parse_response(response, depth).map(|response| response.reply) {
            Ok(ResponseReply::Result(result)) => {
                let result = Rope::from(result.into_bytes());
                jsonrpc::result(&self.id, result).into_bytes()
            }
            Ok(ResponseReply::Error(error)) => jsonrpc::error(&self.id, &error).into_bytes(),
            Err(_) => self.failure("\"the client sent no valid response\""),
        }
    }

    /// Returns an error response to the server; `message` is a JSON string.
    #[must_use]
    pub fn failure(&self, message: &'static str) -> Bytes {
        let error = ErrorObject {
            code: -32603,
            message: Json::literal(message),
            data: None,
        };
        jsonrpc::error(&self.id, &error).into_bytes()
    }
}

/// An event in the life of a call that waits for the input of a stateless client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SuspensionEvent {
    /// The client was asked; the call waits for its retry.
    Suspended,
    /// The retry came.
    Continued,
    /// A retry names no call that waits for its caller.
    Unknown,
    /// Too many calls wait.
    Refused,
}

impl SuspensionEvent {
    /// All events.
    pub const ALL: [SuspensionEvent; 4] = [
        SuspensionEvent::Suspended,
        SuspensionEvent::Continued,
        SuspensionEvent::Unknown,
        SuspensionEvent::Refused,
    ];

    /// Returns the word used in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            SuspensionEvent::Suspended => "suspended",
            SuspensionEvent::Continued => "continued",
            SuspensionEvent::Unknown => "unknown",
            SuspensionEvent::Refused => "refused",
        }
    }
}

/// Returns the notification that a request to a client with a session needs no answer any more (MCP, "Cancellation").
#[must_use]
pub fn withdrawal(id: &str) -> Bytes {
    let mut params = RopeWriter::with_capacity(64);
    params.copy(b"{\"requestId\":");
    params.string(id);
    params.push(b'}');
    jsonrpc::notification("notifications/cancelled", params.finish(), &[]).into_bytes()
}

/// Returns the text of a request state; `unique` must not be guessable.
#[must_use]
pub fn request_state(unique: &str) -> String {
    format!("{STATE_PREFIX}{unique}")
}

/// Returns the request state in the params of a retry, if a proxy wrote it.
#[must_use]
pub fn state_of_retry(params: Option<&Json>) -> Option<String> {
    let state = params?.member(STATE)?.text()?.ok()?;
    state.starts_with(STATE_PREFIX).then_some(state)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn open(id: &Value, params: &Value) -> OpenRequest {
        let message =
            json!({ "jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params });
        let id = RequestId::new(Json::written(id.to_string())).unwrap();
        OpenRequest::new(id, message.to_string().into(), 16).unwrap()
    }

    fn read(text: &Bytes) -> Value {
        serde_json::from_slice(text).unwrap()
    }

    #[test]
    fn a_request_becomes_a_result_that_asks_for_input_and_the_retry_its_response() {
        let request = open(&json!("s-1"), &json!({ "message": "who?", "x": [1.0] }));
        let state = request_state("0f");
        let asked = read(&request.input_required(7, &state));
        let wanted = json!({ "jsonrpc": "2.0", "id": 7, "result": {
            "resultType": "input_required",
            "inputRequests": { "request": { "method": "elicitation/create", "params": { "message": "who?", "x": [1.0] } } },
            "requestState": state,
        } });
        assert_eq!(asked, wanted);
        let given = json!({ "action": "accept", "content": { "n": 1.0 } });
        let retry =
            json!({ "name": "t", "inputResponses": { "request": given }, "requestState": state });
        let params = Json::written(retry.to_string());
        assert_eq!(state_of_retry(Some(&params)), Some(state));
        let response = request.response_of_retry(Some(&params)).unwrap();
        assert_eq!(
            read(&response),
            json!({ "jsonrpc": "2.0", "id": "s-1", "result": given })
        );
    }

    #[test]
    fn a_retry_without_the_input_or_with_a_state_of_a_server_is_none() {
        let request = open(&json!(1), &json!({}));
        for params in [
            json!({}),
            json!({ "inputResponses": {} }),
            json!({ "inputResponses": { "other": {} }, "requestState": "s" }),
            json!({ "inputResponses": 1, "requestState": 2 }),
            json!([]),
        ] {
            let params = Json::written(params.to_string());
            assert_eq!(request.response_of_retry(Some(&params)), None);
            assert_eq!(state_of_retry(Some(&params)), None);
        }
        assert_eq!(state_of_retry(None), None);
    }

    #[test]
    fn a_client_with_a_session_gets_the_request_and_the_server_its_reply() {
        let request = open(&json!(5), &json!({ "message": "m" }));
        let message = read(&request.message("own"));
        let wanted = json!({ "jsonrpc": "2.0", "id": "own", "method": "elicitation/create", "params": { "message": "m" } });
        assert_eq!(message, wanted);
        for reply in [
            json!({ "result": { "a": 1 } }),
            json!({ "error": { "code": -1, "message": "no", "data": [1] } }),
        ] {
            let mut response = reply.clone();
            response["id"] = "own".into();
            response["jsonrpc"] = "2.0".into();
            let mut wanted = response.clone();
            wanted["id"] = 5.into();
            let got = request.response_of_client(&response.to_string().into(), 8);
            assert_eq!(read(&got), wanted);
        }
        let invalid = request.response_of_client(&Bytes::from_static(b"{}"), 8);
        assert_eq!(read(&invalid)["error"]["code"], -32603);
    }

    proptest! {
        /// Any id of a server and any input survive.
        #[test]
        fn the_server_gets_its_own_id_and_the_clients_bytes(
            id in prop_oneof![any::<i64>().prop_map(Value::from), any::<String>().prop_map(Value::from)],
            input in any::<String>(),
        ) {
            let request = open(&id, &json!({ "message": input }));
            let params = Json::written(json!({ "inputResponses": { "request": { "v": input } } }).to_string());
            let response = read(&request.response_of_retry(Some(&params)).unwrap());
            prop_assert_eq!(&response["id"], &id);
            prop_assert_eq!(&response["result"]["v"], &Value::from(input));
        }
    }
}
