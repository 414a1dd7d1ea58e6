//! Tool arguments that are repeated in headers (MCP 2026-07-28, "Custom Headers from Tool Parameters").
//!
//! The schemas in `tools/list` name these arguments. Laws: a schema that breaks the rules gets no such headers; an
//! argument that is absent or null has none; every list is bounded.
//!
//! Used by `upstream::mcp::call`.

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use super::header_value;
use dualgauge_patterns::json::{Json, JsonKind};

/// The schema keyword that names a header.
const KEY: &str = "x-mcp-header";
/// The maximum number of tools, of headers for each, and the nesting depth of arguments.
const TOOLS: usize = 4096;
const HEADERS: usize = 32;
const DEPTH: usize = 16;

/// An argument and its header.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ParamHeader {
    header: HeaderName,
    path: Vec<String>,
}

/// The tools of a server with parameter headers.
#[derive(Debug, Clone, Default)]
pub struct ParamHeaders(BTreeMap<String, Vec<ParamHeader>>);

impl ParamHeaders {
    /// Reads the result of `tools/list`.
    pub fn learn(&mut self, result: &Json) {
        if !mentions_headers(result.as_bytes()) {
            return;
        }
        let list: Value = serde_json::from_slice(result.as_bytes()).unwrap_or_default();
        for tool in list["tools"].as_array().into_iter().flatten() {
            let Some(name) = tool["name"].as_str() else {
                continue;
            };
            let mut found = Vec::new();
            let is_valid = walk(&tool["inputSchema"], &mut Vec::new(), &mut found);
            if !is_valid || found.is_empty() {
                self.0.remove(name);
            } else if self.0.len() < TOOLS || self.0.contains_key(name) {
                self.0.insert(name.to_owned(), found);
            }
        }
    }

    /// Returns the headers of a tool call with these params.
    #[must_use]
    pub fn headers(&self, params: &Json) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let name = params.member("name").and_then(|name| name.text()?.ok());
        let Some(param_headers) = name.and_then(|name| self.0.get(&name)) else {
            return headers;
        };
        let Some(arguments) = params.member("arguments") else {
            return headers;
        };
        for ParamHeader { header, path } in param_headers {
            let found = path
                .iter()
                .try_fold(arguments.clone(), |value, name| value.member(name));
            let text = found.and_then(|value| text_of(&value));
            let value = text.map(|text| HeaderValue::try_from(header_value(&text)));
            if let Some(Ok(value)) = value {
                headers.insert(header.clone(), value);
            }
        }
        headers
    }
}

/// Returns the cursor of the next page of tools, if there is one.
#[must_use]
pub fn next_page(result: &Json) -> Option<String> {
    result.member("nextCursor")?.text()?.ok()
}

/// Returns a `tools/list` request, for the first page or from a cursor.
#[must_use]
pub fn list_tools(id: u64, cursor: Option<&str>) -> String {
    let params = match cursor {
        Some(cursor) => serde_json::json!({ "cursor": cursor }),
        None => serde_json::json!({}),
    };
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list","params":{params}}}"#)
}

/// Returns a value as header text; `None` if it has no such form.
fn text_of(value: &Json) -> Option<String> {
    match value.kind() {
        JsonKind::String => value.text()?.ok(),
        JsonKind::Number | JsonKind::Boolean => String::from_utf8(value.as_bytes().to_vec()).ok(),
        JsonKind::Null | JsonKind::Array | JsonKind::Object => None,
    }
}

/// Collects the headers of a schema and returns whether all are valid. Only nested `properties` may define them.
fn walk(schema: &Value, path: &mut Vec<String>, found: &mut Vec<ParamHeader>) -> bool {
    let Some(schema) = schema.as_object() else {
        return !mentions(schema);
    };
    for (key, value) in schema {
        let is_fine = match key.as_str() {
            "properties" => true,
            KEY => note(schema, value, path, found),
            _ => !mentions(value),
        };
        if !is_fine {
            return false;
        }
    }
    let members = schema.get("properties").and_then(Value::as_object);
    for (name, member) in members.into_iter().flatten() {
        path.push(name.clone());
        let is_fine = path.len() <= DEPTH && walk(member, path, found);
        path.pop();
        if !is_fine {
            return false;
        }
    }
    true
}

fn note(
    schema: &serde_json::Map<String, Value>,
    name: &Value,
    path: &[String],
    found: &mut Vec<ParamHeader>,
) -> bool {
    let kind = schema.get("type").and_then(Value::as_str);
    let is_primitive = matches!(kind, Some("string" | "integer" | "boolean"));
    let name = name.as_str().filter(|name| !name.is_empty());
    let header = name.and_then(|name| HeaderName::try_from(format!("mcp-param-{name}")).ok());
    let Some(header) = header.filter(|_| is_primitive && !path.is_empty()) else {
        return false;
    };
    // Header names are case-insensitive.
    let is_new = found.iter().all(|known| known.header != header);
    let path = path.to_vec();
    found.push(ParamHeader { header, path });
    is_new && found.len() <= HEADERS
}

/// Returns whether a schema defines a header where none is allowed.
fn mentions(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.contains_key(KEY) || members.values().any(mentions),
        Value::Array(elements) => elements.iter().any(mentions),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn mentions_headers(text: &[u8]) -> bool {
    memchr::memmem::find(text, KEY.as_bytes()).is_some()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn learnt(schema: &Value) -> ParamHeaders {
        let list = json!({ "tools": [{ "name": "t", "inputSchema": schema }] });
        let mut param_headers = ParamHeaders::default();
        param_headers.learn(&Json::written(list.to_string()));
        param_headers
    }

    fn headers(param_headers: &ParamHeaders, arguments: &str) -> Vec<(String, String)> {
        let params = format!(r#"{{"name":"t","arguments":{arguments}}}"#);
        let headers = param_headers.headers(&Json::written(params));
        let mut headers: Vec<_> = headers
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
            .collect();
        headers.sort();
        headers
    }

    #[test]
    fn arguments_are_repeated_where_the_schema_wants_it() {
        let param_headers = learnt(&json!({ "type": "object", "properties": {
            "region": { "type": "string", KEY: "Region" },
            "count": { "type": "integer", KEY: "Count" },
            "deep": { "type": "object", "properties": { "dry": { "type": "boolean", KEY: "Dry" } } },
            "query": { "type": "string" },
        } }));
        let found = headers(
            &param_headers,
            r#"{"region":"größe","count":12,"deep":{"dry":true},"query":"x"}"#,
        );
        let expected = [
            ("mcp-param-count", "12"),
            ("mcp-param-dry", "true"),
            ("mcp-param-region", "=?base64?Z3LDtsOfZQ==?="),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(found, expected);
        assert_eq!(headers(&param_headers, r#"{"region":null,"deep":7}"#), []);
        assert!(
            param_headers
                .headers(&Json::literal("{\"name\":\"u\"}"))
                .is_empty()
        );
        assert!(param_headers.headers(&Json::literal("[]")).is_empty());
    }

    #[test]
    fn a_tool_that_breaks_the_rules_gets_no_header() {
        let string = |name: &str| json!({ "type": "string", KEY: name });
        for schema in [
            json!({ "properties": { "a": string("") } }),
            json!({ "properties": { "a": string("two words") } }),
            json!({ "properties": { "a": string("x\r\ny") } }),
            json!({ "properties": { "a": string("A"), "b": string("a") } }),
            json!({ "properties": { "a": { "type": "number", KEY: "A" } } }),
            json!({ "properties": { "a": { "type": "object", KEY: "A" } } }),
            json!({ "properties": { "a": string("A"), "b": { "items": string("B") } } }),
            json!({ "properties": { "a": string("A") }, "anyOf": [{ "properties": { "b": string("B") } }] }),
            json!({ "type": "string", KEY: "A" }),
        ] {
            let param_headers = learnt(&schema);
            assert_eq!(
                headers(&param_headers, r#"{"a":"1","b":"2"}"#),
                [],
                "{schema}"
            );
        }
    }

    #[test]
    fn the_headers_of_a_tool_may_change() {
        let schema = |name| json!({ "properties": { "a": { "type": "string", KEY: name } } });
        let mut param_headers = learnt(&schema("One"));
        let list =
            json!({ "tools": [{ "name": "t", "inputSchema": schema("Two") }], "nextCursor": "n" });
        let list = Json::written(list.to_string());
        param_headers.learn(&list);
        let expected = [("mcp-param-two".to_owned(), "x".to_owned())];
        assert_eq!(headers(&param_headers, r#"{"a":"x"}"#), expected);
        assert_eq!(next_page(&list).as_deref(), Some("n"));
        assert_eq!(next_page(&Json::literal("{}")), None);
        let asked: Value = serde_json::from_str(&list_tools(0, Some("n"))).unwrap();
        assert_eq!(asked["params"]["cursor"], "n");
    }
}
