//! Metrics: plain counts in each worker, summed and rendered on each scrape.
//!
//! ```text
//! evaluations    the evaluations of flags for applications
//! family         the name, kind and help of every metric
//! flag_source    the polls of a source of flags
//! labels         the label values: closed enums, and ids of configured names
//! histogram      counts in fixed buckets
//! shard          the counts of one worker, accessed by its own thread only
//! global         process-wide values
//! protobuf       families and series as the types of the Prometheus library
//! render         the sum of all shards, rendered as a page
//! named          the families labelled with configured names
//! series         the limit on the number of their series
//! process_stats  the resources that the process uses
//! addresses      the state of the addresses of upstreams
//! upstream_calls the calls at upstreams, and their limits
//! call_table     the calls of all shards by client and by route, with latency
//! usage          the sum of all shards as usage by client and route
//! ```
//!
//! Laws: counting a call takes no lock and no atomic operation; text from a caller is never a label; the page of
//! several shards equals the page of one shard that counted everything.
//!
//! Used in most modules.

mod addresses;
mod call_counts;
mod call_table;
#[cfg(test)]
mod documented;
mod evaluations;
mod family;
mod flag_source;
mod global;
mod hasher;
mod histogram;
mod labels;
mod mcp_calls;
mod named;
mod process_stats;
mod protobuf;
mod render;
mod series;
mod shard;
#[cfg(test)]
mod tests;
mod unrouted_counts;
mod upstream_calls;
mod usage;

pub use addresses::address_counts;
pub use call_table::{CallErrors, CallTable, Durations, Performance, RouteCalls, StageCalls};
pub use evaluations::{EvaluatedAs, EvaluationCounts, EvaluationRequest};
pub use flag_source::{FlagSourceState, PollCounts, PollResult};
pub use global::{
    BufferedBytes, FlagState, GlobalMetrics, GuardTrips, LinkState, LiveStreamCounts,
    Notifications, SessionCounts, Sunset,
};
pub use labels::{CallLabels, DecisionLabels, LabelId, LabelNames, Outcome, VerdictLabels};
pub use mcp_calls::McpCall;
pub use process_stats::ProcessStats;
pub use prometheus::TEXT_FORMAT;
pub use render::render;
pub use series::{SeriesEstimate, ShownSeries, estimate};
pub use shard::{CallFields, Gauges, Pool, Shard, Snapshot, Timing, tallies};
pub use usage::usage;
