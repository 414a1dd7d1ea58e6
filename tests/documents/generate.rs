//! Values that a JSON Schema accepts.

use std::collections::{BTreeMap, BTreeSet};

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
/// The most values that are tried for one schema.
const MOST_ATTEMPTS: usize = 500;

/// Returns a value that the schema accepts, or the reason why none was found.
///
/// An optional member that no tried value fits is left out.
pub(crate) fn valid(schema: &Value, members: Members) -> Result<Value, String> {
    let validator = jsonschema::validator_for(schema).map_err(|fault| fault.to_string())?;
    let mut generator = Generator {
        root: schema,
        members,
        choices: BTreeMap::new(),
        sizes: BTreeMap::new(),
        optional: BTreeSet::new(),
        left_out: BTreeSet::new(),
    };
    let mut first = None;
    for _ in 0..MOST_ATTEMPTS {
        generator.sizes.clear();
        generator.optional.clear();
        let value = generator.value(schema, "", 0);
        let fault = match validator.validate(&value) {
            Ok(()) => return Ok(value),
            Err(fault) => fault,
        };
        let path = fault.instance_path().to_string();
        first.get_or_insert(format!("{path} {fault}: {value}"));
        if !generator.choose_next(&path) {
            break;
        }
    }
    Err(first.unwrap_or_default())
}

/// Ways to write a value of one alternative of `anyOf` or `oneOf`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// With the members that an object has elsewhere.
    Usual,
    /// Without the members that only other alternatives require.
    WithoutOthers,
    /// With the required members of the alternative.
    Sparse,
    /// With all members of the alternative.
    Full,
    /// With all members, and with members that other alternatives do not accept.
    Distinct,
}

const WAYS: [Way; 5] = [
    Way::Usual,
    Way::WithoutOthers,
    Way::Sparse,
    Way::Full,
    Way::Distinct,
];

struct Generator<'s> {
    root: &'s Value,
    members: Members,
    /// The number of the way and of the alternative that is tried, by the path of the value.
    choices: BTreeMap<String, usize>,
    /// How many choices a value has, by its path.
    sizes: BTreeMap<String, usize>,
    /// The paths of the optional members of the last value.
    optional: BTreeSet<String>,
    /// The paths of optional members that no value fits.
    left_out: BTreeSet<String>,
}

/// The choice for one value: a way, and the numbers of its alternatives.
struct Choice {
    way: Way,
    number: usize,
    size: usize,
}

impl Choice {
    /// Returns the number of one of so many alternatives.
    fn of(&mut self, count: usize) -> usize {
        let one = self.number % count.max(1);
        self.number /= count.max(1);
        self.size *= count.max(1);
        one
    }
}

/// Returns the path and those of the values around it, from the inside.
fn around(path: &str) -> impl Iterator<Item = &str> {
    let mut next = Some(path);
    std::iter::from_fn(move || {
        let path = next?;
        next = path.rfind('/').map(|end| &path[..end]);
        Some(path)
    })
}

impl Generator<'_> {
    /// Chooses something else at this path or around it; returns false when nothing is left.
    fn choose_next(&mut self, path: &str) -> bool {
        for path in around(path) {
            if let Some(size) = self.sizes.get(path) {
                let choice = self.choices.entry(path.to_owned()).or_default();
                *choice += 1;
                if choice < &mut size.clone() {
                    return true;
                }
                *choice = 0;
            }
            if self.optional.contains(path) {
                self.left_out.insert(path.to_owned());
                return true;
            }
        }
        false
    }

    fn value(&mut self, schema: &Value, path: &str, depth: usize) -> Value {
        let number = self.choices.get(path).copied().unwrap_or_default();
        let mut choice = Choice {
            way: WAYS[number % WAYS.len()],
            number: number / WAYS.len(),
            size: 1,
        };
        let flat = self.flat(schema, &mut choice, depth);
        if choice.size > 1 {
            self.sizes.insert(path.to_owned(), choice.size * WAYS.len());
        }
        if let Some(value) = flat.get("const") {
            return value.clone();
        }
        if let Some(values) = flat.get("enum").and_then(Value::as_array) {
            let kinds = flat.get("type").unwrap_or(&Value::Null);
            let declared = if kinds.is_null() {
                json!({})
            } else {
                json!({ "type": kinds })
            };
            let mut values = values.iter().filter(|value| !value.is_null());
            let value = values.find(|value| jsonschema::is_valid(&declared, value));
            return value.cloned().unwrap_or_default();
        }
        match kind(&flat) {
            "string" => string(&flat),
            "integer" => number_of(&flat, 1.0),
            "number" => number_of(&flat, 0.5),
            "boolean" => json!(true),
            "array" => self.array(&flat, path, depth),
            "object" => self.object(&flat, path, depth),
            _ => Value::Null,
        }
    }

    /// Returns the keywords of a schema with those of its references, of `allOf`, and of one alternative.
    fn flat(&self, schema: &Value, choice: &mut Choice, depth: usize) -> Map<String, Value> {
        let mut flat = Map::new();
        if depth > DEEPEST {
            return flat;
        }
        for (name, value) in schema.as_object().into_iter().flatten() {
            match (name.as_str(), value) {
                ("$ref", Value::String(reference)) => {
                    let pointer = reference.strip_prefix('#').unwrap_or_default();
                    let target = self.root.pointer(pointer).unwrap_or(&Value::Null);
                    merge(&mut flat, self.flat(target, choice, depth + 1));
                }
                ("allOf", Value::Array(parts)) => {
                    for part in parts {
                        merge(&mut flat, self.flat(part, choice, depth + 1));
                    }
                }
                ("anyOf" | "oneOf", Value::Array(parts)) => {
                    merge(&mut flat, self.alternative(parts, choice, depth + 1));
                }
                (_, _) => merge(&mut flat, Map::from_iter([(name.clone(), value.clone())])),
            }
        }
        if choice.size > 1 && choice.way == Way::WithoutOthers {
            let other = flat.remove("x-others").unwrap_or_default();
            let required = required(&flat);
            if let Some(Value::Object(known)) = flat.get_mut("properties") {
                let other = other.as_array();
                known.retain(|name, _| {
                    required.contains(name) || !other.is_some_and(|all| all.contains(&json!(name)))
                });
            }
        }
        flat
    }

    /// Returns the keywords of the chosen one of several alternatives.
    fn alternative(
        &self,
        parts: &[Value],
        choice: &mut Choice,
        depth: usize,
    ) -> Map<String, Value> {
        let is_null = |part: &&Value| part.get("type") == Some(&json!("null"));
        let parts: Vec<&Value> = parts.iter().filter(|part| !is_null(part)).collect();
        let chosen = choice.of(parts.len());
        let Some(part) = parts.get(chosen) else {
            return Map::new();
        };
        let mut flat = self.flat(part, choice, depth);
        let own = required(&flat);
        let others = parts.iter().enumerate().filter(|(at, _)| *at != chosen);
        let mut plain = Choice {
            way: Way::Usual,
            number: 0,
            size: 1,
        };
        let others: Vec<Map<String, Value>> = others
            .map(|(_, part)| self.flat(part, &mut plain, depth))
            .collect();
        let Way::Usual = choice.way else {
            adapt(&mut flat, choice.way, &own, &others);
            return flat;
        };
        flat
    }

    fn array(&mut self, flat: &Map<String, Value>, path: &str, depth: usize) -> Value {
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
            values.push(self.value(schema, &format!("{path}/{at}"), depth + 1));
        }
        if flat.get("uniqueItems") == Some(&json!(true)) && count > 1 {
            let mut choice = Choice {
                way: Way::Usual,
                number: 0,
                size: 1,
            };
            let items = flat.get("items").unwrap_or(&Value::Null);
            let items = self.flat(items, &mut choice, depth);
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

    fn object(&mut self, flat: &Map<String, Value>, path: &str, depth: usize) -> Value {
        let required = required(flat);
        let known = flat.get("properties").and_then(Value::as_object);
        let mut object = Map::new();
        let below = |name: &str| {
            let name = name.replace('~', "~0").replace('/', "~1");
            format!("{path}/{name}")
        };
        for (name, schema) in known.into_iter().flatten() {
            let path = below(name);
            let is_required = required.contains(name);
            let is_wanted = self.members == Members::All && depth < SHALLOW;
            if !is_required && is_wanted && !self.left_out.contains(&path) {
                self.optional.insert(path.clone());
            }
            if is_required || self.optional.contains(&path) {
                object.insert(name.clone(), self.value(schema, &path, depth + 1));
            }
        }
        let others = flat.get("additionalProperties").unwrap_or(&Value::Null);
        for name in required {
            if !object.contains_key(&name) {
                let value = self.value(others, &below(&name), depth + 1);
                object.insert(name, value);
            }
        }
        let fewest = flat.get("minProperties").and_then(Value::as_u64);
        let fewest = usize::try_from(fewest.unwrap_or(0)).unwrap();
        for (name, schema) in known.into_iter().flatten() {
            if object.len() < fewest && !object.contains_key(name) {
                let value = self.value(schema, &below(name), depth + 1);
                object.insert(name.clone(), value);
            }
        }
        for at in 0..fewest.saturating_sub(object.len()) {
            let name = format!("member{at}");
            let value = self.value(others, &below(&name), depth + 1);
            object.insert(name, value);
        }
        object.into()
    }
}

/// Returns the names of the members that an object must have.
fn required(flat: &Map<String, Value>) -> Vec<String> {
    let names = flat.get("required").and_then(Value::as_array);
    let names = names.into_iter().flatten().filter_map(Value::as_str);
    names.map(str::to_owned).collect()
}

/// Changes the members of an alternative, so that a value fits no other one.
fn adapt(flat: &mut Map<String, Value>, way: Way, own: &[String], others: &[Map<String, Value>]) {
    if way == Way::WithoutOthers {
        let names: Vec<String> = others.iter().flat_map(required).collect();
        let names: Vec<String> = names
            .into_iter()
            .filter(|name| !own.contains(name))
            .collect();
        flat.insert("x-others".to_owned(), json!(names));
        return;
    }
    let mut known = match flat.get("properties") {
        Some(Value::Object(known)) => known.clone(),
        _ => Map::new(),
    };
    if way == Way::Sparse {
        known.retain(|name, _| own.contains(name));
    }
    if way == Way::Distinct {
        for (name, schema) in others
            .iter()
            .filter_map(|one| one.get("properties")?.as_object())
            .flatten()
        {
            if !known.contains_key(name) {
                let declared = schema.as_object().cloned().unwrap_or_default();
                let other = match kind(&declared) {
                    "string" => json!(1),
                    _ => json!("text"),
                };
                known.insert(name.clone(), json!({ "const": other }));
            }
        }
    }
    if matches!(way, Way::Full | Way::Distinct) && !known.is_empty() {
        let names: Vec<&String> = known.keys().collect();
        flat.insert("required".to_owned(), json!(names));
    }
    if !known.is_empty() || flat.contains_key("properties") {
        flat.insert("properties".to_owned(), known.into());
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
    if let Some(pattern) = flat.get("pattern").and_then(Value::as_str) {
        let given = ["examples", "default"].map(|name| flat.get(name));
        let given = given.into_iter().flatten();
        let given =
            given.flat_map(|value| value.as_array().cloned().unwrap_or(vec![value.clone()]));
        let usual = json!(text);
        for value in given.filter(Value::is_string).chain([usual]) {
            let schema = json!({ "pattern": pattern });
            if jsonschema::is_valid(&schema, &value) && value.as_str().is_some_and(fits) {
                return value;
            }
        }
        return json!(matching(pattern, fits));
    }
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

fn number_of(flat: &Map<String, Value>, step: f64) -> Value {
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
