//! Writing: bindings into the value that a pattern describes.

use super::{
    Bindings, Bound, EachPattern, ListPattern, Members, Misfit, ObjectPattern, Pattern, Presence,
    Role, Slot, Writing,
};
use crate::domain::json::{Json, Kind, decode, encode, same_ignoring_case};
use crate::domain::pieces::PiecesWriter;

impl Slot {
    /// What is to be written here.
    pub(in crate::domain) fn bound(&self, writing: &Writing<'_>) -> Bound {
        match &self.role {
            Role::Shared(hole) => writing.hole(*hole).clone(),
            Role::Written(source) => writing.source(*source),
            Role::Forgotten(Some(value)) => Bound::Value(value.clone()),
            Role::Forgotten(None) => Bound::Absent,
        }
    }
}

impl Pattern {
    /// Writes the value, if there is one.
    ///
    /// # Errors
    /// [`Misfit`] names a value that cannot stand where the pattern has it.
    pub fn write(&self, writing: &Writing<'_>, out: &mut PiecesWriter) -> Result<Presence, Misfit> {
        self.write_behind(b"", writing, out)
    }

    /// Writes a lead and the value, or neither where there is no value.
    fn write_behind(
        &self,
        lead: &[u8],
        writing: &Writing<'_>,
        out: &mut PiecesWriter,
    ) -> Result<Presence, Misfit> {
        match self {
            Pattern::Literal(literal) => {
                out.copy(lead);
                out.copy(literal.as_bytes());
            }
            Pattern::Hole(slot) => {
                let told = |what: String| Misfit::new(&slot.name, what);
                let Some(value) = slot.write_json(slot.bound(writing)).map_err(told)? else {
                    return Ok(Presence::Absent);
                };
                out.copy(lead);
                out.carry(value.into_bytes());
            }
            Pattern::Text(text) => {
                let Some(text) = text.write(writing)? else {
                    return Ok(Presence::Absent);
                };
                out.copy(lead);
                let mut encoded = Vec::with_capacity(text.len() + 2);
                encode(&text, &mut encoded);
                out.copy(&encoded);
            }
            Pattern::Object(object) => {
                out.copy(lead);
                object.write(writing, out)?;
            }
            Pattern::List(list) => {
                out.copy(lead);
                list.write(writing, out)?;
            }
            Pattern::Each(each) => {
                out.copy(lead);
                each.write(writing, out)?;
            }
        }
        Ok(Presence::Present)
    }
}

impl ObjectPattern {
    fn write(&self, writing: &Writing<'_>, out: &mut PiecesWriter) -> Result<(), Misfit> {
        let rest = self.rest.as_ref().map(|rest| rest.bound(writing));
        let rest = rest.map(members).transpose()?;
        if self.members.is_empty()
            && let Some(Members {
                object,
                picked: None,
            }) = rest
        {
            out.carry(object.into_bytes());
            return Ok(());
        }
        let mut lead = Vec::with_capacity(32);
        lead.push(b'{');
        for (name, pattern) in &self.members {
            let start = lead.len();
            encode(name, &mut lead);
            lead.push(b':');
            let written = pattern.write_behind(&lead, writing, out)?;
            match written {
                Presence::Present => {
                    lead.clear();
                    lead.push(b',');
                }
                Presence::Absent => lead.truncate(start),
            }
        }
        let first = if lead[0] == b'{' {
            First::Yes
        } else {
            First::No
        };
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
        let text = rest.object.clone().into_bytes();
        let Some(picked) = &rest.picked else {
            for member in rest.object.open()? {
                self.refuse_twice(&member.name)?;
            }
            let inside = text.slice(1..);
            if is_blank(&inside[..inside.len() - 1]) {
                out.copy(first.close());
            } else {
                out.copy(first.lead());
                out.carry(inside);
            }
            return Ok(());
        };
        let mut first = first;
        for place in picked {
            self.refuse_twice(&name_of(&text[place.clone()])?)?;
            out.copy(first.lead());
            out.carry(text.slice(place.clone()));
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
    const fn lead(self) -> &'static [u8] {
        match self {
            First::Yes => b"{",
            First::No => b",",
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
fn name_of(member: &[u8]) -> Result<String, Misfit> {
    let mut end = 1;
    while let Some(byte) = member.get(end).filter(|byte| **byte != b'"') {
        end += if *byte == b'\\' { 2 } else { 1 };
    }
    let name = decode(&member[1..end.min(member.len())]);
    name.map(std::borrow::Cow::into_owned).map_err(Misfit::here)
}

fn is_blank(text: &[u8]) -> bool {
    text.iter().all(u8::is_ascii_whitespace)
}

/// What is bound to the members that are not named.
fn members(bound: Bound) -> Result<Members, Misfit> {
    match bound {
        Bound::Members(members) => Ok(members),
        Bound::Value(object) if object.kind() == Kind::Object => Ok(Members {
            object,
            picked: None,
        }),
        Bound::Unbound | Bound::Absent => Ok(Members {
            object: Json::literal("{}"),
            picked: None,
        }),
        Bound::Value(other) => Err(Misfit::here(format!(
            "it must be an object, not {}",
            other.kind().described()
        ))),
        Bound::Each(_) => Err(Misfit::here("it has a value for each element")),
    }
}

impl Pattern {
    /// The default that is left out here, as it would be written: among others it keeps its place.
    fn left_out(&self, writing: &Writing<'_>) -> Option<Json> {
        let Pattern::Hole(slot) = self else {
            return None;
        };
        match slot.bound(writing) {
            Bound::Value(value) if slot.leaves_out(&value) => Some(slot.as_json(value)),
            Bound::Value(_)
            | Bound::Unbound
            | Bound::Absent
            | Bound::Members(_)
            | Bound::Each(_) => None,
        }
    }
}

/// Elements that are left out so far: the place of each, and its default where it has one.
type Gaps = Vec<(usize, Option<Json>)>;

/// Writes what has been left out before an element that is not.
fn fill<'l>(gaps: Gaps, mut lead: &'l [u8], out: &mut PiecesWriter) -> Result<&'l [u8], Misfit> {
    for (index, default) in gaps {
        let Some(default) = default else {
            let what = "it is absent, and elements behind it are not";
            return Err(Misfit::new(index.to_string(), what));
        };
        out.copy(lead);
        out.carry(default.into_bytes());
        lead = b",";
    }
    Ok(lead)
}

impl ListPattern {
    fn write(&self, writing: &Writing<'_>, out: &mut PiecesWriter) -> Result<(), Misfit> {
        let mut lead: &[u8] = b"[";
        let mut gaps = Gaps::new();
        for (index, pattern) in self.items.iter().enumerate() {
            let within = |misfit: Misfit| misfit.within(&index.to_string());
            let presence = if gaps.is_empty() {
                pattern.write_behind(lead, writing, out).map_err(within)?
            } else {
                let mut element = PiecesWriter::with_capacity(64);
                let presence = pattern.write(writing, &mut element).map_err(within)?;
                if presence == Presence::Present {
                    let lead = fill(std::mem::take(&mut gaps), lead, out)?;
                    out.copy(lead);
                    out.carry_all(element.finish());
                }
                presence
            };
            match presence {
                Presence::Present => lead = b",",
                Presence::Absent => gaps.push((index, pattern.left_out(writing))),
            }
        }
        let behind = self.rest.as_ref().map(|rest| rest.bound(writing));
        if let Some(Bound::Value(array)) = behind {
            let text = array.into_bytes();
            let inside = text.slice(1..text.len() - 1);
            if !is_blank(&inside) {
                let behind = fill(gaps, lead, out)?;
                out.copy(behind);
                out.carry(inside);
                lead = b",";
            }
        }
        out.copy(if lead == b"[" { b"[]" } else { b"]" });
        Ok(())
    }
}

impl EachPattern {
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
            return Err(Misfit::here(
                "its values pair by position, and their numbers differ",
            ));
        }
        let most = self.holes.last().map_or(0, |hole| hole + 1);
        let mut element = Bindings::of(most);
        let mut lead: &[u8] = b"[";
        for index in 0..count {
            for (hole, list) in self.holes.iter().zip(&lists) {
                element.set(*hole, list[index].clone());
            }
            let inside = writing.element(&element);
            let written = self.item.write_behind(lead, &inside, out);
            match written.map_err(|misfit| misfit.within(&index.to_string()))? {
                Presence::Present => {}
                Presence::Absent => {
                    let default = self.item.left_out(&inside).ok_or_else(|| {
                        Misfit::new(index.to_string(), "an element cannot be absent")
                    })?;
                    out.copy(lead);
                    out.carry(default.into_bytes());
                }
            }
            lead = b",";
        }
        out.copy(if lead == b"[" { b"[]" } else { b"]" });
        Ok(())
    }
}
