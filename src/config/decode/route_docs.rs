//! Schemas and documentation of routes, and `[schemas]`. Used by `decode`, `decode::route` and `decode::stream`.

use std::path::PathBuf;

use serde_json::Value;

use crate::config::key::{Key, List, Tree, key, one_or_many, section, tree_table};
use crate::config::kind::{SOME_TEXT, STRING, TEXT, boolean, other};
use crate::config::problem::Spanned;
use crate::config::raw::{RawDocs, RawSchema, RawSchemas};
use crate::config::table_reader::{Shape, Table};
use crate::config::value::{RawValue, ValueError, text};
use dualgauge_patterns::pattern::SourceTree;

section! {
    /// `schema` of a route: each is a table, JSON as a text, or the name of a file.
    pub(super) SCHEMAS {
        /// JSON Schema of the params as a text, or its file
        PARAMS_FILE: Key<RawSchema> = key("params", other("schema", SOME_TEXT, written));
        /// JSON Schema of the params
        PARAMS_SCHEMA: Tree = tree_table("params");
        /// JSON Schema of the result as a text, or its file
        RESULT_FILE: Key<RawSchema> = key("result", other("schema", SOME_TEXT, written));
        /// JSON Schema of the result
        RESULT_SCHEMA: Tree = tree_table("result");
        /// Successes by status as a JSON text, or its file: `description`, `content_type`, `schema` and `headers`
        SUCCESSES_FILE: Key<RawSchema> = key("successes", other("schema", SOME_TEXT, written));
        /// Successes by status, for API documents: `description`, `content_type`, `schema` and `headers`
        SUCCESSES: Tree = tree_table("successes");
        /// Failures by status as a JSON text, or its file: `description`, `content_type`, `schema` and `headers`
        FAILURES_FILE: Key<RawSchema> = key("failures", other("schema", SOME_TEXT, written));
        /// Failures by status, for API documents: `description`, `content_type`, `schema` and `headers`
        FAILURES: Tree = tree_table("failures");
        /// Calls and results are checked; `false` for schemas that only document. `true` by default
        VALIDATE: Key<bool> = key("validate", boolean(&[false, true]));
    }
}

section! {
    /// The documentation keys of a route; they are read from its table.
    pub(super) DOCS {
        /// Short name for people, of a tool
        TITLE: Key<String> = key("title", STRING);
        /// Summary in one line
        SUMMARY: Key<String> = key("summary", STRING);
        /// Description, Markdown
        DESCRIPTION: Key<String> = key("description", STRING);
        /// Description of the REST body, Markdown
        BODY_DESCRIPTION: Key<String> = key("body_description", STRING);
        /// Groups in API documents
        TAGS: List<String> = one_or_many("tags", TEXT);
    }
}

/// Decodes the documentation of a route from its table.
pub(super) fn docs(table: &mut Table<'_>) -> Option<RawDocs> {
    Some(RawDocs {
        title: table.get(&TITLE),
        summary: table.get(&SUMMARY),
        description: table.get(&DESCRIPTION),
        body: table.get(&BODY_DESCRIPTION),
        tags: table.list(&TAGS)?,
    })
}

/// Decodes the schemas of a route.
pub(super) fn schemas(table: &mut Table<'_>) -> RawSchemas {
    RawSchemas {
        params: schema(table, &PARAMS_FILE, &PARAMS_SCHEMA),
        result: schema(table, &RESULT_FILE, &RESULT_SCHEMA),
        successes: schema(table, &SUCCESSES_FILE, &SUCCESSES),
        failures: schema(table, &FAILURES_FILE, &FAILURES),
        validate: table.get(&VALIDATE),
    }
}

/// Decodes `[schemas]`: tables, or JSON as texts.
pub(super) fn shared(table: &mut Table<'_>, key: &Tree) -> Vec<(Spanned<String>, Value)> {
    let members = table.trees(key).unwrap_or_default();
    let mut shared = Vec::with_capacity(members.len());
    for (name, tree) in members {
        let value = match &tree {
            SourceTree::Text(text) => parsed(text),
            SourceTree::Table(_) => Ok(plain(&tree)),
            SourceTree::Literal(_) | SourceTree::List(_) => Err(ValueError::new(
                "it is not a schema; write a table, or JSON as a text",
            )),
        };
        let place = table.at(&format!(
            "{}.{}",
            key.name,
            dualgauge_patterns::pattern::as_key(&name)
        ));
        match value {
            Ok(value) => shared.push((place.map(|()| name), value)),
            Err(wrong) => table.add(place.problem(wrong.message)),
        }
    }
    shared
}

/// Decodes a schema: a table is the schema itself. It is no pattern, so braces are literal.
fn schema(table: &mut Table<'_>, file: &Key<RawSchema>, own: &Tree) -> Option<Spanned<RawSchema>> {
    if table.shape(file.name) == Shape::Value {
        return table.get(file);
    }
    let tree = table.tree(own)?;
    Some(
        table
            .at(own.name)
            .map(|()| RawSchema::Written(plain(&tree))),
    )
}

/// Decodes a text: JSON if it begins with `{`, else the name of a file.
fn written(found: RawValue<'_>) -> Result<RawSchema, ValueError> {
    let text = text(found).map_err(|_| {
        let shown = found.describe();
        ValueError::new(format!(
            "{shown} is not a schema; write a table, JSON as a text, or the name of a file"
        ))
    })?;
    if text.trim_start().starts_with('{') {
        return parsed(&text).map(RawSchema::Written);
    }
    Ok(RawSchema::File(PathBuf::from(text)))
}

fn parsed(text: &str) -> Result<Value, ValueError> {
    serde_json::from_str(text)
        .map_err(|error| ValueError::new(format!("the schema is not JSON: {error}")))
}

fn plain(tree: &SourceTree) -> Value {
    match tree {
        SourceTree::Text(text) => Value::from(text.as_str()),
        SourceTree::Literal(json) => serde_json::from_slice(json.as_bytes()).unwrap_or_default(),
        SourceTree::List(items) => items.iter().map(plain).collect(),
        SourceTree::Table(members) => {
            let members = members.iter();
            members
                .map(|(name, member)| (name.clone(), plain(member)))
                .collect()
        }
    }
}
