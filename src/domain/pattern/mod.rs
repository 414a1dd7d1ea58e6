//! Patterns: JSON, or text, with named gaps; the same name on both sides is the same value.
//!
//! A pattern reads a value into bindings, and writes bindings into a value. What is written here knows
//! nothing of routes and replies: it is the language that both are declared in. Laws: write after read is
//! the value, or its normal form; what no pattern names stays the bytes it was; nothing a caller sends
//! makes it panic.

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
    MemberPolicy, Subsumption, intersection, place_meeting, place_within, sample, within,
    words_meeting, words_within,
};
pub use hole_resolver::{HoleFact, HoleFacts, HolePlace, HoleResolver};
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

/// A pattern of one JSON value, over what its holes are: as they are spelled, or as they are understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pattern<H = Slot> {
    /// This value.
    Literal(Json),
    /// Any value that the hole takes.
    Hole(H),
    /// A string of text and holes.
    Text(TextPattern<H>),
    /// An object with these members.
    Object(ObjectPattern<H>),
    /// An array with these elements.
    List(ListPattern<H>),
    /// An array of any length, each element alike; the holes inside are per element.
    Each(EachPattern<H>),
}

/// An object with these members; further ones are unknown unless `rest` takes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectPattern<H = Slot> {
    /// The named members.
    pub members: Vec<(String, Pattern<H>)>,
    /// The members not named.
    pub rest: Option<H>,
    /// Names that only siblings of this pattern know: a value that bears one is not its.
    pub foreign: Vec<String>,
    /// The names in turn as JSON spells them, each between a comma and its colon.
    keys: Vec<Box<[u8]>>,
    /// How values are read.
    access: ReadPlan,
    /// What is written where every hole has a value.
    filled: Option<ObjectTemplate>,
}

impl<H> ObjectPattern<H> {
    /// An object with these members, and others that the hole takes, as it is spelled.
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

    /// `{}`, which fits the empty object only.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.rest.is_none()
    }
}

impl ObjectPattern {
    /// The same as it is understood: how it is read and written is found out once, not for each value.
    #[must_use]
    pub fn understood(members: Vec<(String, Pattern)>, rest: Option<Slot>) -> ObjectPattern {
        let mut object = ObjectPattern::new(members, rest);
        object.change(|_, _| ());
        object
    }

    /// Changes what its members and its rest are like, and finds that out anew.
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

/// An array with these elements, and no more unless `rest` takes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListPattern<H = Slot> {
    /// The elements, by position; those at the end may be absent where their patterns may.
    pub items: Vec<Pattern<H>>,
    /// The elements behind.
    pub rest: Option<H>,
}

/// An array of any length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EachPattern<H = Slot> {
    /// What each element is like.
    pub item: Box<Pattern<H>>,
    /// The holes that have a value for each element.
    pub holes: Vec<usize>,
}

/// Text and holes; two holes never touch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextPattern<H = Slot> {
    /// In order; neither two texts nor two holes follow each other.
    pub parts: Vec<TextPart<H>>,
}

/// A piece of a text pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextPart<H = Slot> {
    /// This text.
    Text(String),
    /// A value, as text.
    Hole(H),
}

/// A place that a hole has in a pattern, as it is understood: with what both sides say of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// The name of the hole, for messages.
    pub name: String,
    /// What reading and writing do here.
    pub role: Role,
    /// What the value looks like.
    pub shape: Shape,
    /// What it means that there is none, on this side.
    pub absence: Absence,
    /// How the value is spelled here.
    pub codec: Codec,
    /// What `null` means here.
    pub null: Null,
}

/// What reading and writing do at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// `{x}`: reading binds the hole with this number, writing takes its value.
    Shared(usize),
    /// `{>x}`: reading takes anything, writing takes the value of this.
    Written(HoleSource),
    /// `{=x}`, `{=x?}`: reading takes what equals the hole with this number, writing takes its value; with `?` there may
    /// be nothing, and nothing is written.
    Equal(usize),
    /// `{_}`, `{_=v}`: reading takes anything and forgets it, writing leaves it out or writes this.
    Forgotten(Option<Json>),
}

/// Where what is only written comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoleSource {
    /// A hole of the same pair.
    Hole(usize),
    /// A hole of the call that this answers.
    Call(usize),
    /// The time.
    Now,
}

/// What `null` means where a hole stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Null {
    /// A value like others, if the shape has it.
    Value,
    /// No value: the other side has the hole in a text, which has no `null`, or it is an object that may be absent.
    Absent,
}

/// What a value looks like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// Any JSON value.
    Any,
    /// One value with a text of its own.
    One(Scalar),
    /// `{x:string[]}`: a list; in a query a repeated key.
    Repeated(Scalar),
    /// `{x:string[,]}`: a list; in a query one text, separated by a delimiter.
    Separated(Scalar, Delimiter),
    /// Any object.
    Object,
    /// Any array.
    Array,
    /// `null`.
    Null,
}

/// The character between the elements of a list in one text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delimiter {
    /// `{x:string[,]}`
    Comma,
    /// `{x:string[|]}`
    Pipe,
    /// `{x:string[ ]}`
    Space,
}

/// The type of a single value. In a URL each is a text; in JSON it has its own kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scalar {
    /// Any text.
    String,
    /// A number without fraction and exponent; it keeps its text.
    Integer,
    /// Any JSON number; it keeps its text.
    Number,
    /// `true` or `false`.
    Boolean,
    /// One of these texts.
    Enum(Vec<String>),
}

/// What it means that a hole has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Absence {
    /// It is the caller's error.
    Refused,
    /// `{x?}`: absent on one side is absent on the other.
    Kept,
    /// `{x=50}`: absent reads as the default, which is always written.
    Filled(Json),
    /// `{x?=50}`: absent reads as the default, which is not written.
    Implied(Json),
}

impl Absence {
    /// The value that an absent one reads as.
    #[must_use]
    pub fn default(&self) -> Option<&Json> {
        match self {
            Absence::Filled(default) | Absence::Implied(default) => Some(default),
            Absence::Refused | Absence::Kept => None,
        }
    }
}

impl Slot {
    /// Whether a value must be there.
    #[must_use]
    pub fn is_required(&self) -> bool {
        matches!(self.role, Role::Shared(_) | Role::Equal(_))
            && matches!(self.absence, Absence::Refused)
    }

    /// The value that stands for an absent one.
    #[must_use]
    pub fn default(&self) -> Option<&Json> {
        self.absence.default()
    }

    /// Whether this value is left out when written.
    #[must_use]
    pub fn leaves_out(&self, value: &Json) -> bool {
        matches!(&self.absence, Absence::Implied(default) if default == value)
    }

    /// The hole that reading binds.
    #[must_use]
    pub fn binds(&self) -> Option<usize> {
        match self.role {
            Role::Shared(hole) => Some(hole),
            Role::Equal(_) | Role::Written(_) | Role::Forgotten(_) => None,
        }
    }

    /// Returns the hole that a value here must be equal to.
    #[must_use]
    pub fn equals(&self) -> Option<usize> {
        match self.role {
            Role::Equal(hole) => Some(hole),
            Role::Shared(_) | Role::Written(_) | Role::Forgotten(_) => None,
        }
    }
}

impl Shape {
    /// The type of the value, or of each element, where it has a text.
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
    /// Whether there may be nothing where this pattern stands.
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

    /// Where a hole is bound, as the pointer of [`MatchError`].
    #[must_use]
    pub fn place_of(&self, hole: usize) -> Option<String> {
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
                .find_map(|(name, member)| Some(format!("/{name}{}", member.place_of(hole)?))),
            Pattern::List(list) => list
                .items
                .iter()
                .enumerate()
                .find_map(|(index, item)| Some(format!("/{index}{}", item.place_of(hole)?))),
            Pattern::Each(each) => Some(format!("/*{}", each.item.place_of(hole)?)),
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
    /// The holes in order.
    pub fn slots(&self) -> impl Iterator<Item = &H> {
        self.parts.iter().filter_map(|part| match part {
            TextPart::Text(_) => None,
            TextPart::Hole(slot) => Some(slot),
        })
    }
}

impl TextPattern {
    /// The same as a URL: values are percent-encoded beside its text.
    pub(in crate::domain) fn percent_encoded(&mut self) {
        for part in &mut self.parts {
            if let TextPart::Hole(slot) = part
                && slot.codec == Codec::Plain
            {
                slot.codec = Codec::Percent;
            }
        }
    }

    /// Whether the text as a whole may be absent: it has holes, and each may be.
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
