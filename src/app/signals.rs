//! Signals: the end of a process, its replacement, and the notification of the service manager.
//!
//! SIGHUP reloads the files. SIGTERM and SIGINT drain; a second one ends the program at once. SIGUSR2 starts a
//! successor: once that serves, this process drains, and if it fails, nothing changes.
//!
//! Used by `run`.

use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::pin::Pin;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;

use super::bound_addresses::BoundAddresses;
use super::hot_restart::{PassedSockets, RestartError, Successor};
use super::link_thread::LinkThread;
use super::service_manager::ServiceManager;
use super::workers::Workers;
use crate::server::admin::AdminCommand;

/// The running components, and the means to end them.
#[derive(Debug)]
pub(super) struct Lifetime {
    pub(super) workers: Workers,
    pub(super) signals: Signals,
    pub(super) sockets: PassedSockets,
    pub(super) supervisor: ServiceManager,
    pub(super) addresses: BoundAddresses,
}

/// The reason for the end.
enum StopReason {
    /// A signal.
    Asked,
    /// Another process serves in place of this one.
    Replaced(Option<u32>),
}

/// Waits for the end, and drains. Dropping `close` ends the admin listener. Fails if a worker ends early.
pub(super) async fn live(
    mut life: Lifetime,
    links: &LinkThread,
    commands: mpsc::Sender<AdminCommand>,
    close: oneshot::Sender<()>,
) -> io::Result<()> {
    let end = serve(&mut life, &commands).await?;
    let Lifetime {
        workers,
        signals,
        sockets,
        supervisor,
        ..
    } = life;
    let mut ends = signals.ends;
    // These are the last handles that keep the addresses in use once the workers have closed theirs.
    drop(sockets);
    let drain = async {
        let (reply, done) = oneshot::channel();
        let (command, close) = match end {
            StopReason::Asked => {
                supervisor.stopping();
                tracing::info!("draining; a second signal ends the program at once");
                (AdminCommand::Drain(reply), Some(close))
            }
            StopReason::Replaced(process) => {
                process
                    .into_iter()
                    .for_each(|process| supervisor.replaced(process));
                tracing::info!(process, "the new process serves; this one drains");
                // From here on the new process is authoritative.
                drop(close);
                (AdminCommand::HandOver(reply), None)
            }
        };
        obey(&commands, command, done).await;
        match close {
            Some(_) => {
                workers.drain().await;
                let (reply, done) = oneshot::channel();
                obey(&commands, AdminCommand::Drained(reply), done).await;
            }
            None => workers.retire().await,
        }
        links.end().await;
    };
    // A second signal drops the drain, which abandons calls in progress.
    tokio::select! {
        () = drain => tracing::info!("drained"),
        () = ends.recv() => tracing::warn!("ended before the drain was over"),
    }
    Ok(())
}

/// Sends a command, and waits until it was obeyed.
async fn obey(
    commands: &mpsc::Sender<AdminCommand>,
    command: AdminCommand,
    done: oneshot::Receiver<()>,
) {
    if commands.send(command).await.is_ok() {
        let _ = done.await;
    }
}

/// Serves until something ends the process. Fails if a worker ends early.
async fn serve(
    life: &mut Lifetime,
    commands: &mpsc::Sender<AdminCommand>,
) -> io::Result<StopReason> {
    let Lifetime {
        workers,
        signals,
        sockets,
        supervisor,
        addresses,
    } = life;
    let status = addresses.to_string();
    supervisor.serving(&status);
    let mut heir: Option<Successor> = None;
    let mut reload: Option<Reload> = None;
    loop {
        // All branches are cancel-safe: signals, failures and a running reload are kept for the next iteration. Nothing
        // waits for the reload, because files may be slow.
        tokio::select! {
            () = signals.ends.recv() => break,
            // A signal during a reload waits, and reloads once more.
            _ = signals.hang_up.recv(), if reload.is_none() => {
                supervisor.reloading();
                reload = Some(Box::pin(reread(commands.clone())));
            }
            () = over(&mut reload) => {
                reload = None;
                supervisor.serving(&status);
            }
            _ = signals.replace.recv() => if heir.is_none() {
                heir = begin(sockets);
            },
            serves = succession(&mut heir) => match serves {
                Ok(()) => return Ok(StopReason::Replaced(heir.and_then(|heir| heir.process()))),
                Err(fault) => {
                    say(&fault);
                    give_up(heir.take()).await;
                }
            },
            error = workers.failed() => {
                give_up(heir).await;
                return Err(error);
            }
        }
    }
    give_up(heir).await;
    Ok(StopReason::Asked)
}

/// A running reload.
type Reload = Pin<Box<dyn Future<Output = ()>>>;

/// Lets the control task reload the files. The log has the result.
async fn reread(commands: mpsc::Sender<AdminCommand>) {
    let (reply, reloaded) = oneshot::channel();
    if commands.send(AdminCommand::Reload(reply)).await.is_ok() {
        let _ = reloaded.await;
    }
}

async fn over(reload: &mut Option<Reload>) {
    match reload {
        Some(reload) => reload.await,
        None => pending().await,
    }
}

fn begin(sockets: &PassedSockets) -> Option<Successor> {
    tracing::info!("starting a new process to replace this one");
    Successor::start(sockets).inspect_err(say).ok()
}

async fn succession(heir: &mut Option<Successor>) -> Result<(), RestartError> {
    match heir {
        Some(heir) => heir.serves().await,
        None => pending().await,
    }
}

async fn give_up(heir: Option<Successor>) {
    if let Some(heir) = heir {
        heir.give_up().await;
    }
}

fn say(fault: &RestartError) {
    tracing::error!(error = %fault, "hot restart failed; this process keeps serving");
}

/// Sends watchdog notifications to the service manager, as long as the control task responds.
pub(super) async fn lively(
    supervisor: &ServiceManager,
    commands: &mpsc::Sender<AdminCommand>,
) -> Infallible {
    let Some(beat) = supervisor.beat() else {
        return pending().await;
    };
    loop {
        let (reply, answer) = oneshot::channel();
        if commands.send(AdminCommand::Ready(reply)).await.is_ok() && answer.await.is_ok() {
            supervisor.alive();
        }
        sleep(beat).await;
    }
}

/// The signals that a run handles.
#[derive(Debug)]
pub(super) struct Signals {
    ends: Shutdown,
    hang_up: Signal,
    replace: Signal,
}

impl Signals {
    pub(super) fn listen() -> io::Result<Signals> {
        Ok(Signals {
            ends: Shutdown::listen()?,
            hang_up: signal(SignalKind::hangup())?,
            replace: signal(SignalKind::user_defined2())?,
        })
    }
}

/// The signals that end a run.
#[derive(Debug)]
struct Shutdown {
    terminate: Signal,
    interrupt: Signal,
}

impl Shutdown {
    fn listen() -> io::Result<Shutdown> {
        Ok(Shutdown {
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
