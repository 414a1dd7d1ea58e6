//! What comes from an upstream's connection: as it comes, or rewritten event by event for the other side.
//!
//! Nothing more is read while something waits to be taken, so that a slow reader holds back its own stream only, and
//! no more of it is here than one chunk and one event.

use std::pin::Pin;
use std::task::{Context, Poll};

use http_body::{Body as _, Frame, SizeHint};

use bytes::Bytes;

use super::record::Record;
use crate::domain::stream::{Rewriter, Step};
use crate::domain::translate::Terms;
use crate::telemetry::clock;
use crate::upstream::{Inflow, Torn};

/// A body that comes.
#[derive(Debug)]
pub(super) enum Content {
    /// As it comes.
    Plain(Inflow),
    /// Event by event.
    Events(Box<Rewritten>),
}

/// A stream of events that is rewritten.
#[derive(Debug)]
pub(super) struct Rewritten {
    incoming: Inflow,
    rewriter: Rewriter,
    state: State,
    moved: Moved,
    told: Told,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Coming,
    Over,
}

/// Whether anything has come since somebody asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moved {
    Yes,
    No,
}

/// Whether the log knows that events of this stream cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Yes,
    NotYet,
}

type Polled = Poll<Option<Result<Frame<Bytes>, Torn>>>;

impl Content {
    pub(super) fn of(incoming: Inflow, rewriter: Option<Rewriter>) -> Content {
        match rewriter {
            None => Content::Plain(incoming),
            Some(rewriter) => Content::Events(Box::new(Rewritten {
                incoming,
                rewriter,
                state: State::Coming,
                moved: Moved::No,
                told: Told::NotYet,
            })),
        }
    }

    pub(super) fn poll_frame(&mut self, cx: &mut Context<'_>, record: &Record) -> Polled {
        match self {
            Content::Plain(incoming) => Pin::new(incoming).poll_frame(cx),
            Content::Events(rewritten) => rewritten.poll_frame(cx, record),
        }
    }

    /// Whether anything has come since this was asked last, although nothing of it has left perhaps.
    pub(super) fn take_moved(&mut self) -> bool {
        match self {
            Content::Plain(_) => false,
            Content::Events(rewritten) => {
                std::mem::replace(&mut rewritten.moved, Moved::No) == Moved::Yes
            }
        }
    }

    pub(super) fn is_end_stream(&self) -> bool {
        match self {
            Content::Plain(incoming) => incoming.is_end_stream(),
            Content::Events(_) => false,
        }
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        match self {
            Content::Plain(incoming) => incoming.size_hint(),
            Content::Events(_) => SizeHint::default(),
        }
    }
}

impl Rewritten {
    fn poll_frame(&mut self, cx: &mut Context<'_>, record: &Record) -> Polled {
        let plan = &record.installed().plan;
        let terms = Terms {
            depth: plan.limits.depth,
            now: clock::rfc3339,
        };
        loop {
            while let Some(step) = self.rewriter.step(&plan.events, terms) {
                if let Some(frame) = self.noted(step, record) {
                    return Poll::Ready(Some(Ok(frame)));
                }
            }
            if self.state == State::Over {
                return Poll::Ready(None);
            }
            match Pin::new(&mut self.incoming).poll_frame(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Ok(frame))) => {
                    self.moved = Moved::Yes;
                    // Trailers of the one stream say nothing of the other.
                    if let Ok(chunk) = frame.into_data() {
                        self.rewriter.feed(&chunk);
                    }
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error))),
                Poll::Ready(None) => {
                    self.state = State::Over;
                    let last = self.rewriter.finish(&plan.events, terms);
                    if let Some(frame) = last.and_then(|step| self.noted(step, record)) {
                        return Poll::Ready(Some(Ok(frame)));
                    }
                }
            }
        }
    }

    /// Counts what became of an event; what leaves of it, if anything does.
    fn noted(&mut self, step: Step, record: &Record) -> Option<Frame<Bytes>> {
        if let Some(became) = step.became {
            let (label, side) = (record.label(), record.side());
            record.worker().count(|shard| {
                shard.event(label, side, became.kind);
                shard.dropped(label, step.dropped as u64);
            });
            if let (Some(why), Told::NotYet) = (became.why, self.told) {
                self.told = Told::Yes;
                let streams = &record.installed().plan.streams;
                let stream = record.stream().and_then(|stream| streams.all().get(stream));
                let stream = stream.map_or("", |stream| stream.name.as_str());
                tracing::warn!(
                    stream,
                    why,
                    "an event was left out; further ones of this stream are only counted"
                );
            }
        }
        (!step.out.is_empty()).then(|| Frame::data(step.out))
    }
}
