//! Second runs of REST calls. Used by `rest`.

use bytes::Bytes;
use http::header::{
    CONTENT_LENGTH, EXPECT, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE,
    IF_UNMODIFIED_SINCE, RANGE, TRANSFER_ENCODING,
};
use http::{HeaderName, request};
use hyper::upgrade::OnUpgrade;

use crate::gateway::access_record::AccessRecord;
use crate::gateway::call_response::{CallResponse, FullResponse, rest_failure};
use crate::gateway::passthrough::{PassthroughRequest, forward};
use crate::gateway::request_body::RequestBody;
use crate::gateway::request_origin::{ClientRequest, RequestOrigin};
use crate::gateway::response_observer::Observer;
use crate::gateway::serve::{self, IdentifiedRequest, TwoWayCall};
use crate::gateway::shadow::{self, ReplayFuture, ReplayableCall, headers_size};
use crate::gateway::translate;
use crate::upstream::Upstream;
use dualgauge_model::compare::Skip;
use dualgauge_model::dialect;
use dualgauge_model::failure::{Failure, FailureCodes, Reason};
use dualgauge_model::rejections;
use dualgauge_model::rollout::{Stage, Way};
use dualgauge_model::routing::RequestHead;
use dualgauge_net::{BodyCopy, CopyUnavailable};
use dualgauge_patterns::side::Side;

/// Headers of conditional and range requests. A translated call ignores them, so its response would not be comparable.
static CONDITIONS: [HeaderName; 6] = [
    IF_MATCH,
    IF_MODIFIED_SINCE,
    IF_NONE_MATCH,
    IF_RANGE,
    IF_UNMODIFIED_SINCE,
    RANGE,
];

/// The candidate of a call, and the copy that the caller must fill with the body of the request.
#[derive(Default)]
pub(super) struct ShadowCall {
    pub(super) candidate: Option<Observer>,
    pub(super) copy: Option<BodyCopy>,
}

/// Creates the candidate of a call whose stage has one, if it may have one.
pub(super) fn shadow_call(
    record: &AccessRecord,
    request: &IdentifiedRequest<'_>,
    stage: Stage,
    body: &RequestBody,
) -> ShadowCall {
    if !shadow::may_attach(&record.context, stage, may_repeat(request.head)) {
        return ShadowCall::default();
    }
    let copy = record.context.worker().shadow_runner().new_copy();
    match body {
        RequestBody::Read(copied) => copy.store_complete(copied),
        RequestBody::Streaming(..) if body.is_empty() => copy.finish(),
        RequestBody::Streaming(..) => {}
    }
    let call = RestReplay::new(request.head, copy.clone(), request.origin);
    ShadowCall {
        candidate: shadow::candidate(record, Box::new(call)),
        copy: Some(copy),
    }
}

/// Fails if a call is not replayed because of its headers.
pub(super) fn may_repeat(head: &request::Parts) -> Result<(), Skip> {
    let is_conditional = CONDITIONS
        .iter()
        .any(|name| head.headers.contains_key(name));
    match is_conditional {
        true => Err(Skip::Conditional),
        false => Ok(()),
    }
}

/// A REST call stored so that it can be sent again.
pub(super) struct RestReplay {
    /// The request head as it arrived.
    head: Box<request::Parts>,
    /// A copy of the body, taken while it passes through.
    body: BodyCopy,
    origin: RequestOrigin,
}

impl RestReplay {
    pub(super) fn new(head: &request::Parts, body: BodyCopy, origin: &RequestOrigin) -> RestReplay {
        let mut head = head.clone();
        // A second run must not use the client's connection.
        head.extensions.remove::<OnUpgrade>();
        head.headers.remove(EXPECT);
        head.headers.remove(TRANSFER_ENCODING);
        RestReplay {
            head: Box::new(head),
            body,
            origin: origin.clone(),
        }
    }

    async fn send(&self, record: &mut AccessRecord, way: Way) -> Result<CallResponse, Failure> {
        let Ok(body) = self.body.whole() else {
            // Unreachable: the caller checks first that the copy is complete.
            return Err(Failure::new(Reason::Internal, "the body was not read"));
        };
        let request = ClientRequest {
            head: self.head.clone(),
            origin: &self.origin,
        };
        serve::send_again(record, request, &mut SecondRun { body }, way).await
    }
}

/// A second run of a REST call.
struct SecondRun {
    body: Bytes,
}

impl TwoWayCall for SecondRun {
    type Head = Box<request::Parts>;
    type Answer = CallResponse;

    async fn translate(
        &mut self,
        record: &mut AccessRecord,
        request: ClientRequest<'_, Box<request::Parts>>,
        index: usize,
    ) -> Result<CallResponse, Failure> {
        let body = RequestBody::Read(self.body.clone());
        translate::serve_rest_call(record, index, request.borrowed(), body).await
    }

    async fn pass_through(
        &mut self,
        record: &mut AccessRecord,
        request: ClientRequest<'_, Box<request::Parts>>,
        _: Option<usize>,
    ) -> Result<CallResponse, Failure> {
        let ClientRequest { mut head, origin } = request;
        let upstream = record.context.upstream(Side::Rest).and_then(Upstream::http);
        let upstream = upstream.cloned();
        let upstream = upstream.ok_or_else(|| rejections::no_upstream(Side::Rest))?;
        // A message in the query is no content.
        let plan = &record.context.runtime_plan().plan;
        let in_query = dialect::message_in_query(plan, RequestHead::new(&head)).is_some();
        if in_query {
            head.headers.remove(CONTENT_LENGTH);
        }
        let has_length = head.headers.contains_key(CONTENT_LENGTH);
        let passthrough = match (self.body.is_empty() || in_query) && !has_length {
            true => PassthroughRequest::empty(head),
            false => PassthroughRequest::from_bytes(head, self.body.clone()),
        };
        forward(record, &upstream, passthrough, origin).await
    }
}

impl ReplayableCall for RestReplay {
    fn size(&self) -> usize {
        headers_size(&self.head.headers) + self.head.uri.path().len() + size_of::<request::Parts>()
    }

    fn check_complete(&self) -> Result<(), Skip> {
        match self.body.whole() {
            Ok(_) => Ok(()),
            Err(CopyUnavailable::BudgetExhausted) => Err(Skip::Large),
            Err(CopyUnavailable::Unfinished) => Err(Skip::Unread),
        }
    }

    fn send<'a>(&'a self, record: &'a mut AccessRecord, way: Way) -> ReplayFuture<'a> {
        Box::pin(RestReplay::send(self, record, way))
    }

    fn render_failure(&self, failure: &Failure, codes: &FailureCodes) -> FullResponse {
        rest_failure(failure, codes)
    }
}
