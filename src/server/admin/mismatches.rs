//! The last mismatches, as the API tells them.

use http::StatusCode;
use serde::Serialize;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::domain::compare::{Called, Failed, FailedCandidate, Field, Mismatches, Sample};
use crate::domain::percent::{Plus, decode};
use crate::domain::rollout::Glob;
use crate::server::admin::problem::Problem;
use crate::telemetry::clock::Rfc3339;

/// The mismatches of all routes.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct MismatchesView<'m> {
    routes: Vec<RouteView<'m>>,
    /// Mismatches of routes that had no room.
    more: u64,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct RouteView<'m> {
    route: &'m str,
    /// The calls whose candidates failed although the control did not.
    failed: FailedView<'m>,
    /// The fields that differed.
    fields: Vec<FieldView<'m>>,
    /// How often a field differed that had no room.
    more: u64,
}

#[derive(Debug, Default, PartialEq, Eq, Serialize)]
struct FailedView<'m> {
    count: u64,
    /// The last of them, the latest first.
    samples: Vec<FailedSampleView<'m>>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct FailedSampleView<'m> {
    #[serde(flatten)]
    called: CalledView<'m>,
    /// The response that the client got.
    control: String,
    /// The response that it would have got.
    candidate: String,
    reason: Option<&'static str>,
    cause: Option<&'m str>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct CalledView<'m> {
    at: String,
    client: &'m str,
    side: &'static str,
    stage: &'static str,
    call: &'m str,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct FieldView<'m> {
    /// The path that would ignore it.
    field: &'m str,
    /// In how many calls it differed.
    count: u64,
    /// The last of them, the latest first.
    samples: Vec<SampleView<'m>>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct SampleView<'m> {
    #[serde(flatten)]
    called: CalledView<'m>,
    pointer: &'m str,
    kind: &'static str,
    control: &'m str,
    candidate: &'m str,
}

impl<'m> MismatchesView<'m> {
    pub(super) fn of(mismatches: &'m Mismatches, wanted: &Glob) -> MismatchesView<'m> {
        let routes = mismatches.routes().filter(|route| wanted.fits(route));
        MismatchesView {
            routes: routes
                .map(|route| RouteView {
                    route,
                    failed: mismatches.failed(route).map(failed).unwrap_or_default(),
                    fields: mismatches.fields(route).map(field).collect(),
                    more: mismatches.more_of(route),
                })
                .collect(),
            more: mismatches.more(),
        }
    }
}

fn field<'m>((name, field): (&'m str, &'m Field)) -> FieldView<'m> {
    FieldView {
        field: name,
        count: field.count(),
        samples: field.samples().map(sample).collect(),
    }
}

fn failed(failed: &Failed) -> FailedView<'_> {
    FailedView {
        count: failed.count(),
        samples: failed.samples().map(failed_sample).collect(),
    }
}

fn failed_sample(sample: &FailedCandidate) -> FailedSampleView<'_> {
    FailedSampleView {
        called: called(&sample.called),
        control: sample.control.to_string(),
        candidate: sample.candidate.to_string(),
        reason: sample.reason,
        cause: sample.cause(),
    }
}

fn called(called: &Called) -> CalledView<'_> {
    let at: SystemTime = UNIX_EPOCH + Duration::from_millis(called.at_ms);
    CalledView {
        at: Rfc3339(at).to_string(),
        client: &called.client,
        side: called.side.as_str(),
        stage: called.stage.as_str(),
        call: &called.call,
    }
}

fn sample(sample: &Sample) -> SampleView<'_> {
    SampleView {
        called: called(&sample.called),
        pointer: &sample.pointer,
        kind: sample.kind.as_str(),
        control: sample.control.as_str(),
        candidate: sample.candidate.as_str(),
    }
}

/// Reads `route=GLOB` of a query; every route where there is none.
pub(super) fn wanted(query: Option<&str>) -> Result<Glob, Problem> {
    let mut glob = None;
    for part in query.into_iter().flat_map(|query| query.split('&')) {
        if part.is_empty() {
            continue;
        }
        let value = part.strip_prefix("route=").filter(|_| glob.is_none());
        let decoded = value.and_then(|value| decode(value, Plus::Space).ok());
        let wrong = || {
            let detail = "the query has `route=GLOB` once, or nothing";
            Problem::new(StatusCode::BAD_REQUEST, detail)
        };
        glob = Some(decoded.ok_or_else(wrong)?);
    }
    Ok(Glob::new(glob.as_deref().unwrap_or("*")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_names_routes_by_a_glob() {
        for (query, fits, fits_not) in [
            (None, "anything", ""),
            (Some(""), "anything", ""),
            (Some("route=agent.*"), "agent.get", "items.get"),
            (Some("route=a%20b"), "a b", "a"),
        ] {
            let glob = wanted(query).unwrap_or_else(|problem| panic!("{query:?}: {problem:?}"));
            assert!(glob.fits(fits) && (fits_not.is_empty() || !glob.fits(fits_not)));
        }
        for query in ["routes=a", "route=a&route=b", "route=%zz"] {
            assert!(wanted(Some(query)).is_err(), "{query}");
        }
    }
}
