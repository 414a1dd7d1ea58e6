//! One worker without a listener, for calls from a recording. It has the links, upstreams and comparisons of a worker
//! that serves calls, but no state, no flags and no admin listener.
//!
//! Used by `cli::replay`.

use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, LocalOptions};
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::compare_thread::CompareThread;
use super::link_thread::LinkThread;
use super::workers::{SharedThreads, shared};
use crate::gateway::Worker;
use crate::telemetry::metrics::LabelNames;
use crate::telemetry::recorder::Recorder;
use dualgauge_model::plan::Plan;
use dualgauge_model::rollout::Percent;
use dualgauge_model::shadow_limits::ShadowLimits;
use dualgauge_net::MemoryBudget;

/// The interval between checks for idle upstream connections and due health checks.
const TIDY: Duration = Duration::from_secs(1);
/// The least memory for calls and responses.
const MEMORY: usize = 256 * 1024 * 1024;
/// The time for the end of links to servers.
const LINKS_END: Duration = Duration::from_secs(5);

/// Runs `work` with a worker that serves a plan of [`for_replay`].
///
/// # Errors
/// Returns the error of the operating system for a thread.
pub fn with_worker<T>(plan: &Arc<Plan>, work: impl AsyncFnOnce(Rc<Worker>) -> T) -> io::Result<T> {
    let memory = MemoryBudget::new(plan.limits.memory);
    let links = LinkThread::start(memory.clone(), None)?;
    let comparing = CompareThread::start()?;
    let (names, pool) = (Arc::new(LabelNames::new()), comparing.compare_pool());
    // Calls made again are not recorded.
    let (recorder, _) = Recorder::open();
    let threads = SharedThreads {
        compare_pool: pool,
        recorder: &recorder,
    };
    let shared = shared(&names, None, memory, threads, 1);
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())?;
    let done = runtime.block_on(async {
        let worker = Worker::new(plan.clone(), links.follow(plan).await, shared);
        let done = tidied(&worker, work(worker.clone())).await;
        worker.stop_comparing();
        worker.stop_pooling();
        done
    });
    // Links end once no task of the worker can use them.
    drop(runtime);
    let ending = Builder::new_current_thread().enable_all().build()?;
    ending.block_on(async {
        // A server that does not end is left to the end of the process.
        let _ = timeout(LINKS_END, links.end()).await;
        comparing.end().await;
    });
    Ok(done)
}

/// Returns the plan as calls from a recording use it. Sampling and the checks of listeners are about clients.
#[must_use]
pub fn for_replay(plan: Plan) -> Plan {
    Plan {
        candidates: ShadowLimits {
            sample: Percent::ALL,
            per_request: usize::MAX,
            memory: plan.candidates.memory.max(MEMORY),
            ..plan.candidates
        },
        hosts: Vec::new(),
        cors: None,
        ..plan
    }
}

/// Runs `work`, and meanwhile the periodic work of a worker.
async fn tidied<T>(worker: &Worker, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    let mut tidy = interval(TIDY);
    tidy.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        // Both branches are cancel-safe: a tick that loses is due again, and the work goes on.
        tokio::select! {
            done = work.as_mut() => return done,
            _ = tidy.tick() => worker.evict_idle(),
        }
    }
}
