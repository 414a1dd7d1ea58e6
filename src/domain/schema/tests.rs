use serde_json::{Value, json};

use super::Schema;
use crate::domain::json::Json;

fn json(text: &str) -> Json {
    Json::parse(text.to_owned().into(), 512).unwrap()
}

fn schema(value: &Value) -> Schema {
    Schema::compile(value).unwrap_or_else(|why| panic!("{why}"))
}

/// `pointer | what`
fn fault(schema: &Schema, text: &str) -> String {
    let violation = schema.check(&json(text)).unwrap_err();
    format!("{} | {violation}", violation.pointer)
}

#[test]
fn the_first_faults_are_told_with_their_pointers_and_never_the_value() {
    let schema = schema(&json!({
        "type": "object",
        "required": ["id"],
        "additionalProperties": false,
        "properties": {
            "id": { "type": "integer" },
            "tags": { "items": { "enum": ["a", "b"] }, "maxItems": 2 },
            "~x/y": { "type": "string" },
        },
    }));
    assert_eq!(schema.check(&json(r#"{"id":1,"tags":["a"]}"#)), Ok(()));
    assert_eq!(fault(&schema, "[]"), " | it is not of type \"object\"");
}
