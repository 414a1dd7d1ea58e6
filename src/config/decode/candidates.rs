//! `[rollout.candidates]`. Used by `decode::rollout`.

use std::time::Duration;

use super::shared::MOST;
use crate::config::key::{Key, key, section};
use crate::config::kind::{PERCENT, TIMEOUT, size, whole};
use crate::config::raw::RawCandidates;
use crate::config::table_reader::Table;

section! {
    /// `[rollout.candidates]`
    pub(super) CANDIDATES {
        /// Concurrent candidates in the process
        CONCURRENCY: Key<usize> = key("concurrency", whole(1, MOST)).or("16");
        /// Calls and responses kept for candidates in the process
        MEMORY: Key<usize> = key("memory", size(0)).or("16MiB");
        /// Longest time of a candidate
        LIMIT: Key<Duration> = key("timeout", TIMEOUT).or("5s");
        /// Percent of eligible calls that get a candidate
        SAMPLE: Key<u32> = key("sample", PERCENT).or("100");
        /// Candidates per HTTP request
        PER_REQUEST: Key<usize> = key("per_request", whole(0, MOST)).or("1");
        /// Percent of comparisons that repeat the control
        NOISE: Key<u32> = key("noise", PERCENT).or("1");
    }
}

pub(super) fn candidates(table: &mut Table<'_>) -> Option<RawCandidates> {
    let concurrency = table.get(&CONCURRENCY);
    let memory = table.get(&MEMORY);
    let timeout = table.get(&LIMIT);
    let sample = table.get(&SAMPLE);
    let per_request = table.get(&PER_REQUEST);
    let noise = table.get(&NOISE);
    Some(RawCandidates {
        concurrency: concurrency?,
        memory: memory?,
        timeout: timeout?,
        sample: sample?,
        per_request: per_request?,
        noise: noise?,
    })
}
