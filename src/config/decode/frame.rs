//! `frame` in place of `rest` in a route, a row or an example.
//!
//! Used by `decode::example`, `decode::outcome` and `decode::route`.

use std::time::Duration;

use crate::config::key::{Key, Tree};
use crate::config::problem::Spanned;
use crate::config::table_reader::{Shape, Table};
use crate::config::value::ValueError;
use dualgauge_model::route::frame_line;
use dualgauge_patterns::pattern::SourceTree;
use dualgauge_patterns::side::Side;

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

/// Keys of a route that describe an HTTP request.
const OF_REQUESTS: &[&str] = &["rest", "query", "headers", "body"];

/// Decodes `frame` of a route.
pub(super) fn frame(table: &mut Table<'_>, key: &Tree) -> Option<SourceTree> {
    if table.shape(key.name) == Shape::Absent {
        return None;
    }
    let frame = table.tree(key);
    reject_requests(table, key.name);
    // An unreadable frame is a problem already; the placeholder avoids a second one about a missing side.
    frame.or(Some(SourceTree::Table(Vec::new())))
}

/// Reports the keys of a REST request beside another left form.
pub(super) fn reject_requests(table: &mut Table<'_>, form: &str) {
    for key in OF_REQUESTS {
        reject_beside(table, key, form);
    }
}

/// Reports a key that must not stand next to another one.
pub(super) fn reject_beside(table: &mut Table<'_>, key: &'static str, other: &str) {
    if table.shape(key) != Shape::Absent {
        let message = format!("`{key}` and `{other}` exclude each other; write one");
        table.report(key, ValueError::new(message));
    }
}

/// Decodes `rest` of a route, or the line that represents its frame.
pub(super) fn line(
    table: &mut Table<'_>,
    rest: &Key<String>,
    frame: Option<&SourceTree>,
) -> Option<Spanned<String>> {
    match frame {
        Some(frame) => {
            let key = form_key(table);
            Some(table.at(key).map(|()| frame_line(frame)))
        }
        None => table.require(rest),
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
    let form = form_key(table);
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
fn form_key(table: &mut Table<'_>) -> &'static str {
    let present = |key: &&'static str| table.shape(key) != Shape::Absent;
    ["old", "frame"].into_iter().find(present).unwrap_or("rest")
}

/// Reports keys that must not stand next to `rest` or `frame`.
pub(super) fn reject_both(table: &mut Table<'_>, keys: &[&'static str]) {
    for key in keys {
        let other = if *key == "rest" { "frame" } else { "rest" };
        let both = table.shape(key) != Shape::Absent
            && (*key == "rest" || table.shape("rest") != Shape::Absent);
        if both {
            let message = format!("`{key}` and `{other}` exclude each other; write one");
            table.report(key, ValueError::new(message));
        }
    }
}
