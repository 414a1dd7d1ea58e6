//! Decoding of query strings. Used by `admin::response`.

use std::collections::BTreeMap;
use std::time::SystemTime;

use http::StatusCode;

use super::mismatches::Wanted;
use super::page::{LIMIT, ListOrder, ListQuery, MAX_LIMIT};
use super::problem::AdminProblem;
use crate::telemetry::clock::millis;
use dualgauge_model::flag_preview::FlagValues;
use dualgauge_model::lifecycle::{DEFAULT_IDLE, parse_idle};
use dualgauge_model::rollout::{Glob, Percent, Stage};
use dualgauge_model::time::Timestamp;
use dualgauge_patterns::percent::{Plus, decode};

/// Reads `route=GLOB&idle=30d`; both are optional.
pub(super) fn usage(query: Option<&str>) -> Result<(Glob, u64), AdminProblem> {
    let mut given = parameters(query, &["route", "idle"])?;
    let idle = given.remove("idle").map(|idle| {
        let detail =
            "`idle` is not a duration; write one such as `30d`, `12h` or `90m`, ten years at most";
        parse_idle(&idle).ok_or_else(|| wrong(detail.to_owned()))
    });
    Ok((route(&mut given), idle.transpose()?.unwrap_or(DEFAULT_IDLE)))
}

/// Reads `route=GLOB&since=TIME`; the time may be a duration before `now`.
pub(super) fn mismatches(query: Option<&str>, now: SystemTime) -> Result<Wanted, AdminProblem> {
    let mut given = parameters(query, &["route", "since"])?;
    let since_ms = given.remove("since").map(|since| {
        let detail = "`since` is not a time; write a duration before now such as `30m`, `12h` or `2d`, or a time such as \
                      `2026-06-30T12:00:00Z`";
        since_ms(&since, now).ok_or_else(|| wrong(detail.to_owned()))
    });
    Ok(Wanted {
        routes: route(&mut given),
        since_ms: since_ms.transpose()?,
    })
}

/// Reads `search=TEXT&offset=N&limit=N&sort=calls`; all are optional.
pub(super) fn list(query: Option<&str>) -> Result<ListQuery, AdminProblem> {
    let mut given = parameters(query, &["search", "offset", "limit", "sort"])?;
    let order = match given.remove("sort").as_deref() {
        None | Some("name") => ListOrder::Configured,
        Some("calls") => ListOrder::Calls,
        Some(_) => return Err(wrong("`sort` is `name` or `calls`".to_owned())),
    };
    Ok(ListQuery {
        order,
        ..page(&mut given)?
    })
}

/// Reads `search=TEXT&offset=N&limit=N`; `None` if all are absent, since then all flags are returned.
pub(super) fn flags(query: Option<&str>) -> Result<Option<ListQuery>, AdminProblem> {
    let mut given = parameters(query, &["search", "offset", "limit"])?;
    (!given.is_empty()).then(|| page(&mut given)).transpose()
}

/// Reads `route=GLOB&search=TEXT&offset=N&limit=N`; all are optional.
pub(super) fn differences(query: Option<&str>) -> Result<(Glob, ListQuery), AdminProblem> {
    let mut given = parameters(query, &["route", "search", "offset", "limit"])?;
    Ok((route(&mut given), page(&mut given)?))
}

/// Reads `stage=STAGE&percent=N`, both required.
pub(super) fn preview(query: Option<&str>) -> Result<FlagValues, AdminProblem> {
    let mut given = parameters(query, &["stage", "percent"])?;
    let stage = given.remove("stage");
    let stage = stage
        .and_then(|stage| Stage::parse(&stage))
        .ok_or_else(|| {
            let stages = Stage::ALL.map(Stage::as_str).join("`, `");
            wrong(format!("`stage` is one of `{stages}`"))
        })?;
    let percent = given.remove("percent");
    let percent = percent.and_then(|percent| Percent::parse(&percent));
    let percent = percent.ok_or_else(|| {
        wrong("`percent` is a number from 0 to 100 with at most three decimals".to_owned())
    })?;
    Ok(FlagValues { stage, percent })
}

fn page(given: &mut BTreeMap<&str, String>) -> Result<ListQuery, AdminProblem> {
    let offset = given.remove("offset").map(|text| {
        let detail = "`offset` is a whole number";
        text.parse().map_err(|_| wrong(detail.to_owned()))
    });
    let limit = given.remove("limit").map(|text| {
        let limit = text.parse().ok();
        let limit = limit.filter(|limit| (1..=MAX_LIMIT).contains(limit));
        limit.ok_or_else(|| wrong(format!("`limit` is a whole number from 1 to {MAX_LIMIT}")))
    });
    Ok(ListQuery {
        search: given.remove("search").unwrap_or_default().to_lowercase(),
        offset: offset.transpose()?.unwrap_or(0),
        limit: limit.transpose()?.unwrap_or(LIMIT),
        order: ListOrder::default(),
    })
}

/// Reads `route=GLOB`: the routes whose mismatches are deleted.
pub(super) fn routes_to_delete(query: Option<&str>) -> Result<Glob, AdminProblem> {
    Ok(route(&mut parameters(query, &["route"])?))
}

fn since_ms(text: &str, now: SystemTime) -> Option<u64> {
    if let Some(seconds) = parse_idle(text) {
        return Some(millis(now).saturating_sub(seconds * 1000));
    }
    let moment = Timestamp::parse(text).ok()?.unix();
    u64::try_from(moment).ok()?.checked_mul(1000)
}

fn route(given: &mut BTreeMap<&str, String>) -> Glob {
    Glob::new(given.remove("route").unwrap_or_else(|| "*".to_owned()))
}

/// Reads the parameters of a query; fails on an unknown or repeated name.
fn parameters<'q>(
    query: Option<&'q str>,
    known: &[&str],
) -> Result<BTreeMap<&'q str, String>, AdminProblem> {
    let mut given = BTreeMap::new();
    let pairs = query.unwrap_or_default().split('&');
    for pair in pairs.filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if !known.contains(&name) {
            let known = known.join("`, `");
            return Err(wrong(format!("unknown parameter; known: `{known}`")));
        }
        let value = decode(value, Plus::Space).map_err(|error| wrong(error.to_string()))?;
        if given.insert(name, value.into()).is_some() {
            return Err(wrong(format!("`{name}` is given twice")));
        }
    }
    Ok(given)
}

fn wrong(detail: String) -> AdminProblem {
    AdminProblem::new(StatusCode::BAD_REQUEST, detail)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn usage_is_requested_by_route_and_time() {
        let read = |query: &str| {
            let (route, idle) = usage(Some(query)).ok()?;
            Some((route.as_str().to_owned(), idle))
        };
        let given = |route: &str, idle| Some((route.to_owned(), idle));
        assert_eq!(read(""), given("*", DEFAULT_IDLE));
        assert_eq!(read("idle=12h"), given("*", 43_200));
        assert_eq!(read("route=agent.%2A&idle=1s"), given("agent.*", 1));
        for wrong in [
            "idle=",
            "idle=0d",
            "idle=30",
            "idle=4000d",
            "idle=1d&idle=1d",
            "since=1",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn mismatches_are_asked_for_by_route_and_by_time() {
        let now = UNIX_EPOCH + Duration::from_secs(1_000_000);
        let read = |query| {
            let wanted = mismatches(query, now).ok()?;
            Some((wanted.routes.as_str().to_owned(), wanted.since_ms))
        };
        for (query, route, since_ms) in [
            (None, "*", None),
            (Some(""), "*", None),
            (Some("route=agent.*"), "agent.*", None),
            (Some("since=1h&route=a%20b"), "a b", Some(996_400_000)),
            (Some("since=30d"), "*", Some(0)),
            (Some("since=1970-01-02"), "*", Some(86_400_000)),
            (
                Some("since=1970-01-02T02:00:00%2B02:00"),
                "*",
                Some(86_400_000),
            ),
        ] {
            assert_eq!(read(query), Some((route.to_owned(), since_ms)), "{query:?}");
        }
        for query in [
            "routes=a",
            "route=a&route=b",
            "route=%zz",
            "since=",
            "since=1",
            "since=yesterday",
            "since=1h&since=1h",
            "since=1970-01-02T02:00:00",
        ] {
            assert_eq!(read(Some(query)), None, "{query}");
        }
    }

    #[test]
    fn a_page_is_asked_for_by_text_place_and_order() {
        let read = |query| list(Some(query)).ok();
        assert_eq!(read(""), Some(ListQuery::default()));
        let expected = ListQuery {
            search: "a b".to_owned(),
            offset: 20,
            limit: 100,
            order: ListOrder::Calls,
        };
        assert_eq!(
            read("search=A%20b&offset=20&limit=100&sort=calls"),
            Some(expected)
        );
        for wrong in [
            "limit=0",
            "limit=101",
            "limit=x",
            "offset=-1",
            "sort=x",
            "page=1",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        assert_eq!(flags(None).ok(), Some(None));
        assert!(flags(Some("offset=0")).is_ok_and(|page| page.is_some()));
        let values = |query| preview(Some(query)).ok();
        let expected = FlagValues {
            stage: Stage::Verify,
            percent: Percent::ALL,
        };
        assert_eq!(values("stage=verify&percent=100"), Some(expected));
        for wrong in [
            "",
            "stage=verify",
            "percent=5",
            "stage=x&percent=5",
            "stage=verify&percent=101",
        ] {
            assert_eq!(values(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn mismatches_are_deleted_by_route_alone() {
        let read = |query| Some(routes_to_delete(query).ok()?.as_str().to_owned());
        assert_eq!(read(None).as_deref(), Some("*"));
        assert_eq!(read(Some("route=items.get")).as_deref(), Some("items.get"));
        assert_eq!(read(Some("since=1h")), None);
    }
}
