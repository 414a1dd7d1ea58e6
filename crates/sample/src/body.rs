//! The body of a request → its members, or the 422 of the web framework. Used by `rest` and `rpc`.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Request, StatusCode};

use crate::json::{self, Fault};
use crate::reply::{self, Reply};
use crate::value::{Dict, Value};

/// One entry of `{"detail":[...]}`.
#[derive(Debug)]
pub(super) struct Problem(Value);

impl Problem {
    /// `at` is the way to the member, below `body`.
    pub(super) fn new(kind: &str, at: &[&str], message: &str, input: &Value) -> Self {
        Problem(Value::dict([
            ("type", kind.into()),
            ("loc", location(at)),
            ("msg", message.into()),
            ("input", input.clone()),
        ]))
    }

    /// A problem that tells more in `ctx`.
    pub(super) fn with_context(
        kind: &str,
        loc: Value,
        message: &str,
        input: Value,
        context: Value,
    ) -> Self {
        Problem(Value::dict([
            ("type", kind.into()),
            ("loc", loc),
            ("msg", message.into()),
            ("input", input),
            ("ctx", context),
        ]))
    }

    fn missing(at: &[&str], input: &Value) -> Self {
        Problem::new("missing", at, "Field required", input)
    }
}

/// Returns the location of a member: `["body", ...]`.
pub(super) fn location(at: &[&str]) -> Value {
    let path = std::iter::once(&"body").chain(at);
    Value::List(path.map(|step| Value::from(*step)).collect())
}

/// Why a body was not taken.
#[derive(Debug)]
pub(super) enum Refusal {
    /// It was understood, and all this is wrong with it.
    Problems(Vec<Problem>),
    /// It says it is JSON, and is not even UTF-8, or nested without end.
    Unreadable,
    /// It says it is no JSON, and the framework fails in saying so.
    Unspeakable,
}

impl Refusal {
    /// The answer of the web framework.
    pub(super) fn into_reply(self) -> Reply {
        match self {
            Refusal::Problems(problems) => {
                let detail: Vec<Value> = problems.into_iter().map(|problem| problem.0).collect();
                reply::detail(StatusCode::UNPROCESSABLE_ENTITY, detail.into())
            }
            Refusal::Unreadable => {
                let refusal = "There was an error parsing the body".into();
                reply::detail(StatusCode::BAD_REQUEST, refusal)
            }
            Refusal::Unspeakable => reply::internal_error(),
        }
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Refusal::Problems(vec![problem])
    }
}

/// Reads the body as an object, whatever its members.
pub(super) fn read(request: &Request<Bytes>) -> Result<Dict, Refusal> {
    let body = request.body();
    if body.is_empty() {
        return Err(Problem::missing(&[], &Value::None).into());
    }
    let value = if is_json(request.headers()) {
        read_json(body)?
    } else {
        // Not opened at all: the model then finds a text where it wants an object.
        let text = str::from_utf8(body).map_err(|_| Refusal::Unspeakable)?;
        Value::from(text)
    };
    if let Value::Dict(members) = value {
        return Ok(members);
    }
    let message = "Input should be a valid dictionary or object to extract fields from";
    Err(Problem::new("model_attributes_type", &[], message, &value).into())
}

fn read_json(body: &[u8]) -> Result<Value, Refusal> {
    let text = str::from_utf8(body).map_err(|_| Refusal::Unreadable)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    json::parse(text).map_err(|fault| match fault {
        Fault::TooDeep => Refusal::Unreadable,
        Fault::Broken { message, place } => Refusal::from(Problem::with_context(
            "json_invalid",
            Value::List(vec!["body".into(), place.into()]),
            "JSON decode error",
            Value::dict([]),
            Value::dict([("error", message.into())]),
        )),
    })
}

/// `application/json`, or a format that says it is built on it, such as `application/problem+json`.
fn is_json(headers: &HeaderMap) -> bool {
    let content_type = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let Some(content_type) = content_type else {
        return false;
    };
    let media_type = content_type.split(';').next().unwrap_or_default();
    let media_type = media_type.trim().to_ascii_lowercase();
    media_type
        .strip_prefix("application/")
        .is_some_and(|subtype| subtype == "json" || subtype.ends_with("+json"))
}

/// A required text.
pub(super) fn text(members: &Dict, name: &str) -> Result<String, Problem> {
    match members.get(name) {
        Some(Value::Text(text)) => Ok(text.clone()),
        Some(other) => {
            let message = "Input should be a valid string";
            Err(Problem::new("string_type", &[name], message, other))
        }
        None => {
            let whole = Value::Dict(members.clone());
            Err(Problem::missing(&[name], &whole))
        }
    }
}

/// A required object.
pub(super) fn object(members: &Dict, name: &str) -> Result<Dict, Problem> {
    match members.get(name) {
        Some(Value::Dict(dict)) => Ok(dict.clone()),
        Some(other) => {
            let message = "Input should be a valid dictionary";
            Err(Problem::new("dict_type", &[name], message, other))
        }
        None => {
            let whole = Value::Dict(members.clone());
            Err(Problem::missing(&[name], &whole))
        }
    }
}
