//! The facts about the holes of a pair, and the slots that they give at each position of a pattern.

use super::bindings::BoundValue;
use super::default_json::default_json;
use super::hole_checks::{apply_codec, check_position};
use super::hole_syntax::{CHOICE, HoleRef, HoleUse, PatternError};
use super::scope;
use super::text::TextPatterns;
use super::{
    Absence, EachPattern, EitherPattern, HoleSource, ListPattern, Null, ObjectPattern, Pattern,
    Role, Scalar, Shape, Slot, TextPart, TextPattern,
};
use crate::json::{Json, JsonKind};
use crate::side::Side;

/// The kind of position in which a hole occurs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HolePosition {
    /// A JSON value.
    Json,
    /// The members or elements that are not named.
    Rest,
    /// The whole of a text that may be repeated: a query parameter, a header.
    Words,
    /// A part of a text, or the whole of one that occurs once.
    Text,
    /// A path, which is never empty.
    Path,
    /// A whole path segment.
    Segment,
}

/// The resolved facts about a hole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoleFact {
    /// The name; `|` for the number of an alternative.
    pub name: String,
    /// The alternatives around it.
    pub(super) scope: String,
    /// The only side that has it, if it is read only.
    pub(super) only: Option<Side>,
    /// The shape of its value.
    pub shape: Shape,
    /// The number of arrays of like elements around it.
    pub depth: usize,
    pub(super) is_optional: bool,
    pub(super) in_text: bool,
    pub(super) defaults: [Option<DefaultValue>; 2],
}

/// A default, and whether it is omitted when written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DefaultValue {
    pub(super) value: Json,
    pub(super) is_left_out: bool,
}

/// All holes of a pair of patterns, by number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HoleFacts {
    /// The holes in the order of their first occurrence.
    pub holes: Vec<HoleFact>,
    pub(super) call: Vec<HoleFact>,
}

/// Returns the index of a side in an array with one value for each.
pub(super) const fn index(side: Side) -> usize {
    match side {
        Side::Rest => 0,
        Side::Rpc => 1,
    }
}

impl HoleFact {
    /// Returns true for the number of the alternative that was read.
    #[must_use]
    pub fn is_choice(&self) -> bool {
        self.name == CHOICE
    }

    /// Returns the meaning of an absent value on a side.
    #[must_use]
    pub fn absence(&self, side: Side) -> Absence {
        let Some(fallback) = &self.defaults[index(side)] else {
            return if self.is_optional {
                Absence::Optional
            } else {
                Absence::Required
            };
        };
        let value = fallback.value.clone();
        if self.is_optional || fallback.is_left_out {
            Absence::OmittedDefault(value)
        } else {
            Absence::Default(value)
        }
    }

    pub(super) fn null(&self) -> Null {
        let may_be_absent = self.is_optional || self.defaults[0].is_some();
        let is_object = |fallback: &DefaultValue| fallback.value.kind() == JsonKind::Object;
        // An element of a list cannot be absent, so a `null` there is a value.
        let stands_for_object = self.depth == 0
            && (self.shape == Shape::Object || self.defaults.iter().flatten().any(is_object));
        // An optional object may be `null`, whether its pattern names its members or only its type.
        if may_be_absent && (self.in_text || stands_for_object) {
            Null::Absent
        } else {
            Null::Value
        }
    }
}

impl HoleFacts {
    /// Returns the number of a hole.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<usize> {
        self.find_in(name, "")
    }

    /// Returns the name of a hole that is read only.
    #[must_use]
    pub fn read_only(&self) -> Option<&str> {
        let hole = self.holes.iter().find(|hole| hole.only.is_some());
        hole.map(|hole| hole.name.as_str())
    }

    /// Returns the number of a hole in a scope.
    pub(super) fn find_in(&self, name: &str, scope: &str) -> Option<usize> {
        let mut holes = self.holes.iter();
        holes.position(|hole| hole.name == name && hole.scope == scope)
    }

    /// Returns the alternatives that a hole is inside of: for each, the hole for its number and that value.
    #[must_use]
    pub fn choices(&self, hole: usize) -> Vec<(usize, Json)> {
        let Some(fact) = self.holes.get(hole) else {
            return Vec::new();
        };
        let choices = scope::enclosing(&fact.scope).filter_map(|scope| {
            let (choice, index) = scope::choice(scope)?;
            let number = Json::string(&(index + 1).to_string());
            Some((self.find_in(CHOICE, choice)?, number))
        });
        choices.collect()
    }

    /// Returns the number of a hole of the call.
    #[must_use]
    pub fn of_call(&self, name: &str) -> Option<usize> {
        self.call.iter().position(|hole| hole.name == name)
    }

    /// Returns the source of the value of `{>name}`.
    pub(super) fn source(
        &self,
        mention: &HoleRef,
        depth: usize,
    ) -> Result<(HoleSource, Shape), PatternError> {
        let name = &mention.name;
        if name == "now" {
            return Ok((HoleSource::Now, Shape::One(Scalar::String)));
        }
        let mut scopes = scope::enclosing(&mention.scope);
        let found = match scopes.find_map(|scope| self.find_in(name, scope)) {
            Some(hole) => Some((HoleSource::Hole(hole), &self.holes[hole])),
            None => {
                let hole = self.of_call(name);
                hole.map(|hole| (HoleSource::Call(hole), &self.call[hole]))
            }
        };
        match found {
            Some((source, fact)) if fact.depth <= depth => Ok((source, fact.shape.clone())),
            Some(_) => Err(PatternError::new(format!(
                "`{{>{name}}}` is outside the elements that `{name}` has a value for"
            ))),
            None => Err(PatternError::new(format!(
                "`{{>{name}}}` has no value to write: no hole `{name}` is on both sides, and the call has none"
            ))),
        }
    }

    /// Returns the slot at a position.
    ///
    /// # Errors
    ///
    /// Fails if the hole cannot occur there.
    pub fn slot(
        &self,
        side: Side,
        mention: &HoleRef,
        position: HolePosition,
        depth: usize,
    ) -> Result<Slot, PatternError> {
        let mut slot = Slot {
            name: mention.name.clone(),
            role: Role::Ignored(None),
            shape: Shape::Any,
            absence: Absence::Optional,
            codec: mention.codec.clone(),
            null: Null::Value,
        };
        if mention.name == "_" {
            let default = mention.default.as_deref();
            let bare =
                default.map(|value| default_json(value).unwrap_or_else(|| Json::string(value)));
            slot.role = Role::Ignored(bare);
            return Ok(slot);
        }
        if mention.used == HoleUse::WriteOnly {
            let (source, shape) = self.source(mention, depth)?;
            if let HoleSource::Call(hole) = source
                && let Some(only) = self.call.get(hole).and_then(|fact| fact.only)
                && only != side
            {
                return Err(PatternError::new(format!(
                    "`{{>{0}}}` has no value on the {side} side: `{{<{0}}}` is read on the {only} side of the call",
                    mention.name
                )));
            }
            (slot.role, slot.shape) = (Role::WriteOnly(source), shape);
        } else if mention.used == HoleUse::Equal {
            let hole = self
                .find(&mention.name)
                .ok_or_else(|| no_such_hole(mention))?;
            slot.role = Role::Equal(hole);
            slot.shape = mention.shape.clone().unwrap_or(Shape::Any);
            if !mention.is_optional {
                slot.absence = Absence::Required;
            }
        } else if let Some(hole) = self.find_in(&mention.name, &mention.scope) {
            let fact = &self.holes[hole];
            slot.role = match mention.used {
                HoleUse::ReadOnly => Role::ReadOnly(hole),
                HoleUse::Both | HoleUse::WriteOnly | HoleUse::Equal => Role::Shared(hole),
            };
            slot.shape = fact.shape.clone();
            slot.absence = fact.absence(side);
            slot.null = fact.null();
        }
        check_position(&slot, position)?;
        apply_codec(&mut slot, position)?;
        self.set_limit(side, &mut slot, depth)?;
        Ok(slot)
    }

    /// Returns the pattern with its slots.
    ///
    /// # Errors
    ///
    /// Fails if a hole occurs where it cannot.
    pub fn resolve(&self, side: Side, pattern: &Pattern<HoleRef>) -> Result<Pattern, PatternError> {
        self.nested(side, pattern, 0)
    }

    fn nested(
        &self,
        side: Side,
        pattern: &Pattern<HoleRef>,
        depth: usize,
    ) -> Result<Pattern, PatternError> {
        Ok(match pattern {
            Pattern::Literal(json) => Pattern::Literal(json.clone()),
            Pattern::Hole(mention) => {
                Pattern::Hole(self.slot(side, mention, HolePosition::Json, depth)?)
            }
            Pattern::Text(text) => Pattern::Text(self.text(side, text, depth)?),
            Pattern::Object(object) => Pattern::Object(self.object(side, object, depth)?),
            Pattern::List(list) => Pattern::List(self.list(side, list, depth)?),
            Pattern::Each(each) => Pattern::Each(self.each(side, each, depth)?),
            Pattern::Either(either) => Pattern::Either(self.either(side, either, depth)?),
        })
    }

    fn object(
        &self,
        side: Side,
        object: &ObjectPattern<HoleRef>,
        depth: usize,
    ) -> Result<ObjectPattern, PatternError> {
        let mut members = Vec::with_capacity(object.members.len());
        for (name, member) in &object.members {
            let member = self.nested(side, member, depth);
            members.push((
                name.clone(),
                member.map_err(|error| error.under_member(name))?,
            ));
        }
        let rest = object.rest.as_ref();
        let rest = rest.map(|rest| self.slot(side, rest, HolePosition::Rest, depth));
        Ok(ObjectPattern::understood(members, rest.transpose()?))
    }

    fn list(
        &self,
        side: Side,
        list: &ListPattern<HoleRef>,
        depth: usize,
    ) -> Result<ListPattern, PatternError> {
        let mut items = Vec::with_capacity(list.items.len());
        for (index, item) in list.items.iter().enumerate() {
            let item = self.nested(side, item, depth);
            items.push(item.map_err(|error| error.under(&format!("[{index}]")))?);
        }
        let rest = list.rest.as_ref();
        let rest = rest.map(|rest| self.slot(side, rest, HolePosition::Json, depth));
        Ok(ListPattern {
            items,
            rest: rest.transpose()?,
        })
    }

    fn each(
        &self,
        side: Side,
        each: &EachPattern<HoleRef>,
        depth: usize,
    ) -> Result<EachPattern, PatternError> {
        let item = self.nested(side, &each.item, depth + 1);
        let item = item.map_err(|error| error.under("[1]"))?;
        let mut holes = Vec::new();
        item.slots(&mut |slot| holes.extend(slot.binds()));
        holes.sort_unstable();
        holes.dedup();
        if holes.is_empty() {
            return Err(PatternError::new(
                "no hole inside `[\"*\", …]` gives the number of elements; name one, or list the elements",
            ));
        }
        Ok(EachPattern {
            item: Box::new(item),
            holes,
        })
    }

    fn either(
        &self,
        side: Side,
        either: &EitherPattern<HoleRef>,
        depth: usize,
    ) -> Result<EitherPattern, PatternError> {
        let choice = either.choice.as_ref();
        let choice = choice.map(|choice| self.slot(side, choice, HolePosition::Json, depth));
        let mut alternatives = Vec::with_capacity(either.alternatives.len());
        for (index, alternative) in either.alternatives.iter().enumerate() {
            let resolved = self.nested(side, alternative, depth);
            alternatives.push(resolved.map_err(|error| error.under(&format!("[{}]", index + 1)))?);
        }
        EitherPattern::understood(choice.transpose()?, alternatives)
    }

    fn text(
        &self,
        side: Side,
        text: &TextPattern<HoleRef>,
        depth: usize,
    ) -> Result<TextPattern, PatternError> {
        let parts = text.parts.iter().map(|part| {
            Ok(match part {
                TextPart::Text(text) => TextPart::Text(text.clone()),
                TextPart::Hole(mention) => {
                    TextPart::Hole(self.slot(side, mention, HolePosition::Text, depth)?)
                }
            })
        });
        let text = TextPattern {
            parts: parts.collect::<Result<_, _>>()?,
        };
        self.check_defaults(&text)?;
        check_words(&text)?;
        Ok(text)
    }

    /// Checks that the text can hold every default; otherwise a message that uses the default could never be written.
    fn check_defaults(&self, text: &TextPattern) -> Result<(), PatternError> {
        for (index, part) in text.parts.iter().enumerate() {
            let TextPart::Hole(slot) = part else { continue };
            for default in self.defaults_of(slot) {
                let spelled = slot.as_text(&default);
                let fits = spelled.and_then(|spelled| text.ends_at(&spelled, index));
                fits.map_err(|what| unwritable(slot, &what))?;
            }
        }
        Ok(())
    }

    /// Returns the values that may replace an absent value of a slot, on either side.
    fn defaults_of(&self, slot: &Slot) -> impl Iterator<Item = Json> {
        let hole = slot.binds().map(|hole| &self.holes[hole]);
        let absences = hole.map(|hole| Side::ALL.map(|side| hole.absence(side)));
        let defaults = absences.into_iter().flatten();
        defaults.filter_map(|absence| absence.default().cloned())
    }

    /// Checks that the texts pass `fits`: as declared, with every default, and with every word of a value map.
    ///
    /// # Errors
    ///
    /// Fails with a description of the text that does not fit.
    pub fn expect_fit(
        &self,
        words: &TextPatterns,
        fits: impl Fn(&str) -> Result<(), String>,
    ) -> Result<(), PatternError> {
        match words {
            TextPatterns::Literal(text) => fits(text).map_err(PatternError::new)?,
            TextPatterns::Mixed(text) => fits(&text.with("", "")).map_err(PatternError::new)?,
            TextPatterns::Hole(_) => {}
        }
        let fits_with = |slot: &Slot, value: Json| {
            let value = BoundValue::Value(value);
            let mut texts = slot.write_texts(&value)?.into_iter();
            texts.try_for_each(|value| match words {
                TextPatterns::Mixed(text) => fits(&text.with(&slot.name, &value)),
                TextPatterns::Literal(_) | TextPatterns::Hole(_) => fits(&value),
            })
        };
        for slot in words.slots() {
            for default in self.defaults_of(slot) {
                fits_with(slot, default).map_err(|what| unwritable(slot, &what))?;
            }
            for (word, value) in slot.map_words() {
                fits_with(slot, value).map_err(|what| slot.unwritable_word(word, &what))?;
            }
        }
        Ok(())
    }

    /// Returns the text pattern with its slots.
    ///
    /// # Errors
    ///
    /// Fails if a hole occurs where it cannot.
    pub fn words(
        &self,
        side: Side,
        words: &TextPatterns<HoleRef>,
        position: HolePosition,
    ) -> Result<TextPatterns, PatternError> {
        Ok(match words {
            TextPatterns::Literal(text) => TextPatterns::Literal(text.clone()),
            TextPatterns::Hole(mention) => {
                TextPatterns::Hole(self.slot(side, mention, position, 0)?)
            }
            TextPatterns::Mixed(text) => TextPatterns::Mixed(self.text(side, text, 0)?),
        })
    }
}

/// Returns the error for `{=x}` if no hole is read that it could equal.
pub(super) fn no_such_hole(mention: &HoleRef) -> PatternError {
    let name = &mention.name;
    PatternError::new(format!(
        "`{{={name}}}` must equal a hole of the path, the query or a header, and `{name}` is not one; write `{{{name}}}`"
    ))
}

/// Checks that the text can hold every word of the maps of its holes.
fn check_words(text: &TextPattern) -> Result<(), PatternError> {
    for (index, part) in text.parts.iter().enumerate() {
        let TextPart::Hole(slot) = part else { continue };
        for (word, _) in slot.map_words() {
            // The text of a write-only hole is not read, so it may end anywhere.
            let fits = slot.binds().map_or(Ok(()), |_| text.ends_at(word, index));
            fits.map_err(|what| slot.unwritable_word(word, &what))?;
        }
    }
    Ok(())
}

fn unwritable(slot: &Slot, what: &str) -> PatternError {
    PatternError::new(format!("the default of `{}`: {what}", slot.name))
}
