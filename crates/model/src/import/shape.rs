//! The shape of a body: its members and elements, read from a JSON Schema.
//!
//! Laws: an unknown construct becomes [`Shape::Any`]; reading a recursive schema terminates, because depth and members
//! are limited.
//!
//! Used by `import::responses`, `import::correspond` and `import::tool_rows`.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::refs::{DocumentFault, Refs};

/// The deepest nesting that is read.
const DEEPEST: usize = 6;
/// The deepest nesting of `allOf` and of choices with one alternative.
const MOST_PARTS: usize = 16;
/// The most members of one body.
const MOST_MEMBERS: usize = 500;

/// The shape of a value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Shape {
    Any,
    /// A string, a number or a boolean, with the word of its type.
    Scalar(&'static str),
    List(Box<Shape>),
    Object(Vec<ShapeMember>),
}

/// A member of an object.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ShapeMember {
    pub(super) name: String,
    pub(super) shape: Shape,
    pub(super) is_required: bool,
    /// The only value that it can have.
    pub(super) fixed: Option<Value>,
    /// True if the schema allows `null` beside other values.
    pub(super) is_nullable: bool,
}

/// Reads a schema.
///
/// # Errors
/// The fault of a reference, or of a schema that is too large.
pub(super) fn read<'v>(refs: &Refs<'v>, schema: &'v Value) -> Result<Shape, DocumentFault> {
    let mut reader = ShapeReader {
        refs,
        members: MOST_MEMBERS,
    };
    reader.shape(schema, DEEPEST)
}

struct ShapeReader<'r, 'v> {
    refs: &'r Refs<'v>,
    /// The number of members that may still be read.
    members: usize,
}

/// The keywords of a schema and of all its parts.
#[derive(Default)]
struct Keywords<'v> {
    kind: Option<&'v str>,
    properties: Vec<(&'v str, &'v Value)>,
    required: BTreeSet<&'v str>,
    items: Option<&'v Value>,
    fixed: Option<&'v Value>,
    has_choices: bool,
    is_nullable: bool,
}

/// A value of a schema.
struct ShapeValue {
    shape: Shape,
    fixed: Option<Value>,
    is_nullable: bool,
}

impl<'v> ShapeReader<'_, 'v> {
    fn shape(&mut self, schema: &'v Value, depth: usize) -> Result<Shape, DocumentFault> {
        Ok(self.value(schema, depth)?.shape)
    }

    /// Returns the shape of a value, the only value that it can have, and true if it may be null.
    fn value(&mut self, schema: &'v Value, depth: usize) -> Result<ShapeValue, DocumentFault> {
        let mut found = Keywords::default();
        self.collect(schema, MOST_PARTS, &mut found)?;
        let fixed = found.fixed.cloned();
        let kind = found.kind.or_else(|| {
            let is_object = !found.properties.is_empty();
            is_object.then_some("object")
        });
        let shape = match kind {
            _ if found.has_choices && found.properties.is_empty() => Shape::Any,
            Some("string") => Shape::Scalar("string"),
            Some("integer") => Shape::Scalar("integer"),
            Some("number") => Shape::Scalar("number"),
            Some("boolean") => Shape::Scalar("boolean"),
            Some("array") => match (found.items, depth.checked_sub(1)) {
                (Some(items), Some(depth)) => Shape::List(Box::new(self.shape(items, depth)?)),
                (_, _) => Shape::List(Box::new(Shape::Any)),
            },
            Some("object") => self.object(&found, depth)?,
            Some(_) | None => Shape::Any,
        };
        Ok(ShapeValue {
            shape,
            fixed,
            is_nullable: found.is_nullable,
        })
    }

    fn object(&mut self, found: &Keywords<'v>, depth: usize) -> Result<Shape, DocumentFault> {
        let Some(depth) = depth.checked_sub(1) else {
            return Ok(Shape::Any);
        };
        if found.properties.is_empty() || found.properties.len() > self.members {
            return Ok(Shape::Any);
        }
        self.members -= found.properties.len();
        let mut members = Vec::with_capacity(found.properties.len());
        for (name, schema) in &found.properties {
            self.refs.text(name)?;
            let value = self.value(schema, depth)?;
            members.push(ShapeMember {
                name: (*name).to_owned(),
                shape: value.shape,
                is_required: found.required.contains(name),
                fixed: value.fixed,
                is_nullable: value.is_nullable,
            });
        }
        Ok(Shape::Object(members))
    }

    /// Collects the keywords of a schema, of its `allOf`, and of the only alternative that is not null.
    fn collect(
        &mut self,
        schema: &'v Value,
        parts: usize,
        found: &mut Keywords<'v>,
    ) -> Result<(), DocumentFault> {
        let Some(parts) = parts.checked_sub(1) else {
            return Err(DocumentFault::AllOf(MOST_PARTS));
        };
        let Some(members) = self.refs.follow(schema)?.as_object() else {
            return Ok(());
        };
        for part in list(members, "allOf") {
            self.collect(part, parts, found)?;
        }
        let choices = || list(members, "oneOf").chain(list(members, "anyOf"));
        // OpenAPI 3.0 and Swagger extensions have flags.
        let is_set = |name: &str| members.get(name) == Some(&Value::Bool(true));
        found.is_nullable |= choices().any(is_null) || is_set("nullable") || is_set("x-nullable");
        found.is_nullable |= list(members, "type").any(|kind| kind == "null");
        let mut choices = choices().filter(|choice| !is_null(choice));
        match (choices.next(), choices.next()) {
            (Some(only), None) => self.collect(only, parts, found)?,
            (Some(_), Some(_)) => found.has_choices = true,
            (None, _) => {}
        }
        let kind = match members.get("type") {
            Some(Value::Array(kinds)) => {
                let mut kinds = kinds.iter().filter_map(Value::as_str);
                let mut kinds = kinds.by_ref().filter(|kind| *kind != "null");
                let first = kinds.next();
                first.filter(|_| kinds.next().is_none())
            }
            Some(kind) => kind.as_str(),
            None => None,
        };
        found.kind = kind.or(found.kind);
        found.items = members.get("items").or(found.items);
        let only = list(members, "enum").next();
        let only = only.filter(|_| list(members, "enum").nth(1).is_none());
        found.fixed = members.get("const").or(only).or(found.fixed);
        let required = list(members, "required").filter_map(Value::as_str);
        found.required.extend(required);
        if let Some(properties) = members.get("properties").and_then(Value::as_object) {
            self.refs.steps(properties.len())?;
            found.add(properties);
        }
        Ok(())
    }
}

impl<'v> Keywords<'v> {
    /// Adds the members that a server sends.
    fn add(&mut self, properties: &'v Map<String, Value>) {
        let mut known: BTreeSet<&str> = self.properties.iter().map(|(name, _)| *name).collect();
        for (name, schema) in properties {
            // In a pattern, `...` means the unnamed members.
            let is_sent = schema.get("writeOnly") != Some(&Value::Bool(true)) && name != "...";
            if is_sent && known.insert(name) {
                self.properties.push((name, schema));
            }
        }
    }
}

fn is_null(schema: &Value) -> bool {
    schema.get("type").is_some_and(|kind| kind == "null")
}

fn list<'v>(members: &'v Map<String, Value>, name: &str) -> impl Iterator<Item = &'v Value> {
    let list = members.get(name).and_then(Value::as_array);
    list.into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shape(schema: &Value) -> Shape {
        read(&Refs::new(schema).unwrap(), schema).unwrap()
    }

    #[test]
    fn parts_are_one_object() {
        let schema = json!({
            "allOf": [
                { "type": "object", "required": ["id"], "properties": { "id": { "type": "integer" } } },
                { "properties": { "kind": { "const": "pet" }, "secret": { "writeOnly": true } } },
            ],
        });
        let member = |name: &str, shape, is_required, fixed| ShapeMember {
            name: name.to_owned(),
            shape,
            is_required,
            fixed,
            is_nullable: false,
        };
        let expected = Shape::Object(vec![
            member("id", Shape::Scalar("integer"), true, None),
            member("kind", Shape::Any, false, Some(json!("pet"))),
        ]);
        assert_eq!(shape(&schema), expected);
    }

    #[test]
    fn a_schema_that_contains_itself_ends() {
        let schema = json!({
            "type": "object", "properties": { "children": { "type": "array", "items": { "$ref": "#" } } },
        });
        assert!(matches!(shape(&schema), Shape::Object(_)));
        let twice = json!({ "type": "object", "properties": { "a": { "$ref": "#" }, "b": { "$ref": "#" } } });
        assert!(matches!(shape(&twice), Shape::Object(_)));
    }

    #[test]
    fn a_choice_is_any_value_and_null_is_no_choice() {
        let choice = json!({ "oneOf": [{ "type": "string" }, { "type": "integer" }] });
        assert_eq!(shape(&choice), Shape::Any);
        let nullable = json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] });
        assert_eq!(shape(&nullable), Shape::Scalar("string"));
    }
}
