//! Streams: one stream of events seen from both sides, at a path of each.
//!
//! Who gets which of the two is decided as for routes; what becomes of each event on its way from one side to the
//! other is said here. Laws: what leaves does not depend on how the stream was cut on its way; a stream none of whose
//! events a pair takes leaves as the bytes it was.

mod path;
mod rewrite;

use std::time::Duration;

use http::Method;

use super::plan::{Plan, without_slash};
use super::rollout::{self, Caller, Decision, DecisionReason, Kill, Stage};
use super::route::Segments;
use super::side::Side;

pub use path::{StreamPath, StreamPathError};
pub use rewrite::{EventResult, EventResultKind, RewriteStep, Rewriter};

/// One stream, seen from both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stream {
    /// The name that flags, metrics and logs know it by.
    pub name: String,
    /// The path that its legacy clients ask for.
    pub rest: StreamPath,
    /// Its path at the RPC upstream.
    pub rpc: StreamPath,
    /// After what time it is ended, so that its client begins it anew.
    pub max_age: Option<Duration>,
}

impl Stream {
    /// Its path on a side.
    #[must_use]
    pub fn path(&self, side: Side) -> &StreamPath {
        match side {
            Side::Rest => &self.rest,
            Side::Rpc => &self.rpc,
        }
    }
}

impl Stream {
    /// The path on the other side of what was asked for on one.
    #[must_use]
    pub fn other_path(&self, side: Side, asked: &str) -> Option<String> {
        let asked = Segments::split(asked).normal();
        let path = self.path(side);
        // An RPC path works with a slash at its end as well.
        let holes = path
            .read(&asked)
            .or_else(|| path.read(without_slash(&asked)))?;
        self.path(side.other()).write(&holes)
    }
}

/// All streams.
#[derive(Debug, Clone, Default)]
pub struct Streams {
    all: Vec<Stream>,
}

/// A stream that a client asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamMatch {
    /// The stream, by its place.
    pub stream: usize,
    /// The side whose path was asked for.
    pub side: Side,
}

impl Streams {
    /// The streams; of two that fit a path the first has it.
    #[must_use]
    pub fn new(all: Vec<Stream>) -> Streams {
        Streams { all }
    }

    /// All of them, as they are declared.
    #[must_use]
    pub fn all(&self) -> &[Stream] {
        &self.all
    }

    /// The stream that a request asks for.
    #[must_use]
    pub fn find(&self, method: &Method, path: &str) -> Option<StreamMatch> {
        if self.all.is_empty() || *method != Method::GET {
            return None;
        }
        let path = Segments::split(path).normal();
        self.each(|own| own.read(&path).is_some()).next()
    }

    /// The streams that another program may take a path for, though it is the path of none.
    #[must_use]
    pub fn near(&self, method: &Method, path: &str) -> Vec<StreamMatch> {
        if self.all.is_empty() || *method != Method::GET {
            return Vec::new();
        }
        let segments = Segments::split(path);
        let (normal, tidied) = (segments.normal(), segments.tidied());
        let slashed = format!("{tidied}/");
        let is_odd = segments.ambiguity().is_some();
        let near = |own: &StreamPath| {
            own.read(&tidied).is_some()
                || own.read(&slashed).is_some()
                || is_odd && (own.is_like(&normal) || own.is_like(&slashed))
        };
        self.each(near).collect()
    }

    /// Each path of a stream that is as wanted.
    fn each(&self, fits: impl Fn(&StreamPath) -> bool) -> impl Iterator<Item = StreamMatch> {
        let all = self.all.iter().enumerate();
        let each = all.flat_map(|(stream, own)| Side::ALL.map(|side| (stream, own, side)));
        each.filter(move |(_, own, side)| fits(own.path(*side)))
            .map(|(stream, _, side)| StreamMatch { stream, side })
    }
}

/// Decides for a client that asks for a stream now. A second stream is never opened only to compare.
#[must_use]
pub fn decide(
    plan: &Plan,
    (caller, headers): (Caller<'_>, &http::HeaderMap),
    followed: StreamMatch,
) -> Decision {
    let side = followed.side;
    if plan.rollout.kill == Kill::On {
        let stage = match plan.upstream_of_stream(followed.stream, side) {
            Some(_) => Stage::Passthrough,
            None => Stage::Translate,
        };
        return Decision::plain(stage, DecisionReason::Killed);
    }
    let name = plan.streams.all.get(followed.stream);
    plan.rollout.decide(&rollout::CallFacts {
        caller,
        route: name.map_or("", |stream| &stream.name),
        side,
        headers,
        session: None,
    })
}

#[cfg(test)]
mod tests;
