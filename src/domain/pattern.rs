//! Patterns: JSON or text with named holes. A name that occurs on both sides means the same value.
//!
//! A pattern reads a value into bindings, and writes bindings into a value. Routes and outcomes are declared with
//! patterns, but this module knows neither. Laws: writing after reading gives the value or its normal form; data that
//! no pattern names keeps its bytes; no input of a caller causes a panic.

mod bindings;
mod compare;
mod delimiter;
mod equal;
mod fast_read;
mod hole_facts;
mod hole_resolver;
mod hole_syntax;
mod integer;
mod number;
mod read;
mod shape;
mod spelled;
mod template;
mod text;
mod token;
mod tree;
mod value;
mod write;

pub use bindings::{
    Bindings, BoundMembers, BoundValue, MatchError, MatchErrorKind, Now, PatternReader,
    PatternWriter, UnknownMembers, WriteScope,
};
pub use compare::{
    MemberPolicy, Subsumption, intersection, optional_intersection, optional_within, sample,
    within, words_intersection, words_within,
};
pub use hole_resolver::{HoleFact, HoleFacts, HolePosition, HoleResolver};
pub use hole_syntax::{
    Codec, Declared, HoleRef, HoleUse, PatternError, Token, as_key, parse_mention, tokens,
};
pub(in crate::domain) use hole_syntax::{hole_name, mention_named, parse_type};
pub use text::{TextPatterns, WrittenTexts};
pub use tree::SourceTree;
pub use value::ValuePresence;

use crate::domain::json::{Json, encode};
use fast_read::ReadPlan;
use template::ObjectTemplate;

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
}

/// An object with these members; further ones are unknown unless `rest` receives them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectPattern<H = Slot> {
    /// The named members.
    pub members: Vec<(String, Pattern<H>)>,
    /// The hole for all other members.
    pub rest: Option<H>,
    /// Names that only sibling patterns know: a value with such a member does not match.
    pub foreign: Vec<String>,
    /// The names as encoded JSON, in order, each between a comma and its colon.
    keys: Vec<Box<[u8]>>,
    /// The plan for reading values.
    access: ReadPlan,
    /// The template for writing when every hole has a value.
    filled: Option<ObjectTemplate>,
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
            foreign: Vec::new(),
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
    pub(super) fn change(
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

/// An occurrence of a hole in a pattern, resolved with the declarations of both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// The name of the hole, for messages.
    pub name: String,
    /// The role of the hole in reading and writing.
    pub role: Role,
    /// The shape of the value.
    pub shape: Shape,
    /// The meaning of an absent value on this side.
    pub absence: Absence,
    /// The encoding of the value.
    pub codec: Codec,
    /// The meaning of `null`.
    pub null: Null,
}

/// The role of a hole in reading and writing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// `{x}`: reading binds the hole with this number; writing writes its value.
    Shared(usize),
    /// `{>x}`: reading accepts any value; writing takes the value from this source.
    Written(HoleSource),
    /// `{=x}`, `{=x?}`: reading accepts a value that equals that of the hole with this number; writing writes that
    /// value. With `?` the value may be absent, and is not written.
    Equal(usize),
    /// `{_}`, `{_=v}`: reading accepts any value and ignores it; writing writes nothing or this value.
    Forgotten(Option<Json>),
}

/// The source of a write-only value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoleSource {
    /// A hole of the same pair.
    Hole(usize),
    /// A hole of the call, in the response to it.
    Call(usize),
    /// The current time.
    Now,
}

/// The meaning of `null` at a hole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Null {
    /// A value like others, if the shape allows it.
    Value,
    /// No value: the other side has the hole in a text, where `null` does not exist, or the hole is an optional
    /// object.
    Absent,
}

/// The shape of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// Any JSON value.
    Any,
    /// A scalar.
    One(Scalar),
    /// `{x:string[]}`: a list; in a query a repeated key.
    Repeated(Scalar),
    /// `{x:string[,]}`: a list; in a query one text with a delimiter.
    Separated(Scalar, Delimiter),
    /// Any object.
    Object,
    /// Any array.
    Array,
    /// `null`.
    Null,
}

/// The delimiter of a list in one text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delimiter {
    /// `{x:string[,]}`
    Comma,
    /// `{x:string[|]}`
    Pipe,
    /// `{x:string[ ]}`
    Space,
}

/// The type of a scalar. In a URL every scalar is text; in JSON each type has its own kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scalar {
    /// Any text.
    String,
    /// A number without fraction and exponent; it keeps its spelling.
    Integer,
    /// Any JSON number; it keeps its spelling.
    Number,
    /// `true` or `false`.
    Boolean,
    /// One of these texts.
    Enum(Vec<String>),
}

/// The meaning of an absent value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Absence {
    /// An error of the caller.
    Refused,
    /// `{x?}`: absent on one side means absent on the other.
    Preserved,
    /// `{x=50}`: absent reads as the default, which is always written.
    Filled(Json),
    /// `{x?=50}`: absent reads as the default, which is not written.
    Implied(Json),
}

impl Absence {
    /// Returns the value that an absent one reads as.
    #[must_use]
    pub fn default(&self) -> Option<&Json> {
        match self {
            Absence::Filled(default) | Absence::Implied(default) => Some(default),
            Absence::Refused | Absence::Preserved => None,
        }
    }
}

impl Slot {
    /// Returns true if a value must be present.
    #[must_use]
    pub fn is_required(&self) -> bool {
        matches!(self.role, Role::Shared(_) | Role::Equal(_))
            && matches!(self.absence, Absence::Refused)
    }

    /// Returns the value that replaces an absent one.
    #[must_use]
    pub fn default(&self) -> Option<&Json> {
        self.absence.default()
    }

    /// Returns true if this value is omitted when written.
    #[must_use]
    pub fn leaves_out(&self, value: &Json) -> bool {
        matches!(&self.absence, Absence::Implied(default) if default == value)
    }

    /// Returns the hole that reading binds.
    #[must_use]
    pub fn binds(&self) -> Option<usize> {
        match self.role {
            Role::Shared(hole) => Some(hole),
            Role::Equal(_) | Role::Written(_) | Role::Forgotten(_) => None,
        }
    }

    /// Returns the hole that a value here must equal.
    #[must_use]
    pub fn equals(&self) -> Option<usize> {
        match self.role {
            Role::Equal(hole) => Some(hole),
            Role::Shared(_) | Role::Written(_) | Role::Forgotten(_) => None,
        }
    }
}

impl Shape {
    /// Returns the type of the value, or of each element, if it can be written as text.
    #[must_use]
    pub fn scalar(&self) -> Option<&Scalar> {
        match self {
            Shape::One(scalar) | Shape::Repeated(scalar) | Shape::Separated(scalar, _) => {
                Some(scalar)
            }
            Shape::Any | Shape::Object | Shape::Array | Shape::Null => None,
        }
    }
}

impl Pattern {
    /// Returns true if the value may be absent.
    #[must_use]
    pub fn may_be_absent(&self) -> bool {
        match self {
            Pattern::Literal(_) | Pattern::List(_) | Pattern::Each(_) => false,
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

    /// Returns the location of a hole, in the form used by [`MatchError`].
    #[must_use]
    pub fn path_of(&self, hole: usize) -> Option<String> {
        match self {
            Pattern::Literal(_) => None,
            Pattern::Hole(slot) => (slot.binds() == Some(hole)).then(String::new),
            Pattern::Text(text) => {
                let mut slots = text.slots();
                slots
                    .any(|slot| slot.binds() == Some(hole))
                    .then(String::new)
            }
            Pattern::Object(object) => object
                .members
                .iter()
                .find_map(|(name, member)| Some(format!("/{name}{}", member.path_of(hole)?))),
            Pattern::List(list) => list
                .items
                .iter()
                .enumerate()
                .find_map(|(index, item)| Some(format!("/{index}{}", item.path_of(hole)?))),
            Pattern::Each(each) => Some(format!("/*{}", each.item.path_of(hole)?)),
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
    pub(in crate::domain) fn percent_encoded(&mut self) {
        for part in &mut self.parts {
            if let TextPart::Hole(slot) = part
                && slot.codec == Codec::Plain
            {
                slot.codec = Codec::Percent;
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
        shared.peek().is_some() && shared.all(|slot| slot.absence != Absence::Refused)
    }
}

#[cfg(test)]
pub(in crate::domain) mod arbitrary;
#[cfg(test)]
mod tests;
