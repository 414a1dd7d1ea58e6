//! Routes whose REST side is a frame of a legacy socket: one JSON value in place of an HTTP request.
//!
//! A frame is treated as a body without a head, so such a route shares patterns, order and checks with all others. Its
//! calls are looked up separately. Laws: a frame never matches an HTTP route, nor an HTTP call a frame. `{id}` in a
//! frame whose RPC side has no `id` is the id of the call, which JSON-RPC carries outside its params.
//!
//! Used by `config` and `route`.

use http::Method;

use super::definition::Route;
use super::parse::RestSpelling;
use super::template::Template;
use super::wire::Wire;
use crate::outcome::{BodyPattern, RowSource};
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::{Bindings, BoundValue, PatternError, Scalar, Shape, SourceTree};

/// The hole of a frame that is the id of the call.
pub(super) const ID: &str = "id";

/// Placeholder for the method of a frame; never compared with that of an HTTP call.
const METHOD: &[u8] = b"FRAME";

/// Placeholder for the request line of a frame in examples.
pub const FRAME: &str = "FRAME /";

/// Returns the method in the head of a frame.
pub(super) fn frame_method() -> Method {
    Method::from_bytes(METHOD).unwrap_or(Method::POST)
}

/// Returns the empty head of a frame.
pub(super) fn spelling() -> RestSpelling {
    RestSpelling {
        method: frame_method(),
        path: Template {
            segments: Vec::new(),
            holes: Vec::new(),
            verb: None,
        },
        query: Vec::new(),
    }
}

/// Renders a frame in one line, for people: the literals that identify it.
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

/// Fails unless the frame is an object with members: nothing else can be distinguished from other messages.
pub(super) fn check(frame: &SourceTree) -> Result<(), PatternError> {
    check_object(frame).map_err(|error| error.under("frame"))
}

/// Fails unless a message of an old dialect is an object with members.
pub(super) fn check_object(frame: &SourceTree) -> Result<(), PatternError> {
    match frame {
        SourceTree::Table(members) if !members.is_empty() => Ok(()),
        SourceTree::Table(_)
        | SourceTree::Text(_)
        | SourceTree::Literal(_)
        | SourceTree::List(_) => {
            let what = "a message must be an object with a member that identifies it, such as `{ command = \"run\" }`";
            Err(PatternError::new(what))
        }
    }
}

/// Fails when a row answers in the other protocol.
pub(super) fn refuse_other_speech(
    rows: &[RowSource],
    rest_protocol: Wire,
) -> Result<(), Vec<PatternError>> {
    let strange = rows
        .iter()
        .filter(|row| row.rest.rest_protocol != rest_protocol);
    let errors = strange.map(|row| {
        let what = match rest_protocol {
            Wire::Http if row.rest.body.is_none() => "`rest` is missing",
            Wire::Http => "the route has `rest`, so its answers are HTTP responses; write `rest`",
            Wire::Old => "the route has `old` over HTTP, so its answers are HTTP responses; write `old = { body = … }`",
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

/// Fails when the route has a `silence` but no row for it.
pub(super) fn hears_silence(route: &Route) -> Result<(), PatternError> {
    let mut rows = route.outcomes.rows().iter();
    if route.silence.is_none() || rows.any(|row| matches!(row.rest.body, BodyPattern::Nothing)) {
        return Ok(());
    }
    let what = "no outcome covers silence; write one without `frame`, or leave `silence` out";
    Err(PatternError::new(what).under("silence"))
}

impl Route {
    /// Returns true when the REST side is a message of an old RPC dialect.
    #[must_use]
    pub fn is_old(&self) -> bool {
        self.rest_protocol.is_old()
    }

    /// Returns true when the REST side is a frame.
    #[must_use]
    pub fn is_frame(&self) -> bool {
        self.rest_protocol == Wire::Frame
    }

    /// Returns the id of a call in the type that its frame has; absent if the frame has no place for one.
    #[must_use]
    pub fn id_for(&self, number: u64) -> BoundValue {
        let Some(hole) = self.id else {
            return BoundValue::Absent;
        };
        let fact = self.facts.holes.get(hole);
        let counts = |shape: &Shape| match shape {
            Shape::One(Scalar::Integer | Scalar::Number) => true,
            Shape::Any => !self.is_frame(),
            Shape::One(_)
            | Shape::Repeated(_)
            | Shape::Separated(..)
            | Shape::Object
            | Shape::Array
            | Shape::Null => false,
        };
        BoundValue::Value(if fact.is_some_and(|fact| counts(&fact.shape)) {
            Json::written(number.to_string())
        } else {
            Json::string(&number.to_string())
        })
    }

    /// Returns the bindings of a frame that does not match: only its id, so that an error can be addressed.
    #[must_use]
    pub fn bindings_with_id_only(&self, frame: &Json) -> Bindings {
        let mut call = Bindings::new(self.facts.holes.len());
        for hole in 0..self.facts.holes.len() {
            call.set(hole, BoundValue::Absent);
        }
        let pointer = self.id.and_then(|hole| {
            let pointer = self.rest_call.body.as_ref()?.path_of(hole)?;
            Some((hole, pointer))
        });
        if let Some((hole, pointer)) = pointer {
            let mut value = Some(frame.clone());
            for name in pointer.split('/').skip(1) {
                value = value.and_then(|value| value.member(name));
            }
            call.set(hole, value.map_or(BoundValue::Absent, BoundValue::Value));
        }
        call
    }
}
