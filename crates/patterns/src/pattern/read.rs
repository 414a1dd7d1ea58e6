//! Reading: matches a value against a pattern and binds its holes.

use std::ops::Range;

use super::{
    Bindings, BoundMembers, BoundValue, Codec, EachPattern, ListPattern, MatchError, ObjectPattern,
    Pattern, PatternReader, Slot, UnknownMembers,
};
use crate::json::{Json, JsonKind, same_ignoring_case};

impl Pattern {
    /// Reads a value, or its absence.
    ///
    /// # Errors
    ///
    /// Fails with the location below the value, the fault and the allowed values.
    pub fn read(
        &self,
        value: Option<&Json>,
        reading: &mut PatternReader,
    ) -> Result<(), MatchError> {
        match value {
            Some(value) => self.take(value.clone(), reading),
            None => self.read_absent(reading),
        }
    }

    /// Reads an object with exactly the members of this pattern, each once and without escapes. An object that is not
    /// read this way may still match and has to be read as usual.
    pub fn read_at_once(&self, value: &Json, reading: &mut PatternReader) -> Option<()> {
        match self {
            Pattern::Object(object) => object.read_in_one_pass(value, reading),
            Pattern::Literal(_)
            | Pattern::Hole(_)
            | Pattern::Text(_)
            | Pattern::List(_)
            | Pattern::Each(_)
            | Pattern::Either(_) => None,
        }
    }

    /// Reads an owned value.
    pub(super) fn take(&self, value: Json, reading: &mut PatternReader) -> Result<(), MatchError> {
        match self {
            Pattern::Literal(literal) if literal.same(&value) => Ok(()),
            Pattern::Literal(literal) => Err(MatchError::here(format!(
                "it must be `{}`",
                String::from_utf8_lossy(literal.as_bytes())
            ))),
            Pattern::Hole(slot) => {
                let bound = slot.take_json(value, reading.depth);
                reading.bind(slot, bound.map_err(MatchError::here)?)
            }
            Pattern::Text(text) => match value.text() {
                Some(Ok(decoded)) => text.read(&decoded, reading),
                Some(Err(fault)) => Err(MatchError::here(fault)),
                None => Err(kind_is(&value, "a string")),
            },
            Pattern::Object(object) => object.read(&value, reading),
            Pattern::List(list) => list.read(&value, reading),
            Pattern::Each(each) => each.read(&value, reading),
            Pattern::Either(either) => either.read(&value, reading),
        }
    }

    /// Returns true if a member of a call is `null` where an optional object is expected: then `null` means absent. In
    /// responses the two differ, because outcomes distinguish them.
    fn null_means_absent(&self, value: &Json) -> bool {
        matches!(self, Pattern::Object(_)) && value.kind() == JsonKind::Null && self.may_be_absent()
    }

    fn read_absent(&self, reading: &mut PatternReader) -> Result<(), MatchError> {
        let missing = || Err(MatchError::here("it is required"));
        match self {
            Pattern::Literal(_) | Pattern::List(_) | Pattern::Each(_) | Pattern::Either(_) => {
                missing()
            }
            Pattern::Hole(slot) => {
                let bound = slot.read_absent().map_err(MatchError::here)?;
                reading.bind(slot, bound)
            }
            Pattern::Text(text) => text.read_absent(reading),
            Pattern::Object(object) if object.is_empty() => missing(),
            Pattern::Object(object) => object.read_nothing(reading),
        }
    }
}

fn kind_is(value: &Json, wanted: &str) -> MatchError {
    MatchError::here(format!(
        "it must be {wanted}, not {}",
        value.kind().described()
    ))
}

impl ObjectPattern {
    fn read(&self, value: &Json, reading: &mut PatternReader) -> Result<(), MatchError> {
        if value.kind() != JsonKind::Object {
            return Err(kind_is(value, "an object"));
        }
        if self.members.is_empty()
            && self.overlapping_names.is_empty()
            && let Some(rest) = &self.rest
        {
            // No member is looked for, so the object is not opened.
            let object = value.clone();
            return reading.bind(rest, rest.members(object, None)?);
        }
        match self.read_in_one_pass(value, reading) {
            Some(()) => Ok(()),
            None => self.read_opened(value, reading),
        }
    }

    /// Reads an object by its members.
    fn read_opened(&self, value: &Json, reading: &mut PatternReader) -> Result<(), MatchError> {
        let found = value.open()?;
        let mut picked = Vec::new();
        // Members mostly come in the order of the pattern, so the search continues where it stopped.
        let mut expected = self.members.iter();
        for member in &found {
            let is_next = expected.clone().next();
            if is_next.is_some_and(|(name, _)| *name == member.name) {
                expected.next();
                continue;
            }
            if let Some(index_of) = self.index_of(&member.name) {
                expected = self.members[index_of + 1..].iter();
                continue;
            }
            if reading.unknown_members != UnknownMembers::Open {
                self.reject_ambiguous_name(&member.name)?;
            } else if !self.overlapping_names.is_empty() {
                self.reject_overlapping_name(&member.name)?;
            }
            if self.rest.is_some() {
                picked.push(member.whole.clone());
            } else {
                match reading.unknown_members {
                    UnknownMembers::Dropped | UnknownMembers::Open => reading.dropped += 1,
                    UnknownMembers::Refused => {
                        return Err(MatchError::new(&*member.name, "the route does not know it"));
                    }
                }
            }
        }
        if self.is_empty() && !found.is_empty() && reading.unknown_members == UnknownMembers::Open {
            return Err(MatchError::here("it must be the empty object"));
        }
        let mut next = found.iter();
        for (name, pattern) in &self.members {
            let member = next
                .find(|member| member.name == *name)
                .or_else(|| found.iter().find(|member| member.name == *name));
            if next.len() == 0 {
                next = found.iter();
            }
            let read = match member {
                Some(member) => {
                    let value = value.piece(member.value.clone());
                    if reading.unknown_members != UnknownMembers::Open
                        && pattern.null_means_absent(&value)
                    {
                        pattern.read_absent(reading)
                    } else {
                        pattern.take(value, reading)
                    }
                }
                None => pattern.read_absent(reading),
            };
            read.map_err(|error| error.within(name))?;
        }
        match &self.rest {
            Some(rest) => reading.bind(rest, rest.members(value.clone(), Some(picked))?),
            None => Ok(()),
        }
    }

    /// Returns the index of a named member.
    fn index_of(&self, name: &str) -> Option<usize> {
        self.members.iter().position(|(known, _)| known == name)
    }

    /// Rejects a name that only a sibling pattern knows.
    fn reject_overlapping_name(&self, name: &str) -> Result<(), MatchError> {
        let overlaps = |other: &String| same_ignoring_case(other, name);
        if self.overlapping_names.iter().any(overlaps) {
            return Err(MatchError::new(name, "the route does not accept it"));
        }
        Ok(())
    }

    /// Rejects a name that a sibling pattern knows, or that a lenient server may read as one of these.
    fn reject_ambiguous_name(&self, name: &str) -> Result<(), MatchError> {
        self.reject_overlapping_name(name)?;
        let twin = self
            .members
            .iter()
            .find(|(known, _)| same_ignoring_case(known, name));
        match twin {
            Some((known, _)) => Err(MatchError::new(
                name,
                format!("it differs from `{known}` only in letter case"),
            )),
            None => Ok(()),
        }
    }

    /// Reads an absent object, which is treated as an empty one.
    fn read_nothing(&self, reading: &mut PatternReader) -> Result<(), MatchError> {
        for (name, pattern) in &self.members {
            let read = pattern.read(None, reading);
            read.map_err(|error| error.within(name))?;
        }
        match &self.rest {
            Some(rest) => reading.bind(rest, rest.no_members()?),
            None => Ok(()),
        }
    }
}

impl Slot {
    /// Returns the value of the hole for unnamed members, if there are none.
    pub(super) fn no_members(&self) -> Result<BoundValue, MatchError> {
        self.members(Json::literal("{}"), None)
    }

    /// Returns the value of the hole for unnamed members.
    fn members(
        &self,
        object: Json,
        picked: Option<Vec<Range<usize>>>,
    ) -> Result<BoundValue, MatchError> {
        let members = BoundMembers { object, picked };
        match &self.codec {
            Codec::Keys(styles) => {
                let renamed = styles.read(&members.whole());
                renamed.map(BoundValue::Value).map_err(MatchError::here)
            }
            Codec::Plain | Codec::Json(_) | Codec::Percent | Codec::Map(_) | Codec::Page(_) => {
                Ok(BoundValue::Members(members))
            }
        }
    }
}

impl ListPattern {
    fn read(&self, value: &Json, reading: &mut PatternReader) -> Result<(), MatchError> {
        if value.kind() != JsonKind::Array {
            return Err(kind_is(value, "an array"));
        }
        let ranges: Vec<_> = value.elements().collect();
        if ranges.len() > self.items.len() && self.rest.is_none() {
            return Err(MatchError::here(format!(
                "it has {} elements; at most {} are allowed",
                ranges.len(),
                self.items.len()
            )));
        }
        for (index, pattern) in self.items.iter().enumerate() {
            let element = ranges
                .get(index)
                .map(|index_of| value.piece(index_of.clone()));
            let read = pattern.read(element.as_ref(), reading);
            read.map_err(|error| error.within(&index.to_string()))?;
        }
        let Some(rest) = &self.rest else {
            return Ok(());
        };
        let mut text = Vec::with_capacity(value.as_bytes().len());
        text.push(b'[');
        if let (Some(first), Some(last)) = (ranges.get(self.items.len()), ranges.last()) {
            text.extend_from_slice(&value.as_bytes()[first.start..last.end]);
        }
        text.push(b']');
        reading.bind(rest, BoundValue::Value(Json::written(text)))
    }
}

impl EachPattern {
    fn read(&self, value: &Json, reading: &mut PatternReader) -> Result<(), MatchError> {
        if value.kind() != JsonKind::Array {
            return Err(kind_is(value, "an array"));
        }
        let mut lists: Vec<Vec<BoundValue>> = vec![Vec::new(); self.holes.len()];
        let around = std::mem::take(&mut reading.bindings);
        let mut read = Ok(());
        reading.bindings = Bindings::new(around.len());
        for (index, index_of) in value.elements().enumerate() {
            let element = value.piece(index_of);
            read = self.item.read(Some(&element), reading);
            if read.is_err() {
                read = read.map_err(|error| error.within(&index.to_string()));
                break;
            }
            for (list, hole) in lists.iter_mut().zip(&self.holes) {
                list.push(reading.bindings.take(*hole));
            }
        }
        reading.bindings = around;
        read?;
        for (list, hole) in lists.into_iter().zip(&self.holes) {
            let bound = reading.bind_hole(*hole, BoundValue::Each(list));
            bound.map_err(|()| {
                MatchError::here("its elements differ from those of the other occurrence")
            })?;
        }
        Ok(())
    }
}
