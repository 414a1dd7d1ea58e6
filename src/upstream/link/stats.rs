//! Statistics of the links of an upstream, read from other threads.
//!
//! Used by `app`, `gateway`, `legacy_socket` and `link`.

use std::future::pending;
use std::iter::successors;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use tokio::sync::watch;

use crate::telemetry::metrics::{LinkState, Notifications};
use dualgauge_model::pending::{LinkCounts, LinkMachine, LoginCounts, SubscriptionCounts};

/// The sum over all links that an upstream has and had; each link task adds its own figures.
#[derive(Debug, Default)]
pub struct LinkStats {
    links: AtomicI64,
    ready: AtomicI64,
    in_flight: AtomicI64,
    queued: AtomicI64,
    subscribed: AtomicI64,
    opened: AtomicU64,
    late: AtomicU64,
    foreign: AtomicU64,
    skipped: AtomicU64,
    declined: AtomicU64,
    notified: AtomicU64,
    logins: LoginTotals,
    subscriptions: SubscriptionTotals,
    delivered: AtomicU64,
    queue_full: AtomicU64,
    no_subscriber: AtomicU64,
    /// The statistics that include these.
    parent: Option<Arc<LinkStats>>,
    kind: LinkKind,
    /// True if the most recent attempt to open a link failed.
    refused: AtomicBool,
    /// True if a link was opened, and none was lost since.
    holds: AtomicBool,
    /// The last loss of a link.
    loss: watch::Sender<Option<LinkLoss>>,
}

/// The loss of a link, or a link that could not be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkLoss {
    /// The reason.
    pub cause: String,
    /// The end of the standard error of a child, by lines.
    pub output: Vec<String>,
}

/// The results of logins.
#[derive(Debug, Default)]
struct LoginTotals {
    ok: AtomicU64,
    refused: AtomicU64,
    timeout: AtomicU64,
    cut: AtomicU64,
}

/// The results of subscriptions with ids of the server.
#[derive(Debug, Default)]
struct SubscriptionTotals {
    opened: AtomicU64,
    closed: AtomicU64,
    slow: AtomicU64,
    lost: AtomicU64,
    unusable: AtomicU64,
}

/// The kind of connection that is counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum LinkKind {
    /// Links that carry the calls of an upstream: if none is ready, the upstream is down.
    #[default]
    Links,
    /// Legacy sockets, which come and go with their clients: having none says nothing about the upstream.
    Frames,
}

impl LinkStats {
    /// Creates statistics that also count towards `parent`.
    pub(super) fn with_parent(parent: &Arc<LinkStats>) -> LinkStats {
        LinkStats {
            parent: Some(parent.clone()),
            ..LinkStats::default()
        }
    }

    /// Creates statistics for legacy sockets, which come and go with clients.
    #[must_use]
    pub fn for_legacy_sockets() -> LinkStats {
        LinkStats {
            kind: LinkKind::Frames,
            ..LinkStats::default()
        }
    }

    /// Records that a link could not be opened.
    pub fn record_refused(&self) {
        self.refused.store(true, Ordering::Relaxed);
        self.holds.store(false, Ordering::Relaxed);
    }

    /// Records the loss of a link.
    pub(super) fn record_loss(&self, loss: &LinkLoss) {
        for stats in self.each() {
            stats.loss.send_replace(Some(loss.clone()));
        }
    }

    /// Waits until a link was lost or could not be opened, now or before; returns the last loss. Cancel-safe.
    pub async fn lost(&self) -> LinkLoss {
        let mut losses = self.loss.subscribe();
        let loss = losses.wait_for(Option::is_some).await;
        match loss.ok().and_then(|loss| loss.clone()) {
            Some(loss) => loss,
            // The sender lives as long as these statistics.
            None => pending().await,
        }
    }

    /// Returns how many of the opened links count. Of legacy sockets, only the first counts and each that follows a
    /// lost or failed one; the others are no restarts.
    fn counted(&self, opened: u64, before: u64) -> u64 {
        let is_first = opened > 0 && before == 0;
        if self.kind == LinkKind::Frames && is_first && self.holds.swap(true, Ordering::Relaxed) {
            return opened - 1;
        }
        opened
    }

    /// Iterates over these statistics and all that include them.
    fn each(&self) -> impl Iterator<Item = &LinkStats> {
        successors(Some(self), |stats| stats.parent.as_deref())
    }

    /// Returns true if one of the links takes calls.
    pub(super) fn is_up(&self) -> bool {
        self.ready.load(Ordering::Relaxed) > 0
    }

    /// Counts the delivery of a notification.
    pub fn on_delivery(&self, delivery: Delivery) {
        for stats in self.each() {
            let count = match delivery {
                Delivery::Delivered => &stats.delivered,
                Delivery::QueueFull | Delivery::TooManySubscribers => &stats.queue_full,
                Delivery::NoSubscriber => &stats.no_subscriber,
            };
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns true if no link exists, open or not. Always false for legacy sockets, whose last end is known.
    #[must_use]
    pub fn has_no_links(&self) -> bool {
        self.kind == LinkKind::Links && self.links.load(Ordering::Relaxed) == 0
    }

    /// Returns the current state.
    #[must_use]
    pub fn state(&self, upstream: &str) -> LinkState {
        let level = |level: &AtomicI64| u64::try_from(level.load(Ordering::Relaxed)).unwrap_or(0);
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let is_missed = self.kind == LinkKind::Links || self.refused.load(Ordering::Relaxed);
        LinkState {
            upstream: upstream.to_owned(),
            is_idle: false,
            is_up: self.is_up() || !is_missed,
            ready: level(&self.ready),
            in_flight: level(&self.in_flight),
            queued: level(&self.queued),
            subscribed: level(&self.subscribed),
            counts: LinkCounts {
                opened: count(&self.opened),
                late: count(&self.late),
                foreign: count(&self.foreign),
                skipped: count(&self.skipped),
                declined: count(&self.declined),
                notified: count(&self.notified),
                logins: LoginCounts {
                    ok: count(&self.logins.ok),
                    refused: count(&self.logins.refused),
                    timeout: count(&self.logins.timeout),
                    cut: count(&self.logins.cut),
                },
                subscriptions: SubscriptionCounts {
                    opened: count(&self.subscriptions.opened),
                    closed: count(&self.subscriptions.closed),
                    slow: count(&self.subscriptions.slow),
                    lost: count(&self.subscriptions.lost),
                    unusable: count(&self.subscriptions.unusable),
                },
            },
            notices: Notifications {
                told: count(&self.delivered),
                crowded: count(&self.queue_full),
                nobody: count(&self.no_subscriber),
            },
        }
    }
}

/// The outcome of a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// A client gets it.
    Delivered,
    /// Dropped, because the client's queue is full.
    QueueFull,
    /// Dropped, because the client could not subscribe: the link has too many subscribers.
    TooManySubscribers,
    /// Dropped, because there was no client to send it to.
    NoSubscriber,
}

/// The gauges of one link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkGauges {
    /// 1 while the link takes calls.
    pub ready: usize,
    /// The number of requests that were written and not answered.
    pub in_flight: usize,
    /// The number of queued requests.
    pub queued: usize,
    /// The number of open subscriptions with ids of the server.
    pub subscribed: usize,
}

impl LinkGauges {
    fn all(self) -> [i64; 4] {
        let all = [self.ready, self.in_flight, self.queued, self.subscribed];
        all.map(|level| i64::try_from(level).unwrap_or(i64::MAX))
    }
}

/// The figures that one link task has reported; dropping the handle takes its gauges back.
#[derive(Debug)]
pub struct StatsHandle<S: Deref<Target = LinkStats>> {
    stats: S,
    gauges: LinkGauges,
    counts: LinkCounts,
}

impl<S: Deref<Target = LinkStats>> StatsHandle<S> {
    /// Registers a link with all gauges at zero.
    pub fn new(stats: S) -> StatsHandle<S> {
        for stats in stats.each() {
            stats.links.fetch_add(1, Ordering::Relaxed);
        }
        StatsHandle {
            stats,
            gauges: LinkGauges::default(),
            counts: LinkCounts::default(),
        }
    }

    /// Returns the statistics that this handle reports to.
    pub fn stats(&self) -> &LinkStats {
        &self.stats
    }

    pub(super) fn report(&mut self, pending: &LinkMachine) {
        let gauges = LinkGauges {
            ready: usize::from(pending.is_ready()),
            in_flight: pending.in_flight(),
            queued: pending.queued(),
            subscribed: pending.open_id_subscriptions(),
        };
        self.set_gauges(gauges, pending.counts());
    }

    /// Reports the current gauges and the counts so far.
    pub fn set_gauges(&mut self, gauges: LinkGauges, now: LinkCounts) {
        if gauges.ready > self.gauges.ready {
            let each = self.stats.each();
            each.for_each(|stats| stats.refused.store(false, Ordering::Relaxed));
        }
        if gauges.ready < self.gauges.ready {
            let each = self.stats.each();
            each.for_each(|stats| stats.holds.store(false, Ordering::Relaxed));
        }
        self.update_gauges(gauges);
        if now == self.counts {
            return;
        }
        for stats in self.stats.each() {
            let add = |total: &AtomicU64, count: fn(&LinkCounts) -> u64| {
                let more = count(&now) - count(&self.counts);
                if more > 0 {
                    total.fetch_add(more, Ordering::Relaxed);
                }
            };
            let opened = now.opened - self.counts.opened;
            let counted = stats.counted(opened, self.counts.opened);
            stats.opened.fetch_add(counted, Ordering::Relaxed);
            add(&stats.late, |counts| counts.late);
            add(&stats.foreign, |counts| counts.foreign);
            add(&stats.skipped, |counts| counts.skipped);
            add(&stats.declined, |counts| counts.declined);
            add(&stats.notified, |counts| counts.notified);
            add(&stats.logins.ok, |counts| counts.logins.ok);
            add(&stats.logins.refused, |counts| counts.logins.refused);
            add(&stats.logins.timeout, |counts| counts.logins.timeout);
            add(&stats.logins.cut, |counts| counts.logins.cut);
            let totals = &stats.subscriptions;
            add(&totals.opened, |counts| counts.subscriptions.opened);
            add(&totals.closed, |counts| counts.subscriptions.closed);
            add(&totals.slow, |counts| counts.subscriptions.slow);
            add(&totals.lost, |counts| counts.subscriptions.lost);
            add(&totals.unusable, |counts| counts.subscriptions.unusable);
        }
        self.counts = now;
    }

    /// Resets the gauges after a regular end, which is not a loss.
    pub fn end(&mut self) {
        self.update_gauges(LinkGauges::default());
    }

    fn update_gauges(&mut self, now: LinkGauges) {
        if now == self.gauges {
            return;
        }
        for stats in self.stats.each() {
            let LinkStats {
                ready,
                in_flight,
                queued,
                subscribed,
                ..
            } = stats;
            let gauges = [ready, in_flight, queued, subscribed].into_iter();
            for (level, (now, before)) in gauges.zip(now.all().into_iter().zip(self.gauges.all())) {
                if now != before {
                    level.fetch_add(now - before, Ordering::Relaxed);
                }
            }
        }
        self.gauges = now;
    }
}

impl<S: Deref<Target = LinkStats>> Drop for StatsHandle<S> {
    fn drop(&mut self) {
        for stats in self.stats.each() {
            stats.links.fetch_sub(1, Ordering::Relaxed);
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
        subscribed: 4,
    };

    fn opened(opened: u64) -> LinkCounts {
        LinkCounts {
            opened,
            ..LinkCounts::default()
        }
    }

    #[test]
    fn the_whole_includes_the_figures_of_its_parts() {
        let parent = Arc::<LinkStats>::default();
        let parts = [(); 2].map(|()| LinkStats::with_parent(&parent));
        let mut shares = parts.each_ref().map(StatsHandle::new);
        for share in &mut shares {
            share.set_gauges(UP, opened(1));
        }
        parts[0].on_delivery(Delivery::Delivered);
        let state = parent.state("u");
        assert_eq!((state.ready, state.in_flight, state.queued), (2, 4, 6));
        assert_eq!((state.counts.opened, state.notices.told), (2, 1));
        shares[0].end();
        assert!(!parts[0].is_up() && parts[1].is_up() && parent.state("u").is_up);
        drop(shares);
        let state = parent.state("u");
        assert_eq!((state.ready, state.in_flight, state.queued), (0, 0, 0));
        assert!(!state.is_up);
    }

    #[tokio::test]
    async fn the_loss_of_a_part_is_one_of_the_whole() {
        let parent = Arc::<LinkStats>::default();
        let part = LinkStats::with_parent(&parent);
        let loss = |cause: &str| LinkLoss {
            cause: cause.to_owned(),
            output: vec!["a line".to_owned()],
        };
        part.record_loss(&loss("first"));
        part.record_loss(&loss("second"));
        assert_eq!(parent.lost().await, loss("second"));
    }

    #[test]
    fn legacy_sockets_that_come_and_go_are_no_restarts() {
        let stats = LinkStats::for_legacy_sockets();
        let starts = || (stats.state("u").counts.opened, stats.state("u").is_up);
        assert_eq!(starts(), (0, true));
        let mut first = StatsHandle::new(&stats);
        first.set_gauges(UP, opened(1));
        let mut second = StatsHandle::new(&stats);
        second.set_gauges(UP, opened(1));
        drop(second);
        assert_eq!(starts(), (1, true));
        // This one is lost, and the next is a restart.
        first.set_gauges(LinkGauges::default(), opened(1));
        drop(first);
        let mut next = StatsHandle::new(&stats);
        next.set_gauges(LinkGauges::default(), opened(1));
        assert_eq!(starts(), (2, true));
        stats.record_refused();
        assert_eq!(starts(), (2, false));
        drop(next);
        let mut last = StatsHandle::new(&stats);
        last.set_gauges(LinkGauges::default(), opened(1));
        assert_eq!(starts(), (3, false));
        last.set_gauges(UP, opened(1));
        assert_eq!(starts(), (3, true));
    }
}
