//! A seeded simulation of callers and a server, with answers that name their call by id and answers that only share a
//! subject with it.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

/// The number of simulations.
const WORLDS: u64 = 2000;
/// The number of steps of each.
const STEPS: usize = 200;

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }
}

/// The form in which the answers of a server name their calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Naming {
    Id,
    Order,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Call {
    id: u64,
    subject: u64,
    /// `None` for a call that waits as long as the connection lasts.
    deadline: Option<Duration>,
}

impl PendingCall for Call {
    fn ends(&self) -> Option<Duration> {
        self.deadline
    }
}

struct World {
    seed: u64,
    dice: Dice,
    naming: Naming,
    limit: usize,
    now: Duration,
    correlator: Correlator<u64, Call>,
    ids: AssignedIds,
    /// The calls that must wait, by key.
    waiting: BTreeMap<u64, Call>,
    over: Vec<Call>,
    assigned: BTreeSet<u64>,
    next: u64,
    ends: u64,
}

impl World {
    fn new(seed: u64) -> World {
        let mut dice = Dice(seed);
        let naming = [Naming::Id, Naming::Order][usize::try_from(seed % 2).unwrap()];
        let limit = 1 + usize::try_from(dice.below(8)).unwrap();
        World {
            seed,
            dice,
            naming,
            limit,
            now: Duration::ZERO,
            correlator: Correlator::new(limit),
            ids: AssignedIds::from(1),
            waiting: BTreeMap::new(),
            over: Vec::new(),
            assigned: BTreeSet::new(),
            next: 0,
            ends: 0,
        }
    }

    fn begin(&mut self) {
        let has_capacity = self.correlator.has_capacity();
        assert_eq!(
            has_capacity,
            self.waiting.len() < self.limit,
            "seed {}",
            self.seed
        );
        if !has_capacity {
            return;
        }
        // A client uses some ids of its own.
        let own = self.next % 3;
        let id = self.ids.assign_unused(|id| id % 3 == own);
        assert!(
            id % 3 != own && self.assigned.insert(id),
            "seed {}: {id} twice",
            self.seed
        );
        let wait = Duration::from_millis(1 + self.dice.below(2000));
        let call = Call {
            id,
            subject: self.dice.below(3),
            deadline: (self.dice.below(4) > 0).then_some(self.now + wait),
        };
        self.next += 1;
        self.correlator.begin(self.next, call);
        self.waiting.insert(self.next, call);
    }

    /// The server answers a call that waits, or one that is over.
    fn answer(&mut self) {
        let all: Vec<Call> = self.waiting.values().chain(&self.over).copied().collect();
        if all.is_empty() {
            return;
        }
        let of = all[usize::try_from(self.dice.below(all.len() as u64)).unwrap()];
        let naming = self.naming;
        let names = |call: &Call| match naming {
            Naming::Id => call.id == of.id,
            Naming::Order => call.subject == of.subject,
        };
        let oldest = self.waiting.iter().find(|(_, call)| names(call));
        let oldest = oldest.map(|(key, call)| (*key, *call));
        let ended = self
            .correlator
            .end_first(|call| names(call).then_some(of.id));
        let ended = ended.map(|(key, call, id)| {
            assert_eq!(id, of.id, "seed {}", self.seed);
            (key, call)
        });
        assert_eq!(ended, oldest, "seed {}: {of:?}", self.seed);
        self.settle(ended);
    }

    fn cancel(&mut self) {
        let key = 1 + self.dice.below(self.next + 1);
        let ended = self.correlator.end(key);
        assert_eq!(ended, self.waiting.get(&key).copied(), "seed {}", self.seed);
        self.settle(ended.map(|call| (key, call)));
    }

    fn advance(&mut self) {
        self.now += Duration::from_millis(self.dice.below(600));
        let due = self
            .correlator
            .alarm()
            .is_some_and(|alarm| alarm <= self.now);
        let ended = self.correlator.end_expired(self.now);
        assert_eq!(
            due,
            !ended.is_empty(),
            "seed {}: a useless alarm",
            self.seed
        );
        let in_order = ended.is_sorted_by_key(|(key, _)| *key);
        let are_over = ended
            .iter()
            .all(|(_, call)| call.deadline <= Some(self.now));
        assert!(in_order && are_over, "seed {}: {ended:?}", self.seed);
        self.settle(ended);
    }

    fn lose(&mut self) {
        let ended: Vec<(u64, Call)> = self.correlator.end_all().collect();
        assert!(
            ended.is_sorted_by_key(|(key, _)| *key),
            "seed {}",
            self.seed
        );
        self.settle(ended);
        assert!(
            self.correlator.is_empty() && self.waiting.is_empty(),
            "seed {}",
            self.seed
        );
    }

    fn settle(&mut self, ended: impl IntoIterator<Item = (u64, Call)>) {
        for (key, call) in ended {
            let waited = self.waiting.remove(&key);
            assert_eq!(waited, Some(call), "seed {}: {key} ends twice", self.seed);
            self.over.push(call);
            self.ends += 1;
        }
    }

    fn check(&self) {
        let calls: BTreeMap<u64, Call> = self
            .correlator
            .calls()
            .map(|(key, call)| (key, *call))
            .collect();
        assert_eq!(calls, self.waiting, "seed {}", self.seed);
        let over = self
            .waiting
            .values()
            .any(|call| call.deadline.is_some_and(|at| at <= self.now));
        assert!(!over, "seed {}: a call waits past its deadline", self.seed);
        let only = self
            .waiting
            .keys()
            .next()
            .filter(|_| self.waiting.len() == 1);
        assert_eq!(self.correlator.only().as_ref(), only, "seed {}", self.seed);
        assert!(
            self.assigned.iter().all(|id| self.ids.contains(*id)),
            "seed {}",
            self.seed
        );
    }

    fn run(mut self) -> u64 {
        for _ in 0..STEPS {
            match self.dice.below(16) {
                0..=5 => self.begin(),
                6..=9 => self.answer(),
                10 | 11 => self.cancel(),
                12 if self.dice.below(8) == 0 => self.lose(),
                _ => self.advance(),
            }
            self.check();
        }
        self.lose();
        self.ends
    }
}

#[test]
fn each_call_ends_once_and_the_oldest_gets_the_answer() {
    let ends: u64 = (0..WORLDS).map(|seed| World::new(seed).run()).sum();
    assert!(ends > 20 * WORLDS, "only {ends} calls ended");
}
