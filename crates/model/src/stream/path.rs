//! The path of a stream on one side: literal segments, and holes of one segment each.
//!
//! The value of a hole is copied from the path of one side to that of the other, in normal form.
//!
//! Used by `config::compile::streams`.

use crate::route::Segments;
use dualgauge_patterns::percent::normalise;

/// The path of a stream on one side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamPath {
    text: String,
    parts: Vec<PathPart>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum PathPart {
    /// In normal form.
    Literal(String),
    Hole(String),
}

/// The reason why a text is not a path of a stream.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StreamPathError {
    /// Two servers may read it differently.
    #[error("it has {0}; write it in its normal form")]
    Irregular(crate::route::AmbiguousPath),
    /// A misplaced brace.
    #[error("`{0}` is not a segment; a hole must be a whole segment with a name, such as `{{id}}`")]
    Segment(String),
    /// A repeated name.
    #[error("the hole `{0}` occurs twice")]
    Twice(String),
}

impl StreamPath {
    /// Parses a path: `/mcp/sse/{session}`.
    ///
    /// # Errors
    /// [`StreamPathError`].
    pub fn parse(text: &str) -> Result<StreamPath, StreamPathError> {
        let segments = Segments::split(text);
        if let Some(why) = segments.irregular() {
            return Err(StreamPathError::Irregular(why));
        }
        let mut parts = Vec::new();
        for segment in segments.iter() {
            let part = part(segment)?;
            if let PathPart::Hole(name) = &part
                && parts.contains(&part)
            {
                return Err(StreamPathError::Twice(name.clone()));
            }
            parts.push(part);
        }
        let text = text.to_owned();
        Ok(StreamPath { text, parts })
    }

    /// Returns the path as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Iterates over the names of its holes.
    pub fn holes(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            PathPart::Literal(_) => None,
            PathPart::Hole(name) => Some(name.as_str()),
        })
    }

    /// Returns whether some path matches both.
    #[must_use]
    pub fn meets(&self, other: &StreamPath) -> bool {
        self.parts.len() == other.parts.len()
            && self.parts.iter().zip(&other.parts).all(|pair| match pair {
                (PathPart::Literal(one), PathPart::Literal(other)) => one == other,
                (PathPart::Hole(_), _) | (_, PathPart::Hole(_)) => true,
            })
    }

    /// Returns a matching path, for checks of overlaps.
    #[must_use]
    pub fn sample(&self) -> String {
        self.written(|name| Some(name.to_owned()))
            .unwrap_or_default()
    }

    /// Returns the values of the holes in a path in normal form, if it matches.
    #[must_use]
    pub fn read<'p>(&'p self, path: &'p str) -> Option<Vec<(&'p str, &'p str)>> {
        let holes = self.read_any(path)?;
        let filled = holes.iter().all(|(_, value)| !value.is_empty());
        filled.then_some(holes)
    }

    /// Returns whether a path in normal form would match if holes could be empty.
    #[must_use]
    pub fn is_like(&self, path: &str) -> bool {
        self.read_any(path).is_some()
    }

    fn read_any<'p>(&'p self, path: &'p str) -> Option<Vec<(&'p str, &'p str)>> {
        let mut segments = Segments::split(path).iter();
        let mut holes = Vec::new();
        for part in &self.parts {
            let segment = segments.next()?;
            match part {
                PathPart::Literal(literal) if literal == segment => {}
                PathPart::Literal(_) => return None,
                PathPart::Hole(name) => holes.push((name.as_str(), segment)),
            }
        }
        segments.next().is_none().then_some(holes)
    }

    /// Returns the path with these values in its holes.
    #[must_use]
    pub fn write(&self, holes: &[(&str, &str)]) -> Option<String> {
        self.written(|name| {
            let hole = holes.iter().find(|(of, _)| *of == name)?;
            Some(hole.1.to_owned())
        })
    }

    fn written(&self, value: impl Fn(&str) -> Option<String>) -> Option<String> {
        let mut path = String::new();
        for part in &self.parts {
            path.push('/');
            match part {
                PathPart::Literal(literal) => path.push_str(literal),
                PathPart::Hole(name) => path.push_str(&value(name)?),
            }
        }
        if path.is_empty() {
            path.push('/');
        }
        Some(path)
    }
}

fn part(segment: &str) -> Result<PathPart, StreamPathError> {
    let wrong = || StreamPathError::Segment(segment.to_owned());
    let inside = segment
        .strip_prefix('{')
        .and_then(|behind| behind.strip_suffix('}'));
    match inside {
        Some(name) => {
            let begins =
                name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_');
            let mut letters = name.chars();
            let plain = letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
            (begins && plain)
                .then(|| PathPart::Hole(name.to_owned()))
                .ok_or_else(wrong)
        }
        None if segment.contains(['{', '}']) => Err(wrong()),
        None => Ok(PathPart::Literal(normalise(segment).into_owned())),
    }
}
