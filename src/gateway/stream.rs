//! Streams of events: at the path of one side, from the server of one side, rewritten where these differ.

use http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Response, StatusCode, Version, request};

use super::ask::{self, Wait};
use super::caller::identify;
use super::forward::{Forwarded, forward, target_uri};
use super::headers::{self, HasBody, Known};
use super::record::Record;
use super::render::{Answer, Stream};
use super::rest::settled;
use super::{AnswerBody, Arrival, Delivery, Installed, cors};
use crate::domain::claim::{self, Head};
use crate::domain::failure::{Failure, Reason};
use crate::domain::refusal;
use crate::domain::rollout::Way;
use crate::domain::side::Side;
use crate::domain::sse;
use crate::domain::stream::{self, Followed, Rewriter};
use crate::upstream::{Body, Heads, Inflow, Manner, Outgoing, Passed, Repeat, Wants};

/// Where a client stopped to listen (WHATWG HTML Living Standard §9.2.4).
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Asks proxies on the way not to wait for more.
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Serves a client who asks for a stream.
pub(super) async fn serve(delivery: Delivery, followed: Followed) -> Response<AnswerBody> {
    let Delivery {
        mut record,
        head,
        body,
        arrival,
    } = delivery;
    let installed = record.installed().clone();
    let origin = cors::origin(&installed.plan, &head.headers);
    let answer = follow(&mut record, (head, body), &arrival, followed).await;
    settled((record, &installed.plan), answer, origin.as_ref())
}

async fn follow(
    record: &mut Record,
    (head, body): (Box<request::Parts>, Inflow),
    arrival: &Arrival,
    followed: Followed,
) -> Result<Answer, Failure> {
    let installed = record.installed().clone();
    let plan = &installed.plan;
    let identity = identify(record, &head.headers, arrival);
    let caller = identity.caller(&plan.rollout.clients);
    let decision = stream::decide(plan, (caller, &head.headers), followed);
    let stage = decision.stage;
    record.follows(followed.stream, decision);
    record.admit()?;
    if stage.control() != Some(Way::Old) {
        claim::guard(plan, Head::of(&head), arrival.entry())?;
    }
    let Some(declared) = plan.streams.all().get(followed.stream) else {
        return Err(refusal::no_route(&head.method, head.uri.path()));
    };
    let mut answer = match stage.control() {
        None => return Err(refusal::retired_stream(declared, followed.side)),
        Some(Way::Old) => {
            let upstream = installed
                .upstream_of_stream(followed.stream, followed.side)
                .ok_or_else(|| refusal::no_upstream(followed.side))?;
            let forwarded = Forwarded::streamed(head, body, None);
            forward(record, upstream, forwarded, arrival).await?
        }
        Some(Way::New) => {
            let path = declared.other_path(followed.side, head.uri.path());
            let path = path.ok_or_else(|| refusal::no_route(&head.method, head.uri.path()))?;
            open(record, (&*head, arrival), (followed, &path)).await?
        }
    };
    if let Answer::Stream(stream) = &mut answer {
        stream.max_age = declared.max_age.or(stream.max_age);
    }
    Ok(answer)
}

/// Opens the stream of the other side.
async fn open(
    record: &mut Record,
    (head, arrival): (&request::Parts, &Arrival),
    (followed, path): (Followed, &str),
) -> Result<Answer, Failure> {
    let installed = record.installed().clone();
    let from = followed.side.other();
    let upstream = installed
        .upstream_of_stream(followed.stream, from)
        .ok_or_else(|| refusal::no_upstream(from))?;
    let plan = upstream.plan();
    let target = match head.uri.query() {
        Some(query) => target_uri(format!("{path}?{query}"))?,
        None => target_uri(path.to_owned())?,
    };
    let mut headers = headers::translated(record, (head, arrival), plan, HasBody::No);
    headers.insert(ACCEPT, HeaderValue::from_static(sse::EVENT_STREAM));
    if let Some(last) = head.headers.get(LAST_EVENT_ID) {
        headers.insert(LAST_EVENT_ID, last.clone());
    }
    headers::withhold_credentials(&mut headers, plan);
    if let Some(known) = Known::of(record, (&head.headers, arrival)) {
        known.write(&mut headers);
    }
    let outgoing = Outgoing::new(Method::GET, target, headers, Body::empty());
    let wait = Wait {
        limit: plan.timeout,
        progress: None,
        manner: Manner {
            repeat: Repeat::Allowed,
            // An answer that is no stream is passed on.
            heads: Heads::Passed(Passed::default()),
            wants: Wants::Answer,
        },
    };
    let exchange = ask::head(record, upstream, outgoing, wait).await?;
    let mut response = exchange.response;
    if response.status().is_informational() {
        let message = "the server changed the protocol, which nobody asked for";
        return Err(Failure::new(Reason::UpstreamUpgrade, message));
    }
    let rewriter = rewriter((response.status(), response.headers()), from, &installed)?;
    headers::strip_hop_by_hop(response.headers_mut());
    if rewriter.is_some() {
        *response.headers_mut() = kept(response.headers());
    }
    *response.version_mut() = Version::HTTP_11;
    Ok(Answer::Stream(Box::new(Stream {
        response,
        lease: exchange.lease,
        silence: plan.idle_timeout,
        rewriter,
        max_age: plan.max_age,
    })))
}

/// What rewrites an answer; none where it is no success, which is as good an answer for either side.
fn rewriter(
    (status, headers): (StatusCode, &HeaderMap),
    from: Side,
    installed: &Installed,
) -> Result<Option<Rewriter>, Failure> {
    if status != StatusCode::OK {
        return Ok(None);
    }
    let said = |name: HeaderName| {
        let value = headers.get(name);
        value.map(|value| String::from_utf8_lossy(value.as_bytes()))
    };
    let kind = said(CONTENT_TYPE).unwrap_or_default();
    if !sse::is_event_stream(&kind) {
        return Err(refusal::no_stream(&kind));
    }
    match said(CONTENT_ENCODING) {
        Some(coding) if !coding.eq_ignore_ascii_case("identity") => {
            Err(refusal::no_stream(&coding))
        }
        Some(_) | None => Ok(Some(Rewriter::new(from, installed.plan.limits.answer))),
    }
}

/// What of a stream's head holds for the other side: neither its length nor what it was checked by.
fn kept(headers: &HeaderMap) -> HeaderMap {
    let mut kept = headers::brought_back(headers.clone());
    for name in [CONTENT_TYPE, X_ACCEL_BUFFERING] {
        if let Some(value) = headers.get(&name) {
            kept.insert(name, value.clone());
        }
    }
    kept
}
