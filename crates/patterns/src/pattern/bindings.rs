//! Bindings: the values of holes, by number, that reading produces and writing consumes.

use std::borrow::Cow;
use std::ops::Range;

use super::page_number::PendingPage;
use super::{Codec, HoleSource, Slot};
use crate::json::{Json, OpenFault};
use crate::schema::Exceeded;

/// The reason why a value does not match a pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{location}: {what}")]
pub struct MatchError {
    /// The location: a path hole, a query parameter, a member of params, or the body.
    pub location: String,
    /// The fault, and the values that are allowed.
    pub what: String,
    /// The budget that reading the value exceeded. The value itself may then be valid.
    pub exceeded: Option<Exceeded>,
    /// The kind of the fault.
    pub kind: MatchErrorKind,
}

/// The kind of a [`MatchError`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MatchErrorKind {
    /// A value is missing or does not match.
    #[default]
    Value,
    /// The query has parameters that the route does not know.
    UnknownQuery,
}

impl MatchError {
    /// Creates the error for a value that does not match.
    pub fn new(location: impl Into<String>, what: impl ToString) -> MatchError {
        MatchError {
            location: location.into(),
            what: what.to_string(),
            exceeded: None,
            kind: MatchErrorKind::Value,
        }
    }

    /// Creates the error for query parameters that the route does not know.
    pub fn unknown_query(location: String, what: String) -> MatchError {
        MatchError {
            kind: MatchErrorKind::UnknownQuery,
            ..MatchError::new(location, what)
        }
    }

    /// Creates the error for a value that exceeds a budget.
    pub fn exceeding(exceeded: Exceeded, what: impl ToString) -> MatchError {
        MatchError {
            exceeded: Some(exceeded),
            ..MatchError::here(what)
        }
    }

    /// Creates an error without a location, which the callers add.
    pub fn here(what: impl ToString) -> MatchError {
        MatchError::new("", what)
    }

    /// Replaces the location by the result of `find`, which gets the old one; keeps the old one if `find` returns `None`.
    #[must_use]
    pub fn located(mut self, find: impl FnOnce(&str) -> Option<String>) -> MatchError {
        if let Some(location) = find(&self.location) {
            self.location = location;
        }
        self
    }

    /// Returns the error with a location in front.
    pub fn within(mut self, location: &str) -> MatchError {
        if self.location.is_empty() {
            self.location = location.to_owned();
        } else {
            self.location = format!("{location}/{}", self.location);
        }
        self
    }
}

impl From<OpenFault> for MatchError {
    fn from(fault: OpenFault) -> Self {
        MatchError::here(fault)
    }
}

/// The value of a hole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum BoundValue {
    /// The hole has not been read.
    #[default]
    Unbound,
    /// There is no value, and that is allowed.
    Absent,
    /// A JSON value.
    Value(Json),
    /// The members of an object that no pattern named.
    Members(BoundMembers),
    /// One value for each element of an array.
    Each(Vec<BoundValue>),
}

/// Members of an object, as raw bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundMembers {
    /// The object.
    pub object: Json,
    /// The ranges of the members in it; `None` means all members.
    pub picked: Option<Vec<Range<usize>>>,
}

/// The values of all holes of a pair.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bindings {
    values: Vec<BoundValue>,
}

impl Bindings {
    /// Creates unbound values for `holes` holes.
    #[must_use]
    pub fn new(holes: usize) -> Bindings {
        Bindings {
            values: std::iter::repeat_with(BoundValue::default)
                .take(holes)
                .collect(),
        }
    }

    /// Returns the value of a hole.
    #[must_use]
    #[inline]
    pub fn get(&self, hole: usize) -> &BoundValue {
        self.values.get(hole).unwrap_or(&BoundValue::Unbound)
    }

    /// Takes the value of a hole out of the bindings.
    pub(super) fn take(&mut self, hole: usize) -> BoundValue {
        self.values
            .get_mut(hole)
            .map_or(BoundValue::Unbound, std::mem::take)
    }

    /// Sets the value of a hole.
    #[inline]
    pub fn set(&mut self, hole: usize, value: BoundValue) {
        if let Some(bound) = self.values.get_mut(hole) {
            *bound = value;
        }
    }

    /// Returns the number of holes.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns true if there are no holes.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

/// The treatment of members that a pattern does not name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownMembers {
    /// They are dropped and counted.
    Dropped,
    /// They are an error of the caller.
    Refused,
    /// They are dropped and counted, except that `{}` matches only the empty object. This applies to responses.
    Open,
}

/// The state of reading a value.
#[derive(Debug)]
pub struct PatternReader {
    /// The values bound so far.
    pub bindings: Bindings,
    /// The number of dropped members.
    pub dropped: usize,
    /// The treatment of unknown members.
    pub unknown_members: UnknownMembers,
    /// The maximum nesting depth of JSON inside strings.
    pub depth: u16,
    /// The pages whose limits are not known yet.
    pub(super) pages: Vec<PendingPage>,
}

impl PatternReader {
    /// Creates a reader for `holes` holes.
    #[must_use]
    pub fn new(holes: usize, unknown_members: UnknownMembers, depth: u16) -> PatternReader {
        PatternReader {
            bindings: Bindings::new(holes),
            dropped: 0,
            unknown_members,
            depth,
            pages: Vec::new(),
        }
    }

    /// Binds a hole. If it is bound already, the values must be equal.
    #[inline(always)]
    pub fn bind(&mut self, slot: &Slot, value: BoundValue) -> Result<(), MatchError> {
        let Some(hole) = slot.binds() else {
            return self.compare(slot, &value);
        };
        if matches!(slot.codec, Codec::Page(_)) {
            return self.bind_page(slot, hole, value);
        }
        self.bind_hole(hole, value).map_err(|()| {
            let name = &slot.name;
            MatchError::here(format!("it differs from another value of `{name}`"))
        })
    }

    /// Binds a hole to a value. Returns `None` if it is bound to another one.
    #[inline(always)]
    pub(super) fn bind_value(&mut self, hole: usize, value: Json) -> Option<()> {
        match self.bindings.values.get_mut(hole) {
            Some(unbound @ BoundValue::Unbound) => *unbound = BoundValue::Value(value),
            _ => self.bind_hole(hole, BoundValue::Value(value)).ok()?,
        }
        Some(())
    }

    #[inline]
    pub(super) fn bind_hole(&mut self, hole: usize, value: BoundValue) -> Result<(), ()> {
        match self.bindings.values.get_mut(hole) {
            Some(unbound @ BoundValue::Unbound) => {
                *unbound = value;
                Ok(())
            }
            Some(before) if before.same(&value) => Ok(()),
            Some(_) => Err(()),
            None => Ok(()),
        }
    }
}

impl BoundValue {
    /// Returns true if two values are equal as JSON.
    #[must_use]
    pub fn same(&self, other: &BoundValue) -> bool {
        match (self, other) {
            (BoundValue::Value(one), BoundValue::Value(other)) => one.same(other),
            (BoundValue::Members(one), BoundValue::Members(other)) => {
                one.whole().same(&other.whole())
            }
            (BoundValue::Members(one), BoundValue::Value(other))
            | (BoundValue::Value(other), BoundValue::Members(one)) => one.whole().same(other),
            (BoundValue::Each(one), BoundValue::Each(other)) => {
                one.len() == other.len()
                    && one.iter().zip(other).all(|(one, other)| one.same(other))
            }
            (one, other) => one == other,
        }
    }
}

impl BoundMembers {
    /// Returns an object of these members.
    #[must_use]
    pub fn whole(&self) -> Json {
        let Some(picked) = &self.picked else {
            return self.object.clone();
        };
        let mut text = Vec::with_capacity(self.object.as_bytes().len());
        text.push(b'{');
        for (index, range) in picked.iter().enumerate() {
            if index > 0 {
                text.push(b',');
            }
            text.extend_from_slice(&self.object.as_bytes()[range.clone()]);
        }
        text.push(b'}');
        Json::written(text)
    }
}

/// The sources of the values to write.
#[derive(Debug, Clone, Copy)]
pub struct WriteScope<'s> {
    /// The holes of the pair.
    pub bindings: &'s Bindings,
    /// The holes of the call, in a response to it.
    pub call: Option<&'s Bindings>,
    /// The clock.
    pub now: Now,
}

/// A clock that returns the time in the format of RFC 3339.
pub type Now = fn() -> String;

/// The state of writing: a scope, nested in another one for the elements of an array.
#[derive(Debug, Clone, Copy)]
pub struct PatternWriter<'s> {
    scope: WriteScope<'s>,
    outer: Option<&'s PatternWriter<'s>>,
}

impl<'s> PatternWriter<'s> {
    /// Creates a writer.
    #[must_use]
    pub fn new(scope: WriteScope<'s>) -> PatternWriter<'s> {
        PatternWriter { scope, outer: None }
    }

    /// Creates a writer for one element.
    #[must_use]
    pub(super) fn element(&'s self, bindings: &'s Bindings) -> PatternWriter<'s> {
        PatternWriter {
            scope: WriteScope {
                bindings,
                ..self.scope
            },
            outer: Some(self),
        }
    }

    /// Returns the value of a hole, from this element or from the enclosing scopes.
    #[inline]
    pub(super) fn hole(&self, hole: usize) -> &'s BoundValue {
        match (self.scope.bindings.get(hole), self.outer) {
            (BoundValue::Unbound, Some(outer)) => outer.hole(hole),
            (bound, _) => bound,
        }
    }

    /// Returns the value of a write-only hole.
    pub(super) fn source(&self, source: HoleSource) -> Cow<'s, BoundValue> {
        match source {
            HoleSource::Hole(hole) => Cow::Borrowed(self.hole(hole)),
            HoleSource::Call(hole) => Cow::Borrowed(
                self.scope
                    .call
                    .map_or(&BoundValue::Absent, |call| call.get(hole)),
            ),
            HoleSource::Now => Cow::Owned(BoundValue::Value(Json::string(&(self.scope.now)()))),
        }
    }
}
