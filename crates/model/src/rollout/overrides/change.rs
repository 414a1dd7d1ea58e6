//! Changes to the overrides. Used by `rollout`.

use super::history::{DROP, HistoryEntry, Reverted, UNDO};
use super::in_force::{ChangeMeta, FlagOverrides, Flip, Overrides, RampProgress, Tripped};
use crate::rollout::{Percent, Stage};

/// A change to the overrides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Sets the stage and the share of a flag. A tripped flag stays tripped.
    Flip {
        /// The flag.
        flag: String,
        /// The stage.
        stage: Stage,
        /// The share.
        percent: Percent,
    },
    /// Restores a flag to its definition in the file, armed and at the beginning of its ramp.
    Unflip {
        /// The flag.
        flag: String,
    },
    /// Disables a flag because its guard tripped.
    Trip {
        /// The flag.
        flag: String,
        /// The observed breach.
        reason: String,
    },
    /// Removes the overrides of a flag whose text in the file has changed. Only the program makes this change.
    Drop {
        /// The flag.
        flag: String,
    },
    /// Re-arms a tripped flag.
    Rearm {
        /// The flag.
        flag: String,
    },
    /// Advances a ramp to its next step.
    Advance {
        /// The flag.
        flag: String,
        /// The current step; `None` if the ramp has not begun.
        from: Option<usize>,
        /// The next step.
        to: usize,
        /// The time, in milliseconds since 1970.
        at: u64,
    },
    /// Turns the kill switch on.
    Kill,
    /// Turns the kill switch off.
    Revive,
    /// Suspends the brownouts of a route.
    CallOff {
        /// The route.
        route: String,
    },
    /// Resumes the brownouts of a route.
    CallOn {
        /// The route.
        route: String,
    },
    /// Reverts the last change that was not reverted yet, of one flag or of anything.
    Undo {
        /// The flag; `None` means any change.
        flag: Option<String>,
    },
}

/// The reason why a change is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChangeFault {
    /// The flag of a guard's change is already tripped or at another step.
    #[error("the flag has changed in the meantime")]
    Overtaken,
    /// The flag is armed.
    #[error("the flag is not tripped, so there is nothing to re-arm")]
    NotTripped,
    /// The history has no change to revert.
    #[error("there is no change to undo")]
    NothingToUndo,
}

/// The result of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeResult {
    /// The next overrides.
    To(Box<Overrides>),
    /// No change: the overrides were so already.
    Already,
}

impl Overrides {
    /// Applies a change. `revision` is the revision under which the result will be stored; `text_hash` is the hash of
    /// the flag's text in the file.
    ///
    /// # Errors
    ///
    /// Returns a [`ChangeFault`] if the change is refused.
    pub fn change(
        &self,
        change: &Change,
        revision: u64,
        by: &ChangeMeta,
        text_hash: impl Fn(&str) -> String,
    ) -> Result<ChangeResult, ChangeFault> {
        let mut next = self.clone();
        match change {
            Change::Flip { .. }
            | Change::Unflip { .. }
            | Change::Trip { .. }
            | Change::Rearm { .. }
            | Change::Advance { .. } => next.change_flag(change, by, &text_hash)?,
            Change::Drop { flag } => next.take_off(flag),
            Change::Kill if next.kill.is_none() => next.kill = Some(by.clone()),
            Change::Kill => {}
            Change::Revive => next.kill = None,
            Change::CallOff { route } => {
                next.called_off.insert(route.clone());
            }
            Change::CallOn { route } => {
                next.called_off.remove(route);
            }
            Change::Undo { flag } => next.undo(flag.as_deref())?,
        }
        if next == *self {
            return Ok(ChangeResult::Already);
        }
        next.note(self, change, revision, by);
        Ok(ChangeResult::To(Box::new(next)))
    }

    fn change_flag(
        &mut self,
        change: &Change,
        by: &ChangeMeta,
        text_hash: impl Fn(&str) -> String,
    ) -> Result<(), ChangeFault> {
        let Some(flag) = change.flag() else {
            return Ok(());
        };
        let text_hash = text_hash(flag);
        let mut now = match self.of(flag, &text_hash) {
            Some(overrides) => overrides.clone(),
            None => FlagOverrides {
                text_hash,
                ..FlagOverrides::default()
            },
        };
        match change {
            Change::Flip { stage, percent, .. } => {
                let same = |flip: &Flip| (flip.stage, flip.percent) == (*stage, *percent);
                if !now.flip.as_ref().is_some_and(same) {
                    now.flip = Some(Flip {
                        stage: *stage,
                        percent: *percent,
                        by: by.clone(),
                    });
                    // A manual override replaces the ramp.
                    now.ramp = None;
                }
            }
            Change::Trip { reason, .. } => {
                if now.trip.is_some() {
                    return Err(ChangeFault::Overtaken);
                }
                now.trip = Some(Tripped {
                    reason: reason.clone(),
                    at: by.at.clone(),
                });
            }
            Change::Rearm { .. } => {
                now.trip.take().ok_or(ChangeFault::NotTripped)?;
                now.ramp = None;
            }
            Change::Advance { from, to, at, .. } => {
                let current_step = now.ramp.map(|ramp| ramp.step);
                if current_step != *from || now.trip.is_some() {
                    return Err(ChangeFault::Overtaken);
                }
                now.ramp = Some(RampProgress {
                    step: *to,
                    since: *at,
                });
            }
            Change::Unflip { .. }
            | Change::Drop { .. }
            | Change::Kill
            | Change::Revive
            | Change::CallOff { .. }
            | Change::CallOn { .. }
            | Change::Undo { .. } => {
                self.flags.remove(flag);
                return Ok(());
            }
        }
        self.flags.insert(flag.to_owned(), now);
        Ok(())
    }

    /// Removes the overrides of a flag and closes its history entries to later undos.
    fn take_off(&mut self, flag: &str) {
        if self.flags.remove(flag).is_some() {
            self.close(flag);
        }
    }

    fn undo(&mut self, flag: Option<&str>) -> Result<(), ChangeFault> {
        let mut open = self.history.iter_mut().rev();
        let entry = open
            .find(|entry| entry.can_be_undone() && (flag.is_none() || entry.flag() == flag))
            .ok_or(ChangeFault::NothingToUndo)?;
        entry.undone = true;
        match entry.before.clone() {
            Reverted::Flag { flag, overrides } => self.restore(&flag, overrides),
            Reverted::Kill { kill } => self.kill = kill,
            Reverted::Brownouts { called_off } => self.called_off = called_off,
        }
        Ok(())
    }

    /// Restores earlier overrides of a flag. A flag that tripped since then stays tripped until a person re-arms it.
    fn restore(&mut self, flag: &str, before: Option<FlagOverrides>) {
        let now = self.flags.remove(flag).unwrap_or_default();
        let tripped = now.trip.is_some();
        let restored = match before {
            Some(before) => Some(FlagOverrides {
                trip: now.trip.or(before.trip),
                ..before
            }),
            None => tripped.then_some(FlagOverrides {
                flip: None,
                ramp: None,
                ..now
            }),
        };
        self.flags
            .extend(restored.map(|restored| (flag.to_owned(), restored)));
    }

    /// Appends a change to the history and sets the revision of its flag.
    fn note(&mut self, before: &Overrides, change: &Change, revision: u64, by: &ChangeMeta) {
        let flag = if matches!(change, Change::Undo { .. }) {
            self.undone_flag(before)
        } else {
            change.flag().map(str::to_owned)
        };
        if let Some(overrides) = flag.as_deref().and_then(|flag| self.flags.get_mut(flag)) {
            overrides.revision = revision;
        }
        let left = |overrides: &Overrides| overrides.left(change, flag.as_deref());
        let entry = HistoryEntry {
            revision,
            what: change.as_str().to_owned(),
            by: by.clone(),
            before: left(before),
            after: left(self),
            undone: false,
        };
        self.remember(entry);
    }

    /// Returns the flag of the history entry that this change has marked as undone.
    fn undone_flag(&self, before: &Overrides) -> Option<String> {
        let both = self.history.iter().zip(&before.history);
        let mut undone = both.filter(|(now, then)| now.undone && !then.undone);
        undone.find_map(|(now, _)| now.flag().map(str::to_owned))
    }

    fn left(&self, change: &Change, flag: Option<&str>) -> Reverted {
        match (change, flag) {
            (_, Some(flag)) => Reverted::Flag {
                flag: flag.to_owned(),
                overrides: self.flags.get(flag).cloned(),
            },
            (Change::CallOff { .. } | Change::CallOn { .. }, None) => Reverted::Brownouts {
                called_off: self.called_off.clone(),
            },
            (_, None) => Reverted::Kill {
                kill: self.kill.clone(),
            },
        }
    }
}

impl Change {
    /// Returns the flag that is changed.
    #[must_use]
    pub fn flag(&self) -> Option<&str> {
        match self {
            Change::Flip { flag, .. }
            | Change::Unflip { flag }
            | Change::Trip { flag, .. }
            | Change::Drop { flag }
            | Change::Rearm { flag }
            | Change::Advance { flag, .. } => Some(flag),
            Change::Undo { flag } => flag.as_deref(),
            Change::Kill | Change::Revive | Change::CallOff { .. } | Change::CallOn { .. } => None,
        }
    }

    /// Returns the name used in the history.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Change::Flip { .. } => "flip",
            Change::Unflip { .. } => "unflip",
            Change::Trip { .. } => "trip",
            Change::Drop { .. } => DROP,
            Change::Rearm { .. } => "rearm",
            Change::Advance { .. } => "advance",
            Change::Kill => "kill",
            Change::Revive => "revive",
            Change::CallOff { .. } => "call_off",
            Change::CallOn { .. } => "call_on",
            Change::Undo { .. } => UNDO,
        }
    }
}
