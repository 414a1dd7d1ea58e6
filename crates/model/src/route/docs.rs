//! The documentation of a route: texts and schemas for API documents and for lists of tools. Used by `document`,
//! `config` and `route`.

use std::sync::Arc;

use serde_json::{Map, Value};

/// The documentation of a route. It changes no call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RouteDocs {
    /// `title`: a short name for people.
    pub title: Option<String>,
    /// `summary`
    pub summary: Option<String>,
    /// `description`
    pub description: Option<String>,
    /// `tags`
    pub tags: Vec<String>,
    /// `body_description`: the description of the REST body.
    pub body: Option<String>,
    /// `schema.params`
    pub params: Option<DescribedSchema>,
    /// `schema.result`
    pub result: Option<DescribedSchema>,
    /// `schema.successes`
    pub successes: Vec<DescribedResponse>,
    /// `schema.failures`
    pub failures: Vec<DescribedResponse>,
}

/// A REST response, as the documentation declares it.
#[derive(Debug, Clone, PartialEq)]
pub struct DescribedResponse {
    /// The key in `responses` of OpenAPI: a status, or for failures also `4XX`, `5XX` or `default`.
    pub status: String,
    /// The description for people.
    pub description: Option<String>,
    /// The type of the content.
    pub content_type: String,
    /// The schema of the content, if it has one.
    pub schema: Option<DescribedSchema>,
    /// The headers, by name.
    pub headers: Vec<DescribedHeader>,
}

/// A header of a REST response, as the documentation declares it.
#[derive(Debug, Clone, PartialEq)]
pub struct DescribedHeader {
    /// The name, in lower case.
    pub name: String,
    /// The description for people.
    pub description: Option<String>,
    /// True if every such response has it.
    pub is_required: bool,
    /// The schema of the value, if it has one.
    pub schema: Option<DescribedSchema>,
}

impl RouteDocs {
    /// Returns the description, or else the summary.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        self.description.as_deref().or(self.summary.as_deref())
    }
}

/// A JSON Schema as written, with the schemas that routes share.
#[derive(Debug, Clone, PartialEq)]
pub struct DescribedSchema {
    /// The schema. A reference `#/schemas/NAME` leads to a shared schema, another `#…` into this one.
    pub schema: Arc<Value>,
    /// `[schemas]`: the shared schemas by name.
    pub shared: Arc<Map<String, Value>>,
}

impl DescribedSchema {
    /// Returns whether every value that fits is an object.
    #[must_use]
    pub fn is_object(&self) -> bool {
        /// The longest chain of references and alternatives.
        const LONGEST: usize = 16;
        self.is_object_at(&self.schema, LONGEST)
    }

    fn is_object_at(&self, schema: &Value, depth: usize) -> bool {
        if let Some(kind) = schema.get("type") {
            return kind == "object";
        }
        let Some(depth) = depth.checked_sub(1) else {
            return false;
        };
        let is_object = |schema: &Value| self.is_object_at(schema, depth);
        let target = schema.get("$ref").and_then(Value::as_str);
        if let Some(target) = target.and_then(|target| self.target(target)) {
            return is_object(target);
        }
        let parts = |name: &str| schema.get(name).and_then(Value::as_array);
        let all = |name: &str| {
            parts(name).is_some_and(|parts| !parts.is_empty() && parts.iter().all(is_object))
        };
        // The first part suffices for `allOf` of a reference and members, and keeps the work small.
        parts("allOf").is_some_and(|parts| parts.iter().take(depth).any(is_object))
            || all("oneOf")
            || all("anyOf")
    }

    /// Returns whether null fits; `None` if the schema does not say it by its types.
    #[must_use]
    pub fn allows_null(&self) -> Option<bool> {
        /// The longest chain of references and alternatives.
        const LONGEST: usize = 16;
        self.allows_null_at(&self.schema, LONGEST)
    }

    fn allows_null_at(&self, schema: &Value, depth: usize) -> Option<bool> {
        let depth = depth.checked_sub(1)?;
        match schema.get("type") {
            Some(Value::Array(kinds)) => return Some(kinds.iter().any(|kind| kind == "null")),
            Some(kind) => return Some(kind == "null"),
            None => {}
        }
        let target = schema.get("$ref").and_then(Value::as_str);
        if let Some(target) = target.and_then(|target| self.target(target)) {
            return self.allows_null_at(target, depth);
        }
        let parts = |name: &str| schema.get(name).and_then(Value::as_array);
        let parts = parts("anyOf").or_else(|| parts("oneOf"))?;
        let mut found = Some(false);
        for part in parts.iter().take(depth) {
            match self.allows_null_at(part, depth) {
                Some(true) => return Some(true),
                Some(false) => {}
                None => found = None,
            }
        }
        found
    }

    /// Returns the target of a reference, if there is one.
    #[must_use]
    pub fn target(&self, reference: &str) -> Option<&Value> {
        if let Some(name) = reference.strip_prefix(SHARED) {
            return self.shared.get(&*unescaped(name));
        }
        let pointer = reference.strip_prefix('#')?;
        if pointer.is_empty() || pointer.starts_with('/') {
            return self.schema.pointer(&decoded(pointer));
        }
        None
    }
}

/// The beginning of a reference to a shared schema.
pub const SHARED: &str = "#/schemas/";

/// Decodes a name in a JSON pointer (RFC 6901 §4) of a URI fragment.
#[must_use]
pub fn unescaped(name: &str) -> String {
    decoded(name).replace("~1", "/").replace("~0", "~")
}

/// Encodes a name for a JSON pointer in a URI fragment.
#[must_use]
pub fn escaped(name: &str) -> String {
    let mut text = String::new();
    let name = name.replace('~', "~0").replace('/', "~1");
    for byte in name.bytes() {
        let is_plain = byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?".contains(&byte);
        if is_plain {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

fn decoded(text: &str) -> String {
    use dualgauge_patterns::percent::{Plus, decode};
    decode(text, Plus::Literal).map_or_else(|_| text.to_owned(), |text| text.into_owned())
}
