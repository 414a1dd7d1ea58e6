//! Routes whose REST side is a message of an old RPC dialect, over HTTP or on a socket.
//!
//! Over HTTP such a message is a REST call to an RPC path, which its body or query identifies. On a socket it is a frame:
//! a body without a head, so it shares patterns, order and checks with all others, and its calls are looked up separately.
//! Laws: a message that an old route reads is no JSON-RPC call of a route; a frame never matches an HTTP route, nor an
//! HTTP call a frame; `{id}` in a message whose RPC side has no `id` is the id of the call.
//!
//! Used by `config`, `route` and `gateway`.

use http::Method;

use super::definition::Route;
use super::options::has_content;
use super::parse::{RestSpelling, literal_path};
use super::source::{OldSource, RouteSource};
use super::template::Template;
use super::wire::Wire;
use crate::form::BodyFormat;
use crate::outcome::{BodyPattern, RowSource};
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::{
    Bindings, BoundValue, Pattern, PatternError, Scalar, Shape, SourceTree,
};
use dualgauge_patterns::side::Side;

/// The presence of routes with old messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OldRoutes {
    /// True if a route has them.
    pub any: bool,
    /// True if such messages may have `jsonrpc: "2.0"`.
    pub with_version: bool,
    /// True if messages on sockets may have it.
    pub on_sockets_with_version: bool,
}

impl OldRoutes {
    pub(super) fn new(routes: &[Route]) -> OldRoutes {
        let old = routes.iter().filter(|route| route.is_old());
        let (on_sockets, over_http): (Vec<&Route>, Vec<&Route>) =
            old.partition(|route| route.is_frame());
        let has_version = |routes: &[&Route]| routes.iter().any(|route| route.has_version());
        OldRoutes {
            any: !over_http.is_empty(),
            with_version: has_version(&over_http),
            on_sockets_with_version: has_version(&on_sockets),
        }
    }
}

/// The content of a request body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyContent {
    /// Content with the media type of its format.
    Typed(BodyFormat),
    /// A message of an old dialect: JSON with any media type, or none.
    OldMessage,
}

/// The member that JSON-RPC 2.0 added to each message (JSON-RPC 2.0 §4).
const VERSION: &str = "jsonrpc";

/// The hole of an old message that is the id of the call.
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

/// Fails when nothing in a message identifies it.
pub(super) fn check(source: &RouteSource, rest: &RestSpelling) -> Result<(), PatternError> {
    let protocol = source.rest_protocol();
    let what = match (&source.body, has_content(&rest.method)) {
        (Some(SourceTree::Table(members)), _) if !members.is_empty() => return Ok(()),
        (Some(_), _) if protocol == Wire::Old && source.has_no_body() => {
            "an old message is its body; leave `body` out and write `query` for `GET`"
        }
        (Some(_), _) => {
            "a message must be an object with a member that identifies it, such as `{ command = \"run\" }`"
        }
        (None, true) => {
            "the message is missing; write its members, such as `body = { method = \"get\" }`"
        }
        (None, false) if rest.query.is_empty() && source.query.is_empty() => {
            let what = "nothing identifies the message; write `query = { method = \"get\" }`";
            return Err(PatternError::new(what).under("query"));
        }
        (None, false) => return Ok(()),
    };
    Err(PatternError::new(what).under(protocol.content()))
}

/// Returns the further paths at which old messages arrive.
pub(super) fn other_paths(source: &RouteSource) -> Result<Vec<Template>, PatternError> {
    let paths = source.old.iter().flat_map(|old| &old.paths);
    paths.map(|path| literal_path(path)).collect()
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

impl RouteSource {
    /// Returns a route with this message on a socket.
    #[must_use]
    pub fn of_frame(frame: SourceTree) -> RouteSource {
        RouteSource {
            rest: frame_line(&frame),
            body: Some(frame),
            old: Some(OldSource::on_socket()),
            ..RouteSource::default()
        }
    }
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

    /// Returns true when messages of an old route may have the version of JSON-RPC 2.0. A message on a socket has it only
    /// if it is declared.
    pub(super) fn has_version(&self) -> bool {
        let Some(Pattern::Object(object)) = &self.rest_call.body else {
            return false;
        };
        let mut members = object.members.iter();
        let is_declared = members.any(|(name, _)| name == VERSION);
        self.is_old() && (is_declared || object.rest.is_some() && !self.is_frame())
    }

    /// Returns true when a hole is the id of the calls of an old dialect over HTTP, which each response repeats.
    #[must_use]
    pub fn checks_id(&self, hole: usize) -> bool {
        self.rest_protocol == Wire::Old && self.id == Some(hole)
    }

    /// Returns the content of the body of calls.
    #[must_use]
    pub fn body_content(&self) -> BodyContent {
        match self.is_old() {
            true => BodyContent::OldMessage,
            false => BodyContent::Typed(self.rest_call.format),
        }
    }

    /// Fails when the proxy cannot write the id of a call to an old server: it writes a number of its own.
    pub(super) fn check_id(&self) -> Result<(), PatternError> {
        let BoundValue::Value(number) = self.id_for(1) else {
            return Ok(());
        };
        let fact = self.id.and_then(|hole| self.facts.holes.get(hole));
        match fact.filter(|_| self.enters_from(Side::Rpc)) {
            Some(fact) if fact.shape.check(&number).is_err() => {
                let what = format!(
                    "the proxy writes `1` as the id, which is not {}; write `{{id}}`, `{{id:string}}`, `{{id:integer}}` or `{{id:number}}`",
                    fact.shape.described()
                );
                Err(PatternError::new(what).under(self.rest_protocol.as_str()))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Fails when no outcome of an old route over HTTP maps a success: the built-in outcomes do not apply.
    pub(super) fn check_old_outcomes(&self) -> Result<(), PatternError> {
        if !self.is_old() || self.is_frame() || !self.expects_reply {
            return Ok(());
        }
        match self.outcomes.rows().iter().any(|row| row.maps_success()) {
            true => Ok(()),
            false => {
                let what = "no outcome describes a success: the built-in ones know no old dialect; write `[[route.outcome]]` with `old` and `rpc.result`";
                Err(PatternError::new(what).under("old"))
            }
        }
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
