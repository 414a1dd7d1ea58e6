//! Routes and rows for property tests, as a route table would spell them.
//!
//! A JSON shape is generated once and spelled twice: unchanged, and with members renamed, unwrapped or omitted, so
//! that both sides share their holes.

use proptest::prelude::*;

use crate::outcome::{RestReplySource, RowOrder, RowSource, RpcReplySource};
use crate::route::RouteSource;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::SourceTree;

/// A fixed sequence of choices; every choice after its end is zero.
#[derive(Debug, Clone)]
pub(super) struct Dice {
    throws: Vec<u8>,
    next: usize,
    holes: usize,
}

/// Generates any sequence of choices.
pub(super) fn dice() -> impl Strategy<Value = Dice> {
    let throws = proptest::collection::vec(any::<u8>(), 0..400);
    throws.prop_map(Dice::new)
}

fn text(text: impl Into<String>) -> SourceTree {
    SourceTree::Text(text.into())
}

fn literal(text: &'static str) -> SourceTree {
    SourceTree::Literal(Json::literal(text))
}

/// A value as both sides spell it.
type Both = (SourceTree, SourceTree);

/// Maps in JSON and in texts.
const MAP: &str = ":map(\"7\"=r|p=q|\"5\"=s)";
const MAPS: &str = ":map(\"7\"=r|p=q)[,]";

impl Dice {
    pub(super) fn new(throws: Vec<u8>) -> Dice {
        Dice {
            throws,
            next: 0,
            holes: 0,
        }
    }

    pub(super) fn below(&mut self, sides: usize) -> usize {
        let throw = self.throws.get(self.next).copied().unwrap_or(0);
        self.next += 1;
        usize::from(throw) % sides
    }

    fn pick(&mut self, from: &[&'static str]) -> &'static str {
        from[self.below(from.len())]
    }

    fn hole(&mut self) -> String {
        self.holes += 1;
        format!("h{}", self.holes)
    }

    /// A hole as both sides spell it, with a type and the meaning of its absence.
    fn spelled(&mut self, types: &[&'static str]) -> (String, String) {
        let name = self.hole();
        let kind = self.pick(types);
        let default = match kind {
            ":integer" | ":number" | "" => "5",
            ":boolean" => "true",
            ":enum(p|r)" => "r",
            ":string[]" | ":string[,]" => "[\"d\"]",
            MAP => "p",
            MAPS => "[\"p\",\"7\"]",
            ":object" => "{}",
            _ => "d",
        };
        let absence = match self.below(7) {
            0..=2 => String::new(),
            3 => "?".to_owned(),
            4 => format!("={default}"),
            5 => format!("?={default}"),
            _ => "=".to_owned() + if kind == ":string" { "" } else { default },
        };
        // A default is spelled like the values of its side.
        let default = match kind {
            MAP => "q",
            MAPS => "[\"q\",\"r\"]",
            _ => default,
        };
        let plain = match self.below(6) {
            0 if absence.contains('=') => format!("{{{name}?={default}}}"),
            _ => format!("{{{name}}}"),
        };
        (format!("{{{name}{kind}{absence}}}"), plain)
    }

    fn leaf(&mut self) -> Both {
        const TYPES: [&str; 9] = [
            "",
            MAP,
            ":string",
            ":integer",
            ":number",
            ":boolean",
            ":enum(p|r)",
            ":object",
            ":string[]",
        ];
        match self.below(16) {
            0 => (text("{_}"), literal("1")),
            1 => (text("{_=v}"), text("{_}")),
            2 => (literal("true"), text("x")),
            3 => (text("{>now}"), text("{_}")),
            4 => {
                const CODECS: [&str; 3] = ["json", "base64", "keys(kebab=snake)"];
                let (hole, codec) = (self.hole(), self.pick(&CODECS));
                (
                    text(format!("{{{hole}}}")),
                    text(format!("{{{hole}:{codec}}}")),
                )
            }
            5 => {
                let hole = self.hole();
                (text(format!("a {{{hole}}}")), text(format!("{{{hole}}} z")))
            }
            6 => {
                let (one, other) = (self.hole(), self.hole());
                let mixed = format!("{{{one}}}-{{{other}:integer?=5}}");
                let list = vec![text(format!("{{{one}}}")), text(format!("{{{other}}}"))];
                (text(mixed), SourceTree::List(list))
            }
            7 => {
                let hole = self.hole();
                let written = SourceTree::Table(vec![
                    ("v".to_owned(), text(format!("{{{hole}}}"))),
                    ("w".to_owned(), text(format!("is {{>{hole}}}"))),
                ]);
                (text(format!("{{{hole}:string}}")), written)
            }
            _ => {
                let (one, other) = self.spelled(&TYPES);
                (text(one), text(other))
            }
        }
    }

    fn value(&mut self, depth: usize) -> Both {
        match self.below(if depth == 0 { 6 } else { 12 }) {
            0..=5 => self.leaf(),
            6 | 7 => self.object(depth - 1),
            8 => {
                let hole = self.hole();
                let element = |name: &str| {
                    let member = (name.to_owned(), text(format!("{{{hole}}}")));
                    SourceTree::List(vec![text("*"), SourceTree::Table(vec![member])])
                };
                (element("k"), element("l"))
            }
            9 => self.alternatives(depth - 1),
            10 => {
                let (one, other) = self.spelled(&["", ":integer", ":string"]);
                let list = SourceTree::List(vec![text(one.clone())]);
                let object = SourceTree::Table(vec![("v".to_owned(), text(one))]);
                (
                    SourceTree::List(vec![text("{/}"), object, list]),
                    text(other),
                )
            }
            _ => {
                let (one, other) = self.leaf();
                (
                    SourceTree::List(vec![one]),
                    SourceTree::Table(vec![("only".to_owned(), other)]),
                )
            }
        }
    }

    /// Elements of several shapes.
    fn alternatives(&mut self, depth: usize) -> Both {
        let (mut one, mut other) = (vec![text("{|}")], vec![text("{|}")]);
        for kind in ["a", "b", "c"].iter().take(2 + self.below(2)) {
            let (here, there) = self.value(depth);
            let kind = match self.below(4) {
                0 => text("{_=k}"),
                _ => text(*kind),
            };
            one.push(SourceTree::Table(vec![
                ("kind".to_owned(), kind),
                ("v".to_owned(), here),
            ]));
            other.push(SourceTree::Table(vec![(
                format!("as{}", other.len()),
                SourceTree::List(vec![there]),
            )]));
        }
        let (one, other) = (SourceTree::List(one), SourceTree::List(other));
        match self.below(2) {
            0 => (one, other),
            _ => (
                SourceTree::List(vec![text("*"), one]),
                SourceTree::List(vec![text("*"), other]),
            ),
        }
    }

    /// An object whose members the other side names in another way.
    fn object(&mut self, depth: usize) -> Both {
        let (mut one, mut other) = (Vec::new(), Vec::new());
        for index in 0..1 + self.below(3) {
            let (here, there) = self.value(depth);
            let (here, there) = if self.below(2) == 0 {
                (here, there)
            } else {
                (there, here)
            };
            one.push((format!("m{index}"), here));
            other.push((format!("n{index}"), there));
        }
        if self.below(5) == 0 {
            let hole = self.hole();
            one.push(("...".to_owned(), text(format!("{{{hole}}}"))));
            other.push(("...".to_owned(), text(format!("{{{hole}}}"))));
        }
        (SourceTree::Table(one), SourceTree::Table(other))
    }

    /// A route in its short form, whose method or path another one may share.
    fn short(&mut self, index: usize) -> RouteSource {
        const TYPES: [&str; 5] = ["", ":integer", ":boolean", ":string[]", ":enum(p|r)"];
        let method = self.pick(&["GET", "POST", "PUT"]);
        let path = self.pick(&["/s", "/s/{id}", "/s/{id}/all", "/s/{id=**}", "/s/{id}.j"]);
        let mut rest = format!("{method} {path}");
        if self.below(2) == 0 {
            let (one, _) = self.spelled(&TYPES);
            rest.push_str(&format!("?q={one}"));
        }
        let rpc = match self.below(3) {
            0 => "tools/call".to_owned(),
            1 if path.contains("{id}") => "s/{id}".to_owned(),
            _ => format!("m{index}"),
        };
        RouteSource {
            key: format!("route[{index}]"),
            name: format!("r{index}"),
            rest,
            rpc,
            rows: (0..self.below(3)).map(|row| self.row(row)).collect(),
            ..RouteSource::default()
        }
    }

    /// A route for one tool; other routes may have its method.
    fn tool(&mut self, index: usize) -> RouteSource {
        let (one, other) = self.object(1);
        let tool = text(format!("tool{}", self.below(3)));
        RouteSource {
            key: format!("route[{index}]"),
            name: format!("r{index}"),
            rest: format!("POST /s/t{index}"),
            rpc: "tools/call".to_owned(),
            params: Some(SourceTree::Table(vec![
                ("name".to_owned(), tool),
                ("arguments".to_owned(), other),
            ])),
            body: Some(one),
            rows: (0..self.below(3)).map(|row| self.row(row)).collect(),
            ..RouteSource::default()
        }
    }

    /// Any route, with its rows.
    pub(super) fn route(&mut self, index: usize) -> RouteSource {
        match self.below(5) {
            3 => self.short(index),
            4 => self.tool(index),
            _ => self.full(index),
        }
    }

    /// A route that spells out its params.
    fn full(&mut self, index: usize) -> RouteSource {
        let has_body = self.below(2) == 0;
        let mut rest = if has_body { "POST" } else { "GET" }.to_owned();
        rest.push_str(&format!(" /r{index}"));
        let mut params = Vec::new();
        let path = match self.below(6) {
            0 => "",
            1 => "{id}",
            3 => "{id}.json",
            4 => "v{id:integer}-",
            2 => "{id:integer}",
            _ => "{id=dir/*}",
        };
        if !path.is_empty() {
            rest.push_str(&format!("/{path}"));
            params.push(("id".to_owned(), text("{id}")));
        }
        let mut headers = Vec::new();
        let mut separator = '?';
        const TYPES: [&str; 8] = [
            "",
            MAP,
            MAPS,
            ":integer",
            ":boolean",
            ":string[]",
            ":string[,]",
            ":enum(p|r)",
        ];
        for item in 0..self.below(4) {
            let (one, other) = self.spelled(&TYPES);
            if self.below(4) == 0 {
                headers.push((format!("x-{item}"), text(one)));
            } else {
                rest.push_str(&format!("{separator}q{item}={one}"));
                separator = '&';
            }
            params.push((format!("p{item}"), text(other)));
        }
        let mut query = Vec::new();
        for (key, name, keys) in [("...", "q", &mut query), ("x-m-...", "h", &mut headers)] {
            if self.below(6) == 0 {
                let hole = format!("{name}{}", self.hole());
                keys.push((key.to_owned(), text(format!("{{{hole}}}"))));
                let absence = self.pick(&["", "?", "={}", "?={}"]);
                params.push((format!("c{name}"), text(format!("{{{hole}{absence}}}"))));
            }
        }
        if self.below(4) == 0 {
            let kind = self.pick(&["", ":integer", "=d"]);
            headers.push(("x-tag".to_owned(), text(format!("{{<tag{kind}}}"))));
        }
        let mut body = None;
        if has_body {
            let (one, other) = self.object(1);
            body = Some(one);
            params.push(("data".to_owned(), other));
        }
        let rows = (0..self.below(4)).map(|row| self.row(row)).collect();
        RouteSource {
            key: format!("route[{index}]"),
            name: format!("r{index}"),
            rest,
            rpc: format!("m{index}"),
            params: Some(SourceTree::Table(params)),
            body,
            query,
            headers,
            rows,
            ..RouteSource::default()
        }
    }

    /// A status or a header that is a member of the other side.
    fn beside_the_body(
        &mut self,
        mut status: SourceTree,
        mut other: SourceTree,
    ) -> (SourceTree, SourceTree, Vec<(String, SourceTree)>) {
        let mut headers = Vec::new();
        if let SourceTree::Table(members) = &mut other {
            match self.below(6) {
                0 => {
                    status = text("{status:integer}");
                    members.push(("status".to_owned(), text("{status}")));
                }
                1 => {
                    headers.push(("location".to_owned(), text("/x/{loc}")));
                    members.push(("loc".to_owned(), text("{loc}")));
                }
                2 => {
                    headers.push(("content-type".to_owned(), text("{type=text/csv}")));
                    members.push(("type".to_owned(), text("{type}")));
                }
                _ => {}
            }
        }
        (status, other, headers)
    }

    /// The RPC side of a row.
    fn rpc(&mut self, is_error: bool, other: SourceTree) -> RpcReplySource {
        const CODES: [&str; 3] = ["-32601", "-32602", "-32000"];
        if is_error {
            let message = match self.below(3) {
                0 => None,
                _ => Some(text("what went wrong")),
            };
            RpcReplySource::Error {
                code: literal(CODES[self.below(3)]),
                message,
                data: Some(other),
            }
        } else {
            RpcReplySource::Result(other)
        }
    }

    fn row(&mut self, index: usize) -> RowSource {
        let (one, other) = match self.below(3) {
            0 => self.leaf(),
            _ => self.object(1),
        };
        let is_error = self.below(2) == 0;
        let statuses: &[SourceTree] = if is_error {
            &[
                literal("404"),
                SourceTree::List(vec![literal("400"), literal("422")]),
                SourceTree::List(vec![literal("500"), text("5xx")]),
            ]
        } else {
            &[
                literal("200"),
                literal("201"),
                SourceTree::List(vec![literal("200"), literal("202")]),
            ]
        };
        let status = statuses[self.below(3)].clone();
        let (body, content) = match self.below(6) {
            0 => (None, Some("text: {t}".to_owned())),
            1 => (None, Some("{t?}".to_owned())),
            2 => (None, None),
            _ => (Some(one), None),
        };
        let other = match (&body, &content) {
            (None, Some(_)) => SourceTree::Table(vec![("t".to_owned(), text("{t}"))]),
            (None, None) => literal("7"),
            (Some(_), _) => other,
        };
        let (status, other, headers) = self.beside_the_body(status, other);
        let rpc = self.rpc(is_error, other);
        RowSource {
            key: format!("outcome[{index}]"),
            // Rows of different origins may overlap.
            origin: index,
            order: RowOrder::default(),
            rest: RestReplySource {
                rest_protocol: Default::default(),
                status,
                headers,
                body,
                text: content,
            },
            rpc,
            lossy: None,
        }
    }
}

/// Values that a hole may accept or refuse.
const VALUES: [&str; 22] = [
    "null",
    "true",
    "false",
    "0",
    "-1",
    "7",
    "1.10",
    "1e3",
    "123456789012345678901234567890",
    "\"\"",
    "\" \"",
    "\"a-b\"",
    "\"p\"",
    "\"d\"",
    "5",
    "[]",
    "[\"d\"]",
    "{}",
    "{\"k\": [1, {}]}",
    "\"{\\\"a\\\" : 1}\"",
    "\"eyJhIiA6IDF9\"",
    "{\"a-b\": 1, \"a_b\": [{\"c-d\": 2}]}",
];

impl Dice {
    /// Any value of JSON.
    pub(super) fn json(&mut self) -> Json {
        Json::literal(self.pick(&VALUES))
    }
}
