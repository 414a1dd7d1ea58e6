//! A pair of recorded responses and their comparison. Nothing here belongs to a worker, so any thread can compare.
//!
//! Used by `shadow::run`.

use std::sync::Arc;

use http::{HeaderMap, Method};

use super::offload::{ComparePool, OffloadError};
use super::recorded_response::{ParsedResponse, RecordedResponse};
use dualgauge_model::compare::{
    ComparedResponse, Comparison, ReplyPair, Rules, RunEnding, Skip, StreamBound, StreamPair,
    Terms, Verdict, compare,
};
use dualgauge_patterns::side::Side;

/// The responses of control and candidate to the same call.
pub(super) struct ResponsePair {
    pub(super) control: RecordedResponse,
    pub(super) candidate: RecordedResponse,
}

/// The rules and limits of a comparison.
#[derive(Clone)]
pub(super) struct CompareContext {
    pub(super) rules: Arc<Rules>,
    pub(super) side: Side,
    pub(super) method: Method,
    pub(super) terms: Terms,
    /// Budget for decoded bodies, in bytes.
    pub(super) decode_budget: usize,
}

/// The result of a comparison.
#[derive(Debug)]
pub(super) struct Compared {
    /// The control's response, decoded, for a second comparison.
    pub(super) control: RecordedResponse,
    /// Decoded bytes of both responses; only those of the control stay in memory.
    pub(super) decoded: usize,
    pub(super) found: Comparison,
    /// The bound that made the comparison of two streams partial.
    pub(super) bound: Option<StreamBound>,
}

/// The reason why two responses were not compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NotCompared {
    pub(super) verdict: Verdict,
    /// The response of the control and that of the candidate, if both were parsed.
    pub(super) endings: Option<(RunEnding, RunEnding)>,
    /// Sketches of both, if only the candidate failed.
    pub(super) replies: Option<Box<ReplyPair>>,
}

impl From<Verdict> for NotCompared {
    fn from(verdict: Verdict) -> NotCompared {
        NotCompared {
            verdict,
            endings: None,
            replies: None,
        }
    }
}

impl ResponsePair {
    /// Compares short responses at once, and others on the compare thread.
    ///
    /// # Errors
    ///
    /// Fails with the verdict when it needs no comparison.
    pub(super) async fn compare(
        self,
        context: CompareContext,
        compare_pool: &ComparePool,
    ) -> Result<Compared, NotCompared> {
        if self.control.is_short() && self.candidate.is_short() {
            return self.compare_now(&context);
        }
        match compare_pool.run(move || self.compare_now(&context)).await {
            Ok(compared) => compared,
            Err(OffloadError::Full) => Err(Verdict::Skipped(Skip::Busy).into()),
            Err(OffloadError::Panicked) => Err(Verdict::CandidateFailed.into()),
        }
    }

    fn compare_now(self, context: &CompareContext) -> Result<Compared, NotCompared> {
        let mut decode_budget = context.decode_budget;
        let mut decode = |response: RecordedResponse| {
            response
                .decode(&context.method, &mut decode_budget)
                .map_err(Verdict::Skipped)
        };
        let (control, candidate) = (decode(self.control)?, decode(self.candidate)?);
        let depth = context.terms.depth;
        let streams = stream_pair(&control, &candidate, context);
        let control_parsed = control.clone().parse(context.side, depth);
        let candidate_parsed = candidate.clone().parse(context.side, depth);
        let mut bound = None;
        let mut found = match Verdict::of_failures(control_parsed.run(), candidate_parsed.run()) {
            Some(verdict) => {
                let replies = (verdict == Verdict::CandidateFailed)
                    .then(|| sketches(&control, &candidate, context));
                return Err(NotCompared {
                    verdict,
                    endings: Some((control_parsed.describe(), candidate_parsed.describe())),
                    replies: replies.flatten(),
                });
            }
            None => match streams {
                None => compare_parsed(&control_parsed, &candidate_parsed, context)
                    .ok_or(Verdict::CandidateFailed)?,
                Some(pair) => {
                    let pair = pair.ok_or(Verdict::Skipped(Skip::Stream))?;
                    bound = pair.bound;
                    compare_streams(&pair, context)
                }
            },
        };
        if !found.is_match() && candidate.stream.is_none() {
            found.replies = sketches(&control, &candidate, context);
        }
        Ok(Compared {
            control,
            decoded: context.decode_budget - decode_budget,
            found,
            bound,
        })
    }
}

/// Returns sketches of both responses; `None` if one is too long or no response.
fn sketches(
    control: &RecordedResponse,
    candidate: &RecordedResponse,
    context: &CompareContext,
) -> Option<Box<ReplyPair>> {
    let sketch =
        |response: &RecordedResponse| response.sketch(context.side, &context.rules, &context.terms);
    Some(Box::new(ReplyPair {
        control: sketch(control)?,
        candidate: sketch(candidate)?,
    }))
}

/// Pairs the events of two responses that streamed; the inner value is `None` if nothing could be compared.
fn stream_pair(
    control: &RecordedResponse,
    candidate: &RecordedResponse,
    context: &CompareContext,
) -> Option<Option<StreamPair>> {
    let (side, depth) = (context.side, context.terms.depth);
    let control = control.events(side, depth)?;
    let candidate = candidate.events(side, depth)?;
    Some(StreamPair::new(&control, &candidate))
}

/// Compares two responses event by event. A difference names the place `events/N` in the body or in the result.
fn compare_streams(pair: &StreamPair, context: &CompareContext) -> Comparison {
    let (rules, terms) = (&context.rules, &context.terms);
    if context.side == Side::Rpc {
        let results = [&pair.control, &pair.candidate].map(ComparedResponse::Result);
        return compare(&results[0], &results[1], rules, terms);
    }
    let headers = HeaderMap::new();
    let bodies = [&pair.control, &pair.candidate].map(|events| events.clone().into_bytes());
    let rest = |body| ComparedResponse::Rest {
        status: 200,
        headers: &headers,
        body,
    };
    compare(&rest(&bodies[0]), &rest(&bodies[1]), rules, terms)
}

fn compare_parsed(
    control: &ParsedResponse,
    candidate: &ParsedResponse,
    context: &CompareContext,
) -> Option<Comparison> {
    let (control, candidate) = (control.answer()?, candidate.answer()?);
    Some(compare(
        &control,
        &candidate,
        &context.rules,
        &context.terms,
    ))
}

#[cfg(test)]
mod tests {
    use std::thread;

    use futures_util::FutureExt;
    use http::StatusCode;

    use super::*;
    use crate::gateway::shadow::recorded_response::ResponseOrigin;
    use dualgauge_model::compare::Salt;

    fn recorded(body: String, coding: Option<&'static str>) -> RecordedResponse {
        let mut headers = HeaderMap::new();
        if let Some(coding) = coding {
            let coding = http::HeaderValue::from_static(coding);
            headers.insert(http::header::CONTENT_ENCODING, coding);
        }
        RecordedResponse {
            status: StatusCode::OK,
            headers,
            body: body.into(),
            source: ResponseOrigin::Server,
            stream: None,
        }
    }

    fn pair(length: usize, coding: Option<&'static str>) -> ResponsePair {
        let body = |last: u8| format!(r#"{{"a":"{}","b":{last}}}"#, "x".repeat(length));
        ResponsePair {
            control: recorded(body(1), coding),
            candidate: recorded(body(2), None),
        }
    }

    fn context() -> CompareContext {
        CompareContext {
            rules: Arc::default(),
            side: Side::Rest,
            method: Method::GET,
            terms: Terms {
                depth: 16,
                salt: Salt([0; 16]),
            },
            decode_budget: 1_000_000,
        }
    }

    fn pointers(compared: &Compared) -> Vec<&str> {
        let differences = compared.found.differences.iter();
        differences
            .map(|difference| difference.pointer.as_str())
            .collect()
    }

    #[tokio::test]
    async fn a_worker_compares_only_short_responses() {
        let (compare_pool, compare_thread) = ComparePool::open();
        let short = pair(10, None)
            .compare(context(), &compare_pool)
            .now_or_never();
        assert_eq!(pointers(&short.unwrap().unwrap()), ["/body/b"]);
        // Other responses are compared only once the compare thread runs.
        let mut long = Box::pin(pair(100_000, None).compare(context(), &compare_pool));
        let mut coded = Box::pin(pair(10, Some("gzip")).compare(context(), &compare_pool));
        for _ in 0..100 {
            assert!((&mut long).now_or_never().is_none());
            assert!((&mut coded).now_or_never().is_none());
        }
        let compare_thread = thread::spawn(|| compare_thread.run_jobs());
        assert_eq!(pointers(&long.await.unwrap()), ["/body/b"]);
        assert_eq!(
            coded.await.unwrap_err(),
            NotCompared::from(Verdict::Skipped(Skip::Coded)),
            "it is not gzip"
        );
        compare_pool.close().await;
        compare_thread.join().unwrap();
    }
}
