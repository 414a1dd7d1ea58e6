//! `[limits]` Used by `decode`.

use std::time::Duration;

use super::shared::MOST;
use crate::config::key::{Key, key, section};
use crate::config::kind::{DURATION, TIMEOUT, size, whole};
use crate::config::raw::RawLimits;
use crate::config::table_reader::Table;

/// The smallest head limit that hyper accepts.
const LEAST_HEAD: usize = 8 * 1024;

section! {
    /// `[limits]`
    pub(super) LIMITS {
        /// Largest buffered request body: JSON-RPC and translated calls
        BODY: Key<usize> = key("body", size(1)).or("8MiB");
        /// Largest buffered response; all responses of a batch together
        ANSWER: Key<usize> = key("answer", size(1)).or("16MiB");
        /// Largest request head
        HEAD: Key<usize> = key("head", size(LEAST_HEAD)).or("64KiB");
        /// Longest request target
        TARGET: Key<usize> = key("target", size(1)).or("8KiB");
        /// Messages per batch
        BATCH: Key<usize> = key("batch", whole(1, MOST)).or("100");
        /// Nesting of arrays and objects in JSON
        DEPTH: Key<usize> = key("depth", whole(1, 512)).or("128");
        /// Concurrent calls in the process; more get 503
        IN_FLIGHT: Key<usize> = key("in_flight", whole(1, MOST)).or("10000");
        /// Client connections in the process; more are closed
        CONNECTIONS: Key<usize> = key("connections", whole(1, MOST)).or("10000");
        /// Buffered bytes in the process; more get 503
        MEMORY: Key<usize> = key("memory", size(1)).or("256MiB");
        /// From the first byte of a request head to its end
        HEADER_TIMEOUT: Key<Duration> = key("header_timeout", TIMEOUT).or("10s");
        /// For a kept HTTP/1.1 connection, until the end of the next request head
        IDLE_TIMEOUT: Key<Duration> = key("idle_timeout", TIMEOUT).or("75s");
        /// For a buffered request body
        BODY_TIMEOUT: Key<Duration> = key("body_timeout", TIMEOUT).or("30s");
        /// Lowest average rate of a request body in bytes per second; 0 for none
        BODY_RATE: Key<usize> = key("body_rate", size(0)).or("240");
        /// Time before `body_rate` applies
        BODY_GRACE: Key<Duration> = key("body_grace", DURATION).or("5s");
        /// For a whole call, from its first byte to the last byte of its response
        TOTAL_TIMEOUT: Key<Duration> = key("total_timeout", TIMEOUT);
        /// For a client that reads nothing of its response
        WRITE_TIMEOUT: Key<Duration> = key("write_timeout", TIMEOUT).or("30s");
        /// For calls in progress at shutdown
        DRAIN: Key<Duration> = key("drain", DURATION).or("30s");
        /// Upstream text in `error.data`
        ERROR_TEXT: Key<usize> = key("error_text", size(0)).or("4KiB");
    }
}

pub(super) fn limits(table: &mut Table<'_>) -> Option<RawLimits> {
    let body = table.get(&BODY);
    let answer = table.get(&ANSWER);
    let head = table.get(&HEAD);
    let target = table.get(&TARGET);
    let batch = table.get(&BATCH);
    let depth = table.get(&DEPTH);
    let in_flight = table.get(&IN_FLIGHT);
    let connections = table.get(&CONNECTIONS);
    let memory = table.get(&MEMORY);
    let header_timeout = table.get(&HEADER_TIMEOUT);
    let idle_timeout = table.get(&IDLE_TIMEOUT);
    let body_timeout = table.get(&BODY_TIMEOUT);
    let body_rate = table.get(&BODY_RATE);
    let body_grace = table.get(&BODY_GRACE);
    let total_timeout = table.get(&TOTAL_TIMEOUT);
    let write_timeout = table.get(&WRITE_TIMEOUT);
    let drain = table.get(&DRAIN);
    let error_text = table.get(&ERROR_TEXT);
    Some(RawLimits {
        body: body?,
        answer: answer?,
        head: head?,
        target: target?,
        batch: batch?,
        depth: depth?,
        in_flight: in_flight?,
        connections: connections?,
        memory: memory?,
        header_timeout: header_timeout?,
        idle_timeout: idle_timeout?,
        body_timeout: body_timeout?,
        body_rate: body_rate?,
        body_grace: body_grace?,
        total_timeout,
        write_timeout: write_timeout?,
        drain: drain?,
        error_text: error_text?,
    })
}
