//! The addresses of an HTTP upstream: instances of one server that differ only in their location.
//!
//! Used by `compile::upstreams`.

use http::Uri;

use super::authority::{authority, usual_port};
use crate::config::problem::{Problem, Spanned};
use crate::config::raw::RawAddresses;
use dualgauge_model::plan::with_port;
use dualgauge_transport::load_balancing::{
    AddressPlan, BreakerPlan, CheckPlan, EjectionPlan, RetryBudgetPlan,
};

/// Returns the addresses after the first, as `host:port`.
pub(super) fn more(
    raw: &RawAddresses,
    first: &Spanned<Uri>,
    problems: &mut Vec<Problem>,
) -> Vec<String> {
    let mut known = vec![authority(&first.value)];
    for url in &raw.more {
        let (own, wanted) = (&url.value, &first.value);
        if own.scheme_str() != wanted.scheme_str() || own.path() != wanted.path() {
            let message = format!(
                "`{own}` and `{wanted}` differ in more than host and port; all addresses of an upstream are instances of one server"
            );
            problems.push(
                url.problem(message)
                    .hint("define a separate upstream for it"),
            );
        }
        let authority = authority(own);
        if known.contains(&authority) {
            problems.push(url.problem(format!("`{authority}` is listed twice; remove it")));
        }
        known.push(authority);
    }
    let usual = usual_port(&first.value);
    let more = known.iter().skip(1);
    more.map(|authority| with_port(authority, usual)).collect()
}

/// Compiles the load-balancing configuration.
pub(super) fn watch(raw: &RawAddresses) -> AddressPlan {
    let usual = AddressPlan::default();
    let eject = raw.eject.as_ref().map(|eject| EjectionPlan {
        failures: eject.failures.value,
        pause: eject.pause.value,
        most_percent: eject.most_percent.value,
    });
    let retry = raw.retry.as_ref().map(|retry| RetryBudgetPlan {
        percent: retry.percent.value,
        least: retry.least.value,
    });
    AddressPlan {
        ejection: eject.unwrap_or(usual.ejection),
        budget: retry.unwrap_or(usual.budget),
        breaker: raw.breaker.as_ref().map(|breaker| BreakerPlan {
            failures: breaker.failures.value,
            pause: breaker.pause.value,
        }),
        check: raw.health.as_ref().map(|health| CheckPlan {
            path: health.path.value.clone(),
            every: health.every.value,
            timeout: health.timeout.value,
            down_after: health.down_after.value,
            up_after: health.up_after.value,
        }),
    }
}
