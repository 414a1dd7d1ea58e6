//! Routes whose REST side is a message of an old RPC dialect over HTTP.
//!
//! Such a message is a REST call to an RPC path, which its body or query identifies. Laws: a message that an old route
//! reads is no JSON-RPC call of a route; `{id}` in a message whose RPC side has no `id` is the id of the call.
//!
//! Used by `route` and `gateway`.

use super::definition::Route;
use super::frame;
use super::options::has_content;
use super::parse::{RestSpelling, literal_path};
use super::source::RouteSource;
use super::template::Template;
use super::wire::Wire;
use crate::form::BodyFormat;
use dualgauge_patterns::pattern::{BoundValue, Pattern, PatternError};
use dualgauge_patterns::side::Side;

/// The presence of routes with old messages over HTTP.
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
        let over_http = |route: &&Route| route.rest_protocol == Wire::Old;
        let mut with_version = routes.iter().filter(over_http);
        let mut on_sockets = routes.iter().filter(|route| route.is_frame());
        OldRoutes {
            on_sockets_with_version: on_sockets.any(Route::has_version),
            any: routes.iter().any(|route| over_http(&route)),
            with_version: with_version.any(Route::has_version),
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

/// Fails when nothing in a message identifies it.
pub(super) fn check(source: &RouteSource, rest: &RestSpelling) -> Result<(), PatternError> {
    if source.has_no_body() {
        let what = "an old message is its body; leave `body` out and write `query` for `GET`";
        return Err(PatternError::new(what).under("body"));
    }
    match (source.named_body(), has_content(&rest.method)) {
        (Some(body), _) => frame::check_object(body).map_err(|error| error.under("body")),
        (None, true) => {
            let what =
                "the message is missing; write its members, such as `body = { method = \"get\" }`";
            Err(PatternError::new(what).under("body"))
        }
        (None, false) if rest.query.is_empty() && source.query.is_empty() => {
            let what = "nothing identifies the message; write `query = { method = \"get\" }`";
            Err(PatternError::new(what).under("query"))
        }
        (None, false) => Ok(()),
    }
}

/// Returns the further paths at which old messages arrive.
pub(super) fn other_paths(source: &RouteSource) -> Result<Vec<Template>, PatternError> {
    let paths = source.old.iter().flat_map(|old| &old.paths);
    paths.map(|path| literal_path(path)).collect()
}

impl Route {
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
}
