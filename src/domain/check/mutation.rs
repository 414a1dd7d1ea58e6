//! A pattern with one place changed, so that writing it makes a message that reading may not keep.
//!
//! It changes patterns only; what becomes of the message is for others to see.

use crate::domain::json::{Json, JsonKind};
use crate::domain::pattern::{
    Absence, Codec, EachPattern, ListPattern, Null, ObjectPattern, Pattern, Role, Shape, Slot,
    TextPart, TextPattern, TextPatterns,
};

/// What stands in a place instead of what its pattern says.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RawMutation {
    /// Nothing.
    Absent,
    /// This; in a text its text.
    Value(Json),
}

/// One place of a pattern, known by where it lies in memory: patterns are not moved while they are proven.
#[derive(Debug, Clone, Copy)]
pub(super) enum MutationTarget<'p> {
    /// A hole.
    Slot(&'p Slot),
    /// An object, which may be absent as a whole.
    Object(&'p ObjectPattern),
}

/// A spot and what stands there.
#[derive(Debug, Clone)]
pub(super) struct Mutation<'p> {
    pub(super) spot: MutationTarget<'p>,
    pub(super) raw: RawMutation,
}

/// The name of the member that stands for all that a pattern does not name.
const STRANGER: &str = "zz";

impl Mutation<'_> {
    fn hits(&self, slot: &Slot) -> bool {
        matches!(self.spot, MutationTarget::Slot(hit) if std::ptr::eq(hit, slot))
    }

    /// The pattern, changed.
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
        }
    }

    fn instead(&self) -> Pattern {
        match &self.raw {
            RawMutation::Absent => Pattern::Hole(gone()),
            RawMutation::Value(value) => Pattern::Literal(value.clone()),
        }
    }

    fn object(&self, object: &ObjectPattern) -> Pattern {
        if matches!(self.spot, MutationTarget::Object(hit) if std::ptr::eq(hit, object)) {
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
            members.push((STRANGER.to_owned(), Pattern::Literal(value.clone())));
        }
        let mut changed = ObjectPattern::understood(members, rest);
        changed.foreign.clone_from(&object.foreign);
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

    /// The words, changed.
    pub(super) fn words(&self, words: &TextPatterns) -> TextPatterns {
        match words {
            TextPatterns::Hole(slot) if self.hits(slot) => match &self.raw {
                RawMutation::Absent => TextPatterns::Hole(gone()),
                // A list has a text for each element, or one that is cut at commas.
                RawMutation::Value(list) if list.kind() == JsonKind::Array => {
                    TextPatterns::Hole(Slot {
                        role: Role::Forgotten(Some(list.clone())),
                        absence: Absence::Kept,
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

/// A string as its text, anything else as its JSON.
pub(super) fn text_of(value: &Json) -> String {
    match value.text() {
        Some(Ok(text)) => text,
        Some(Err(_)) | None => String::from_utf8_lossy(value.as_bytes()).into_owned(),
    }
}

/// A place that writes nothing; the holes that stood there go on being bound elsewhere.
fn gone() -> Slot {
    Slot {
        name: "_".to_owned(),
        role: Role::Forgotten(None),
        shape: Shape::Any,
        absence: Absence::Kept,
        codec: Codec::Plain,
        null: Null::Value,
    }
}
