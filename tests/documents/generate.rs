//! Values that a JSON Schema accepts.

use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value, json};

/// The members that a generated object has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Members {
    /// Those that the schema requires.
    Required,
    /// All, but only the required ones in deep objects.
    All,
}

/// The depth below which objects have the required members only.
const SHALLOW: usize = 3;
/// The depth at which nothing is generated any more.
const DEEPEST: usize = 40;
/// The most choices between the parts of `anyOf` and `oneOf` that are tried.
const MOST_CHOICES: usize = 6;

/// Returns a value that the schema accepts, or the reason why none was found.
pub(crate) fn valid(schema: &Value, members: Members) -> Result<Value, String> {
    let validator = jsonschema::validator_for(schema).map_err(|fault| fault.to_string())?;
    let mut first = None;
    for attempt in 0..2 * MOST_CHOICES {
        let generator = Generator {
            root: schema,
            members,
            choice: attempt % MOST_CHOICES,
            is_sparse: attempt >= MOST_CHOICES,
        };
        let value = generator.value(schema, 0);
        match validator.validate(&value) {
            Ok(()) => return Ok(value),
            Err(fault) => {
                let path = fault.instance_path().to_string();
                first.get_or_insert(format!("{path} {fault}: {value}"));
            }
        }
    }
    Err(first.unwrap_or_default())
}

struct Generator<'s> {
    root: &'s Value,
    members: Members,
    choice: usize,
    /// Alternatives have their required members only, so that a value does not fit two.
    is_sparse: bool,
}

impl Generator<'_> {
    fn value(&self, schema: &Value, depth: usize) -> Value {
        let flat = self.flat(schema, depth);
        if let Some(value) = flat.get("const") {
            return value.clone();
        }
        if let Some(values) = flat.get("enum").and_then(Value::as_array) {
            let value = values.iter().find(|value| !value.is_null());
            return value.cloned().unwrap_or_default();
        }
        match kind(&flat) {
            "string" => string(&flat),
            "integer" => number(&flat, 1.0),
            "number" => number(&flat, 0.5),
            "boolean" => json!(true),
            "array" => self.array(&flat, depth),
            "object" => self.object(&flat, depth),
            _ => Value::Null,
        }
    }

    /// Returns the keywords of a schema with those of its references, of `allOf`, and of one alternative.
    fn flat(&self, schema: &Value, depth: usize) -> Map<String, Value> {
        let mut flat = Map::new();
        if depth > DEEPEST {
            return flat;
        }
        for (name, value) in schema.as_object().into_iter().flatten() {
            match (name.as_str(), value) {
                ("$ref", Value::String(reference)) => {
                    let pointer = reference.strip_prefix('#').unwrap_or_default();
                    let target = self.root.pointer(pointer).unwrap_or(&Value::Null);
                    merge(&mut flat, self.flat(target, depth + 1));
                }
                ("allOf", Value::Array(parts)) => {
                    for part in parts {
                        merge(&mut flat, self.flat(part, depth + 1));
                    }
                }
                ("anyOf" | "oneOf", Value::Array(parts)) => {
                    let is_null = |part: &Value| part.get("type") == Some(&json!("null"));
                    let parts: Vec<&Value> = parts.iter().filter(|part| !is_null(part)).collect();
                    if let Some(part) = parts.get(self.choice % parts.len().max(1)) {
                        merge(&mut flat, self.alternative(part, depth + 1));
                    }
                }
                (_, _) => merge(&mut flat, Map::from_iter([(name.clone(), value.clone())])),
            }
        }
        flat
    }

    fn alternative(&self, part: &Value, depth: usize) -> Map<String, Value> {
        let mut flat = self.flat(part, depth);
        let required = flat.get("required").cloned().unwrap_or_default();
        if let Some(Value::Object(known)) = flat.get_mut("properties")
            && self.is_sparse
        {
            let required = required.as_array();
            known.retain(|name, _| required.is_some_and(|all| all.contains(&json!(name))));
        }
        flat
    }

    fn array(&self, flat: &Map<String, Value>, depth: usize) -> Value {
        let size = |name: &str| flat.get(name).and_then(Value::as_u64);
        // Two elements, where a single one could be taken for a value that is no list.
        let usual = match depth {
            0..=1 => 2,
            2..=SHALLOW => 1,
            _ => 0,
        };
        let count = usual.max(size("minItems").unwrap_or(0));
        let count = count.min(size("maxItems").unwrap_or(u64::MAX));
        let first = flat.get("prefixItems").and_then(Value::as_array);
        let mut values = Vec::new();
        for at in 0..usize::try_from(count).unwrap() {
            let own = first.and_then(|first| first.get(at));
            let schema = own.or_else(|| flat.get("items")).unwrap_or(&Value::Null);
            values.push(self.value(schema, depth + 1));
        }
        if flat.get("uniqueItems") == Some(&json!(true)) && count > 1 {
            let items = self.flat(flat.get("items").unwrap_or(&Value::Null), depth);
            let known = items.get("enum").and_then(Value::as_array);
            for (at, value) in values.iter_mut().enumerate() {
                match (known, &*value) {
                    (Some(known), _) => *value = known[at % known.len()].clone(),
                    (None, Value::String(text)) => *value = json!(format!("{text}{at}")),
                    (None, Value::Number(_)) => *value = json!(at),
                    (None, _) => {}
                }
            }
        }
        values.into()
    }

    fn object(&self, flat: &Map<String, Value>, depth: usize) -> Value {
        let required = flat.get("required").and_then(Value::as_array);
        let required: Vec<&str> = required
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let known = flat.get("properties").and_then(Value::as_object);
        let mut object = Map::new();
        for (name, schema) in known.into_iter().flatten() {
            let is_wanted = self.members == Members::All && depth < SHALLOW;
            if is_wanted || required.contains(&name.as_str()) {
                object.insert(name.clone(), self.value(schema, depth + 1));
            }
        }
        let others = flat.get("additionalProperties").unwrap_or(&Value::Null);
        for name in required {
            if !object.contains_key(name) {
                object.insert(name.to_owned(), self.value(others, depth + 1));
            }
        }
        let fewest = flat.get("minProperties").and_then(Value::as_u64);
        let fewest = usize::try_from(fewest.unwrap_or(0)).unwrap();
        for (name, schema) in known.into_iter().flatten() {
            if object.len() < fewest && !object.contains_key(name) {
                object.insert(name.clone(), self.value(schema, depth + 1));
            }
        }
        for at in 0..fewest.saturating_sub(object.len()) {
            object.insert(format!("member{at}"), self.value(others, depth + 1));
        }
        object.into()
    }
}

/// Adds keywords; those that hold for the same members are joined.
fn merge(flat: &mut Map<String, Value>, more: Map<String, Value>) {
    for (name, value) in more {
        match (flat.get_mut(&name), value) {
            (Some(Value::Object(own)), Value::Object(more)) if name == "properties" => {
                for (name, schema) in more {
                    match own.remove(&name) {
                        Some(before) => own.insert(name, json!({ "allOf": [before, schema] })),
                        None => own.insert(name, schema),
                    };
                }
            }
            (Some(Value::Array(own)), Value::Array(more)) if name == "required" => own.extend(more),
            (Some(Value::Array(own)), Value::Array(more)) if name == "enum" => {
                own.retain(|value| more.contains(value));
            }
            (_, value) => {
                flat.insert(name, value);
            }
        }
    }
}

fn kind(flat: &Map<String, Value>) -> &str {
    let declared = flat.get("type");
    let kinds = declared.and_then(Value::as_array).into_iter().flatten();
    let mut kinds = kinds.chain(declared).filter_map(Value::as_str);
    let named = kinds.find(|kind| *kind != "null");
    let has = |names: &[&str]| names.iter().any(|name| flat.contains_key(*name));
    match named {
        Some(kind) => kind,
        None if flat.contains_key("type") => "null",
        None if has(&["properties", "required", "additionalProperties"]) => "object",
        None if has(&["items", "minItems"]) => "array",
        None if has(&["minimum", "maximum"]) => "integer",
        None => "string",
    }
}

fn string(flat: &Map<String, Value>) -> Value {
    let size = |name: &str| flat.get(name).and_then(Value::as_u64);
    let shortest = usize::try_from(size("minLength").unwrap_or(0)).unwrap();
    let longest = usize::try_from(size("maxLength").unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
    let fits = |text: &str| (shortest..=longest).contains(&text.chars().count());
    if let Some(pattern) = flat.get("pattern").and_then(Value::as_str) {
        let given = ["examples", "default"].map(|name| flat.get(name));
        let given = given.into_iter().flatten();
        let given =
            given.flat_map(|value| value.as_array().cloned().unwrap_or(vec![value.clone()]));
        for value in given.filter(Value::is_string) {
            let schema = json!({ "pattern": pattern });
            if jsonschema::is_valid(&schema, &value) {
                return value;
            }
        }
        return json!(matching(pattern, fits));
    }
    let text = match flat
        .get("format")
        .and_then(Value::as_str)
        .unwrap_or_default()
    {
        "date-time" => "2026-07-28T10:00:00Z",
        "date" => "2026-07-28",
        "time" => "10:00:00Z",
        "duration" => "P1D",
        "email" | "idn-email" => "a@example.com",
        "uri" | "url" | "iri" => "https://example.com/a",
        "uri-reference" | "iri-reference" => "/a",
        "uri-template" => "https://example.com/{a}",
        "hostname" | "idn-hostname" => "example.com",
        "ipv4" | "ip" => "192.0.2.1",
        "ipv6" => "2001:db8::1",
        "uuid" => "01234567-89ab-4def-8123-456789abcdef",
        "byte" | "binary" | "base64" => "YWJj",
        "json-pointer" => "/a",
        "relative-json-pointer" => "1/a",
        "regex" => "a+",
        _ if flat.get("contentEncoding") == Some(&json!("base64")) => "YWJj",
        _ => "text",
    };
    if fits(text) {
        return json!(text);
    }
    let filled = text.chars().chain(std::iter::repeat('x'));
    let wanted = text.len().clamp(shortest, longest);
    json!(filled.take(wanted).collect::<String>())
}

/// Returns a text that a pattern finds; the same one each time.
fn matching(pattern: &str, fits: impl Fn(&str) -> bool) -> String {
    // Each alternative may have anchors of its own.
    let pattern = pattern.split("|^").next().unwrap_or_default();
    let inner = pattern.strip_prefix('^').unwrap_or(pattern);
    let inner = inner.strip_suffix('$').unwrap_or(inner);
    // Texts that are easy to read and to send, where the pattern allows them.
    let inner = inner.replace("\\S", "[a-z]").replace("\\d", "[0-9]");
    let inner = inner.replace("\\w", "[a-z]").replace("\\s", " ");
    let Ok(strategy) = proptest::string::string_regex(&inner) else {
        return String::new();
    };
    let mut runner = TestRunner::deterministic();
    let mut last = String::new();
    for _ in 0..1000 {
        last = strategy.new_tree(&mut runner).unwrap().current();
        let is_plain = last.chars().all(|c| c.is_ascii_graphic() || c == ' ');
        if is_plain && !last.is_empty() && last.trim() == last && fits(&last) {
            break;
        }
    }
    last
}

fn number(flat: &Map<String, Value>, step: f64) -> Value {
    let bound = |name: &str| flat.get(name).and_then(Value::as_f64);
    let step = bound("multipleOf").unwrap_or(step);
    let above = bound("exclusiveMinimum").map(|bound| bound + step);
    let least = bound("minimum").or(above);
    let below = bound("exclusiveMaximum").map(|bound| bound - step);
    let most = bound("maximum").or(below);
    let mut value = 1.0_f64.max(step);
    if let Some(least) = least {
        value = value.max((least / step).ceil() * step);
    }
    if let Some(most) = most.filter(|most| value > *most) {
        value = (most / step).floor() * step;
    }
    if value.fract() == 0.0 {
        #[expect(clippy::cast_possible_truncation, reason = "a small whole number")]
        return json!(value as i64);
    }
    json!(value)
}
