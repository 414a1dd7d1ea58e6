//! `[[route]]` Used by `decode` and `decode::stream`.

use std::path::PathBuf;

use serde_json::Value;

use super::{compare, example, frame, lifecycle, outcome};
use crate::config::problem::Spanned;
use crate::config::raw::{RawRoute, RawSchema, RawSchemas};
use crate::config::table_reader::{Shape, Table};
use crate::config::value::{ValueError, boolean, name, text, timeout, word};
use dualgauge_model::route::{Effect, Extra};
use dualgauge_patterns::pattern::SourceTree;
use dualgauge_patterns::side::Side;

const EFFECTS: &[(&str, Effect)] = &[
    ("safe", Effect::Safe),
    ("idempotent", Effect::Idempotent),
    ("unsafe", Effect::Unsafe),
];
const EXTRAS: &[(&str, Extra)] = &[
    ("drop", Extra::Drop),
    ("reject", Extra::Reject),
    ("carry", Extra::Carry),
];

pub(super) fn route(table: &mut Table<'_>) -> Option<RawRoute> {
    let here = table.here();
    let name = table.require("name", name);
    let frame = frame::frame(table);
    let rest = frame::line(table, frame.as_ref());
    let silence = frame::silence(table);
    let rpc = table.require("rpc", text);
    let params = table.tree("params");
    let body = table.tree("body");
    let query = table.trees("query");
    let headers = table.trees("headers");
    let extra = table.get("extra", word(EXTRAS, &[]));
    let ignore_query = ignore_query(table);
    let from = frame::from(table);
    let notify = table.get("notify", boolean(false, true));
    let effect = table.get("effect", word(EFFECTS, &[]));
    let timeout = table.get("timeout", timeout);
    let affinity = table.get("affinity", text);
    let successor = table.get("successor", text);
    let deprecated = lifecycle::end(table);
    let lossy = table.get("lossy", text);
    let upstreams = upstreams(table);
    let rows = table.tables("outcome", outcome::row);
    let sets = table.one_or_many("outcomes", text);
    let examples = table.tables("example", example::example);
    let schema = table.table("schema", |table| Some(schemas(table)));
    let compare = table.table("compare", compare::compare);
    Some(RawRoute {
        place: here.place,
        key: here.key,
        name: name?,
        rest: rest?,
        frame,
        silence,
        rpc: rpc?,
        params,
        body,
        query: query?,
        headers: headers?,
        extra,
        ignore_query: ignore_query?,
        from,
        notify,
        effect,
        timeout,
        affinity,
        successor,
        deprecated,
        lossy,
        upstreams,
        rows,
        sets: sets?,
        examples,
        schema: schema.unwrap_or_default(),
        compare: compare.unwrap_or_default(),
    })
}

/// Returns the query parameters that the route ignores; `Some(None)` without a list of its own, `None` if the list is
/// invalid.
fn ignore_query(table: &mut Table<'_>) -> Option<Option<Vec<Spanned<String>>>> {
    match table.shape("ignore_query") {
        Shape::Absent => Some(None),
        Shape::Table | Shape::Value => table.list("ignore_query", text).map(Some),
    }
}

/// Decodes the schemas of a route.
fn schemas(table: &mut Table<'_>) -> RawSchemas {
    RawSchemas {
        params: schema(table, "params"),
        result: schema(table, "result"),
    }
}

/// Decodes a name, or one for each side.
pub(super) fn upstreams(table: &mut Table<'_>) -> Vec<(Option<Side>, Spanned<String>)> {
    if table.shape("upstream") != Shape::Table {
        let one = table.get("upstream", name);
        return one.into_iter().map(|name| (None, name)).collect();
    }
    let both = table.table("upstream", |sides| {
        let rest = sides.get("rest", name).map(|name| (Some(Side::Rest), name));
        let rpc = sides.get("rpc", name).map(|name| (Some(Side::Rpc), name));
        Some(rest.into_iter().chain(rpc).collect())
    });
    both.unwrap_or_default()
}

/// Decodes a schema: a table is the schema itself, a string its file name. Neither is a pattern, so braces are literal.
fn schema(table: &mut Table<'_>, name: &'static str) -> Option<Spanned<RawSchema>> {
    if table.shape(name) == Shape::Value {
        let file = table.get(name, |found| {
            text(found).map_err(|_| {
                let shown = found.describe();
                ValueError::new(format!(
                    "{shown} is not a schema; write a table, or the name of a file"
                ))
            })
        });
        return file.map(|file| file.map(|path| RawSchema::File(PathBuf::from(path))));
    }
    let tree = table.tree(name)?;
    Some(table.at(name).map(|()| RawSchema::Written(plain(&tree))))
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
