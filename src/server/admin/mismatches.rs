//! The API's view of the last mismatches. Used by `admin::query` and `admin::response`.

use serde::Serialize;

use crate::telemetry::clock::rfc3339_ms;
use dualgauge_model::compare::{
    CallInfo, Failed, FailedCandidate, Field, MismatchSample, Mismatches, ReplyPairs, Tally,
};
use dualgauge_model::rollout::Glob;

/// A filter of mismatches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    /// The routes.
    pub(super) routes: Glob,
    /// The earliest time, in milliseconds since 1970; `None` for all.
    pub(super) since_ms: Option<u64>,
}

impl Wanted {
    fn has(&self, at_ms: u64) -> bool {
        self.since_ms.is_none_or(|since_ms| at_ms >= since_ms)
    }

    fn has_any(&self, tally: Tally) -> bool {
        tally.count > 0 && self.has(tally.last_ms)
    }
}

/// The routes whose mismatches were deleted.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct ForgottenView {
    pub(super) routes: Vec<String>,
}

/// The mismatches of all routes.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct MismatchesView<'m> {
    /// The earliest time included.
    since: Option<String>,
    routes: Vec<RouteView<'m>>,
    /// The number of mismatches on routes beyond the limit.
    more: u64,
    /// The differences that were forgotten, because their route changed or on request.
    forgotten: Vec<ForgottenDifferenceView<'m>>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct ForgottenDifferenceView<'m> {
    route: &'m str,
    /// The path of the field; `null` for failed candidates.
    field: Option<&'m str>,
    /// The number of calls in which it occurred.
    count: u64,
    /// The time of the last one.
    last: String,
    /// The time when it was last forgotten.
    forgotten: String,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct RouteView<'m> {
    route: &'m str,
    /// The calls whose candidate failed although the control did not.
    failed: FailedView<'m>,
    /// The fields that differed.
    fields: Vec<FieldView<'m>>,
    /// Responses that differ, with redacted values, by their endings.
    replies: Option<&'m ReplyPairs>,
    /// The number of mismatches in fields beyond the limit.
    more: u64,
}

#[derive(Debug, Default, PartialEq, Eq, Serialize)]
struct FailedView<'m> {
    count: u64,
    /// The time of the last one.
    last: Option<String>,
    /// The last ones, newest first.
    samples: Vec<FailedSampleView<'m>>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct FailedSampleView<'m> {
    #[serde(flatten)]
    called: CallView<'m>,
    /// The response that the client got.
    control: String,
    /// The response that the candidate would have given.
    candidate: String,
    reason: Option<&'static str>,
    cause: Option<&'m str>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct CallView<'m> {
    at: String,
    client: &'m str,
    side: &'static str,
    stage: &'static str,
    call: &'m str,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct FieldView<'m> {
    /// The path under which `ignore` would skip the field.
    field: &'m str,
    /// The number of calls in which it differed, including those before `since`.
    count: u64,
    /// The time of the last one.
    last: String,
    /// The last ones, newest first.
    samples: Vec<SampleView<'m>>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct SampleView<'m> {
    #[serde(flatten)]
    called: CallView<'m>,
    pointer: &'m str,
    kind: &'static str,
    control: &'m str,
    candidate: &'m str,
}

impl<'m> MismatchesView<'m> {
    pub(super) fn new(mismatches: &'m Mismatches, wanted: &Wanted) -> MismatchesView<'m> {
        let count = |tally: Tally| match wanted.has_any(tally) {
            true => tally.count,
            false => 0,
        };
        let routes = mismatches
            .routes()
            .filter(|route| wanted.routes.fits(route))
            .map(|route| RouteView {
                route,
                failed: failed(mismatches.failed(route), wanted),
                fields: mismatches
                    .fields(route)
                    .filter(|(_, field)| wanted.has_any(field.tally()))
                    .map(|(name, found)| field(name, found, wanted))
                    .collect(),
                replies: mismatches.replies(route),
                more: count(mismatches.more_of(route)),
            });
        MismatchesView {
            since: wanted.since_ms.map(rfc3339_ms),
            routes: routes.filter(RouteView::has_any).collect(),
            more: count(mismatches.more()),
            forgotten: mismatches
                .forgotten()
                .filter(|(route, _, found)| wanted.routes.fits(route) && wanted.has(found.at_ms))
                .map(|(route, field, found)| ForgottenDifferenceView {
                    route,
                    field,
                    count: found.tally.count,
                    last: rfc3339_ms(found.tally.last_ms),
                    forgotten: rfc3339_ms(found.at_ms),
                })
                .collect(),
        }
    }
}

impl RouteView<'_> {
    fn has_any(&self) -> bool {
        self.failed.count > 0 || !self.fields.is_empty() || self.more > 0
    }
}

fn field<'m>(name: &'m str, field: &'m Field, wanted: &Wanted) -> FieldView<'m> {
    let samples = field.samples();
    let samples = samples.filter(|sample| wanted.has(sample.called.at_ms));
    FieldView {
        field: name,
        count: field.tally().count,
        last: rfc3339_ms(field.tally().last_ms),
        samples: samples.map(sample).collect(),
    }
}

fn failed<'m>(failed: Option<&'m Failed>, wanted: &Wanted) -> FailedView<'m> {
    let Some(failed) = failed.filter(|failed| wanted.has_any(failed.tally())) else {
        return FailedView::default();
    };
    let samples = failed.samples();
    let samples = samples.filter(|sample| wanted.has(sample.called.at_ms));
    FailedView {
        count: failed.tally().count,
        last: Some(rfc3339_ms(failed.tally().last_ms)),
        samples: samples.map(failed_sample).collect(),
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

fn called(called: &CallInfo) -> CallView<'_> {
    CallView {
        at: rfc3339_ms(called.at_ms),
        client: &called.client,
        side: called.side.as_str(),
        stage: called.stage.as_str(),
        call: &called.call,
    }
}

fn sample(sample: &MismatchSample) -> SampleView<'_> {
    SampleView {
        called: called(&sample.called),
        pointer: &sample.pointer,
        kind: sample.kind.as_str(),
        control: sample.control.as_str(),
        candidate: sample.candidate.as_str(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use dualgauge_model::compare::{Difference, Kind, RedactedValue, RunEnding};
    use dualgauge_model::rollout::Stage;
    use dualgauge_patterns::side::Side;

    fn at(at_ms: u64) -> CallInfo {
        CallInfo {
            at_ms,
            client: Arc::from("ios-app"),
            side: Side::Rest,
            stage: Stage::Shadow,
            call: Arc::from("GET /items/{id}"),
        }
    }

    fn view(mismatches: &Mismatches, since_ms: Option<u64>) -> Value {
        let routes = Glob::new("*");
        json!(MismatchesView::new(
            mismatches,
            &Wanted { routes, since_ms }
        ))
    }

    #[test]
    fn only_mismatches_since_a_time_are_shown() {
        let mut mismatches = Mismatches::default();
        let (items, agent): (Arc<str>, Arc<str>) = (Arc::from("items"), Arc::from("agent"));
        for (field, at_ms) in [("/body/a", 1000), ("/body/a", 3000), ("/body/b", 1000)] {
            let difference = Difference {
                pointer: field.to_owned(),
                field: field.to_owned(),
                kind: Kind::Value,
                control: RedactedValue::restore("1"),
                candidate: RedactedValue::restore("2"),
                times: 1,
            };
            mismatches.keep(&items, &at(at_ms), [&difference]);
        }
        let (control, candidate) = (RunEnding::Status(200), RunEnding::Status(500));
        let failed = FailedCandidate::new(at(2000), control, candidate, None, None);
        mismatches.keep_failed(&agent, failed);

        let all = view(&mismatches, None);
        assert_eq!(all["since"], Value::Null);
        assert_eq!(all["routes"].as_array().unwrap().len(), 2);
        assert_eq!(
            all["routes"][0]["failed"]["last"],
            "1970-01-01T00:00:02.000Z"
        );
        assert_eq!(all["routes"][1]["fields"].as_array().unwrap().len(), 2);

        let later = view(&mismatches, Some(2001));
        assert_eq!(later["since"], "1970-01-01T00:00:02.001Z");
        assert_eq!(later["routes"].as_array().unwrap().len(), 1);
        let fields = later["routes"][0]["fields"].as_array().unwrap();
        assert_eq!(fields.len(), 1);
        assert_eq!(
            (&fields[0]["field"], &fields[0]["count"]),
            (&json!("/body/a"), &json!(2))
        );
        assert_eq!(fields[0]["samples"].as_array().unwrap().len(), 1);
        assert_eq!(view(&mismatches, Some(3001))["routes"], json!([]));

        mismatches.forget(|route| route == "agent", 4000);
        let forgotten = json!([{
            "route": "agent", "field": null, "count": 1,
            "last": "1970-01-01T00:00:02.000Z", "forgotten": "1970-01-01T00:00:04.000Z",
        }]);
        assert_eq!(view(&mismatches, Some(4000))["forgotten"], forgotten);
        assert_eq!(view(&mismatches, Some(4001))["forgotten"], json!([]));
    }
}
