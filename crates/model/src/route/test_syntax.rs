//! Routes and rows for tests, spelled as JSON where a route table has TOML.

use super::{Extra, Route, RouteSource, parse_route};
use crate::form::BodyFormat;
use crate::outcome::{RestReplySource, RowOrder, RowSource, RpcReplySource};
use dualgauge_patterns::json::{Json, JsonKind};
use dualgauge_patterns::pattern::SourceTree;

/// The tree that a JSON text spells.
pub(crate) fn tree(text: &str) -> SourceTree {
    let json = Json::parse(text.to_owned().into(), 128);
    of(&json.unwrap_or_else(|fault| panic!("{fault}: {text}")))
}

fn of(json: &Json) -> SourceTree {
    match json.kind() {
        JsonKind::String => SourceTree::Text(json.text().unwrap().unwrap()),
        JsonKind::Object => {
            let members = json.open().unwrap();
            let members = members.iter();
            SourceTree::Table(
                members
                    .map(|member| {
                        let value = json.piece(member.value.clone());
                        (member.name.clone().into_owned(), of(&value))
                    })
                    .collect(),
            )
        }
        JsonKind::Array => SourceTree::List(
            json.elements()
                .map(|index| of(&json.piece(index)))
                .collect(),
        ),
        JsonKind::Number | JsonKind::Boolean | JsonKind::Null => SourceTree::Literal(json.clone()),
    }
}

fn members(text: &str) -> Vec<(String, SourceTree)> {
    match tree(text) {
        SourceTree::Table(members) => members,
        other @ (SourceTree::Text(_) | SourceTree::Literal(_) | SourceTree::List(_)) => {
            panic!("{other:?} is no table")
        }
    }
}

/// The parts of a route: `rest`, `rpc`, and `headers`, `params`, `body`, `extra` as a table.
pub(crate) fn route_source(rest: &str, rpc: &str, more: &str) -> RouteSource {
    let mut source = RouteSource {
        key: "route[0]".into(),
        name: "r".into(),
        rest: rest.into(),
        rpc: rpc.into(),
        ..RouteSource::default()
    };
    for (key, tree) in members(if more.is_empty() { "{}" } else { more }) {
        match (&*key, tree) {
            ("params", tree) => source.params = Some(tree),
            ("body", tree) => source.body = Some(tree),
            ("body_format", SourceTree::Text(word)) => {
                let forms = [BodyFormat::Form, BodyFormat::Multipart];
                let form = forms.into_iter().find(|format| format.as_str() == word);
                source.body_format = form.unwrap();
            }
            ("headers", SourceTree::Table(headers)) => source.headers = headers,
            ("extra", SourceTree::Text(word)) => {
                let all = [Extra::Drop, Extra::Reject, Extra::Carry];
                source.extra = all.into_iter().find(|extra| extra.as_str() == word);
            }
            (key, tree) => panic!("{key} = {tree:?}"),
        }
    }
    source
}

/// The route, which must load.
pub(crate) fn route(rest: &str, rpc: &str, more: &str) -> Route {
    parse_route(route_source(rest, rpc, more)).unwrap_or_else(|errors| panic!("{rest}: {errors:?}"))
}

/// A row: `{ status, headers, body, text }` and `{ result }` or `{ code, message, data }`.
pub(crate) fn row(index: usize, rest: &str, rpc: &str) -> RowSource {
    let take = |members: &mut Vec<(String, SourceTree)>, key: &str| {
        let index = members.iter().position(|(name, _)| name == key)?;
        Some(members.remove(index).1)
    };
    let (mut rest, mut rpc) = (members(rest), members(rpc));
    let rpc = match take(&mut rpc, "result") {
        Some(result) => RpcReplySource::Result(result),
        None => RpcReplySource::Error {
            code: take(&mut rpc, "code").unwrap(),
            message: take(&mut rpc, "message"),
            data: take(&mut rpc, "data"),
        },
    };
    let headers = match take(&mut rest, "headers") {
        Some(SourceTree::Table(headers)) => headers,
        _ => Vec::new(),
    };
    let text = match take(&mut rest, "text") {
        Some(SourceTree::Text(text)) => Some(text),
        _ => None,
    };
    RowSource {
        key: format!("route[0].outcome[{index}]"),
        origin: 0,
        order: RowOrder::default(),
        rest: RestReplySource {
            rest_protocol: Default::default(),
            status: take(&mut rest, "status").unwrap(),
            headers,
            body: take(&mut rest, "body"),
            text,
        },
        rpc,
        lossy: None,
    }
}
