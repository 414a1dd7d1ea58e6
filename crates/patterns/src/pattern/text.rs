//! Texts with holes: in a URL, a header, a method, a body that is not JSON, or a JSON string.
//!
//! A hole ends at the first occurrence of the text after it. Writing rejects a value that would end elsewhere. Law:
//! written text reads as the same values.

use std::borrow::Cow;

use super::hole_syntax::{HoleRef, PatternError, Token, parse_mention, tokens};
use super::tree::parse_parts;
use super::{
    BoundValue, MatchError, PatternReader, PatternWriter, Role, Slot, TextPart, TextPattern,
};

/// A pattern of a text outside of JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextPatterns<H = Slot> {
    /// Exactly this text.
    Literal(String),
    /// One value that is the whole text, or all of several texts.
    Hole(H),
    /// Text and holes.
    Mixed(TextPattern<H>),
}

/// The texts to write: none, one, or one for each element of a list.
#[derive(Debug)]
pub enum WrittenTexts<'t> {
    /// No text.
    None,
    /// One text, without the allocation of a list.
    One(Cow<'t, str>),
    /// Any number of texts.
    Many(Vec<Cow<'t, str>>),
}

impl<'t> WrittenTexts<'t> {
    /// Returns the last text.
    #[must_use]
    pub fn last(self) -> Option<Cow<'t, str>> {
        match self {
            WrittenTexts::None => None,
            WrittenTexts::One(text) => Some(text),
            WrittenTexts::Many(mut texts) => texts.pop(),
        }
    }

    /// Returns the texts as owned values.
    pub(super) fn into_owned<'o>(self) -> WrittenTexts<'o> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        match self {
            WrittenTexts::None => WrittenTexts::None,
            WrittenTexts::One(text) => WrittenTexts::One(owned(text)),
            WrittenTexts::Many(texts) => WrittenTexts::Many(texts.into_iter().map(owned).collect()),
        }
    }
}

impl<'t> From<Option<Cow<'t, str>>> for WrittenTexts<'t> {
    fn from(text: Option<Cow<'t, str>>) -> Self {
        text.map_or(WrittenTexts::None, WrittenTexts::One)
    }
}

impl<'t> IntoIterator for WrittenTexts<'t> {
    type Item = Cow<'t, str>;
    type IntoIter =
        std::iter::Chain<std::option::IntoIter<Cow<'t, str>>, std::vec::IntoIter<Cow<'t, str>>>;

    fn into_iter(self) -> Self::IntoIter {
        let (one, many) = match self {
            WrittenTexts::None => (None, Vec::new()),
            WrittenTexts::One(text) => (Some(text), Vec::new()),
            WrittenTexts::Many(texts) => (None, texts),
        };
        one.into_iter().chain(many)
    }
}

impl TextPatterns<HoleRef> {
    /// Parses a pattern.
    ///
    /// # Errors
    ///
    /// Fails if the text is not a pattern.
    pub fn parse(text: &str) -> Result<TextPatterns<HoleRef>, PatternError> {
        let cut = tokens(text)?;
        Ok(match &cut[..] {
            [] => TextPatterns::Literal(String::new()),
            [Token::Text(text)] => TextPatterns::Literal(text.clone()),
            [Token::Hole(inside)] => TextPatterns::Hole(parse_mention(inside)?),
            _ => TextPatterns::Mixed(parse_parts(&cut)?),
        })
    }
}

impl TextPatterns<HoleRef> {
    /// Returns the holes in order.
    #[must_use]
    pub fn mentions(&self) -> Vec<&HoleRef> {
        match self {
            TextPatterns::Literal(_) => Vec::new(),
            TextPatterns::Hole(mention) => vec![mention],
            TextPatterns::Mixed(text) => {
                let holes = text.parts.iter().filter_map(|part| match part {
                    TextPart::Text(_) => None,
                    TextPart::Hole(mention) => Some(mention),
                });
                holes.collect()
            }
        }
    }
}

impl TextPatterns {
    /// Returns the slots in order.
    #[must_use]
    pub fn slots(&self) -> Vec<&Slot> {
        match self {
            TextPatterns::Literal(_) => Vec::new(),
            TextPatterns::Hole(slot) => vec![slot],
            TextPatterns::Mixed(text) => text.slots().collect(),
        }
    }

    /// Returns true if there may be no text.
    #[must_use]
    pub fn may_be_absent(&self) -> bool {
        match self {
            TextPatterns::Literal(_) => false,
            TextPatterns::Hole(slot) => !slot.is_required(),
            TextPatterns::Mixed(text) => text.may_be_absent(),
        }
    }

    /// Reads the given texts; there may be none.
    ///
    /// # Errors
    ///
    /// Fails with a description of the expected texts.
    pub fn read(&self, texts: &[&str], reading: &mut PatternReader) -> Result<(), MatchError> {
        match (self, texts) {
            (TextPatterns::Literal(literal), [text]) if literal == text => Ok(()),
            (TextPatterns::Literal(literal), _) => {
                Err(MatchError::here(format!("it must be `{literal}`, once")))
            }
            (TextPatterns::Hole(slot), texts) => {
                let bound = slot
                    .read_texts(texts, reading.depth)
                    .map_err(MatchError::here)?;
                reading.bind(slot, bound)
            }
            (TextPatterns::Mixed(text), []) => text.read_absent(reading),
            (TextPatterns::Mixed(pattern), [text]) => pattern.read(text, reading),
            (TextPatterns::Mixed(_), [..]) => Err(MatchError::here("it is given more than once")),
        }
    }

    /// Reads a text, encoded or not, if the pattern is a single hole and the value is a word.
    #[inline]
    pub fn read_word(&self, text: &str, reading: &mut PatternReader) -> Option<()> {
        match self {
            TextPatterns::Hole(slot) => slot.read_word(text, reading),
            TextPatterns::Literal(_) | TextPatterns::Mixed(_) => None,
        }
    }

    /// Returns the texts to write: none, one, or one for each element of a list.
    ///
    /// # Errors
    ///
    /// Fails if a value has no text here.
    pub fn write<'w>(
        &'w self,
        writing: &PatternWriter<'w>,
    ) -> Result<WrittenTexts<'w>, MatchError> {
        match self {
            TextPatterns::Literal(literal) => Ok(WrittenTexts::One(Cow::Borrowed(literal))),
            TextPatterns::Hole(slot) => slot
                .texts(writing)
                .map_err(|what| MatchError::new(&slot.name, what)),
            TextPatterns::Mixed(text) => Ok(text.write(writing)?.map(Cow::Owned).into()),
        }
    }
}

impl TextPattern {
    /// Reads a text.
    ///
    /// # Errors
    ///
    /// Fails if the text does not match, or if a value has the wrong type.
    pub fn read(&self, text: &str, reading: &mut PatternReader) -> Result<(), MatchError> {
        let mut rest = text;
        let mut parts = self.parts.iter().peekable();
        while let Some(part) = parts.next() {
            match part {
                TextPart::Text(literal) => {
                    rest = rest
                        .strip_prefix(literal.as_str())
                        .ok_or_else(|| self.other_text())?;
                }
                TextPart::Hole(slot) => {
                    let end = match parts.peek() {
                        Some(TextPart::Text(literal)) => rest.find(literal.as_str()),
                        Some(TextPart::Hole(_)) | None => Some(rest.len()),
                    };
                    let (value, after) = rest.split_at(end.ok_or_else(|| self.other_text())?);
                    rest = after;
                    let bound = slot.read_text(value, reading.depth);
                    let bound = bound
                        .map_err(|what| MatchError::here(format!("`{}`: {what}", slot.name)))?;
                    reading.bind(slot, bound)?;
                }
            }
        }
        if rest.is_empty() {
            Ok(())
        } else {
            Err(self.other_text())
        }
    }

    /// Reads an absent text.
    ///
    /// # Errors
    ///
    /// Fails if the text must be present.
    pub fn read_absent(&self, reading: &mut PatternReader) -> Result<(), MatchError> {
        if !self.may_be_absent() {
            return Err(MatchError::here("it is required"));
        }
        for slot in self.slots() {
            let bound = slot.read_absent().map_err(MatchError::here)?;
            reading.bind(slot, bound)?;
        }
        Ok(())
    }

    /// Returns the text to write, if any.
    ///
    /// # Errors
    ///
    /// Fails if a value would not be read back unchanged.
    pub fn write(&self, writing: &PatternWriter<'_>) -> Result<Option<String>, MatchError> {
        let shared = || self.slots().filter(|slot| slot.binds().is_some());
        let is_missing = |slot: &&Slot| match slot.bound(writing).as_ref() {
            BoundValue::Unbound | BoundValue::Absent => true,
            BoundValue::Value(value) => slot.leaves_out(value),
            BoundValue::Members(_) | BoundValue::Each(_) => false,
        };
        if shared().next().is_some() && shared().all(|slot| is_missing(&slot)) {
            return Ok(None);
        }
        let mut text = String::new();
        for (index, part) in self.parts.iter().enumerate() {
            match part {
                TextPart::Text(literal) => text.push_str(literal),
                TextPart::Hole(slot) => {
                    let bound = slot.written(writing);
                    let bound = bound.map_err(|what| MatchError::new(&slot.name, what))?;
                    if let Some(value) = self.value(slot, &bound, index)? {
                        text.push_str(&value);
                    } else if slot.binds().is_some() {
                        return Err(MatchError::here(
                            "some of its values are absent and others are not",
                        ));
                    }
                }
            }
        }
        Ok(Some(text))
    }

    /// Returns the text of a value and checks that reading would end at the same place. A default that is omitted on
    /// its own is written if other values are present.
    fn value<'b>(
        &self,
        slot: &'b Slot,
        bound: &'b BoundValue,
        index: usize,
    ) -> Result<Option<Cow<'b, str>>, MatchError> {
        let error_at = |what: String| MatchError::new(&slot.name, what);
        let value = match bound {
            BoundValue::Value(value) => slot.as_text(value).map(Some),
            BoundValue::Unbound
            | BoundValue::Absent
            | BoundValue::Members(_)
            | BoundValue::Each(_) => slot.write_text(bound),
        };
        let Some(value) = value.map_err(error_at)? else {
            return Ok(None);
        };
        if slot.binds().is_some() {
            self.ends_at(&value, index).map_err(error_at)?;
        }
        Ok(Some(value))
    }

    /// Checks that reading gives exactly this value to the hole at `index`.
    pub(super) fn ends_at(&self, value: &str, index: usize) -> Result<(), String> {
        let Some(TextPart::Text(after)) = self.parts.get(index + 1) else {
            return Ok(());
        };
        if format!("{value}{after}").find(after.as_str()) == Some(value.len()) {
            Ok(())
        } else {
            Err(format!("it contains `{after}`, the text that ends it here"))
        }
    }

    /// Returns the text with one value, and `0` in the other holes.
    pub(super) fn with(&self, name: &str, value: &str) -> String {
        let parts = self.parts.iter().map(|part| match part {
            TextPart::Text(text) => text.as_str(),
            TextPart::Hole(slot) if slot.name == name => value,
            TextPart::Hole(_) => "0",
        });
        parts.collect()
    }

    fn other_text(&self) -> MatchError {
        MatchError::here(format!("it must have the form `{}`", self.shown()))
    }

    /// Returns the pattern as the user wrote it.
    #[must_use]
    pub fn shown(&self) -> String {
        let parts = self.parts.iter().map(|part| match part {
            TextPart::Text(text) => text.clone(),
            TextPart::Hole(slot) if matches!(slot.role, Role::WriteOnly(_)) => {
                format!("{{>{}}}", slot.name)
            }
            TextPart::Hole(slot) => format!("{{{}}}", slot.name),
        });
        parts.collect()
    }
}
