//! `urls`, `eject`, `breaker`, `retry` and `health` of an HTTP upstream. Used by `decode::upstream`.

use std::ops::RangeInclusive;
use std::time::Duration;

use http::Uri;

use crate::config::problem::Spanned;
use crate::config::raw::{RawAddresses, RawBreaker, RawEject, RawHealth, RawRetry};
use crate::config::table_reader::{Shape, Table};
use crate::config::value::{RawValue, ValueError, path, timeout, url, whole};
use dualgauge_model::load_balancing::AddressPlan;

/// Keys of HTTP upstreams only.
pub(super) const OWN: &[&str] = &["urls", "eject", "breaker", "retry", "health"];

/// Allowed numbers of consecutive failures.
const FAILURES: RangeInclusive<u32> = 1..=10_000;
/// With fewer failures, the breaker would open at every restart of the server.
const OF_BREAKER: RangeInclusive<u32> = 3..=10_000;
/// The interval of idle-connection checks, and the minimum for health checks.
const LEAST_EVERY: Duration = Duration::from_secs(1);

/// Decodes `url`, or the first of `urls` with the others.
pub(super) fn urls(table: &mut Table<'_>) -> Option<(Spanned<Uri>, Vec<Spanned<Uri>>)> {
    if table.shape("urls") == Shape::Absent {
        return Some((table.require("url", url)?, Vec::new()));
    }
    if table.shape("url") != Shape::Absent {
        let both =
            ValueError::new("the upstream has a `url` as well; write it as the first of `urls`");
        table.report("urls", both);
    }
    let mut urls = table.list("urls", url)?.into_iter();
    let Some(first) = urls.next() else {
        table.report(
            "urls",
            ValueError::new("the list is empty; write at least one address"),
        );
        return None;
    };
    Some((first, urls.collect()))
}

pub(super) fn addresses(table: &mut Table<'_>, more: Vec<Spanned<Uri>>) -> RawAddresses {
    RawAddresses {
        more,
        eject: table.table("eject", eject),
        breaker: table.table("breaker", breaker),
        retry: table.table("retry", retry),
        health: table.table("health", health),
    }
}

fn eject(table: &mut Table<'_>) -> Option<RawEject> {
    let usual = AddressPlan::default().ejection;
    let failures = table.get_or("failures", whole(FAILURES), usual.failures);
    let pause = table.get_or("pause", timeout, usual.pause);
    let most_percent = table.get_or("most_percent", whole(0..=100), usual.most_percent);
    Some(RawEject {
        failures: failures?,
        pause: pause?,
        most_percent: most_percent?,
    })
}

fn breaker(table: &mut Table<'_>) -> Option<RawBreaker> {
    let failures = table.get_or("failures", whole(OF_BREAKER), 20);
    let pause = table.get_or("pause", timeout, Duration::from_secs(5));
    Some(RawBreaker {
        failures: failures?,
        pause: pause?,
    })
}

fn retry(table: &mut Table<'_>) -> Option<RawRetry> {
    let usual = AddressPlan::default().budget;
    let percent = table.get_or("percent", whole(0..=100), usual.percent);
    let least = table.get_or("least", whole(0..=10_000), usual.least);
    Some(RawRetry {
        percent: percent?,
        least: least?,
    })
}

fn health(table: &mut Table<'_>) -> Option<RawHealth> {
    let path = table.require("path", path);
    let every = table.get_or("every", every, Duration::from_secs(5));
    let limit = table.get_or("timeout", timeout, Duration::from_secs(2));
    let down_after = table.get_or("down_after", whole(FAILURES), 3);
    let up_after = table.get_or("up_after", whole(FAILURES), 2);
    Some(RawHealth {
        path: path?,
        every: every?,
        timeout: limit?,
        down_after: down_after?,
        up_after: up_after?,
    })
}

fn every(found: RawValue<'_>) -> Result<Duration, ValueError> {
    let every = timeout(found)?;
    if every < LEAST_EVERY {
        return Err(ValueError::new("the shortest interval is `1s`"));
    }
    Ok(every)
}
