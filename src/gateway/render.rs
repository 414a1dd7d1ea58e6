//! The one place that renders: answers and failures become HTTP on the face that was spoken to, and
//! settle the call's record.

use http::header::{ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, LINK, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, response};
use hyper::upgrade::OnUpgrade;

use std::time::Duration;

use super::answer::{AnswerBody, Coming};
use super::candidate::{Candidate, Told};
use super::closing::{Closing, is_event_stream};
use super::content::Content;
use super::record::Record;
use super::tunnel;
use crate::domain::compare::Skip;
use crate::domain::failure::{Advice, Failure, FailureCodes};
use crate::domain::headers::JSON;
use crate::domain::jsonrpc::{self, RequestId};
use crate::domain::outcome::{error_object, problem};
use crate::domain::pieces::Pieces;
use crate::domain::side::Side;
use crate::domain::stream::Rewriter;
use crate::upstream::{Inflow, Lease};

/// What a call is answered with.
pub(super) enum Answer {
    /// Everything is there.
    Whole(Box<Whole>),
    /// An upstream's answer as it comes.
    Stream(Box<Stream>),
    /// The connection changes its protocol (RFC 9110 §7.8).
    Tunnel(Box<Tunnel>),
}

/// An answer that is there whole.
#[derive(Debug)]
pub(super) struct Whole {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Pieces,
}

/// An upstream's answer as it comes.
pub(super) struct Stream {
    pub(super) response: Box<Response<Inflow>>,
    pub(super) lease: Lease,
    pub(super) silence: Duration,
    /// What makes it a stream of the other side.
    pub(super) rewriter: Option<Rewriter>,
    /// After what time it ends by itself.
    pub(super) max_age: Option<Duration>,
}

/// Both ends of a connection that changes its protocol.
pub(super) struct Tunnel {
    pub(super) head: response::Parts,
    pub(super) client: OnUpgrade,
    pub(super) upstream: OnUpgrade,
    pub(super) lease: Lease,
    pub(super) silence: Duration,
    /// After what time it ends by itself.
    pub(super) max_age: Option<Duration>,
}

/// Renders what a whole request came to.
pub(super) fn settled(
    record: Box<Record>,
    came_to: Result<Answer, Failure>,
) -> Response<AnswerBody> {
    match came_to {
        Ok(answered) => answer(record, answered),
        Err(failed) => failure(record, failed),
    }
}

/// Renders an answer. A stream takes the record along and writes it at its end.
pub(super) fn answer(mut record: Box<Record>, answer: Answer) -> Response<AnswerBody> {
    match answer {
        Answer::Whole(whole) => {
            let candidate = beside(&mut record, || Told::whole(&whole));
            respond_to(record, *whole, candidate)
        }
        Answer::Stream(stream) => {
            let Stream {
                response,
                mut lease,
                silence,
                rewriter,
                max_age,
            } = *stream;
            let (head, body) = response.into_parts();
            let spelling = lease.take_spelling();
            record.answered(head.status.as_u16());
            record.head_is_out();
            if let Some(candidate) = record.candidate() {
                candidate.passes(&head);
            }
            let withheld = withheld(&head);
            let closing = Closing::of(&head.headers, max_age, &record);
            // A stream has no end by itself.
            let due = record.due().filter(|_| !is_event_stream(&head.headers));
            let coming = Coming {
                content: Content::of(body, rewriter),
                lease,
                silence,
                closing,
                due,
            };
            let streamed = AnswerBody::streamed(coming, record);
            let body = withheld.map_or(streamed, AnswerBody::withheld);
            Response::from_parts(head, body.spelled(spelling))
        }
        Answer::Tunnel(tunnel) => {
            let Tunnel {
                head,
                client,
                upstream,
                mut lease,
                silence,
                max_age,
            } = *tunnel;
            let body = AnswerBody::written(Pieces::default()).spelled(lease.take_spelling());
            record.answered(head.status.as_u16());
            if let Some(candidate) = record.take_candidate() {
                candidate.skip(Skip::Stream);
            }
            let tasks = record.worker().tasks().clone();
            let connected = record.worker().connected(record.peer().cloned());
            tasks.start(async move {
                tunnel::run(record, client, upstream, (silence, max_age)).await;
                // Until here both connections are among those that the worker may have.
                drop((lease, connected));
            });
            Response::from_parts(head, body)
        }
    }
}

/// The length that a 304 tells of the body that it does not have.
fn withheld(head: &response::Parts) -> Option<u64> {
    if head.status != StatusCode::NOT_MODIFIED {
        return None;
    }
    head.headers
        .get(CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse().ok())
}

/// Renders a failure of a whole request on the face of its record.
pub(super) fn failure(mut record: Box<Record>, failure: Failure) -> Response<AnswerBody> {
    let codes = &record.installed().plan.face.failure_codes;
    let whole = match (record.side(), record.stream()) {
        // Who asks for a stream looks at the status, whichever side it is of.
        (Side::Rest, _) | (Side::Rpc, Some(_)) => rest_failure(&failure, codes),
        (Side::Rpc, None) => {
            let mut whole = rpc_failure(&failure, codes, &RequestId::null());
            if *record.method() != Method::POST {
                // It is no JSON-RPC call: its client looks at the status.
                whole.status = status(failure.reason.row().status);
            }
            whole
        }
    };
    record.failed(whole.status.as_u16(), &failure);
    let candidate = beside(&mut record, || Told::failure(&whole, &failure));
    respond_to(record, whole, candidate)
}

fn respond_to(
    record: Box<Record>,
    whole: Whole,
    candidate: Option<Candidate>,
) -> Response<AnswerBody> {
    if *record.method() == Method::HEAD {
        // Nobody reads the body of such an answer, so that its end would never come.
        candidate.into_iter().for_each(Candidate::start);
        return respond_to_head(whole);
    }
    let response = respond_before(whole, candidate.into_iter().collect());
    keeping(response, record.kept().into_iter().collect())
}

/// Responds to HEAD: with the length of the body, and without it. hyper itself leaves a body out over HTTP/1.1 only.
fn respond_to_head(whole: Whole) -> Response<AnswerBody> {
    let body = match whole.body.len() {
        0 => AnswerBody::written(Pieces::default()),
        length => AnswerBody::withheld(length as u64),
    };
    let mut response = Response::new(body);
    *response.status_mut() = whole.status;
    *response.headers_mut() = whole.headers;
    response
}

/// Keeps the records of calls until the client has the answer to them.
pub(super) fn keeping(
    response: Response<AnswerBody>,
    records: Vec<Record>,
) -> Response<AnswerBody> {
    response.map(|body| body.keeping(records))
}

/// What follows a call, if anything does, once it is known what the call is answered with.
pub(super) fn beside(record: &mut Record, control: impl FnOnce() -> Told) -> Option<Candidate> {
    let candidate = record.take_candidate()?;
    Some(candidate.beside(control()))
}

/// A failure as a problem document.
pub(super) fn rest_failure(failure: &Failure, codes: &FailureCodes) -> Whole {
    let answer = problem(failure, codes);
    let mut headers = advice(failure);
    headers.insert(
        CACHE_CONTROL,
        const { HeaderValue::from_static("no-store") },
    );
    if let Some(kind) = answer
        .content_type
        .and_then(|kind| HeaderValue::try_from(kind).ok())
    {
        headers.insert(CONTENT_TYPE, kind);
    }
    Whole {
        status: status(answer.status),
        headers,
        body: answer.body,
    }
}

/// A failure as an RPC error for the call that bears an id.
pub(super) fn rpc_failure(failure: &Failure, codes: &FailureCodes, id: &RequestId) -> Whole {
    let body = jsonrpc::error(id, &error_object(failure, codes));
    let mut whole = rpc_message(body);
    whole.headers.extend(advice(failure));
    whole.status = status(failure.reason.rpc_face_status());
    whole
}

/// A JSON-RPC answer.
pub(super) fn rpc_message(body: Pieces) -> Whole {
    rpc_message_beside(HeaderMap::new(), body)
}

/// A JSON-RPC answer, and the headers that a server's answer brings back with it.
pub(super) fn rpc_message_beside(mut headers: HeaderMap, body: Pieces) -> Whole {
    headers.insert(CONTENT_TYPE, JSON);
    Whole {
        status: StatusCode::OK,
        headers,
        body,
    }
}

/// The answer to what needs none.
pub(super) fn acknowledged(status: StatusCode) -> Whole {
    Whole {
        status,
        headers: HeaderMap::new(),
        body: Pieces::default(),
    }
}

fn advice(failure: &Failure) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let mut add = |name: HeaderName, value: String| {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(name, value);
        }
    };
    match failure.advice.as_deref() {
        None | Some(Advice::Versions { .. }) => {}
        Some(Advice::Allow(methods)) => add(ALLOW, methods.clone()),
        Some(Advice::RetryAfter(seconds)) => add(RETRY_AFTER, seconds.to_string()),
        Some(Advice::Successor { link, pause, .. }) => {
            if let Some(link) = link {
                add(LINK, format!("<{link}>; rel=\"successor-version\""));
            }
            if let Some(pause) = pause {
                add(RETRY_AFTER, pause.seconds.to_string());
            }
        }
    }
    headers
}

/// A status that the domain has named; the domain names none that HTTP does not have.
pub(super) fn status(code: u16) -> StatusCode {
    StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

pub(super) fn respond(whole: Whole) -> Response<AnswerBody> {
    respond_before(whole, Vec::new())
}

/// Responds, and starts what follows when the client has it all.
pub(super) fn respond_before(whole: Whole, followed_by: Vec<Candidate>) -> Response<AnswerBody> {
    let mut response = Response::new(AnswerBody::followed(whole.body, followed_by));
    *response.status_mut() = whole.status;
    *response.headers_mut() = whole.headers;
    response
}
