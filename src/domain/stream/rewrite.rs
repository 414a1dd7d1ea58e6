//! A stream on its way to the other side, event by event.

use bytes::Bytes;

use crate::domain::event::{Events, Form, Rewriting, Told};
use crate::domain::side::Side;
use crate::domain::sse::{Block, Content, MESSAGE, Piece, Reader};
use crate::domain::translate::Terms;

/// Rewrites one stream.
#[derive(Debug)]
pub struct Rewriter {
    reader: Reader,
    /// The side that the stream comes from.
    from: Side,
    before: Before,
}

/// What was made of the event before, for a line feed that may belong to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    Left,
    Gone,
}

/// A piece of the stream for the client.
#[derive(Debug, Default)]
pub struct Step {
    /// What leaves; nothing where nobody hears of an event.
    pub out: Bytes,
    /// What became of an event, if this was one.
    pub became: Option<Became>,
    /// Members that no pattern named.
    pub dropped: usize,
}

/// What became of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// It was written for the other side.
    Rewritten,
    /// No pair takes it: it went on as the bytes it was.
    Untouched,
    /// Its pair has one side only: it was left out.
    Swallowed,
    /// A pair takes it and cannot write it, or it is too large: it was left out.
    Failed,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 4] = [
        Kind::Rewritten,
        Kind::Untouched,
        Kind::Swallowed,
        Kind::Failed,
    ];

    /// The word used in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::Rewritten => "rewritten",
            Kind::Untouched => "untouched",
            Kind::Swallowed => "swallowed",
            Kind::Failed => "failed",
        }
    }
}

/// What became of an event, with the reason where it failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Became {
    /// What.
    pub kind: Kind,
    /// The key of the pair, and what it could not write.
    pub why: Option<String>,
}

impl Became {
    fn plain(kind: Kind) -> Option<Became> {
        Some(Became { kind, why: None })
    }

    fn failed(why: String) -> Option<Became> {
        Some(Became {
            kind: Kind::Failed,
            why: Some(why),
        })
    }
}

impl Rewriter {
    /// A stream of a side's server, for clients of the other side; an event may have so many bytes.
    #[must_use]
    pub fn new(from: Side, limit: usize) -> Rewriter {
        Rewriter {
            reader: Reader::new(limit),
            from,
            before: Before::Left,
        }
    }

    /// More has come. What there was before must have been taken.
    pub fn feed(&mut self, chunk: &[u8]) {
        self.reader.feed(chunk);
    }

    /// What leaves next, if anything is there.
    pub fn step(&mut self, events: &Events, terms: Terms) -> Option<Step> {
        let piece = self.reader.next()?;
        Some(self.piece(piece, events, terms))
    }

    /// The stream has ended: what is left of it.
    pub fn finish(&mut self, events: &Events, terms: Terms) -> Option<Step> {
        let piece = self.reader.finish()?;
        Some(self.piece(piece, events, terms))
    }

    fn piece(&mut self, piece: Piece, events: &Events, terms: Terms) -> Step {
        let step = match piece {
            Piece::Between(out) => {
                return Step {
                    out,
                    ..Step::default()
                };
            }
            Piece::Feed(_) if self.before == Before::Gone => return Step::default(),
            Piece::Feed(out) => {
                return Step {
                    out,
                    ..Step::default()
                };
            }
            Piece::Oversize => Step {
                became: Became::failed("the event is larger than `limits.answer`".to_owned()),
                ..Step::default()
            },
            Piece::Event(text) => self.event(text, events, terms),
            // Nobody hears of it, but what is rewritten must not leave as it was.
            Piece::Unfinished(text) => Step {
                became: None,
                ..self.event(text, events, terms)
            },
        };
        self.before = if step.out.is_empty() {
            Before::Gone
        } else {
            Before::Left
        };
        step
    }

    fn event(&self, text: Bytes, events: &Events, terms: Terms) -> Step {
        let Some(block) = Block::read(&text) else {
            return untouched(text);
        };
        let Some(data) = block.data() else {
            // It only sets an id, or the time to wait; that is no event.
            return Step {
                out: text,
                ..Step::default()
            };
        };
        let shown = || Told::sse(block.event(), block.id(), &data, terms.depth);
        let call = || {
            let text = Bytes::copy_from_slice(data.as_bytes());
            let is_message = block.event() == MESSAGE;
            is_message.then(|| Told::rpc(&text, terms.depth)).flatten()
        };
        let (own, other, to) = match self.from {
            Side::Rpc => (call(), Some(shown()), Form::Sse),
            Side::Rest => (Some(shown()), call(), Form::Rpc),
        };
        // An event in the other form than its stream's may still be one that nobody shall hear of.
        for told in own.into_iter().chain(other) {
            match events.rewrite(&told, to, terms) {
                Rewriting::Untouched => {}
                Rewriting::Swallowed => {
                    return Step {
                        out: block.emptied().into(),
                        became: Became::plain(Kind::Swallowed),
                        dropped: 0,
                    };
                }
                Rewriting::Failed { key, why } => return failed(&block, format!("{key}: {why}")),
                Rewriting::Rewritten { told, dropped } => return rewritten(&block, &told, dropped),
            }
        }
        untouched(text)
    }
}

fn untouched(out: Bytes) -> Step {
    Step {
        out,
        became: Became::plain(Kind::Untouched),
        dropped: 0,
    }
}

fn failed(block: &Block, why: String) -> Step {
    Step {
        out: block.emptied().into(),
        became: Became::failed(why),
        dropped: 0,
    }
}

fn rewritten(block: &Block, told: &Told, dropped: usize) -> Step {
    let said = told.said();
    let message = told.message().map(|message| {
        // Between the parts of a value a line end is as good as another.
        String::from_utf8_lossy(message.as_bytes()).replace('\r', "\n")
    });
    let content = match (&said, &message) {
        (Some(said), _) => Content {
            event: &said.event,
            data: &said.data,
            id: said.id.as_deref(),
        },
        (None, message) => Content {
            event: MESSAGE,
            data: message.as_deref().unwrap_or_default(),
            id: None,
        },
    };
    match block.rewritten(content) {
        Ok(out) => Step {
            out: out.into(),
            became: Became::plain(Kind::Rewritten),
            dropped,
        },
        Err(why) => failed(block, why.to_string()),
    }
}
