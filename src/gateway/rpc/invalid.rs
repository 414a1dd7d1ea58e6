//! Requests to an RPC path whose body is not valid JSON-RPC 2.0, or not sent as such.
//!
//! What becomes of them the domain says. Law: what is forwarded goes with the head and the bytes that came.

use std::rc::Rc;

use http::{Response, request};

use super::{Author, Company, Letter};
use crate::domain::claim::{self, Head};
use crate::domain::failure::{Failure, Reason};
use crate::domain::jsonrpc::{Item, RequestId};
use crate::domain::posted::{self, Handling, Posted, Poster, sort};
use crate::domain::refusal;
use crate::domain::side::Side;
use crate::gateway::forward::{Forwarded, at_upstream, forward};
use crate::gateway::intake::Content;
use crate::gateway::record::Record;
use crate::gateway::render::{self, Answer};
use crate::gateway::{AnswerBody, Arrival, cors, rest};
use crate::upstream::Upstream;

/// Whose request it is, and with which head it came.
pub(super) struct Context {
    pub(super) head: Box<request::Parts>,
    pub(super) arrival: Arrival,
    pub(super) author: Rc<Author>,
}

/// Serves such a request.
pub(super) async fn serve(
    mut reading: Box<Record>,
    context: Context,
    (content, body): (Content, posted::Body),
) -> Response<AnswerBody> {
    let Context {
        head,
        arrival,
        author,
    } = context;
    let installed = reading.installed().clone();
    let poster = Poster {
        caller: author.identity.caller(&installed.plan.rollout.clients),
        head: Head::of(&head),
        at: reading.at(),
        past: Some((installed.past(), reading.worker().sessions().now())),
    };
    let posted = sort(&installed.plan, poster, body);
    match (posted, content) {
        (Posted::Rest, content) => {
            reading.is_rest();
            rest::serve_content(reading, (head, content), arrival).await
        }
        (Posted::Unread(fault, place), content) => {
            reading.is_invalid(fault, Handling::Forwarded);
            unread(reading, (head, content), (&arrival, place)).await
        }
        (Posted::Refused(fault, id, failure), _) => {
            reading.is_invalid(fault, Handling::Refused);
            refused(reading, &head, (failure, id))
        }
        (Posted::Messages(incoming), Content::Read(body)) => {
            let letter = Letter::new(&reading, (head, body), arrival, author);
            letter.serve(reading, incoming).await
        }
        (Posted::Call(call, fault), Content::Read(body)) => {
            let letter = Letter::new(&reading, (head, body), arrival, author);
            letter.invalid_call(reading, Item::Call(*call), fault).await
        }
        (Posted::Batch(items, fault), Content::Read(body)) => {
            if let Err(failure) = claim::batch(&installed.plan, &head.headers) {
                return refused(reading, &head, (failure, RequestId::null()));
            }
            let letter = Letter::new(&reading, (head, body), arrival, author);
            let letter = Letter {
                kept: Some(Rc::default()),
                fault: Some(Rc::new(fault)),
                ..letter
            };
            letter.batch(reading, items).await
        }
        // A body that was not read is none of these.
        (Posted::Messages(_) | Posted::Call(..) | Posted::Batch(..), Content::Coming(..)) => {
            let failure = Failure::new(Reason::Internal, "the body was not read");
            refused(reading, &head, (failure, RequestId::null()))
        }
    }
}

/// Answers with an error that a page may read.
fn refused(
    mut record: Box<Record>,
    head: &request::Parts,
    (failure, id): (Failure, RequestId),
) -> Response<AnswerBody> {
    let installed = record.installed().clone();
    let whole = render::rpc_failure(&failure, &installed.plan.face.failure_codes, &id);
    record.failed(whole.status.as_u16(), &failure);
    let mut response = render::answer(record, Answer::Whole(Box::new(whole)));
    cors::mark(&installed.plan, &head.headers, &mut response);
    response
}

/// Forwards a body of which no method was read.
async fn unread(
    mut record: Box<Record>,
    (mut head, content): (Box<request::Parts>, Content),
    (arrival, place): (&Arrival, usize),
) -> Response<AnswerBody> {
    let installed = record.installed().clone();
    let origin = cors::origin(&installed.plan, &head.headers);
    let upstream = installed.upstream_at(place).and_then(Upstream::http);
    let passed = async {
        let upstream = upstream.ok_or_else(|| refusal::no_upstream(Side::Rpc))?;
        head.uri = at_upstream(&upstream.plan().path, head.uri.query())?;
        let forwarded = match content {
            Content::Coming(body, tap) => Forwarded::streamed(head, body, tap),
            Content::Read(body) => Forwarded::read(head, body),
        };
        forward(&mut record, upstream, forwarded, arrival).await
    };
    let answer = passed.await;
    let failed = answer.is_err();
    let mut response = render::settled(record, answer);
    if let Some(cors) = installed.plan.cors.as_ref().filter(|_| failed) {
        cors.mark(origin.as_ref(), response.headers_mut());
    }
    response
}

impl Letter {
    /// Serves a call that is not valid JSON-RPC 2.0.
    async fn invalid_call(
        self,
        reading: Box<Record>,
        item: Item,
        fault: Failure,
    ) -> Response<AnswerBody> {
        let letter = Letter {
            kept: reading.waits_for_its_client().then(Rc::default),
            fault: Some(Rc::new(fault)),
            ..self
        };
        let (said, marks) = letter.answer(reading, item, Company::Alone).await;
        letter.alone(said, marks)
    }
}
