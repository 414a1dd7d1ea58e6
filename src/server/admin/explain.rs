//! Decoding of a hypothetical call for `explain`, from a JSON body or a query. Used by `admin::response`.

use std::net::IpAddr;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HOST};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use serde::Serialize;
use serde_json::Value;

use crate::server::admin::decode::{BodyProblem, Decoder, JsonObject};
use crate::server::admin::problem::AdminProblem;
use dualgauge_model::explain::Explanation;
use dualgauge_patterns::json::{Json, JsonKind, kind_of};
use dualgauge_patterns::percent::{Plus, decode};
use dualgauge_transport::wire::encode_raw;

/// The maximum nesting depth: that of served calls, plus the enclosing body.
const DEPTH: u16 = 128;

/// A call to explain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HypotheticalCall {
    /// The method.
    pub method: Method,
    /// The path and query; if absent, the first path of the JSON-RPC face.
    pub target: Option<Uri>,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// The client address, if given.
    pub from: Option<IpAddr>,
}

/// The output of `dualgauge explain --format json`: one request without a name.
#[derive(Debug, Serialize)]
pub(super) struct Explained {
    name: Option<String>,
    explanations: Vec<Explanation>,
}

impl Explained {
    pub(super) fn new(explanations: Vec<Explanation>) -> [Explained; 1] {
        [Explained {
            name: None,
            explanations,
        }]
    }
}

/// Reads `{"method": "GET", "target": "/items/7", "headers": {"x-client-id": "ios-1"}}`.
pub(super) fn body(text: &Bytes) -> Result<HypotheticalCall, Vec<BodyProblem>> {
    let known = ["method", "target", "headers", "body", "from"];
    let mut object = JsonObject::read(text, &known, DEPTH)?;
    let method = object.optional("method", METHOD);
    let target = object.optional("target", TARGET);
    let headers = object.optional("headers", HEADERS).unwrap_or_default();
    let body = object.optional("body", BODY).unwrap_or_default();
    let from = object.optional("from", FROM);
    if target.is_none() && body.is_empty() && object.problems.is_empty() {
        let what = "give a `target`, or the `body` of an RPC call";
        object.problems.push(BodyProblem::new("target", what));
    }
    if !object.problems.is_empty() {
        return Err(object.problems);
    }
    let usual = if body.is_empty() {
        Method::GET
    } else {
        Method::POST
    };
    Ok(HypotheticalCall {
        method: method.unwrap_or(usual),
        target,
        headers: completed(headers, &body),
        body,
        from,
    })
}

/// Reads `call=GET /items/7&header=x-client-id: ios-1&from=10.0.0.1`.
pub(super) fn query(query: Option<&str>) -> Result<HypotheticalCall, AdminProblem> {
    let (mut call, mut headers, mut from) = (None, HeaderMap::new(), None);
    let pairs = query.unwrap_or_default().split('&');
    for pair in pairs.filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = decode(value, Plus::Space).map_err(|error| wrong(error.to_string()))?;
        let twice = match name {
            "call" => call.replace(line(&value)?).is_some(),
            "header" => {
                let (name, value) = value.split_once(':').unwrap_or((&value, ""));
                add(&mut headers, name, value.trim()).map_err(wrong)?;
                false
            }
            "from" => from.replace(address(&value).map_err(wrong)?).is_some(),
            _ => return Err(wrong("unknown parameter; known: `call`, `header`, `from`")),
        };
        if twice {
            return Err(wrong(format!("`{name}` is given twice")));
        }
    }
    let (method, target) = call.ok_or_else(|| wrong("write `call=GET /path`"))?;
    Ok(HypotheticalCall {
        method,
        target: Some(target),
        headers: completed(headers, &Bytes::new()),
        body: Bytes::new(),
        from,
    })
}

/// Reads `GET /items/7`, or the target alone.
fn line(text: &str) -> Result<(Method, Uri), AdminProblem> {
    let (word, path) = text.split_once(' ').unwrap_or(("GET", text));
    Ok((method(word).map_err(wrong)?, target(path).map_err(wrong)?))
}

fn wrong(detail: impl Into<String>) -> AdminProblem {
    AdminProblem::new(StatusCode::BAD_REQUEST, detail)
}

/// Adds the headers that every client sends.
fn completed(mut headers: HeaderMap, body: &Bytes) -> HeaderMap {
    if !body.is_empty() && !headers.contains_key(CONTENT_TYPE) {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    if !headers.contains_key(HOST) {
        headers.insert(HOST, HeaderValue::from_static("localhost"));
    }
    headers
}

const METHOD: Decoder<Method> = |text| parse_text(text, method);
const TARGET: Decoder<Uri> = |text| parse_text(text, target);
const FROM: Decoder<IpAddr> = |text| parse_text(text, address);
/// Decodes a string to its text, and any other value to its JSON.
const BODY: Decoder<Bytes> = |text| match kind_of(text) {
    JsonKind::String => parse_text(text, |text| Ok(Bytes::copy_from_slice(text.as_bytes()))),
    JsonKind::Null | JsonKind::Boolean | JsonKind::Number | JsonKind::Array | JsonKind::Object => {
        Ok(Bytes::copy_from_slice(text))
    }
};
/// Decodes an object of strings, or of lists of strings for repeated headers.
const HEADERS: Decoder<HeaderMap> = |text| {
    let plain = |what: String| (what, None);
    let no_headers = || plain("write an object such as `{\"x-client-id\": \"ios-1\"}`".to_owned());
    let values: serde_json::Map<String, Value> =
        serde_json::from_slice(text).map_err(|_| no_headers())?;
    let mut headers = HeaderMap::new();
    for (name, value) in &values {
        let several = value.as_array().map(Vec::as_slice);
        for value in several.unwrap_or(std::slice::from_ref(value)) {
            let value = value.as_str().ok_or_else(no_headers)?;
            add(&mut headers, name, value).map_err(plain)?;
        }
    }
    Ok(headers)
};

fn parse_text<T>(
    text: &[u8],
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<T, (String, Option<String>)> {
    let json = Json::parse(Bytes::copy_from_slice(text), DEPTH).ok();
    let word = json.as_ref().and_then(|json| json.text()?.ok());
    let word = word.ok_or_else(|| ("no string".to_owned(), None))?;
    read(&word).map_err(|what| (what, None))
}

fn method(text: &str) -> Result<Method, String> {
    Method::from_bytes(text.as_bytes()).map_err(|_| "not an HTTP method".to_owned())
}

fn target(text: &str) -> Result<Uri, String> {
    let path = text
        .starts_with('/')
        .then(|| encode_raw(text).parse::<PathAndQuery>());
    let path = path.and_then(Result::ok);
    path.map(Uri::from).ok_or_else(|| {
        "not a path; write one such as `/items/7?a=1`, percent-encoded where necessary".to_owned()
    })
}

fn address(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| "no address".to_owned())
}

/// Adds a header. Errors omit the value, which may be a secret.
fn add(headers: &mut HeaderMap, name: &str, value: &str) -> Result<(), String> {
    let name = HeaderName::from_bytes(name.trim().as_bytes());
    let name = name.map_err(|_| "not a header name; write `name: value`".to_owned())?;
    if name == CONTENT_ENCODING {
        return Err("the body is not decoded; leave `content-encoding` out".to_owned());
    }
    let value = HeaderValue::from_str(value);
    let value = value.map_err(|_| format!("the value of `{name}` is not a valid header value"))?;
    headers.append(name, value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &'static str) -> Result<HypotheticalCall, Vec<String>> {
        let problems = |problems: Vec<BodyProblem>| {
            let problems = problems.into_iter();
            problems
                .map(|one| format!("{}: {}", one.place, one.message))
                .collect()
        };
        body(&Bytes::from_static(text.as_bytes())).map_err(problems)
    }

    #[test]
    fn a_call_is_read_from_a_body() {
        let call =
            read(r#"{"target":"/items/7?a=1","headers":{"X-A":["1","2"]},"from":"10.0.0.1"}"#);
        let call = call.unwrap();
        assert_eq!(
            (call.method, call.target.unwrap().to_string()),
            (Method::GET, "/items/7?a=1".to_owned())
        );
        assert_eq!(call.headers.get_all("x-a").iter().count(), 2);
        assert_eq!(call.headers["host"], "localhost");
        assert_eq!(call.from, Some(IpAddr::from([10, 0, 0, 1])));
        let call = read(r#"{"body":{"jsonrpc":"2.0","id":1,"method":"tools/list"}}"#).unwrap();
        assert_eq!((call.method, call.target), (Method::POST, None));
        assert_eq!(call.headers["content-type"], "application/json");
        assert_eq!(
            call.body,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#
        );
        let call = read(r#"{"method":"PUT","target":"/a","body":"plain \"text\""}"#).unwrap();
        assert_eq!(
            (call.method, &call.body[..]),
            (Method::PUT, &b"plain \"text\""[..])
        );
    }

    #[test]
    fn every_problem_of_a_body_is_reported_without_header_values() {
        let problems = read(
            r#"{"method":"G T","target":"items","headers":{"authorization":"Bearer \u0000secret"},"from":"here"}"#,
        )
        .unwrap_err();
        assert_eq!(problems.len(), 4, "{problems:?}");
        assert!(!problems.join("").contains("secret"), "{problems:?}");
        assert!(read("{}").unwrap_err()[0].starts_with("target: give a `target`"));
        assert!(read(r#"{"path":"/a"}"#).unwrap_err()[0].starts_with("path: unknown member"));
    }

    #[test]
    fn a_simple_call_is_read_from_a_query() {
        let call = query(Some(
            "call=DELETE%20/a%2520b?x=1&header=x-a:%201&header=x-a:2&from=::1",
        ))
        .unwrap();
        assert_eq!(
            (call.method, call.target.unwrap().to_string()),
            (Method::DELETE, "/a%20b?x=1".to_owned())
        );
        assert_eq!(call.headers.get_all("x-a").iter().count(), 2);
        assert_eq!(query(Some("call=/a")).unwrap().method, Method::GET);
        for wrong in [
            "",
            "call=a",
            "call=/a&call=/b",
            "call=/a&header=:",
            "call=/a&x=1",
            "call=/a&from=x",
        ] {
            assert!(query(Some(wrong)).is_err(), "{wrong}");
        }
    }
}
