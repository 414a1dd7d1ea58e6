//! What reading binds and writing takes: a value for each hole, by number.

use std::borrow::Cow;
use std::ops::Range;

use super::{HoleSource, Slot};
use crate::domain::json::{Json, OpenFault};
use crate::domain::schema::Exceeded;

/// Why a value does not fit a pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {what}")]
pub struct MatchError {
    /// Where: a path hole, a query parameter, a member of params, the body.
    pub place: String,
    /// What is wrong there, and what is allowed.
    pub what: String,
    /// The part of a budget that looking at the value exceeded; then nothing is known to be wrong with it.
    pub exceeded: Option<Exceeded>,
    /// What kind of fault it is.
    pub kind: MatchErrorKind,
}

/// What kind of fault a [`MatchError`] is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MatchErrorKind {
    /// A value is missing, or is not what its pattern takes.
    #[default]
    Value,
    /// The query has names that the route does not know.
    UnknownQuery,
}

impl MatchError {
    pub(in crate::domain) fn new(place: impl Into<String>, what: impl ToString) -> MatchError {
        MatchError {
            place: place.into(),
            what: what.to_string(),
            exceeded: None,
            kind: MatchErrorKind::Value,
        }
    }

    /// The query has names that the route does not know.
    pub(in crate::domain) fn unknown_query(place: String, what: String) -> MatchError {
        MatchError {
            kind: MatchErrorKind::UnknownQuery,
            ..MatchError::new(place, what)
        }
    }

    /// A value that takes too much to look at.
    pub(in crate::domain) fn exceeding(exceeded: Exceeded, what: impl ToString) -> MatchError {
        MatchError {
            exceeded: Some(exceeded),
            ..MatchError::here(what)
        }
    }

    /// A fault of the value itself, whose place its callers add.
    pub(in crate::domain) fn here(what: impl ToString) -> MatchError {
        MatchError::new("", what)
    }

    /// The same fault of what lies in a place.
    pub(in crate::domain) fn within(mut self, place: &str) -> MatchError {
        if self.place.is_empty() {
            self.place = place.to_owned();
        } else {
            self.place = format!("{place}/{}", self.place);
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
    /// Nothing has been read yet.
    #[default]
    Unbound,
    /// There is none, and that is allowed.
    Absent,
    /// This.
    Value(Json),
    /// The members of an object that no pattern named.
    Members(BoundMembers),
    /// One for each element of an array.
    Each(Vec<BoundValue>),
}

/// Members of an object, as the bytes they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundMembers {
    /// The object that they are of.
    pub object: Json,
    /// Where they lie in it; all of them where it was not opened.
    pub picked: Option<Vec<Range<usize>>>,
}

/// The values of all holes of a pair.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bindings {
    values: Vec<BoundValue>,
}

impl Bindings {
    /// As many holes, none of them bound.
    #[must_use]
    pub fn new(holes: usize) -> Bindings {
        Bindings {
            values: std::iter::repeat_with(BoundValue::default)
                .take(holes)
                .collect(),
        }
    }

    /// The value of a hole.
    #[must_use]
    pub fn get(&self, hole: usize) -> &BoundValue {
        self.values.get(hole).unwrap_or(&BoundValue::Unbound)
    }

    /// Takes the value of a hole away.
    pub(super) fn take(&mut self, hole: usize) -> BoundValue {
        self.values
            .get_mut(hole)
            .map_or(BoundValue::Unbound, std::mem::take)
    }

    /// Sets the value of a hole.
    pub fn set(&mut self, hole: usize, value: BoundValue) {
        if let Some(place) = self.values.get_mut(hole) {
            *place = value;
        }
    }

    /// How many holes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are no holes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

/// What happens to members that a pattern does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownMembers {
    /// They are dropped, and counted.
    Dropped,
    /// They are the caller's error.
    Refused,
    /// They are dropped and counted, but `{}` is the empty object and nothing else: so it is in replies.
    Open,
}

/// A reading in progress.
#[derive(Debug)]
pub struct PatternReader {
    /// What has been bound.
    pub bindings: Bindings,
    /// How many members were dropped.
    pub dropped: usize,
    /// What happens to unknown members.
    pub strangers: UnknownMembers,
    /// The deepest nesting of JSON inside of strings.
    pub depth: u16,
}

impl PatternReader {
    /// A reading of as many holes.
    #[must_use]
    pub fn new(holes: usize, strangers: UnknownMembers, depth: u16) -> PatternReader {
        PatternReader {
            bindings: Bindings::new(holes),
            dropped: 0,
            strangers,
            depth,
        }
    }

    /// Binds a hole; one that is bound already must have the same value.
    #[inline(always)]
    pub(in crate::domain) fn bind(
        &mut self,
        slot: &Slot,
        value: BoundValue,
    ) -> Result<(), MatchError> {
        let Some(hole) = slot.binds() else {
            return self.compare(slot, &value);
        };
        self.bind_hole(hole, value).map_err(|()| {
            let name = &slot.name;
            MatchError::here(format!("it differs from another value of `{name}`"))
        })
    }

    /// Binds a hole to a value, unless it is bound to another one.
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
    /// Whether two values are equal as JSON.
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
    /// An object of these members.
    #[must_use]
    pub fn whole(&self) -> Json {
        let Some(picked) = &self.picked else {
            return self.object.clone();
        };
        let mut text = Vec::with_capacity(self.object.as_bytes().len());
        text.push(b'{');
        for (index, place) in picked.iter().enumerate() {
            if index > 0 {
                text.push(b',');
            }
            text.extend_from_slice(&self.object.as_bytes()[place.clone()]);
        }
        text.push(b'}');
        Json::written(text)
    }
}

/// What writing takes its values from.
#[derive(Debug, Clone, Copy)]
pub struct WriteScope<'s> {
    /// The holes of the pair.
    pub bindings: &'s Bindings,
    /// The holes of the call that this answers.
    pub call: Option<&'s Bindings>,
    /// Tells the time, as RFC 3339 writes it.
    pub now: Now,
}

/// Tells the time, as RFC 3339 writes it.
pub type Now = fn() -> String;

/// A writing in progress: a scope, inside of another one for the elements of an array.
#[derive(Debug, Clone, Copy)]
pub struct PatternWriter<'s> {
    scope: WriteScope<'s>,
    outer: Option<&'s PatternWriter<'s>>,
}

impl<'s> PatternWriter<'s> {
    /// Begins.
    #[must_use]
    pub fn new(scope: WriteScope<'s>) -> PatternWriter<'s> {
        PatternWriter { scope, outer: None }
    }

    /// The same for one element.
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

    /// The value of a hole: of this element, or of what is around it.
    #[inline]
    pub(super) fn hole(&self, hole: usize) -> &'s BoundValue {
        match (self.scope.bindings.get(hole), self.outer) {
            (BoundValue::Unbound, Some(outer)) => outer.hole(hole),
            (bound, _) => bound,
        }
    }

    /// What is written where nothing is read.
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
