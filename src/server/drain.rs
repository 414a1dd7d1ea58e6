//! The drain of one worker: the calls in progress end within `limits.drain`, and commands are obeyed meanwhile.
//!
//! Used by `listen`.

use std::pin::pin;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::error::Elapsed;
use tokio::time::timeout;

use super::worker_command::{WorkerCommand, WorkerConfig};
use crate::gateway::Worker;
use crate::telemetry::clock;

/// The maximum time at the end of a drain that is reserved for error responses to unfinished calls. The share is a
/// tenth of the drain limit.
const LAST_ANSWERS: Duration = Duration::from_secs(1);
/// The time for these responses if the drain limit leaves none.
const LEAST_FOR_ANSWERS: Duration = Duration::from_millis(50);
/// The time for which a drain keeps idle connections open, so that they close after a response and not during a call in
/// transit. It is at most a quarter of the drain limit.
const LINGER: Duration = Duration::from_secs(2);

/// Finishes the calls in progress within the drain limit.
pub(super) async fn drain_calls(
    worker: &Worker,
    commands: &mut mpsc::Receiver<WorkerCommand>,
    drain: watch::Sender<()>,
) {
    let began = clock::now();
    let limit = worker.runtime_plan().plan.limits.drain;
    let _ = wait_until_idle(worker, commands, LINGER.min(limit / 4)).await;
    drop(drain);
    worker.stop_comparing();
    worker.stop_pooling();
    worker.close_upgraded();
    let reserved = LAST_ANSWERS.min(limit / 10);
    let left = limit.saturating_sub(reserved + (clock::now() - began));
    if wait_until_idle(worker, commands, left).await.is_ok() {
        return;
    }
    // The clients of unfinished calls get a response while there is time to write it.
    worker.end_calls();
    if wait_until_idle(worker, commands, reserved.max(LEAST_FOR_ANSWERS))
        .await
        .is_err()
    {
        tracing::warn!(
            tasks = worker.tasks().running(),
            ?limit,
            "calls were still in progress at the end of the drain"
        );
        worker.abort_calls();
    }
}

/// Waits up to `limit` until no task runs on the worker; answers queries meanwhile.
async fn wait_until_idle(
    worker: &Worker,
    commands: &mut mpsc::Receiver<WorkerCommand>,
    limit: Duration,
) -> Result<(), Elapsed> {
    let mut idle = pin!(timeout(limit, worker.tasks().idle()));
    loop {
        // Both branches are cancel-safe.
        tokio::select! {
            waited = idle.as_mut() => return waited,
            Some(command) = commands.recv() => match command {
                WorkerCommand::Snapshot(reply) => drop(reply.send(worker.snapshot())),
                WorkerCommand::Mismatches(detail, reply) => {
                    drop(reply.send(worker.mismatches(detail)));
                }
                WorkerCommand::ForgetMismatches(routes, reply) => {
                    drop(reply.send(worker.forget_mismatches(&routes)));
                }
                // Calls still begin on open connections: the kill switch must act on them.
                WorkerCommand::Install(next, done) => {
                    let WorkerConfig { plan, links, generation, .. } = *next;
                    worker.install(plan, &links, generation);
                    let _ = done.send(());
                }
                // The worker is already shutting down.
                WorkerCommand::Drain | WorkerCommand::Retire => {}
            },
        }
    }
}
