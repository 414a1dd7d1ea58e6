//! The JSON Schemas accept every shipped configuration, have every key, and refuse what the decoder refuses.

use std::fs;
use std::path::{Path, PathBuf};

use jsonschema::Validator;
use serde_json::Value;

use super::documented::{answer, keys, put, table_keys};
use crate::config::json_schema::{flags_file, main_file};
use crate::config::key::DescribedValue;

/// Returns a value of a file as a JSON value, as editors do: a date is a string.
fn json(value: &toml::Value) -> Value {
    match value {
        toml::Value::String(text) => Value::from(text.as_str()),
        toml::Value::Integer(number) => Value::from(*number),
        toml::Value::Float(number) => Value::from(*number),
        toml::Value::Boolean(truth) => Value::from(*truth),
        toml::Value::Datetime(date) => Value::from(date.to_string()),
        toml::Value::Array(items) => items.iter().map(json).collect(),
        toml::Value::Table(members) => members
            .iter()
            .map(|(name, member)| (name.clone(), json(member)))
            .collect(),
    }
}

fn validator(schema: &Value) -> Validator {
    jsonschema::draft202012::new(schema).unwrap()
}

/// Returns the first fault of a configuration.
fn fault(schema: &Validator, text: &str) -> Option<String> {
    let parsed: toml::Table = text.parse().unwrap();
    let value = json(&toml::Value::Table(parsed));
    let faults = schema.iter_errors(&value);
    let faults: Vec<_> = faults
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    (!faults.is_empty()).then(|| faults.join("\n"))
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|end| end == "toml") {
            found.push(path);
        }
    }
}

#[test]
fn every_shipped_configuration_fits_the_schema() {
    let (main, flags) = (validator(&main_file()), validator(&flags_file()));
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    files(&root.join("config"), &mut found);
    files(&root.join("deploy/compose"), &mut found);
    assert!(found.len() > 10, "{found:?}");
    for file in found {
        let text = fs::read_to_string(&file).unwrap();
        let parsed: toml::Table = text.parse().unwrap();
        let schema = if parsed.contains_key("flag") {
            &flags
        } else {
            &main
        };
        assert_eq!(fault(schema, &text), None, "{}", file.display());
    }
}

#[test]
fn configurations_with_every_key_fit_the_schema() {
    let main = validator(&main_file());
    let text = include_str!("every_key.toml");
    // The decoder refuses these placeholders as well.
    let text = text.replace("api_key = \"a\"", "api_key = []");
    let text = text.replace("error = {}", "error = { code = 1, message = \"a\" }");
    assert_eq!(fault(&main, &text), None);
}

/// Returns the schemas of the keys of a table, through alternatives.
fn members<'s>(schema: &'s Value, name: &str) -> Vec<&'s Value> {
    let mut found = Vec::new();
    found.extend(schema["properties"].get(name));
    found.extend(
        (name == "NAME" || name == "MEMBER")
            .then(|| schema.get("additionalProperties"))
            .flatten(),
    );
    let alternatives = schema["anyOf"].as_array().into_iter().flatten();
    found.extend(alternatives.flat_map(|one| members(one, name)));
    found
}

fn items(schema: &Value) -> Vec<&Value> {
    let alternatives = schema["anyOf"].as_array().into_iter().flatten();
    let inside = alternatives.flat_map(items);
    schema.get("items").into_iter().chain(inside).collect()
}

/// Returns the descriptions of a key, through alternatives.
fn descriptions(schema: &Value) -> Vec<&str> {
    let alternatives = schema["anyOf"].as_array().into_iter().flatten();
    let inside = alternatives.flat_map(descriptions);
    let own = schema["description"].as_str();
    own.into_iter().chain(inside).collect()
}

#[test]
fn every_key_of_the_table_is_in_the_schema() {
    let (main, flags) = (main_file(), flags_file());
    for (key, entries) in table_keys() {
        let mut at = vec![if key.starts_with("flag") {
            &flags
        } else {
            &main
        }];
        for step in key.split('.') {
            let name = step.trim_end_matches("[]");
            at = at
                .into_iter()
                .flat_map(|schema| members(schema, name))
                .collect();
            if step.ends_with("[]") {
                at = at.into_iter().flat_map(items).collect();
            }
            assert!(!at.is_empty(), "{key} is not in the schema");
        }
        let told: Vec<_> = at.into_iter().flat_map(descriptions).collect();
        for entry in entries {
            if let DescribedValue::Value { accepts, .. } = entry.value {
                let accepts = format!("Accepts: {accepts}");
                let has = told.iter().any(|told| told.contains(&accepts));
                assert!(has, "{key} has no {accepts:?}: {told:?}");
            }
        }
    }
}

#[test]
fn a_number_that_no_key_of_a_kind_accepts_is_refused_by_the_schema() {
    let (main, flags) = (validator(&main_file()), validator(&flags_file()));
    let table = table_keys();
    let mut refused = 0;
    for (general, asked) in keys() {
        let Some(entries) = table.get(&general) else {
            continue;
        };
        let is_value = |value: &DescribedValue| matches!(value, DescribedValue::Value { .. });
        if !entries.iter().all(|entry| is_value(&entry.value)) {
            continue;
        }
        for key in asked {
            let number = toml::Value::Float(-0.5);
            let told = answer(&key, number.clone());
            if !told.is_some_and(|message| message.starts_with("the number `-0.5` is not")) {
                continue;
            }
            let (schema, text) = match key.starts_with("flag[") {
                true => (&flags, include_str!("every_flag.toml")),
                false => (&main, include_str!("every_key.toml")),
            };
            let mut value = toml::Value::Table(text.parse().unwrap());
            put(&mut value, &key, number);
            assert!(
                !schema.is_valid(&json(&value)),
                "the schema accepts -0.5 for {key}"
            );
            refused += 1;
        }
    }
    assert!(refused > 100, "{refused}");
}
