//! A whole table, and its TOML text.

use super::dice::Dice;
use super::pattern::{Part, Pattern, Speller, braces, quoted};
use super::route::{self, Form, Route, Segment};
use super::row::{self, Body, Row, RpcReply, SET};

/// How many routes a table has.
pub(crate) const ROUTES: usize = 12;

#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) routes: Vec<Route>,
    pub(crate) set: Vec<Row>,
}

impl Table {
    pub(crate) fn make(dice: &mut Dice) -> Table {
        let mut routes: Vec<Route> = (0..ROUTES).map(|index| route::make(index, dice)).collect();
        if routes.iter().all(|route| route.sets.is_empty()) {
            // A set that no route names is a problem of its own.
            routes[0].sets.push(SET);
        }
        Table {
            routes,
            set: row::set(dice),
        }
    }

    /// The rows that a route has, with their keys.
    pub(crate) fn rows(&self, index: usize) -> Vec<(String, &Row)> {
        let own = self.routes[index].rows.iter().enumerate();
        let own = own.map(|(row, it)| (format!("route[{index}].outcome[{row}]"), it));
        let sets = self.routes[index].sets.iter();
        let named = sets.flat_map(|name| {
            let rows = self.set.iter().enumerate();
            rows.map(move |(row, it)| (format!("outcomes.{name}[{row}]"), it))
        });
        own.chain(named).collect()
    }

    pub(crate) fn toml(&self) -> String {
        let mut text = String::new();
        for route in &self.routes {
            text.push_str(&route_text(route));
            for row in &route.rows {
                text.push_str(&format!("[[route.outcome]]\n{}", row_text(row)));
            }
            text.push('\n');
        }
        for row in &self.set {
            text.push_str(&format!("[[outcomes.{SET}]]\n{}", row_text(row)));
        }
        text
    }
}

fn url(route: &Route, speller: &mut Speller<'_>) -> String {
    let mut url = String::new();
    for segment in &route.path {
        url.push('/');
        match segment {
            Segment::Literal(text) => url.push_str(&text.replace(' ', "%20")),
            Segment::Hole(name) => url.push_str(&speller.hole(name)),
            Segment::Deep(name, several) => url.push_str(&format!("{{{name}={several}}}")),
        }
    }
    if !route.verb.is_empty() {
        url.push_str(&format!(":{}", route.verb));
    }
    if route.query_is_table {
        return url;
    }
    for (place, (name, pattern)) in route.query.iter().enumerate() {
        let separator = if place == 0 { '?' } else { '&' };
        let value = match pattern {
            Pattern::Literal(text) => braces(text.as_text()),
            Pattern::Encoded(name) => format!("{{{name}:json}}"),
            Pattern::Hole(name) => speller.hole(name),
            Pattern::Mixed(parts) => speller.parts(parts),
            Pattern::Forgotten(None) => "{_}".to_owned(),
            Pattern::Forgotten(Some(value)) => format!("{{_={}}}", value.plain()),
            Pattern::Object(..)
            | Pattern::List(..)
            | Pattern::Each(..)
            | Pattern::Written(_)
            | Pattern::WrittenEncoded(_) => panic!("no query has {pattern:?}"),
        };
        url.push_str(&format!("{separator}{name}={value}"));
    }
    url
}

fn method(parts: &[Part], speller: &mut Speller<'_>) -> String {
    quoted(&speller.parts(parts))
}

fn route_text(route: &Route) -> String {
    let mut speller = Speller::of(&route.holes);
    let url = url(route, &mut speller);
    let mut text = format!("[[route]]\nname = {}\n", quoted(&route.name));
    text.push_str(&format!(
        "rest = {}\n",
        quoted(&format!("{} {url}", route.http_method))
    ));
    if route.query_is_table && !route.query.is_empty() {
        let query = Pattern::Object(route.query.clone(), None);
        text.push_str(&format!("query = {}\n", speller.value(&query)));
    }
    if !route.headers.is_empty() {
        let headers = Pattern::Object(route.headers.clone(), None);
        text.push_str(&format!("headers = {}\n", speller.value(&headers)));
    }
    if let Some(body) = route.body.as_ref().filter(|_| route.form != Form::Short) {
        text.push_str(&format!("body = {}\n", speller.value(body)));
    }
    text.push_str(&format!("rpc = {}\n", method(&route.method, &mut speller)));
    if route.form != Form::Short {
        text.push_str(&format!("params = {}\n", speller.value(&route.params)));
    }
    if !route.sets.is_empty() {
        text.push_str(&format!("outcomes = {:?}\n", route.sets));
    }
    if let Some(extra) = route.extra {
        text.push_str(&format!("extra = {}\n", quoted(extra)));
    }
    if !route.loses.is_empty() || route.may_lose() {
        text.push_str("lossy = \"generated\"\n");
    }
    text
}

fn row_text(row: &Row) -> String {
    let mut speller = Speller::of(&row.holes);
    let status = match (&row.any_status, row.more) {
        (Some(name), _) => quoted(&speller.hole(name)),
        (None, Some((more, _))) => format!("[{}, {more}]", row.status),
        (None, None) => row.status.to_string(),
    };
    let mut rest = format!("status = {status}");
    if !row.headers.is_empty() {
        let headers = Pattern::Object(row.headers.clone(), None);
        rest.push_str(&format!(", headers = {}", speller.value(&headers)));
    }
    match &row.body {
        Body::None => {}
        Body::Json(body) => rest.push_str(&format!(", body = {}", speller.value(body))),
        Body::Text(parts) => rest.push_str(&format!(", text = {}", quoted(&speller.parts(parts)))),
    }
    let rpc = match &row.rpc {
        RpcReply::Result(pattern) => format!("result = {}", speller.value(pattern)),
        RpcReply::Error {
            code,
            any_code,
            more,
            message,
            data,
        } => {
            let codes = match (any_code, more) {
                (Some(name), _) => quoted(&speller.hole(name)),
                (None, []) => code.to_string(),
                (None, more) => format!("{:?}", [&[*code], *more].concat()),
            };
            let message = quoted(&speller.parts(message));
            let data = data.as_ref();
            let data = data.map_or(String::new(), |data| {
                format!(", data = {}", speller.value(data))
            });
            format!("error = {{ code = {codes}, message = {message}{data} }}")
        }
    };
    let lossy = match row.loses.is_empty() {
        true => "",
        false => "lossy = \"generated\"\n",
    };
    format!("{lossy}rest = {{ {rest} }}\nrpc = {{ {rpc} }}\n")
}
