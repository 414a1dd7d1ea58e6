//! A pair of recorded responses and their comparison. Nothing here belongs to a worker, so any thread can compare.

use std::sync::Arc;

use http::Method;

use super::offload::{ComparePool, OffloadError};
use super::recorded_response::{ParsedResponse, RecordedResponse};
use crate::domain::compare::{Comparison, Rules, RunEnding, Skip, Terms, Verdict, compare};
use crate::domain::side::Side;

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
    pub(super) room: usize,
}

/// The result of a comparison.
#[derive(Debug)]
pub(super) struct Compared {
    /// The control's response, decoded, for a second comparison.
    pub(super) control: RecordedResponse,
    /// Decoded bytes of both responses; only those of the control stay in memory.
    pub(super) decoded: usize,
    pub(super) found: Comparison,
}

/// The reason why two responses were not compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NotCompared {
    pub(super) verdict: Verdict,
    /// The response of the control and that of the candidate, if both were parsed.
    pub(super) endings: Option<(RunEnding, RunEnding)>,
}

impl From<Verdict> for NotCompared {
    fn from(verdict: Verdict) -> NotCompared {
        NotCompared {
            verdict,
            endings: None,
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
        by: CompareContext,
        desk: &ComparePool,
    ) -> Result<Compared, NotCompared> {
        if self.control.is_short() && self.candidate.is_short() {
            return self.compare_now(&by);
        }
        match desk.run(move || self.compare_now(&by)).await {
            Ok(compared) => compared,
            Err(OffloadError::Full) => Err(Verdict::Skipped(Skip::Busy).into()),
            Err(OffloadError::Panicked) => Err(Verdict::CandidateFailed.into()),
        }
    }

    fn compare_now(self, by: &CompareContext) -> Result<Compared, NotCompared> {
        let mut room = by.room;
        let mut plain =
            |told: RecordedResponse| told.plain(&by.method, &mut room).map_err(Verdict::Skipped);
        let (control, candidate) = (plain(self.control)?, plain(self.candidate)?);
        let depth = by.terms.depth;
        let one = control.clone().read(by.side, depth);
        let other = candidate.read(by.side, depth);
        let found = match Verdict::of_failures(one.run(), other.run()) {
            Some(verdict) => {
                return Err(NotCompared {
                    verdict,
                    endings: Some((one.ending(), other.ending())),
                });
            }
            None => both(&one, &other, by).ok_or(Verdict::CandidateFailed)?,
        };
        Ok(Compared {
            control,
            decoded: by.room - room,
            found,
        })
    }
}

fn both(
    control: &ParsedResponse,
    candidate: &ParsedResponse,
    by: &CompareContext,
) -> Option<Comparison> {
    let (control, candidate) = (control.answer()?, candidate.answer()?);
    Some(compare(&control, &candidate, &by.rules, &by.terms))
}

#[cfg(test)]
mod tests {
    use std::thread;

    use futures_util::FutureExt;
    use http::{HeaderMap, StatusCode};

    use super::*;
    use crate::domain::compare::Salt;
    use crate::gateway::shadow::recorded_response::ResponseOrigin;

    fn told(body: String, coding: Option<&'static str>) -> RecordedResponse {
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
        }
    }

    fn pair(length: usize, coding: Option<&'static str>) -> ResponsePair {
        let body = |last: u8| format!(r#"{{"a":"{}","b":{last}}}"#, "x".repeat(length));
        ResponsePair {
            control: told(body(1), coding),
            candidate: told(body(2), None),
        }
    }

    fn by() -> CompareContext {
        CompareContext {
            rules: Arc::default(),
            side: Side::Rest,
            method: Method::GET,
            terms: Terms {
                depth: 16,
                salt: Salt([0; 16]),
            },
            room: 1_000_000,
        }
    }

    fn places(compared: &Compared) -> Vec<&str> {
        let differences = compared.found.differences.iter();
        differences.map(|one| one.pointer.as_str()).collect()
    }

    #[tokio::test]
    async fn a_worker_compares_what_is_short_and_nothing_else() {
        let (desk, clerk) = ComparePool::open();
        let short = pair(10, None).compare(by(), &desk).now_or_never();
        assert_eq!(places(&short.unwrap().unwrap()), ["/body/b"]);
        // As long as nobody sits at the desk, nothing else is compared: it is not done here.
        let mut long = Box::pin(pair(100_000, None).compare(by(), &desk));
        let mut coded = Box::pin(pair(10, Some("gzip")).compare(by(), &desk));
        for _ in 0..100 {
            assert!((&mut long).now_or_never().is_none());
            assert!((&mut coded).now_or_never().is_none());
        }
        let clerk = thread::spawn(|| clerk.work());
        assert_eq!(places(&long.await.unwrap()), ["/body/b"]);
        assert_eq!(
            coded.await.unwrap_err(),
            NotCompared::from(Verdict::Skipped(Skip::Coded)),
            "it is no gzip"
        );
        desk.close().await;
        clerk.join().unwrap();
    }
}
