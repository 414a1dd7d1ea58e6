//! `[rollout.candidates]`. Used by `decode`.

use crate::config::raw::RawCandidates;
use crate::config::table_reader::Table;
use crate::config::value::{percent, size, timeout, whole};

/// Counts that are split stay far from overflow.
const MOST: usize = 1_000_000;

pub(super) fn candidates(table: &mut Table<'_>) -> Option<RawCandidates> {
    let concurrency = table.require("concurrency", whole(1..=MOST));
    let memory = table.require("memory", size(0));
    let timeout = table.require("timeout", timeout);
    let sample = table.require("sample", percent);
    let per_request = table.require("per_request", whole(0..=MOST));
    let noise = table.require("noise", percent);
    Some(RawCandidates {
        concurrency: concurrency?,
        memory: memory?,
        timeout: timeout?,
        sample: sample?,
        per_request: per_request?,
        noise: noise?,
    })
}
