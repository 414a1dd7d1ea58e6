//! Mutations: a pattern with one place changed, so that it writes a message that may not survive reading.
//!
//! This module changes patterns only; [`super::round_trip`] sends the message.
//!
//! Used by `check::rules::holes` and `check::subject`.

use dualgauge_patterns::json::{Json, JsonKind};
use dualgauge_patterns::pattern::{
    Absence, Codec, EachPattern, EitherPattern, ListPattern, Null, ObjectPattern, Pattern, Role,
    Shape, Slot, TextPart, TextPattern, TextPatterns,
};

/// The replacement for a place of a pattern.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RawMutation {
    /// No value.
    Absent,
    /// This value; in a text its text.
    Value(Json),
}

/// One place of a pattern, identified by its address: patterns are not moved during the proof.
#[derive(Debug, Clone, Copy)]
pub(super) enum MutationTarget<'p> {
    /// A hole.
    Slot(&'p Slot),
    /// An object, which may be absent as a whole.
    Object(&'p ObjectPattern),
    /// A form, by its index, in place of the one that is written.
    Form(&'p EitherPattern, usize),
}

/// A place with its replacement.
#[derive(Debug, Clone)]
pub(super) struct Mutation<'p> {
    pub(super) target: MutationTarget<'p>,
    pub(super) raw: RawMutation,
}

/// The name of the member that represents all unnamed members.
const UNNAMED: &str = "zz";

impl Mutation<'_> {
    fn hits(&self, slot: &Slot) -> bool {
        matches!(self.target, MutationTarget::Slot(hit) if std::ptr::eq(hit, slot))
    }

    /// Returns the changed pattern.
    pub(super) fn pattern(&self, pattern: &Pattern) -> Pattern {
        match pattern {
            Pattern::Literal(_) => pattern.clone(),
            Pattern::Hole(slot) if self.hits(slot) => self.instead(),
            Pattern::Hole(_) => pattern.clone(),
            Pattern::Text(text) => {
                if self.raw == RawMutation::Absent && text.slots().any(|slot| self.hits(slot)) {
                    return Pattern::Hole(gone());
                }
                Pattern::Text(self.text(text))
            }
            Pattern::Object(object) => self.object(object),
            Pattern::List(list) => Pattern::List(self.list(list)),
            Pattern::Each(each) => Pattern::Each(EachPattern {
                item: Box::new(self.pattern(&each.item)),
                holes: each.holes.clone(),
            }),
            Pattern::Either(either) => self.either(either),
        }
    }

    /// Returns the alternative that has the target, so that it is written.
    fn either(&self, either: &EitherPattern) -> Pattern {
        if let MutationTarget::Form(hit, form) = self.target
            && std::ptr::eq(hit, either)
            && let Some(form) = either.alternatives.get(form)
        {
            return form.clone();
        }
        let mut alternatives = either.alternatives.iter();
        match alternatives.find(|alternative| self.is_inside(alternative)) {
            Some(alternative) => self.pattern(alternative),
            None => Pattern::Either(either.clone()),
        }
    }

    fn is_inside(&self, pattern: &Pattern) -> bool {
        match pattern {
            Pattern::Literal(_) => false,
            Pattern::Hole(slot) => self.hits(slot),
            Pattern::Text(text) => text.slots().any(|slot| self.hits(slot)),
            Pattern::Object(object) => {
                let is_it =
                    matches!(self.target, MutationTarget::Object(hit) if std::ptr::eq(hit, object));
                let mut members = object.members.iter();
                is_it
                    || object.rest.as_ref().is_some_and(|rest| self.hits(rest))
                    || members.any(|(_, member)| self.is_inside(member))
            }
            Pattern::List(list) => {
                let mut items = list.items.iter();
                list.rest.as_ref().is_some_and(|rest| self.hits(rest))
                    || items.any(|item| self.is_inside(item))
            }
            Pattern::Each(each) => self.is_inside(&each.item),
            Pattern::Either(either) => {
                let is_it = matches!(self.target, MutationTarget::Form(hit, _) if std::ptr::eq(hit, either));
                let mut alternatives = either.alternatives.iter();
                is_it || alternatives.any(|alternative| self.is_inside(alternative))
            }
        }
    }

    fn instead(&self) -> Pattern {
        match &self.raw {
            RawMutation::Absent => Pattern::Hole(gone()),
            RawMutation::Value(value) => Pattern::Literal(value.clone()),
        }
    }

    fn object(&self, object: &ObjectPattern) -> Pattern {
        if matches!(self.target, MutationTarget::Object(hit) if std::ptr::eq(hit, object)) {
            return self.instead();
        }
        let members = object.members.iter();
        let members = members.map(|(name, member)| (name.clone(), self.pattern(member)));
        let mut members: Vec<_> = members.collect();
        let mut rest = object.rest.clone();
        if let (Some(hole), RawMutation::Value(value)) = (&object.rest, &self.raw)
            && self.hits(hole)
        {
            rest = None;
            members.push((UNNAMED.to_owned(), Pattern::Literal(value.clone())));
        }
        let mut changed = ObjectPattern::understood(members, rest);
        changed
            .overlapping_names
            .clone_from(&object.overlapping_names);
        Pattern::Object(changed)
    }

    fn list(&self, list: &ListPattern) -> ListPattern {
        let mut changed = ListPattern {
            items: list.items.iter().map(|item| self.pattern(item)).collect(),
            rest: list.rest.clone(),
        };
        if let (Some(rest), RawMutation::Value(value)) = (&list.rest, &self.raw)
            && self.hits(rest)
        {
            changed.rest = None;
            changed.items.push(Pattern::Literal(value.clone()));
        }
        changed
    }

    fn text(&self, text: &TextPattern) -> TextPattern {
        let parts = text.parts.iter().map(|part| match part {
            TextPart::Hole(slot) if self.hits(slot) => match &self.raw {
                RawMutation::Absent => TextPart::Hole(gone()),
                RawMutation::Value(value) => TextPart::Text(text_of(value)),
            },
            TextPart::Hole(_) | TextPart::Text(_) => part.clone(),
        });
        TextPattern {
            parts: parts.collect(),
        }
    }

    /// Returns the changed text pattern.
    pub(super) fn words(&self, words: &TextPatterns) -> TextPatterns {
        match words {
            TextPatterns::Hole(slot) if self.hits(slot) => match &self.raw {
                RawMutation::Absent => TextPatterns::Hole(gone()),
                // A list has one text for each element, or one that is split at commas.
                RawMutation::Value(list) if list.kind() == JsonKind::Array => {
                    TextPatterns::Hole(Slot {
                        role: Role::Ignored(Some(list.clone())),
                        absence: Absence::Optional,
                        ..slot.clone()
                    })
                }
                RawMutation::Value(value) => TextPatterns::Literal(text_of(value)),
            },
            TextPatterns::Mixed(text)
                if self.raw == RawMutation::Absent && text.slots().any(|slot| self.hits(slot)) =>
            {
                TextPatterns::Hole(gone())
            }
            TextPatterns::Mixed(text) => TextPatterns::Mixed(self.text(text)),
            TextPatterns::Literal(_) | TextPatterns::Hole(_) => words.clone(),
        }
    }
}

/// Returns the text of a string, or the JSON of any other value.
pub(super) fn text_of(value: &Json) -> String {
    match value.text() {
        Some(Ok(text)) => text,
        Some(Err(_)) | None => String::from_utf8_lossy(value.as_bytes()).into_owned(),
    }
}

/// Returns a slot that writes nothing. The holes that were there stay bound elsewhere.
fn gone() -> Slot {
    Slot {
        name: "_".to_owned(),
        role: Role::Ignored(None),
        shape: Shape::Any,
        absence: Absence::Optional,
        codec: Codec::Plain,
        null: Null::Value,
    }
}
