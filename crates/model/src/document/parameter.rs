//! OpenAPI parameters of a REST call: path, query and headers. Used by `document::openapi`.

use serde_json::{Value, json};

use super::schema::{any_of, of_slot, of_words};
use crate::route::{PlacedHole, RestCall, SegmentPattern, Template};
use dualgauge_patterns::pattern::{Delimiter, SegmentText, Shape, Slot, TextPatterns};

/// A path in OpenAPI syntax, with its parameters.
#[derive(Debug)]
pub(super) struct PathText {
    /// `/items/{id}`
    pub(super) text: String,
    /// The name and schema of each, in order.
    pub(super) parameters: Vec<(String, Value)>,
}

impl PathText {
    /// Returns the path with numbered parameters: two paths that differ only in names are the same path.
    pub(super) fn shape(&self) -> String {
        let mut shape = self.text.clone();
        for (index, (name, _)) in self.parameters.iter().enumerate() {
            shape = shape.replacen(&format!("{{{name}}}"), &format!("{{#{index}}}"), 1);
        }
        shape
    }
}

impl PathText {
    /// Adds a segment of text and holes.
    fn add_text<'h>(&mut self, text: &SegmentText, holes: impl Iterator<Item = &'h PlacedHole>) {
        self.text.push_str(text.before());
        for (hole, after) in holes.zip(text.after()) {
            let schema = of_words(&TextPatterns::Hole(hole.slot.clone()));
            let name = hole.slot.name.clone();
            self.text.push_str(&format!("{{{name}}}{after}"));
            let parameter = json!({ "in": "path", "required": true, "schema": schema });
            self.parameters.push((name, parameter));
        }
    }
}

/// Converts a template. A hole of several segments becomes one parameter for each variable segment.
pub(super) fn path_text(template: &Template) -> PathText {
    let mut path = PathText {
        text: String::new(),
        parameters: Vec::new(),
    };
    for (index, segment) in template.segments.iter().enumerate() {
        path.text.push('/');
        if let SegmentPattern::Literal(literal) = segment {
            path.text.push_str(literal);
            continue;
        }
        if let SegmentPattern::Text(text) = segment {
            path.add_text(
                text,
                template.holes.iter().filter(|hole| hole.start == index),
            );
            continue;
        }
        let covers = |hole: &&PlacedHole| (hole.start..hole.end).contains(&index);
        let hole = template.holes.iter().find(covers);
        let (name, schema) = match hole {
            Some(hole) if hole.end - hole.start == 1 => {
                let words = TextPatterns::Hole(hole.slot.clone());
                (hole.slot.name.clone(), of_words(&words))
            }
            Some(hole) => {
                let open = template.segments[hole.start..index].iter();
                let before = open.filter(|open| !matches!(open, SegmentPattern::Literal(_)));
                let name = match before.count() {
                    0 => hole.slot.name.clone(),
                    more => format!("{}_{}", hole.slot.name, more + 1),
                };
                (name, json!({ "type": "string" }))
            }
            None => (
                format!("segment_{}", index + 1),
                json!({ "type": "string" }),
            ),
        };
        path.text.push_str(&format!("{{{name}}}"));
        let mut parameter = json!({ "in": "path", "required": true, "schema": schema });
        if *segment == SegmentPattern::Rest {
            parameter["description"] = json!("any number of segments, with `/` between them");
            // OpenAPI 3.1 cannot allow `/` in the value of a path parameter.
            parameter["x-dualgauge-segments"] = json!("any");
        }
        path.parameters.push((name, parameter));
    }
    if path.text.is_empty() {
        path.text.push('/');
    }
    if let Some(verb) = &template.verb {
        path.text.push(':');
        path.text.push_str(verb);
    }
    path
}

/// Returns the parameters of the query and of the headers.
pub(super) fn named(call: &RestCall) -> Vec<Value> {
    let query = call.query.iter().map(|item| {
        let mut parameter = parameter("query", &item.key, &item.words);
        if let TextPatterns::Hole(slot) = &item.words
            && let Some((style, explode)) = style(&slot.shape)
        {
            parameter["style"] = json!(style);
            parameter["explode"] = json!(explode);
        }
        parameter
    });
    // OpenAPI describes these three elsewhere, and ignores parameters of their names.
    let described_elsewhere = ["accept", "content-type", "authorization"];
    let headers = call.headers.iter();
    let headers = headers
        .filter(|item| !described_elsewhere.contains(&item.name.as_str()))
        .map(|item| {
            let mut parameter = parameter("header", item.name.as_str(), &item.words);
            // A list header has commas between elements (OpenAPI 3.1 §4.8.12.4, `simple`); any other is one text.
            if let TextPatterns::Hole(slot) = &item.words
                && matches!(
                    slot.shape,
                    Shape::Separated(_, Delimiter::Pipe | Delimiter::Space)
                )
            {
                parameter["schema"] = json!({ "type": "string" });
            }
            parameter
        });
    let others = call.other_query.iter().map(others);
    query.chain(others).chain(headers).collect()
}

/// Returns the parameter of all query names that a route does not know: an object in the style `form`.
fn others(slot: &Slot) -> Value {
    let texts = json!({ "type": "array", "items": { "type": "string" }, "minItems": 2 });
    let value = json!({ "anyOf": [{ "type": "string" }, texts] });
    json!({
        "in": "query",
        "name": slot.name,
        "required": false,
        "style": "form",
        "explode": true,
        "schema": { "type": "object", "additionalProperties": value },
    })
}

/// Returns `style` and `explode` of a list in a query (OpenAPI 3.1 §4.8.12.4).
fn style(shape: &Shape) -> Option<(&'static str, bool)> {
    match shape {
        Shape::Repeated(_) => Some(("form", true)),
        Shape::Separated(_, Delimiter::Comma) => Some(("form", false)),
        Shape::Separated(_, Delimiter::Pipe) => Some(("pipeDelimited", false)),
        Shape::Separated(_, Delimiter::Space) => Some(("spaceDelimited", false)),
        Shape::Any | Shape::One(_) | Shape::Object | Shape::Array | Shape::Null => None,
    }
}

fn parameter(location: &str, name: &str, words: &TextPatterns) -> Value {
    let mut schema = of_words(words);
    if let TextPatterns::Hole(slot) = words
        && slot.default().is_some()
    {
        schema["default"] = of_slot(slot)["default"].clone();
    }
    json!({
        "in": location,
        "name": name,
        "required": !words.may_be_absent(),
        "schema": schema,
    })
}

/// Sets the schema of a parameter; a value that is JSON in a text is described by its content type (OpenAPI 3.1
/// §4.8.12.2).
fn set_schema(parameter: &mut Value, mut schema: Value) {
    let inner = schema.get_mut("contentSchema").map(Value::take);
    match inner {
        Some(inner) => {
            parameter["content"] = json!({ "application/json": { "schema": inner } });
            if let Some(members) = parameter.as_object_mut() {
                members.remove("schema");
            }
        }
        None => parameter["schema"] = schema,
    }
}

/// Merges the parameters of an operation that several routes share; one is required if every route requires it.
pub(super) fn merged(lists: Vec<Vec<Value>>) -> Vec<Value> {
    let count = lists.len();
    let mut merged: Vec<(Value, Vec<Value>)> = Vec::new();
    for parameter in lists.into_iter().flatten() {
        let same = |(one, _): &&mut (Value, Vec<Value>)| {
            one["in"] == parameter["in"] && one["name"] == parameter["name"]
        };
        match merged.iter_mut().find(same) {
            Some((one, schemas)) => {
                let both = one["required"] == json!(true) && parameter["required"] == json!(true);
                one["required"] = json!(both);
                schemas.push(parameter["schema"].clone());
            }
            None => {
                let schemas = vec![parameter["schema"].clone()];
                merged.push((parameter, schemas));
            }
        }
    }
    let finished = merged.into_iter().map(|(mut parameter, schemas)| {
        if schemas.len() < count {
            parameter["required"] = json!(false);
        }
        set_schema(&mut parameter, any_of(schemas));
        parameter
    });
    finished.collect()
}
