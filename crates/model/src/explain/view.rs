//! The parts of an explanation: texts for people and programs, free of secrets.
//!
//! Used by `explain::rest` and `explain::stream`.

use std::borrow::Cow;

use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::outcome::{BodyPattern, OutcomeRow, RpcReplyPattern};
use crate::rollout::Proof;
use crate::route::Route;
use dualgauge_patterns::pattern::BoundValue;
use dualgauge_patterns::side::Side;

/// A static text, or the same text parsed from the output of another process.
pub(super) type Term = Cow<'static, str>;

/// The explanation of one call.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Explanation {
    /// The side that the client called.
    #[serde(with = "crate::side_word")]
    pub side: Side,
    /// The request line: `GET /items/7`.
    pub request: String,
    /// The RPC message: `items/read, id 7`; with its index in a batch.
    pub message: Option<String>,
    /// The name of the client.
    pub client: String,
    /// The proof of the client's identity: `authenticated`, `declared` or `none`.
    pub proof: Term,
    /// The reason why the bearer token of the call proves nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Term>,
    /// The route of the call.
    pub route: Option<NamedRoute>,
    /// The routes that come before it by `after`, each with the reason why it does not fit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_front: Vec<String>,
    /// The stage, with the reason.
    pub decision: Option<Decided>,
    /// The values of the route's holes in the call.
    pub holes: Vec<HoleValue>,
    /// The eras of an MCP client and its server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bridge: Option<ExplainedBridge>,
    /// The login of the link that carries the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login: Option<String>,
    /// The request to the upstream.
    pub sends: Option<SentRequest>,
    /// The members and query parameters that the route has no place for.
    pub dropped: Vec<String>,
    /// The rows that may match the answer, in the order of matching; the built-in table follows them.
    pub outcomes: Vec<RowLine>,
    /// The treatment of a response that streams, if the route says something about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<String>,
    /// The failure that the caller gets.
    pub refused: Option<Refusal>,
    /// The answer to the caller, for the given reply.
    pub answer: Option<ExplainedAnswer>,
}

impl Default for Explanation {
    fn default() -> Self {
        Explanation {
            side: Side::Rest,
            request: String::new(),
            message: None,
            client: String::new(),
            proof: Proof::None.as_str().into(),
            token: None,
            route: None,
            in_front: Vec::new(),
            decision: None,
            holes: Vec::new(),
            bridge: None,
            login: None,
            sends: None,
            dropped: Vec::new(),
            outcomes: Vec::new(),
            stream: None,
            refused: None,
            answer: None,
        }
    }
}

/// A route, as the table writes it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NamedRoute {
    /// Its name.
    pub name: String,
    /// Its REST side.
    pub rest: String,
    /// Its RPC side.
    pub rpc: String,
}

impl NamedRoute {
    pub(super) fn new(route: &Route) -> NamedRoute {
        NamedRoute {
            name: route.name.clone(),
            rest: route.rest.clone(),
            rpc: route.rpc.clone(),
        }
    }
}

/// A decision.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Decided {
    /// The stage.
    pub stage: Term,
    /// The rule, as the log names it.
    pub why: String,
    /// The flag of the rule, if it has one.
    #[serde(skip)]
    pub flag: Option<String>,
    /// The change at run time that led to the decision, for people; `None` where the files led to it, or where only the
    /// files are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<String>,
    /// The shadow call, sent only to compare; `None` where the stage compares nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<Term>,
    /// The flags that were tried before.
    pub passed_over: Vec<PassedOver>,
}

/// A flag with a percentage that did not take a call.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PassedOver {
    /// The name of the flag.
    pub flag: String,
    /// The percentage of the flag.
    pub percent: String,
    /// The reason: `tripped`, `bucket`, `held_back` or `no_key`.
    pub why: Term,
    /// The caller's bucket; `None` for a caller without a key.
    pub bucket: Option<u32>,
    /// The change of the flag at run time, for people; `None` as above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<String>,
}

/// A hole and its value.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HoleValue {
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// The value; `None` where it is absent.
    pub value: Option<Value>,
}

/// The eras of an MCP client and its server (MCP 2026-07-28 and before).
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ExplainedBridge {
    /// The era of the client.
    pub client: Term,
    /// The era of the server.
    pub server: Term,
    /// The conversions that may apply to the call, each with its word in metrics and logs.
    pub conversions: Vec<Term>,
}

/// A request to an upstream.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SentRequest {
    /// The name of the upstream.
    pub upstream: String,
    /// Its host and port.
    pub authority: String,
    /// The HTTP method.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// The headers that the proxy writes, without hop-by-hop headers.
    #[serde(serialize_with = "headers", deserialize_with = "read_headers")]
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Option<Value>,
    /// A note for people.
    pub note: Option<Term>,
}

/// A row that may match the answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RowLine {
    /// The key of the row in the route table.
    pub key: String,
    /// Its REST side.
    pub rest: String,
    /// Its RPC side.
    pub rpc: String,
}

/// A failure, as the caller gets it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// The RPC code.
    pub code: i32,
    /// The reason.
    pub reason: Term,
    /// The party at fault.
    pub blame: Term,
    /// The message.
    pub message: String,
    /// The body; empty for a notification.
    pub document: Value,
}

/// The answer to a reply.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ExplainedAnswer {
    /// The row that the reply matches; `None` for the built-in table.
    pub row: Option<RowLine>,
    /// The HTTP status.
    pub status: u16,
    /// The headers.
    #[serde(serialize_with = "headers", deserialize_with = "read_headers")]
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Option<Value>,
    /// The number of members that no pattern names.
    pub dropped: usize,
    /// A note for people.
    pub note: Option<Term>,
}

/// A value: JSON in its original bytes, or a text that is not JSON.
#[derive(Debug, Clone)]
pub struct Value(String);

impl Value {
    pub(super) fn from_text(text: String) -> Value {
        Value(text)
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serde_json::from_str::<&RawValue>(&self.0) {
            Ok(raw) => raw.serialize(serializer),
            Err(_) => serializer.serialize_str(&self.0),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        // `""` stands for the empty text: the document of a notification.
        let text = raw.get();
        Ok(Value(if text == "\"\"" {
            String::new()
        } else {
            text.to_owned()
        }))
    }
}

fn read_headers<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<(String, String)>, D::Error> {
    #[derive(Deserialize)]
    struct Header {
        name: String,
        value: String,
    }
    let headers = Vec::<Header>::deserialize(deserializer)?;
    Ok(headers
        .into_iter()
        .map(|header| (header.name, header.value))
        .collect())
}

/// Serializes headers as a list, because a name may occur twice.
fn headers<S: Serializer>(headers: &[(String, String)], serializer: S) -> Result<S::Ok, S::Error> {
    struct Header<'h>(&'h str, &'h str);
    impl Serialize for Header<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut header = serializer.serialize_struct("Header", 2)?;
            header.serialize_field("name", self.0)?;
            header.serialize_field("value", self.1)?;
            header.end()
        }
    }
    serializer.collect_seq(headers.iter().map(|(name, value)| Header(name, value)))
}

/// Returns the text of a bound value; `None` where nothing is bound.
pub(super) fn text_of(bound: &BoundValue) -> Option<String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match bound {
        BoundValue::Unbound | BoundValue::Absent => None,
        BoundValue::Value(json) => Some(text(json.as_bytes())),
        BoundValue::Members(members) => Some(text(members.whole().as_bytes())),
        BoundValue::Each(list) => {
            let elements = list.iter();
            let elements = elements.map(|bound| text_of(bound).unwrap_or("null".into()));
            Some(format!("[{}]", elements.collect::<Vec<_>>().join(",")))
        }
    }
}

/// Returns the text of a string, or the JSON text of any other value.
pub(super) fn plain_text_of(bound: &BoundValue) -> String {
    let text = match bound {
        BoundValue::Value(json) => json.text().and_then(Result::ok),
        BoundValue::Unbound | BoundValue::Absent | BoundValue::Members(_) | BoundValue::Each(_) => {
            None
        }
    };
    text.or_else(|| text_of(bound)).unwrap_or_default()
}

impl RowLine {
    /// Renders a row for people.
    #[must_use]
    pub fn new(row: &OutcomeRow) -> RowLine {
        let rest = match &row.rest.body {
            BodyPattern::Nothing => String::new(),
            BodyPattern::Anything => " any body".to_owned(),
            BodyPattern::Json(pattern) => format!(" {}", pattern.to_notation()),
            BodyPattern::Text(words) => format!(" text {:?}", words.to_notation()),
        };
        let rpc = match &row.rpc {
            RpcReplyPattern::Result(pattern) => format!("result {}", pattern.to_notation()),
            RpcReplyPattern::Error {
                code,
                message,
                data,
            } => {
                let part = |name: &str, pattern: &Option<dualgauge_patterns::pattern::Pattern>| {
                    let pattern = pattern.as_ref();
                    pattern.map_or(String::new(), |pattern| {
                        format!("{name}{}", pattern.to_notation())
                    })
                };
                let (message, data) = (part(" ", message), part(" data ", data));
                format!("error {}{message}{data}", code.to_notation())
            }
        };
        RowLine {
            key: row.key.clone(),
            rest: format!("{}{rest}", row.rest.status.to_notation()),
            rpc,
        }
    }
}
