//! What the flags are with the flips over them.

use std::fmt;
use std::sync::Arc;

use crate::config::problem::Place;
use crate::config::raw::{RawFlag, StageWord};
use crate::domain::rollout::Stage;
use crate::store::Flip;

/// Why a flip no longer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropReason {
    /// The flag was edited in the flags file since.
    Edited,
    /// The flag is no longer in the flags file.
    Gone,
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DropReason::Edited => "the flag was edited in the flags file since",
            DropReason::Gone => "the flag is no longer in the flags file",
        })
    }
}

/// The flags with the flips over them.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied {
    /// The flags in their order, with stage and percentage of their flips.
    pub flags: Vec<RawFlag>,
    /// The flips that hold.
    pub kept: Vec<Flip>,
    /// The flips that do not, and why.
    pub dropped: Vec<(Flip, DropReason)>,
}

/// Lays flips over the flags of the file.
#[must_use]
pub fn apply(flags: Vec<RawFlag>, flips: Vec<Flip>) -> Applied {
    let mut applied = Applied {
        flags,
        kept: Vec::new(),
        dropped: Vec::new(),
    };
    for flip in flips {
        let mut flags = applied.flags.iter_mut();
        match flags.find(|flag| flag.name.value == flip.flag) {
            None => applied.dropped.push((flip, DropReason::Gone)),
            Some(flag) if flag.text_hash != flip.text_hash => {
                applied.dropped.push((flip, DropReason::Edited));
            }
            Some(flag) => {
                lay_over(flag, &flip);
                applied.kept.push(flip);
            }
        }
    }
    applied
}

/// Problems with what a flip says are its own, not those of the file.
fn lay_over(flag: &mut RawFlag, flip: &Flip) {
    let place = Place::Flip(Arc::from(flip.flag.as_str()));
    flag.stage.value = word(flip.stage);
    flag.stage.place = place.clone();
    flag.percent.value = flip.percent.thousandths();
    flag.percent.place = place;
}

const fn word(stage: Stage) -> StageWord {
    match stage {
        Stage::Passthrough => StageWord::Passthrough,
        Stage::Translate => StageWord::Translate,
        Stage::Retired => StageWord::Retired,
    }
}
