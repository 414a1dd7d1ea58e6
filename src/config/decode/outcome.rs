//! `[[route.outcome]]` and `[[outcomes.NAME]]`: the same rows. Used by `decode`.

use super::frame;
use crate::config::problem::Problem;
use crate::config::table_reader::{Shape, Table};
use crate::config::value::{string, text};
use dualgauge_model::outcome::{RestReplySource, RowSource, RpcReplySource};

pub(super) fn row(table: &mut Table<'_>) -> Option<RowSource> {
    let here = table.here();
    let rest = if table.shape("rest") == Shape::Absent {
        // A row without `frame` means silence. Later it is checked that its route has frames.
        Some(RestReplySource::frame(frame::reply(table)))
    } else {
        frame::reject_both(table, &["frame"]);
        table.require_table("rest", rest_reply)
    };
    let rpc = table.require_table("rpc", rpc_reply);
    let lossy = table.get("lossy", text);
    Some(RowSource {
        key: here.key,
        origin: 0,
        rest: rest?,
        rpc: rpc?,
        lossy: lossy.map(|lossy| lossy.value),
    })
}

fn rest_reply(table: &mut Table<'_>) -> Option<RestReplySource> {
    let status = table.require_tree("status");
    let headers = table.trees("headers");
    let body = table.tree("body");
    let text = table.get("text", string);
    Some(RestReplySource {
        rest_protocol: Default::default(),
        status: status?,
        headers: headers?,
        body,
        text: text.map(|text| text.value),
    })
}

fn rpc_reply(table: &mut Table<'_>) -> Option<RpcReplySource> {
    let result = table.tree("result");
    let error = table.table("error", |error| {
        let code = error.require_tree("code");
        let message = error.tree("message");
        let data = error.tree("data");
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
