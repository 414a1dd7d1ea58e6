//! JSON Schemas (2020-12) of the main file, of included files and of the flags file, from the table of keys.
//!
//! They describe the form of values, and the rules between keys of one table. Like required keys, these rules hold for a
//! table as a whole, also if variables supply some of its keys. Rules that depend on values are left to `check`.
//!
//! Used by `cli`.

use serde_json::{Map, Value, json};

use crate::config::decode;
use crate::config::flags;
use crate::config::include;
use crate::config::key::{DefaultValue, DescribedValue, Description, Rule, Section, TableShape};

/// Returns the schema of the main file.
#[must_use]
pub fn main_file() -> Value {
    document("Configuration of dualgauge", &decode::CONFIG)
}

/// Returns the schema of included files, which have fewer tables than the main file.
#[must_use]
pub fn included_file() -> Value {
    let mut schema = document("Route table of dualgauge", &decode::CONFIG);
    if let Some(Value::Object(tables)) = schema.get_mut("properties") {
        tables.retain(|name, _| include::ROUTE_TABLES.contains(&name.as_str()));
    }
    schema
}

/// Returns the schema of the flags file.
#[must_use]
pub fn flags_file() -> Value {
    document("Flags of dualgauge", &flags::FILE)
}

fn document(title: &str, section: &Section) -> Value {
    let mut schema = table(section);
    if let Value::Object(members) = &mut schema {
        let dialect = "https://json-schema.org/draft/2020-12/schema";
        members.insert("$schema".to_owned(), dialect.into());
        members.insert("title".to_owned(), title.into());
    }
    schema
}

fn table(section: &Section) -> Value {
    let mut forms: Map<String, Value> = Map::new();
    let mut required = Vec::new();
    for key in section.keys.iter().map(|key| key.describe()) {
        if key.is_required {
            required.push(key.name);
        }
        add(&key, &mut forms);
    }
    let more = section.more.iter().flat_map(|more| more.keys);
    for key in more {
        add(&key.describe(), &mut forms);
    }
    let properties: Map<String, Value> = forms
        .into_iter()
        .map(|(name, forms)| (name, any_of(forms)))
        .collect();
    let mut schema = json!({
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    });
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    let more = section.more.iter().flat_map(|more| more.rules);
    let rules: Vec<Value> = section.rules.iter().chain(more).map(rule).collect();
    if !rules.is_empty() {
        schema["allOf"] = rules.into();
    }
    schema
}

/// Returns the schema of the tables that follow a rule.
fn rule(rule: &Rule) -> Value {
    let has = |key: &&str| json!({ "required": [key] });
    match rule {
        Rule::ExactlyOne(keys) => {
            let keys: Vec<Value> = keys.iter().map(has).collect();
            json!({ "oneOf": keys })
        }
        Rule::Excludes(key, others) => {
            let others: Vec<Value> = others.iter().map(has).collect();
            json!({ "not": { "required": [key], "anyOf": others } })
        }
        Rule::Needs(key, [only]) => {
            let needed = Map::from_iter([((*key).to_owned(), json!([only]))]);
            json!({ "dependentRequired": needed })
        }
        Rule::Needs(key, others) => {
            let others: Vec<Value> = others.iter().map(has).collect();
            let needed = Map::from_iter([((*key).to_owned(), json!({ "anyOf": others }))]);
            json!({ "dependentSchemas": needed })
        }
    }
}

/// Adds the form of a key; several entries of one name are alternatives.
fn add(key: &Description, forms: &mut Map<String, Value>) {
    let form = form(key);
    let of_name = forms.entry(key.name).or_insert_with(|| json!([]));
    if let Value::Array(known) = of_name
        && !known.contains(&form)
    {
        known.push(form);
    }
}

fn any_of(forms: Value) -> Value {
    match forms.as_array().map(Vec::as_slice) {
        Some([only]) => only.clone(),
        Some(_) | None => json!({ "anyOf": forms }),
    }
}

fn form(key: &Description) -> Value {
    let (mut schema, accepts) = match &key.value {
        DescribedValue::Value { accepts, schema } => (schema.clone(), Some(accepts)),
        DescribedValue::Tables(section, shape) => (tables(table(section), *shape), None),
    };
    if schema == Value::Bool(true) {
        schema = json!({});
    }
    let about = key.about.trim();
    let mut description = vec![about.to_owned()];
    description.extend(accepts.map(|accepts| format!("Accepts: {accepts}")));
    match &key.default {
        Some(DefaultValue::Fixed(default)) => schema["default"] = default.clone(),
        Some(DefaultValue::Computed(default)) => description.push(format!("Default: {default}")),
        None => {}
    }
    schema["description"] = description.join("\n\n").into();
    schema
}

fn tables(table: Value, shape: TableShape) -> Value {
    let list = |table: Value| json!({ "type": "array", "items": table });
    let named = |table: Value| json!({ "type": "object", "additionalProperties": table });
    match shape {
        TableShape::One => table,
        TableShape::List => list(table),
        TableShape::Named => named(table),
        TableShape::NamedLists => named(list(table)),
    }
}
