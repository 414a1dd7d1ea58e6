//! Routes whose REST side is a frame of a legacy socket: one JSON value in place of an HTTP request.
//!
//! A frame is a body without a head, so that such a route has the patterns, the order and the proof of every other one;
//! only its calls are never looked for among those of HTTP. Laws: a frame is no HTTP call and never the other way
//! round; `{id}` in a frame whose RPC side names no `id` is the id of the call, which both protocols carry beside it.

use http::{HeaderMap, Method};

use super::parse::RestSpelling;
use super::{Route, RouteTable, Template};
use crate::domain::json::Json;
use crate::domain::outcome::{BodyPattern, RowSource};
use crate::domain::pattern::{Bindings, BoundValue, PatternError, Scalar, Shape, SourceTree};
use crate::domain::translate::RestHead;

use super::segments::Segments;

/// How the REST side of a route is spoken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Wire {
    /// An HTTP request, and its answer.
    #[default]
    Http,
    /// A frame of a socket, and a frame or silence.
    Frame,
}

impl Wire {
    /// The key of the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Wire::Http => "rest",
            Wire::Frame => "frame",
        }
    }

    /// What its content is called.
    pub(in crate::domain) const fn content(self) -> &'static str {
        match self {
            Wire::Http => "body",
            Wire::Frame => "frame",
        }
    }
}

/// The hole of a frame that is the id of the call.
pub(super) const ID: &str = "id";

/// What stands for the method of a frame. No HTTP call is compared with it.
const METHOD: &[u8] = b"FRAME";

/// What stands for the line of a frame in examples.
pub const FRAME: &str = "FRAME /";

fn method() -> Method {
    Method::from_bytes(METHOD).unwrap_or(Method::POST)
}

/// The head that a frame has not.
pub(super) fn spelling() -> RestSpelling {
    RestSpelling {
        method: method(),
        path: Template {
            segments: Vec::new(),
            holes: Vec::new(),
            verb: None,
        },
        query: Vec::new(),
    }
}

/// A frame in one line, for people: the texts that tell it from others.
#[must_use]
pub fn frame_line(frame: &SourceTree) -> String {
    let mut line = "frame".to_owned();
    if let SourceTree::Table(members) = frame {
        for (name, member) in members {
            if let SourceTree::Text(text) = member
                && !text.contains('{')
            {
                line.push_str(&format!(" {name}={text}"));
            }
        }
    }
    line
}

/// A frame is an object: nothing else can be told from a message of another kind.
pub(super) fn check(frame: &SourceTree) -> Result<(), PatternError> {
    match frame {
        SourceTree::Table(members) if !members.is_empty() => Ok(()),
        SourceTree::Table(_)
        | SourceTree::Text(_)
        | SourceTree::Literal(_)
        | SourceTree::List(_) => {
            let what = "a frame is an object with a member that tells it from others, such as `{ command = \"run\" }`";
            Err(PatternError::new(what).under("frame"))
        }
    }
}

/// Frames are answered by frames, requests by answers.
pub(super) fn refuse_other_speech(
    rows: &[RowSource],
    speech: Wire,
) -> Result<(), Vec<PatternError>> {
    let strange = rows.iter().filter(|row| row.rest.speech != speech);
    let errors = strange.map(|row| {
        let what = match speech {
            Wire::Http if row.rest.body.is_none() => "`rest` is missing",
            Wire::Http => "the route has `rest`, so its answers are no frames; write `rest`",
            Wire::Frame => "the route has `frame`, so its answers are frames, or nothing; write `frame`, or leave it out",
        };
        PatternError::new(what).under(&row.key)
    });
    let errors: Vec<PatternError> = errors.collect();
    if errors.is_empty() {
        Ok(())
    } else {
        Err(errors)
    }
}

/// A silence is read as a row, so there must be one.
pub(super) fn hears_silence(route: &Route) -> Result<(), PatternError> {
    let mut rows = route.outcomes.rows().iter();
    if route.silence.is_none() || rows.any(|row| matches!(row.rest.body, BodyPattern::Nothing)) {
        return Ok(());
    }
    let what =
        "no outcome says what a silence means; write one without `frame`, or leave `silence` out";
    Err(PatternError::new(what).under("silence"))
}

impl Route {
    /// Whether its REST side is a frame.
    #[must_use]
    pub fn is_frame(&self) -> bool {
        self.speech == Wire::Frame
    }

    /// The id of a call as its frame has it; none where the frame has no place for one.
    #[must_use]
    pub fn id_for(&self, number: u64) -> BoundValue {
        let Some(hole) = self.id else {
            return BoundValue::Absent;
        };
        let fact = self.facts.holes.get(hole);
        let counts = |shape: &Shape| matches!(shape, Shape::One(Scalar::Integer | Scalar::Number));
        BoundValue::Value(if fact.is_some_and(|fact| counts(&fact.shape)) {
            Json::written(number.to_string())
        } else {
            Json::string(&number.to_string())
        })
    }

    /// What is known of a call whose frame does not fit: its id, so that it can be told so.
    #[must_use]
    pub fn unread(&self, frame: &Json) -> Bindings {
        let mut call = Bindings::new(self.facts.holes.len());
        for hole in 0..self.facts.holes.len() {
            call.set(hole, BoundValue::Absent);
        }
        let place = self.id.and_then(|hole| {
            let place = self.rest_call.body.as_ref()?.place_of(hole)?;
            Some((hole, place))
        });
        if let Some((hole, place)) = place {
            let mut value = Some(frame.clone());
            for name in place.split('/').skip(1) {
                value = value.and_then(|value| value.member(name));
            }
            call.set(hole, value.map_or(BoundValue::Absent, BoundValue::Value));
        }
        call
    }
}

impl RouteTable {
    /// Finds the route of a frame: the nearest one where none fits that has the literals of the frame.
    #[must_use]
    pub fn select_frame(&self, frame: &Json) -> Option<usize> {
        let segments = Segments::split("/");
        let head = RestHead {
            segments: &segments,
            query: None,
            headers: &HeaderMap::new(),
        };
        let group = self.entered_by((&segments, &method()))?;
        self.select_by_body(group, head, Some(frame))
    }
}
