//! Configuration problems: file, line and key, the value found, and the allowed values.
//!
//! Checking never stops at the first problem. Problems are collected, sorted by location and shown together, so that a
//! file can be fixed in one go.
//!
//! Used by `app`, `cli`, `config` and `server`.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A line of a file, and a column if the key is not enough. Both count from one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The character within the line; only given for text that could not be parsed.
    pub column: Option<u32>,
}

/// The location where a value was set.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SourceLocation {
    /// The built-in defaults.
    Default,
    /// A file, as it was named on the command line or by an `include`.
    File {
        /// The path of the file.
        path: Arc<PathBuf>,
        /// The position in the file; `None` for the whole file.
        position: Option<Position>,
    },
    /// An environment variable.
    Variable(Arc<str>),
    /// An argument of the command line, such as `--listen`.
    Argument(&'static str),
    /// A flip, which overrides the flag of this name in the flags file.
    Flip(Arc<str>),
    /// The source of flags, which overrides the flag of this name in the flags file.
    Source(Arc<str>),
}

impl SourceLocation {
    /// Returns the location of a whole file.
    #[must_use]
    pub fn file(path: &Path) -> Self {
        SourceLocation::File {
            path: Arc::new(path.to_owned()),
            position: None,
        }
    }
}

/// The text of locations that are neither in a file nor an argument.
const DEFAULT: &str = "default";
const FLIP: &str = "flip of";
const SOURCE: &str = "source of";

impl SourceLocation {
    /// Returns whether a location's text stands for a default, a flip or a value of the source: a value without a line in
    /// a file.
    #[must_use]
    pub fn is_implicit(written: &str) -> bool {
        written == DEFAULT || written.starts_with(FLIP) || written.starts_with(SOURCE)
    }
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SourceLocation::Default => f.write_str(DEFAULT),
            SourceLocation::File { path, position } => {
                write!(f, "{}", path.display())?;
                let Some(position) = position else {
                    return Ok(());
                };
                write!(f, ":{}", position.line)?;
                position.column.map_or(Ok(()), |c| write!(f, ":{c}"))
            }
            SourceLocation::Variable(name) => f.write_str(name),
            SourceLocation::Argument(name) => f.write_str(name),
            SourceLocation::Flip(flag) => write!(f, "{FLIP} `{flag}`"),
            SourceLocation::Source(flag) => write!(f, "{SOURCE} `{flag}`"),
        }
    }
}

/// A value with its location, for problems that are found later. A configuration keeps thousands of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// The location.
    pub place: SourceLocation,
    /// Its key, in the spelling of the file: `route[3].rest`.
    pub key: String,
}

impl<T> Spanned<T> {
    /// Returns a problem with this value.
    pub fn problem(&self, message: impl Into<String>) -> Problem {
        Problem {
            place: self.place.clone(),
            key: self.key.clone(),
            message: message.into(),
            hint: None,
        }
    }

    /// Maps the value, and keeps the location.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Spanned<U> {
        Spanned {
            value: change(self.value),
            place: self.place,
            key: self.key,
        }
    }
}

/// The locations of keys, for parts that are compiled as a whole.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SourceMap(pub(super) HashMap<String, SourceLocation>);

impl SourceMap {
    /// Returns the location of a key, or of the nearest parent that was set.
    #[must_use]
    pub fn nearest(&self, key: &str) -> SourceLocation {
        let mut key = key;
        loop {
            if let Some(place) = self.0.get(key) {
                return place.clone();
            }
            match key.rfind(['.', '[']) {
                Some(end) => key = &key[..end],
                None => return SourceLocation::Default,
            }
        }
    }

    /// Returns a problem with a key.
    #[must_use]
    pub fn problem(&self, key: impl Into<String>, message: impl Into<String>) -> Problem {
        let key = key.into();
        Problem {
            place: self.nearest(&key),
            key,
            message: message.into(),
            hint: None,
        }
    }
}

/// One problem.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The location.
    pub place: SourceLocation,
    /// The key, in the spelling of the file; empty for a whole file.
    pub key: String,
    /// The value found, and the allowed values.
    pub message: String,
    /// A suggestion.
    pub hint: Option<String>,
}

impl Problem {
    /// Returns a problem with a whole file, or with text that has no key.
    #[must_use]
    pub fn for_file(place: SourceLocation, message: impl Into<String>) -> Self {
        Problem {
            place,
            key: String::new(),
            message: message.into(),
            hint: None,
        }
    }

    /// Adds a suggestion.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)?;
        if let Some(hint) = &self.hint {
            write!(f, "\n  hint: {hint}")?;
        }
        Ok(())
    }
}

/// All problems, sorted by location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// Sorts the problems by location, and removes duplicates.
    #[must_use]
    pub fn new(mut problems: Vec<Problem>) -> Self {
        problems.sort();
        problems.dedup();
        Problems(problems)
    }

    /// Returns the value if there are no problems.
    ///
    /// # Errors
    /// The problems, if there are any.
    pub fn unless<T>(problems: Vec<Problem>, value: T) -> Result<T, Problems> {
        if problems.is_empty() {
            Ok(value)
        } else {
            Err(Problems::new(problems))
        }
    }

    /// Iterates over the problems in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.0.iter()
    }

    /// Returns the problems as a list, to add those of a later step.
    #[must_use]
    pub fn into_vec(self) -> Vec<Problem> {
        self.0
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Problems(vec![problem])
    }
}

impl<'p> IntoIterator for &'p Problems {
    type Item = &'p Problem;
    type IntoIter = std::slice::Iter<'p, Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// Returns the known word nearest to `found`, if one is near enough for a hint.
pub(crate) fn nearest<'k>(
    found: &str,
    known: impl IntoIterator<Item = &'k str>,
) -> Option<&'k str> {
    let found = found.to_lowercase();
    let allowed = (found.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|word| (strsim::damerau_levenshtein(&found, word), word))
        .filter(|(distance, word)| *distance <= allowed && *distance < word.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: u32) -> SourceLocation {
        SourceLocation::File {
            path: Arc::new("a.toml".into()),
            position: Some(Position { line, column: None }),
        }
    }

    fn problem(place: SourceLocation, key: &str) -> Problem {
        Problem {
            place,
            key: key.to_owned(),
            message: "is wrong".to_owned(),
            hint: None,
        }
    }

    #[test]
    fn problems_are_sorted_by_location_and_reported_once() {
        let problems = Problems::new(vec![
            problem(SourceLocation::Argument("--listen"), "listen.address"),
            problem(at(10), "b"),
            problem(at(9), "c").hint("did you mean `d`?"),
            problem(SourceLocation::Variable(Arc::from("DUALGAUGE_X")), "x"),
            problem(at(10), "b"),
        ]);
        assert_eq!(
            problems.to_string(),
            "a.toml:9: c: is wrong\n  hint: did you mean `d`?\n\
             a.toml:10: b: is wrong\n\
             DUALGAUGE_X: x: is wrong\n\
             --listen: listen.address: is wrong"
        );
    }

    #[test]
    fn only_a_near_word_is_hinted() {
        let known = ["rest", "rpc", "timeout", "effect"];
        assert_eq!(nearest("rset", known), Some("rest"));
        assert_eq!(nearest("time_out", known), Some("timeout"));
        assert_eq!(nearest("REST", known), Some("rest"));
        assert_eq!(nearest("colour", known), None);
        assert_eq!(nearest("x", known), None);
        assert_eq!(nearest("", ["a"]), None);
    }
}
