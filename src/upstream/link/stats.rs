//! How the links of an upstream stand, for those who look from elsewhere.

use std::iter::successors;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use crate::domain::pending::{LinkCounts, LinkMachine};
use crate::telemetry::metrics::{LinkState, Notifications, StoreNeed};

/// The sum of all links that an upstream has and had; each owner adds its own.
#[derive(Debug, Default)]
pub struct LinkStats {
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
    /// What this is a part of, and is counted with.
    whole: Option<Arc<LinkStats>>,
    kind: LinkKind,
    /// Whether the last one that was opened could not be had.
    refused: AtomicBool,
    /// Whether one was opened before, and none was lost since.
    holds: AtomicBool,
}

/// What is counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum LinkKind {
    /// Links that carry the calls of an upstream: where none is ready, none can be made.
    #[default]
    Links,
    /// Sockets of frames, each of which comes and goes with a client: that there is none says nothing.
    Frames,
}

impl LinkStats {
    /// That of some of the links.
    pub(super) fn part_of(whole: &Arc<LinkStats>) -> LinkStats {
        LinkStats {
            whole: Some(whole.clone()),
            ..LinkStats::default()
        }
    }

    /// That of sockets of frames, which come and go with clients.
    #[must_use]
    pub fn of_frames() -> LinkStats {
        LinkStats {
            kind: LinkKind::Frames,
            ..LinkStats::default()
        }
    }

    /// A link could not be had.
    pub fn refuses(&self) {
        self.refused.store(true, Ordering::Relaxed);
        self.holds.store(false, Ordering::Relaxed);
    }

    /// How many of the links that were opened count: of those that come and go with clients the first, and each that
    /// follows one that was lost or could not be had, since others are no restarts.
    fn counted(&self, opened: u64, before: u64) -> u64 {
        let is_first = opened > 0 && before == 0;
        if self.kind == LinkKind::Frames && is_first && self.holds.swap(true, Ordering::Relaxed) {
            return opened - 1;
        }
        opened
    }

    /// This, and all that it is a part of.
    fn each(&self) -> impl Iterator<Item = &LinkStats> {
        successors(Some(self), |standing| standing.whole.as_deref())
    }

    /// Whether one of the links takes calls.
    pub(super) fn is_up(&self) -> bool {
        self.ready.load(Ordering::Relaxed) > 0
    }

    /// Something that a server has told came to this.
    pub fn on_delivery(&self, fate: Delivery) {
        for standing in self.each() {
            let count = match fate {
                Delivery::Delivered => &standing.told,
                Delivery::QueueFull => &standing.crowded,
                Delivery::NoSubscriber => &standing.nobody,
            };
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether there is no link, open or not; of sockets of frames, how the last one ended is known.
    #[must_use]
    pub fn no_links(&self) -> bool {
        self.kind == LinkKind::Links && self.links.load(Ordering::Relaxed) == 0
    }

    /// How it stands now.
    #[must_use]
    pub fn state(&self, upstream: &str) -> LinkState {
        let level = |level: &AtomicI64| u64::try_from(level.load(Ordering::Relaxed)).unwrap_or(0);
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let is_missed = self.kind == LinkKind::Links || self.refused.load(Ordering::Relaxed);
        LinkState {
            upstream: upstream.to_owned(),
            need: StoreNeed::Open,
            is_up: self.is_up() || !is_missed,
            ready: level(&self.ready),
            in_flight: level(&self.in_flight),
            queued: level(&self.queued),
            counts: LinkCounts {
                opened: count(&self.opened),
                late: count(&self.late),
                foreign: count(&self.foreign),
                skipped: count(&self.skipped),
                declined: count(&self.declined),
                notified: count(&self.notified),
            },
            notices: Notifications {
                told: count(&self.told),
                crowded: count(&self.crowded),
                nobody: count(&self.nobody),
            },
        }
    }
}

/// What becomes of something that a server tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// A client gets it.
    Delivered,
    /// A client has so much to take already that it misses this.
    QueueFull,
    /// It is for nobody who could be told.
    NoSubscriber,
}

/// How a link stands at a moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkGauges {
    /// 1 while it takes calls.
    pub ready: usize,
    /// How many questions are written and not answered.
    pub in_flight: usize,
    /// How many wait for their turn.
    pub queued: usize,
}

impl LinkGauges {
    fn all(self) -> [i64; 3] {
        let all = [self.ready, self.in_flight, self.queued];
        all.map(|level| i64::try_from(level).unwrap_or(i64::MAX))
    }
}

/// What one owner has told; dropped, it takes its levels back.
#[derive(Debug)]
pub struct StatsHandle<S: Deref<Target = LinkStats>> {
    standing: S,
    levels: LinkGauges,
    counts: LinkCounts,
}

impl<S: Deref<Target = LinkStats>> StatsHandle<S> {
    /// Nothing is told yet.
    pub fn new(standing: S) -> StatsHandle<S> {
        for standing in standing.each() {
            standing.links.fetch_add(1, Ordering::Relaxed);
        }
        StatsHandle {
            standing,
            levels: LinkGauges::default(),
            counts: LinkCounts::default(),
        }
    }

    /// What it is told to.
    pub fn standing(&self) -> &LinkStats {
        &self.standing
    }

    pub(super) fn report(&mut self, pending: &LinkMachine) {
        let levels = LinkGauges {
            ready: usize::from(pending.is_ready()),
            in_flight: pending.in_flight(),
            queued: pending.queued(),
        };
        self.set_gauges(levels, pending.counts());
    }

    /// How it stands now, and what has happened so far.
    pub fn set_gauges(&mut self, levels: LinkGauges, now: LinkCounts) {
        if levels.ready > self.levels.ready {
            let each = self.standing.each();
            each.for_each(|standing| standing.refused.store(false, Ordering::Relaxed));
        }
        if levels.ready < self.levels.ready {
            let each = self.standing.each();
            each.for_each(|standing| standing.holds.store(false, Ordering::Relaxed));
        }
        self.levels(levels);
        if now == self.counts {
            return;
        }
        for standing in self.standing.each() {
            let add = |total: &AtomicU64, count: fn(&LinkCounts) -> u64| {
                let more = count(&now) - count(&self.counts);
                if more > 0 {
                    total.fetch_add(more, Ordering::Relaxed);
                }
            };
            let opened = now.opened - self.counts.opened;
            let counted = standing.counted(opened, self.counts.opened);
            standing.opened.fetch_add(counted, Ordering::Relaxed);
            add(&standing.late, |counts| counts.late);
            add(&standing.foreign, |counts| counts.foreign);
            add(&standing.skipped, |counts| counts.skipped);
            add(&standing.declined, |counts| counts.declined);
            add(&standing.notified, |counts| counts.notified);
        }
        self.counts = now;
    }

    /// It has ended, and was not lost.
    pub fn end(&mut self) {
        self.levels(LinkGauges::default());
    }

    fn levels(&mut self, now: LinkGauges) {
        if now == self.levels {
            return;
        }
        for standing in self.standing.each() {
            let LinkStats {
                ready,
                in_flight,
                queued,
                ..
            } = standing;
            let levels = [ready, in_flight, queued].into_iter();
            for (level, (now, before)) in levels.zip(now.all().into_iter().zip(self.levels.all())) {
                if now != before {
                    level.fetch_add(now - before, Ordering::Relaxed);
                }
            }
        }
        self.levels = now;
    }
}

impl<S: Deref<Target = LinkStats>> Drop for StatsHandle<S> {
    fn drop(&mut self) {
        for standing in self.standing.each() {
            standing.links.fetch_sub(1, Ordering::Relaxed);
        }
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UP: LinkGauges = LinkGauges {
        ready: 1,
        in_flight: 2,
        queued: 3,
    };

    fn opened(opened: u64) -> LinkCounts {
        LinkCounts {
            opened,
            ..LinkCounts::default()
        }
    }

    #[test]
    fn what_a_part_tells_is_told_of_the_whole() {
        let whole = Arc::<LinkStats>::default();
        let parts = [(); 2].map(|()| LinkStats::part_of(&whole));
        let mut shares = parts.each_ref().map(StatsHandle::new);
        for share in &mut shares {
            share.set_gauges(UP, opened(1));
        }
        parts[0].on_delivery(Delivery::Delivered);
        let state = whole.state("u");
        assert_eq!((state.ready, state.in_flight, state.queued), (2, 4, 6));
        assert_eq!((state.counts.opened, state.notices.told), (2, 1));
        shares[0].end();
        assert!(!parts[0].is_up() && parts[1].is_up() && whole.state("u").is_up);
        drop(shares);
        let state = whole.state("u");
        assert_eq!((state.ready, state.in_flight, state.queued), (0, 0, 0));
        assert!(!state.is_up);
    }

    #[test]
    fn links_of_frames_that_come_and_go_are_no_restarts() {
        let standing = LinkStats::of_frames();
        let starts = || (standing.state("u").counts.opened, standing.state("u").is_up);
        assert_eq!(starts(), (0, true));
        let mut first = StatsHandle::new(&standing);
        first.set_gauges(UP, opened(1));
        let mut second = StatsHandle::new(&standing);
        second.set_gauges(UP, opened(1));
        drop(second);
        assert_eq!(starts(), (1, true));
        // This one is lost, and the next is a restart.
        first.set_gauges(LinkGauges::default(), opened(1));
        drop(first);
        let mut next = StatsHandle::new(&standing);
        next.set_gauges(LinkGauges::default(), opened(1));
        assert_eq!(starts(), (2, true));
        standing.refuses();
        assert_eq!(starts(), (2, false));
        drop(next);
        let mut last = StatsHandle::new(&standing);
        last.set_gauges(LinkGauges::default(), opened(1));
        assert_eq!(starts(), (3, false));
        last.set_gauges(UP, opened(1));
        assert_eq!(starts(), (3, true));
    }
}
