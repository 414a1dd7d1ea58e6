//! The corpus: small tables with their expected verdicts, in `tests/data/corpus.toml`.

use toml::{Table, Value};

use super::report::{Direction, FindingKind, LossVerdict, RefusalCause, RouteReport};
use crate::outcome::{RestReplySource, RowOrder, RowSource, RpcReplySource};
use crate::route::{Extra, Route, RouteSource, RouteTable, parse_route};
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::SourceTree;
use dualgauge_patterns::side::Side;

/// A table whose first route is checked.
pub(super) struct Case {
    pub(super) name: String,
    pub(super) table: RouteTable,
    pub(super) expected: Vec<String>,
}

pub(super) fn corpus() -> Vec<Case> {
    let text = include_str!("../../../../tests/data/corpus.toml");
    let corpus: Table = text.parse().unwrap();
    tables(&corpus, "case").map(case).collect()
}

/// Renders the verdict of each direction as a line: `request from rest: lossy forgotten`.
pub(super) fn verdict_lines(report: &RouteReport) -> Vec<String> {
    let directions = report.directions.iter();
    directions
        .filter(|direction| direction.kind != FindingKind::BuiltIn)
        .map(line)
        .collect()
}

fn line(direction: &Direction) -> String {
    let what = match direction.kind {
        FindingKind::Request => "request".to_owned(),
        FindingKind::Outcome(row) => format!("row {row}"),
        FindingKind::BuiltIn => "built-in".to_owned(),
    };
    let verdict = match direction.verdict() {
        LossVerdict::NormalForm => "norm",
        verdict @ (LossVerdict::Lossless | LossVerdict::Lossy | LossVerdict::Never) => {
            verdict.as_str()
        }
    };
    let findings = direction.losses.iter().chain(&direction.norms);
    let refusals = (direction.refusals.iter()).map(|refusal| match &refusal.cause {
        RefusalCause::RouteInFront(by) => format!("behind:{by}"),
        RefusalCause::Value { rule, .. } => rule.as_str().to_owned(),
    });
    let mut rules: Vec<String> = findings
        .map(|finding| finding.rule.as_str().to_owned())
        .chain(refusals)
        .collect();
    rules.sort_unstable();
    rules.dedup();
    let rules = rules
        .into_iter()
        .map(|rule| format!(" {rule}"))
        .collect::<String>();
    format!("{what} from {}: {verdict}{rules}", direction.from)
}

fn tables<'t>(table: &'t Table, key: &str) -> impl Iterator<Item = &'t Table> {
    let list = table
        .get(key)
        .map(|value| value.as_array().unwrap().as_slice());
    list.unwrap_or_default()
        .iter()
        .map(|value| value.as_table().unwrap())
}

fn case(case: &Table) -> Case {
    let name = case["name"].as_str().unwrap().to_owned();
    let mut expected = Vec::new();
    expect(case, "request", &mut expected);
    for (index, row) in tables(case, "outcome").enumerate() {
        expect(row, &format!("row {index}"), &mut expected);
    }
    let mut routes = vec![route(case, &name)];
    for (index, also) in tables(case, "also").enumerate() {
        routes.push(route(also, &format!("also{index}")));
    }
    let table = RouteTable::build(routes).unwrap_or_else(|errors| panic!("{name}: {errors:?}"));
    Case {
        name,
        table,
        expected,
    }
}

/// `expect = ["lossless", "lossy forgotten"]`: from REST, from RPC; one text for both.
fn expect(table: &Table, what: &str, expected: &mut Vec<String>) {
    let texts = match &table["expect"] {
        Value::Array(both) => both.iter().map(|one| one.as_str().unwrap()).collect(),
        one @ (Value::String(_)
        | Value::Integer(_)
        | Value::Float(_)
        | Value::Boolean(_)
        | Value::Datetime(_)
        | Value::Table(_)) => vec![one.as_str().unwrap(); 2],
    };
    for (from, text) in Side::ALL.into_iter().zip(texts) {
        expected.push(format!("{what} from {from}: {text}"));
    }
}

fn text(table: &Table, key: &str) -> Option<String> {
    Some(table.get(key)?.as_str().unwrap().to_owned())
}

fn tree(value: &Value) -> SourceTree {
    match value {
        Value::String(text) => SourceTree::Text(text.clone()),
        Value::Array(items) => SourceTree::List(items.iter().map(tree).collect()),
        Value::Table(members) => SourceTree::Table(
            members
                .iter()
                .map(|(name, member)| (name.clone(), tree(member)))
                .collect(),
        ),
        literal
        @ (Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_)) => {
            SourceTree::Literal(Json::parse(literal.to_string().into(), 1).unwrap())
        }
    }
}

fn pairs(table: &Table, key: &str) -> Vec<(String, SourceTree)> {
    let pairs = table.get(key).map(|value| value.as_table().unwrap());
    pairs
        .into_iter()
        .flatten()
        .map(|(name, value)| (name.clone(), tree(value)))
        .collect()
}

pub(super) fn route(table: &Table, name: &str) -> Route {
    let rows = tables(table, "outcome").enumerate();
    let source = RouteSource {
        name: name.to_owned(),
        rest: text(table, "rest").unwrap(),
        rpc: text(table, "rpc").unwrap_or_else(|| "m".to_owned()),
        params: table.get("params").map(tree),
        body: table.get("body").map(tree),
        query: pairs(table, "query"),
        headers: pairs(table, "headers"),
        extra: text(table, "extra").map(|extra| match extra.as_str() {
            "drop" => Extra::Drop,
            "reject" => Extra::Reject,
            "carry" => Extra::Carry,
            other => panic!("{other}"),
        }),
        from: text(table, "from").map(|from| match from.as_str() {
            "rest" => Side::Rest,
            "rpc" => Side::Rpc,
            other => panic!("{other}"),
        }),
        is_notification: table.get("notify").is_some(),
        after: text(table, "after").into_iter().collect(),
        rows: rows.map(|(index, table)| row(index, table)).collect(),
        ..RouteSource::default()
    };
    parse_route(source).unwrap_or_else(|errors| panic!("{name}: {errors:?}"))
}

fn row(index: usize, table: &Table) -> RowSource {
    let (rest, rpc) = (
        table["rest"].as_table().unwrap(),
        table["rpc"].as_table().unwrap(),
    );
    RowSource {
        key: format!("outcome[{index}]"),
        origin: table.get("origin").map_or(0, |origin| {
            usize::try_from(origin.as_integer().unwrap()).unwrap()
        }),
        order: RowOrder::default(),
        rest: RestReplySource {
            rest_protocol: Default::default(),
            status: tree(&rest["status"]),
            headers: pairs(rest, "headers"),
            body: rest.get("body").map(tree),
            text: text(rest, "text"),
        },
        rpc: match rpc.get("error") {
            None => RpcReplySource::Result(tree(&rpc["result"])),
            Some(error) => {
                let part = |key: &str| error.get(key).map(tree);
                RpcReplySource::Error {
                    code: part("code").unwrap(),
                    message: part("message"),
                    data: part("data"),
                }
            }
        },
        lossy: None,
    }
}
