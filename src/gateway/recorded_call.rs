//! A call from a recording, and the results of running it again.
//!
//! Used by `replay`, and by the adapters of `gateway`'s protocols and `shadow`.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, Uri, request};

use super::access_record::AccessRecord;
use super::request_origin::RequestOrigin;
use super::shadow::ReplayableCall;
use dualgauge_model::compare::{Difference, ReplyPair, RunEnding, Skip, Verdict};
use dualgauge_model::failure::Failure;
use dualgauge_model::rollout::{Glob, Stage};
use dualgauge_patterns::side::Side;

/// A request from a recording.
#[derive(Debug, Clone)]
pub struct RecordedCall {
    /// The method.
    pub method: Method,
    /// The target in origin form.
    pub target: Uri,
    /// The headers to send.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

/// A response from a recording.
#[derive(Debug, Clone)]
pub struct RecordedControl {
    /// The status.
    pub status: StatusCode,
    /// The recorded headers.
    pub headers: HeaderMap,
    /// The extent of these headers.
    pub extent: HeaderExtent,
    /// The program that made the response.
    pub origin: ControlOrigin,
    /// The body, not encoded; `None` if it was not recorded, or not completely.
    pub body: Option<Bytes>,
    /// JSON pointers of values in the body that the recording replaced.
    pub redacted: Vec<String>,
    /// The time that the response took, if it is known.
    pub time: Option<Duration>,
}

/// The extent of recorded headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderExtent {
    /// All headers of the response.
    All,
    /// Some headers: an absent one may have been there.
    Allowed,
}

/// The program that made a recorded response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlOrigin {
    /// A server.
    Server,
    /// The proxy, which failed or refused the call.
    Proxy,
}

/// The response that a replayed call is compared with, and the way on which the call is sent.
#[derive(Debug, Clone)]
pub enum Control {
    /// The recorded response; the call is sent on the new way.
    RecordedForNew(Box<RecordedControl>),
    /// The recorded response; the call is sent on the old way.
    RecordedForOld(Box<RecordedControl>),
    /// The response of the old way to the same call now; the call is sent on the new way as well.
    Live,
}

/// The treatment of calls that may have an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnsafeCalls {
    /// They are skipped.
    Skipped,
    /// They are sent.
    Sent,
}

/// The calls that are sent.
#[derive(Debug, Clone)]
pub struct ReplayTerms {
    /// The treatment of calls that may have an effect.
    pub unsafe_calls: UnsafeCalls,
    /// The names of the routes whose calls are sent; `None` for all.
    pub only: Option<Glob>,
}

impl ReplayTerms {
    /// Returns true if calls of a route are sent. Calls without a route are listed, whatever is selected.
    #[must_use]
    pub fn selects(&self, route: Option<&str>) -> bool {
        match (&self.only, route) {
            (Some(only), Some(route)) => only.fits(route),
            (Some(_) | None, None) | (None, Some(_)) => true,
        }
    }
}

/// The reason why a recorded call was not run, or not compared.
#[derive(Debug)]
pub enum NotRun {
    /// A reason that live shadow calls can have as well.
    Skipped(Skip),
    /// No route matches.
    Unrouted,
    /// Its route is not selected.
    NotSelected,
    /// The proxy itself answers.
    Local,
    /// The request is no call: a response of a client, or another method on an RPC path.
    NoCall,
    /// The proxy refuses the request.
    Refused(Box<Failure>),
}

/// One call of a recorded request, run again.
#[derive(Debug)]
pub struct ReplayedCall {
    /// The side of the call.
    pub side: Side,
    /// The name of the route, if one matches.
    pub route: Option<Arc<str>>,
    /// The result.
    pub result: Result<ReplayReport, NotRun>,
}

/// The verdict on a call that was run again.
#[derive(Debug)]
pub struct ReplayReport {
    /// The verdict, as that of a live shadow call.
    pub verdict: Verdict,
    /// The differences that count.
    pub differences: Vec<Difference>,
    /// The number of further differences, which were not stored.
    pub more: usize,
    /// The number of differences left out as noise.
    pub noisy: usize,
    /// Set if only the statuses were compared.
    pub is_by_status: bool,
    /// The responses of control and candidate, if they were not compared because one failed.
    pub endings: Option<(RunEnding, RunEnding)>,
    /// The cause of a failed candidate, without secrets.
    pub cause: Option<String>,
    /// Sketches of both responses, if they differ or the candidate failed.
    pub replies: Option<Box<ReplyPair>>,
    /// The time that the control's response took, if it is known.
    pub control_time: Option<Duration>,
    /// The time that the candidate's response took.
    pub candidate_time: Duration,
}

impl NotRun {
    /// Returns the name of the reason.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            NotRun::Skipped(skip) => skip.as_str(),
            NotRun::Unrouted => "unrouted",
            NotRun::NotSelected => "not_selected",
            NotRun::Local => "local",
            NotRun::NoCall => "no_call",
            NotRun::Refused(_) => "refused",
        }
    }
}

impl From<Failure> for NotRun {
    fn from(failure: Failure) -> NotRun {
        NotRun::Refused(Box::new(failure))
    }
}

impl From<Skip> for NotRun {
    fn from(skip: Skip) -> NotRun {
        NotRun::Skipped(skip)
    }
}

/// A recorded call that is ready to be sent, or the reason why it is not.
pub(super) struct PreparedCall {
    /// Nothing is reported of it.
    pub(super) record: Box<AccessRecord>,
    pub(super) call: Result<Box<dyn ReplayableCall>, NotRun>,
}

/// The request of a recorded call, as the adapters prepare it.
#[derive(Clone, Copy)]
pub(super) struct Preparation<'a> {
    pub(super) head: &'a request::Parts,
    pub(super) body: &'a Bytes,
    pub(super) origin: &'a RequestOrigin,
    /// The stage whose ways the call takes.
    pub(super) stage: Stage,
}

impl PreparedCall {
    /// Returns a call that cannot be sent.
    pub(super) fn refused(record: Box<AccessRecord>, why: impl Into<NotRun>) -> PreparedCall {
        PreparedCall {
            record,
            call: Err(why.into()),
        }
    }
}
