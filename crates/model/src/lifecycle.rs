//! The end of a route's old side: deprecation headers, brownouts, and reports of the clients that still call it.
//!
//! ```text
//! deprecated   headers that announce the end, and the windows in which calls are refused
//! deprecations the deprecations of a plan
//! prefixes     path prefixes under which a call of no route may have meant one
//! observation  the times in which calls were counted, for each replica
//! usage        counts by route, client and side, with the time of the last call
//! eras         the MCP era, revision and program of each client
//! era_report   whether the old MCP era can be switched off
//! timeline     the shares of calls and clients on the new side over time
//! report       the verdict for each route: safe to delete, not yet, unknown
//! ```
//!
//! Laws: an announcement is added to every answer of the deprecated side and changes nothing else of it. Counts of
//! several processes merge in any order. A report says "safe" only if calls were counted for the whole requested time
//! and none arrived in it.
//!
//! Used in most modules.

mod deprecated;
mod deprecations;
mod era_report;
mod eras;
mod observation;
mod prefixes;
mod report;
#[cfg(test)]
mod tests;
mod timeline;
mod usage;

pub use deprecated::{Announcement, Brownouts, Deprecated, Window};
pub use deprecations::Lifecycle;
pub use era_report::{EraClientReport, EraReport, EraVerdict, ProgramReport};
pub use eras::{DeclaredName, DeclaredNames, EraUsage};
pub use observation::{Interval, Observation, ReplicaObservation};
pub use prefixes::Prefixes;
pub use report::{
    CallerReport, CountReport, DEFAULT_IDLE, DeletionVerdict, DeprecationReport, ReportQuery,
    RouteReport, UnroutedReport, UsageEvidence, UsageReport, parse_idle, report, span,
};
pub use timeline::{Timeline, TimelineInterval};
pub use usage::{ClientUsage, Usage, UsageCount, UsageError, UsageTotals};
