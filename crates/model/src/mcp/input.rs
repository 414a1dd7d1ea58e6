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
const ELICITATION: &str = "elicitation/create";
const ELICITATION_ID: &str = "elicitationId";

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

    /// Reads an object of capabilities.
    #[must_use]
    pub fn of_declared(declared: &Json) -> InputCapabilities {
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
        let InputCapabilities(bit) = InputCapabilities::required_by(method, params);
        self.0 & bit != 0
    }

    /// Returns the capability that a request of this method requires of the client; none for an unknown request.
    #[must_use]
    pub fn required_by(method: &str, params: Option<&Json>) -> InputCapabilities {
        InputCapabilities(match method {
            ELICITATION => {
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
        })
    }

    /// Returns the capabilities that the requests of a result require of the client.
    #[must_use]
    pub fn required_by_result(result: &Json) -> InputCapabilities {
        let asked = result.member("inputRequests");
        let asked = asked.filter(|asked| asked.kind() == JsonKind::Object);
        let members = asked.as_ref().and_then(|asked| asked.open().ok());
        let requests = members.into_iter().flatten().take(MOST_REQUESTS);
        requests.fold(InputCapabilities::default(), |all, member| {
            let request = asked.as_ref().map(|asked| asked.piece(member.value));
            let method = request
                .as_ref()
                .and_then(|request| request.member("method")?.text()?.ok());
            let params = request.and_then(|request| request.member("params"));
            let method = method.unwrap_or_default();
            all.with(InputCapabilities::required_by(&method, params.as_ref()))
        })
    }

    /// Returns both sets of capabilities together.
    #[must_use]
    pub const fn with(self, others: InputCapabilities) -> InputCapabilities {
        InputCapabilities(self.0 | others.0)
    }

    /// Returns those of these capabilities that are not among `others`.
    #[must_use]
    pub const fn without(self, others: InputCapabilities) -> InputCapabilities {
        InputCapabilities(self.0 & !others.0)
    }

    /// Returns the names of the capabilities, for messages.
    #[must_use]
    pub fn names(self) -> Vec<&'static str> {
        let all = [
            (InputCapabilities::FORM, "elicitation"),
            (InputCapabilities::URL, "elicitation.url"),
            (InputCapabilities::SAMPLING, "sampling"),
            (InputCapabilities::ROOTS, "roots"),
        ];
        let own = all.into_iter().filter(|(bit, _)| self.0 & bit != 0);
        own.map(|(_, name)| name).collect()
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

impl InputRequest {
    /// Returns true if the request lacks the id that a client with sessions requires. In 2025-11-25, "Elicitation", a
    /// request to open a URL has an id; 2026-07-28 has none.
    fn lacks_elicitation_id(&self) -> bool {
        let Some(params) = self.params.as_ref().filter(|_| self.method == ELICITATION) else {
            return false;
        };
        let mode = params.member("mode").and_then(|mode| mode.text()?.ok());
        mode.as_deref() == Some("url") && !params.has(ELICITATION_ID)
    }
}

/// Writes the params of a request with this id of the elicitation.
fn with_elicitation_id(writer: &mut RopeWriter, params: &Json, id: &str) {
    writer.push(b'{');
    writer.string(ELICITATION_ID);
    writer.push(b':');
    writer.string(id);
    for member in params.open().unwrap_or_default() {
        writer.push(b',');
        writer.string(&member.name);
        writer.push(b':');
        writer.value(&params.piece(member.value));
    }
    writer.push(b'}');
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
            match request.lacks_elicitation_id() {
                true => with_elicitation_id(&mut writer, params, id),
                false => writer.value(params),
            }
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
mod tests;
