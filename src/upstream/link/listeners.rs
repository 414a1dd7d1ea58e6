//! Who hears what a server tells to all, where several links at it have their listeners in common.
//!
//! A server may tell the same on each of its links. Law: of the links that are up, one is heard; where it drops the
//! next one is.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Standing;
use super::ear::Ear;

/// How many may listen to a link that all share.
const LISTENERS: usize = 16 * 1024;

/// The listeners, and whether it is this link that they hear.
#[derive(Debug, Clone, Default)]
pub(super) struct Listeners {
    all: Arc<Mutex<Vec<Ear>>>,
    /// Those that are heard before this one.
    before: Vec<Arc<Standing>>,
}

impl Listeners {
    /// The same for a link that is heard while none of these is up.
    pub(super) fn behind(&self, before: &[Arc<Standing>]) -> Listeners {
        Listeners {
            all: self.all.clone(),
            before: before.to_vec(),
        }
    }

    /// One more hears.
    pub(super) fn join(&self, listener: Ear) {
        let mut all = self.there();
        if all.len() < LISTENERS {
            all.push(listener);
        }
    }

    /// Whether another link says the same to them.
    pub(super) fn hear_another(&self) -> bool {
        self.before.iter().any(|before| before.is_up())
    }

    /// What comes of telling each of them.
    pub(super) fn each<T>(&self, tell: impl FnMut(&Ear) -> T) -> Vec<T> {
        self.there().iter().map(tell).collect()
    }

    /// Those who have not left. All the links are owned on one thread, so that nobody waits here.
    fn there(&self) -> MutexGuard<'_, Vec<Ear>> {
        // An entry is whole or not there, so a poisoned lock guards nothing broken.
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|known| !known.is_closed());
        all
    }
}
