//! Streams: one stream of events seen from both sides, at a path of each.
//!
//! Who gets which of the two is decided as for routes; what becomes of each event on its way from one side to the
//! other is said here. Laws: what leaves does not depend on how the stream was cut on its way; a stream none of whose
//! events a pair takes leaves as the bytes it was.

mod rewrite;

use std::collections::HashMap;
use std::time::Duration;

use http::Method;

use super::plan::Plan;
use super::rollout::{self, Caller, Decision, Kill, Stage, Why};
use super::route::{PathError, Segments};
use super::side::Side;

pub use rewrite::{Became, Kind, Rewriter, Step};

/// One stream, seen from both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stream {
    /// The name that flags, metrics and logs know it by.
    pub name: String,
    /// The path that its legacy clients ask for, in normal form.
    pub rest: String,
    /// Its path at the RPC upstream, in normal form.
    pub rpc: String,
    /// After what time it is ended, so that its client begins it anew.
    pub max_age: Option<Duration>,
}

impl Stream {
    /// Its path on a side.
    #[must_use]
    pub fn path(&self, side: Side) -> &str {
        match side {
            Side::Rest => &self.rest,
            Side::Rpc => &self.rpc,
        }
    }
}

/// All streams.
#[derive(Debug, Clone, Default)]
pub struct Streams {
    all: Vec<Stream>,
    paths: HashMap<String, Followed>,
}

/// A stream that a client asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Followed {
    /// The stream, by its place.
    pub stream: usize,
    /// The side whose path was asked for.
    pub side: Side,
    /// Why the path is refused, where only a program that tidies up would find the stream there.
    pub irregular: Option<PathError>,
}

impl Streams {
    /// The streams; of two with the same path the first has it.
    #[must_use]
    pub fn new(all: Vec<Stream>) -> Streams {
        let mut paths = HashMap::new();
        for (stream, declared) in all.iter().enumerate() {
            for side in Side::ALL {
                let followed = Followed {
                    stream,
                    side,
                    irregular: None,
                };
                let path = declared.path(side).to_owned();
                paths.entry(path).or_insert(followed);
            }
        }
        Streams { all, paths }
    }

    /// All of them, as they are declared.
    #[must_use]
    pub fn all(&self) -> &[Stream] {
        &self.all
    }

    /// The stream that a request asks for.
    #[must_use]
    pub fn find(&self, method: &Method, path: &str) -> Option<Followed> {
        if self.all.is_empty() || *method != Method::GET {
            return None;
        }
        let segments = Segments::split(path);
        match segments.irregular() {
            None => self.paths.get(&segments.normal()).copied(),
            Some(why) => {
                let found = self.paths.get(&segments.tidied()).copied()?;
                Some(Followed {
                    irregular: Some(why),
                    ..found
                })
            }
        }
    }
}

/// Decides for a client that asks for a stream now. A second stream is never opened only to compare.
#[must_use]
pub fn decide(
    plan: &Plan,
    (caller, headers): (Caller<'_>, &http::HeaderMap),
    followed: Followed,
) -> Decision {
    let side = followed.side;
    if plan.rollout.kill == Kill::On {
        let stage = match plan.upstream_of_stream(followed.stream, side) {
            Some(_) => Stage::Passthrough,
            None => Stage::Translate,
        };
        return Decision::plain(stage, Why::Killed);
    }
    let name = plan.streams.all.get(followed.stream);
    plan.rollout.decide(&rollout::Call {
        caller,
        route: name.map_or("", |stream| &stream.name),
        side,
        headers,
    })
}

#[cfg(test)]
mod tests;
