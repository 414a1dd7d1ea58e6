//! A whole run of the program: from a configuration to the end of the drain.
//!
//! Calls are served by the workers' threads. This thread has the rest: the owner of the state, the admin
//! listener and the signals. SIGHUP reads the files again; SIGTERM and SIGINT drain, a second one of them
//! ends the program at once.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::runtime::{Builder, LocalOptions};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, oneshot};

use super::certificates::Certificates;
use super::control::{Control, Facts, Hooks, StartError, own};
use super::counting::Counting;
use super::links::LinkThread;
use super::spans::SpanThread;
use super::workers::{Remote, Workers};
use crate::config::compile::tls::TlsFault;
use crate::config::load::Sources;
use crate::config::raw::LogFormatWord;
use crate::domain::calendar::Moment;
use crate::domain::plan::Plan;
use crate::server::admin::{self, Command, Tokens};
use crate::store::Health;
use crate::telemetry::clock;
use crate::telemetry::log::{self, DroppedLines, LogFormat};
use crate::telemetry::metrics::{FlagState, Names, Process, StoreState, Sunset, render};

/// How many requests may wait for the owner of the state.
const COMMANDS: usize = 64;

/// Why a run could not begin, or did not end well.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The configuration or the state cannot be used.
    #[error(transparent)]
    Start(#[from] StartError),
    /// TLS cannot be offered.
    #[error(transparent)]
    Tls(#[from] TlsFault),
    /// An address cannot be listened on.
    #[error("cannot listen on {address} (`{key}`)")]
    Listen {
        /// Which key names it.
        key: &'static str,
        /// The address.
        address: SocketAddr,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// A worker ended before its time.
    #[error("a worker failed")]
    Worker(#[source] io::Error),
    /// The system refused something else.
    #[error("the system refused")]
    System(#[from] io::Error),
    /// The log cannot be started.
    #[error("the log cannot be started")]
    Log(#[from] log::LogError),
}

/// Where a run can be reached.
#[derive(Debug, Clone, Copy)]
pub struct Addresses {
    /// Where calls come in.
    pub listen: SocketAddr,
    /// Where the admin listener is.
    pub admin: SocketAddr,
}

/// Serves until a signal ends it, and drains. `ready` is told the addresses once calls are taken.
///
/// # Errors
/// [`RunError`] before the first call is taken, or when a worker fails.
pub fn run(
    sources: Sources,
    ready: impl FnOnce(Addresses) -> io::Result<()>,
) -> Result<(), RunError> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())?;
    let control = runtime.block_on(Control::open(sources, clock::wall()))?;
    let config = control.config();
    let format = match config.log.format.value {
        LogFormatWord::Text => LogFormat::Text,
        LogFormatWord::Json => LogFormat::Json,
    };
    let log = log::init(format, config.log.level.value.as_str())?;
    let (listen, count) = (config.listen.address.value, config.listen.workers.value);
    let admin = config.admin.value;
    let tokens = Tokens::new(config.admin_tokens.clone());
    let names = Arc::new(Names::new());
    // The admin listener first: the workers take calls as soon as they are there.
    let admin = runtime
        .block_on(TcpListener::bind(admin))
        .map_err(at("admin.address", admin))?;
    let links = LinkThread::start()?;
    let plan = control.plan();
    let certificates = Certificates::of(&plan)?;
    let linked = runtime.block_on(links.follow(&plan));
    let traced = plan.trace.as_ref();
    let sending = SpanThread::start(traced.and_then(|trace| trace.export.as_ref()))?;
    let workers = Workers::start(
        listen,
        count,
        (&plan, &linked),
        (&names, sending.spans()),
        certificates.follow(&plan).as_ref(),
    )
    .map_err(at("listen.address", listen))?;
    // The workers keep the links open, and nobody else does.
    drop(linked);
    // Before anybody is told that calls are taken: a signal that comes right behind must find a drain.
    let signals = runtime.block_on(async { Signals::listen() })?;
    ready(Addresses {
        listen: workers.address(),
        admin: admin.local_addr()?,
    })?;
    let began = clock::moment(clock::wall());
    let counting = Counting::begin(
        (workers.remote(), names.clone()),
        control.replica().to_owned(),
        &control.plan(),
        began,
    );
    let page = Page {
        counting,
        remote: workers.remote(),
        links,
        certificates,
        names,
        lines: log.dropped_lines(),
        sending,
    };
    runtime.block_on(operate(control, workers, signals, (admin, tokens), page))
}

fn at(key: &'static str, address: SocketAddr) -> impl FnOnce(io::Error) -> RunError {
    move |source| RunError::Listen {
        key,
        address,
        source,
    }
}

/// What follows the plan, and what the page of metrics is made of.
struct Page {
    counting: Counting,
    remote: Remote,
    links: LinkThread,
    certificates: Certificates,
    names: Arc<Names>,
    lines: DroppedLines,
    sending: SpanThread,
}

impl Page {
    async fn render(&self, plan: &Plan, facts: Facts) -> String {
        let process = Process {
            reloads_ok: facts.reloads.succeeded,
            reloads_failed: facts.reloads.failed,
            loaded_at: facts.reloads.loaded_at,
            flags: plan.rollout.flags.iter().map(FlagState::from).collect(),
            trips: facts.trips,
            rulings: facts.rulings,
            kill: facts.kill,
            store: match facts.store {
                Health::Fine => StoreState::Up,
                Health::Away { .. } => StoreState::Away,
            },
            links: self.links.states(),
            sunsets: Sunset::all(plan),
            sessions: self.remote.sessions(),
            log_lines_dropped: self.lines.count(),
            spans_dropped: self.sending.dropped(),
        };
        render(&self.names, &self.remote.snapshots().await, &process)
    }
}

/// Runs until the last worker has drained.
async fn operate(
    control: Control,
    workers: Workers,
    signals: Signals,
    (listener, tokens): (TcpListener, Tokens),
    page: Page,
) -> Result<(), RunError> {
    let (commands, inbox) = mpsc::channel(COMMANDS);
    let (close, closed) = oneshot::channel::<()>();
    let hooks = Hooks {
        install: async |plan: Arc<Plan>| {
            page.counting.follow(&plan, clock::moment(clock::wall()));
            let links = page.links.follow(&plan).await;
            let tls = page.certificates.follow(&plan);
            page.remote.install((plan, links), tls).await;
        },
        metrics: async |plan: Arc<Plan>, facts: Facts| page.render(&plan, facts).await,
        counts: async |plan: Arc<Plan>, at: Moment| page.counting.counts(&plan, at).await,
        mismatches: async || page.remote.mismatches().await,
        notes: || page.links.notes(),
    };
    let owner = own(control, inbox, hooks);
    let admin = admin::serve(listener, (commands.clone(), tokens), async {
        let _ = closed.await;
    });
    let life = async {
        let result = live((workers, &page.links), signals, &commands).await;
        // The admin listener answers until the last call is served; the owner ends when nobody can ask it.
        drop(commands);
        drop(close);
        result
    };
    let ((), admin, life) = tokio::join!(owner, admin, life);
    let mut sending = page.sending;
    sending.end().await;
    life.and(admin.map_err(RunError::System))
}

/// Waits for the end, and drains.
async fn live(
    (mut workers, links): (Workers, &LinkThread),
    signals: Signals,
    commands: &mpsc::Sender<Command>,
) -> Result<(), RunError> {
    let Signals {
        mut ends,
        mut hang_up,
    } = signals;
    loop {
        // Every branch is cancel-safe: a signal or a failure that is not taken is there at the next turn.
        tokio::select! {
            () = ends.recv() => break,
            _ = hang_up.recv() => {
                let (reply, reloaded) = oneshot::channel();
                if commands.send(Command::Reload(reply)).await.is_ok() {
                    // What came of it is in the log.
                    let _ = reloaded.await;
                }
            }
            error = workers.failed() => return Err(RunError::Worker(error)),
        }
    }
    tracing::info!("draining; a second signal ends the program at once");
    let drain = async {
        let (reply, kept) = oneshot::channel();
        if commands.send(Command::Drain(reply)).await.is_ok() {
            let _ = kept.await;
        }
        workers.drain().await;
        links.end().await;
    };
    // Dropped at the second signal, the drain leaves calls in progress.
    tokio::select! {
        () = drain => tracing::info!("drained"),
        () = ends.recv() => tracing::warn!("ended before the drain was over"),
    }
    Ok(())
}

/// The signals that a run listens to.
struct Signals {
    ends: Ends,
    hang_up: Signal,
}

impl Signals {
    fn listen() -> io::Result<Signals> {
        Ok(Signals {
            ends: Ends::listen()?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }
}

/// The signals that end a run.
struct Ends {
    terminate: Signal,
    interrupt: Signal,
}

impl Ends {
    fn listen() -> io::Result<Ends> {
        Ok(Ends {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn recv(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
