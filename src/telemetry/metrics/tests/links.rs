//! The links of the sample.

use super::*;
use dualgauge_model::pending::{LinkCounts, LoginCounts, SubscriptionCounts};

pub(super) fn links() -> Vec<LinkState> {
    vec![LinkState {
        upstream: "memory".to_owned(),
        is_idle: false,
        is_up: true,
        ready: 1,
        in_flight: 1,
        queued: 2,
        subscribed: 16,
        counts: LinkCounts {
            opened: 3,
            late: 4,
            foreign: 5,
            skipped: 6,
            declined: 7,
            notified: 8,
            logins: LoginCounts {
                ok: 12,
                refused: 13,
                timeout: 14,
                cut: 15,
            },
            subscriptions: SubscriptionCounts {
                opened: 17,
                closed: 18,
                slow: 19,
                lost: 20,
                unusable: 21,
            },
        },
        notices: Notifications {
            told: 9,
            crowded: 10,
            nobody: 11,
        },
    }]
}
