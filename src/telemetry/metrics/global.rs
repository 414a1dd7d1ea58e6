//! Process-wide values, passed in on each scrape. Used by `metrics::named` and `metrics::render`.

use std::time::SystemTime;

use super::evaluations::EvaluationCounts;
use super::flag_source::FlagSourceState;
use super::process_stats::ProcessStats;
use crate::telemetry::recorder::RecorderCounts;
use dualgauge_model::pending::LinkCounts;
use dualgauge_model::plan::Plan;
use dualgauge_model::rollout::{Arming, Flag, Kill, Percent, Stage};
use dualgauge_model::time::Timestamp;
use dualgauge_patterns::side::Side;

/// The process-wide values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GlobalMetrics {
    /// The number of reloads that installed a plan, without the first load.
    pub reloads_ok: u64,
    /// The number of reloads that were refused and left the plan unchanged.
    pub reloads_failed: u64,
    /// The time of the scrape. Times after it come from a clock that has since been set back.
    pub now: SystemTime,
    /// The time at which the live plan was loaded.
    pub loaded_at: SystemTime,
    /// The flags of the live plan; names are unique.
    pub flags: Vec<FlagState>,
    /// The trips of guards, enforced or dry-run.
    pub trips: Vec<GuardTrips>,
    /// The last decision of each guard, by the name of the flag.
    pub rulings: Vec<(String, &'static str)>,
    /// The evaluations for applications.
    pub evaluations: EvaluationCounts,
    /// The live streams of the admin API.
    pub live_streams: LiveStreamCounts,
    /// The state of the kill switch.
    pub kill: Kill,
    /// True if the store of runtime changes is available.
    pub is_store_up: bool,
    /// The state of the source of flags, if there is one.
    pub source: Option<FlagSourceState>,
    /// The state of the links to upstreams.
    pub links: Vec<LinkState>,
    /// The sunset times of deprecated sides of routes.
    pub sunsets: Vec<Sunset>,
    /// The counts of remembered sessions.
    pub sessions: SessionCounts,
    /// The memory of buffered bodies.
    pub buffered: BufferedBytes,
    /// The number of log lines dropped because the queue was full.
    pub log_lines_dropped: u64,
    /// The number of spans that no collector received.
    pub spans_dropped: u64,
    /// The counts of the recorder of calls.
    pub recorder: RecorderCounts,
    /// The resource usage of the process.
    pub own: ProcessStats,
}

/// The time at which a side of a route stops responding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sunset {
    /// The route.
    pub route: String,
    /// The side whose clients are informed.
    pub side: Side,
    /// The time.
    pub at: Timestamp,
}

impl Sunset {
    /// Returns the sunset times announced by a plan.
    #[must_use]
    pub fn all(plan: &Plan) -> Vec<Sunset> {
        let routes = plan.routes.routes().iter().zip(&plan.lifecycle.routes);
        let announced = routes.filter_map(|(route, deprecated)| {
            let announcement = deprecated.as_ref()?.announcement();
            Some(Sunset {
                route: route.name.clone(),
                side: announcement.side,
                at: announcement.sunset?,
            })
        });
        announced.collect()
    }
}

/// The memory of bodies that were read completely.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BufferedBytes {
    /// The bytes in use.
    pub used: u64,
    /// The limit in bytes.
    pub limit: u64,
}

/// The counts of live streams of the admin API.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LiveStreamCounts {
    /// The number of open streams.
    pub open: u64,
    /// The number of streams that were opened.
    pub opened: u64,
    /// The number of streams that the limit refused.
    pub refused: u64,
    /// The number of streams that could not begin.
    pub failed: u64,
}

/// The counts of sessions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SessionCounts {
    /// The number of sessions started.
    pub started: u64,
    /// The number of sessions remembered.
    pub remembered: u64,
}

/// The state of the links to an upstream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkState {
    /// The name of the upstream.
    pub upstream: String,
    /// True if no link is needed: each client has a link of its own, and there is no client.
    pub is_idle: bool,
    /// True if calls are taken, as far as is known; for legacy sockets, if the last one could be opened.
    pub is_up: bool,
    /// The number of links that take calls.
    pub ready: u64,
    /// The number of calls written and not answered.
    pub in_flight: u64,
    /// The number of queued calls.
    pub queued: u64,
    /// The number of open subscriptions with ids of the server.
    pub subscribed: u64,
    /// The event counters of the links.
    pub counts: LinkCounts,
    /// The outcomes of the server's notifications.
    pub notices: Notifications,
}

/// The outcomes of the notifications of a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Notifications {
    /// Delivered, counted for each client.
    pub told: u64,
    /// Dropped because a client's queue was full, counted for each client.
    pub crowded: u64,
    /// Dropped because there was no client to send it to.
    pub nobody: u64,
}

/// The trips of the guard of a flag, enforced or dry-run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardTrips {
    /// The flag.
    pub flag: String,
    /// The limit that was exceeded.
    pub limit: &'static str,
    /// `act` or `dry_run`.
    pub mode: &'static str,
    /// The number of trips.
    pub count: u64,
}

/// One flag of the live plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlagState {
    /// The name of the flag.
    pub flag: String,
    /// The glob of its clients.
    pub client: String,
    /// The glob of its routes.
    pub route: String,
    /// Its side; both if absent.
    pub side: Option<Side>,
    /// The stage that it gives.
    pub stage: Stage,
    /// The percentage of callers that it applies to.
    pub percent: Percent,
    /// The arming state of the flag.
    pub arming: Arming,
}

impl From<&Flag> for FlagState {
    fn from(flag: &Flag) -> Self {
        FlagState {
            flag: flag.name.clone(),
            client: flag.client.as_str().to_owned(),
            route: flag.route.as_str().to_owned(),
            side: flag.side,
            stage: flag.stage,
            percent: match flag.arming {
                Arming::Armed => flag.share(),
                Arming::Tripped => Percent::NONE,
            },
            arming: flag.arming,
        }
    }
}
