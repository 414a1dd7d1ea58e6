//! The nodes of a pattern: values, objects, lists and texts.

use std::sync::Arc;

use super::bindings::BoundValue;
use super::object_plan::{ObjectTemplate, ReadPlan};
use super::slot::{Absence, Codec, Slot};
use crate::json::{Json, encode};

/// A pattern of a JSON value. Its holes are of type `H`: as parsed, or resolved to slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pattern<H = Slot> {
    /// Exactly this value.
    Literal(Json),
    /// Any value that the hole accepts.
    Hole(H),
    /// A string that consists of text and holes.
    Text(TextPattern<H>),
    /// An object with these members.
    Object(ObjectPattern<H>),
    /// An array with these elements.
    List(ListPattern<H>),
    /// An array of any length whose elements all match one pattern; each element has its own values for the holes
    /// inside.
    Each(EachPattern<H>),
    /// A value that matches one of several patterns.
    Either(EitherPattern<H>),
}

/// An object with these members; further ones are unknown unless `rest` receives them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectPattern<H = Slot> {
    /// The named members.
    pub members: Vec<(String, Pattern<H>)>,
    /// The hole for all other members.
    pub rest: Option<H>,
    /// Names that only sibling patterns know: a value with such a member does not match.
    pub overlapping_names: Vec<String>,
    /// The names as encoded JSON, in order, each between a comma and its colon.
    pub(super) keys: Vec<Box<[u8]>>,
    /// The plan for reading values.
    pub(super) access: ReadPlan,
    /// The template for writing when every hole has a value.
    pub(super) filled: Option<ObjectTemplate>,
}

impl<H> ObjectPattern<H> {
    /// Creates an object pattern as parsed, with these members and a hole for all others.
    #[must_use]
    pub fn new(members: Vec<(String, Pattern<H>)>, rest: Option<H>) -> ObjectPattern<H> {
        let keys = members.iter().map(|(name, _)| {
            let mut key = Vec::with_capacity(name.len() + 4);
            key.push(b',');
            encode(name, &mut key);
            key.push(b':');
            key.into()
        });
        ObjectPattern {
            keys: keys.collect(),
            access: ReadPlan::Opened,
            filled: None,
            members,
            rest,
            overlapping_names: Vec::new(),
        }
    }

    /// Returns true for `{}`, which matches only the empty object.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.rest.is_none()
    }
}

impl ObjectPattern {
    /// Creates a resolved object pattern. The plan and the template are computed here once, not for each value.
    #[must_use]
    pub fn understood(members: Vec<(String, Pattern)>, rest: Option<Slot>) -> ObjectPattern {
        let mut object = ObjectPattern::new(members, rest);
        object.change(|_, _| ());
        object
    }

    /// Changes the members and the rest, and computes the plan and the template again.
    pub fn change(
        &mut self,
        change: impl FnOnce(&mut dyn Iterator<Item = &mut Pattern>, Option<&mut Slot>),
    ) {
        let mut members = self.members.iter_mut().map(|(_, member)| member);
        change(&mut members, self.rest.as_mut());
        self.access = ReadPlan::new(&self.members, self.rest.as_ref());
        self.filled = ObjectTemplate::new(self);
    }
}

/// An array with these elements, and no more unless `rest` receives them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListPattern<H = Slot> {
    /// The elements, by position; trailing ones may be absent if their patterns allow it.
    pub items: Vec<Pattern<H>>,
    /// The hole for the elements after them.
    pub rest: Option<H>,
}

/// An array of any length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EachPattern<H = Slot> {
    /// The pattern of each element.
    pub item: Box<Pattern<H>>,
    /// The holes that have a value for each element.
    pub holes: Vec<usize>,
}

/// A value that matches one of several patterns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EitherPattern<H = Slot> {
    /// The hole for the number of the alternative; `None` if the alternatives are forms of the same holes, of which the
    /// first is written.
    pub choice: Option<Box<H>>,
    /// The alternatives.
    pub alternatives: Vec<Pattern<H>>,
    /// The plan of each alternative; empty as parsed.
    pub(super) plans: Vec<AlternativePlan>,
    /// The alternatives in the order of reading: more specific ones first.
    pub(super) order: Vec<usize>,
}

/// The holes and the specificity of one alternative.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct AlternativePlan {
    /// The holes inside.
    pub(super) holes: Vec<usize>,
    /// The holes of the first form that this one lacks, with the values of their absence.
    pub(super) absent: Vec<(usize, BoundValue)>,
    /// The alternatives that match only some of its values.
    pub(super) narrower: Vec<usize>,
}

/// A text with holes; two holes never touch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextPattern<H = Slot> {
    /// The parts in order; neither two texts nor two holes are adjacent.
    pub parts: Vec<TextPart<H>>,
}

/// A part of a text pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextPart<H = Slot> {
    /// Literal text.
    Text(String),
    /// A value, as text.
    Hole(H),
}

impl Pattern {
    /// Returns true if the value may be absent.
    #[must_use]
    pub fn may_be_absent(&self) -> bool {
        match self {
            Pattern::Literal(_) | Pattern::List(_) | Pattern::Each(_) | Pattern::Either(_) => false,
            Pattern::Hole(slot) => !slot.is_required(),
            Pattern::Text(text) => text.may_be_absent(),
            Pattern::Object(object) => {
                !object.is_empty()
                    && object
                        .members
                        .iter()
                        .all(|(_, member)| member.may_be_absent())
            }
        }
    }

    /// Returns the location of a hole, in the form used by [`MatchError`](super::MatchError).
    #[must_use]
    pub fn path_of(&self, hole: usize) -> Option<String> {
        self.path_where(&|slot| slot.binds() == Some(hole))
    }

    /// Returns the location of the page whose offset is the hole with this name.
    #[must_use]
    pub fn path_of_page(&self, name: &str) -> Option<String> {
        self.path_where(&|slot| slot.is_page_of(name))
    }

    fn path_where(&self, is_it: &dyn Fn(&Slot) -> bool) -> Option<String> {
        match self {
            Pattern::Literal(_) => None,
            Pattern::Hole(slot) => is_it(slot).then(String::new),
            Pattern::Text(text) => text.slots().any(is_it).then(String::new),
            Pattern::Object(object) => object
                .members
                .iter()
                .find_map(|(name, member)| Some(format!("/{name}{}", member.path_where(is_it)?))),
            Pattern::List(list) => list
                .items
                .iter()
                .enumerate()
                .find_map(|(index, item)| Some(format!("/{index}{}", item.path_where(is_it)?))),
            Pattern::Each(each) => Some(format!("/*{}", each.item.path_where(is_it)?)),
            Pattern::Either(either) => {
                let mut alternatives = either.alternatives.iter();
                alternatives.find_map(|alternative| alternative.path_where(is_it))
            }
        }
    }
}

impl<H> Pattern<H> {
    /// Visits every hole.
    pub fn slots<'p>(&'p self, visit: &mut impl FnMut(&'p H)) {
        match self {
            Pattern::Literal(_) => {}
            Pattern::Hole(slot) => visit(slot),
            Pattern::Text(text) => text.slots().for_each(visit),
            Pattern::Object(object) => {
                for (_, member) in &object.members {
                    member.slots(visit);
                }
                object.rest.iter().for_each(visit);
            }
            Pattern::List(list) => {
                for item in &list.items {
                    item.slots(visit);
                }
                list.rest.iter().for_each(visit);
            }
            Pattern::Each(each) => each.item.slots(visit),
            Pattern::Either(either) => {
                if let Some(choice) = &either.choice {
                    visit(choice);
                }
                for alternative in &either.alternatives {
                    alternative.slots(visit);
                }
            }
        }
    }
}

impl<H> TextPattern<H> {
    /// Returns the holes in order.
    pub fn slots(&self) -> impl Iterator<Item = &H> {
        self.parts.iter().filter_map(|part| match part {
            TextPart::Text(_) => None,
            TextPart::Hole(slot) => Some(slot),
        })
    }
}

impl TextPattern {
    /// Marks the holes as percent-encoded, for a text that is a URL.
    pub fn percent_encoded(&mut self) {
        for part in &mut self.parts {
            let TextPart::Hole(slot) = part else {
                continue;
            };
            match &slot.codec {
                Codec::Plain => slot.codec = Codec::Percent,
                Codec::Map(map) => slot.codec = Codec::Map(Arc::new(map.percent_encoded())),
                Codec::Json(_) | Codec::Percent | Codec::Keys(_) | Codec::Page(_) => {}
            }
        }
    }

    /// Returns true if the text may be absent: it has holes, and all of them may be absent.
    #[must_use]
    pub fn may_be_absent(&self) -> bool {
        let mut shared = self
            .slots()
            .filter(|slot| slot.binds().is_some())
            .peekable();
        shared.peek().is_some() && shared.all(|slot| slot.absence != Absence::Required)
    }
}
