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
        if self.foreign.iter().any(|foreign| foreign == name) {
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

impl ListPattern {
    fn write(&self, writing: &Writing<'_>, out: &mut PiecesWriter) -> Result<(), Misfit> {
        let mut lead: &[u8] = b"[";
        let mut missing = None;
        for (index, pattern) in self.items.iter().enumerate() {
            let written = pattern.write_behind(lead, writing, out);
            match written.map_err(|misfit| misfit.within(&index.to_string()))? {
                Presence::Absent => missing = missing.or(Some(index)),
                Presence::Present => match missing {
                    None => lead = b",",
                    Some(gap) => {
                        let what = format!("it is absent, and element {index} behind it is not");
                        return Err(Misfit::new(self.item_name(gap), what));
                    }
                },
            }
        }
        let behind = self.rest.as_ref().map(|rest| rest.bound(writing));
        if let Some(Bound::Value(array)) = behind {
            let text = array.into_bytes();
            let inside = text.slice(1..text.len() - 1);
            if !is_blank(&inside) {
                if let Some(gap) = missing {
                    let what = "it is absent, and elements behind it are not";
                    return Err(Misfit::new(self.item_name(gap), what));
                }
                out.copy(lead);
                out.carry(inside);
                lead = b",";
            }
        }
        out.copy(if lead == b"[" { b"[]" } else { b"]" });
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
        let mut lead: &[u8] = b"[";
        for index in 0..count {
            for (hole, list) in self.holes.iter().zip(&lists) {
                element.set(*hole, list[index].clone());
            }
            let inside = writing.element(&element);
            let written = self.item.write_behind(lead, &inside, out);
            match written.map_err(|misfit| misfit.within(&index.to_string()))? {
                Presence::Present => lead = b",",
                Presence::Absent => {
                    return Err(Misfit::new(
                        index.to_string(),
                        "an element cannot be absent",
                    ));
                }
            }
        }
        out.copy(if lead == b"[" { b"[]" } else { b"]" });
        Ok(())
    }
}
