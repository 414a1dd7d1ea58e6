//! Commands from other threads to a worker.
//!
//! Used by `app`, `drain` and `listen`.

use std::sync::Arc;

use tokio::sync::oneshot;
use tokio_rustls::rustls::ServerConfig;

use crate::telemetry::metrics::Snapshot;
use crate::upstream::link::Links;
use dualgauge_model::compare::{MismatchDetail, Mismatches};
use dualgauge_model::plan::Plan;
use dualgauge_model::rollout::{Generation, Glob};

/// A command from another thread to a worker.
#[derive(Debug)]
pub enum WorkerCommand {
    /// Serves calls that begin from now on under another plan.
    Install(Box<WorkerConfig>, oneshot::Sender<()>),
    /// Copies the metrics.
    Snapshot(oneshot::Sender<Snapshot>),
    /// Copies the last mismatches.
    Mismatches(MismatchDetail, oneshot::Sender<Mismatches>),
    /// Deletes the mismatches of routes, and returns the names of these.
    ForgetMismatches(Glob, oneshot::Sender<Vec<Arc<str>>>),
    /// Stops accepting, finishes the calls in progress, and returns.
    Drain,
    /// Does the same for a process that hands its sockets to a successor.
    Retire,
}

/// The configuration of a worker.
#[derive(Debug, Clone)]
pub struct WorkerConfig {
    /// The plan.
    pub plan: Arc<Plan>,
    /// The links available to the worker.
    pub links: Links,
    /// The TLS configuration of new connections.
    pub tls: Option<Arc<ServerConfig>>,
    /// The generation of the plan.
    pub generation: Generation,
}
