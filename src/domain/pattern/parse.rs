//! The spelling of holes: `"{" [">"] name [":" type] ["?"] ["=" default] "}"`.

use super::{Absence, Hole, Scalar, Shape};

/// Why a pattern is refused when it is loaded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// The spelling is wrong.
    #[error("{0}")]
    Spelling(String),
    /// It means something that this version does not do.
    #[error("{0} is not supported in this version")]
    Unsupported(String),
}

impl PatternError {
    pub(crate) fn spelling(what: impl Into<String>) -> PatternError {
        PatternError::Spelling(what.into())
    }
}

/// A piece of a pattern text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token {
    /// Text outside of holes; `{{` and `}}` already stand for one brace.
    Text(String),
    /// The inside of a hole, without its braces.
    Hole(String),
}

/// Cuts a pattern text into literal text and holes.
///
/// # Errors
/// [`PatternError::Spelling`] for a brace without its partner.
pub fn tokens(pattern: &str) -> Result<Vec<Token>, PatternError> {
    let mut found = Vec::new();
    let mut text = String::new();
    let mut rest = pattern;
    while let Some(at) = rest.find(['{', '}']) {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix("{{").or_else(|| rest.strip_prefix("}}")) {
            text.push_str(&rest[..1]);
            rest = after;
        } else if let Some(inside) = rest.strip_prefix('{') {
            let end = hole_end(inside).ok_or_else(|| {
                PatternError::spelling(format!(
                    "`{{{inside}` has no closing brace; write `{{{{` for a literal one"
                ))
            })?;
            if !text.is_empty() {
                found.push(Token::Text(std::mem::take(&mut text)));
            }
            found.push(Token::Hole(inside[..end].to_owned()));
            rest = &inside[end + 1..];
        } else {
            return Err(PatternError::spelling(
                "`}` without `{`; write `}}` for a literal one",
            ));
        }
    }
    text.push_str(rest);
    if !text.is_empty() {
        found.push(Token::Text(text));
    }
    Ok(found)
}

/// Where a hole ends: at the first closing brace that no brace inside (of a default) has opened.
fn hole_end(inside: &str) -> Option<usize> {
    let mut open = 0_usize;
    inside.char_indices().find_map(|(at, letter)| match letter {
        '{' => {
            open += 1;
            None
        }
        '}' if open == 0 => Some(at),
        '}' => {
            open -= 1;
            None
        }
        _ => None,
    })
}

/// Splits `name…` into the name and what comes behind it.
pub(crate) fn hole_name(inside: &str) -> Result<(&str, &str), PatternError> {
    if inside.starts_with('>') {
        return Err(PatternError::Unsupported(format!(
            "the write-only hole `{{{inside}}}`"
        )));
    }
    let end = inside
        .find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .unwrap_or(inside.len());
    let (name, rest) = inside.split_at(end);
    if name == "_" {
        return Err(PatternError::Unsupported(format!(
            "the forgetful hole `{{{inside}}}` in a URL"
        )));
    }
    match name.chars().next() {
        Some(first) if !first.is_ascii_digit() => Ok((name, rest)),
        _ => Err(PatternError::spelling(format!(
            "`{{{inside}}}`: a hole is named by letters, digits and `_`"
        ))),
    }
}

/// Reads the inside of a hole that stands in a query.
///
/// # Errors
/// [`PatternError`] with the spelling that is wrong.
pub fn parse_hole(inside: &str) -> Result<Hole, PatternError> {
    let (name, rest) = hole_name(inside)?;
    let (typed, default) = match rest.split_once('=') {
        Some((typed, default)) => (typed, Some(default)),
        None => (rest, None),
    };
    let (typed, optional) = match typed.strip_suffix('?') {
        Some(typed) => (typed, Some(())),
        None => (typed, None),
    };
    let shape = parse_type(typed, inside)?;
    let default = default
        .map(|default| Hole::check_default(&shape, default))
        .transpose();
    let default =
        default.map_err(|what| PatternError::spelling(format!("`{{{inside}}}`: {what}")))?;
    let absence = match (optional, default) {
        (None, None) => Absence::Refused,
        (Some(()), None) => Absence::Kept,
        (None, Some(default)) => Absence::Filled(default),
        (Some(()), Some(default)) => Absence::Implied(default),
    };
    Ok(Hole {
        name: name.to_owned(),
        shape,
        absence,
    })
}

/// Reads `:type`, or nothing, which is a string in a URL.
pub(crate) fn parse_type(typed: &str, inside: &str) -> Result<Shape, PatternError> {
    let Some(word) = typed.strip_prefix(':') else {
        return if typed.is_empty() {
            Ok(Shape::One(Scalar::String))
        } else {
            Err(PatternError::spelling(format!(
                "`{{{inside}}}`: `{typed}` behind the name; a type begins with `:`"
            )))
        };
    };
    if let Some(element) = word.strip_suffix("[]") {
        return parse_scalar(element, inside).map(Shape::Repeated);
    }
    if let Some(element) = word.strip_suffix("[,]") {
        return parse_scalar(element, inside).map(Shape::Separated);
    }
    parse_scalar(word, inside).map(Shape::One)
}

fn parse_scalar(word: &str, inside: &str) -> Result<Scalar, PatternError> {
    match word {
        "string" => Ok(Scalar::String),
        "integer" => Ok(Scalar::Integer),
        "number" => Ok(Scalar::Number),
        "boolean" => Ok(Scalar::Boolean),
        "object" | "array" | "null" | "json" => Err(PatternError::Unsupported(format!(
            "`{{{inside}}}`: the type `{word}` in a URL"
        ))),
        _ => match word
            .strip_prefix("enum(")
            .and_then(|rest| rest.strip_suffix(')'))
        {
            Some(words) if words.split('|').all(|word| !word.is_empty()) => {
                Ok(Scalar::Enum(words.split('|').map(str::to_owned).collect()))
            }
            _ => Err(PatternError::spelling(format!(
                "`{{{inside}}}`: `{word}` is no type; types are `string`, `integer`, `number`, `boolean`, `enum(a|b)`, each with `[]` or `[,]` for a list"
            ))),
        },
    }
}
