//! `old` of a route, a row or an example: messages of an old RPC dialect.
//!
//! Used by `decode::example`, `decode::outcome` and `decode::route`.

use http::HeaderName;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE};

use super::frame;
use crate::config::key::{
    Key, List, Rule, SubTable, Tree, key, list, one_or_many, section, table, tree, tree_table,
};
use crate::config::kind::{Kind, SOME_TEXT, TEXT, other, whole};
use crate::config::problem::Spanned;
use crate::config::raw::RawOld;
use crate::config::table_reader::{Shape, Table};
use crate::config::value::{self, RawValue, ValueError};
use dualgauge_model::forwarding::is_hop_field;
use dualgauge_model::route::{is_reserved, parse_method};
use dualgauge_patterns::pattern::SourceTree;

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

/// `old` of a route: its patterns, and what else it says.
pub(super) struct OldForm {
    pub(super) raw: RawOld,
    pub(super) query: Vec<(String, SourceTree)>,
    pub(super) headers: Vec<(String, SourceTree)>,
    pub(super) body: Option<SourceTree>,
}

/// The left form of a route.
pub(super) enum LeftForm {
    /// An HTTP request with an old message.
    Http(Box<OldForm>),
    /// A message on a socket.
    Frame(SourceTree),
}

/// Decodes `old` of a route.
pub(super) fn old(table: &mut Table<'_>, key: &SubTable) -> Option<LeftForm> {
    if table.shape(key.name) == Shape::Absent {
        return None;
    }
    frame::reject_requests(table, key.name);
    for other in ["frame", "body_format"] {
        frame::reject_beside(table, other, key.name);
    }
    let form = table.table(key, |old| {
        if old.shape(MESSAGE.name) != Shape::Absent {
            for key in [
                "method",
                "path",
                "query",
                "headers",
                "body",
                "parameter",
                "pass",
            ] {
                frame::reject_beside(old, key, MESSAGE.name);
            }
            return old.tree(&MESSAGE).map(LeftForm::Frame);
        }
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
        let raw = RawOld {
            method: method?,
            path,
            parameter,
            pass_statuses,
            pass_headers,
        };
        Some(LeftForm::Http(Box::new(OldForm {
            raw,
            query: query?,
            headers: headers?,
            body,
        })))
    });
    // An unreadable form is a problem already; the placeholder avoids a second one about a missing side.
    form.or(Some(LeftForm::Frame(SourceTree::Table(Vec::new()))))
}

/// Returns the line that represents an old message without a path of its own.
pub(super) fn line(raw: &RawOld, here: &Spanned<()>) -> Spanned<String> {
    match &raw.path {
        Some(path) => path
            .clone()
            .map(|path| format!("{} {path}", raw.method.value)),
        None => here.clone().map(|()| raw.method.value.clone()),
    }
}
