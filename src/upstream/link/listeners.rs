//! Who hears what a server tells to all, where several links at it have their listeners in common.
//!
//! A server may tell the same on each of its links. Law: of the links that are up, one is heard; where it drops the
//! next one is.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::Standing;
use super::ear::Ear;

/// How many may listen to a link that all share.
const LISTENERS: usize = 16 * 1024;

/// One who hears, or is on its way to.
#[derive(Debug, Clone)]
pub(super) struct Listener {
    ear: Ear,
    /// It lives for as long as this one hears, or is on its way.
    hears: Arc<()>,
}

impl Listener {
    pub(super) fn new(ear: Ear) -> Listener {
        let hears = Arc::default();
        Listener { ear, hears }
    }

    /// Whether it still hears, for who keeps this.
    pub(super) fn hears(&self) -> Weak<()> {
        Arc::downgrade(&self.hears)
    }
}

/// What comes of one more who wants to hear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Joined {
    Hears,
    /// There are as many as there may be, and it is the first who finds no room. It may try again.
    First(usize),
    /// The same for those after it.
    Not,
}

/// Those who hear.
#[derive(Debug)]
struct Crowd {
    all: Vec<Listener>,
    most: usize,
    /// Whether somebody found no room since there was some.
    is_full: bool,
}

impl Crowd {
    fn of_at_most(most: usize) -> Crowd {
        Crowd {
            all: Vec::new(),
            most,
            is_full: false,
        }
    }
}

impl Default for Crowd {
    fn default() -> Crowd {
        Crowd::of_at_most(LISTENERS)
    }
}

/// The listeners, and whether it is this link that they hear.
#[derive(Debug, Clone, Default)]
pub(super) struct Listeners {
    crowd: Arc<Mutex<Crowd>>,
    /// Those that are heard before this one.
    before: Vec<Arc<Standing>>,
}

impl Listeners {
    /// The same for a link that is heard while none of these is up, either.
    pub(super) fn behind(&self, before: &[Arc<Standing>]) -> Listeners {
        let all = self.before.iter().chain(before);
        Listeners {
            crowd: self.crowd.clone(),
            before: all.cloned().collect(),
        }
    }

    /// One more hears.
    pub(super) fn join(&self, listener: Listener) -> Joined {
        let mut crowd = self.there();
        if crowd.all.len() < crowd.most {
            crowd.is_full = false;
            crowd.all.push(listener);
            return Joined::Hears;
        }
        match std::mem::replace(&mut crowd.is_full, true) {
            false => Joined::First(crowd.most),
            true => Joined::Not,
        }
    }

    /// Whether another link says the same to them.
    pub(super) fn hear_another(&self) -> bool {
        self.before.iter().any(|before| before.is_up())
    }

    /// What comes of telling each of them.
    pub(super) fn each<T>(&self, mut tell: impl FnMut(&Ear) -> T) -> Vec<T> {
        let crowd = self.there();
        crowd.all.iter().map(|known| tell(&known.ear)).collect()
    }

    /// Those who have not left. All the links are owned on one thread, so that nobody waits here.
    fn there(&self) -> MutexGuard<'_, Crowd> {
        // An entry is whole or not there, so a poisoned lock guards nothing broken.
        let mut crowd = self.crowd.lock().unwrap_or_else(PoisonError::into_inner);
        crowd.all.retain(|known| !known.ear.is_closed());
        crowd
    }
}

#[cfg(test)]
mod tests {
    use std::slice;

    use super::*;
    use crate::domain::pending::Counts;
    use crate::upstream::link::{Account, Levels, hearing};

    #[test]
    fn who_finds_no_room_is_told_so_and_finds_some_when_another_has_left() {
        let listeners = Listeners {
            crowd: Arc::new(Mutex::new(Crowd::of_at_most(1))),
            before: Vec::new(),
        };
        let (ear, leaves) = hearing();
        let (other, _stays) = hearing();
        let first = Listener::new(ear);
        let hears = first.hears();
        assert_eq!(listeners.join(first), Joined::Hears);
        for joined in [Joined::First(1), Joined::Not] {
            let late = Listener::new(other.clone());
            let hears = late.hears();
            assert_eq!(listeners.join(late), joined);
            assert_eq!(hears.strong_count(), 0);
        }
        assert_eq!(hears.strong_count(), 1);
        drop(leaves);
        let late = Listener::new(other.clone());
        let then = late.hears();
        assert_eq!(listeners.join(late), Joined::Hears);
        assert_eq!((hears.strong_count(), then.strong_count()), (0, 1));
        assert_eq!(listeners.join(Listener::new(other)), Joined::First(1));
    }

    #[test]
    fn a_link_behind_others_is_heard_while_none_of_them_is_up() {
        let others = [(); 2].map(|()| Arc::<Standing>::default());
        let [member, elder] = &others;
        let listeners = Listeners::default();
        let heir = listeners
            .behind(slice::from_ref(member))
            .behind(slice::from_ref(elder));
        assert!(!heir.hear_another());
        for other in &others {
            let mut share = Account::new(&**other);
            let up = Levels {
                ready: 1,
                ..Levels::default()
            };
            share.stands(up, Counts::default());
            assert!(heir.hear_another());
            drop(share);
            assert!(!heir.hear_another());
        }
    }
}
