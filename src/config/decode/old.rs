//! `old` of a route, a row or an example, and `frame` for short: messages of an old RPC dialect.
//!
//! Used by `decode::example`, `decode::outcome` and `decode::route`.

use std::time::Duration;

use http::HeaderName;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE};

use crate::config::key::{
    Key, List, Rule, SubTable, Tree, key, list, one_or_many, section, table, tree, tree_table,
};
use crate::config::kind::{Kind, SOME_TEXT, TEXT, other, whole};
use crate::config::problem::Spanned;
use crate::config::raw::RawOld;
use crate::config::table_reader::{Shape, Table};
use crate::config::value::{self, RawValue, ValueError};
use dualgauge_model::forwarding::is_hop_field;
use dualgauge_model::route::{frame_line, is_reserved, parse_method};
use dualgauge_patterns::pattern::SourceTree;
use dualgauge_patterns::side::Side;

/// The method of an old message.
const METHOD_NAME: Kind<String> = other(
    "HTTP method; methods are case-sensitive, such as `GET` or `POST`",
    SOME_TEXT,
    method_name,
);

/// Decodes a method.
fn method_name(found: RawValue<'_>) -> Result<String, ValueError> {
    let text = value::text(found)?;
    match parse_method(&text) {
        Ok(_) => Ok(text),
        Err(error) => Err(ValueError::new(error.what)),
    }
}

/// Headers by which the proxy asks for a response that it can translate.
const NEGOTIATED: [HeaderName; 2] = [ACCEPT, ACCEPT_ENCODING];

/// The name of a header that may pass unchanged.
const PASSED_HEADER: Kind<HeaderName> = other("HTTP header name", SOME_TEXT, passed_header);

/// Decodes the name of a header that may pass: a header of the connection or of the framing, copied to a message with
/// another body, would let the recipient read the bytes of the body as another message.
fn passed_header(found: RawValue<'_>) -> Result<HeaderName, ValueError> {
    let name = value::header(found)?;
    if is_reserved(name.as_str()) || is_hop_field(&name) || NEGOTIATED.contains(&name) {
        return Err(ValueError::new(format!(
            "`{name}` belongs to a single connection or is written by the proxy, so it cannot pass"
        )));
    }
    if name == CONTENT_TYPE {
        return Err(ValueError::new(format!(
            "`{name}` always passes with such responses, and requests have that of the translated body; leave it out"
        )));
    }
    Ok(name)
}

section! {
    /// `old.pass` of a route.
    PASS {
        /// HTTP statuses that mean the same to the clients of both dialects
        STATUS: List<u16> = one_or_many("status", whole(400, 599)).required();
        /// Headers that pass with such responses, and with requests
        PASS_HEADERS: List<HeaderName> = list("headers", PASSED_HEADER);
    }
}

section! {
    /// `old` of a route.
    pub(super) OLD {
        /// HTTP method
        METHOD: Key<String> = key("method", METHOD_NAME).or("POST");
        /// URL pattern; the first of `rpc.paths` if absent
        PATH: Key<String> = key("path", TEXT);
        /// Patterns of query parameters
        QUERY: Tree = tree_table("query");
        /// Patterns of headers, in lower case
        HEADERS: Tree = tree_table("headers");
        /// Pattern of the message
        BODY: Tree = tree("body");
        /// Query parameter that has the whole message, in place of the content of the request; for GET
        PARAMETER: Key<String> = key("parameter", TEXT);
        /// Pattern of the message on a WebSocket, in place of an HTTP request
        MESSAGE: Tree = tree("message");
        /// HTTP responses that pass unchanged in both directions
        OF_PASS: SubTable = table("pass", &PASS);
    }
    rules [
        Rule::Excludes("message", &["method", "path", "query", "headers", "body", "parameter", "pass"]),
    ]
}

/// The words of `from`: old dialects and frames are protocols of the REST side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FromWord {
    Rest,
    Rpc,
    Frame,
    Old,
}

pub(super) const FROM: &[(&str, FromWord)] = &[
    ("rest", FromWord::Rest),
    ("rpc", FromWord::Rpc),
    ("frame", FromWord::Frame),
    ("old", FromWord::Old),
];

/// The left form of a route, and its patterns.
pub(super) struct LeftSide {
    /// `rest`, or the line that represents a message.
    pub(super) rest: Option<Spanned<String>>,
    pub(super) old: Option<RawOld>,
    pub(super) query: Option<Vec<(String, SourceTree)>>,
    pub(super) headers: Option<Vec<(String, SourceTree)>>,
    pub(super) body: Option<SourceTree>,
}

impl LeftSide {
    /// Returns a message on a socket. An unreadable one is a problem already; the placeholder avoids a second one about a
    /// missing side.
    fn of_message(message: Option<SourceTree>, here: Spanned<()>) -> LeftSide {
        let message = message.unwrap_or(SourceTree::Table(Vec::new()));
        LeftSide {
            rest: Some(here.map(|()| frame_line(&message))),
            old: Some(RawOld::Socket),
            query: Some(Vec::new()),
            headers: Some(Vec::new()),
            body: Some(message),
        }
    }
}

/// Decodes the left form of a route with these rules; `None` if it is `rest`.
pub(super) fn old(
    table: &mut Table<'_>,
    key: &SubTable,
    short: &Tree,
    rules: &'static [Rule],
) -> Option<LeftSide> {
    let form = left_form(table);
    if form == "rest" {
        return None;
    }
    for other in ["rest", "frame"] {
        if other != form {
            reject_beside(table, other, form);
        }
    }
    reject_excluded(table, rules);
    let here = table.at(form);
    if form == "frame" {
        return Some(LeftSide::of_message(table.tree(short), here));
    }
    let left = table.table(key, |old| {
        if old.shape(MESSAGE.name) == Shape::Absent {
            return over_http(old, &here);
        }
        reject_excluded(old, OLD.rules);
        let message = old.tree(&MESSAGE)?;
        Some(LeftSide::of_message(Some(message), here.clone()))
    });
    Some(left.unwrap_or_else(|| LeftSide::of_message(None, here)))
}

/// Decodes a message over HTTP.
fn over_http(old: &mut Table<'_>, here: &Spanned<()>) -> Option<LeftSide> {
    let method = old.get(&METHOD);
    let path = old.get(&PATH);
    let (query, headers) = (old.trees(&QUERY), old.trees(&HEADERS));
    let body = old.tree(&BODY);
    let parameter = old.get(&PARAMETER);
    let pass = old.table(&OF_PASS, |pass| {
        let (statuses, headers) = (pass.list(&STATUS), pass.list(&PASS_HEADERS));
        Some((statuses?, headers?))
    });
    let (pass_statuses, pass_headers) = pass.unwrap_or_default();
    let (query, headers, method) = (query?, headers?, method?.value);
    Some(LeftSide {
        old: Some(RawOld::Http {
            is_on_rpc_paths: path.is_none(),
            parameter,
            pass_statuses,
            pass_headers,
        }),
        rest: Some(match path {
            Some(path) => path.map(|path| format!("{method} {path}")),
            None => here.clone().map(|()| method),
        }),
        query: Some(query),
        headers: Some(headers),
        body,
    })
}

/// Finds the first rule whose key is present, and reports the keys that it excludes.
pub(super) fn reject_excluded(table: &mut Table<'_>, rules: &'static [Rule]) {
    for rule in rules {
        if let Rule::Excludes(key, others) = rule
            && table.shape(key) != Shape::Absent
        {
            for other in *others {
                reject_beside(table, other, key);
            }
            return;
        }
    }
}

/// Reports a key that must not stand next to another one.
pub(super) fn reject_beside(table: &mut Table<'_>, key: &'static str, other: &str) {
    if table.shape(key) != Shape::Absent {
        let message = format!("`{key}` and `{other}` exclude each other; write one");
        table.report(key, ValueError::new(message));
    }
}

/// Decodes `silence` of a route; only frames can be answered by silence.
pub(super) fn silence(
    table: &mut Table<'_>,
    key: &Key<Duration>,
    has_frame: bool,
) -> Option<Spanned<Duration>> {
    let silence = table.get(key);
    if silence.is_some() && !has_frame {
        let message =
            "an HTTP request always gets a response; only a route with `frame` can have `silence`";
        table.report(key.name, ValueError::new(message));
    }
    silence
}

/// Decodes `from` of a route.
pub(super) fn from(table: &mut Table<'_>, key: &Key<FromWord>) -> Option<Spanned<Side>> {
    let from = table.get(key)?;
    let form = left_form(table);
    let (word, is_wrong) = match from.value {
        FromWord::Rest => ("rest", form != "rest"),
        FromWord::Frame => ("frame", form != "frame"),
        FromWord::Old => ("old", form != "old"),
        FromWord::Rpc => ("rpc", false),
    };
    if is_wrong {
        let message = format!("the route has no `{word}`; write `{form}` or `rpc`");
        table.report(key.name, ValueError::new(message));
    }
    Some(from.map(|from| match from {
        FromWord::Rest | FromWord::Frame | FromWord::Old => Side::Rest,
        FromWord::Rpc => Side::Rpc,
    }))
}

/// Returns the key of the left form of a route.
fn left_form(table: &mut Table<'_>) -> &'static str {
    let present = |key: &&'static str| table.shape(key) != Shape::Absent;
    ["old", "frame"].into_iter().find(present).unwrap_or("rest")
}
