//! The one owner of what can change while the process runs: the plan in force, the standing of the rollout, and
//! what came of reading the files again.
//!
//! ```text
//! control   open, reload, poll: no task, no clock, no channel
//! changes   a change of the standing: compiled, stored, and only then in force
//! dropped   what was changed for flags that were edited since
//! explained what becomes of a call, with the plan in force
//! files     the files of a start or a reload, as they were read
//! over      the flags with the standing over them (pure)
//! guards    what the guards of flags say, and their ramps
//! reading   reading the files, off the task
//! reports   what this process has counted, and what all have
//! kill      the kill switch, which acts before it is stored
//! own       under which name this process reports
//! silence   how long others have not reported
//! sharing   what other replicas have changed, and a store that is away
//! fixed     what a reload cannot change
//! watch     whether the files are what they were
//! views     the state, as the admin API shows it
//! owner     the task: commands in, polls, plans out to the workers
//! ```
//!
//! Laws: a plan is compiled before anything changes, and swapped whole; what fails leaves everything as it was; a
//! change is stored before it is in force, but for the kill switch; while the store is away, the last good standing holds.

mod apply;
mod explained;
mod file_watch;
mod files;
mod guards;
mod kill;
mod overrides;
mod reading;
mod replication;
mod report_age;
mod reporter_id;
mod reports;
mod restart_only;
mod stale_changes;
mod task;
#[cfg(test)]
mod tests;
mod views;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

#[cfg(test)]
use crate::config::Digests;
use crate::config::load::Sources;
use crate::config::problem::{Problems, SourceLocation, nearest};
use crate::config::raw::{RawConfig, RawFlag};
use crate::domain::plan::Plan;
use crate::domain::rollout::Kill;
use crate::domain::rollout::overrides::{ChangeMeta, Standing};
use crate::server::admin::{Refusal, Reloaded};
use crate::store::{Health, Late, SnapshotDir, Store, StoreError, StoreSettings};
use crate::telemetry::metrics::GuardTrips;
use file_watch::{FileChange, FileContents, FileWatch};
use guards::Guards;
use kill::KillRequest;
use reading::Said;
use reports::Reporting;
use restart_only::{RestartOnly, keep_what_is_fixed};
use stale_changes::StaleChanges;

pub use files::Files;
pub use reports::ReportCounts;
pub use task::{Hooks, own};

/// The state, and the ways to change it. It reads and writes files, so it belongs on no thread that serves calls.
#[derive(Debug)]
pub struct Control {
    sources: Sources,
    /// What the files say, but for what only a start can change: that is as it was at the start. Boxed, since it is
    /// large and the task that owns it is moved.
    config: Box<RawConfig>,
    /// What the files say of that.
    fixed: RestartOnly,
    /// The flags of the flags file.
    file_flags: Vec<RawFlag>,
    /// The same flags with the standing over them.
    flags: Vec<RawFlag>,
    standing: Standing,
    /// The revision of the standing, as the store counts.
    revision: u64,
    store: Store,
    known: Known,
    /// Where the standing of a shared store is copied.
    copies: Option<SnapshotDir>,
    plan: Arc<Plan>,
    reloads: Reloads,
    watch: FileWatch,
    /// What is wrong with the files, where they are not what is in force.
    refused: Option<Problems>,
    guards: Guards,
    reporting: Reporting,
    /// The flags that a guard has taken back while the store could not be told, and why.
    tripped_here: BTreeMap<String, String>,
    /// The kill switch, as long as it acts and is not stored.
    thrown: Option<KillRequest>,
    /// What is still to be dropped.
    void: StaleChanges,
    /// Why what is stored is not in force, or what is in force is not stored.
    trouble: Option<String>,
}

/// Whether the store has ever told its standing to this process.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Known {
    /// It has.
    Yes,
    /// It was away from the start: what a process of before has copied holds.
    Copied {
        /// When that was, in RFC 3339.
        at: String,
    },
    /// It was away from the start, and there is no copy: nobody knows which flags were flipped.
    NotYet,
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

/// What the page of metrics tells of the state, beside the plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    /// How often the files were read again.
    pub reloads: Reloads,
    /// How often guards have taken their flags back, or would have.
    pub trips: Vec<GuardTrips>,
    /// What each guard said last, by the names of the flags.
    pub rulings: Vec<(String, &'static str)>,
    /// The kill switch.
    pub kill: Kill,
    /// How the store fares.
    pub store: Health,
}

/// Why the process cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The files, the variables or the arguments.
    #[error("the configuration has problems")]
    Config(#[from] Problems),
    /// The files are not read in time.
    #[error("the configuration cannot be read")]
    Late(#[from] Late),
    /// The store.
    #[error("what was changed at run time cannot be read")]
    Store(#[from] StoreError),
    /// What the store tells is no standing.
    #[error(
        "what was changed at run time is not what this program writes; mend it, or move it away to begin anew"
    )]
    Standing(#[from] serde_json::Error),
}

/// What a look at the files has led to.
#[cfg(test)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Polled {
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

/// Whether what lies on disk belongs to this process from its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tenure {
    /// It does.
    Own,
    /// The process that this one replaces still has it.
    Awaited,
}

/// Everything that can be in force at once.
struct Compiled {
    config: Box<RawConfig>,
    file_flags: Vec<RawFlag>,
    flags: Vec<RawFlag>,
    plan: Plan,
}

impl Control {
    /// Opens the store and compiles the first plan. Nothing is watched or served yet.
    ///
    /// What is wrong with the store is logged here, so the log runs before.
    ///
    /// # Errors
    /// [`StartError`], with every problem of the files.
    pub async fn open(files: Files, at: SystemTime) -> Result<Control, StartError> {
        Control::begin((files, Tenure::Own), at).await
    }

    /// The same beside the process that this one is to replace: what it owns is read, and taken once it lets go of it.
    ///
    /// # Errors
    /// [`StartError`], with every problem of the files.
    pub async fn succeed(files: Files, at: SystemTime) -> Result<Control, StartError> {
        Control::begin((files, Tenure::Awaited), at).await
    }

    async fn begin(
        (files, tenure): (Files, Tenure),
        at: SystemTime,
    ) -> Result<Control, StartError> {
        let Files {
            sources,
            config,
            flags: file_flags,
            digests,
        } = files;
        let watch = FileWatch::begun(&config, digests);
        let settings = StoreSettings::new(&config.rollout);
        let mut store = match tenure {
            Tenure::Own => Store::open(&settings).await?,
            Tenure::Awaited => Store::await_turn(&settings).await?,
        };
        let begun = replication::begin(&mut store, (&config, tenure)).await?;
        let reporting = Reporting::from_config(&config);
        let compiled = compile_with(
            config,
            file_flags,
            (&begun.standing, &BTreeMap::new(), None),
        )
        .map_err(|problems| with_way_out(problems, begun.way_out))?;
        let mut control = Control {
            sources,
            fixed: RestartOnly::from_config(&compiled.config),
            config: compiled.config,
            file_flags: compiled.file_flags,
            flags: compiled.flags,
            standing: begun.standing,
            revision: begun.revision,
            store,
            known: begun.known,
            copies: begun.copies,
            plan: Arc::new(compiled.plan),
            reloads: Reloads {
                succeeded: 0,
                failed: 0,
                loaded_at: at,
            },
            watch,
            refused: None,
            guards: Guards::default(),
            reporting,
            tripped_here: BTreeMap::new(),
            thrown: None,
            void: StaleChanges::new(),
            trouble: begun.trouble,
        };
        control.forget(at).await;
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

    /// What the page of metrics tells of the state.
    #[must_use]
    pub fn facts(&self) -> Facts {
        Facts {
            reloads: self.reloads,
            trips: self.guards.trips(),
            rulings: self.guards.rulings(),
            kill: self.plan.rollout.kill,
            store: self.store.health(),
        }
    }

    /// Reads the files again, as the task does because somebody asks.
    #[cfg(test)]
    async fn reload(&mut self, at: SystemTime) -> Reloaded {
        let said = files::read(&self.sources, &mut Digests::new());
        self.take_files(said, Trigger::Asked, at).await
    }

    /// Looks whether the files have changed, and reads them again once they have come to rest, as the task does.
    #[cfg(test)]
    async fn poll(&mut self, at: SystemTime) -> Polled {
        match self.looked(file_watch::contents(self.watched())) {
            FileChange::Quiet => Polled::Quiet,
            FileChange::Settling => Polled::Settling,
            FileChange::Due => {
                let said = files::read(&self.sources, &mut Digests::new());
                Polled::Reloaded(self.take_files(said, Trigger::Watched, at).await)
            }
        }
    }

    /// Where the configuration comes from.
    const fn sources(&self) -> &Sources {
        &self.sources
    }

    /// The files and folders that are looked at for changes.
    fn watched(&self) -> Vec<PathBuf> {
        let paths = file_watch::paths(&self.config, self.refused.as_ref());
        paths.map(Path::to_path_buf).collect()
    }

    /// Takes the contents that a look has found. Returns whether the files are to be read.
    fn looked(&mut self, contents: FileContents) -> FileChange {
        self.watch.look(contents, self.refused.as_ref())
    }

    /// Takes what the files say now.
    async fn take_files(&mut self, said: Said, trigger: Trigger, at: SystemTime) -> Reloaded {
        match said.and_then(|said| self.compile_again(said)) {
            Ok(Some(compiled)) => {
                self.replace(compiled);
                self.forget(at).await;
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
    fn compile_again(
        &mut self,
        (mut config, file_flags): (Box<RawConfig>, Vec<RawFlag>),
    ) -> Result<Option<Compiled>, Problems> {
        let fixed = RestartOnly::from_config(&config);
        fixed.warn_of_changes(&self.fixed, &RestartOnly::from_config(&self.config));
        self.fixed = fixed;
        keep_what_is_fixed(&mut config, &self.config);
        if config == self.config && file_flags == self.file_flags {
            return Ok(None);
        }
        let here = self.still_tripped_here(&file_flags);
        let kill = self.kill_over(self.standing.kill.as_ref());
        compile_with(config, file_flags, (&self.standing, &here, kill.as_ref())).map(Some)
    }

    /// What was taken back in this process only, of flags that were not edited since.
    fn still_tripped_here(&self, file_flags: &[RawFlag]) -> BTreeMap<String, String> {
        let mut here = self.tripped_here.clone();
        here.retain(|name, _| {
            let text_hash = self.text_hash(name);
            let mut flags = file_flags.iter();
            flags.any(|flag| flag.name.value == *name && flag.text_hash == text_hash)
        });
        here
    }

    fn replace(&mut self, compiled: Compiled) {
        self.tripped_here = self.still_tripped_here(&compiled.file_flags);
        self.config = compiled.config;
        self.file_flags = compiled.file_flags;
        self.flags = compiled.flags;
        self.plan = Arc::new(compiled.plan);
        self.refused = None;
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

    fn unknown(&self, name: &str) -> Refusal {
        let names = self.flags.iter().map(|flag| flag.name.value.as_str());
        Refusal::Unknown {
            nearest: nearest(name, names).map(str::to_owned),
        }
    }
}

/// Nobody can take a flip back through the API of a process that does not start.
fn with_way_out(problems: Problems, way_out: Option<&str>) -> Problems {
    let Some(file) = way_out else {
        return problems;
    };
    let mut problems = problems.into_vec();
    for problem in &mut problems {
        if matches!(problem.place, SourceLocation::Flip(_)) {
            let way_out = format!("move `{file}` out of the state folder to start without flips");
            problem.hint = Some(match problem.hint.take() {
                Some(hint) => format!("{hint}; or {way_out}"),
                None => way_out,
            });
        }
    }
    Problems::new(problems)
}

fn compile_with(
    config: Box<RawConfig>,
    file_flags: Vec<RawFlag>,
    (standing, tripped_here, kill): (&Standing, &BTreeMap<String, String>, Option<&ChangeMeta>),
) -> Result<Compiled, Problems> {
    let flags = overrides::laid(&file_flags, standing, tripped_here);
    let kill = kill.or(standing.kill.as_ref());
    let plan = overrides::plan(&config, &flags, (standing, kill))?;
    Ok(Compiled {
        config,
        file_flags,
        flags,
        plan,
    })
}
