//! Metrics: plain counts in each worker, summed and rendered at scrape.
//!
//! ```text
//! family      every metric's name, kind and help
//! labels      the label values: closed enums, and names of the plan by their ids
//! histogram   counts in fixed buckets
//! shard       the counts of one worker, which only its own thread touches
//! process     what is known once for the whole process
//! render      shards summed → the page
//! named       the families with names of the configuration
//! series      how many of their series there may be
//! own         what the process itself uses
//! addresses   how the addresses of upstreams stand
//! pools       the calls at upstreams against what may be there
//! usage       shards summed → who has called what, by name
//! ```
//!
//! Laws: no lock and no atomic on the way of a call; text that a caller sent is never a label; the page of
//! several shards is the page of one shard that was fed everything.

mod addresses;
#[cfg(test)]
mod documented;
mod family;
mod global;
mod histogram;
mod labels;
mod messages;
mod named;
mod process_stats;
mod render;
mod series;
mod shard;
#[cfg(test)]
mod tests;
mod upstream_calls;
mod usage;

pub use addresses::{AddressCounts, standings};
pub use global::{
    BufferedBytes, FlagState, GlobalMetrics, GuardTrips, LinkState, Notifications, SessionCounts,
    StoreNeed, StoreState, Sunset,
};
pub use labels::{CallLabels, DecisionLabels, LabelId, LabelNames, Outcome, VerdictLabels};
pub use process_stats::ProcessStats;
pub use prometheus::TEXT_FORMAT;
pub use render::render;
pub use series::{SeriesEstimate, ShownSeries, estimate};
pub use shard::{CallFields, Gauges, Pool, Shard, Snapshot, Timing, tallies};
pub use upstream_calls::UpstreamCalls;
pub use usage::usage;
