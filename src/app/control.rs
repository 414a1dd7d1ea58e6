//! The owner of the runtime state: the plan in force, the overrides of the rollout, and the results of reloads.
//!
//! ```text
//! control         open, reload, poll: no task, no clock, no channel
//! state           the runtime state as plain fields
//! apply           changes of the overrides: compiled, stored, then put in force
//! stale_changes   runtime changes of flags that were edited since
//! evaluated       evaluations of flags for applications
//! evaluation_log  the log of evaluations that fail
//! explained       the explanation of a call under the plan in force
//! files           the files of a start or a reload
//! overrides       the flags with the overrides applied (pure)
//! guarded_flag    the state of a flag's guard and ramp
//! guards          guards and ramps of flags
//! hooks           the functions through which the task reaches the workers
//! source          the flags that a source governs
//! polling         the polls of that source
//! reading         reading the files in the background
//! reporting       the reports of this process and the counts of others
//! reports         the counts of this process and of all replicas
//! kill            the kill switch, which acts before it is stored
//! reporter_id     the id under which this process reports
//! report_counts   the counts that a process reports
//! report_age      the time since other reports changed
//! replication     changes by other replicas, and an unavailable store
//! restart_only    settings that a reload cannot change
//! file_watch      detection of changed files
//! views           the state as shown by the admin API
//! overview        the state of the whole migration, for the console
//! lists           clients and routes with their calls, for the console
//! task            the control task: commands, polls, and plans to the workers
//! ```
//!
//! Laws: a plan is compiled before anything changes, and swapped whole; a failure leaves everything as it was; a change
//! is stored before it is in force, except for the kill switch; while the store is unavailable, the last good overrides
//! applies.
//!
//! Used by `control`, `run` and `usage_counts`.

mod apply;
mod evaluated;
mod evaluation_log;
mod explained;
mod file_watch;
mod files;
mod guarded_flag;
mod guards;
mod hooks;
mod kill;
mod lists;
mod overrides;
mod overview;
mod polling;
mod reading;
mod replication;
mod report_age;
mod report_counts;
mod reporter_id;
mod reporting;
mod reports;
mod restart_only;
mod route_patterns;
mod source;
mod stale_changes;
mod state;
mod task;
#[cfg(test)]
mod tests;
mod views;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use http::HeaderValue;

#[cfg(test)]
use crate::config::Digests;
use crate::config::load::Sources;
use crate::config::problem::{Problems, SourceLocation, nearest};
use crate::config::raw::{RawConfig, RawFlag};
use crate::server::admin::{Refusal, Reloaded};
use crate::store::{SourceSettings, Store, StoreSettings};
use crate::telemetry::metrics::EvaluationCounts;
use dualgauge_model::lifecycle::Timeline;
use dualgauge_model::plan::Plan;
use dualgauge_model::rollout::SourcedFlags;
use evaluation_log::EvaluationLog;
use file_watch::{FileChange, FileContents, FileWatch};
use guarded_flag::Guards;
use overrides::{RuntimeChanges, Settled, settle};
use reading::FilesRead;
use reporting::Reporting;
use restart_only::{RestartOnly, keep_what_is_fixed};
use source::FlagSource;
use state::{StaleChanges, Tenure, Trigger};

pub use files::Files;
pub use hooks::Hooks;
pub use report_counts::ReportCounts;
pub use state::{Control, Facts, Reloads, StartError};
pub use task::own;

/// The result of checking the files.
#[cfg(test)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Polled {
    /// Nothing has changed.
    Quiet,
    /// A file has just changed; check again soon.
    Settling,
    /// A file has changed and settled, and the files were reloaded.
    Reloaded(Reloaded),
}

/// A compiled configuration with its sources.
struct Compiled {
    config: Box<RawConfig>,
    file_flags: Vec<RawFlag>,
    settled: Settled,
}

impl Control {
    /// Opens the store and compiles the first plan. Nothing is watched or served yet.
    ///
    /// Problems of the store are logged here, so the log must be running.
    ///
    /// # Errors
    /// Returns a [`StartError`] with every problem of the files.
    pub async fn open(files: Files, at: SystemTime) -> Result<Control, StartError> {
        Control::begin(files, Tenure::Own, at).await
    }

    /// Opens the state alongside the process that this one replaces. State owned by that process is read now, and
    /// locked once it is released.
    ///
    /// # Errors
    /// Returns a [`StartError`] with every problem of the files.
    pub async fn succeed(files: Files, at: SystemTime) -> Result<Control, StartError> {
        Control::begin(files, Tenure::Awaited, at).await
    }

    async fn begin(files: Files, tenure: Tenure, at: SystemTime) -> Result<Control, StartError> {
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
            Tenure::Awaited => Store::open_unlocked(&settings).await?,
        };
        let begun = replication::begin(&mut store, &config, tenure).await?;
        let reporting = Reporting::from_config(&config);
        let mut source = Box::pin(FlagSource::open(&config, tenure, at)).await;
        let changes = RuntimeChanges {
            overrides: &begun.overrides,
            tripped_here: &BTreeMap::new(),
            kill: begun.overrides.kill.as_ref(),
            source: &source.values,
        };
        let compiled = compile_with(config, file_flags, changes)
            .map_err(|problems| with_way_out(problems, begun.way_out))?;
        let settled = compiled.settled;
        source.values = settled.values;
        source.refuse(settled.refused);
        let mut control = Control {
            sources,
            fixed: RestartOnly::from_config(&compiled.config),
            config: compiled.config,
            file_flags: compiled.file_flags,
            flags: settled.flags,
            source,
            overrides: begun.overrides,
            revision: begun.revision,
            store,
            known: begun.known,
            copies: begun.copies,
            plan: settled.plan,
            reloads: Reloads {
                succeeded: 0,
                failed: 0,
                loaded_at: at,
            },
            watch,
            refused: None,
            guards: Guards::default(),
            reporting,
            evaluations: EvaluationCounts::default(),
            evaluation_log: EvaluationLog::default(),
            timeline: Timeline::default(),
            tripped_here: BTreeMap::new(),
            thrown: None,
            void: StaleChanges::new(),
            trouble: begun.trouble,
        };
        control.forget(at).await;
        Ok(control)
    }

    /// Returns the plan in force.
    #[must_use]
    pub fn plan(&self) -> Arc<Plan> {
        Arc::clone(&self.plan)
    }

    /// Returns the configuration from the files, with restart-only settings as they were at the start.
    #[must_use]
    pub fn config(&self) -> &RawConfig {
        &self.config
    }

    /// Returns the counts of reloads.
    #[must_use]
    pub const fn reloads(&self) -> Reloads {
        self.reloads
    }

    /// Returns the facts about the state for the metrics page.
    #[must_use]
    pub fn facts(&self) -> Facts {
        Facts {
            reloads: self.reloads,
            trips: self.guards.trips(),
            rulings: self.guards.rulings(),
            evaluations: self.evaluations.clone(),
            kill: self.plan.rollout.kill,
            store: self.store.health(),
            source: self.source.state(),
        }
    }

    /// Returns the settings and the tag for the next poll of the source of flags.
    fn poll_request(&self) -> Option<(SourceSettings, Option<HeaderValue>)> {
        self.source.request()
    }

    /// Reloads the files, as the task does on request.
    #[cfg(test)]
    async fn reload(&mut self, at: SystemTime) -> Reloaded {
        let said = files::read(&self.sources, &mut Digests::new());
        self.take_files(said, Trigger::Asked, at).await
    }

    /// Checks the files for changes, and reloads them once they have settled, as the task does.
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

    /// Returns the sources of the configuration.
    const fn sources(&self) -> &Sources {
        &self.sources
    }

    /// Returns the files and folders to check for changes.
    fn watched(&self) -> Vec<PathBuf> {
        let paths = file_watch::paths(&self.config, self.refused.as_ref());
        paths.map(Path::to_path_buf).collect()
    }

    /// Compares the contents found by a check. Returns whether the files must be read.
    fn looked(&mut self, contents: FileContents) -> FileChange {
        self.watch.look(contents, self.refused.as_ref())
    }

    /// Applies the files that were read.
    async fn take_files(&mut self, said: FilesRead, trigger: Trigger, at: SystemTime) -> Reloaded {
        match said.and_then(|(config, flags)| self.compile_again(config, flags)) {
            Ok(Some(compiled)) => {
                self.replace(compiled);
                Box::pin(self.source.follow(&self.config, at)).await;
                self.forget(at).await;
                self.reloads.succeeded += 1;
                self.reloads.loaded_at = at;
                tracing::info!(
                    routes = self.config.routes.len(),
                    flags = self.flags.len(),
                    "the configuration is reloaded and in force"
                );
                Reloaded::Swapped
            }
            Ok(None) => {
                if trigger == Trigger::Asked || self.refused.is_some() {
                    tracing::info!("the configuration is reloaded and unchanged");
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

    /// Compiles the files, or returns `None` if they are unchanged.
    fn compile_again(
        &mut self,
        mut config: Box<RawConfig>,
        file_flags: Vec<RawFlag>,
    ) -> Result<Option<Compiled>, Problems> {
        let fixed = RestartOnly::from_config(&config);
        fixed.warn_of_changes(&self.fixed, &RestartOnly::from_config(&self.config));
        self.fixed = fixed;
        keep_what_is_fixed(&mut config, &self.config);
        if config == self.config && file_flags == self.file_flags {
            return Ok(None);
        }
        let here = self.still_tripped_here(&file_flags);
        let kill = self.kill_over(self.overrides.kill.as_ref());
        let none = SourcedFlags::new();
        let changes = RuntimeChanges {
            overrides: &self.overrides,
            tripped_here: &here,
            kill: kill.as_ref(),
            source: match config.rollout.source {
                Some(_) => &self.source.values,
                None => &none,
            },
        };
        compile_with(config, file_flags, changes).map(Some)
    }

    /// Returns the flags tripped in this process only, without those that were edited since.
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
        self.flags = compiled.settled.flags;
        self.plan = compiled.settled.plan;
        self.source.values = compiled.settled.values;
        self.source.refuse(compiled.settled.refused);
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
                    "the configuration has problems; the previous configuration stays in force"
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

/// Adds a hint to problems of flips: the API cannot revert a flip while the process does not start.
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

/// Compiles the files. A flag whose value of the source is impossible with them is off, because another value could
/// take more callers.
fn compile_with(
    config: Box<RawConfig>,
    file_flags: Vec<RawFlag>,
    changes: RuntimeChanges<'_>,
) -> Result<Compiled, Problems> {
    let settled = settle(&config, &file_flags, changes, changes.source.clone())?;
    Ok(Compiled {
        config,
        file_flags,
        settled,
    })
}
