//! `urls`, `eject`, `breaker`, `retry` and `health` of an HTTP upstream. Used by `decode::upstream`.

use std::time::Duration;

use http::Uri;

use crate::config::key::{Key, List, SubTable, key, list, section, table};
use crate::config::kind::{DURATIONS, PATH, TIMEOUT, URL, other, whole};
use crate::config::problem::Spanned;
use crate::config::raw::{RawAddresses, RawBreaker, RawEject, RawHealth, RawRetry};
use crate::config::table_reader::{Shape, Table};
use crate::config::value::{RawValue, ValueError, timeout};

/// Keys of HTTP upstreams only.
pub(super) const OWN: &[&str] = &["urls", "eject", "breaker", "retry", "health"];

/// The largest number of consecutive failures.
const MOST_FAILURES: i64 = 10_000;
/// With fewer failures, the breaker would open at every restart of the server.
const LEAST_OF_BREAKER: i64 = 3;
/// The interval of idle-connection checks, and the minimum for health checks.
const LEAST_EVERY: Duration = Duration::from_secs(1);

section! {
    /// `eject`
    EJECT {
        /// Consecutive failures after which an address gets no calls
        EJECT_FAILURES: Key<u32> = key("failures", whole(1, MOST_FAILURES)).or("5");
        /// Time without calls
        EJECT_PAUSE: Key<Duration> = key("pause", TIMEOUT).or("30s");
        /// Largest share of ejected addresses, in percent
        MOST_PERCENT: Key<u8> = key("most_percent", whole(0, 100)).or("50");
    }
}

section! {
    /// `breaker`
    BREAKER {
        /// Consecutive failures that open the circuit breaker
        BREAKER_FAILURES: Key<u32> = key("failures", whole(LEAST_OF_BREAKER, MOST_FAILURES)).or("20");
        /// Time that it stays open
        BREAKER_PAUSE: Key<Duration> = key("pause", TIMEOUT).or("5s");
    }
}

section! {
    /// `retry`
    RETRY {
        /// Percent of calls that may be retried
        RETRY_PERCENT: Key<u8> = key("percent", whole(0, 100)).or("20");
        /// Retries that are always allowed in ten seconds
        LEAST: Key<u32> = key("least", whole(0, 10_000)).or("10");
    }
}

section! {
    /// `health`
    HEALTH {
        /// Path of health checks, per address
        HEALTH_PATH: Key<String> = key("path", PATH).required();
        /// Interval of health checks
        EVERY: Key<Duration> = key("every", other("duration, `1s` or more", DURATIONS, every)).or("5s");
        /// Longest time of a health check
        HEALTH_TIMEOUT: Key<Duration> = key("timeout", TIMEOUT).or("2s");
        /// Consecutive failures before an address is down
        DOWN_AFTER: Key<u32> = key("down_after", whole(1, MOST_FAILURES)).or("3");
        /// Consecutive successes before an address is up
        UP_AFTER: Key<u32> = key("up_after", whole(1, MOST_FAILURES)).or("2");
    }
}

section! {
    /// Keys of an HTTP upstream.
    pub(super) ADDRESSES {
        /// Address of the server: `http`, `https`, `ws` or `wss`
        ONE_URL: Key<Uri> = key("url", URL);
        /// Several addresses of one HTTP server, instead of `url`
        URLS: List<Uri> = list("urls", URL);
        /// When one of several addresses gets no calls
        OF_EJECT: SubTable = table("eject", &EJECT);
        /// When the upstream gets no calls
        OF_BREAKER: SubTable = table("breaker", &BREAKER);
        /// Budget of retries
        OF_RETRY: SubTable = table("retry", &RETRY);
        /// Active health checks
        OF_HEALTH: SubTable = table("health", &HEALTH);
    }
}

/// Decodes `url`, or the first of `urls` with the others.
pub(super) fn urls(table: &mut Table<'_>) -> Option<(Spanned<Uri>, Vec<Spanned<Uri>>)> {
    if table.shape(URLS.name) == Shape::Absent {
        return Some((table.require(&ONE_URL)?, Vec::new()));
    }
    if table.shape(ONE_URL.name) != Shape::Absent {
        let both =
            ValueError::new("the upstream has a `url` as well; write it as the first of `urls`");
        table.report(URLS.name, both);
    }
    let mut urls = table.list(&URLS)?.into_iter();
    let Some(first) = urls.next() else {
        table.report(
            URLS.name,
            ValueError::new("the list is empty; write at least one address"),
        );
        return None;
    };
    Some((first, urls.collect()))
}

pub(super) fn addresses(table: &mut Table<'_>, more: Vec<Spanned<Uri>>) -> RawAddresses {
    RawAddresses {
        more,
        eject: table.table(&OF_EJECT, eject),
        breaker: table.table(&OF_BREAKER, breaker),
        retry: table.table(&OF_RETRY, retry),
        health: table.table(&OF_HEALTH, health),
    }
}

fn eject(table: &mut Table<'_>) -> Option<RawEject> {
    let failures = table.get(&EJECT_FAILURES);
    let pause = table.get(&EJECT_PAUSE);
    let most_percent = table.get(&MOST_PERCENT);
    Some(RawEject {
        failures: failures?,
        pause: pause?,
        most_percent: most_percent?,
    })
}

fn breaker(table: &mut Table<'_>) -> Option<RawBreaker> {
    let failures = table.get(&BREAKER_FAILURES);
    let pause = table.get(&BREAKER_PAUSE);
    Some(RawBreaker {
        failures: failures?,
        pause: pause?,
    })
}

fn retry(table: &mut Table<'_>) -> Option<RawRetry> {
    let percent = table.get(&RETRY_PERCENT);
    let least = table.get(&LEAST);
    Some(RawRetry {
        percent: percent?,
        least: least?,
    })
}

fn health(table: &mut Table<'_>) -> Option<RawHealth> {
    let path = table.get(&HEALTH_PATH);
    let every = table.get(&EVERY);
    let limit = table.get(&HEALTH_TIMEOUT);
    let down_after = table.get(&DOWN_AFTER);
    let up_after = table.get(&UP_AFTER);
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
