//! A posted call whose client hears what its server tells of it: its answer is a stream of events then (MCP 2025-11-25,
//! "Sending Messages to the Server").
//!
//! The stream begins with the first thing that the server tells; where it tells nothing before it answers, the answer is
//! what it would be anyhow. Laws: what was told before the answer stands before it; of what is told to a client that does
//! not keep up so much waits as its ear has room for, and it misses the rest; a client that goes away cancels its call.

use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use super::{Company, Kept, Letter, Said};
use crate::domain::jsonrpc::{Call, Item, LISTEN};
use crate::domain::sse;
use crate::gateway::AnswerBody;
use crate::gateway::candidate::Candidate;
use crate::gateway::marks::Marks;
use crate::gateway::record::Record;
use crate::upstream::link::{Hearing, Tidings, hearing};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response, header};

/// A call that is served, up to what it is answered with.
type Serving = Pin<Box<dyn Future<Output = (Said, Marks)>>>;

/// Whether the client of a call reads streams, and something may be told of the call: how far it is, where it has a token,
/// whatever its server says in the response stream of it, or what it subscribes to.
pub(super) fn is_wanted(letter: &Letter, item: &Item) -> bool {
    let Item::Call(call) = item else {
        return false;
    };
    let accept = letter.head.headers.get_all(header::ACCEPT).iter();
    let mut accept = accept.filter_map(|accept| accept.to_str().ok());
    call.id.is_some()
        && accept.any(sse::is_accepted)
        && (letter.installed.has_response_streams() || has_token(call) || *call.method == *LISTEN)
}

fn has_token(call: &Call) -> bool {
    let params = call.params.as_ref();
    params.is_some_and(|params| {
        // Most calls have none, and need no closer look.
        memchr::memmem::find(params.as_bytes(), b"progressToken").is_some()
            && params
                .member("_meta")
                .is_some_and(|meta| meta.has("progressToken"))
    })
}

/// Serves such a call, whose record has begun.
pub(super) async fn serve(
    mut record: Box<Record>,
    letter: Letter,
    item: Item,
) -> Response<AnswerBody> {
    let (tell, mut told) = hearing();
    record.hears(tell);
    // What was told before the answer goes first, whatever the protocol.
    let kept = Some(Rc::default());
    let letter = Letter { kept, ..letter };
    let own = letter.clone();
    let mut serving: Serving =
        Box::pin(async move { letter.answer(record, item, Company::Alone).await });
    // Both are cancel-safe: what is not taken stays where it is.
    let (said, marks) = tokio::select! {
        biased;
        ended = &mut serving => ended,
        first = told.next() => return stream(Telling::begun(first, told, serving), own),
    };
    match told.before() {
        None => own.alone(said, marks),
        Some(first) => {
            let ended = std::future::ready((said, marks));
            stream(Telling::begun(first, told, Box::pin(ended)), own)
        }
    }
}

/// The head says nothing of the route: it leaves before that is known.
fn stream(telling: Telling, letter: Letter) -> Response<AnswerBody> {
    const BUFFERING: &str = "x-accel-buffering";
    let kept = letter.kept.clone();
    let mut response = Response::new(AnswerBody::telling(Telling { kept, ..telling }));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(sse::EVENT_STREAM));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(BUFFERING, HeaderValue::from_static("no"));
    letter.written(response)
}

/// What is told of a call, and its answer at the end.
pub(in crate::gateway) struct Telling {
    /// What was told first.
    first: Option<Tidings>,
    told: Hearing,
    part: Part,
    /// The record of the call, once it is answered.
    kept: Option<Rc<Kept>>,
    /// The same, once the answer is handed out, where it will be known whether the client takes it.
    given: Vec<Record>,
}

/// How far it is.
enum Part {
    Serving(Serving),
    /// The answer, which stands behind what was told before it.
    Answer(Option<Bytes>, Vec<Candidate>),
    Over,
}

impl fmt::Debug for Telling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Telling").finish_non_exhaustive()
    }
}

impl Telling {
    fn begun(first: Tidings, told: Hearing, serving: Serving) -> Telling {
        Telling {
            first: Some(first),
            told,
            part: Part::Serving(serving),
            kept: None,
            given: Vec::new(),
        }
    }

    /// The client has not taken all of it.
    pub(in crate::gateway) fn untaken(&mut self, cause: Option<&str>) {
        self.kept.iter().for_each(|kept| kept.untaken(cause));
        for record in &mut self.given {
            record.untaken(cause);
        }
    }

    /// Whether nothing more comes.
    pub(in crate::gateway) fn is_over(&self) -> bool {
        matches!(self.part, Part::Over)
    }

    /// The next event.
    pub(in crate::gateway) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            if let Some(first) = self.first.take() {
                return Poll::Ready(event(first));
            }
            match &mut self.part {
                Part::Serving(serving) => {
                    // The answer first: what was told before it is found by it, and what was told behind it waits.
                    let Poll::Ready((said, _)) = serving.as_mut().poll(cx) else {
                        return self.told.poll_next(cx).map(event);
                    };
                    self.part = match said {
                        Said::Message(whole, candidate) => {
                            let text = whole.body.into_bytes();
                            Part::Answer(Some(text), candidate.into_iter().collect())
                        }
                        // A call that its client has cancelled is not answered, and no server but one over a link tells.
                        Said::Nothing | Said::Forwarded(_) => Part::Answer(None, Vec::new()),
                    };
                }
                Part::Answer(answer, candidates) => {
                    if let Some(told) = self.told.before() {
                        return Poll::Ready(event(told));
                    }
                    let answer = answer.take();
                    self.given = self.kept.iter().flat_map(|kept| kept.given()).collect();
                    candidates.drain(..).for_each(Candidate::start);
                    self.part = Part::Over;
                    return Poll::Ready(answer.map(|text| sse::message(&text)));
                }
                Part::Over => return Poll::Ready(None),
            }
        }
    }
}

/// What is told, as an event. Of a link of its own who posts hears no end: its call is answered.
fn event(told: Tidings) -> Option<Bytes> {
    match told {
        Tidings::Told(text, _) => Some(sse::message(&text)),
        Tidings::Gone(_) => None,
    }
}
