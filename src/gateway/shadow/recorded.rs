//! The run of a call from a recording: sent, and compared with the recorded response or with a live control.
//!
//! It sends, compares, repeats and judges with the functions of a candidate ([`super::run`]), so that its verdict is that
//! of a live shadow call. It reports to its caller in place of metrics and guards. A recorded control cannot be repeated:
//! there the candidate is, and noise is learned by field and kind.
//!
//! Used by `replay`.

use std::time::Duration;

use bytes::Bytes;

use super::comparison::{Compared, NotCompared, ResponsePair};
use super::recorded_response::{RecordedResponse, RecordedStream, ResponseOrigin, stream_format};
use super::replay::ReplayableCall;
use super::run::CandidateInfo;
use crate::gateway::access_record::{AccessRecord, FailureCause};
use crate::gateway::recorded_call::{
    Control, ControlOrigin, HeaderExtent, NotRun, RecordedControl, ReplayReport, UnsafeCalls,
};
use crate::telemetry::clock;
use dualgauge_model::compare::{
    ComparedResponse, Comparison, Kind, RepeatOutcome, Run, STREAM_EVENTS, Skip, Verdict, compare,
};
use dualgauge_model::rollout::Way;
use dualgauge_model::route::Effect;
use dualgauge_model::shadow_limits;
use dualgauge_net::BodyCopy;

/// A call that is ready to be sent, and its record, of which nothing is reported.
pub(in crate::gateway) struct RecordedRun<'a> {
    pub(in crate::gateway) record: &'a AccessRecord,
    pub(in crate::gateway) call: &'a dyn ReplayableCall,
}

/// The control's response.
struct TimedControl {
    response: RecordedResponse,
    /// False if only the status is known.
    has_body: bool,
    extent: HeaderExtent,
    /// JSON pointers of hidden values in the body.
    redacted: Vec<String>,
    time: Option<Duration>,
}

/// The response to a call that was sent.
struct SentCall {
    response: RecordedResponse,
    time: Duration,
    why: FailureCause,
    /// The memory of the response.
    _budget: BodyCopy,
}

/// The purpose of a call that is sent.
#[derive(Clone, Copy)]
enum Purpose {
    Control,
    Candidate,
}

impl RecordedRun<'_> {
    /// Sends the call, compares the responses, and returns the verdict. Cancel-safe: a dropped run closes its
    /// connections.
    ///
    /// # Errors
    /// [`NotRun`] if the call may not be sent, or if there is nothing to compare.
    pub(in crate::gateway) async fn run(
        &self,
        control: Control,
        unsafe_calls: UnsafeCalls,
    ) -> Result<ReplayReport, NotRun> {
        let info = CandidateInfo::new(&self.record.context).ok_or(NotRun::Unrouted)?;
        may_send(&info, unsafe_calls)?;
        self.call.check_complete()?;
        match control {
            Control::RecordedForNew(control) | Control::RecordedForOld(control) => {
                let control = self.recorded(*control)?;
                let repeats = match info.route().effect {
                    Effect::Safe => Repeats::Candidate,
                    Effect::Idempotent | Effect::Unsafe => Repeats::No,
                };
                self.compare_with(&info, control, repeats).await
            }
            Control::Live => {
                let sent = self
                    .send(&info, Way::Old, Purpose::Control, STREAM_EVENTS)
                    .await?;
                let control = TimedControl {
                    response: sent.response,
                    has_body: true,
                    extent: HeaderExtent::All,
                    redacted: Vec::new(),
                    time: Some(sent.time),
                };
                // A repeat of an unsafe call would have its effect once more.
                let repeats = match info.route().effect {
                    Effect::Safe => Repeats::Control,
                    Effect::Idempotent | Effect::Unsafe => Repeats::No,
                };
                self.compare_with(&info, control, repeats).await
            }
        }
    }

    /// Returns a recorded response as shadow records one.
    fn recorded(&self, control: RecordedControl) -> Result<TimedControl, NotRun> {
        let is_cut = control.status.is_server_error();
        let source = match control.origin {
            ControlOrigin::Server => ResponseOrigin::Server,
            ControlOrigin::Proxy if is_cut => ResponseOrigin::Failure,
            ControlOrigin::Proxy => ResponseOrigin::Refusal,
        };
        let format = stream_format(&control.headers, &self.record.context)?;
        let response = RecordedResponse {
            status: control.status,
            headers: control.headers,
            body: self
                .call
                .extract_own_part(control.body.clone().unwrap_or_default()),
            source,
            stream: format.map(|format| RecordedStream {
                format,
                bound: None,
            }),
        };
        Ok(TimedControl {
            response,
            has_body: control.body.is_some(),
            extent: control.extent,
            redacted: control.redacted,
            time: control.time,
        })
    }

    async fn send(
        &self,
        info: &CandidateInfo,
        way: Way,
        purpose: Purpose,
        most_events: usize,
    ) -> Result<SentCall, NotRun> {
        let mut record = self.record.for_second_run();
        let budget = info.runner().new_copy();
        match purpose {
            Purpose::Control => record.start_as_noise(budget.clone()),
            Purpose::Candidate => record.start_as_candidate(budget.clone()),
        }
        let began = clock::now();
        let response = info
            .run_candidate(&mut record, self.call, way, most_events)
            .await;
        let time = clock::now() - began;
        let Some(response) = response else {
            record.abandon();
            return Err(Skip::Drain.into());
        };
        Ok(SentCall {
            response: response?,
            time,
            why: record.failure_cause(),
            _budget: budget,
        })
    }

    async fn compare_with(
        &self,
        info: &CandidateInfo,
        control: TimedControl,
        repeats: Repeats,
    ) -> Result<ReplayReport, NotRun> {
        let way = info.candidate_way().ok_or(NotRun::Unrouted)?;
        let budget = info.runner().new_copy();
        if !budget.charge(control.response.size()) {
            return Err(Skip::Large.into());
        }
        let most_events = info.events_to_read(&control.response);
        let mut sent = self
            .send(info, way, Purpose::Candidate, most_events)
            .await?;
        // A response that is cheap to clone: its body is shared.
        let first = sent.response.clone();
        if control.extent == HeaderExtent::Allowed {
            keep_known_headers(&control.response, &mut sent.response);
        }
        let TimedControl {
            response,
            has_body,
            redacted,
            time,
            ..
        } = control;
        let mut report = new_report(!has_body, time, sent.time);
        let mut compared = match has_body {
            false => compare_statuses(info, &response, sent.response, &budget),
            true => {
                let pair = ResponsePair {
                    control: response,
                    candidate: sent.response,
                };
                info.compare(pair, &budget).await
            }
        };
        if !redacted.is_empty() {
            drop_replies(&mut compared);
        }
        let Compared {
            control, mut found, ..
        } = match compared {
            Ok(compared) => compared,
            Err(not_compared) => return uncompared(info, report, not_compared, &sent.why),
        };
        found
            .differences
            .retain(|difference| !is_hidden(difference.kind, &difference.pointer, &redacted));
        match repeats {
            Repeats::Control => {
                let repeat = self.repeat_control(info, control, &found).await;
                judge(info, &mut report, found, None, repeat);
            }
            Repeats::Candidate => {
                let keyed = by_kind(&found);
                let repeat = self.repeat_candidate(info, way, first, &keyed).await;
                judge(info, &mut report, found, Some(&keyed), repeat);
            }
            Repeats::No => judge(info, &mut report, found, None, RepeatOutcome::NotRepeated),
        }
        Ok(report)
    }

    /// Repeats the control, if a live shadow call would.
    async fn repeat_control(
        &self,
        info: &CandidateInfo,
        control: RecordedResponse,
        found: &Comparison,
    ) -> RepeatOutcome {
        if !info.runner().wants_repeat(&info.route_name(), found) {
            return RepeatOutcome::NotRepeated;
        }
        let noise = self.record.for_second_run();
        info.repeat_control(noise, self.call, control, found).await
    }

    /// Repeats the candidate as often as a live shadow call repeats its control, and learns in which fields, and in which
    /// way, two of its responses differ.
    async fn repeat_candidate(
        &self,
        info: &CandidateInfo,
        way: Way,
        first: RecordedResponse,
        keyed: &Comparison,
    ) -> RepeatOutcome {
        let route = info.route_name();
        if !info.runner().wants_repeat(&route, keyed) {
            return RepeatOutcome::NotRepeated;
        }
        let noise = self.record.for_second_run();
        let second = info.compare_repeat(noise, self.call, way, first).await;
        let Some(second) = second else {
            return RepeatOutcome::NotRepeated;
        };
        info.runner().learn(&route, keyed, &by_kind(&second));
        RepeatOutcome::Repeated
    }
}

/// Returns the report of a comparison that has not been made.
fn new_report(is_by_status: bool, control: Option<Duration>, candidate: Duration) -> ReplayReport {
    ReplayReport {
        verdict: Verdict::Match,
        differences: Vec::new(),
        more: 0,
        noisy: 0,
        is_by_status,
        endings: None,
        cause: None,
        replies: None,
        control_time: control,
        candidate_time: candidate,
    }
}

/// The repetitions that measure noise: as often as live shadow calls need them.
#[derive(Clone, Copy)]
enum Repeats {
    /// Those of the control.
    Control,
    /// Those of the candidate, if the control is a recorded response.
    Candidate,
    /// None.
    No,
}

/// Returns a comparison whose fields include the kind of the difference, as keys of learned noise: a candidate whose
/// values change by themselves may still have the wrong type. A value that is sometimes absent may be so in either
/// response.
fn by_kind(found: &Comparison) -> Comparison {
    let mut keyed = found.clone();
    for difference in &mut keyed.differences {
        let kind = match difference.kind {
            Kind::Missing | Kind::Extra => Kind::Missing,
            kind @ (Kind::Type
            | Kind::Value
            | Kind::Length
            | Kind::Order
            | Kind::Status
            | Kind::Header
            | Kind::Code) => kind,
        };
        difference.field = format!("{} {}", difference.field, kind.as_str());
    }
    keyed
}

/// Removes the sketches of responses with placeholders, which tell nothing about the values.
fn drop_replies(compared: &mut Result<Compared, NotCompared>) {
    match compared {
        Ok(compared) => compared.found.replies = None,
        Err(not_compared) => not_compared.replies = None,
    }
}

/// Fails if the calls of a route are not sent.
fn may_send(info: &CandidateInfo, unsafe_calls: UnsafeCalls) -> Result<(), NotRun> {
    match (shadow_limits::never(info.route()), unsafe_calls) {
        (None, _) => Ok(()),
        (Some(Skip::Unsafe), UnsafeCalls::Sent) if info.route().expects_reply => Ok(()),
        (Some(skip), _) => Err(skip.into()),
    }
}

/// Removes the headers of the candidate that the recording may have left out of the control.
fn keep_known_headers(control: &RecordedResponse, candidate: &mut RecordedResponse) {
    // A content coding is not compared, but needed to decode the body.
    let is_unknown = |name: &http::HeaderName| {
        !control.headers.contains_key(name) && name != http::header::CONTENT_ENCODING
    };
    let unknown = candidate.headers.keys().filter(|name| is_unknown(name));
    for name in unknown.cloned().collect::<Vec<_>>() {
        candidate.headers.remove(name);
    }
}

/// Returns true if a difference is in a hidden value, or in a text that contains one: JSON inside of a string.
fn is_hidden(kind: Kind, pointer: &str, redacted: &[String]) -> bool {
    let is_below = |inner: &str, outer: &str| {
        let rest = inner.strip_prefix(outer);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    redacted
        .iter()
        .any(|hidden| is_below(pointer, hidden) || kind == Kind::Value && is_below(hidden, pointer))
}

/// Compares the statuses of two responses if the body of the control is not known.
fn compare_statuses(
    info: &CandidateInfo,
    control: &RecordedResponse,
    candidate: RecordedResponse,
    budget: &BodyCopy,
) -> Result<Compared, NotCompared> {
    let context = info.compare_context(budget)?;
    let status = candidate.status.as_u16();
    let endings = (info.describe(control), info.describe(&candidate));
    let candidate_run = match candidate.is_short() {
        true => candidate.parse(info.side(), context.terms.depth).run(),
        false if candidate.status.is_server_error() => Run::Failed,
        false => Run::Answered,
    };
    let control_run = match control.status.is_server_error() {
        true => Run::Failed,
        false => Run::Answered,
    };
    if let Some(verdict) = Verdict::of_failures(control_run, candidate_run) {
        return Err(NotCompared {
            endings: Some(endings),
            ..verdict.into()
        });
    }
    let (headers, body) = (http::HeaderMap::new(), Bytes::new());
    let rest = |status| ComparedResponse::Rest {
        status,
        headers: &headers,
        body: &body,
    };
    let (one, two) = (rest(control.status.as_u16()), rest(status));
    Ok(Compared {
        found: compare(&one, &two, &context.rules, &context.terms),
        control: control.clone(),
        decoded: 0,
        bound: None,
    })
}

/// Returns the report of responses that were not compared.
fn uncompared(
    info: &CandidateInfo,
    report: ReplayReport,
    not_compared: NotCompared,
    why: &FailureCause,
) -> Result<ReplayReport, NotRun> {
    if let Verdict::Skipped(skip) = not_compared.verdict {
        return Err(skip.into());
    }
    let cause = why.cause.as_deref();
    let reason = why.reason.map(|reason| reason.row().label);
    let cause = cause.map(|cause| info.plan().redaction.text(cause).into_owned());
    Ok(ReplayReport {
        verdict: not_compared.verdict,
        endings: not_compared.endings,
        replies: not_compared.replies,
        cause: match (reason, cause) {
            (Some(reason), Some(cause)) => Some(format!("{reason}: {cause}")),
            (reason, cause) => cause.or(reason.map(str::to_owned)),
        },
        ..report
    })
}

/// Judges the differences by the noise of their fields, or of those of the same differences in `keyed`.
fn judge(
    info: &CandidateInfo,
    report: &mut ReplayReport,
    found: Comparison,
    keyed: Option<&Comparison>,
    repeat: RepeatOutcome,
) {
    let judged = keyed.unwrap_or(&found);
    let judgement = info
        .runner()
        .judge(&info.route_name(), repeat, None, judged);
    report.verdict = judgement.verdict;
    report.more = judgement.more;
    report.noisy = found.differences.len() - judgement.pointers.len();
    if judgement.verdict == Verdict::Mismatch {
        report.replies = found.replies;
    }
    let counted = found.differences.into_iter();
    report.differences = counted
        .filter(|difference| judgement.pointers.contains(&difference.pointer))
        .collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_in_a_hidden_value_is_left_out() {
        let hidden = ["/body/token".to_owned(), "/result/a~1b".to_owned()];
        for (kind, pointer, expected) in [
            (Kind::Value, "/body/token", true),
            (Kind::Missing, "/body/token/0", true),
            (Kind::Value, "/body/tokens", false),
            (Kind::Type, "/body", false),
            (Kind::Value, "/body", true),
            (Kind::Value, "/result/a~1b", true),
            (Kind::Missing, "/result", false),
        ] {
            assert_eq!(is_hidden(kind, pointer, &hidden), expected, "{pointer}");
        }
    }
}
