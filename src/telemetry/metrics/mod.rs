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
mod histogram;
mod labels;
mod messages;
mod named;
mod own;
mod pools;
mod process;
mod render;
mod series;
mod shard;
#[cfg(test)]
mod tests;
mod usage;

pub use addresses::{AddressCounts, standings};
pub use labels::{CallLabels, DecisionLabels, LabelId, Names, Outcome, VerdictLabels};
pub use own::OwnUse;
pub use pools::UpstreamCalls;
pub use process::{
    Buffered, FlagState, GuardTrips, LinkState, Need, Notices, Process, SessionCounts, StoreState,
    Sunset,
};
pub use prometheus::TEXT_FORMAT;
pub use render::render;
pub use series::{SeriesEstimate, Shown, estimate};
pub use shard::{Fields, Gauges, Pool, Shard, Snapshot, Timing, tallies};
pub use usage::usage;
