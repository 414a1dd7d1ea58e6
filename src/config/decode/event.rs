//! `[[event]]` Used by `decode`.

use crate::config::key::{Key, Rule, SubTable, Tree, key, section, table, tree};
use crate::config::kind::{STRING, TEXT};
use crate::config::table_reader::{Shape, Table};
use dualgauge_model::event::{EventSource, OtherSide, RpcEventSource, SseSource};

section! {
    /// `rpc` of an event.
    NOTIFICATION {
        /// Method of the notification
        METHOD: Key<String> = key("method", STRING).required();
        /// Pattern of its params
        PARAMS: Tree = tree("params");
    }
}

section! {
    /// `sse` of an event.
    SSE {
        /// Pattern of the event type
        NAME: Key<String> = key("event", STRING);
        /// Pattern of the id
        ID: Key<String> = key("id", STRING);
        /// Pattern of the data as a text
        DATA_TEXT: Key<String> = key("text", STRING);
        /// Pattern of the data as JSON
        DATA: Tree = tree("data");
    }
}

section! {
    /// `[[event]]`
    pub(super) EVENT {
        /// Notification
        OF_RPC: SubTable = table("rpc", &NOTIFICATION);
        /// Pattern of a frame
        FRAME: Tree = tree("frame");
        /// Event of an event stream
        OF_SSE: SubTable = table("sse", &SSE);
        /// Reason for an accepted loss
        LOSSY: Key<String> = key("lossy", TEXT);
    }
    rules [
        Rule::Excludes("frame", &["sse"]),
    ]
}

pub(super) fn event(table: &mut Table<'_>) -> Option<EventSource> {
    let here = table.here();
    let rpc = table.table(&OF_RPC, |rpc| {
        let method = rpc.get(&METHOD);
        let params = rpc.tree(&PARAMS);
        Some(RpcEventSource {
            method: method?.value,
            params,
        })
    });
    let frame = table.tree(&FRAME);
    let sse = table.table(&OF_SSE, |sse| {
        let [event, id, text] = [&NAME, &ID, &DATA_TEXT].map(|key| {
            let text = sse.get(key);
            text.map(|text| text.value)
        });
        Some(SseSource {
            event,
            id,
            text,
            data: sse.tree(&DATA),
        })
    });
    let lossy = table.get(&LOSSY);
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
