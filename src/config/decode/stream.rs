//! `[[stream]]` Used by `decode`.

use http::Method;

use super::{local, route};
use crate::config::raw::RawStream;
use crate::config::table_reader::Table;
use crate::config::value::{RawValue, ValueError, name, timeout};

pub(super) fn stream(table: &mut Table<'_>) -> Option<RawStream> {
    let name = table.require("name", name);
    let rest = table.require("rest", call);
    let rpc = table.require("rpc", call);
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

/// Decodes a method and a path: `GET /events/{id}`.
fn call(found: RawValue<'_>) -> Result<(Method, String), ValueError> {
    local::line(found, "such as `GET /events/{id}`")
}
