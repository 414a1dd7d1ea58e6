//! Routes: one operation seen from both sides, and the table that finds the route of a call.
//!
//! The short form pairs `METHOD /path/{hole}?key={hole}` with the name of an RPC method; params is an
//! object of the holes by name and of the body's members. Laws: which route a call gets does not depend on
//! the order in which routes are declared; among those that fit, the most specific one is taken, and two
//! that share a call without either being more specific cannot be loaded.

mod parse;
mod path;
mod specificity;
mod table;
mod url;

use std::time::Duration;

use http::Method;

use super::pattern::Hole;

pub use parse::{RouteSource, parse_route};
pub use path::{Found, PathError, Segments};
pub use table::{RestSelection, RouteTable, TableError, Unsafe};
pub use url::{BindError, Query, UrlValues, read as read_url, write as write_url};

/// One operation seen from both sides.
#[derive(Debug, Clone)]
pub struct Route {
    /// The name that flags, metrics and logs know it by.
    pub name: String,
    /// The REST side as it was written: `GET /items/{id}`.
    pub rest: String,
    /// The HTTP method.
    pub method: Method,
    /// The path of the REST side.
    pub path: Template,
    /// The query of the REST side.
    pub query: Vec<QueryItem>,
    /// The method of the RPC side.
    pub rpc: String,
    /// What a second call would do.
    pub effect: Effect,
    /// Bounds the upstream's answer in place of the upstream's own timeout.
    pub timeout: Option<Duration>,
    /// What to call instead, once the route is retired; in the words of each side's reader.
    pub successor: Option<String>,
    /// Query names and members that only siblings of this route know: a call that bears one is not its.
    pub(super) foreign: Foreign,
}

/// What siblings know and a route does not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Foreign {
    /// Names in the query.
    pub query: Vec<String>,
    /// Members of params.
    pub members: Vec<String>,
}

/// What a second call would do (RFC 9110 §9.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Reads only.
    Safe,
    /// Doing it twice is doing it once.
    Idempotent,
    /// Anything else.
    Unsafe,
}

impl Effect {
    /// The word used in configuration and reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Effect::Safe => "safe",
            Effect::Idempotent => "idempotent",
            Effect::Unsafe => "unsafe",
        }
    }

    /// What an HTTP method promises.
    #[must_use]
    pub fn of(method: &Method) -> Effect {
        if method.is_safe() {
            Effect::Safe
        } else if method.is_idempotent() {
            Effect::Idempotent
        } else {
            Effect::Unsafe
        }
    }

    /// Whether the call may be sent again when it is not known to have been processed.
    #[must_use]
    pub fn may_repeat(self) -> bool {
        match self {
            Effect::Safe | Effect::Idempotent => true,
            Effect::Unsafe => false,
        }
    }
}

/// Whether calls of a route carry a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carries {
    /// The body is an object whose members are members of params.
    Members,
    /// GET, HEAD, DELETE, OPTIONS and TRACE: content has no defined meaning there (RFC 9110 §9.3).
    Nothing,
}

impl Route {
    /// Whether calls of this route carry a body.
    #[must_use]
    pub fn carries(&self) -> Carries {
        match self.method {
            Method::GET | Method::HEAD | Method::DELETE | Method::OPTIONS | Method::TRACE => {
                Carries::Nothing
            }
            _ => Carries::Members,
        }
    }

    /// The holes of path and query, in that order.
    pub fn holes(&self) -> impl Iterator<Item = &Hole> {
        let path = self.path.holes.iter().map(|placed| &placed.hole);
        path.chain(self.query.iter().filter_map(|item| match &item.value {
            QueryValue::Hole(hole) => Some(hole),
            QueryValue::Literal(_) => None,
        }))
    }

    /// What siblings know and this route does not.
    #[must_use]
    pub fn foreign(&self) -> &Foreign {
        &self.foreign
    }
}

/// The path of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// What each segment must be.
    pub segments: Vec<SegmentPattern>,
    /// Where the holes lie.
    pub holes: Vec<PlacedHole>,
    /// The literal behind the last `:`, as in `/v1/{name}:cancel`.
    pub verb: Option<String>,
}

impl Template {
    /// The only path that fits, in normal form, where there is no hole.
    #[must_use]
    pub fn literal(&self) -> Option<String> {
        let mut path = String::new();
        for segment in &self.segments {
            let SegmentPattern::Literal(text) = segment else {
                return None;
            };
            path.push('/');
            path.push_str(text);
        }
        match &self.verb {
            Some(verb) => Some(format!("{path}:{verb}")),
            None if path.is_empty() => Some("/".to_owned()),
            None => Some(path),
        }
    }
}

/// What a segment of a path must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SegmentPattern {
    /// This text, in normal form.
    Literal(String),
    /// Anything that is not empty.
    One,
    /// Any number of segments, none among them; always the last.
    Rest,
}

/// A hole and the segments that are its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedHole {
    /// The hole.
    pub hole: Hole,
    /// Its first segment.
    pub start: usize,
    /// The segment behind its last one; a [`SegmentPattern::Rest`] counts as one here.
    pub end: usize,
}

/// One `key=value` of a query pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryItem {
    /// The name in the URL.
    pub key: String,
    /// What stands behind it.
    pub value: QueryValue,
}

/// What stands behind a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueryValue {
    /// This text.
    Literal(String),
    /// A value of params.
    Hole(Hole),
}

#[cfg(test)]
mod tests;
