//! The JSON Schemas accept every shipped configuration, have every key, and refuse what the decoder refuses.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use jsonschema::Validator;
use serde_json::Value;

use super::Fixture;
use super::documented::{answer, keys, put, table_keys};
use crate::config::compile;
use crate::config::decode::CONFIG;
use crate::config::flags::{FILE, parse_flags};
use crate::config::json_schema::{flags_file, included_file, main_file};
use crate::config::key::{DescribedValue, Section};

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
        } else if path.extension().is_some_and(|end| end == "toml")
            // The metadata of the Python package, which is no configuration of the program.
            && !path.ends_with("pyproject.toml")
        {
            found.push(path);
        }
    }
}

/// Returns the schema that the first line of a file names, which must be a shipped one.
fn named(file: &Path, text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let path = line.strip_prefix("#:schema ");
    let path = path.unwrap_or_else(|| panic!("{} names no schema", file.display()));
    let schema = file.parent().unwrap().join(path);
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/schema");
    let shipped = shipped.canonicalize().unwrap();
    let schema = schema.canonicalize().unwrap();
    assert_eq!(schema.parent(), Some(&*shipped), "{}", file.display());
    fs::read_to_string(schema).unwrap()
}

#[test]
fn every_shipped_configuration_names_a_schema_and_fits_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    files(&root.join("config"), &mut found);
    files(&root.join("deploy"), &mut found);
    assert!(found.len() > 40, "{found:?}");
    for file in found {
        let text = fs::read_to_string(&file).unwrap();
        let schema: Value = named(&file, &text).parse().unwrap();
        assert_eq!(
            fault(&validator(&schema), &text),
            None,
            "{}",
            file.display()
        );
    }
}

#[test]
fn an_included_file_has_only_its_tables() {
    let (main, included) = (validator(&main_file()), validator(&included_file()));
    let route = "[[route]]\nname = 'a'\nrpc = 'a'\nrest = 'GET /a'\n";
    assert_eq!(fault(&included, route), None);
    let with_limits = format!("{route}[limits]\nbody = '1MiB'\n");
    assert_eq!(fault(&main, &with_limits), None);
    assert!(fault(&included, &with_limits).is_some());
    let including =
        Fixture::new("include = ['routes.toml']\n[upstream.a]\nside = 'rest'\nurl = 'http://a'\n");
    let problems = including.file("routes.toml", with_limits).load().err();
    assert!(problems.unwrap().to_string().contains("limits"));
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

/// Tables that break a rule between keys each, and their place in the main file or in the flags file.
const BROKEN: &[(&str, &str, &[&str])] = &[
    (
        "upstream.tls",
        "[upstream.a]\nside = 'rest'\nurl = 'https://a'\ntls = { @ }\n",
        &["certificate = 'a.pem'", "key = 'a.pem'"],
    ),
    (
        "rollout.store.tls",
        "[rollout.store]\nurl = 'rediss://a'\ntls = { @ }\n",
        &["certificate = 'a.pem'", "key = 'a.pem'"],
    ),
    (
        "rollout.source.tls",
        "[rollout.source]\nurl = 'https://a'\ntls = { @ }\n",
        &["certificate = 'a.pem'", "key = 'a.pem'"],
    ),
    (
        "rollout.bearer.keys",
        "[[rollout.bearer.keys]]\n@\n",
        &[
            "",
            "file = 'a'\nsecret_file = 'b'\nalgorithm = 'HS256'",
            "file = 'a'\nalgorithm = 'HS256'",
            "secret_file = 'a'",
            "public_key_file = 'a'",
        ],
    ),
    (
        "local.answer",
        "[[local]]\nrest = 'GET /a'\n[local.answer]\n@\n",
        &[
            "",
            "status = 200\nresult = {}",
            "body = {}",
            "text = 'a'",
            "headers = { a = 'a' }",
            "status = 200\nbody = {}\ntext = 'a'",
        ],
    ),
    (
        "local",
        "[[local]]\nanswer = 'openapi'\n@\n",
        &["", "rest = 'GET /a'\nrpc = 'a'", "rpc = 'a'\nframe = {}"],
    ),
    (
        "client.match",
        "[[client]]\nname = 'a'\n[client.match]\n@\n",
        &["", "user_agent = 'a'\naddress = ['10.0.0.1']"],
    ),
    (
        "client.key",
        "[[client]]\nname = 'a'\nmatch = { user_agent = 'a' }\n[client.key]\n@\n",
        &["", "header = 'a'\ncookie = 'b'"],
    ),
    (
        "upstream",
        "[upstream.a]\nside = 'rpc'\n@\n",
        &[
            "",
            "url = 'http://a'\ncommand = ['a']",
            "command = ['a']\nkeep_alive = '1s'",
            "command = ['a']\nretry = {}",
            "command = ['a']\nsharing = 'client'",
            "command = ['a']\nheaders = { a = 'a' }",
            "command = ['a']\ntransport = 'sse'",
            "url = 'http://a'\nmode = 'serial'",
            "urls = ['http://a']\nmode = 'serial'",
        ],
    ),
    (
        "route",
        "[[route]]\nname = 'a'\nrpc = 'a'\n@\n",
        &[
            "",
            "rest = 'GET /a'\nframe = { a = 'a' }",
            "frame = { a = 'a' }\nquery = { a = '{a}' }",
            "rest = 'GET /a'\nsilence = '1s'",
            "rest = 'GET /a'\nold = { body = { a = 'a' } }",
            "old = { body = { a = 'a' } }\nbody_format = 'form'",
        ],
    ),
    (
        "route.outcome",
        "[[route]]\nname = 'a'\nrpc = 'a'\nframe = { a = 'a' }\n[[route.outcome]]\n\
         rpc = { result = {} }\n@\n",
        &[
            "rest = { status = 200 }\nframe = {}",
            "old = { body = {} }\nframe = {}",
        ],
    ),
    (
        "route.outcome.old",
        "[[route]]\nname = 'a'\nrpc = 'a'\nold = { body = { a = 'a' } }\n[[route.outcome]]\n\
         rpc = { result = {} }\nold = { @ }\n",
        &["message = { a = 'a' }, body = { a = 'a' }"],
    ),
    (
        "route.old",
        "[[route]]\nname = 'a'\nrpc = 'a'\nold = { @ }\n",
        &["message = { a = 'a' }, body = { a = 'a' }"],
    ),
    (
        "route.outcome.rpc",
        "[[route]]\nname = 'a'\nrpc = 'a'\nrest = 'GET /a'\n[[route.outcome]]\n\
         rest = { status = 200 }\n[route.outcome.rpc]\n@\n",
        &["", "result = {}\nerror = { code = 1 }"],
    ),
    (
        "outcomes",
        "[[outcomes.a]]\nrpc = { result = {} }\n@\n",
        &[
            "rest = { status = 200 }\nframe = {}",
            "old = { body = {} }\nframe = {}",
        ],
    ),
    (
        "outcomes.old",
        "[[outcomes.a]]\nrpc = { result = {} }\nold = { @ }\n",
        &["message = { a = 'a' }, body = { a = 'a' }"],
    ),
    (
        "outcomes.rpc",
        "[[outcomes.a]]\nrest = { status = 200 }\n[outcomes.a.rpc]\n@\n",
        &["", "result = {}\nerror = { code = 1 }"],
    ),
    (
        "route.example",
        "[[route]]\nname = 'a'\nrpc = 'a'\nframe = { a = 'a' }\n[[route.example]]\n\
         rpc = { method = 'a' }\n@\n",
        &["", "rest = { call = 'GET /a' }\nframe = {}"],
    ),
    (
        "route.example.reply",
        "[[route]]\nname = 'a'\nrpc = 'a'\nframe = { a = 'a' }\n[[route.example]]\n\
         rpc = { method = 'a' }\nframe = {}\n[route.example.reply]\nrpc = { result = {} }\n@\n",
        &[
            "rest = { status = 200 }\nframe = {}",
            "old = { message = {} }\nframe = {}",
        ],
    ),
    (
        "route.example.old",
        "[[route]]\nname = 'a'\nrpc = 'a'\nold = { body = { a = 'a' } }\n[[route.example]]\n\
         rpc = { method = 'a' }\nold = { @ }\n",
        &["message = { a = 'a' }, body = { a = 'a' }"],
    ),
    (
        "route.example.reply.old",
        "[[route]]\nname = 'a'\nrpc = 'a'\nold = { body = { a = 'a' } }\n[[route.example]]\n\
         rpc = { method = 'a' }\nold = { body = { a = 'a' } }\n[route.example.reply]\n\
         rpc = { result = {} }\nold = { @ }\n",
        &["body = {}, text = 'a'", "message = {}, body = {}"],
    ),
    (
        "route.example.reply.rest",
        "[[route]]\nname = 'a'\nrpc = 'a'\nrest = 'GET /a'\n[[route.example]]\n\
         rest = { call = 'GET /a' }\nrpc = { method = 'a' }\n[route.example.reply]\n\
         rpc = { result = {} }\nrest = { status = 200, @ }\n",
        &["body = {}, text = 'a'"],
    ),
    (
        "route.example.reply.rpc",
        "[[route]]\nname = 'a'\nrpc = 'a'\nrest = 'GET /a'\n[[route.example]]\n\
         rest = { call = 'GET /a' }\nrpc = { method = 'a' }\n[route.example.reply]\n\
         rest = { status = 200 }\nrpc = { @ }\n",
        &["", "result = {}, error = { code = 1, message = 'a' }"],
    ),
    (
        "event",
        "[[event]]\nrpc = { method = 'a' }\n@\n",
        &["frame = {}\nsse = { data = {} }"],
    ),
    (
        "flag",
        "[[flag]]\nname = 'a'\nstage = 'translate'\npercent = 1\n@\n",
        &["ramp = { steps = [5, 10], every = '1h' }"],
    ),
];

/// Adds the number of rules of each table.
fn count_rules(under: &str, section: &Section, found: &mut BTreeMap<String, usize>) {
    let tables = section.more.iter().copied().chain([section]);
    for table in tables {
        if !table.rules.is_empty() {
            *found.entry(under.to_owned()).or_default() += table.rules.len();
        }
        for key in table.keys.iter().map(|key| key.describe()) {
            if let DescribedValue::Tables(inside, _) = key.value {
                let path = format!("{under}.{}", key.name);
                count_rules(path.trim_start_matches('.'), inside, found);
            }
        }
    }
}

/// Removes the rules between keys from a schema.
fn remove_rules(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.remove("allOf");
            members.values_mut().for_each(remove_rules);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_rules),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns the validators of a schema, with and without its rules between keys.
fn with_and_without_rules(mut schema: Value) -> [Validator; 2] {
    let with_rules = validator(&schema);
    remove_rules(&mut schema);
    [with_rules, validator(&schema)]
}

/// Returns true if flags are refused.
fn are_refused(text: &str) -> bool {
    let Ok(flags) = parse_flags(Path::new("flags.toml"), text) else {
        return true;
    };
    let mut problems = Vec::new();
    for flag in flags {
        let guard = flag
            .guard
            .map(|guard| compile::guard::guard(&guard, &mut problems));
        let ramp = flag.ramp;
        ramp.and_then(|ramp| compile::guard::ramp(&ramp, guard.as_ref(), &mut problems));
    }
    !problems.is_empty()
}

#[test]
fn the_schema_refuses_what_the_decoder_refuses_for_rules_between_keys() {
    let mut rules = BTreeMap::new();
    count_rules("", &CONFIG, &mut rules);
    count_rules("", &FILE, &mut rules);
    let main = with_and_without_rules(main_file());
    let flags = with_and_without_rules(flags_file());
    for (table, text, broken) in BROKEN {
        let count = rules.remove(*table).unwrap_or_default();
        assert!(broken.len() >= count, "{table} has {count} rules");
        for broken in *broken {
            let text = text.replace('@', broken);
            let [schema, without_rules] = if *table == "flag" { &flags } else { &main };
            assert_eq!(fault(without_rules, &text), None, "{text}");
            assert!(fault(schema, &text).is_some(), "the schema accepts {text}");
            let is_refused = match *table {
                "flag" => are_refused(&text),
                _ => Fixture::new(&text).load().is_err(),
            };
            assert!(is_refused, "the decoder accepts {text}");
        }
    }
    assert!(rules.is_empty(), "rules without a broken table: {rules:?}");
}
