//! The segments of a path, and its irregularities.
//!
//! Segments are compared in normal form. A path with empty or dot segments is irregular: two programs may read it in
//! two ways. A slash at the end is not irregular: the path has one more segment, which is empty, and names another
//! resource (RFC 3986 §3.3). Segments are split on demand, which costs less than storing their positions.
//!
//! Used by `config`, `model` and `gateway`.

use std::borrow::Cow;

use dualgauge_patterns::percent::{self, normalise};
use dualgauge_patterns::swar::{equal, index_of_first};

/// A path, split at its slashes.
#[derive(Debug, Clone, Copy)]
pub struct Segments<'a> {
    /// The path after its first slash.
    path: &'a str,
    ambiguity: Option<AmbiguousPath>,
}

/// The reason why two programs may read a path in two ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AmbiguousPath {
    /// `//`
    #[error("an empty segment")]
    EmptySegment,
    /// A slash at the end, without another irregularity.
    #[error("a slash at the end")]
    TrailingSlash,
    /// `.` or `..`, plain or percent-encoded.
    #[error("a dot segment")]
    DotSegment,
}

impl<'a> Segments<'a> {
    /// Splits a path; `/` has no segments.
    #[must_use]
    #[inline]
    pub fn split(path: &'a str) -> Segments<'a> {
        let path = path.strip_prefix('/').unwrap_or(path);
        let mut segments = Segments {
            path,
            ambiguity: None,
        };
        if may_be_ambiguous(path.as_bytes()) {
            segments.ambiguity = oddity(path);
        }
        segments
    }

    /// Returns the irregularity of the path, if it has one. A slash at the end is none.
    #[must_use]
    pub fn irregular(&self) -> Option<AmbiguousPath> {
        self.ambiguity
            .filter(|why| *why != AmbiguousPath::TrailingSlash)
    }

    /// Returns the irregularity of the path, or else its trailing slash.
    #[must_use]
    #[inline]
    pub fn ambiguity(&self) -> Option<AmbiguousPath> {
        self.ambiguity
    }

    /// Returns true when the path ends in a slash and is not `/`.
    #[must_use]
    pub fn ends_in_slash(&self) -> bool {
        self.path.ends_with('/')
    }

    /// Returns the segments with the slashes between them; `None` if there are none.
    #[inline]
    pub(super) fn path(&self) -> Option<&'a str> {
        Some(self.path).filter(|path| !path.is_empty())
    }

    /// Returns the segments as received.
    pub fn iter(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let mut path = self.path();
        std::iter::from_fn(move || {
            let (segment, behind) = cut(path?);
            path = behind;
            Some(segment)
        })
    }

    /// Returns the path with each segment in normal form.
    #[must_use]
    pub fn normal(&self) -> String {
        path_of(self.iter().map(normalise))
    }

    /// Returns the path as a normalizing program would read it: each segment in normal form, without a slash at the
    /// end.
    #[must_use]
    pub fn tidied(&self) -> String {
        let mut stack = Vec::new();
        for segment in self.iter().map(normalise) {
            match &*segment {
                "" | "." => {}
                ".." => drop(stack.pop()),
                _ => stack.push(segment),
            }
        }
        path_of(stack)
    }

    /// Returns the path without dot segments, but with empty ones; each segment in normal form (RFC 3986 §5.2.4).
    pub(super) fn undotted(&self) -> String {
        let mut stack = Vec::new();
        let mut open = false;
        for segment in self.iter().map(normalise) {
            open = matches!(&*segment, "." | "..");
            match &*segment {
                "." => {}
                ".." => drop(stack.pop()),
                _ => stack.push(segment),
            }
        }
        // A dot segment at the end leaves the slash before it.
        stack.extend(open.then_some(Cow::Borrowed("")));
        path_of(stack)
    }
}

fn path_of<'a>(segments: impl IntoIterator<Item = Cow<'a, str>>) -> String {
    let mut path = String::new();
    for segment in segments {
        path.push('/');
        path.push_str(&segment);
    }
    if path.is_empty() {
        path.push('/');
    }
    path
}

/// Splits off the first segment and its slash.
#[inline]
pub(super) fn cut(path: &str) -> (&str, Option<&str>) {
    percent::cut::<b'/'>(path)
}

/// Returns true when a segment is empty, or begins with a dot or an escape. A fast check before the exact one.
fn may_be_ambiguous(path: &[u8]) -> bool {
    let begins = |at: usize| matches!(path.get(at), None | Some(b'/' | b'.' | b'%'));
    if path.is_empty() {
        return false;
    }
    let (words, last) = path.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let mut slashes = equal::<b'/'>(u64::from_le_bytes(*word));
        while slashes != 0 {
            if begins(index * 8 + index_of_first(slashes) + 1) {
                return true;
            }
            slashes &= slashes - 1;
        }
    }
    let offset = words.len() * 8 + 1;
    let mut last = last.iter().enumerate();
    begins(0) || last.any(|(index, byte)| *byte == b'/' && begins(offset + index))
}

/// Returns the irregularity of a path, or its trailing slash.
fn oddity(path: &str) -> Option<AmbiguousPath> {
    let (inside, slash) = match path.strip_suffix('/') {
        Some(inside) => (inside, Some(AmbiguousPath::TrailingSlash)),
        None => (path, None),
    };
    inside.split('/').find_map(fault).or(slash)
}

/// Returns the irregularity of a segment.
fn fault(segment: &str) -> Option<AmbiguousPath> {
    match &*normalise(segment) {
        "" => Some(AmbiguousPath::EmptySegment),
        "." | ".." => Some(AmbiguousPath::DotSegment),
        _ => None,
    }
}

/// Removes a trailing slash from a path; `/` stays.
#[must_use]
pub fn without_slash(path: &str) -> &str {
    let before = path.strip_suffix('/');
    before.filter(|before| !before.is_empty()).unwrap_or(path)
}
