//! Templates for objects whose holes all have a value: alternating texts and values, without decisions.
//!
//! Law: the output is the same as that of writing member by member.

use super::object_plan::ObjectTemplate;
use super::{Absence, BoundValue, Codec, ObjectPattern, Pattern, PatternWriter, Role, Slot};
use crate::rope::{Rope, RopeWriter};

impl ObjectTemplate {
    /// Creates the template of an object. Returns `None` if the object needs more than text and values.
    pub(super) fn new(object: &ObjectPattern) -> Option<ObjectTemplate> {
        let mut draft = TemplateDraft::default();
        draft.object(object)?;
        let texts = draft.holes.iter().map(|(text, _)| text.len());
        Some(ObjectTemplate {
            length: texts.sum::<usize>() + draft.text.len(),
            holes: draft.holes,
            end: draft.text.into(),
        })
    }

    /// Writes the object if every hole has a value.
    pub(super) fn write(&self, writing: &PatternWriter<'_>, out: &mut RopeWriter) -> Option<()> {
        let has_value =
            |(_, hole): &(_, usize)| matches!(writing.hole(*hole), BoundValue::Value(_));
        if self.holes.iter().all(has_value) {
            self.fill(writing, out)
        } else {
            None
        }
    }

    /// Returns the object as a message if every hole has a value.
    pub(super) fn pieces(&self, writing: &PatternWriter<'_>, usual: usize) -> Option<Rope> {
        let mut out = RopeWriter::with_capacity(self.length + usual);
        self.fill(writing, &mut out)?;
        Some(out.finish())
    }

    /// Writes up to the first hole that has no value.
    #[inline]
    fn fill(&self, writing: &PatternWriter<'_>, out: &mut RopeWriter) -> Option<()> {
        for (text, hole) in &self.holes {
            let BoundValue::Value(value) = writing.hole(*hole) else {
                return None;
            };
            out.copy(text);
            out.value(value);
        }
        out.copy(&self.end);
        Some(())
    }
}

#[derive(Default)]
struct TemplateDraft {
    holes: Vec<(Box<[u8]>, usize)>,
    text: Vec<u8>,
}

impl TemplateDraft {
    fn value(&mut self, pattern: &Pattern) -> Option<()> {
        match pattern {
            Pattern::Literal(literal) => self.text.extend_from_slice(literal.as_bytes()),
            Pattern::Hole(slot) => {
                let text = std::mem::take(&mut self.text);
                self.holes.push((text.into(), slot.written_as_it_is()?));
            }
            Pattern::Object(object) => self.object(object)?,
            Pattern::Text(_) | Pattern::List(_) | Pattern::Each(_) | Pattern::Either(_) => {
                return None;
            }
        }
        Some(())
    }

    fn object(&mut self, object: &ObjectPattern) -> Option<()> {
        if object.rest.is_some() {
            return None;
        }
        self.text.push(b'{');
        for (index, ((_, member), key)) in object.members.iter().zip(&object.keys).enumerate() {
            let key = if index == 0 { &key[1..] } else { key };
            self.text.extend_from_slice(key);
            self.value(member)?;
        }
        self.text.push(b'}');
        Some(())
    }
}

impl Slot {
    /// Returns the hole whose value is written here unchanged, if any.
    #[inline]
    pub(super) fn written_as_it_is(&self) -> Option<usize> {
        match self.role {
            Role::Shared(hole)
                if matches!(self.codec, Codec::Plain | Codec::Percent)
                    && !matches!(self.absence, Absence::OmittedDefault(_)) =>
            {
                Some(hole)
            }
            Role::Shared(_)
            | Role::ReadOnly(_)
            | Role::Equal(_)
            | Role::WriteOnly(_)
            | Role::Ignored(_) => None,
        }
    }
}
