//! The flags that a source outside of this proxy governs.
//!
//! Laws: a poll that fails changes nothing; a value that no plan can have changes nothing for its flag, and is logged
//! once; a flag whose value the files no longer allow takes no caller; neither the kill switch nor a trip of a guard is
//! affected by the source.
//!
//! Used by `control`, `control::state` and `control::replication`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::HeaderValue;

use super::overrides::{RuntimeChanges, settle};
use super::polling::PollOutcome;
use super::state::{Control, Tenure};
use crate::config::raw::RawConfig;
use crate::server::admin::{Readiness, Refusal};
use crate::store::{PollError, PolledFlags, SnapshotDir, SnapshotKind, SourceSettings, Versioned};
use crate::telemetry::clock::{Rfc3339, rfc3339};
use crate::telemetry::metrics::{FlagSourceState, PollCounts, PollResult};
use dualgauge_model::ofrep::poll_delay;
use dualgauge_model::rollout::overrides::{Change, ChangeMeta, Overrides};
use dualgauge_model::rollout::{ReceivedValues, SourcedFlag, SourcedFlags, follow};
use dualgauge_model::time::Timestamp;
use dualgauge_net::{chain, random_u64};

/// The folder below the state folder for the copy of the values. It has a lock of its own.
const FOLDER: &str = "source";

/// The source of flags, if one is configured, and its last good values.
#[derive(Debug)]
pub(super) struct FlagSource {
    settings: Option<SourceSettings>,
    /// The values in force, by the name of the flag.
    pub(super) values: SourcedFlags,
    /// The reasons why the last values of flags are not in force.
    refused: BTreeMap<String, String>,
    /// The tag of the last response, as long as it need not be read again.
    tag: Option<HeaderValue>,
    /// The time of the last good response, of the copy, or of the start.
    answered: SystemTime,
    /// The origin of the values.
    origin: Origin,
    error: Option<String>,
    failures: u32,
    polls: PollCounts,
    copies: Option<SnapshotDir>,
    /// The revision of the copy.
    revision: u64,
    /// True if the copy is of another source.
    is_copy_foreign: bool,
    /// The seed of the delays after failures, which differs between processes.
    seed: u64,
}

/// The origin of the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// No poll has ended, and there is no copy from an earlier process.
    Unknown,
    /// There is no copy, and the source has never answered.
    Files,
    /// The source has answered, this or an earlier process.
    Source,
}

impl FlagSource {
    /// Opens the source of a configuration, with the values that an earlier process received.
    pub(super) async fn open(
        config: &RawConfig,
        tenure: Tenure,
        at: SystemTime,
    ) -> Box<FlagSource> {
        let mut source = Box::new(FlagSource {
            settings: config.rollout.source.as_ref().map(SourceSettings::new),
            values: SourcedFlags::new(),
            refused: BTreeMap::new(),
            tag: None,
            answered: at,
            origin: Origin::Unknown,
            error: None,
            failures: 0,
            polls: PollCounts::default(),
            copies: None,
            revision: 0,
            is_copy_foreign: false,
            seed: random_u64(),
        });
        Box::pin(source.open_copies(config, tenure)).await;
        Box::pin(source.load()).await;
        source
    }

    async fn open_copies(&mut self, config: &RawConfig, tenure: Tenure) {
        let Some(settings) = &self.settings else {
            return;
        };
        let folder = config.rollout.state.value.join(FOLDER);
        let open = match tenure {
            Tenure::Own => SnapshotDir::open,
            Tenure::Awaited => SnapshotDir::open_unlocked,
        };
        let id = settings.identity();
        let copies = SnapshotDir::open_in_background(SnapshotKind::Source, folder, id, open).await;
        self.copies = Some(copies);
    }

    /// Loads the values that an earlier process received.
    async fn load(&mut self) {
        let Some(copies) = &self.copies else {
            return;
        };
        if let Some(copied) = copies.load().await {
            match serde_json::from_str(&copied.state.text) {
                Ok(values) => {
                    self.values = values;
                    self.revision = copied.state.revision;
                    self.origin = Origin::Source;
                    let written = Timestamp::parse(&copied.at);
                    let written = written.map_or(0, |at| u64::try_from(at.unix()).unwrap_or(0));
                    self.answered = UNIX_EPOCH + Duration::from_secs(written);
                }
                Err(error) => {
                    tracing::warn!(%error, "the copy of the values of the source is damaged");
                }
            }
        }
    }

    /// Follows the settings after a reload. The values of another source stay until it has answered. A source that is
    /// new governs nothing until then, and no call waits for it.
    pub(super) async fn follow(&mut self, config: &RawConfig, at: SystemTime) {
        let settings = config.rollout.source.as_ref().map(SourceSettings::new);
        // A value that no plan could have may be possible now, so the next response is read again.
        self.tag = None;
        if settings == self.settings {
            return;
        }
        self.settings = settings;
        self.failures = 0;
        match (&self.settings, &mut self.copies) {
            (None, _) => {
                self.values.clear();
                self.refused.clear();
                self.copies = None;
                self.begin_anew(at);
            }
            (Some(settings), Some(copies)) => {
                self.is_copy_foreign |= copies.identify(settings.identity());
            }
            (Some(_), None) => {
                self.begin_anew(at);
                Box::pin(self.open_copies(config, Tenure::Own)).await;
            }
        }
    }

    fn begin_anew(&mut self, at: SystemTime) {
        self.origin = Origin::Files;
        self.answered = at;
        self.error = None;
    }

    /// Returns the settings and the tag for the next poll.
    pub(super) fn request(&self) -> Option<(SourceSettings, Option<HeaderValue>)> {
        Some((self.settings.clone()?, self.tag.clone()))
    }

    /// Returns the value of a flag that the source governs, with the URL of the source.
    pub(super) fn of(&self, flag: &str) -> Option<(&SourcedFlag, &str)> {
        let url = self.settings.as_ref()?.url();
        self.values.get(flag).map(|value| (value, url))
    }

    /// Records the values that no plan can have. The values in force are known already.
    pub(super) fn refuse(&mut self, refused: BTreeMap<String, String>) {
        for (flag, problem) in &refused {
            if self.refused.get(flag) != Some(problem) {
                let in_force = self.values.get(flag).map(|known| known.value.to_string());
                tracing::error!(
                    flag,
                    problem,
                    in_force,
                    "the value of a flag at the source cannot be used"
                );
            }
        }
        self.refused = refused;
    }

    fn note_good(&mut self, result: PollResult, at: SystemTime) {
        if self.error.take().is_some() {
            tracing::info!("the source of flags answers again");
        }
        self.polls.add(result);
        self.failures = 0;
        self.answered = at;
        self.origin = Origin::Source;
    }

    fn note_failed(&mut self, error: &PollError) {
        let result = result_of(error);
        self.polls.add(result);
        self.failures = self.failures.saturating_add(1);
        if self.origin == Origin::Unknown {
            self.origin = Origin::Files;
        }
        let text = chain(error);
        if self.error.as_ref() != Some(&text) {
            tracing::warn!(
                reason = result.as_str(),
                error = text,
                "the source of flags is unavailable; the flags stay as they are"
            );
        }
        self.error = Some(text);
    }

    fn copy(&mut self) {
        let Some(copies) = &mut self.copies else {
            return;
        };
        self.revision += 1;
        // The names are strings, so serde_json does not fail.
        let text = serde_json::to_string(&self.values).unwrap_or_default();
        let revision = self.revision;
        copies.note(&Versioned { revision, text }, rfc3339());
        self.is_copy_foreign = false;
    }

    /// Writes the pending copy, without waiting.
    pub(super) async fn tend(&mut self) {
        if let Some(copies) = &mut self.copies {
            copies.tend().await;
        }
    }

    /// Writes the pending copy, within a time limit, before the process ends.
    pub(super) async fn flush(&mut self) {
        if let Some(copies) = &mut self.copies {
            copies.flush().await;
        }
    }

    /// Releases the folder for the next process.
    pub(super) fn release(&mut self) {
        if let Some(copies) = &mut self.copies {
            copies.release();
        }
    }

    /// Returns the state for the metrics page; `None` without a source.
    pub(super) fn state(&self) -> Option<FlagSourceState> {
        self.settings.as_ref()?;
        Some(FlagSourceState {
            answered: self.answered,
            polls: self.polls,
            governed: self.values.len(),
            refused: self.refused.len(),
        })
    }

    /// Adds the state of the source to the readiness. Calls wait for the first poll only, because it may fail for long.
    pub(super) fn add_readiness(&self, readiness: &mut Readiness) {
        if self.settings.is_none() {
            return;
        }
        if self.origin == Origin::Unknown {
            let unknown = "the source of flags has not answered yet";
            readiness.obstacles.push(unknown.to_owned());
        }
        if let Some(error) = &self.error {
            let in_force = match self.origin {
                Origin::Source => {
                    let at = Rfc3339(self.answered);
                    format!("its values of {at} stay in force")
                }
                Origin::Unknown | Origin::Files => "calls are served without it".to_owned(),
            };
            readiness.notes.push(format!(
                "the source of flags is unavailable, and {in_force}: {error}"
            ));
        }
        readiness
            .notes
            .extend(self.refused.iter().map(|(flag, problem)| {
                format!("the value of the flag `{flag}` at the source cannot be used: {problem}")
            }));
    }
}

impl Control {
    /// Applies the result of a poll. Returns the delay of the next one.
    pub(super) fn take_polled(&mut self, polled: PollOutcome, at: SystemTime) -> Duration {
        let PollOutcome { settings, result } = polled;
        if self.source.settings.as_ref() != Some(&settings) {
            // The settings have changed meanwhile.
            return Duration::ZERO;
        }
        let taken = result.and_then(|polled| match polled {
            PolledFlags::Values { values, tag } => {
                let result = self.take_values(values, at)?;
                self.source.tag = tag;
                Ok(result)
            }
            PolledFlags::Unchanged => Ok(PollResult::Unchanged),
        });
        let after = match taken {
            Ok(result) => {
                self.source.note_good(result, at);
                None
            }
            Err(error) => {
                self.source.note_failed(&error);
                error.retry_after()
            }
        };
        let FlagSource { failures, seed, .. } = *self.source;
        poll_delay(settings.interval, failures, after, seed)
    }

    /// Puts the values of a response in force.
    fn take_values(
        &mut self,
        mut received: ReceivedValues,
        at: SystemTime,
    ) -> Result<PollResult, PollError> {
        let names = self.file_flags.iter().map(|flag| flag.name.value.as_str());
        let names: BTreeSet<&str> = names.collect();
        received.retain(|name, _| names.contains(name.as_str()));
        let mut governed = self.source.values.keys();
        if received.is_empty() && governed.any(|name| names.contains(name.as_str())) {
            // The source may have just started, or may have lost its flags.
            return Err(PollError::Empty);
        }
        let mut values = follow(&self.source.values, &received, &Rfc3339(at).to_string());
        let unread = received.into_iter();
        let mut refused: BTreeMap<_, _> = unread
            .filter_map(|(name, value)| Some((name, value.err()?)))
            .collect();
        if values != self.source.values {
            let kill = self.kill_over(self.overrides.kill.as_ref());
            let changes = RuntimeChanges {
                overrides: &self.overrides,
                tripped_here: &self.tripped_here,
                kill: kill.as_ref(),
                source: &self.source.values,
            };
            match settle(&self.config, &self.file_flags, changes, values) {
                Ok(settled) => {
                    refused.extend(settled.refused);
                    values = settled.values;
                    if values != self.source.values {
                        self.flags = settled.flags;
                        self.plan = settled.plan;
                    }
                }
                // The problems are those of other changes, such as changes of other replicas that do not apply here.
                Err(problems) => {
                    let first = problems.iter().next();
                    let first = first.map(|problem| problem.message.clone());
                    return Err(PollError::NoPlan(first.unwrap_or_default()));
                }
            }
        }
        let is_changed = values != self.source.values;
        if is_changed {
            self.log_values(&values);
            self.source.values = values;
        }
        self.source.refuse(refused);
        if is_changed || self.source.is_copy_foreign {
            self.source.copy();
        }
        Ok(match is_changed {
            true => PollResult::Changed,
            false => PollResult::Unchanged,
        })
    }

    fn log_values(&self, values: &SourcedFlags) {
        let before = &self.source.values;
        for (flag, SourcedFlag { value, .. }) in values {
            if before.get(flag).is_none_or(|known| known.value != *value) {
                tracing::info!(flag, to = %value, "the source has changed a flag");
            }
        }
        for flag in before.keys().filter(|flag| !values.contains_key(*flag)) {
            tracing::info!(flag, "the source no longer governs a flag");
        }
    }

    /// Refuses a change by a person of a flag that the source governs. `next` is the state after the change, if known.
    ///
    /// # Errors
    /// Returns [`Refusal::Governed`].
    pub(super) fn check_governed(
        &self,
        change: &Change,
        next: Option<&Overrides>,
    ) -> Result<(), Refusal> {
        let flag = match change {
            Change::Flip { flag, .. } | Change::Unflip { flag } => Some(flag.as_str()),
            Change::Undo { flag: Some(flag) } => Some(flag.as_str()),
            Change::Undo { flag: None } => {
                let last = next.and_then(|next| next.history.back());
                last.and_then(|entry| entry.flag())
            }
            Change::Trip { .. }
            | Change::Drop { .. }
            | Change::Rearm { .. }
            | Change::Advance { .. }
            | Change::Kill
            | Change::Revive
            | Change::CallOff { .. }
            | Change::CallOn { .. } => None,
        };
        match flag.and_then(|flag| Some((flag, self.source.of(flag)?.1))) {
            Some((flag, url)) => Err(Refusal::Governed {
                flag: flag.to_owned(),
                url: url.to_owned(),
            }),
            None => Ok(()),
        }
    }

    /// Returns the source as the author of a flag's value, if it governs the flag.
    pub(super) fn author(&self, flag: &str) -> Option<ChangeMeta> {
        let (value, url) = self.source.of(flag)?;
        Some(ChangeMeta {
            who: "source".to_owned(),
            at: value.at.clone(),
            why: Some(url.to_owned()),
        })
    }
}

const fn result_of(error: &PollError) -> PollResult {
    match error {
        PollError::Unreachable(_) | PollError::Broken(_) => PollResult::Unreachable,
        PollError::Late(_) => PollResult::Timeout,
        PollError::Unauthorized(_) => PollResult::Unauthorized,
        PollError::Busy { .. } => PollResult::Busy,
        PollError::Status(_) => PollResult::Status,
        PollError::TooLong => PollResult::TooLong,
        PollError::Invalid(_) | PollError::Empty | PollError::NoPlan(_) => PollResult::Invalid,
    }
}
