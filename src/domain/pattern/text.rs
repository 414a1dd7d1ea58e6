//! Texts with holes: in a URL, a header, a method, a body that is no JSON, a string of JSON.
//!
//! A hole ends at the first occurrence of the text after it; a value that would end elsewhere is refused
//! when it is written. Law: what is written reads as the same values.

use std::borrow::Cow;

use super::hole_syntax::{HoleRef, PatternError, Token, parse_mention, tokens};
use super::tree::parse_parts;
use super::{
    BoundValue, MatchError, PatternReader, PatternWriter, Role, Slot, TextPart, TextPattern,
};

/// A pattern of a text outside of JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextPatterns<H = Slot> {
    /// This text.
    Literal(String),
    /// All of the text is one value, or each of several texts is.
    Hole(H),
    /// Text and holes.
    Mixed(TextPattern<H>),
}

/// The texts that are written: none, one, or one for each element of a list.
#[derive(Debug)]
pub enum WrittenTexts<'t> {
    /// None.
    None,
    /// One, which needs no list.
    One(Cow<'t, str>),
    /// Any number.
    Many(Vec<Cow<'t, str>>),
}

impl<'t> WrittenTexts<'t> {
    /// The last one.
    #[must_use]
    pub fn last(self) -> Option<Cow<'t, str>> {
        match self {
            WrittenTexts::None => None,
            WrittenTexts::One(text) => Some(text),
            WrittenTexts::Many(mut texts) => texts.pop(),
        }
    }

    /// The same, kept by nobody else.
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
    /// The pattern that a text spells.
    ///
    /// # Errors
    /// [`PatternError`] for what is no pattern.
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
    /// The mentions in order.
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
    /// The slots in order.
    #[must_use]
    pub fn slots(&self) -> Vec<&Slot> {
        match self {
            TextPatterns::Literal(_) => Vec::new(),
            TextPatterns::Hole(slot) => vec![slot],
            TextPatterns::Mixed(text) => text.slots().collect(),
        }
    }

    /// Whether there may be no text at all.
    #[must_use]
    pub fn may_be_absent(&self) -> bool {
        match self {
            TextPatterns::Literal(_) => false,
            TextPatterns::Hole(slot) => !slot.is_required(),
            TextPatterns::Mixed(text) => text.may_be_absent(),
        }
    }

    /// Reads the texts that are given, none among them.
    ///
    /// # Errors
    /// [`MatchError`] tells what the texts should have been.
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

    /// Reads a text, encoded or not, if all of it is a value that is a word.
    #[inline]
    pub(in crate::domain) fn read_word(
        &self,
        text: &str,
        reading: &mut PatternReader,
    ) -> Option<()> {
        match self {
            TextPatterns::Hole(slot) => slot.read_word(text, reading),
            TextPatterns::Literal(_) | TextPatterns::Mixed(_) => None,
        }
    }

    /// The texts to write: none, one, or one for each element of a list.
    ///
    /// # Errors
    /// [`MatchError`] tells which value has no text here.
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
    /// [`MatchError`] where the text is another one, or a value is not of its type.
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
                    let (value, behind) = rest.split_at(end.ok_or_else(|| self.other_text())?);
                    rest = behind;
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

    /// Reads that there is no text.
    ///
    /// # Errors
    /// [`MatchError`] where there must be one.
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

    /// The text to write, if there is one.
    ///
    /// # Errors
    /// [`MatchError`] for a value that would not be read again as it is.
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
                    if let Some(value) = self.value(slot, &slot.bound(writing), index)? {
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

    /// The text of a value, which must end where reading would end it. Beside others that are there, a default
    /// is written that is left out where it stands alone.
    fn value<'b>(
        &self,
        slot: &Slot,
        bound: &'b BoundValue,
        index: usize,
    ) -> Result<Option<Cow<'b, str>>, MatchError> {
        let told = |what: String| MatchError::new(&slot.name, what);
        let value = match bound {
            BoundValue::Value(value) => slot.as_text(value).map(Some),
            BoundValue::Unbound
            | BoundValue::Absent
            | BoundValue::Members(_)
            | BoundValue::Each(_) => slot.write_text(bound),
        };
        let Some(value) = value.map_err(told)? else {
            return Ok(None);
        };
        if slot.binds().is_some() {
            self.ends_behind(&value, index).map_err(told)?;
        }
        Ok(Some(value))
    }

    /// Whether a value of the hole at `index` is read to its end and no further.
    pub(super) fn ends_behind(&self, value: &str, index: usize) -> Result<(), String> {
        let Some(TextPart::Text(after)) = self.parts.get(index + 1) else {
            return Ok(());
        };
        if format!("{value}{after}").find(after.as_str()) == Some(value.len()) {
            Ok(())
        } else {
            Err(format!("it contains `{after}`, the text that ends it here"))
        }
    }

    /// The text with one value, and `0` in the holes of other names.
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

    /// The pattern as people write it.
    #[must_use]
    pub fn shown(&self) -> String {
        let parts = self.parts.iter().map(|part| match part {
            TextPart::Text(text) => text.clone(),
            TextPart::Hole(slot) if matches!(slot.role, Role::Written(_)) => {
                format!("{{>{}}}", slot.name)
            }
            TextPart::Hole(slot) => format!("{{{}}}", slot.name),
        });
        parts.collect()
    }
}
