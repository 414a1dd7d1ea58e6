//! What is known once for the whole process, and comes in at scrape.

use std::time::SystemTime;

use super::process_stats::ProcessStats;
use crate::domain::pending::LinkCounts;
use crate::domain::plan::Plan;
use crate::domain::rollout::{Arming, Flag, Kill, Percent, Stage};
use crate::domain::side::Side;
use crate::domain::time::Timestamp;

/// What is known once for the whole process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GlobalMetrics {
    /// Reloads that installed a plan; the first load is none.
    pub reloads_ok: u64,
    /// Reloads that were refused and left the plan as it was.
    pub reloads_failed: u64,
    /// The time of this page: a clock that was ahead may have been set back since something was dated.
    pub now: SystemTime,
    /// When the live plan was loaded.
    pub loaded_at: SystemTime,
    /// The flags of the live plan; names are unique.
    pub flags: Vec<FlagState>,
    /// How often guards have taken their flags back, or would have.
    pub trips: Vec<GuardTrips>,
    /// What each guard said last, by the names of the flags.
    pub rulings: Vec<(String, &'static str)>,
    /// The kill switch.
    pub kill: Kill,
    /// Whether the store has answered last.
    pub store: StoreState,
    /// The links to upstreams that are spoken to over one, by their names.
    pub links: Vec<LinkState>,
    /// When deprecated sides of routes are to stop answering.
    pub sunsets: Vec<Sunset>,
    /// The memory of sessions.
    pub sessions: SessionCounts,
    /// Bodies that were read whole.
    pub buffered: BufferedBytes,
    /// Log lines that found the queue full.
    pub log_lines_dropped: u64,
    /// Spans that no collector has got.
    pub spans_dropped: u64,
    /// What the process itself uses.
    pub own: ProcessStats,
}

/// When a side of a route is to stop answering.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sunset {
    /// The route.
    pub route: String,
    /// The side whose clients are told.
    pub side: Side,
    /// The moment.
    pub at: Timestamp,
}

impl Sunset {
    /// What a plan has announced.
    #[must_use]
    pub fn all(plan: &Plan) -> Vec<Sunset> {
        let routes = plan.routes.routes().iter().zip(&plan.lifecycle.routes);
        let announced = routes.filter_map(|(route, deprecated)| {
            let said = deprecated.as_ref()?.said();
            Some(Sunset {
                route: route.name.clone(),
                side: said.side,
                at: said.sunset?,
            })
        });
        announced.collect()
    }
}

/// Bodies that were read whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BufferedBytes {
    /// How many bytes of them are held.
    pub held: u64,
    /// How many may be.
    pub limit: u64,
}

/// The memory of sessions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SessionCounts {
    /// How many began.
    pub begun: u64,
    /// How many are remembered.
    pub remembered: u64,
}

/// Whether a link is needed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StoreNeed {
    /// Calls would go over it now.
    #[default]
    Open,
    /// Each client has one for itself, and there is no client.
    None,
}

/// How the links to an upstream stand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkState {
    /// The upstream.
    pub upstream: String,
    /// Whether it needs one.
    pub need: StoreNeed,
    /// Whether it takes calls, as far as is known: of sockets of frames, whether the last one could be had.
    pub is_up: bool,
    /// How many of its links take calls.
    pub ready: u64,
    /// Calls that are written and not answered.
    pub in_flight: u64,
    /// Calls that wait for their turn.
    pub queued: u64,
    /// What has happened.
    pub counts: LinkCounts,
    /// What has become of the server's notifications.
    pub notices: Notifications,
}

/// What has become of the notifications of a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Notifications {
    /// Those that went to a client, once for each.
    pub told: u64,
    /// Those that a client missed because it did not keep up, once for each.
    pub crowded: u64,
    /// Those that went to nobody.
    pub nobody: u64,
}

/// Whether the store of what changes at run time can be relied on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreState {
    /// It can.
    Up,
    /// It is away.
    Away,
}

/// How often the guard of a flag has taken it back, or would have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardTrips {
    /// The flag.
    pub flag: String,
    /// The limit that was exceeded.
    pub limit: &'static str,
    /// `act` or `dry_run`.
    pub mode: &'static str,
    /// How often.
    pub count: u64,
}

/// One flag of the live plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlagState {
    /// Its name.
    pub flag: String,
    /// The glob of its clients.
    pub client: String,
    /// The glob of its routes.
    pub route: String,
    /// Its side; both where absent.
    pub side: Option<Side>,
    /// The stage that it gives.
    pub stage: Stage,
    /// To how many callers.
    pub percent: Percent,
    /// Whether it is in force.
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
