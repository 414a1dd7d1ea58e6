//! The one owner of what can change while the process runs: the plan in force, the flips, and what came of
//! reading the files again.
//!
//! ```text
//! control   open, reload, poll: no task, no clock, no channel
//! flips     flip, unflip, and flips that no longer hold
//! fixed     what a reload cannot change
//! watch     whether the files are what they were
//! views     the state, as the admin API shows it
//! owner     the task: commands in, polls, plans out to the workers
//! ```
//!
//! Laws: a plan is compiled before anything changes, and swapped whole; what fails leaves everything as it was; a
//! flip is on disk before it is in force.

mod fixed;
mod flips;
mod owner;
#[cfg(test)]
mod tests;
mod views;
mod watch;

use std::sync::Arc;
use std::time::SystemTime;

use crate::config::compile::compile;
use crate::config::flags::load_flags;
use crate::config::load::{Sources, load};
use crate::config::problem::{Place, Problems, nearest};
use crate::config::raw::{RawConfig, RawFlag};
use crate::domain::plan::Plan;
use crate::server::admin::{Readiness, Refusal, Reloaded};
use crate::store::{Applied, Flip, FlipStore, StoreError, apply};
use fixed::{Fixed, keep_what_is_fixed};
use watch::{Look, Watch};

pub use owner::{Hooks, own};

/// The state, and the ways to change it. It reads and writes files, so it belongs on no thread that serves calls.
#[derive(Debug)]
pub struct Control {
    sources: Sources,
    /// What the files say, but for what only a start can change: that is as it was at the start. Boxed, since it is
    /// large and the task that owns it is moved.
    config: Box<RawConfig>,
    /// What the files say of that.
    fixed: Fixed,
    /// The flags of the flags file.
    file_flags: Vec<RawFlag>,
    /// The same flags with the flips over them.
    flags: Vec<RawFlag>,
    flips: Vec<Flip>,
    store: FlipStore,
    plan: Arc<Plan>,
    reloads: Reloads,
    watch: Watch,
    /// What is wrong with the files, where they are not what is in force.
    refused: Option<Problems>,
    /// Why the flips on disk are not those in force.
    unsaved: Option<StoreError>,
}

/// How often the files were read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reloads {
    /// With a new plan in force.
    pub succeeded: u64,
    /// With the plan of before left in force.
    pub failed: u64,
    /// When the files of the plan in force were read.
    pub loaded_at: SystemTime,
}

/// Why the process cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The files, the variables or the arguments.
    #[error("the configuration has problems")]
    Config(#[from] Problems),
    /// The state folder.
    #[error("the state folder cannot be used")]
    Store(#[from] StoreError),
}

/// What a look at the files has led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Polled {
    /// Nothing has changed.
    Quiet,
    /// Something has changed just now; look again soon.
    Settling,
    /// Something has changed and come to rest, and was read again.
    Reloaded(Reloaded),
}

/// Who wants the files read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trigger {
    /// Somebody has asked: he is always answered in the log, though not twice with the same list.
    Asked,
    /// The files were watched: problems that are known already are not said again.
    Watched,
}

/// Everything that can be in force at once.
struct Compiled {
    config: Box<RawConfig>,
    file_flags: Vec<RawFlag>,
    applied: Applied,
    plan: Plan,
}

impl Control {
    /// Reads the files, takes the state folder and compiles the first plan. Nothing is watched or served yet.
    ///
    /// # Errors
    /// [`StartError`], with every problem of the files.
    pub fn open(sources: Sources, at: SystemTime) -> Result<Control, StartError> {
        let (config, file_flags) = read(&sources)?;
        let (store, flips) = FlipStore::open(&config.rollout.state.value)?;
        let compiled = compile_with(config, file_flags, flips).map_err(with_way_out)?;
        let mut control = Control {
            sources,
            fixed: Fixed::of(&compiled.config),
            config: compiled.config,
            file_flags: compiled.file_flags,
            flags: compiled.applied.flags,
            flips: compiled.applied.kept,
            store,
            plan: Arc::new(compiled.plan),
            reloads: Reloads {
                succeeded: 0,
                failed: 0,
                loaded_at: at,
            },
            watch: Watch::default(),
            refused: None,
            unsaved: None,
        };
        control.forget(&compiled.applied.dropped);
        Ok(control)
    }

    /// The plan in force.
    #[must_use]
    pub fn plan(&self) -> Arc<Plan> {
        Arc::clone(&self.plan)
    }

    /// What the files say, but for what only a start can change: that is as it was at the start.
    #[must_use]
    pub fn config(&self) -> &RawConfig {
        &self.config
    }

    /// How often the files were read again.
    #[must_use]
    pub const fn reloads(&self) -> Reloads {
        self.reloads
    }

    /// Reads the files again because somebody asks.
    pub fn reload(&mut self, at: SystemTime) -> Reloaded {
        self.read_again(Trigger::Asked, at)
    }

    /// Looks whether the files have changed, and reads them again once they have come to rest.
    pub fn poll(&mut self, at: SystemTime) -> Polled {
        match self.watch.look(&self.config, self.refused.as_ref()) {
            Look::Quiet => Polled::Quiet,
            Look::Settling => Polled::Settling,
            Look::Due => Polled::Reloaded(self.read_again(Trigger::Watched, at)),
        }
    }

    fn read_again(&mut self, trigger: Trigger, at: SystemTime) -> Reloaded {
        match self.compile_again() {
            Ok(Some(compiled)) => {
                self.replace(compiled);
                self.reloads.succeeded += 1;
                self.reloads.loaded_at = at;
                tracing::info!(
                    routes = self.config.routes.len(),
                    flags = self.flags.len(),
                    "the configuration was read again and is in force"
                );
                Reloaded::Swapped
            }
            Ok(None) => {
                if trigger == Trigger::Asked || self.refused.is_some() {
                    tracing::info!("the configuration was read again and is what it was");
                }
                self.refused = None;
                Reloaded::Unchanged
            }
            Err(problems) => {
                self.refuse(problems, trigger);
                Reloaded::Refused
            }
        }
    }

    /// What the files mean now, or nothing where they say what they said.
    fn compile_again(&mut self) -> Result<Option<Compiled>, Problems> {
        let (mut config, file_flags) = read(&self.sources)?;
        let fixed = Fixed::of(&config);
        fixed.warn_of_changes(&self.fixed, &Fixed::of(&self.config));
        self.fixed = fixed;
        keep_what_is_fixed(&mut config, &self.config);
        if config == self.config && file_flags == self.file_flags {
            return Ok(None);
        }
        compile_with(config, file_flags, self.flips.clone()).map(Some)
    }

    fn replace(&mut self, compiled: Compiled) {
        self.config = compiled.config;
        self.file_flags = compiled.file_flags;
        self.flags = compiled.applied.flags;
        self.flips = compiled.applied.kept;
        self.plan = Arc::new(compiled.plan);
        self.refused = None;
        self.forget(&compiled.applied.dropped);
    }

    fn refuse(&mut self, problems: Problems, trigger: Trigger) {
        let known = self.refused.as_ref() == Some(&problems);
        match (known, trigger) {
            (true, Trigger::Watched) => return,
            (true, Trigger::Asked) => tracing::error!(
                problems = problems.iter().len(),
                "the configuration still has the problems that were logged before"
            ),
            (false, Trigger::Watched | Trigger::Asked) => {
                for problem in &problems {
                    tracing::error!("{problem}");
                }
                tracing::error!(
                    "the configuration has problems; what was in force before stays in force"
                );
            }
        }
        self.reloads.failed += 1;
        self.refused = Some(problems);
    }

    /// What an operator should look at, though calls are served.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        let mut notes = Vec::new();
        if self.refused.is_some() {
            notes.push(
                "the configuration has problems, which are in the log; what was in force before is in force"
                    .to_owned(),
            );
        }
        if let Some(error) = &self.unsaved {
            notes.push(format!("the flips on disk are not those in force: {error}"));
        }
        Readiness {
            obstacles: Vec::new(),
            notes,
        }
    }

    fn unknown(&self, name: &str) -> Refusal {
        let names = self.flags.iter().map(|flag| flag.name.value.as_str());
        Refusal::Unknown {
            nearest: nearest(name, names).map(str::to_owned),
        }
    }
}

/// What the files say: the configuration, and the flags of the file that it names; or every problem of both.
fn read(sources: &Sources) -> Result<(Box<RawConfig>, Vec<RawFlag>), Problems> {
    let config = Box::new(load(sources)?);
    let Some(file) = &config.rollout.flags else {
        return Ok((config, Vec::new()));
    };
    match load_flags(&file.value) {
        Ok(flags) => Ok((config, flags)),
        Err(problems) => {
            let mut problems = problems.into_vec();
            let others = compile(&config, &[]).err().map(Problems::into_vec);
            problems.extend(others.into_iter().flatten());
            Err(Problems::new(problems))
        }
    }
}

/// Nobody can take a flip back through the API of a process that does not start.
fn with_way_out(problems: Problems) -> Problems {
    let mut problems = problems.into_vec();
    for problem in &mut problems {
        if matches!(problem.place, Place::Flip(_)) {
            let way_out = "move `flips.json` out of the state folder to start without flips";
            problem.hint = Some(match problem.hint.take() {
                Some(hint) => format!("{hint}; or {way_out}"),
                None => way_out.to_owned(),
            });
        }
    }
    Problems::new(problems)
}

fn compile_with(
    config: Box<RawConfig>,
    file_flags: Vec<RawFlag>,
    flips: Vec<Flip>,
) -> Result<Compiled, Problems> {
    let applied = apply(file_flags.clone(), flips);
    let plan = compile(&config, &applied.flags)?;
    Ok(Compiled {
        config,
        file_flags,
        applied,
        plan,
    })
}
