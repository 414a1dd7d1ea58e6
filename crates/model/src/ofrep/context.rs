//! The context of an evaluation: the caller that an application asks about.
//!
//! Used by `ofrep` and `ofrep::evaluate`.

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value, json};

use crate::rollout::OTHER;
use dualgauge_patterns::side::Side;

/// The most values of headers in a context.
const MOST_HEADERS: usize = 64;

/// The caller, the side and the headers of a call that an application asks about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvaluationContext {
    /// The name of the client; [`OTHER`] by default.
    pub client: String,
    /// The key of the caller within its client. An empty key means that the caller has none.
    pub targeting_key: Option<String>,
    /// The side of the call; by default the side from which the route accepts calls, REST first.
    pub side: Option<Side>,
    /// The headers of the call.
    pub headers: HeaderMap,
}

impl Default for EvaluationContext {
    fn default() -> EvaluationContext {
        EvaluationContext {
            client: OTHER.to_owned(),
            targeting_key: None,
            side: None,
            headers: HeaderMap::new(),
        }
    }
}

/// The reason why there is no value. The text is for the author of the application.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvaluationFault {
    /// The body is not a JSON object.
    #[error("the body is not a JSON object: {0}")]
    Parse(String),
    /// The context has a member that cannot be used.
    #[error("{0}")]
    Context(String),
    /// The value depends on the key of the caller, which is missing.
    #[error(
        "a percentage decides for this client: send the key of the caller as `targetingKey`, or an empty one for a caller without key"
    )]
    TargetingKey,
    /// No flag has this key.
    #[error("no flag has this key; keys are `stage:ROUTE`, `new:ROUTE` and `flag:NAME`")]
    NotFound,
}

impl EvaluationFault {
    /// Returns the error code of OpenFeature.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            EvaluationFault::Parse(_) => "PARSE_ERROR",
            EvaluationFault::Context(_) => "INVALID_CONTEXT",
            EvaluationFault::TargetingKey => "TARGETING_KEY_MISSING",
            EvaluationFault::NotFound => "FLAG_NOT_FOUND",
        }
    }
}

impl EvaluationContext {
    /// Reads the body of a request, such as `{"context": {"targetingKey": "device-7", "client": "ios-app"}}`. An empty
    /// body has an empty context. Other members are attributes that no flag uses.
    ///
    /// # Errors
    /// [`EvaluationFault::Parse`] or [`EvaluationFault::Context`].
    pub fn parse(body: &[u8]) -> Result<EvaluationContext, EvaluationFault> {
        if body.is_empty() {
            return Ok(EvaluationContext::default());
        }
        // The text of the error would repeat values of the body, which may be secrets.
        let request: Map<String, Value> = serde_json::from_slice(body).map_err(|error| {
            EvaluationFault::Parse(format!("line {}, column {}", error.line(), error.column()))
        })?;
        match request.get("context") {
            None | Some(Value::Null) => Ok(EvaluationContext::default()),
            Some(Value::Object(context)) => read(context),
            Some(_) => Err(wrong("`context` is not an object")),
        }
    }

    /// Returns the body of a request with this context.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut headers = Map::new();
        for name in self.headers.keys() {
            let values = self.headers.get_all(name).iter();
            let values = values.filter_map(|value| value.to_str().ok());
            headers.insert(name.as_str().to_owned(), values.collect());
        }
        json!({"context": {
            "client": self.client,
            "targetingKey": self.targeting_key,
            "side": self.side.map(Side::as_str),
            "headers": headers,
        }})
    }
}

fn wrong(what: impl Into<String>) -> EvaluationFault {
    EvaluationFault::Context(what.into())
}

fn read(context: &Map<String, Value>) -> Result<EvaluationContext, EvaluationFault> {
    let side = text(context, "side")?.map(|word| {
        let side = Side::ALL.into_iter().find(|side| side.as_str() == word);
        side.ok_or_else(|| wrong("`side` is neither `rest` nor `rpc`"))
    });
    let headers = match context.get("headers") {
        None | Some(Value::Null) => HeaderMap::new(),
        Some(Value::Object(members)) => read_headers(members)?,
        Some(_) => return Err(wrong("`headers` is not an object")),
    };
    Ok(EvaluationContext {
        client: text(context, "client")?.unwrap_or(OTHER).to_owned(),
        targeting_key: text(context, "targetingKey")?.map(str::to_owned),
        side: side.transpose()?,
        headers,
    })
}

fn text<'c>(
    context: &'c Map<String, Value>,
    name: &str,
) -> Result<Option<&'c str>, EvaluationFault> {
    match context.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(wrong(format!("`{name}` is not a string"))),
    }
}

/// Reads an object of strings, or of lists of strings for repeated headers. Errors omit the values, which may be secrets.
fn read_headers(members: &Map<String, Value>) -> Result<HeaderMap, EvaluationFault> {
    let mut headers = HeaderMap::new();
    for (name, value) in members {
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| wrong("`headers` has a member that is not a header name"))?;
        let several = value.as_array().map(Vec::as_slice);
        for value in several.unwrap_or(std::slice::from_ref(value)) {
            let value = value
                .as_str()
                .and_then(|text| HeaderValue::from_str(text).ok());
            let value =
                value.ok_or_else(|| wrong(format!("the header `{name}` is not a header value")))?;
            if headers.len() == MOST_HEADERS {
                return Err(wrong(format!(
                    "`headers` has more than {MOST_HEADERS} values"
                )));
            }
            headers.append(name.clone(), value);
        }
    }
    Ok(headers)
}
