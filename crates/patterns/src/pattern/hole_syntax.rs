//! The syntax of holes: `"{" [">" | "<" | "="] name [":" type] ["?"] ["=" default] "}"`.

use std::borrow::Cow;
use std::sync::Arc;

use super::slot::{Codec, Delimiter, JsonText, Scalar, Shape};
use super::{KeyStyles, Page, ValueMap};

/// The reason why a pattern is rejected on loading.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct PatternError {
    /// The key of the wrong value, relative to the route table; empty for the value itself.
    pub key: String,
    /// The fault, and the values that are allowed.
    pub what: String,
}

impl PatternError {
    /// Creates the error for the value itself.
    pub fn new(what: impl Into<String>) -> PatternError {
        PatternError {
            key: String::new(),
            what: what.into(),
        }
    }

    /// Returns the error for a value under a key.
    #[must_use]
    pub fn under(mut self, key: &str) -> PatternError {
        if key.is_empty() {
            return self;
        }
        let joint = if self.key.is_empty() || self.key.starts_with('[') {
            ""
        } else {
            "."
        };
        self.key = format!("{key}{joint}{}", self.key);
        self
    }

    /// Returns the error for a value that is the member with this name.
    pub(crate) fn under_member(self, name: &str) -> PatternError {
        self.under(&as_key(name))
    }
}

/// Returns a name as part of a key: a name that is not bare is quoted, as in TOML.
#[must_use]
pub fn as_key(name: &str) -> Cow<'_, str> {
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if !name.is_empty() && name.bytes().all(is_bare) {
        Cow::Borrowed(name)
    } else {
        Cow::Owned(format!("{name:?}"))
    }
}

/// The name of the hole for the number of an alternative.
pub(super) const CHOICE: &str = "|";

/// A token of a pattern text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token {
    /// Text outside of holes, with `{{` and `}}` replaced by one brace.
    Text(String),
    /// The content of a hole, without its braces.
    Hole(String),
}

/// Splits a pattern text into literal text and holes.
///
/// # Errors
///
/// Fails on an unbalanced brace.
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
                PatternError::new(format!(
                    "`{{{inside}` has no closing brace; write `{{{{` for a literal one"
                ))
            })?;
            if !text.is_empty() {
                found.push(Token::Text(std::mem::take(&mut text)));
            }
            found.push(Token::Hole(inside[..end].to_owned()));
            rest = &inside[end + 1..];
        } else {
            return Err(PatternError::new(
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

/// Returns the end of a hole: the first closing brace that no brace inside (of a default) has opened.
fn hole_end(inside: &str) -> Option<usize> {
    let mut open = 0_usize;
    inside
        .char_indices()
        .find_map(|(at, character)| match character {
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

/// A hole as written at one position of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoleRef {
    /// The name; `_` for the hole whose value is ignored.
    pub name: String,
    /// The alternatives around it; empty outside of alternatives.
    pub scope: String,
    /// Its use for reading and writing.
    pub used: HoleUse,
    /// The declared shape.
    pub shape: Option<Shape>,
    /// The encoding of the value here.
    pub codec: Codec,
    /// True if `?` follows the type.
    pub is_optional: bool,
    /// The declared default.
    pub default: Option<String>,
}

impl HoleRef {
    /// Returns true if the hole is read and written, and has no type, no `?` and no default. It may have a codec.
    #[must_use]
    pub fn is_bare(&self) -> bool {
        self.shape.is_none()
            && !self.is_optional
            && self.default.is_none()
            && self.used == HoleUse::Both
    }
}

/// The use of a hole for reading and writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoleUse {
    /// `{x}`
    Both,
    /// `{>x}`
    WriteOnly,
    /// `{=x}`
    Equal,
    /// `{<x}`
    ReadOnly,
}

/// Splits `name…` into the name and the rest.
pub fn hole_name(inside: &str) -> Result<(&str, &str), PatternError> {
    let end = inside
        .find(|character: char| !character.is_ascii_alphanumeric() && character != '_')
        .unwrap_or(inside.len());
    let (name, rest) = inside.split_at(end);
    match name.chars().next() {
        Some(first) if !first.is_ascii_digit() => Ok((name, rest)),
        _ => Err(PatternError::new(format!(
            "`{{{inside}}}`: a hole name has letters, digits and `_`"
        ))),
    }
}

/// Parses the content of a hole.
///
/// # Errors
///
/// Fails on invalid syntax.
pub fn parse_mention(inside: &str) -> Result<HoleRef, PatternError> {
    let (used, spelled) = if let Some(spelled) = inside.strip_prefix('>') {
        (HoleUse::WriteOnly, spelled)
    } else if let Some(spelled) = inside.strip_prefix('<') {
        (HoleUse::ReadOnly, spelled)
    } else if let Some(spelled) = inside.strip_prefix('=') {
        (HoleUse::Equal, spelled)
    } else {
        (HoleUse::Both, inside)
    };
    let (name, rest) = hole_name(spelled)?;
    let (typed, default) = cut_default(rest);
    let (typed, is_optional) = match typed.strip_suffix('?') {
        Some(typed) => (typed, true),
        None => (typed, false),
    };
    let (mut shape, codec) = parse_encoded_type(typed, inside)?;
    let default = match (&codec, &shape, default) {
        (Codec::Map(map), Some(shape), Some(default)) => {
            let value = map.default(shape, default);
            let what = |what| PatternError::new(format!("`{{{name}}}`: the default: {what}"));
            Some(value.map_err(what)?)
        }
        (Codec::Page(page), _, Some(default)) => {
            let what = |what| PatternError::new(format!("`{{{inside}}}`: {what}"));
            Some(page.default(default).map_err(what)?)
        }
        (Codec::Keys(styles), _, Some(default)) => {
            let what = |what| PatternError::new(format!("`{{{name}}}`: the default: {what}"));
            Some(styles.default(default).map_err(what)?)
        }
        (_, _, default) => default.map(str::to_owned),
    };
    if used == HoleUse::WriteOnly && codec.map().is_some() {
        // The type is that of the hole that is read.
        shape = None;
    }
    let mention = HoleRef {
        codec,
        is_optional,
        default,
        ..mention_named(name, used, shape)
    };
    consistent(&mention, inside)?;
    Ok(mention)
}

/// Splits `:type=default` at the first `=` outside of `map(…)` and `keys(…)`.
#[must_use]
pub fn cut_default(rest: &str) -> (&str, Option<&str>) {
    let map = match ValueMap::parse(rest) {
        Some(Ok((_, after))) => rest.len() - after.len(),
        Some(Err(_)) => return (rest, None),
        None => KeyStyles::length(rest),
    };
    match rest[map..].split_once('=') {
        Some((typed, default)) => (&rest[..map + typed.len()], Some(default)),
        None => (rest, None),
    }
}

/// Parses `:type`, `:json`, `:base64`, `:map(…)`, `:keys(…)` or nothing.
///
/// # Errors
///
/// Fails on invalid syntax.
pub fn parse_encoded_type(
    typed: &str,
    inside: &str,
) -> Result<(Option<Shape>, Codec), PatternError> {
    let wrong = |what: String| PatternError::new(format!("`{{{inside}}}`: {what}"));
    if typed == ":json" {
        return Ok((None, Codec::Json(JsonText::Plain)));
    }
    if typed == ":base64" {
        return Ok((None, Codec::Json(JsonText::Base64)));
    }
    if let Some(page) = Page::parse(typed) {
        let page = Codec::Page(Arc::new(page.map_err(wrong)?));
        return Ok((Some(Shape::One(Scalar::Integer)), page));
    }
    if let Some(styles) = KeyStyles::parse(typed) {
        return Ok((None, Codec::Keys(styles.map_err(wrong)?)));
    }
    let Some(parsed) = ValueMap::parse(typed) else {
        return Ok((parse_type(typed, inside)?, Codec::Plain));
    };
    let (map, suffix) = parsed.map_err(wrong)?;
    let words = Scalar::Enum(map.words());
    let separated = |delimiter: &Delimiter| suffix == delimiter.to_notation();
    let shape = match (suffix, Delimiter::ALL.into_iter().find(separated)) {
        ("", _) => Shape::One(words),
        ("[]", _) => Shape::Repeated(words),
        (_, Some(delimiter)) => Shape::Separated(words, delimiter),
        (_, None) => {
            return Err(wrong(format!(
                "`{suffix}` after the map; `[]`, `[,]`, `[|]` or `[ ]` may follow for a list"
            )));
        }
    };
    Ok((Some(shape), Codec::Map(Arc::new(map))))
}

/// Creates a hole with only these declarations.
pub fn mention_named(name: &str, used: HoleUse, shape: Option<Shape>) -> HoleRef {
    HoleRef {
        name: name.to_owned(),
        scope: String::new(),
        used,
        shape,
        codec: Codec::Plain,
        is_optional: false,
        default: None,
    }
}

/// Rejects declarations that an ignored or a write-only hole cannot have.
fn consistent(mention: &HoleRef, inside: &str) -> Result<(), PatternError> {
    let wrong = |what: &str| Err(PatternError::new(format!("`{{{inside}}}`: {what}")));
    let plain = !mention.is_optional && mention.default.is_none();
    if mention.used == HoleUse::WriteOnly {
        if mention.name == "_" {
            return wrong("`_` has no value to write; write `{_=value}`");
        }
        if !plain || mention.shape.is_some() {
            return wrong(
                "a write-only hole has the type and the absence of the hole that is read",
            );
        }
    }
    if mention.used == HoleUse::ReadOnly {
        if mention.name == "_" {
            return wrong("`_` has no value to keep; name the hole");
        }
        if mention.is_optional {
            return wrong("a read-only value may always be absent; write it without `?`");
        }
    }
    if mention.used == HoleUse::Equal {
        if mention.name == "_" {
            return wrong("`_` has no value to be equal to; name a hole");
        }
        if mention.default.is_some() || mention.codec != Codec::Plain {
            return wrong(
                "a value that equals another one has no default, no map, no other keys, no page, and is not JSON in a text",
            );
        }
        if !matches!(mention.shape, None | Some(Shape::One(_))) {
            return wrong(
                "a value of a path, a query or a header is `string`, `integer`, `number`, `boolean` or `enum(a|b)`",
            );
        }
    }
    if mention.name == "_" && matches!(mention.codec, Codec::Keys(_)) {
        return wrong("`_` matches any value; write `{_}`");
    }
    if mention.name == "_" {
        let is_null = mention.shape == Some(Shape::Null) && plain;
        if mention.is_optional || mention.codec.is_json() {
            return wrong("`_` matches any value and absence; write `{_}` or `{_=value}`");
        }
        if mention.shape.is_some() && !is_null {
            return wrong("`_` has no type but `null`; name the hole, or write `{_}`");
        }
    }
    if mention.name == "now" && mention.used != HoleUse::WriteOnly {
        return wrong("`now` is the time, which is write-only: `{>now}`");
    }
    Ok(())
}

/// Parses `:type`, or nothing.
fn parse_type(typed: &str, inside: &str) -> Result<Option<Shape>, PatternError> {
    let Some(word) = typed.strip_prefix(':') else {
        return if typed.is_empty() {
            Ok(None)
        } else {
            Err(PatternError::new(format!(
                "`{{{inside}}}`: `{typed}` after the name; a type begins with `:`"
            )))
        };
    };
    if let Some(element) = word.strip_suffix("[]") {
        return parse_scalar(element, inside).map(|scalar| Some(Shape::Repeated(scalar)));
    }
    for delimiter in Delimiter::ALL {
        if let Some(element) = word.strip_suffix(delimiter.to_notation()) {
            let scalar = parse_scalar(element, inside)?;
            return Ok(Some(Shape::Separated(scalar, delimiter)));
        }
    }
    let shape = match word {
        "object" => Shape::Object,
        "array" => Shape::Array,
        "null" => Shape::Null,
        _ => Shape::One(parse_scalar(word, inside)?),
    };
    Ok(Some(shape))
}

fn parse_scalar(word: &str, inside: &str) -> Result<Scalar, PatternError> {
    match word {
        "string" => Ok(Scalar::String),
        "integer" => Ok(Scalar::Integer),
        "number" => Ok(Scalar::Number),
        "boolean" => Ok(Scalar::Boolean),
        _ => match word
            .strip_prefix("enum(")
            .and_then(|rest| rest.strip_suffix(')'))
        {
            Some(words) if words.split('|').all(|word| !word.is_empty()) => {
                Ok(Scalar::Enum(words.split('|').map(str::to_owned).collect()))
            }
            _ => Err(PatternError::new(format!(
                "`{{{inside}}}`: `{word}` is not a type; types are `string`, `integer`, `number`, `boolean`, `enum(a|b)`, each with `[]`, `[,]`, `[|]` or `[ ]` for a list, `object`, `array`, `null`, `json`, `map(a=b)`, `keys(snake=camel)` and `page(limit)`"
            ))),
        },
    }
}
