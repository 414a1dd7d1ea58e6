//! How the links of an upstream stand, for those who look from elsewhere.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use crate::domain::pending::{Counts, Pending};
use crate::telemetry::metrics::{LinkState, Need, Notices};

/// The sum of all links that an upstream has and had; each owner adds its own.
#[derive(Debug, Default)]
pub struct Standing {
    links: AtomicI64,
    ready: AtomicI64,
    in_flight: AtomicI64,
    queued: AtomicI64,
    opened: AtomicU64,
    late: AtomicU64,
    foreign: AtomicU64,
    skipped: AtomicU64,
    declined: AtomicU64,
    notified: AtomicU64,
    told: AtomicU64,
    crowded: AtomicU64,
    nobody: AtomicU64,
}

impl Standing {
    /// Something that a server has told came to this.
    pub(super) fn came_to(&self, fate: Fate) {
        let count = match fate {
            Fate::Told => &self.told,
            Fate::Crowded => &self.crowded,
            Fate::Nobody => &self.nobody,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether there is any link, open or not.
    #[must_use]
    pub fn has_links(&self) -> bool {
        self.links.load(Ordering::Relaxed) > 0
    }

    /// How it stands now.
    #[must_use]
    pub fn state(&self, upstream: &str) -> LinkState {
        let level = |level: &AtomicI64| u64::try_from(level.load(Ordering::Relaxed)).unwrap_or(0);
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        LinkState {
            upstream: upstream.to_owned(),
            need: Need::Open,
            ready: level(&self.ready),
            in_flight: level(&self.in_flight),
            queued: level(&self.queued),
            counts: Counts {
                opened: count(&self.opened),
                late: count(&self.late),
                foreign: count(&self.foreign),
                skipped: count(&self.skipped),
                declined: count(&self.declined),
                notified: count(&self.notified),
            },
            notices: Notices {
                told: count(&self.told),
                crowded: count(&self.crowded),
                nobody: count(&self.nobody),
            },
        }
    }
}

/// What becomes of something that a server tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// A client gets it.
    Told,
    /// A client has so much to take already that it misses this.
    Crowded,
    /// It is for nobody who could be told.
    Nobody,
}

/// What one owner has told; dropped, it takes its levels back.
#[derive(Debug)]
pub(super) struct Share<'a> {
    standing: &'a Standing,
    levels: [i64; 3],
    counts: Counts,
}

impl<'a> Share<'a> {
    pub(super) fn new(standing: &'a Standing) -> Share<'a> {
        standing.links.fetch_add(1, Ordering::Relaxed);
        Share {
            standing,
            levels: [0; 3],
            counts: Counts::default(),
        }
    }

    pub(super) fn tell(&mut self, pending: &Pending) {
        let whole = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.levels([
            i64::from(pending.is_ready()),
            whole(pending.in_flight()),
            whole(pending.queued()),
        ]);
        let now = pending.counts();
        let add = |total: &AtomicU64, count: fn(&Counts) -> u64| {
            let more = count(&now) - count(&self.counts);
            if more > 0 {
                total.fetch_add(more, Ordering::Relaxed);
            }
        };
        add(&self.standing.opened, |counts| counts.opened);
        add(&self.standing.late, |counts| counts.late);
        add(&self.standing.foreign, |counts| counts.foreign);
        add(&self.standing.skipped, |counts| counts.skipped);
        add(&self.standing.declined, |counts| counts.declined);
        add(&self.standing.notified, |counts| counts.notified);
        self.counts = now;
    }

    fn levels(&mut self, now: [i64; 3]) {
        let Standing {
            ready,
            in_flight,
            queued,
            ..
        } = self.standing;
        for (level, (now, before)) in [ready, in_flight, queued]
            .into_iter()
            .zip(now.into_iter().zip(self.levels))
        {
            if now != before {
                level.fetch_add(now - before, Ordering::Relaxed);
            }
        }
        self.levels = now;
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        self.standing.links.fetch_sub(1, Ordering::Relaxed);
        self.levels([0; 3]);
    }
}
