//! Texts with holes: in a URL, a header, a method, a body that is no JSON, a string of JSON.
//!
//! A hole ends at the first occurrence of the text after it; a value that would end elsewhere is refused
//! when it is written. Law: what is written reads as the same values.

use std::borrow::Cow;

use super::mention::{Mention, PatternError, Token, parse_mention, tokens};
use super::tree::parse_parts;
use super::{Bound, Misfit, Part, Reading, Role, Slot, TextPattern, Writing};

/// A pattern of a text outside of JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Words<H = Slot> {
    /// This text.
    Literal(String),
    /// All of the text is one value, or each of several texts is.
    Hole(H),
    /// Text and holes.
    Mixed(TextPattern<H>),
}

/// The texts that are written: none, one, or one for each element of a list.
#[derive(Debug)]
pub enum Texts<'t> {
    /// None.
    None,
    /// One, which needs no list.
    One(Cow<'t, str>),
    /// Any number.
    Many(Vec<Cow<'t, str>>),
}

impl<'t> Texts<'t> {
    /// The last one.
    #[must_use]
    pub fn last(self) -> Option<Cow<'t, str>> {
        match self {
            Texts::None => None,
            Texts::One(text) => Some(text),
            Texts::Many(mut texts) => texts.pop(),
        }
    }

    /// The same, kept by nobody else.
    pub(super) fn into_owned<'o>(self) -> Texts<'o> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        match self {
            Texts::None => Texts::None,
            Texts::One(text) => Texts::One(owned(text)),
            Texts::Many(texts) => Texts::Many(texts.into_iter().map(owned).collect()),
        }
    }
}

impl<'t> From<Option<Cow<'t, str>>> for Texts<'t> {
    fn from(text: Option<Cow<'t, str>>) -> Self {
        text.map_or(Texts::None, Texts::One)
    }
}

impl<'t> IntoIterator for Texts<'t> {
    type Item = Cow<'t, str>;
    type IntoIter =
        std::iter::Chain<std::option::IntoIter<Cow<'t, str>>, std::vec::IntoIter<Cow<'t, str>>>;

    fn into_iter(self) -> Self::IntoIter {
        let (one, many) = match self {
            Texts::None => (None, Vec::new()),
            Texts::One(text) => (Some(text), Vec::new()),
            Texts::Many(texts) => (None, texts),
        };
        one.into_iter().chain(many)
    }
}

impl Words<Mention> {
    /// The pattern that a text spells.
    ///
    /// # Errors
    /// [`PatternError`] for what is no pattern.
    pub fn parse(text: &str) -> Result<Words<Mention>, PatternError> {
        let cut = tokens(text)?;
        Ok(match &cut[..] {
            [] => Words::Literal(String::new()),
            [Token::Text(text)] => Words::Literal(text.clone()),
            [Token::Hole(inside)] => Words::Hole(parse_mention(inside)?),
            _ => Words::Mixed(parse_parts(&cut)?),
        })
    }
}

impl Words<Mention> {
    /// The mentions in order.
    #[must_use]
    pub fn mentions(&self) -> Vec<&Mention> {
        match self {
            Words::Literal(_) => Vec::new(),
            Words::Hole(mention) => vec![mention],
            Words::Mixed(text) => {
                let holes = text.parts.iter().filter_map(|part| match part {
                    Part::Text(_) => None,
                    Part::Hole(mention) => Some(mention),
                });
                holes.collect()
            }
        }
    }
}

impl Words {
    /// The slots in order.
    #[must_use]
    pub fn slots(&self) -> Vec<&Slot> {
        match self {
            Words::Literal(_) => Vec::new(),
            Words::Hole(slot) => vec![slot],
            Words::Mixed(text) => text.slots().collect(),
        }
    }

    /// Whether there may be no text at all.
    #[must_use]
    pub fn may_be_absent(&self) -> bool {
        match self {
            Words::Literal(_) => false,
            Words::Hole(slot) => !slot.is_required(),
            Words::Mixed(text) => text.may_be_absent(),
        }
    }

    /// Reads the texts that are given, none among them.
    ///
    /// # Errors
    /// [`Misfit`] tells what the texts should have been.
    pub fn read(&self, texts: &[&str], reading: &mut Reading) -> Result<(), Misfit> {
        match (self, texts) {
            (Words::Literal(literal), [text]) if literal == text => Ok(()),
            (Words::Literal(literal), _) => {
                Err(Misfit::here(format!("it must be `{literal}`, once")))
            }
            (Words::Hole(slot), texts) => {
                let bound = slot
                    .read_texts(texts, reading.depth)
                    .map_err(Misfit::here)?;
                reading.bind(slot, bound)
            }
            (Words::Mixed(text), []) => text.read_absent(reading),
            (Words::Mixed(pattern), [text]) => pattern.read(text, reading),
            (Words::Mixed(_), [..]) => Err(Misfit::here("it is given more than once")),
        }
    }

    /// Reads a text, encoded or not, if all of it is a value that is a word.
    #[inline]
    pub(in crate::domain) fn read_word(&self, text: &str, reading: &mut Reading) -> Option<()> {
        match self {
            Words::Hole(slot) => slot.read_word(text, reading),
            Words::Literal(_) | Words::Mixed(_) => None,
        }
    }

    /// The texts to write: none, one, or one for each element of a list.
    ///
    /// # Errors
    /// [`Misfit`] tells which value has no text here.
    pub fn write<'w>(&'w self, writing: &Writing<'w>) -> Result<Texts<'w>, Misfit> {
        match self {
            Words::Literal(literal) => Ok(Texts::One(Cow::Borrowed(literal))),
            Words::Hole(slot) => slot
                .texts(writing)
                .map_err(|what| Misfit::new(&slot.name, what)),
            Words::Mixed(text) => Ok(text.write(writing)?.map(Cow::Owned).into()),
        }
    }
}

impl TextPattern {
    /// Reads a text.
    ///
    /// # Errors
    /// [`Misfit`] where the text is another one, or a value is not of its type.
    pub fn read(&self, text: &str, reading: &mut Reading) -> Result<(), Misfit> {
        let mut rest = text;
        let mut parts = self.parts.iter().peekable();
        while let Some(part) = parts.next() {
            match part {
                Part::Text(literal) => {
                    rest = rest
                        .strip_prefix(literal.as_str())
                        .ok_or_else(|| self.other_text())?;
                }
                Part::Hole(slot) => {
                    let end = match parts.peek() {
                        Some(Part::Text(literal)) => rest.find(literal.as_str()),
                        Some(Part::Hole(_)) | None => Some(rest.len()),
                    };
                    let (value, behind) = rest.split_at(end.ok_or_else(|| self.other_text())?);
                    rest = behind;
                    let bound = slot.read_text(value, reading.depth);
                    let bound =
                        bound.map_err(|what| Misfit::here(format!("`{}`: {what}", slot.name)))?;
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
    /// [`Misfit`] where there must be one.
    pub fn read_absent(&self, reading: &mut Reading) -> Result<(), Misfit> {
        if !self.may_be_absent() {
            return Err(Misfit::here("it is required"));
        }
        for slot in self.slots() {
            let bound = slot.read_absent().map_err(Misfit::here)?;
            reading.bind(slot, bound)?;
        }
        Ok(())
    }

    /// The text to write, if there is one.
    ///
    /// # Errors
    /// [`Misfit`] for a value that would not be read again as it is.
    pub fn write(&self, writing: &Writing<'_>) -> Result<Option<String>, Misfit> {
        let shared = || self.slots().filter(|slot| slot.binds().is_some());
        let is_missing = |slot: &&Slot| match slot.bound(writing).as_ref() {
            Bound::Unbound | Bound::Absent => true,
            Bound::Value(value) => slot.leaves_out(value),
            Bound::Members(_) | Bound::Each(_) => false,
        };
        if shared().next().is_some() && shared().all(|slot| is_missing(&slot)) {
            return Ok(None);
        }
        let mut text = String::new();
        for (index, part) in self.parts.iter().enumerate() {
            match part {
                Part::Text(literal) => text.push_str(literal),
                Part::Hole(slot) => {
                    if let Some(value) = self.value(slot, &slot.bound(writing), index)? {
                        text.push_str(&value);
                    } else if slot.binds().is_some() {
                        return Err(Misfit::here(
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
        bound: &'b Bound,
        index: usize,
    ) -> Result<Option<Cow<'b, str>>, Misfit> {
        let told = |what: String| Misfit::new(&slot.name, what);
        let value = match bound {
            Bound::Value(value) => slot.as_text(value).map(Some),
            Bound::Unbound | Bound::Absent | Bound::Members(_) | Bound::Each(_) => {
                slot.write_text(bound)
            }
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
        let Some(Part::Text(after)) = self.parts.get(index + 1) else {
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
            Part::Text(text) => text.as_str(),
            Part::Hole(slot) if slot.name == name => value,
            Part::Hole(_) => "0",
        });
        parts.collect()
    }

    fn other_text(&self) -> Misfit {
        Misfit::here(format!("it must have the form `{}`", self.shown()))
    }

    /// The pattern as people write it.
    #[must_use]
    pub fn shown(&self) -> String {
        let parts = self.parts.iter().map(|part| match part {
            Part::Text(text) => text.clone(),
            Part::Hole(slot) if matches!(slot.role, Role::Written(_)) => {
                format!("{{>{}}}", slot.name)
            }
            Part::Hole(slot) => format!("{{{}}}", slot.name),
        });
        parts.collect()
    }
}
