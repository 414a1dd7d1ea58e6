//! A pattern with one place changed, so that writing it makes a message that reading may not keep.
//!
//! It changes patterns only; what becomes of the message is for others to see.

use crate::domain::json::{Json, Kind};
use crate::domain::pattern::{
    Absence, Codec, EachPattern, ListPattern, Null, ObjectPattern, Part, Pattern, Role, Shape,
    Slot, TextPattern, Words,
};

/// What stands in a place instead of what its pattern says.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Raw {
    /// Nothing.
    Absent,
    /// This; in a text its text.
    Value(Json),
}

/// One place of a pattern, known by where it lies in memory: patterns are not moved while they are proven.
#[derive(Debug, Clone, Copy)]
pub(super) enum Spot<'p> {
    /// A hole.
    Slot(&'p Slot),
    /// An object, which may be absent as a whole.
    Object(&'p ObjectPattern),
}

/// A spot and what stands there.
#[derive(Debug, Clone)]
pub(super) struct Twist<'p> {
    pub(super) spot: Spot<'p>,
    pub(super) raw: Raw,
}

/// The name of the member that stands for all that a pattern does not name.
const STRANGER: &str = "zz";

impl Twist<'_> {
    fn hits(&self, slot: &Slot) -> bool {
        matches!(self.spot, Spot::Slot(hit) if std::ptr::eq(hit, slot))
    }

    /// The pattern, changed.
    pub(super) fn pattern(&self, pattern: &Pattern) -> Pattern {
        match pattern {
            Pattern::Literal(_) => pattern.clone(),
            Pattern::Hole(slot) if self.hits(slot) => self.instead(),
            Pattern::Hole(_) => pattern.clone(),
            Pattern::Text(text) => {
                if self.raw == Raw::Absent && text.slots().any(|slot| self.hits(slot)) {
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
            Raw::Absent => Pattern::Hole(gone()),
            Raw::Value(value) => Pattern::Literal(value.clone()),
        }
    }

    fn object(&self, object: &ObjectPattern) -> Pattern {
        if matches!(self.spot, Spot::Object(hit) if std::ptr::eq(hit, object)) {
            return self.instead();
        }
        let members = object.members.iter();
        let members = members.map(|(name, member)| (name.clone(), self.pattern(member)));
        let mut members: Vec<_> = members.collect();
        let mut rest = object.rest.clone();
        if let (Some(hole), Raw::Value(value)) = (&object.rest, &self.raw)
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
        if let (Some(rest), Raw::Value(value)) = (&list.rest, &self.raw)
            && self.hits(rest)
        {
            changed.rest = None;
            changed.items.push(Pattern::Literal(value.clone()));
        }
        changed
    }

    fn text(&self, text: &TextPattern) -> TextPattern {
        let parts = text.parts.iter().map(|part| match part {
            Part::Hole(slot) if self.hits(slot) => match &self.raw {
                Raw::Absent => Part::Hole(gone()),
                Raw::Value(value) => Part::Text(text_of(value)),
            },
            Part::Hole(_) | Part::Text(_) => part.clone(),
        });
        TextPattern {
            parts: parts.collect(),
        }
    }

    /// The words, changed.
    pub(super) fn words(&self, words: &Words) -> Words {
        match words {
            Words::Hole(slot) if self.hits(slot) => match &self.raw {
                Raw::Absent => Words::Hole(gone()),
                // A list has a text for each element, or one that is cut at commas.
                Raw::Value(list) if list.kind() == Kind::Array => Words::Hole(Slot {
                    role: Role::Forgotten(Some(list.clone())),
                    absence: Absence::Kept,
                    ..slot.clone()
                }),
                Raw::Value(value) => Words::Literal(text_of(value)),
            },
            Words::Mixed(text)
                if self.raw == Raw::Absent && text.slots().any(|slot| self.hits(slot)) =>
            {
                Words::Hole(gone())
            }
            Words::Mixed(text) => Words::Mixed(self.text(text)),
            Words::Literal(_) | Words::Hole(_) => words.clone(),
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
