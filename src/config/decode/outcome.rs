//! `[[route.outcome]]` and `[[outcomes.NAME]]`: the same rows. Used by `decode`.

use super::old;
use crate::config::key::{
    Key, List, Rule, SubTable, Tree, key, one_or_many, section, table, tree, tree_table,
};
use crate::config::kind::{STRING, TEXT};
use crate::config::problem::Problem;
use crate::config::table_reader::{Shape, Table};
use dualgauge_model::outcome::{RestReplySource, RowOrder, RowSource, RpcReplySource};
use dualgauge_model::route::Wire;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::SourceTree;

section! {
    /// `rest` of a row.
    REST {
        /// Number, or list of numbers and classes, of which the first is written
        STATUS: Tree = tree("status").required();
        /// Patterns of headers
        REST_HEADERS: Tree = tree_table("headers");
        /// Pattern of a JSON body
        BODY: Tree = tree("body");
        /// Pattern of a text
        BODY_TEXT: Key<String> = key("text", STRING);
    }
}

section! {
    /// `old` of a row.
    OLD {
        /// Number, or list of numbers and classes, of which the first is written; 200 if absent
        OLD_STATUS: Tree = tree("status");
        /// Patterns of headers
        OLD_HEADERS: Tree = tree_table("headers");
        /// Pattern of the message
        OLD_BODY: Tree = tree("body");
        /// Pattern of a text that is no message
        OLD_TEXT: Key<String> = key("text", STRING);
        /// Pattern of the message on a WebSocket, in place of an HTTP response
        OLD_MESSAGE: Tree = tree("message");
    }
    rules [
        Rule::Excludes("message", &["status", "headers", "body", "text"]),
    ]
}

section! {
    /// `error` of a row.
    ERROR {
        /// Number, or list of numbers and classes, of which the first is written
        CODE: Tree = tree("code").required();
        /// Pattern of the message
        MESSAGE: Tree = tree("message");
        /// Pattern of the data
        DATA: Tree = tree("data");
    }
}

section! {
    /// `rpc` of a row: exactly one of these keys.
    RPC {
        /// Pattern of the result
        RESULT: Tree = tree("result");
        /// Pattern of the error
        OF_ERROR: SubTable = table("error", &ERROR);
    }
    rules [
        Rule::ExactlyOne(&["result", "error"]),
    ]
}

section! {
    /// `[[route.outcome]]` or `[[outcomes.NAME]]`
    pub(super) ROW {
        /// Name, for `after` of other rows
        NAME: Key<String> = key("name", TEXT);
        /// Names of rows of this table that take a response first where both fit
        AFTER: List<String> = one_or_many("after", TEXT);
        /// HTTP response
        OF_REST: SubTable = table("rest", &REST);
        /// Response of an old RPC dialect, in place of `rest`
        OF_OLD: SubTable = table("old", &OLD);
        /// Short for `old.message`; without any of them: silence
        FRAME: Tree = tree("frame");
        /// JSON-RPC response
        OF_RPC: SubTable = table("rpc", &RPC).required();
        /// Reason for an accepted loss
        LOSSY: Key<String> = key("lossy", TEXT);
    }
    rules [
        Rule::Excludes("rest", &["old", "frame"]),
        Rule::Excludes("old", &["frame"]),
    ]
}

pub(super) fn row(table: &mut Table<'_>) -> Option<RowSource> {
    let here = table.here();
    old::reject_excluded(table, ROW.rules);
    let rest = if table.shape(OF_REST.name) != Shape::Absent {
        table.table(&OF_REST, |rest| {
            let status = rest.tree(&STATUS);
            http_reply(rest, Wire::Http, status)
        })
    } else if table.shape(OF_OLD.name) != Shape::Absent {
        table.table(&OF_OLD, old_reply)
    } else {
        // A row without `frame` means silence. Later it is checked that its route has frames.
        Some(RestReplySource::frame(table.tree(&FRAME)))
    };
    let rpc = table.table(&OF_RPC, rpc_reply);
    let lossy = table.get(&LOSSY);
    let (name, after) = (table.get(&NAME), table.list(&AFTER));
    Some(RowSource {
        key: here.key,
        origin: 0,
        order: RowOrder {
            name: name.map(|name| name.value),
            after: after?.into_iter().map(|name| name.value).collect(),
        },
        rest: rest?,
        rpc: rpc?,
        lossy: lossy.map(|lossy| lossy.value),
    })
}

/// Decodes an HTTP response. `old` has the same keys as `rest`.
fn http_reply(
    table: &mut Table<'_>,
    rest_protocol: Wire,
    status: Option<SourceTree>,
) -> Option<RestReplySource> {
    let headers = table.trees(&REST_HEADERS);
    let body = table.tree(&BODY);
    let text = table.get(&BODY_TEXT);
    Some(RestReplySource {
        rest_protocol,
        status: status?,
        headers: headers?,
        body,
        text: text.map(|text| text.value),
    })
}

fn old_reply(table: &mut Table<'_>) -> Option<RestReplySource> {
    if table.shape(OLD_MESSAGE.name) != Shape::Absent {
        old::reject_excluded(table, OLD.rules);
        let message = table.tree(&OLD_MESSAGE)?;
        return Some(RestReplySource::frame(Some(message)));
    }
    let status = match table.shape(OLD_STATUS.name) {
        Shape::Absent => Some(SourceTree::Literal(Json::literal("200"))),
        Shape::Table | Shape::Value => table.tree(&OLD_STATUS),
    };
    http_reply(table, Wire::Old, status)
}

fn rpc_reply(table: &mut Table<'_>) -> Option<RpcReplySource> {
    let result = table.tree(&RESULT);
    let error = table.table(&OF_ERROR, |error| {
        let code = error.tree(&CODE);
        let message = error.tree(&MESSAGE);
        let data = error.tree(&DATA);
        Some(RpcReplySource::Error {
            code: code?,
            message,
            data,
        })
    });
    if let Some(problem) = not_exactly_one(table) {
        table.add(problem);
        return None;
    }
    result.map(RpcReplySource::Result).or(error)
}

/// Rejects an RPC response that does not have exactly one of `result` and `error` (JSON-RPC 2.0 §5).
pub(super) fn not_exactly_one(table: &mut Table<'_>) -> Option<Problem> {
    let present = ["result", "error"].map(|name| table.shape(name) != Shape::Absent);
    let here = table.here();
    match present {
        [true, false] | [false, true] => None,
        [false, false] => Some(here.problem("`result` or `error` is missing")),
        [true, true] => Some(here.problem("`result` and `error` exclude each other; write one")),
    }
}
