//! Input that a stateless server requires of a client with sessions (MCP 2026-07-28, "Multi Round-Trip Requests").
//!
//! [`InputRound`] is a sans-io state machine: it turns a result that asks for input into requests to the client, takes
//! the client's responses in any order, and yields the retry for the server. Laws: a client gets only requests that it
//! declared a capability for; the server gets the results byte for byte, and its own state unchanged.
//!
//! Used by `mcp` and `gateway`.

use bytes::Bytes;

use super::envelope::CAPABILITIES_KEY;
use super::result::{INTERACTIVE, may_ask};
use crate::jsonrpc::{Call, ResponseReply, parse_response};
use dualgauge_patterns::json::{Json, JsonKind};
use dualgauge_patterns::rope::RopeWriter;

/// The maximum number of requests in one round.
const MOST_REQUESTS: usize = 16;
pub(super) const RESPONSES: &str = "inputResponses";
pub(super) const STATE: &str = "requestState";

/// The capabilities of a client that allow requests to it, as bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InputCapabilities(u8);

impl InputCapabilities {
    const FORM: u8 = 1;
    const URL: u8 = 2;
    const SAMPLING: u8 = 4;
    const ROOTS: u8 = 8;

    /// Reads the capabilities in the params of `initialize`. An elicitation capability without a mode means forms.
    #[must_use]
    pub fn of_initialize(params: Option<&Json>) -> InputCapabilities {
        let declared = params.and_then(|params| params.member("capabilities"));
        declared.map_or_else(InputCapabilities::default, |declared| {
            InputCapabilities::of_declared(&declared)
        })
    }

    /// Reads the capabilities that a stateless call declares for requests during it. Calls of most methods allow none.
    #[must_use]
    pub fn of_call(call: &Call) -> InputCapabilities {
        let params = call.params.as_ref();
        let params = params.filter(|_| InputCapabilities::is_interactive(&call.method));
        let meta = params.and_then(|params| params.member("_meta"));
        let declared = meta.and_then(|meta| meta.member(CAPABILITIES_KEY));
        declared.map_or_else(InputCapabilities::default, |declared| {
            InputCapabilities::of_declared(&declared)
        })
    }

    /// Returns true if the result of a method may ask for input.
    #[must_use]
    pub fn is_interactive(method: &str) -> bool {
        INTERACTIVE.contains(&method)
    }

    fn of_declared(declared: &Json) -> InputCapabilities {
        let mut bits = 0;
        if let Some(elicitation) = declared.member("elicitation") {
            let url = elicitation.has("url");
            bits |= if url { InputCapabilities::URL } else { 0 };
            let form = !url || elicitation.has("form");
            bits |= if form { InputCapabilities::FORM } else { 0 };
        }
        for (name, bit) in [
            ("sampling", InputCapabilities::SAMPLING),
            ("roots", InputCapabilities::ROOTS),
        ] {
            bits |= if declared.has(name) { bit } else { 0 };
        }
        InputCapabilities(bits)
    }

    /// Returns the capabilities as a stateless request declares them.
    #[must_use]
    pub fn to_json(self) -> Json {
        let has = |bit| self.0 & bit != 0;
        let mut modes = Vec::new();
        for (bit, mode) in [
            (InputCapabilities::FORM, "\"form\":{}"),
            (InputCapabilities::URL, "\"url\":{}"),
        ] {
            modes.extend(has(bit).then_some(mode));
        }
        let elicitation = format!("\"elicitation\":{{{}}}", modes.join(","));
        let mut all = Vec::new();
        all.extend((!modes.is_empty()).then_some(&*elicitation));
        all.extend(has(InputCapabilities::SAMPLING).then_some("\"sampling\":{}"));
        all.extend(has(InputCapabilities::ROOTS).then_some("\"roots\":{}"));
        Json::written(format!("{{{}}}", all.join(",")))
    }

    /// Returns the suffix of a session id that keeps the capabilities, so that the proxy need not store them. It is
    /// empty for a client without capabilities.
    #[must_use]
    pub fn to_suffix(self) -> String {
        match self.0 {
            0 => String::new(),
            bits => format!("-c{bits:x}"),
        }
    }

    /// Reads the suffix of a session id; without one, the client has no capabilities.
    #[must_use]
    pub fn of_session(session: &str) -> InputCapabilities {
        // The program of the client may follow; see `ClientInfo::session_suffix`.
        let id = session.split('.').next().unwrap_or_default();
        let bits = id.rsplit_once("-c").map(|(_, bits)| bits);
        let bits = bits.and_then(|bits| u8::from_str_radix(bits, 16).ok());
        InputCapabilities(bits.unwrap_or_default())
    }

    /// Returns true if the client answers a request of this method.
    #[must_use]
    pub fn allow(self, method: &str, params: Option<&Json>) -> bool {
        let bit = match method {
            "elicitation/create" => {
                let mode = params.and_then(|params| params.member("mode")?.text()?.ok());
                match mode.as_deref() {
                    None | Some("form") => InputCapabilities::FORM,
                    Some("url") => InputCapabilities::URL,
                    Some(_) => 0,
                }
            }
            "sampling/createMessage" => InputCapabilities::SAMPLING,
            "roots/list" => InputCapabilities::ROOTS,
            _ => 0,
        };
        self.0 & bit != 0
    }
}

/// The progress of one round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputProgress {
    /// More responses are needed.
    Waiting,
    /// All responses are there.
    Complete,
    /// The client answered a request with an error, which ends the call.
    Refused(Bytes),
}

/// A request to the client.
#[derive(Debug, Clone)]
struct InputRequest {
    /// The server's key.
    key: String,
    method: String,
    params: Option<Json>,
    result: Option<Json>,
}

/// One round of requests to a client.
#[derive(Debug, Clone)]
pub struct InputRound {
    requests: Vec<InputRequest>,
    /// The server's state, as written.
    state: Option<Json>,
}

impl InputRound {
    /// Returns false if a response certainly asks for no input.
    #[must_use]
    pub fn may_begin(response: &Bytes) -> bool {
        may_ask(response)
    }

    /// Reads a result that asks for input. Returns `None` if it asks for none, is malformed, asks for too much, or
    /// asks for something that the client did not declare.
    #[must_use]
    pub fn of_result(
        method: &str,
        result: &Json,
        capabilities: InputCapabilities,
    ) -> Option<InputRound> {
        if !INTERACTIVE.contains(&method)
            || result.member("resultType")?.text()?.ok()? != "input_required"
        {
            return None;
        }
        let state = result.member(STATE);
        let asked = result.member("inputRequests");
        let asked = asked.unwrap_or(Json::literal("{}"));
        if asked.kind() != JsonKind::Object {
            return None;
        }
        let members = asked.open().ok()?;
        if members.len() > MOST_REQUESTS || (members.is_empty() && state.is_none()) {
            return None;
        }
        let mut requests = Vec::with_capacity(members.len());
        for member in members {
            let request = asked.piece(member.value);
            let method = request.member("method")?.text()?.ok()?;
            let params = request.member("params");
            if !capabilities.allow(&method, params.as_ref()) {
                return None;
            }
            requests.push(InputRequest {
                key: member.name.to_string(),
                method,
                params,
                result: None,
            });
        }
        Some(InputRound { requests, state })
    }

    /// Returns the number of requests.
    #[must_use]
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Returns true if the server wants a retry without input.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Returns the message of the request at an index, with an id of the proxy.
    #[must_use]
    pub fn message(&self, index: usize, id: &str) -> Option<Bytes> {
        let request = self.requests.get(index)?;
        let mut writer = RopeWriter::with_capacity(128);
        writer.copy(b"{\"jsonrpc\":\"2.0\",\"id\":");
        writer.string(id);
        writer.copy(b",\"method\":");
        writer.string(&request.method);
        if let Some(params) = &request.params {
            writer.copy(b",\"params\":");
            writer.value(params);
        }
        writer.copy(b"}");
        Some(writer.finish().into_bytes())
    }

    /// Takes the client's response to the request at an index.
    pub fn take(&mut self, index: usize, response: &Bytes, depth: u16) -> InputProgress {
        let reply = parse_response(response, depth).map(|response| response.reply);
        match reply {
            Ok(ResponseReply::Result(result)) => {
                if let Some(request) = self.requests.get_mut(index) {
                    request.result = Some(result);
                }
            }
            Ok(ResponseReply::Error(_)) | Err(_) => {
                return InputProgress::Refused(response.clone());
            }
        }
        self.progress()
    }

    /// Returns the progress.
    #[must_use]
    pub fn progress(&self) -> InputProgress {
        match self.requests.iter().all(|request| request.result.is_some()) {
            true => InputProgress::Complete,
            false => InputProgress::Waiting,
        }
    }

    /// Returns the call with the results and the server's state. What an earlier round put there is replaced. Returns
    /// `None` if the params are not an object, or while results are missing.
    #[must_use]
    pub fn retry(&self, call: &Call) -> Option<Bytes> {
        let whole = &call.text;
        let members = whole.open().ok()?;
        let range = members.iter().find(|member| member.name == "params");
        let range = range.map(|member| member.value.clone())?;
        let params = whole.piece(range.clone());
        let mut writer = RopeWriter::with_capacity(whole.as_bytes().len() + 256);
        writer.copy(&whole.as_bytes()[..range.start]);
        writer.push(b'{');
        if !self.requests.is_empty() {
            writer.string(RESPONSES);
            writer.copy(b":{");
            for (number, request) in self.requests.iter().enumerate() {
                writer.copy(if number == 0 { b"" } else { b"," });
                writer.string(&request.key);
                writer.push(b':');
                writer.value(request.result.as_ref()?);
            }
            writer.push(b'}');
        }
        if let Some(state) = &self.state {
            writer.copy(if self.requests.is_empty() { b"" } else { b"," });
            writer.string(STATE);
            writer.push(b':');
            writer.value(state);
        }
        for member in params.open().ok()? {
            if member.name == RESPONSES || member.name == STATE {
                continue;
            }
            writer.push(b',');
            writer.string(&member.name);
            writer.push(b':');
            writer.value(&params.piece(member.value));
        }
        writer.push(b'}');
        writer.copy(&whole.as_bytes()[range.end..]);
        Some(writer.finish().into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::jsonrpc::{Incoming, MessageItem, MessageLimits, parse};

    fn call(params: &Value) -> Call {
        let text = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let limits = MessageLimits {
            depth: 16,
            batch: 1,
        };
        match parse(&text.to_string().into(), limits) {
            Ok(Incoming::Single(MessageItem::Call(call))) => call,
            other => panic!("{other:?}"),
        }
    }

    fn written(value: &Value) -> Json {
        Json::written(value.to_string())
    }

    fn able(capabilities: &Value) -> InputCapabilities {
        let params = written(&json!({ "capabilities": capabilities }));
        let able = InputCapabilities::of_initialize(Some(&params));
        // A stateless request declares the same.
        let again = written(
            &json!({ "capabilities": serde_json::from_slice::<Value>(able.to_json().as_bytes()).unwrap() }),
        );
        assert_eq!(InputCapabilities::of_initialize(Some(&again)), able);
        let session = format!("0123{}", able.to_suffix());
        assert_eq!(InputCapabilities::of_session(&session), able);
        let named = format!("{session}.app-c1/2-c3");
        assert_eq!(InputCapabilities::of_session(&named), able);
        able
    }

    fn asks(requests: &Value) -> Json {
        written(
            &json!({ "resultType": "input_required", "inputRequests": requests, "requestState": "s" }),
        )
    }

    #[test]
    fn only_declared_requests_reach_the_client() {
        let form = json!({ "a": { "method": "elicitation/create", "params": { "message": "m" } } });
        let url = json!({ "a": { "method": "elicitation/create", "params": { "mode": "url" } } });
        let sampling = json!({ "a": { "method": "sampling/createMessage", "params": {} } });
        let roots = json!({ "a": { "method": "roots/list" } });
        let both = json!({ "a": form["a"], "b": roots["a"] });
        for (declared, allowed) in [
            (
                json!({ "elicitation": {} }),
                [true, false, false, false, false],
            ),
            (
                json!({ "elicitation": { "url": {} } }),
                [false, true, false, false, false],
            ),
            (
                json!({ "elicitation": { "url": {}, "form": {} } }),
                [true, true, false, false, false],
            ),
            (
                json!({ "sampling": {} }),
                [false, false, true, false, false],
            ),
            (
                json!({ "roots": {}, "elicitation": {} }),
                [true, false, false, true, true],
            ),
            (json!({}), [false; 5]),
        ] {
            let got = [&form, &url, &sampling, &roots, &both].map(|requests| {
                let round = InputRound::of_result("tools/call", &asks(requests), able(&declared));
                round.is_some()
            });
            assert_eq!(got, allowed, "{declared}");
        }
        for none in ["", "x", "0123", "0123-c", "0123-cx", "0123-c100"] {
            let able = InputCapabilities::of_session(none);
            assert_eq!(able, InputCapabilities::default(), "{none}");
        }
    }

    #[test]
    fn what_is_no_request_for_input_begins_no_round() {
        let all = able(&json!({ "roots": {}, "elicitation": {}, "sampling": {} }));
        let roots = json!({ "method": "roots/list" });
        let many: serde_json::Map<String, Value> = (0..=MOST_REQUESTS)
            .map(|number| (number.to_string(), roots.clone()))
            .collect();
        for (method, result) in [
            ("tools/list", asks(&json!({ "a": roots }))),
            ("tools/call", written(&json!({ "resultType": "complete" }))),
            ("tools/call", written(&json!({}))),
            (
                "tools/call",
                written(&json!({ "resultType": "input_required" })),
            ),
            ("tools/call", asks(&json!([]))),
            ("tools/call", asks(&json!({ "a": { "method": "other" } }))),
            ("tools/call", asks(&json!({ "a": 1 }))),
            ("tools/call", asks(&Value::Object(many))),
        ] {
            let round = InputRound::of_result(method, &result, all);
            assert!(round.is_none(), "{method} {result:?}");
        }
        let waits = written(&json!({ "resultType": "input_required", "requestState": "s" }));
        let round = InputRound::of_result("tools/call", &waits, all).unwrap();
        assert_eq!(round.progress(), InputProgress::Complete);
        let retry = round.retry(&call(&json!({ "name": "t" }))).unwrap();
        let retry: Value = serde_json::from_slice(&retry).unwrap();
        assert_eq!(retry["params"], json!({ "name": "t", "requestState": "s" }));
    }

    #[test]
    fn an_error_of_the_client_ends_the_round() {
        let roots = json!({ "a": { "method": "roots/list" } });
        let able = able(&json!({ "roots": {} }));
        let mut round = InputRound::of_result("tools/call", &asks(&roots), able).unwrap();
        let message = round.message(0, "x").unwrap();
        assert_eq!(
            message,
            r#"{"jsonrpc":"2.0","id":"x","method":"roots/list"}"#
        );
        let error: Bytes = r#"{"id":"x","error":{"code":-1,"message":"no"}}"#.into();
        assert_eq!(round.take(0, &error, 8), InputProgress::Refused(error));
        assert!(round.retry(&call(&json!({ "name": "t" }))).is_none());
    }

    proptest! {
        /// Responses come in any order; each is found under the key of its request.
        #[test]
        fn a_retry_has_the_results_of_all_requests(
            (keys, order) in prop::collection::btree_set("[a-z\"\\\\]{1,4}", 1..MOST_REQUESTS)
                .prop_flat_map(|keys| {
                    let keys: Vec<String> = keys.into_iter().collect();
                    let order: Vec<usize> = (0..keys.len()).collect();
                    (Just(keys), Just(order).prop_shuffle())
                })
        ) {
            let request = json!({ "method": "roots/list" });
            let requests: serde_json::Map<String, Value> =
                keys.iter().map(|key| (key.clone(), request.clone())).collect();
            let able = able(&json!({ "roots": {} }));
            let asked = asks(&Value::Object(requests));
            let mut round = InputRound::of_result("tools/call", &asked, able).unwrap();
            let first = call(&json!({ "name": "t", "inputResponses": 1, "requestState": 2 }));
            for (turn, index) in order.iter().enumerate() {
                prop_assert!(round.retry(&first).is_none());
                let response = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"roots":[{index}]}}}}"#);
                let progress = round.take(*index, &response.into(), 8);
                let is_last = turn + 1 == order.len();
                prop_assert_eq!(progress == InputProgress::Complete, is_last);
            }
            let retry: Value = serde_json::from_slice(&round.retry(&first).unwrap()).unwrap();
            prop_assert_eq!(&retry["params"]["name"], "t");
            prop_assert_eq!(&retry["params"]["requestState"], "s");
            let responses = retry["params"]["inputResponses"].as_object().unwrap();
            prop_assert_eq!(responses.len(), keys.len());
            for index in 0..keys.len() {
                let message: Value =
                    serde_json::from_slice(&round.message(index, "x").unwrap()).unwrap();
                prop_assert_eq!(&message["method"], "roots/list");
            }
        }
    }
}
