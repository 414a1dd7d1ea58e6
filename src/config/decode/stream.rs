//! `[[stream]]`

use super::{local, route};
use crate::config::kind::{name, timeout};
use crate::config::raw::RawStream;
use crate::config::reader::Table;

pub(super) fn stream(table: &mut Table<'_>) -> Option<RawStream> {
    let name = table.require("name", name);
    let rest = table.require("rest", local::call);
    let rpc = table.require("rpc", local::call);
    let upstreams = route::upstreams(table);
    let max_age = table.get("max_age", timeout);
    Some(RawStream {
        name: name?,
        rest: rest?,
        rpc: rpc?,
        upstreams,
        max_age,
    })
}
