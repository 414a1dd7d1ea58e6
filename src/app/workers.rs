//! The worker threads, each with its own runtime and listener.
//!
//! Used by `bound_addresses`, `replay`, `run`, `signals` and `usage_counts`.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};

use rustix::process::{Resource, getrlimit};
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::{mpsc, oneshot};
use tokio_rustls::rustls::ServerConfig;

use super::compare_thread::CompareThread;
use super::recorder_thread::RecorderHandle;
use crate::gateway::{ComparePool, Offload, Sessions, Shared, Worker};
use crate::server::listen::{self, Listeners};
use crate::server::worker_command::{WorkerCommand, WorkerConfig};
use crate::telemetry::log::{buffer_lines, flush_lines, flushing_lines};
use crate::telemetry::metrics::{BufferedBytes, LabelNames, SessionCounts, Snapshot};
use crate::telemetry::recorder::Recorder;
use crate::telemetry::spans::Spans;
use crate::upstream::link::Links;
use dualgauge_model::compare::{MismatchDetail, Mismatches, Salt};
use dualgauge_model::plan::{Plan, WorkerShare};
use dualgauge_model::rollout::{Generation, Glob};
use dualgauge_model::trace::IdGenerator;
use dualgauge_net::MemoryBudget;

/// The capacity of a worker's command channel; commands are handled between calls.
const COMMANDS: usize = 16;

/// All workers of the process.
#[derive(Debug)]
pub struct Workers {
    commands: Vec<mpsc::Sender<WorkerCommand>>,
    /// The last metrics of each worker, once it has ended.
    last: Vec<LastSnapshot>,
    /// The number of plans installed since the start.
    installs: Arc<AtomicU64>,
    sessions: Arc<Sessions>,
    memory: MemoryBudget,
    threads: Vec<JoinHandle<()>>,
    comparing: CompareThread,
    recording: RecorderHandle,
    ended: mpsc::Receiver<io::Result<()>>,
    address: SocketAddr,
}

/// The threads that serve all workers.
#[derive(Debug, Clone, Copy)]
pub(super) struct SharedThreads<'a> {
    pub(super) compare_pool: &'a ComparePool,
    pub(super) recorder: &'a Recorder,
}

/// The parts of the process that workers use.
#[derive(Debug)]
pub(super) struct WorkerServices<'a> {
    names: &'a Arc<LabelNames>,
    spans: Option<&'a Spans>,
    memory: MemoryBudget,
    recording: RecorderHandle,
}

impl<'a> WorkerServices<'a> {
    /// Collects the parts. The recorder is started already, so that a recording has the first calls.
    pub(super) fn new(
        names: &'a Arc<LabelNames>,
        spans: Option<&'a Spans>,
        memory: MemoryBudget,
        recording: RecorderHandle,
    ) -> WorkerServices<'a> {
        WorkerServices {
            names,
            spans,
            memory,
            recording,
        }
    }
}

/// Returns the state that this number of workers share.
pub(super) fn shared(
    names: &Arc<LabelNames>,
    spans: Option<&Spans>,
    memory: MemoryBudget,
    threads: SharedThreads<'_>,
    workers: usize,
) -> Shared {
    Shared {
        names: names.clone(),
        salt: salt(),
        sessions: Arc::default(),
        cancellations: Arc::default(),
        client_requests: Arc::default(),
        event_sessions: Arc::default(),
        log_levels: Arc::default(),
        session_streams: Arc::default(),
        suspended_calls: Arc::default(),
        request_ids: Arc::default(),
        compare_pool: threads.compare_pool.clone(),
        offload: Offload::for_workers(workers),
        ids: IdGenerator::new(0),
        spans: spans.cloned(),
        recorder: threads.recorder.clone(),
        memory,
        open_files: getrlimit(Resource::Nofile).current,
        share: WorkerShare { worker: 0, workers },
    }
}

/// Returns the shared state as one worker has it.
fn for_worker(common: &Shared, index: usize) -> Shared {
    Shared {
        ids: IdGenerator::new(seed()),
        share: WorkerShare {
            worker: index,
            ..common.share
        },
        ..common.clone()
    }
}

impl Workers {
    /// Starts one worker for each group of listeners, with a first configuration.
    ///
    /// # Errors
    /// Returns the error of the operating system for a listener or a thread.
    pub(super) fn start(
        listeners: Vec<Vec<TcpListener>>,
        first: WorkerConfig,
        services: WorkerServices<'_>,
    ) -> io::Result<Workers> {
        let WorkerServices {
            names,
            spans,
            memory,
            recording,
        } = services;
        let listener = listeners.iter().flatten().next();
        let address = listener.ok_or(io::ErrorKind::NotFound)?.local_addr()?;
        let (over, ended) = mpsc::channel(listeners.len());
        let comparing = CompareThread::start()?;
        let threads = SharedThreads {
            compare_pool: comparing.compare_pool(),
            recorder: recording.recorder(),
        };
        let common = shared(names, spans, memory, threads, listeners.len());
        let mut workers = Workers {
            commands: Vec::new(),
            last: Vec::new(),
            installs: Arc::default(),
            sessions: common.sessions.clone(),
            memory: common.memory.clone(),
            threads: Vec::new(),
            comparing,
            recording,
            ended,
            address,
        };
        for (index, listeners) in listeners.into_iter().enumerate() {
            let (commands, inbox) = mpsc::channel(COMMANDS);
            let (plan, links, over) = (first.plan.clone(), first.links.clone(), over.clone());
            let common = for_worker(&common, index);
            let last = Arc::new(OnceLock::new());
            workers.last.push(last.clone());
            let entrance = Listeners {
                listeners,
                tls: first.tls.clone(),
            };
            let thread = thread::Builder::new()
                .name(format!("worker-{index}"))
                .spawn(move || {
                    let worker = || Worker::new(plan, links, common);
                    let worked = || work(entrance, inbox, worker, &last);
                    let result = catch_unwind(AssertUnwindSafe(worked));
                    let result =
                        result.unwrap_or_else(|_| Err(io::Error::other("the worker panicked")));
                    // Fails only when the program is ending anyway.
                    let _ = over.try_send(result);
                })?;
            workers.commands.push(commands);
            workers.threads.push(thread);
        }
        Ok(workers)
    }

    /// Returns the address that the workers listen on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns a handle for sending commands to the workers.
    #[must_use]
    pub fn remote(&self) -> WorkersHandle {
        WorkersHandle {
            commands: self.commands.clone(),
            last: self.last.clone(),
            installs: self.installs.clone(),
            sessions: self.sessions.clone(),
            memory: self.memory.clone(),
        }
    }

    /// Waits until a worker ends unexpectedly, and returns the reason.
    pub async fn failed(&mut self) -> io::Error {
        match self.ended.recv().await {
            Some(Err(error)) => error,
            Some(Ok(())) | None => io::Error::other("a worker ended"),
        }
    }

    /// Drains all workers, and returns when their threads have ended.
    pub async fn drain(self) {
        self.end(|| WorkerCommand::Drain).await;
    }

    /// Drains all workers while another process follows on the same sockets: connections in use end with their next
    /// response.
    pub async fn retire(self) {
        self.end(|| WorkerCommand::Retire).await;
    }

    async fn end(mut self, how: fn() -> WorkerCommand) {
        for commands in &self.commands {
            // A worker that is gone has drained.
            let _ = commands.send(how()).await;
        }
        for _ in &self.threads {
            let _ = self.ended.recv().await;
        }
        for thread in self.threads {
            // The thread has signalled its end, so this does not block.
            let _ = thread.join();
        }
        self.comparing.end().await;
        self.recording.end().await;
    }
}

/// The metrics of a worker at its end.
type LastSnapshot = Arc<OnceLock<Snapshot>>;

/// A handle for sending commands to the workers.
#[derive(Debug, Clone)]
pub struct WorkersHandle {
    commands: Vec<mpsc::Sender<WorkerCommand>>,
    /// The last metrics of each worker, once it has ended.
    last: Vec<LastSnapshot>,
    /// The number of plans installed.
    installs: Arc<AtomicU64>,
    sessions: Arc<Sessions>,
    memory: MemoryBudget,
}

impl WorkersHandle {
    /// Installs a plan, its links and the TLS configuration for new connections; returns when all workers use them.
    pub async fn install(&self, plan: Arc<Plan>, links: Links, tls: Option<Arc<ServerConfig>>) {
        let generation = Generation(1 + self.installs.fetch_add(1, Ordering::Relaxed));
        let next = WorkerConfig {
            plan,
            links,
            tls,
            generation,
        };
        let mut waiting = Vec::with_capacity(self.commands.len());
        for commands in &self.commands {
            let (done, installed) = oneshot::channel();
            let install = WorkerCommand::Install(Box::new(next.clone()), done);
            if commands.send(install).await.is_ok() {
                waiting.push(installed);
            }
        }
        for installed in waiting {
            let _ = installed.await;
        }
    }

    /// Returns the metrics of every worker, also of those that have ended.
    pub async fn snapshots(&self) -> Vec<Snapshot> {
        let current = self.copies(WorkerCommand::Snapshot).await;
        let both = current.into_iter().zip(&self.last);
        both.filter_map(|(current, last)| current.or_else(|| last.get().cloned()))
            .collect()
    }

    /// Returns the memory in use by buffered bodies.
    #[must_use]
    pub fn buffered(&self) -> BufferedBytes {
        BufferedBytes {
            used: self.memory.reserved() as u64,
            limit: self.memory.limit() as u64,
        }
    }

    /// Returns the counts of the sessions, which the workers share.
    pub fn sessions(&self) -> SessionCounts {
        self.sessions.counts()
    }

    /// Returns the last mismatches of all workers together.
    pub async fn mismatches(&self, detail: MismatchDetail) -> Mismatches {
        let mut all = Mismatches::default();
        let command = |reply| WorkerCommand::Mismatches(detail, reply);
        for own in self.copies(command).await.into_iter().flatten() {
            all.merge(&own);
        }
        all
    }

    /// Clears the mismatches of `routes` in all workers; returns the names of those routes in order.
    pub async fn forget_mismatches(&self, routes: &Glob) -> Vec<String> {
        let command = |reply| WorkerCommand::ForgetMismatches(routes.clone(), reply);
        let names = self.copies(command).await.into_iter().flatten().flatten();
        let names: BTreeSet<Arc<str>> = names.collect();
        names.iter().map(|name| (**name).to_owned()).collect()
    }

    /// Collects a copy from every worker, `None` from one that has ended. All are asked before the first reply is
    /// awaited.
    async fn copies<T>(
        &self,
        command: impl Fn(oneshot::Sender<T>) -> WorkerCommand,
    ) -> Vec<Option<T>> {
        let mut waiting = Vec::with_capacity(self.commands.len());
        for commands in &self.commands {
            let (reply, copy) = oneshot::channel();
            // If the worker has ended, the reply is dropped with the command.
            let _ = commands.send(command(reply)).await;
            waiting.push(copy);
        }
        let mut found = Vec::with_capacity(waiting.len());
        for copy in waiting {
            found.push(copy.await.ok());
        }
        found
    }
}

/// Returns a random salt for hashes of values: new in each run, and the same for all workers, because their hashes are
/// merged.
fn salt() -> Salt {
    let mut salt = [0; 16];
    salt[..8].copy_from_slice(&seed().to_be_bytes());
    salt[8..].copy_from_slice(&seed().to_be_bytes());
    Salt(salt)
}

/// Returns a random number.
fn seed() -> u64 {
    RandomState::new().build_hasher().finish()
}

fn work(
    entrance: Listeners,
    mut commands: mpsc::Receiver<WorkerCommand>,
    worker: impl FnOnce() -> Rc<Worker>,
    last: &LastSnapshot,
) -> io::Result<()> {
    buffer_lines();
    let runtime = Builder::new_current_thread()
        .enable_all()
        .on_thread_park(flush_lines)
        .build_local(LocalOptions::default())?;
    let (worker, ended) = runtime.block_on(async {
        let worker = worker();
        let ended = flushing_lines(listen::run(worker.clone(), entrance, &mut commands)).await;
        (worker, ended)
    });
    // Calls that the end of the drain cuts report now.
    drop(runtime);
    // Fails only if it is set, which nothing else does. Until then, requests for a snapshot wait in the channel.
    let _ = last.set(worker.snapshot());
    drop(commands);
    ended
}
