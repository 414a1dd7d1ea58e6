//! Exchanges of translated calls: sent on the terms of their route, the response without its content coding.
//!
//! Used by `translate`.

use std::rc::Rc;

use bytes::Bytes;
use http::header::CONTENT_ENCODING;

use super::access_record::AccessRecord;
use super::call_context::CallContext;
use super::call_response::{Received, UpstreamResponse};
use super::exchange::{self, CallTerms};
use super::failures::memory_exhausted;
use crate::upstream::HttpUpstream;
use dualgauge_model::failure::{Failure, Reason};
use dualgauge_model::outcome::is_rejection_status;
use dualgauge_model::response_stream::StreamTerms;
use dualgauge_model::route::Route;
use dualgauge_net::{BudgetExhausted, ContentEncoding, DecodeError, OutgoingRequest, RetryPolicy};

/// The upstream of a translated call, and the rules of the call.
#[derive(Clone, Copy)]
pub(super) struct CallTarget<'a> {
    pub(super) upstream: &'a Rc<HttpUpstream>,
    pub(super) route: &'a Route,
    pub(super) streams: Option<StreamTerms<'a>>,
}

/// Sends a translated call. A complete response comes decoded.
pub(super) async fn send(
    record: &mut AccessRecord,
    to: CallTarget<'_>,
    outgoing: OutgoingRequest,
) -> Result<Received, Failure> {
    let terms = CallTerms {
        limit: to.route.timeout.unwrap_or(to.upstream.plan().timeout),
        retry_policy: match to.route.effect.may_repeat() {
            true => RetryPolicy::Allowed,
            false => RetryPolicy::Unprocessed,
        },
        streams: to.streams,
    };
    let received = exchange::send_and_receive(record, to.upstream, outgoing, terms).await?;
    let mut reply = match received {
        Received::Complete(reply) if reply.headers.contains_key(CONTENT_ENCODING) => reply,
        Received::Complete(_) | Received::Stream(_) => return Ok(received),
    };
    let decoded = decode_body(&record.context, &reply);
    reply.headers.remove(CONTENT_ENCODING);
    let status = reply.status.as_u16();
    reply.body = match decoded {
        Ok(body) => body,
        // A status that refuses the call needs no body.
        Err(_) if is_rejection_status(status) => Bytes::new(),
        Err(failure) => return Err(failure.upstream_status(status)),
    };
    Ok(Received::Complete(reply))
}

/// Decodes the content coding of a response. A server may use one that was not requested (RFC 9110 §12.5.3).
fn decode_body(context: &CallContext, reply: &UpstreamResponse) -> Result<Bytes, Failure> {
    let coding = ContentEncoding::from_headers(&reply.headers).map_err(|name| {
        let message = "the server's answer has an unsupported content coding; supported: gzip, br";
        Failure::new(Reason::UpstreamNotProtocol, message).because(name)
    })?;
    let limit = context.runtime_plan().plan.limits.answer;
    let (memory, budget) = (context.worker().memory(), context.second_run_budget());
    let decoded = coding.decode_within(reply.body.clone(), limit, memory, budget);
    decoded.map_err(|error| match (&error, budget) {
        (DecodeError::Malformed(_), _) => {
            let message = "the server's answer does not match its content coding";
            Failure::new(Reason::UpstreamNotProtocol, message).because(error)
        }
        (DecodeError::NoRoom, None) => memory_exhausted(BudgetExhausted),
        (DecodeError::TooLarge(_), _) | (DecodeError::NoRoom, Some(_)) => {
            let message = format!("the server's answer, decoded, is longer than {limit} bytes");
            Failure::new(Reason::UpstreamTooLarge, message)
        }
    })
}
