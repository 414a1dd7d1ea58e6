//! The segments of a path, and what is irregular about it.
//!
//! Segments are compared in normal form. A path with empty or dot segments is irregular: two programs may read it
//! in two ways. A slash at the end is not: the path has one more segment, which is empty, and names another resource
//! (RFC 3986 §3.3). Segments are cut where they are looked at, which costs less than to keep where they are.

use std::borrow::Cow;

use crate::domain::percent::{self, normalise};
use crate::domain::swar::{equal, index_of_first};

/// A path, cut at its slashes.
#[derive(Debug, Clone, Copy)]
pub struct Segments<'a> {
    /// Behind the first slash.
    path: &'a str,
    ambiguity: Option<AmbiguousPath>,
}

/// Why two programs may read a path in two ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AmbiguousPath {
    /// `//`
    #[error("an empty segment")]
    EmptySegment,
    /// A slash at the end, and nothing else.
    #[error("a slash at the end")]
    TrailingSlash,
    /// `.` or `..`, plain or percent-encoded.
    #[error("a dot segment")]
    DotSegment,
}

impl<'a> Segments<'a> {
    /// Cuts a path; `/` has no segments.
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

    /// What is irregular about the path, if anything is. A slash at the end is not.
    #[must_use]
    pub fn irregular(&self) -> Option<AmbiguousPath> {
        self.ambiguity
            .filter(|why| *why != AmbiguousPath::TrailingSlash)
    }

    /// The same, or the slash at its end.
    #[must_use]
    #[inline]
    pub fn ambiguity(&self) -> Option<AmbiguousPath> {
        self.ambiguity
    }

    /// Whether the path ends in a slash that is not its only one.
    #[must_use]
    pub fn ends_in_slash(&self) -> bool {
        self.path.ends_with('/')
    }

    /// All of them with the slashes between them, if there are any.
    #[inline]
    pub(super) fn path(&self) -> Option<&'a str> {
        Some(self.path).filter(|path| !path.is_empty())
    }

    /// The segments as they came.
    pub fn iter(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let mut path = self.path();
        std::iter::from_fn(move || {
            let (segment, behind) = cut(path?);
            path = behind;
            Some(segment)
        })
    }

    /// The path with each segment in normal form.
    #[must_use]
    pub fn normal(&self) -> String {
        path_of(self.iter().map(normalise))
    }

    /// The path as a program that tidies up would read it, with each segment in normal form and no slash at the end.
    #[must_use]
    pub fn tidied(&self) -> String {
        let mut kept = Vec::new();
        for segment in self.iter().map(normalise) {
            match &*segment {
                "" | "." => {}
                ".." => drop(kept.pop()),
                _ => kept.push(segment),
            }
        }
        path_of(kept)
    }

    /// The path without dot segments and with the empty ones, each segment in normal form (RFC 3986 §5.2.4).
    pub(super) fn undotted(&self) -> String {
        let mut kept = Vec::new();
        let mut open = false;
        for segment in self.iter().map(normalise) {
            open = matches!(&*segment, "." | "..");
            match &*segment {
                "." => {}
                ".." => drop(kept.pop()),
                _ => kept.push(segment),
            }
        }
        // A dot segment at the end leaves the slash before it.
        kept.extend(open.then_some(Cow::Borrowed("")));
        path_of(kept)
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

/// The first segment, and what is behind its slash.
#[inline]
pub(super) fn cut(path: &str) -> (&str, Option<&str>) {
    percent::cut::<b'/'>(path)
}

/// Whether a segment is empty, or begins like a dot segment: with a dot, or with one that is escaped.
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
    let behind = words.len() * 8 + 1;
    let mut last = last.iter().enumerate();
    begins(0) || last.any(|(index, byte)| *byte == b'/' && begins(behind + index))
}

/// What is irregular about a path, or that it ends in a slash.
fn oddity(path: &str) -> Option<AmbiguousPath> {
    let (inside, slash) = match path.strip_suffix('/') {
        Some(inside) => (inside, Some(AmbiguousPath::TrailingSlash)),
        None => (path, None),
    };
    inside.split('/').find_map(fault).or(slash)
}

/// What is irregular about a segment, if anything is.
fn fault(segment: &str) -> Option<AmbiguousPath> {
    match &*normalise(segment) {
        "" => Some(AmbiguousPath::EmptySegment),
        "." | ".." => Some(AmbiguousPath::DotSegment),
        _ => None,
    }
}
