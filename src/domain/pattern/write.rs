//! Writing: bindings into the value that a pattern describes.

use std::borrow::Cow;

use super::{
    Absence, Bindings, Bound, EachPattern, ListPattern, Members, Misfit, ObjectPattern, Pattern,
    Presence, Role, Slot, Texts, Writing,
};
use crate::domain::json::{Json, Kind, decode, same_ignoring_case};
use crate::domain::pieces::{Pieces, PiecesWriter};

impl Slot {
    /// What is to be written here.
    #[inline]
    pub(in crate::domain) fn bound<'w>(&self, writing: &Writing<'w>) -> Cow<'w, Bound> {
        match &self.role {
            Role::Shared(hole) => Cow::Borrowed(writing.hole(*hole)),
            Role::Equal(hole) if self.absence == Absence::Refused => {
                Cow::Borrowed(writing.hole(*hole))
            }
            Role::Equal(_) => Cow::Borrowed(&Bound::Absent),
            Role::Written(source) => writing.source(*source),
            Role::Forgotten(Some(value)) => Cow::Owned(Bound::Value(value.clone())),
            Role::Forgotten(None) => Cow::Borrowed(&Bound::Absent),
        }
    }
}

impl Slot {
    /// The texts to write of what is bound here.
    pub(in crate::domain) fn texts<'w>(&self, writing: &Writing<'w>) -> Result<Texts<'w>, String> {
        match self.bound(writing) {
            Cow::Borrowed(bound) => self.write_texts(bound),
            Cow::Owned(bound) => Ok(self.write_texts(&bound)?.into_owned()),
        }
    }

    /// Writes the value of JSON, if there is one.
    fn write(&self, writing: &Writing<'_>, out: &mut PiecesWriter) -> Result<Presence, Misfit> {
        // Mostly what is bound is written as it is.
        if let Some(hole) = self.written_as_it_is()
            && let Bound::Value(value) = writing.hole(hole)
        {
            out.value(value);
            return Ok(Presence::Present);
        }
        let bound = self.bound(writing);
        let value = self.write_json(&bound);
        match value.map_err(|what| Misfit::new(&self.name, what))? {
            Some(value) => {
                out.value(&value);
                Ok(Presence::Present)
            }
            None => Ok(Presence::Absent),
        }
    }
}

impl Pattern {
    /// The value as a message of its own, if there is one; `usual` is how many bytes of it are expected to be copied.
    ///
    /// # Errors
    /// [`Misfit`] names a value that cannot stand where the pattern has it.
    pub fn pieces(&self, writing: &Writing<'_>, usual: usize) -> Result<Option<Pieces>, Misfit> {
        if let Pattern::Object(object) = self
            && let Some(filled) = &object.filled
            && let Some(pieces) = filled.pieces(writing, usual)
        {
            return Ok(Some(pieces));
        }
        let mut out = PiecesWriter::with_capacity(usual);
        Ok(match self.write(writing, &mut out)? {
            Presence::Present => Some(out.finish()),
            Presence::Absent => None,
        })
    }

    /// Writes the value, if there is one.
    ///
    /// # Errors
    /// [`Misfit`] names a value that cannot stand where the pattern has it.
    pub fn write(&self, writing: &Writing<'_>, out: &mut PiecesWriter) -> Result<Presence, Misfit> {
        match self {
            Pattern::Literal(literal) => out.copy(literal.as_bytes()),
            Pattern::Hole(slot) => return slot.write(writing, out),
            Pattern::Text(text) => {
                let Some(text) = text.write(writing)? else {
                    return Ok(Presence::Absent);
                };
                out.string(&text);
            }
            Pattern::Object(object) => object.write(writing, out)?,
            Pattern::List(list) => list.write(writing, out)?,
            Pattern::Each(each) => each.write(writing, out)?,
        }
        Ok(Presence::Present)
    }
}

impl ObjectPattern {
    fn write(&self, writing: &Writing<'_>, out: &mut PiecesWriter) -> Result<(), Misfit> {
        if let Some(filled) = &self.filled
            && let Some(()) = filled.write(writing, out)
        {
            return Ok(());
        }
        let rest = self.rest.as_ref().map(|rest| members(rest.bound(writing)));
        let rest = rest.transpose()?;
        if self.members.is_empty()
            && let Some(rest) = &rest
            && rest.picked.is_none()
        {
            out.value(&rest.object);
            return Ok(());
        }
        let mut first = First::Yes;
        for ((_, pattern), key) in self.members.iter().zip(&self.keys) {
            let mark = out.mark();
            match first {
                First::Yes => {
                    out.push(b'{');
                    out.copy(&key[1..]);
                }
                First::No => out.copy(key),
            }
            match pattern.write(writing, out)? {
                Presence::Present => first = First::No,
                Presence::Absent => out.undo(mark),
            }
        }
        match rest {
            Some(rest) => self.splice(&rest, first, out),
            None => {
                out.copy(first.close());
                Ok(())
            }
        }
    }

    /// Writes the members that are not named behind those that are, and closes the object.
    fn splice(&self, rest: &Members, first: First, out: &mut PiecesWriter) -> Result<(), Misfit> {
        let text = rest.object.as_bytes();
        let Some(picked) = &rest.picked else {
            for member in rest.object.open()? {
                self.refuse_twice(&member.name)?;
            }
            if is_blank(&text[1..text.len() - 1]) {
                out.copy(first.close());
            } else {
                out.push(first.lead());
                out.part(&rest.object, 1..text.len());
            }
            return Ok(());
        };
        let mut first = first;
        for place in picked {
            self.refuse_twice(&name_of(&text[place.clone()])?)?;
            out.push(first.lead());
            out.part(&rest.object, place.clone());
            first = First::No;
        }
        out.copy(first.close());
        Ok(())
    }

    /// A member may not be given by its name and among the others as well.
    fn refuse_twice(&self, name: &str) -> Result<(), Misfit> {
        let known = |(known, _): &&(String, Pattern)| same_ignoring_case(known, name);
        if let Some((known, _)) = self.members.iter().find(known) {
            let what = format!("`{known}` is given in another place already");
            return Err(Misfit::new(name, what));
        }
        let is_foreign = |foreign: &String| same_ignoring_case(foreign, name);
        if self.foreign.iter().any(is_foreign) {
            return Err(Misfit::new(name, "the route does not take it"));
        }
        Ok(())
    }
}

/// Whether a member to write is the first one of its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum First {
    Yes,
    No,
}

impl First {
    const fn lead(self) -> u8 {
        match self {
            First::Yes => b'{',
            First::No => b',',
        }
    }

    const fn close(self) -> &'static [u8] {
        match self {
            First::Yes => b"{}",
            First::No => b"}",
        }
    }
}

/// The name of a member, from its text.
fn name_of(member: &[u8]) -> Result<Cow<'_, str>, Misfit> {
    let mut end = 1;
    while let Some(byte) = member.get(end).filter(|byte| **byte != b'"') {
        end += if *byte == b'\\' { 2 } else { 1 };
    }
    decode(&member[1..end.min(member.len())]).map_err(Misfit::here)
}

fn is_blank(text: &[u8]) -> bool {
    text.iter().all(u8::is_ascii_whitespace)
}

/// What is bound to the members that are not named.
fn members(bound: Cow<'_, Bound>) -> Result<Cow<'_, Members>, Misfit> {
    if let Cow::Borrowed(Bound::Members(members)) = bound {
        return Ok(Cow::Borrowed(members));
    }
    let object = match bound.into_owned() {
        Bound::Members(members) => return Ok(Cow::Owned(members)),
        Bound::Unbound | Bound::Absent => Json::literal("{}"),
        Bound::Value(object) if object.kind() == Kind::Object => object,
        Bound::Value(other) => {
            return Err(Misfit::here(format!(
                "it must be an object, not {}",
                other.kind().described()
            )));
        }
        Bound::Each(_) => return Err(Misfit::here("it has a value for each element")),
    };
    Ok(Cow::Owned(Members {
        object,
        picked: None,
    }))
}

impl Pattern {
    /// The default that is left out here, as it would be written: among others it keeps its place.
    fn left_out(&self, writing: &Writing<'_>) -> Option<Json> {
        let Pattern::Hole(slot) = self else {
            return None;
        };
        match slot.bound(writing).as_ref() {
            Bound::Value(value) if slot.leaves_out(value) => {
                Some(slot.as_json(Cow::Borrowed(value)).into_owned())
            }
            Bound::Value(_)
            | Bound::Unbound
            | Bound::Absent
            | Bound::Members(_)
            | Bound::Each(_) => None,
        }
    }
}

impl ListPattern {
    fn write(&self, writing: &Writing<'_>, out: &mut PiecesWriter) -> Result<(), Misfit> {
        let mut lead = b'[';
        let mut missing = None;
        // Where the defaults begin that are left out unless something follows them.
        let mut tail = None;
        for (index, pattern) in self.items.iter().enumerate() {
            let mark = out.mark();
            out.push(lead);
            let written = pattern.write(writing, out);
            let written = written.map_err(|misfit| misfit.within(&index.to_string()))?;
            match (written, missing) {
                (Presence::Present, None) => (lead, tail) = (b',', None),
                (Presence::Present, Some(gap)) => {
                    let what = format!("it is absent, and element {index} behind it is not");
                    return Err(Misfit::new(self.item_name(gap), what));
                }
                (Presence::Absent, _) => match pattern.left_out(writing) {
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
        let behind = self.rest.as_ref().map(|rest| rest.bound(writing));
        if let Some(Bound::Value(array)) = behind.as_deref() {
            let inside = 1..array.as_bytes().len() - 1;
            if !is_blank(&array.as_bytes()[inside.clone()]) {
                if let Some(gap) = missing {
                    let what = "it is absent, and elements behind it are not";
                    return Err(Misfit::new(self.item_name(gap), what));
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
    /// What an element is known by: its hole, else its place.
    fn item_name(&self, index: usize) -> String {
        if let Some(Pattern::Hole(slot)) = self.items.get(index) {
            slot.name.clone()
        } else {
            index.to_string()
        }
    }
}

impl EachPattern {
    /// The names of the holes that have a value for each element.
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

    fn write(&self, writing: &Writing<'_>, out: &mut PiecesWriter) -> Result<(), Misfit> {
        let lists: Vec<&Vec<Bound>> = self
            .holes
            .iter()
            .filter_map(|hole| match writing.hole(*hole) {
                Bound::Each(list) => Some(list),
                Bound::Unbound | Bound::Absent | Bound::Value(_) | Bound::Members(_) => None,
            })
            .collect();
        let count = lists.first().map_or(0, |list| list.len());
        if lists.iter().any(|list| list.len() != count) {
            return Err(Misfit::here(format!(
                "the values of {} pair by position, and there are not as many of each",
                self.names()
            )));
        }
        let most = self.holes.last().map_or(0, |hole| hole + 1);
        let mut element = Bindings::of(most);
        let mut lead = b'[';
        for index in 0..count {
            for (hole, list) in self.holes.iter().zip(&lists) {
                element.set(*hole, list[index].clone());
            }
            let inside = writing.element(&element);
            out.push(lead);
            let written = self.item.write(&inside, out);
            match written.map_err(|misfit| misfit.within(&index.to_string()))? {
                Presence::Present => {}
                Presence::Absent => {
                    let default = self.item.left_out(&inside).ok_or_else(|| {
                        Misfit::new(index.to_string(), "an element cannot be absent")
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
