//! `[[stream]]` Used by `decode`.

use std::time::Duration;

use http::Method;

use super::{local, route};
use crate::config::key::{Key, SubTable, key, section, table};
use crate::config::kind::{Kind, NAME, SOME_TEXT, TIMEOUT, other};
use crate::config::raw::RawStream;
use crate::config::table_reader::Table;
use crate::config::value::{RawValue, ValueError};

/// A method and a path.
const CALL: Kind<(Method, String)> = other(
    "call; write a method and a path such as `GET /events/{id}`",
    SOME_TEXT,
    call,
);

section! {
    /// `[[stream]]`
    pub(super) STREAM {
        /// Unique name, also among routes
        STREAM_NAME: Key<String> = key("name", NAME).required();
        /// GET and path of REST clients
        REST: Key<(Method, String)> = key("rest", CALL).required();
        /// GET and path of RPC clients
        RPC: Key<(Method, String)> = key("rpc", CALL).required();
        /// Name of an upstream; the default of each side if absent
        UPSTREAM: Key<String> = key("upstream", NAME);
        /// Names of upstreams, by side
        UPSTREAMS: SubTable = table("upstream", &route::BY_SIDE);
        /// Age limit of a stream
        MAX_AGE: Key<Duration> = key("max_age", TIMEOUT);
    }
}

pub(super) fn stream(table: &mut Table<'_>) -> Option<RawStream> {
    let name = table.get(&STREAM_NAME);
    let rest = table.get(&REST);
    let rpc = table.get(&RPC);
    let upstreams = route::upstreams(table, &UPSTREAM, &UPSTREAMS);
    let max_age = table.get(&MAX_AGE);
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
