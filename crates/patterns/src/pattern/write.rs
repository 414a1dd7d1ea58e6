//! Writing: builds the value that a pattern describes from bindings.

use std::borrow::Cow;

use super::{
    Absence, Bindings, BoundMembers, BoundValue, Codec, EachPattern, ListPattern, MatchError,
    ObjectPattern, Pattern, PatternWriter, Role, Slot, ValuePresence, WrittenTexts,
};
use crate::json::{Json, JsonKind, decode, same_ignoring_case};
use crate::rope::{Rope, RopeWriter};

impl Slot {
    /// Returns the value to write here.
    #[inline]
    pub fn bound<'w>(&self, writing: &PatternWriter<'w>) -> Cow<'w, BoundValue> {
        match &self.role {
            Role::Shared(hole) => Cow::Borrowed(writing.hole(*hole)),
            Role::Equal(hole) if self.absence == Absence::Required => {
                Cow::Borrowed(writing.hole(*hole))
            }
            Role::Equal(_) => Cow::Borrowed(&BoundValue::Absent),
            Role::ReadOnly(_) => match self.default() {
                Some(default) => Cow::Owned(BoundValue::Value(default.clone())),
                None => Cow::Borrowed(&BoundValue::Absent),
            },
            Role::WriteOnly(source) => writing.source(*source),
            Role::Ignored(Some(value)) => Cow::Owned(BoundValue::Value(value.clone())),
            Role::Ignored(None) => Cow::Borrowed(&BoundValue::Absent),
        }
    }
}

impl Slot {
    /// Returns the texts to write for the value bound here.
    pub fn texts<'w>(&'w self, writing: &PatternWriter<'w>) -> Result<WrittenTexts<'w>, String> {
        match self.written(writing)? {
            Cow::Borrowed(bound) => self.write_texts(bound),
            Cow::Owned(bound) => Ok(self.write_texts(&bound)?.into_owned()),
        }
    }

    /// Writes the JSON value, if any.
    fn write(
        &self,
        writing: &PatternWriter<'_>,
        out: &mut RopeWriter,
    ) -> Result<ValuePresence, MatchError> {
        // Fast path: most bound values are written unchanged.
        if let Some(hole) = self.written_as_it_is()
            && let BoundValue::Value(value) = writing.hole(hole)
        {
            out.value(value);
            return Ok(ValuePresence::Present);
        }
        let bound = self.written(writing);
        let bound = bound.map_err(|what| MatchError::new(&self.name, what))?;
        let value = self.write_json(&bound);
        match value.map_err(|what| MatchError::new(&self.name, what))? {
            Some(value) => {
                out.value(&value);
                Ok(ValuePresence::Present)
            }
            None => Ok(ValuePresence::Absent),
        }
    }
}

impl Pattern {
    /// Returns the value as a message, if any; `usual` is the expected number of copied bytes.
    ///
    /// # Errors
    ///
    /// Fails with the name of a value that cannot occur where the pattern has it.
    pub fn pieces(
        &self,
        writing: &PatternWriter<'_>,
        usual: usize,
    ) -> Result<Option<Rope>, MatchError> {
        if let Pattern::Object(object) = self
            && let Some(filled) = &object.filled
            && let Some(pieces) = filled.pieces(writing, usual)
        {
            return Ok(Some(pieces));
        }
        let mut out = RopeWriter::with_capacity(usual);
        Ok(match self.write(writing, &mut out)? {
            ValuePresence::Present => Some(out.finish()),
            ValuePresence::Absent => None,
        })
    }

    /// Writes the value, if any.
    ///
    /// # Errors
    ///
    /// Fails with the name of a value that cannot occur where the pattern has it.
    pub fn write(
        &self,
        writing: &PatternWriter<'_>,
        out: &mut RopeWriter,
    ) -> Result<ValuePresence, MatchError> {
        match self {
            Pattern::Literal(literal) => out.copy(literal.as_bytes()),
            Pattern::Hole(slot) => return slot.write(writing, out),
            Pattern::Text(text) => {
                let Some(text) = text.write(writing)? else {
                    return Ok(ValuePresence::Absent);
                };
                out.string(&text);
            }
            Pattern::Object(object) => object.write(writing, out)?,
            Pattern::List(list) => list.write(writing, out)?,
            Pattern::Each(each) => each.write(writing, out)?,
            Pattern::Either(either) => return either.write(writing, out),
        }
        Ok(ValuePresence::Present)
    }
}

impl ObjectPattern {
    fn write(&self, writing: &PatternWriter<'_>, out: &mut RopeWriter) -> Result<(), MatchError> {
        if let Some(filled) = &self.filled
            && let Some(()) = filled.write(writing, out)
        {
            return Ok(());
        }
        let rest = self.rest.as_ref().map(|rest| rest.unnamed(writing));
        let rest = rest.transpose()?;
        if self.members.is_empty()
            && let Some(rest) = &rest
            && rest.picked.is_none()
        {
            out.value(&rest.object);
            return Ok(());
        }
        let mut is_first = true;
        for ((_, pattern), key) in self.members.iter().zip(&self.keys) {
            let mark = out.mark();
            if is_first {
                out.push(b'{');
                out.copy(&key[1..]);
            } else {
                out.copy(key);
            }
            match pattern.write(writing, out)? {
                ValuePresence::Present => is_first = false,
                ValuePresence::Absent => out.undo(mark),
            }
        }
        match rest {
            Some(rest) => self.splice(&rest, is_first, out),
            None => {
                out.copy(close(is_first));
                Ok(())
            }
        }
    }

    /// Writes the unnamed members after the named ones, and closes the object.
    fn splice(
        &self,
        rest: &BoundMembers,
        mut is_first: bool,
        out: &mut RopeWriter,
    ) -> Result<(), MatchError> {
        let text = rest.object.as_bytes();
        let Some(picked) = &rest.picked else {
            for member in rest.object.open()? {
                self.refuse_twice(&member.name)?;
            }
            if is_blank(&text[1..text.len() - 1]) {
                out.copy(close(is_first));
            } else {
                out.push(lead(is_first));
                out.part(&rest.object, 1..text.len());
            }
            return Ok(());
        };
        for range in picked {
            self.refuse_twice(&name_of(&text[range.clone()])?)?;
            out.push(lead(is_first));
            out.part(&rest.object, range.clone());
            is_first = false;
        }
        out.copy(close(is_first));
        Ok(())
    }

    /// Rejects a member that occurs both by name and among the unnamed ones.
    fn refuse_twice(&self, name: &str) -> Result<(), MatchError> {
        let known = |(known, _): &&(String, Pattern)| same_ignoring_case(known, name);
        if let Some((known, _)) = self.members.iter().find(known) {
            let what = format!("`{known}` is already given elsewhere");
            return Err(MatchError::new(name, what));
        }
        let overlaps = |other: &String| same_ignoring_case(other, name);
        if self.overlapping_names.iter().any(overlaps) {
            return Err(MatchError::new(name, "the route does not accept it"));
        }
        Ok(())
    }
}

/// Returns the text before the next member of an object.
const fn lead(is_first: bool) -> u8 {
    if is_first { b'{' } else { b',' }
}

/// Returns the end of an object before which `is_first` tells whether no member was written.
const fn close(is_first: bool) -> &'static [u8] {
    if is_first { b"{}" } else { b"}" }
}

/// Returns the name of a member from its text.
fn name_of(member: &[u8]) -> Result<Cow<'_, str>, MatchError> {
    let mut end = 1;
    while let Some(byte) = member.get(end).filter(|byte| **byte != b'"') {
        end += if *byte == b'\\' { 2 } else { 1 };
    }
    decode(&member[1..end.min(member.len())]).map_err(MatchError::here)
}

fn is_blank(text: &[u8]) -> bool {
    text.iter().all(u8::is_ascii_whitespace)
}

impl Slot {
    /// Returns the unnamed members to write.
    fn unnamed<'w>(
        &self,
        writing: &PatternWriter<'w>,
    ) -> Result<Cow<'w, BoundMembers>, MatchError> {
        let members = members(self.bound(writing))?;
        match &self.codec {
            Codec::Keys(styles) => {
                let renamed = styles.write(&members.whole());
                let object = renamed.map_err(|what| MatchError::new(&self.name, what))?;
                Ok(Cow::Owned(BoundMembers {
                    object,
                    picked: None,
                }))
            }
            Codec::Plain | Codec::Json(_) | Codec::Percent | Codec::Map(_) | Codec::Page(_) => {
                Ok(members)
            }
        }
    }
}

/// Returns the value bound to the unnamed members.
fn members(bound: Cow<'_, BoundValue>) -> Result<Cow<'_, BoundMembers>, MatchError> {
    if let Cow::Borrowed(BoundValue::Members(members)) = bound {
        return Ok(Cow::Borrowed(members));
    }
    let object = match bound.into_owned() {
        BoundValue::Members(members) => return Ok(Cow::Owned(members)),
        BoundValue::Unbound | BoundValue::Absent => Json::literal("{}"),
        BoundValue::Value(object) if object.kind() == JsonKind::Object => object,
        BoundValue::Value(other) => {
            return Err(MatchError::here(format!(
                "it must be an object, not {}",
                other.kind().described()
            )));
        }
        BoundValue::Each(_) => return Err(MatchError::here("it has a value for each element")),
    };
    Ok(Cow::Owned(BoundMembers {
        object,
        picked: None,
    }))
}

impl Pattern {
    /// Returns the default that is omitted here, as it would be written: a list needs it to keep positions.
    fn left_out(&self, writing: &PatternWriter<'_>) -> Option<Json> {
        let Pattern::Hole(slot) = self else {
            return None;
        };
        match slot.bound(writing).as_ref() {
            BoundValue::Value(value) if slot.leaves_out(value) => {
                let value = slot.as_json(Cow::Borrowed(value)).ok()?;
                Some(value.into_owned())
            }
            BoundValue::Value(_)
            | BoundValue::Unbound
            | BoundValue::Absent
            | BoundValue::Members(_)
            | BoundValue::Each(_) => None,
        }
    }
}

impl ListPattern {
    fn write(&self, writing: &PatternWriter<'_>, out: &mut RopeWriter) -> Result<(), MatchError> {
        let mut lead = b'[';
        let mut missing = None;
        // The start of the trailing defaults, which are omitted unless a value follows them.
        let mut tail = None;
        for (index, pattern) in self.items.iter().enumerate() {
            let mark = out.mark();
            out.push(lead);
            let written = pattern.write(writing, out);
            let written = written.map_err(|error| error.within(&index.to_string()))?;
            match (written, missing) {
                (ValuePresence::Present, None) => (lead, tail) = (b',', None),
                (ValuePresence::Present, Some(gap)) => {
                    let what = format!("it is absent, but element {index} after it is not");
                    return Err(MatchError::new(self.item_name(gap), what));
                }
                (ValuePresence::Absent, _) => match pattern.left_out(writing) {
                    Some(default) if missing.is_none() => {
                        out.value(&default);
                        tail = tail.or(Some((mark, lead)));
                        lead = b',';
                    }
                    Some(_) | None => {
                        out.undo(mark);
                        missing = missing.or(Some(index));
                    }
                },
            }
        }
        let rest = self.rest.as_ref().map(|rest| rest.bound(writing));
        if let Some(BoundValue::Value(array)) = rest.as_deref() {
            let inside = 1..array.as_bytes().len() - 1;
            if !is_blank(&array.as_bytes()[inside.clone()]) {
                if let Some(gap) = missing {
                    let what = "it is absent, but elements after it are not";
                    return Err(MatchError::new(self.item_name(gap), what));
                }
                out.push(lead);
                out.part(array, inside);
                (lead, tail) = (b',', None);
            }
        }
        if let Some((mark, before)) = tail {
            out.undo(mark);
            lead = before;
        }
        out.copy(if lead == b'[' { b"[]" } else { b"]" });
        Ok(())
    }
}

impl ListPattern {
    /// Returns the name of an element: that of its hole, or its index.
    fn item_name(&self, index: usize) -> String {
        if let Some(Pattern::Hole(slot)) = self.items.get(index) {
            slot.name.clone()
        } else {
            index.to_string()
        }
    }
}

impl EachPattern {
    /// Returns the names of the holes that have a value for each element.
    fn names(&self) -> String {
        let mut names: Vec<String> = Vec::new();
        self.item.slots(&mut |slot| {
            if slot.binds().is_some() {
                names.push(format!("`{}`", slot.name));
            }
        });
        names.sort();
        names.dedup();
        names.join(", ")
    }

    fn write(&self, writing: &PatternWriter<'_>, out: &mut RopeWriter) -> Result<(), MatchError> {
        let lists: Vec<&Vec<BoundValue>> = self
            .holes
            .iter()
            .filter_map(|hole| match writing.hole(*hole) {
                BoundValue::Each(list) => Some(list),
                BoundValue::Unbound
                | BoundValue::Absent
                | BoundValue::Value(_)
                | BoundValue::Members(_) => None,
            })
            .collect();
        let count = lists.first().map_or(0, |list| list.len());
        if lists.iter().any(|list| list.len() != count) {
            return Err(MatchError::here(format!(
                "the values of {} pair by position, but their numbers differ",
                self.names()
            )));
        }
        let most = self.holes.last().map_or(0, |hole| hole + 1);
        let mut element = Bindings::new(most);
        let mut lead = b'[';
        for index in 0..count {
            for (hole, list) in self.holes.iter().zip(&lists) {
                element.set(*hole, list[index].clone());
            }
            let inside = writing.element(&element);
            out.push(lead);
            let written = self.item.write(&inside, out);
            match written.map_err(|error| error.within(&index.to_string()))? {
                ValuePresence::Present => {}
                ValuePresence::Absent => {
                    let default = self.item.left_out(&inside).ok_or_else(|| {
                        MatchError::new(index.to_string(), "an element cannot be absent")
                    })?;
                    out.value(&default);
                }
            }
            lead = b',';
        }
        out.copy(if lead == b'[' { b"[]" } else { b"]" });
        Ok(())
    }
}
