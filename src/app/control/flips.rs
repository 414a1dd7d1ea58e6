//! Changes of flags at run time, and what becomes of them when the flags file changes.

use std::error::Error;
use std::sync::Arc;
use std::time::SystemTime;

use super::Control;
use crate::config::compile::compile;
use crate::server::admin::{FlagView, Flipping, Refusal};
use crate::store::{DropReason, Flip, apply};
use crate::telemetry::clock::Rfc3339;

impl Control {
    /// Flips a flag: when this returns, the flip is stored and [`Control::plan`] has it.
    ///
    /// # Errors
    /// [`Refusal`]; the flag is then what it was.
    pub fn flip(&mut self, flipping: &Flipping, at: SystemTime) -> Result<FlagView, Refusal> {
        let before = self.flag(&flipping.name)?;
        let flip = Flip {
            flag: before.name.clone(),
            text_hash: self.text_hash(&before.name),
            stage: flipping.change.stage,
            percent: flipping.change.percent,
            who: flipping.who.clone(),
            at: Rfc3339(at).to_string(),
        };
        let mut flips = self.other_flips(&before.name);
        flips.push(flip);
        self.change_flips(flips)?;
        let after = self.flag(&flipping.name)?;
        log_change(&before, &after, &flipping.who);
        Ok(after)
    }

    /// Takes a flip back, if there is one: when this returns, the flag is again what the flags file says.
    ///
    /// # Errors
    /// [`Refusal`]; the flag is then what it was.
    pub fn unflip(&mut self, name: &str, who: &str) -> Result<FlagView, Refusal> {
        let before = self.flag(name)?;
        if before.flipped.is_none() {
            return Ok(before);
        }
        self.change_flips(self.other_flips(name))?;
        let after = self.flag(name)?;
        log_change(&before, &after, who);
        Ok(after)
    }

    fn text_hash(&self, name: &str) -> String {
        let mut flags = self.file_flags.iter();
        let flag = flags.find(|flag| flag.name.value == name);
        flag.map(|flag| flag.text_hash.clone()).unwrap_or_default()
    }

    fn other_flips(&self, name: &str) -> Vec<Flip> {
        let others = self.flips.iter().filter(|flip| flip.flag != name);
        others.cloned().collect()
    }

    /// Compiles, stores, and only then swaps.
    fn change_flips(&mut self, flips: Vec<Flip>) -> Result<(), Refusal> {
        let applied = apply(self.file_flags.clone(), flips);
        let plan = compile(&self.config, &applied.flags).map_err(Refusal::Invalid)?;
        self.store.save(&applied.kept).map_err(Refusal::Store)?;
        self.unsaved = None;
        self.flags = applied.flags;
        self.flips = applied.kept;
        self.plan = Arc::new(plan);
        Ok(())
    }

    /// Says which flips no longer hold, and takes them off the disk.
    pub(super) fn forget(&mut self, dropped: &[(Flip, DropReason)]) {
        for (flip, reason) in dropped {
            tracing::warn!(
                flag = flip.flag,
                stage = flip.stage.as_str(),
                percent = %flip.percent,
                who = flip.who,
                at = flip.at,
                "a flip is dropped: {reason}"
            );
        }
        // A folder that could not be written before may be writable again.
        if dropped.is_empty() && self.unsaved.is_none() {
            return;
        }
        self.unsaved = self.store.save(&self.flips).err();
        if let Some(error) = &self.unsaved {
            let cause = error.source().map(ToString::to_string);
            tracing::error!(%error, cause, "dropped flips could not be taken off the disk");
        }
    }
}

fn log_change(before: &FlagView, after: &FlagView, who: &str) {
    let shown = |flag: &FlagView| format!("{} {} %", flag.stage.as_str(), flag.percent);
    tracing::info!(
        flag = after.name,
        who,
        before = shown(before),
        after = shown(after),
        "a flag was flipped"
    );
}
