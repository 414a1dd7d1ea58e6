//! A complete run of the program, from the configuration to the end of the drain.
//!
//! Worker threads serve the calls. This thread runs the rest: the control task, the admin listener and the signals. A
//! process that replaces another one reports to it once it serves.
//!
//! Used by `cli`, `cli::demo` and `cli::run`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::rc::Rc;
use std::sync::Arc;
use std::time::SystemTime;

use tokio::net::TcpListener;
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::sync::{mpsc, oneshot};

use super::bound_addresses::BoundAddresses;
use super::certificates::Certificates;
use super::control::{Control, Facts, Files, Hooks, StartError, own};
use super::hot_restart::{self, PassedSockets};
use super::inherited_sockets::InheritedSockets;
use super::link_thread::LinkThread;
use super::open_files::OpenFiles;
use super::recorder_thread::RecorderHandle;
use super::recordings::Recordings;
use super::service_manager::ServiceManager;
use super::signals::{Lifetime, Signals, live, lively};
use super::spans::SpanThread;
use super::startup_summary::{StartupSummary, SummaryLine};
use super::usage_counts::UsageCounts;
use super::workers::{WorkerServices, Workers, WorkersHandle};
use crate::config::load::Sources;
use crate::config::raw::RawConfig;
use crate::server::admin::{self, AdminTokens, LiveStreams, Readiness};
use crate::server::worker_command::WorkerConfig;
use crate::store::Health;
use crate::telemetry::clock;
use crate::telemetry::log::{self, DroppedLines, LogGuard};
use crate::telemetry::metrics::{
    CallTable, FlagState, GlobalMetrics, LabelNames, ProcessStats, ShownSeries, Sunset,
    address_counts, render,
};
use dualgauge_model::hosts::is_loopback;
use dualgauge_model::plan::Plan;
use dualgauge_model::rollout::{Generation, Glob};
use dualgauge_model::time::Timestamp;
use dualgauge_net::MemoryBudget;
use dualgauge_net::listening_sockets;
use dualgauge_net::tls_config::TlsFault;

/// The capacity of the command channel of the control task.
const COMMANDS: usize = 64;

/// The reason why a run could not start, or failed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The configuration or the state is unusable.
    #[error(transparent)]
    Start(#[from] StartError),
    /// TLS cannot be set up.
    #[error(transparent)]
    Tls(#[from] TlsFault),
    /// The process cannot listen on an address.
    #[error(
        "cannot listen on {address}{}; set another address with `{option}` or `{key}`",
        in_use(source)
    )]
    Listen {
        /// The option of the address.
        option: &'static str,
        /// The configuration key of the address.
        key: &'static str,
        /// The address.
        address: SocketAddr,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
    /// A worker ended early.
    #[error("a worker failed")]
    Worker(#[source] io::Error),
    /// Another operation of the operating system failed.
    #[error("the system refused")]
    System(#[from] io::Error),
    /// The log cannot be started.
    #[error("the log cannot be started")]
    Log(#[from] log::LogError),
}

/// Returns the explanation of a port that is in use, and an empty text for other errors.
fn in_use(error: &io::Error) -> &'static str {
    match error.kind() == io::ErrorKind::AddrInUse {
        true => ": another process uses this port",
        false => "",
    }
}

/// The resources that the process was started with.
#[derive(Debug, Default)]
pub struct ProcessEnvironment {
    /// Inherited sockets.
    pub inherited: InheritedSockets,
    /// The service manager to notify.
    pub supervisor: ServiceManager,
    /// The log during the start.
    pub start_log: StartLog,
}

/// The log until the start is over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StartLog {
    /// Lines are written at once.
    #[default]
    Written,
    /// Warnings are written after the start, and discarded if it fails: the error has the reason. With a more
    /// verbose level than `warn`, all lines are written at once.
    HeldWarnings,
}

/// Serves until a signal ends the process, and drains. Calls `ready` with the summary once calls are accepted.
///
/// # Errors
/// Returns a [`RunError`] if the run fails before the first call is accepted, or if a worker fails.
pub fn run(
    sources: Sources,
    surroundings: ProcessEnvironment,
    ready: impl FnOnce(StartupSummary) -> io::Result<()>,
) -> Result<(), RunError> {
    // The runtime's other threads do file operations.
    let runtime = Builder::new_current_thread()
        .enable_all()
        .thread_name("files")
        .build_local(LocalOptions::default())?;
    let ended = run_on(&runtime, sources, surroundings, ready);
    // Operations on a hanging file system cannot be aborted, and the process does not wait for them.
    runtime.shutdown_background();
    ended
}

fn run_on(
    runtime: &LocalRuntime,
    sources: Sources,
    surroundings: ProcessEnvironment,
    ready: impl FnOnce(StartupSummary) -> io::Result<()>,
) -> Result<(), RunError> {
    let started = clock::wall();
    let mut inherited = surroundings.inherited;
    let files = runtime.block_on(Files::read_in_time(sources))?;
    // Opening the store and compiling may log.
    let log = start_log(&files, surroundings.start_log)?;
    let open_files = OpenFiles::raise(&inherited, files.config().listen.workers.value);
    let control = runtime.block_on(opened(files, &inherited))?;
    let config = control.config();
    let names = Arc::new(LabelNames::new());
    let (listeners, sockets) = sockets(config, &mut inherited, &open_files)?;
    let tokens = admin_tokens(config, sockets.admin.local_addr()?);
    let plan = control.plan();
    open_files.check(&plan);
    let memory = MemoryBudget::new(plan.limits.memory);
    let links = LinkThread::start(memory.clone(), open_files.before())?;
    let certificates = Certificates::from_plan(&plan)?;
    let linked = runtime.block_on(links.follow(&plan));
    let exported = plan.trace.as_ref().and_then(|trace| trace.export.as_ref());
    let sending = SpanThread::start(exported)?;
    let first = WorkerConfig {
        plan: plan.clone(),
        links: linked,
        tls: certificates.follow(&plan),
        generation: Generation::default(),
    };
    let (recording, recordings) = runtime.block_on(recorder(&plan))?;
    let services = WorkerServices::new(&names, sending.spans(), memory, recording);
    // Only the workers keep the links open.
    let workers = Workers::start(listeners, first, services)
        .map_err(call_listener_error(config.listen.address.value))?;
    // Before readiness is reported: a signal that follows at once must start a drain.
    let signals = runtime.block_on(async { Signals::listen() })?;
    let addresses = BoundAddresses::new(&workers, &sockets, &plan)?;
    ready(StartupSummary {
        addresses,
        summary: SummaryLine::new(config, &plan, addresses),
        plan: plan.clone(),
        losses: links.losses(),
    })?;
    log.release();
    let page = MetricsSources {
        counting: counting(&workers, &names, &control),
        open_files,
        remote: workers.remote(),
        links,
        certificates,
        names,
        lines: log.dropped_lines(),
        sending,
        recordings,
        live_streams: LiveStreams::default(),
        began: started,
        shown: RefCell::default(),
    };
    let life = Lifetime {
        workers,
        signals,
        sockets,
        supervisor: surroundings.supervisor,
        addresses,
    };
    replaces(inherited)?;
    runtime.block_on(operate(control, life, tokens, page))
}

/// Returns the tokens of the admin API. Warns if there are none and the address is not loopback: the API is then disabled.
fn admin_tokens(config: &RawConfig, address: SocketAddr) -> AdminTokens {
    if config.admin_tokens.is_empty() && !is_loopback(address.ip()) {
        tracing::warn!(
            %address,
            "the admin API is disabled, because other machines can reach `admin.address` and `admin.tokens` has no tokens; \
             set tokens, or a loopback address"
        );
    }
    AdminTokens::new(config.admin_tokens.clone())
}

fn start_log(files: &Files, start: StartLog) -> Result<LogGuard, log::LogError> {
    let settings = &files.config().log;
    let log = log::init(settings.format.value, settings.level.value)?;
    let has_warnings_only = matches!(settings.level.value, "warn" | "error");
    if start == StartLog::HeldWarnings && has_warnings_only {
        log.hold();
    }
    Ok(log)
}

/// Starts the recorder, and the recording of the plan: before the workers, so that it has their first calls.
async fn recorder(plan: &Plan) -> io::Result<(RecorderHandle, Rc<Recordings>)> {
    let recorder = RecorderHandle::start()?;
    let recordings = Recordings::new(recorder.recorder().clone());
    recordings.follow(plan).await;
    Ok((recorder, Rc::new(recordings)))
}

fn counting(workers: &Workers, names: &Arc<LabelNames>, control: &Control) -> UsageCounts {
    UsageCounts::begin(
        workers.remote(),
        names.clone(),
        control.replica().to_owned(),
        &control.plan(),
        clock::timestamp(clock::wall()),
    )
}

/// Reports to the process that this one replaces, if any, that calls are accepted.
fn replaces(inherited: InheritedSockets) -> io::Result<()> {
    let predecessor = inherited.predecessor;
    predecessor.map_or(Ok(()), |process| hot_restart::tell(&process))
}

/// Opens the state, alongside the process that this one replaces, if any.
async fn opened(files: Files, inherited: &InheritedSockets) -> Result<Control, StartError> {
    match &inherited.predecessor {
        None => Control::open(files, clock::wall()).await,
        Some(_) => Control::succeed(files, clock::wall()).await,
    }
}

/// Returns the listeners of each worker, and the sockets for a successor. Inherited sockets come first, because
/// connections wait in them.
fn sockets(
    config: &RawConfig,
    inherited: &mut InheritedSockets,
    open_files: &OpenFiles,
) -> Result<(Vec<Vec<StdListener>>, PassedSockets), RunError> {
    let (listen, count) = (config.listen.address.value, config.listen.workers.value);
    let address = config.admin.value;
    // The admin listener is opened first, because the workers accept calls as soon as they start.
    let admin = match inherited.admin_for(address)? {
        Some(given) => given,
        None => {
            StdListener::bind(address).map_err(listen_error("--admin", "admin.address", address))?
        }
    };
    admin.set_nonblocking(true)?;
    let given = inherited.calls_for(listen)?;
    let listeners = listening_sockets::open(listen, count, &given);
    let listeners = listeners.map_err(call_listener_error(listen))?;
    let calls = match given.is_empty() {
        false => given,
        true => {
            let own = listeners.iter().flatten().map(StdListener::try_clone);
            own.collect::<io::Result<_>>()?
        }
    };
    let sockets = PassedSockets {
        calls,
        admin,
        open_files: open_files.before(),
    };
    Ok((listeners, sockets))
}

fn call_listener_error(address: SocketAddr) -> impl FnOnce(io::Error) -> RunError {
    listen_error("--listen", "listen.address", address)
}

fn listen_error(
    option: &'static str,
    key: &'static str,
    address: SocketAddr,
) -> impl FnOnce(io::Error) -> RunError {
    move |source| RunError::Listen {
        option,
        key,
        address,
        source,
    }
}

/// The components that follow the plan, and the sources of the metrics page.
struct MetricsSources {
    counting: UsageCounts,
    open_files: OpenFiles,
    remote: WorkersHandle,
    links: LinkThread,
    certificates: Certificates,
    names: Arc<LabelNames>,
    lines: DroppedLines,
    sending: SpanThread,
    recordings: Rc<Recordings>,
    live_streams: LiveStreams,
    began: SystemTime,
    /// The series shown so far; borrowed only between awaits.
    shown: RefCell<ShownSeries>,
}

impl MetricsSources {
    /// Returns the state of the upstreams. The workers are asked only if the result depends on them.
    async fn upstreams(&self, plan: &Plan) -> Readiness {
        let addresses = match plan.ready.iter().all(|name| self.links.is_linked(name)) {
            true => BTreeMap::new(),
            false => address_counts(&self.names, &self.remote.snapshots().await),
        };
        let (mut obstacles, mut notes) = (Vec::new(), Vec::new());
        for name in self.links.down() {
            let note = format!("the upstream `{name}` has no link");
            match plan.ready.contains(&name) {
                true => obstacles.push(note),
                false => notes.push(note),
            }
        }
        for name in plan.ready.iter().filter(|name| !self.links.is_linked(name)) {
            if addresses
                .get(name)
                .is_none_or(|addresses| addresses.healthy == 0)
            {
                obstacles.push(format!(
                    "no address of the upstream `{name}` passes its health checks"
                ));
            }
        }
        Readiness { obstacles, notes }
    }

    async fn render(&self, plan: &Plan, facts: Facts) -> String {
        let process = GlobalMetrics {
            reloads_ok: facts.reloads.succeeded,
            reloads_failed: facts.reloads.failed,
            loaded_at: facts.reloads.loaded_at,
            now: clock::wall(),
            flags: plan.rollout.flags.iter().map(FlagState::from).collect(),
            trips: facts.trips,
            rulings: facts.rulings,
            evaluations: facts.evaluations,
            live_streams: self.live_streams.counts(),
            kill: facts.kill,
            is_store_up: facts.store == Health::Fine,
            source: facts.source,
            links: self.links.states(),
            sunsets: Sunset::all(plan),
            sessions: self.remote.sessions(),
            buffered: self.remote.buffered(),
            log_lines_dropped: self.lines.count(),
            recorder: self.recordings.counts(),
            spans_dropped: self.sending.dropped(),
            own: ProcessStats::read(self.began),
        };
        let snapshots = self.remote.snapshots().await;
        let mut shown = self.shown.borrow_mut();
        let was_over = shown.over() > 0;
        let page = render(&self.names, &snapshots, &process, &plan.series, &mut shown);
        if shown.over() > 0 && !was_over {
            tracing::warn!(
                limit = plan.series.limit,
                beyond = shown.over(),
                "`metrics.series` is reached; further series are counted under the name `overflow`"
            );
        }
        page
    }
}

/// Runs until the last worker has drained.
async fn operate(
    control: Control,
    life: Lifetime,
    tokens: AdminTokens,
    page: MetricsSources,
) -> Result<(), RunError> {
    let (commands, inbox) = mpsc::channel(COMMANDS);
    let listener = TcpListener::from_std(life.sockets.admin.try_clone()?)?;
    let supervisor = life.supervisor.clone();
    let (close, closed) = oneshot::channel::<()>();
    let hooks = Hooks {
        install: async |plan: Arc<Plan>| {
            page.open_files.check(&plan);
            page.counting.follow(&plan, clock::timestamp(clock::wall()));
            let links = page.links.follow(&plan).await;
            let tls = page.certificates.follow(&plan);
            page.remote.install(plan.clone(), links, tls).await;
            page.recordings.follow(&plan).await;
        },
        metrics: async |plan: Arc<Plan>, facts: Facts| page.render(&plan, facts).await,
        counts: async |plan: Arc<Plan>, at: Timestamp| page.counting.counts(&plan, at).await,
        mismatches: async |detail| page.remote.mismatches(detail).await,
        calls: async || CallTable::new(&page.names, page.remote.snapshots().await, page.began),
        forget: async |routes: &Glob| page.remote.forget_mismatches(routes).await,
        upstreams: async |plan: Arc<Plan>| page.upstreams(&plan).await,
        recordings: page.recordings.clone(),
    };
    let owner = own(control, inbox, hooks);
    let streams = page.live_streams.clone();
    let admin = admin::serve(listener, commands.clone(), tokens, streams, async {
        let _ = closed.await;
    });
    let life = async {
        let asking = commands.clone();
        // The admin listener responds until the last call is served; the control task ends once no command can come.
        let served = live(life, &page.links, commands, close);
        tokio::select! {
            result = served => result.map_err(RunError::Worker),
            never = lively(&supervisor, &asking) => match never {},
        }
    };
    let ((), admin, life) = tokio::join!(owner, admin, life);
    let mut sending = page.sending;
    sending.end().await;
    life.and(admin.map_err(RunError::System))
}
