//! Example arguments from a schema. Used by `rest_api`.

use serde_json::{Map, Value, json};

/// The deepest nesting of an example.
const DEEPEST: usize = 4;
/// The most members of an example.
const MOST: usize = 20;
/// Keywords that the example of a number may contradict.
const BOUNDS: [&str; 4] = [
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
];

/// Example arguments of a tool.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Sample {
    /// The value: the required members of the schema.
    pub(super) value: Value,
    /// The required members for which the schema names no valid value. Each has a placeholder or is absent.
    pub(super) placeholders: Vec<String>,
}

/// Returns an example value with the required members of a schema. References are not followed.
pub(super) fn sample(schema: &Value) -> Sample {
    let mut sample = Sample::default();
    sample.value = sample.value_for(schema, "", 0);
    sample
}

impl Sample {
    /// Returns the value of the member with this name, or of the whole if the name is empty.
    fn value_for(&mut self, schema: &Value, name: &str, depth: usize) -> Value {
        if let Some(given) = given(schema) {
            return given.clone();
        }
        if let Some((first, is_sufficient)) = choice(schema)
            && depth < DEEPEST
            && schema.get("properties").is_none()
        {
            if !is_sufficient {
                self.placeholder(name);
            }
            return self.value_for(first, name, depth + 1);
        }
        let kind = match schema.get("type") {
            Some(Value::Array(kinds)) => kinds.first().and_then(Value::as_str),
            Some(kind) => kind.as_str(),
            None => None,
        };
        match kind {
            Some("object") => self.object(schema, name, depth),
            Some("array") => {
                if schema.get("minItems").is_some() {
                    self.placeholder(name);
                }
                json!([])
            }
            Some(kind @ ("integer" | "number")) => self.number(schema, name, kind == "integer"),
            Some("boolean") => json!(true),
            Some("null") => Value::Null,
            None if schema.get("properties").is_some() || depth == 0 => {
                self.object(schema, name, depth)
            }
            Some(_) | None => {
                self.placeholder(name);
                json!("text")
            }
        }
    }

    fn number(&mut self, schema: &Value, name: &str, is_integer: bool) -> Value {
        let value = schema.get("minimum").cloned().unwrap_or(json!(1));
        if BOUNDS.iter().any(|bound| schema.get(bound).is_some())
            || (is_integer && !value.is_i64() && !value.is_u64())
        {
            self.placeholder(name);
        }
        value
    }

    fn object(&mut self, schema: &Value, name: &str, depth: usize) -> Value {
        let mut members = Map::new();
        let required = schema.get("required").and_then(Value::as_array);
        let properties = schema.get("properties").and_then(Value::as_object);
        let names = required.into_iter().flatten().filter_map(Value::as_str);
        for (index, member) in names.enumerate() {
            let path = match name {
                "" => member.to_owned(),
                _ => format!("{name}.{member}"),
            };
            let property = properties.and_then(|properties| properties.get(member));
            match property.filter(|_| depth < DEEPEST && index < MOST) {
                Some(property) => {
                    let value = self.value_for(property, &path, depth + 1);
                    members.insert(member.to_owned(), value);
                }
                None => self.placeholder(&path),
            }
        }
        Value::Object(members)
    }

    fn placeholder(&mut self, name: &str) {
        if self.placeholders.len() < MOST && !self.placeholders.iter().any(|known| known == name) {
            self.placeholders.push(name.to_owned());
        }
    }
}

/// Returns the value that the schema gives.
fn given(schema: &Value) -> Option<&Value> {
    let first = |name: &str| schema.get(name)?.as_array()?.first();
    let one = |name: &str| schema.get(name);
    one("const")
        .or_else(|| first("examples"))
        .or_else(|| one("example"))
        .or_else(|| one("default"))
        .or_else(|| first("enum"))
}

/// Returns the first of several schemas, and true if the others do not restrict the values that it allows.
fn choice(schema: &Value) -> Option<(&Value, bool)> {
    ["allOf", "anyOf", "oneOf"].iter().find_map(|name| {
        let schemas = schema.get(*name)?.as_array()?;
        Some((schemas.first()?, *name != "allOf" || schemas.len() == 1))
    })
}
