//! The end of a route's old side: announced, refused for a while, gone; and who still calls it.
//!
//! ```text
//! deprecated   what clients of the old side are told, and the windows in which they are refused
//! prefixes     where calls that belong to no route could have meant one
//! watching     when calls were counted, on which replicas, and when not
//! usage        who has called what, how it was served and when last
//! report       what that says of each route: safe to delete, not yet, unknown
//! ```
//!
//! Laws: what is announced goes out on every answer of the deprecated side and changes nothing else of it; counts of
//! several processes merge in any order; a report never says safe while a call lies within the time asked for, or
//! while nobody counted.

mod deprecated;
mod observation;
mod prefixes;
mod report;
#[cfg(test)]
mod tests;
mod usage;

use http::HeaderMap;

use super::side::Side;

pub use deprecated::{Announcement, Brownouts, Deprecated, Window};
pub use observation::{Interval, Observation, ReplicaObservation};
pub use prefixes::Prefixes;
pub use report::{
    CallerReport, CountReport, DeletionVerdict, DeprecationReport, ReportQuery, RouteReport,
    UnroutedReport, UsageEvidence, UsageReport, parse_idle, report, span,
};
pub use usage::{ClientUsage, Usage, UsageCount, UsageError};

/// What a plan says of the end of its routes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lifecycle {
    /// Of each route, by its place in the table.
    pub routes: Vec<Option<Deprecated>>,
    /// Where calls of no route are counted.
    pub prefixes: Prefixes,
}

impl Lifecycle {
    /// What is announced to callers of a side of a route.
    #[must_use]
    pub fn of(&self, route: Option<usize>, side: Side) -> Option<&Deprecated> {
        let deprecated = self.routes.get(route?)?.as_ref()?;
        (deprecated.side() == side).then_some(deprecated)
    }

    /// Adds what is announced to the headers of an answer to a call of a route from a side.
    pub fn announce(&self, route: Option<usize>, side: Side, headers: &mut HeaderMap) {
        if let Some(deprecated) = self.of(route, side) {
            deprecated.announce(headers);
        }
    }
}
