//! The state that all workers of a process share.
//!
//! Used by `app` and `gateway`.

use std::sync::Arc;

use super::cancellation::CancellationRegistry;
use super::client_requests::ClientRequests;
use super::event_sessions::EventSessions;
use super::log_levels::LogLevels;
use super::offload::Offload;
use super::request_ids::RequestIdAllocator;
use super::session_streams::SessionStreams;
use super::session_table::Sessions;
use super::shadow::ComparePool;
use super::suspended_calls::SuspendedCalls;
use crate::telemetry::metrics::LabelNames;
use crate::telemetry::recorder::Recorder;
use crate::telemetry::spans::Spans;
use dualgauge_model::compare::Salt;
#[cfg(test)]
use dualgauge_model::plan::Plan;
use dualgauge_model::plan::WorkerShare;
use dualgauge_model::trace::IdGenerator;
use dualgauge_net::MemoryBudget;

/// State shared by all workers.
#[derive(Debug, Clone)]
pub struct Shared {
    /// Label names of all plans.
    pub names: Arc<LabelNames>,
    /// Salt for hashes of differing values.
    pub salt: Salt,
    /// The session table.
    pub sessions: Arc<Sessions>,
    /// The calls that clients can cancel.
    pub cancellations: Arc<CancellationRegistry>,
    /// The requests to clients that wait for a response.
    pub client_requests: Arc<ClientRequests>,
    /// The sessions of clients over event streams.
    pub event_sessions: Arc<EventSessions>,
    /// The log levels of clients' sessions.
    pub log_levels: Arc<LogLevels>,
    /// The event streams of sessions.
    pub session_streams: Arc<SessionStreams>,
    /// The calls that wait for input of their clients.
    pub suspended_calls: Arc<SuspendedCalls>,
    /// The source of request ids.
    pub request_ids: Arc<RequestIdAllocator>,
    /// The thread for long comparisons.
    pub compare_pool: ComparePool,
    /// The threads that parse large bodies.
    pub offload: Offload,
    /// The generator of this worker's span ids.
    pub ids: IdGenerator,
    /// The exporter of trace spans, if one is configured.
    pub spans: Option<Spans>,
    /// The recorder of calls.
    pub recorder: Recorder,
    /// The memory budget of all bodies.
    pub memory: MemoryBudget,
    /// The open-file limit of the process, if there is one.
    pub open_files: Option<u64>,
    /// This worker's index and the number of workers.
    pub share: WorkerShare,
}

#[cfg(test)]
impl Shared {
    /// Returns the shared state of a single worker.
    pub(super) fn for_tests(plan: &Plan) -> Shared {
        Shared {
            names: Arc::default(),
            salt: Salt([0; 16]),
            sessions: Arc::default(),
            cancellations: Arc::default(),
            client_requests: Arc::default(),
            event_sessions: Arc::default(),
            log_levels: Arc::default(),
            session_streams: Arc::default(),
            suspended_calls: Arc::default(),
            request_ids: Arc::default(),
            compare_pool: ComparePool::open().0,
            offload: Offload::for_workers(1),
            ids: IdGenerator::new(0),
            spans: None,
            recorder: Recorder::open().0,
            memory: MemoryBudget::new(plan.limits.memory),
            open_files: None,
            share: WorkerShare {
                worker: 0,
                workers: 1,
            },
        }
    }
}
