//! Paths into a response, as used by rules and counters.
//!
//! A path is a JSON pointer (RFC 6901) in which `*` matches any one member or element. A member named `*` is written
//! `~2`, in addition to `~0` for `~` and `~1` for `/`. Law: the path under which a difference is counted matches
//! its place.

use std::fmt;

/// The maximum number of tokens: as many as the longest path of a counted difference may have.
const MOST_TOKENS: usize = 256;

/// The top-level parts of a response, for calls of either side.
pub const PLACES: [&str; 5] = ["status", "headers", "body", "result", "error"];

/// A token of a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Token {
    /// `*`: any member or element.
    Any,
    /// The member with this name, or the element with this index.
    Name(String),
}

/// A path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path(Vec<Token>);

/// The reason why a text is not a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The text does not begin with `/`.
    #[error("a path begins with `/`, such as `/body/items/*/updated_at`")]
    NoSlash,
    /// A `~` is not part of an escape.
    #[error("`~` needs `0`, `1` or `2` after it: `~0` is `~`, `~1` is `/`, `~2` is a literal `*`")]
    Escape,
    /// The path names no part of a response.
    #[error(
        "`{0}` is not part of a response; a path begins with `/status`, `/headers`, `/body`, `/result` or `/error`"
    )]
    Place(String),
    /// The path is too long.
    #[error("a path has at most {MOST_TOKENS} parts")]
    Long,
}

impl Path {
    /// Parses a path; the empty text stands for the whole response.
    ///
    /// # Errors
    ///
    /// Returns a [`PathError`] if the text is not a path.
    ///
    /// ```
    /// use dualgauge_model::compare::Path;
    /// assert_eq!(Path::parse("/body/items/*/a~1b").unwrap().to_string(), "/body/items/*/a~1b");
    /// assert!(Path::parse("body").is_err());
    /// ```
    pub fn parse(text: &str) -> Result<Path, PathError> {
        if text.is_empty() {
            return Ok(Path(Vec::new()));
        }
        let rest = text.strip_prefix('/').ok_or(PathError::NoSlash)?;
        let tokens = rest.split('/').take(MOST_TOKENS + 1).map(token);
        let tokens = tokens.collect::<Result<Vec<_>, _>>()?;
        if tokens.len() > MOST_TOKENS {
            return Err(PathError::Long);
        }
        match tokens.first() {
            Some(Token::Name(name)) if !PLACES.contains(&name.as_str()) => {
                Err(PathError::Place(name.clone()))
            }
            Some(Token::Name(_) | Token::Any) | None => Ok(Path(tokens)),
        }
    }

    /// Returns the tokens, outermost first.
    #[must_use]
    pub fn tokens(&self) -> &[Token] {
        &self.0
    }

    /// Returns the part of a response in which the path begins; `None` if it may be any.
    #[must_use]
    pub fn root(&self) -> Option<&str> {
        match self.0.first()? {
            Token::Name(name) => Some(name),
            Token::Any => None,
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for token in &self.0 {
            match token {
                Token::Any => f.write_str("/*")?,
                Token::Name(name) => {
                    let mut text = String::from("/");
                    write_token(name, Star::Escaped, &mut text);
                    f.write_str(&text)?;
                }
            }
        }
        Ok(())
    }
}

fn token(text: &str) -> Result<Token, PathError> {
    if text == "*" {
        return Ok(Token::Any);
    }
    let mut name = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        name.push(match character {
            '~' => match rest.next() {
                Some('0') => '~',
                Some('1') => '/',
                Some('2') => '*',
                Some(_) | None => return Err(PathError::Escape),
            },
            other => other,
        });
    }
    Ok(Token::Name(name))
}

/// The spelling of the name `*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Star {
    /// Spelled as in a path: `~2`.
    Escaped,
    /// Spelled as in RFC 6901.
    Plain,
}

/// Writes a name as a token, without the slash.
pub(super) fn write_token(name: &str, star: Star, out: &mut String) {
    if name == "*" && star == Star::Escaped {
        out.push_str("~2");
        return;
    }
    for character in name.chars() {
        match character {
            '~' => out.push_str("~0"),
            '/' => out.push_str("~1"),
            other => out.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_path_is_a_pointer_with_stars() {
        let path = Path::parse("/body/items/*/a~1b/~2/~01/").unwrap();
        let name = |name: &str| Token::Name(name.into());
        assert_eq!(
            path.tokens(),
            [
                name("body"),
                name("items"),
                Token::Any,
                name("a/b"),
                name("*"),
                name("~1"),
                name("")
            ]
        );
        assert_eq!(path.to_string(), "/body/items/*/a~1b/~2/~01/");
        assert_eq!(path.root(), Some("body"));
        assert_eq!(Path::parse("").unwrap().tokens(), []);
        assert_eq!(Path::parse("/*/at").unwrap().root(), None);
    }

    #[test]
    fn invalid_paths_are_refused_with_a_reason() {
        assert_eq!(Path::parse("body"), Err(PathError::NoSlash));
        assert_eq!(Path::parse("/body/~"), Err(PathError::Escape));
        assert_eq!(Path::parse("/body/~3"), Err(PathError::Escape));
        assert_eq!(Path::parse("/"), Err(PathError::Place(String::new())));
        assert_eq!(
            Path::parse("/params/a"),
            Err(PathError::Place("params".into()))
        );
        let long = format!("/body{}", "/a".repeat(MOST_TOKENS));
        assert_eq!(Path::parse(&long), Err(PathError::Long));
    }

    proptest! {
        #[test]
        fn every_path_reads_as_it_is_written(tokens in prop::collection::vec(prop_oneof![Just(Token::Any), "[a~/*0-2]{0,4}".prop_map(Token::Name)], 0..6)) {
            let mut all = vec![Token::Name("body".into())];
            all.extend(tokens);
            let path = Path(all);
            prop_assert_eq!(Path::parse(&path.to_string()), Ok(path));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,30}") {
            if let Ok(path) = Path::parse(&text) {
                prop_assert_eq!(path.to_string(), text);
            }
        }
    }
}
