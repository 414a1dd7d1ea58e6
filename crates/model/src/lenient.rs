//! Irregular paths: a lenient server may read them as the path of a route, although the route table does not.
//!
//! Such a server decodes `%2F`, treats `\` as `/`, ignores text after a `;`, resolves dot segments, merges slashes,
//! ends a path at NUL, or ignores letter case. A path is tried in each combination of these readings and compared with
//! the templates of all routes. Laws: a regular path costs one scan of its bytes; callers do not ask for a path that
//! the strict reading assigns to a route.
//!
//! Used by `check`, `plan`, `rejections` and `routing`.

mod reading;
mod tree;

use http::Method;

use super::local_reply::LocalReplies;
use super::route::{Route, RouteTable, SegmentPattern, Segments, Template};
use super::stream::Streams;
use dualgauge_patterns::side::Side;
use tree::{End, Part, Tree};

pub use tree::Target;

/// All paths that the proxy serves, in the form that a lenient server compares.
#[derive(Debug, Default)]
pub struct LenientPaths {
    tree: Tree,
    /// True if literals of a path have capital letters; then a path in lower case may be irregular.
    has_capitals: bool,
}

impl LenientPaths {
    /// Returns the paths that REST clients can call: those of routes, streams and local replies, and of JSON-RPC.
    #[must_use]
    pub fn new(
        routes: &RouteTable,
        streams: &Streams,
        locals: &LocalReplies,
        rpc: &[String],
    ) -> LenientPaths {
        let mut paths = LenientPaths::default();
        for (index, route) in routes.routes().iter().enumerate() {
            if !route.is_frame() && route.enters_from(Side::Rest) {
                paths.add_route(index, route);
            }
        }
        for (index, stream) in streams.all().iter().enumerate() {
            for side in Side::ALL {
                let path = stream.path(side).as_str();
                paths.add(path, Some(Method::GET), Target::Stream(index));
            }
        }
        for (method, path) in locals.rest_paths() {
            paths.add(path, Some(method.clone()), Target::Local);
        }
        for path in rpc {
            paths.add(path, None, Target::Rpc);
        }
        paths
    }

    fn add_route(&mut self, index: usize, route: &Route) {
        let path = &route.rest_call.path;
        let (segments, _) = path.before_slash();
        let parts = segments.iter().map(|segment| match segment {
            SegmentPattern::Literal(text) => Part::Literal(text),
            SegmentPattern::Text(text) => Part::Text(text),
            SegmentPattern::One => Part::One,
            SegmentPattern::Rest => Part::Rest,
        });
        let verb = path.verb.as_deref();
        let end = End {
            method: Some(route.method.clone()),
            verb: verb.map(|verb| reading::canonical(verb).into_owned()),
            target: Target::Route(index),
        };
        self.insert(parts.chain(verb.map(Part::Verb)), end);
    }

    fn add(&mut self, path: &str, method: Option<Method>, target: Target) {
        let segments = Segments::split(path.trim_end_matches('/'));
        let parts: Vec<Part<'_>> = segments.iter().map(part).collect();
        let end = End {
            method,
            verb: None,
            target,
        };
        self.insert(parts.into_iter(), end);
    }

    fn insert<'p>(&mut self, parts: impl Iterator<Item = Part<'p>> + Clone, end: End) {
        let is_mixed = |part: Part<'_>| match part {
            Part::Literal(text) | Part::Verb(text) => reading::has_uppercase(text),
            Part::Text(text) => {
                let mut after = text.after().iter();
                reading::has_uppercase(text.before())
                    || after.any(|text| reading::has_uppercase(text))
            }
            Part::One | Part::Rest => false,
        };
        if parts.clone().any(is_mixed) {
            self.has_capitals = true;
        }
        self.tree.insert(parts, end);
    }

    /// Returns the owner of a path according to a lenient server, for a path without an owner in the strict reading.
    ///
    /// `counts` excludes owners whose path equals this one strictly but for a trailing slash.
    #[must_use]
    pub fn find(
        &self,
        method: &Method,
        path: &str,
        counts: impl Fn(Target) -> bool,
    ) -> Option<Target> {
        let is_regular =
            |path: &str| !self.has_capitals && !reading::may_be_irregular(path.as_bytes());
        if is_regular(path) {
            return None;
        }
        // Escapes of unreserved characters do not change a path.
        let normal = Segments::split(path).normal();
        if is_regular(&normal) {
            return None;
        }
        reading::find_reading(&normal, |read| self.tree.find(method, read, &counts))
    }
}

/// Returns a segment of a stream's or a local reply's path as a template part.
fn part(segment: &str) -> Part<'_> {
    match segment.starts_with('{') {
        true => Part::One,
        false => Part::Literal(segment),
    }
}

/// Returns a path that matches a template: each hole has the value `1`.
#[must_use]
pub fn sample(path: &Template) -> String {
    let mut sample = String::new();
    for segment in &path.segments {
        sample.push('/');
        match segment {
            SegmentPattern::Literal(text) => sample.push_str(text),
            SegmentPattern::Text(text) => {
                sample.push_str(text.before());
                for text in text.after() {
                    sample.push('1');
                    sample.push_str(text);
                }
            }
            SegmentPattern::One | SegmentPattern::Rest => sample.push('1'),
        }
    }
    if let Some(verb) = &path.verb {
        sample.push(':');
        sample.push_str(verb);
    }
    match sample.is_empty() {
        true => "/".to_owned(),
        false => sample,
    }
}

/// Returns other spellings of a path that a lenient server may read as this one.
#[must_use]
pub fn spellings(path: &str) -> Vec<String> {
    let inside = path.strip_prefix('/').unwrap_or(path);
    let letter = |byte: &u8| byte.is_ascii_alphabetic();
    let case = path.bytes().position(|byte| letter(&byte)).map(|at| {
        let (before, rest) = path.split_at(at);
        let (letter, rest) = rest.split_at(1);
        let other = match letter.to_ascii_uppercase() == letter {
            true => letter.to_ascii_lowercase(),
            false => letter.to_ascii_uppercase(),
        };
        format!("{before}{other}{rest}")
    });
    let joined = inside
        .split_once('/')
        .into_iter()
        .flat_map(|(first, rest)| {
            ["%2F", "%5C", "%252F"].map(|slash| format!("/{first}{slash}{rest}"))
        });
    let (first, rest) = inside.split_at(inside.find('/').unwrap_or(inside.len()));
    let single = [
        format!("/{first};x=1{rest}"),
        format!("/x%2F..%2F{inside}"),
        format!("/x/%2e%2e/{inside}"),
        format!("//{inside}"),
        format!("{path}%00"),
    ];
    case.into_iter().chain(joined).chain(single).collect()
}

#[cfg(test)]
mod tests;
