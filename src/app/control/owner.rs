//! The task that owns the state: commands in, a look at the files now and then, plans out to the workers.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{self, MissedTickBehavior};

use super::{Control, Polled, Reloads};
use crate::domain::compare::Mismatches;
use crate::domain::plan::Plan;
use crate::server::admin::{Command, FlagView, Readiness, Refusal, Reloaded, StillMissing};
use crate::telemetry::clock::{now, wall};

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How soon they are looked at again when they have just changed.
const SETTLE: Duration = Duration::from_millis(100);
/// How long the workers may take for a plan or for their counts; less than the asker waits.
const WORKERS_TIMEOUT: Duration = Duration::from_secs(3);

/// What the owner needs of the workers.
#[derive(Debug)]
pub struct Hooks<I, M, D> {
    /// Hands a plan to every worker; ready when all of them have it for their next call.
    pub install: I,
    /// Renders the page of metrics.
    pub metrics: M,
    /// Puts the last mismatches of all workers together.
    pub mismatches: D,
}

/// Whether every worker has the plan in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Installed {
    Everywhere,
    NotYet,
}

/// Whether calls are still wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Serving,
    Draining,
}

struct Owner<I, M, D> {
    control: Control,
    hooks: Hooks<I, M, D>,
    installed: Installed,
    phase: Phase,
}

/// Answers commands and watches the files until every sender of `commands` is gone.
///
/// The workers are expected to have [`Control::plan`] of before this call. It works on files between its waits, so
/// it runs on a thread that serves no calls.
pub async fn own<I, M, D>(
    control: Control,
    mut commands: mpsc::Receiver<Command>,
    hooks: Hooks<I, M, D>,
) where
    I: AsyncFn(Arc<Plan>),
    M: AsyncFn(Arc<Plan>, Reloads) -> String,
    D: AsyncFn() -> Mismatches,
{
    let mut owner = Owner {
        control,
        hooks,
        installed: Installed::Everywhere,
        phase: Phase::Serving,
    };
    let mut looks = time::interval_at(now() + LOOK_EVERY, LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        // Both branches are cancel-safe: nothing is taken from the channel or the interval unless it is handled.
        tokio::select! {
            command = commands.recv() => match command {
                Some(command) => owner.obey(command).await,
                None => return,
            },
            _ = looks.tick() => {
                if owner.look().await == Polled::Settling {
                    looks.reset_after(SETTLE);
                }
            }
        }
    }
}

impl<I, M, D> Owner<I, M, D>
where
    I: AsyncFn(Arc<Plan>),
    M: AsyncFn(Arc<Plan>, Reloads) -> String,
    D: AsyncFn() -> Mismatches,
{
    async fn obey(&mut self, command: Command) {
        match command {
            Command::Flags(reply) => tell(reply, self.control.flags()),
            Command::Flag { name, reply } => tell(reply, self.control.flag(&name)),
            Command::Plan(reply) => tell(reply, self.control.plan_view()),
            Command::Document { side, reply } => tell(reply, self.control.document(side)),
            Command::Ready(reply) => tell(reply, self.readiness()),
            Command::Flip { flipping, reply } => {
                self.change(reply, |control| control.flip(&flipping, wall()))
                    .await;
            }
            Command::Unflip { name, who, reply } => {
                self.change(reply, |control| control.unflip(&name, &who))
                    .await;
            }
            Command::Metrics(reply) => self.metrics(reply).await,
            Command::Mismatches(reply) => self.mismatches(reply).await,
            Command::Reload(reply) => {
                let reloaded = self.control.reload(wall());
                self.follow(reloaded).await;
                tell(reply, reloaded);
            }
            Command::Drain => self.phase = Phase::Draining,
        }
    }

    /// Changes the flips for an asker who still waits; one who was told that there is no answer is not surprised later.
    async fn change(
        &mut self,
        reply: oneshot::Sender<Result<FlagView, Refusal>>,
        change: impl FnOnce(&mut Control) -> Result<FlagView, Refusal>,
    ) {
        if reply.is_closed() {
            return;
        }
        let mut changed = change(&mut self.control);
        if changed.is_ok() {
            self.install().await;
            if self.installed == Installed::NotYet {
                changed = Err(Refusal::Pending(StillMissing));
            }
        }
        tell(reply, changed);
    }

    async fn look(&mut self) -> Polled {
        let polled = self.control.poll(wall());
        if let Polled::Reloaded(reloaded) = polled {
            self.follow(reloaded).await;
        }
        if self.installed == Installed::NotYet {
            self.install().await;
        }
        polled
    }

    async fn follow(&mut self, reloaded: Reloaded) {
        match reloaded {
            Reloaded::Swapped => self.install().await,
            Reloaded::Unchanged | Reloaded::Refused => {}
        }
    }

    async fn install(&mut self) {
        let plan = self.control.plan();
        let install = (self.hooks.install)(plan);
        self.installed = match time::timeout(WORKERS_TIMEOUT, install).await {
            Ok(()) => Installed::Everywhere,
            Err(_) => {
                tracing::error!("not every worker has taken the new plan; it is offered again");
                Installed::NotYet
            }
        };
    }

    async fn metrics(&self, reply: oneshot::Sender<String>) {
        let page = (self.hooks.metrics)(self.control.plan(), self.control.reloads());
        match time::timeout(WORKERS_TIMEOUT, page).await {
            Ok(page) => tell(reply, page),
            // The asker learns it from the reply that is dropped.
            Err(_) => tracing::error!("not every worker has told its counts"),
        }
    }

    async fn mismatches(&self, reply: oneshot::Sender<Mismatches>) {
        match time::timeout(WORKERS_TIMEOUT, (self.hooks.mismatches)()).await {
            Ok(found) => tell(reply, found),
            // As above.
            Err(_) => tracing::error!("not every worker has told its mismatches"),
        }
    }

    fn readiness(&self) -> Readiness {
        let mut readiness = self.control.readiness();
        if self.phase == Phase::Draining {
            readiness.obstacles.push("draining".to_owned());
        }
        if self.installed == Installed::NotYet {
            let behind = "not every worker has the plan in force".to_owned();
            readiness.obstacles.push(behind);
        }
        readiness
    }
}

/// An asker that no longer waits needs no answer.
fn tell<T>(reply: oneshot::Sender<T>, answer: T) {
    drop(reply.send(answer));
}
