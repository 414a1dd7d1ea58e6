//! `[[event]]` Used by `decode`.

use crate::config::table_reader::{Shape, Table};
use crate::config::value::{string, text};
use dualgauge_model::event::{EventSource, OtherSide, RpcEventSource, SseSource};

pub(super) fn event(table: &mut Table<'_>) -> Option<EventSource> {
    let here = table.here();
    let rpc = table.table("rpc", |rpc| {
        let method = rpc.require("method", string);
        let params = rpc.tree("params");
        Some(RpcEventSource {
            method: method?.value,
            params,
        })
    });
    let frame = table.tree("frame");
    let sse = table.table("sse", |sse| {
        let mut member = |name| sse.get(name, string).map(|text| text.value);
        let (event, id, text) = (member("event"), member("id"), member("text"));
        Some(SseSource {
            event,
            id,
            text,
            data: sse.tree("data"),
        })
    });
    let lossy = table.get("lossy", text);
    let both = ["frame", "sse"].map(|name| table.shape(name) != Shape::Absent);
    if both == [true, true] {
        let problem = here.problem("`frame` and `sse` exclude each other; write two `[[event]]`");
        table.add(problem);
        return None;
    }
    let frame = frame.map(OtherSide::Frame);
    Some(EventSource {
        key: here.key,
        rpc,
        shown: frame.or(sse.map(OtherSide::Sse)),
        lossy: lossy.map(|lossy| lossy.value),
    })
}
