//! Replacement of repeated holes by a value, which removes their equality constraints.
//!
//! Used by `pattern::compare::intersection`.

use super::acceptance::{DEPTH, MemberPolicy, few, named, reading, values_of};
use crate::json::Json;
use crate::pattern::{
    Absence, BoundValue, Codec, EachPattern, ListPattern, Null, ObjectPattern, Pattern, Role,
    Scalar, Shape, Slot, TextPart, TextPattern,
};

/// The maximum number of values that are tried for one hole.
const MOST: usize = 24;

/// A pattern in which every position has its own hole.
pub(super) struct Split<'p> {
    pub(super) pattern: Pattern,
    /// The pattern before the split.
    original: &'p Pattern,
    /// The original hole of each.
    was: Vec<usize>,
}

impl<'p> Split<'p> {
    pub(super) fn new(pattern: &'p Pattern) -> Split<'p> {
        let mut split = Split {
            pattern: pattern.clone(),
            original: pattern,
            was: Vec::new(),
        };
        number(&mut split.pattern, &mut split.was);
        split
    }

    /// Returns a hole that occurs several times.
    fn repeated(&self) -> Option<usize> {
        let mut found = None;
        let mut seen = Vec::new();
        self.pattern.slots(&mut |slot| {
            let was = slot.binds().and_then(|hole| self.was.get(hole));
            if let Some(was) = was.filter(|_| !is_nothing(slot)) {
                if seen.contains(was) {
                    found = found.or(Some(*was));
                }
                seen.push(*was);
            }
        });
        found
    }

    /// Returns one position of a hole.
    fn slot(&self, hole: usize) -> Option<&Slot> {
        let mut found = None;
        self.pattern.slots(&mut |slot| {
            let was = slot.binds().and_then(|now| self.was.get(now));
            found = found.or((was == Some(&hole)).then_some(slot));
        });
        found
    }

    /// Returns the values that a JSON value has at the positions of a hole.
    pub(super) fn values(&self, hole: usize, value: &Json) -> Vec<BoundValue> {
        let mut reading = reading(&self.pattern, MemberPolicy::Open);
        let _ = self.pattern.read(Some(value), &mut reading);
        let positions = self.was.iter().enumerate().filter(|(_, was)| **was == hole);
        let bound = positions.map(|(now, _)| reading.bindings.get(now).clone());
        let mut values = Vec::new();
        bound.for_each(|bound| flatten(bound, &mut values));
        values
    }
}

/// Splits a list into the values of its elements.
fn flatten(bound: BoundValue, values: &mut Vec<BoundValue>) {
    match bound {
        BoundValue::Unbound => {}
        BoundValue::Each(list) => list.into_iter().for_each(|bound| flatten(bound, values)),
        BoundValue::Absent | BoundValue::Value(_) | BoundValue::Members(_) => values.push(bound),
    }
}

fn number(pattern: &mut Pattern, was: &mut Vec<usize>) {
    match pattern {
        Pattern::Literal(_) => {}
        Pattern::Hole(slot) => renumber(slot, was),
        Pattern::Text(text) => {
            for part in &mut text.parts {
                if let TextPart::Hole(slot) = part {
                    renumber(slot, was);
                }
            }
        }
        Pattern::Object(object) => object.change(|members, rest| {
            for member in members {
                number(member, was);
            }
            rest.into_iter().for_each(|rest| renumber(rest, was));
        }),
        Pattern::List(list) => {
            for item in &mut list.items {
                number(item, was);
            }
            list.rest.iter_mut().for_each(|rest| renumber(rest, was));
        }
        Pattern::Each(each) => {
            let first = was.len();
            number(&mut each.item, was);
            each.holes = (first..was.len()).collect();
        }
        Pattern::Either(either) => {
            either
                .choice
                .iter_mut()
                .for_each(|choice| renumber(choice, was));
            either.change(|alternative| number(alternative, was));
            either.forget_absent();
        }
    }
}

fn renumber(slot: &mut Slot, was: &mut Vec<usize>) {
    match &mut slot.role {
        Role::Shared(hole) | Role::ReadOnly(hole) => {
            was.push(*hole);
            *hole = was.len() - 1;
        }
        // `{=x}` refers to a hole of another pattern, so here it is a hole of its own.
        Role::Equal(_) => {
            was.push(usize::MAX - was.len());
            slot.role = Role::Shared(was.len() - 1);
        }
        Role::WriteOnly(_) | Role::Ignored(_) => {}
    }
}

/// A hole to replace by a value.
#[derive(Debug, Clone, Copy)]
pub(super) struct PinnedHole(usize);

/// Returns a repeated hole of the first pattern and values to try: those at its positions in `nearest`, those that the
/// other pattern allows at two of the positions, and the other pattern's literals.
pub(super) fn pins(
    one: &Split<'_>,
    other: &Split<'_>,
    nearest: &Json,
    find_common: &dyn Fn(&Pattern, &Pattern) -> Option<Json>,
) -> Option<(PinnedHole, Vec<BoundValue>)> {
    let hole = one.repeated()?;
    let mut values = Vec::new();
    let mut found = Vec::new();
    facing(one.original, other.original, hole, &mut found);
    for (index, (slot, pattern)) in found.iter().enumerate().take(MOST) {
        for (_, next) in found.iter().skip(index + 1).take(1) {
            let common = find_common(pattern, next);
            let read = common.and_then(|common| slot.read_json(Some(&common), DEPTH).ok());
            values.extend(read);
        }
    }
    values.extend(one.values(hole, nearest));
    if let Some(slot) = one.slot(hole) {
        let mut add = |value: &Json| values.extend(slot.read_json(Some(value), DEPTH));
        literals(other.original, &mut add);
        add(&Json::literal("\"\""));
        values_of(slot).iter().for_each(&mut add);
    }
    let mut apart: Vec<BoundValue> = Vec::new();
    for value in values {
        if apart.len() < MOST && !apart.iter().any(|known| known.same(&value)) {
            apart.push(value);
        }
    }
    Some((PinnedHole(hole), apart))
}

/// Collects the parts of another pattern at the positions of a hole in the first one.
fn facing<'p>(
    one: &'p Pattern,
    other: &'p Pattern,
    hole: usize,
    found: &mut Vec<(&'p Slot, &'p Pattern)>,
) {
    match (one, other) {
        (Pattern::Hole(slot), other) if slot.binds() == Some(hole) => found.push((slot, other)),
        (Pattern::Object(one), Pattern::Object(other)) => {
            for (name, member) in &one.members {
                if let Some(twin) = named(other, name) {
                    facing(member, twin, hole, found);
                }
            }
        }
        (Pattern::List(one), Pattern::List(other)) => {
            for (item, twin) in one.items.iter().zip(&other.items) {
                facing(item, twin, hole, found);
            }
        }
        (Pattern::List(one), Pattern::Each(other)) => {
            for item in &one.items {
                facing(item, &other.item, hole, found);
            }
        }
        (Pattern::Each(one), Pattern::List(other)) => {
            for twin in &other.items {
                facing(&one.item, twin, hole, found);
            }
        }
        (Pattern::Each(one), Pattern::Each(other)) => facing(&one.item, &other.item, hole, found),
        (Pattern::Either(either), other) => {
            for one in &either.alternatives {
                facing(one, other, hole, found);
            }
        }
        (one, Pattern::Either(either)) => {
            for other in &either.alternatives {
                facing(one, other, hole, found);
            }
        }
        (
            Pattern::Literal(_)
            | Pattern::Hole(_)
            | Pattern::Text(_)
            | Pattern::Object(_)
            | Pattern::List(_)
            | Pattern::Each(_),
            _,
        ) => {}
    }
}

/// Visits the literals of a pattern.
fn literals(pattern: &Pattern, visit: &mut dyn FnMut(&Json)) {
    match pattern {
        Pattern::Literal(value) => visit(value),
        Pattern::Hole(slot) => few(slot).iter().flatten().for_each(visit),
        Pattern::Text(_) => {}
        Pattern::Object(object) => {
            for (_, member) in &object.members {
                literals(member, visit);
            }
        }
        Pattern::List(list) => list.items.iter().for_each(|item| literals(item, visit)),
        Pattern::Each(each) => literals(&each.item, visit),
        Pattern::Either(either) => {
            let alternatives = either.alternatives.iter();
            alternatives.for_each(|alternative| literals(alternative, visit));
        }
    }
}

impl PinnedHole {
    /// Returns the pattern with the value at all positions of the hole.
    pub(super) fn pinned(self, pattern: &Pattern, value: &BoundValue) -> Pattern {
        match pattern {
            Pattern::Literal(_) => pattern.clone(),
            Pattern::Hole(slot) if slot.binds() == Some(self.0) => match slot.write_json(value) {
                Ok(Some(value)) => Pattern::Literal(value.into_owned()),
                Ok(None) | Err(_) => Pattern::Hole(nothing(self.0)),
            },
            Pattern::Hole(_) => pattern.clone(),
            Pattern::Text(text) => self.text(text, value),
            Pattern::Object(object) => Pattern::Object(self.object(object, value)),
            Pattern::List(list) => Pattern::List(self.list(list, value)),
            Pattern::Each(each) => Pattern::Each(EachPattern {
                item: Box::new(self.pinned(&each.item, value)),
                holes: each.holes.clone(),
            }),
            Pattern::Either(either) => {
                let alternatives = either.alternatives.iter();
                let pinned = alternatives.map(|alternative| self.pinned(alternative, value));
                Pattern::Either(either.with(pinned.collect()))
            }
        }
    }

    fn text(self, text: &TextPattern, value: &BoundValue) -> Pattern {
        let mut parts = Vec::with_capacity(text.parts.len());
        for part in &text.parts {
            match part {
                TextPart::Hole(slot) if slot.binds() == Some(self.0) => {
                    match slot.write_text(value) {
                        Ok(Some(text)) => parts.push(TextPart::Text(text.into_owned())),
                        Ok(None) | Err(_) => return Pattern::Hole(nothing(self.0)),
                    }
                }
                TextPart::Hole(slot) => parts.push(TextPart::Hole(Slot {
                    // One value is present, so all are.
                    absence: Absence::Required,
                    ..slot.clone()
                })),
                TextPart::Text(_) => parts.push(part.clone()),
            }
        }
        if text.slots().all(|slot| slot.binds() != Some(self.0)) {
            return Pattern::Text(text.clone());
        }
        Pattern::Text(TextPattern { parts })
    }

    fn list(self, list: &ListPattern, value: &BoundValue) -> ListPattern {
        let items = list.items.iter();
        let mut pinned = ListPattern {
            items: items.map(|item| self.pinned(item, value)).collect(),
            rest: list.rest.clone(),
        };
        let bound_rest = pinned.rest.take_if(|rest| rest.binds() == Some(self.0));
        if let (Some(_), BoundValue::Value(array)) = (bound_rest, value) {
            let elements = array
                .elements()
                .map(|range| Pattern::Literal(array.piece(range)));
            pinned.items.extend(elements);
        }
        pinned
    }

    fn object(self, object: &ObjectPattern, value: &BoundValue) -> ObjectPattern {
        let members = object.members.iter();
        let members = members.map(|(name, member)| (name.clone(), self.pinned(member, value)));
        let mut members: Vec<_> = members.collect();
        let mut rest = object.rest.clone();
        let bound_rest = rest.take_if(|rest| rest.binds() == Some(self.0));
        let whole = match (bound_rest, value) {
            (Some(_), BoundValue::Value(value)) => Some(value.clone()),
            (Some(_), BoundValue::Members(members)) => Some(members.whole()),
            (Some(_) | None, _) => None,
        };
        if let Some(whole) = whole {
            for member in whole.open().into_iter().flatten() {
                let value = Pattern::Literal(whole.piece(member.value));
                members.push((member.name.into_owned(), value));
            }
        }
        ObjectPattern {
            overlapping_names: object.overlapping_names.clone(),
            ..ObjectPattern::understood(members, rest)
        }
    }
}

/// Returns a slot that matches only absence.
fn nothing(hole: usize) -> Slot {
    Slot {
        name: String::new(),
        role: Role::Shared(hole),
        shape: Shape::One(Scalar::Enum(Vec::new())),
        absence: Absence::Optional,
        codec: Codec::Plain,
        null: Null::Value,
    }
}

fn is_nothing(slot: &Slot) -> bool {
    matches!(&slot.shape, Shape::One(Scalar::Enum(words)) if words.is_empty())
}
