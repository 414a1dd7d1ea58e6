//! Event streams that exist on both sides, at a path of each.
//!
//! The choice of a side follows the same rules as for routes; this module translates the events. Laws: the output does
//! not depend on how the stream was split into chunks; a stream without events that a definition matches passes byte
//! for byte.
//!
//! Used by `cli`, `config`, `model`, `gateway` and `telemetry`.

mod path;
mod rewrite;

use std::time::Duration;

use http::Method;

use super::route::{Segments, without_slash};
use dualgauge_patterns::side::Side;

pub use path::{StreamPath, StreamPathError};
pub use rewrite::{EventResult, EventResultKind, RewriteStep, Rewriter};

/// One stream, seen from both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stream {
    /// Its name in flags, metrics and logs.
    pub name: String,
    /// The path for legacy clients.
    pub rest: StreamPath,
    /// The path at the RPC upstream.
    pub rpc: StreamPath,
    /// The age at which it is closed, so that its client reconnects.
    pub max_age: Option<Duration>,
}

impl Stream {
    /// Returns its path on a side.
    #[must_use]
    pub fn path(&self, side: Side) -> &StreamPath {
        match side {
            Side::Rest => &self.rest,
            Side::Rpc => &self.rpc,
        }
    }
}

impl Stream {
    /// Returns the path on the other side for a requested path.
    #[must_use]
    pub fn other_path(&self, side: Side, asked: &str) -> Option<String> {
        let asked = Segments::split(asked).normal();
        let path = self.path(side);
        // An RPC path also matches with a trailing slash.
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

/// A stream that a client requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamMatch {
    /// The index of the stream.
    pub stream: usize,
    /// The side of the requested path.
    pub side: Side,
}

impl Streams {
    /// Returns the table of streams; the first match of a path wins.
    #[must_use]
    pub fn new(all: Vec<Stream>) -> Streams {
        Streams { all }
    }

    /// Returns all streams in their declared order.
    #[must_use]
    pub fn all(&self) -> &[Stream] {
        &self.all
    }

    /// Finds the stream of a request.
    #[must_use]
    pub fn find(&self, method: &Method, path: &str) -> Option<StreamMatch> {
        if self.all.is_empty() || *method != Method::GET {
            return None;
        }
        let path = Segments::split(path).normal();
        self.each(|own| own.read(&path).is_some()).next()
    }

    /// Returns the streams that another server may match with a path that matches none here.
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

    /// Iterates over the paths of streams that `fits` accepts.
    fn each(&self, fits: impl Fn(&StreamPath) -> bool) -> impl Iterator<Item = StreamMatch> {
        let all = self.all.iter().enumerate();
        let each = all.flat_map(|(stream, own)| Side::ALL.map(|side| (stream, own, side)));
        each.filter(move |(_, own, side)| fits(own.path(*side)))
            .map(|(stream, _, side)| StreamMatch { stream, side })
    }
}

#[cfg(test)]
mod tests;
