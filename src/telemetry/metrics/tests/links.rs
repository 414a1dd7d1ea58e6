//! The links of the sample.

use super::*;
use dualgauge_model::pending::{LinkCounts, LoginCounts};

pub(super) fn links() -> Vec<LinkState> {
    vec![LinkState {
        upstream: "memory".to_owned(),
        is_idle: false,
        is_up: true,
        ready: 1,
        in_flight: 1,
        queued: 2,
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
        },
        notices: Notifications {
            told: 9,
            crowded: 10,
            nobody: 11,
        },
    }]
}
