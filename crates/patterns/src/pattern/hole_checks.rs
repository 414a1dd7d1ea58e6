//! Checks of the slots of holes: whether their encodings and their types fit their positions. Used by `pattern`.

use std::sync::Arc;

use super::hole_facts::{HoleFacts, HolePosition};
use super::hole_syntax::PatternError;
use super::page_number::number;
use super::{Absence, Codec, Delimiter, Null, Page, Role, Scalar, Shape, Slot};
use crate::side::Side;

impl HoleFacts {
    /// Gives a page the hole of its limit, which every message must have.
    pub(super) fn set_limit(
        &self,
        side: Side,
        slot: &mut Slot,
        depth: usize,
    ) -> Result<(), PatternError> {
        let Codec::Page(page) = &slot.codec else {
            return Ok(());
        };
        let (name, limit) = (&slot.name, &page.limit);
        let wrong = |what: String| PatternError::new(format!("the page `{name}`: {what}"));
        let is_alone = depth == 0 && matches!(slot.role, Role::Shared(_));
        if !is_alone || self.find(name).is_none() {
            return Err(wrong(
                "it must be read and written, outside of `[\"*\", …]` and of alternatives".into(),
            ));
        }
        let default = slot.default().and_then(number);
        if default.is_some_and(|offset| offset != 0) {
            return Err(wrong(
                "its default must be 0, the offset of the first page; a default on the other side counts as well"
                    .into(),
            ));
        }
        let hole = self.find(limit);
        let hole = hole.filter(|hole| {
            let fact = &self.holes[*hole];
            let is_there = fact.absence(side) != Absence::Optional;
            let is_shared = fact.only.is_none() && is_there;
            fact.shape == Shape::One(Scalar::Integer) && fact.depth == 0 && is_shared
        });
        let hole = hole.ok_or_else(|| {
            wrong(format!(
                "`{limit}` must be a hole of the same call or response, on both sides, an `integer` that is required or has a default"
            ))
        })?;
        slot.codec = Codec::Page(Arc::new(Page {
            hole,
            ..Page::clone(page)
        }));
        Ok(())
    }
}

/// Checks that the codec of a slot fits the values of the hole and its position, and sets the meaning of `null` where a
/// map has it as a word.
pub(super) fn apply_codec(slot: &mut Slot, position: HolePosition) -> Result<(), PatternError> {
    let is_text = !matches!(position, HolePosition::Json | HolePosition::Rest);
    if matches!(slot.codec, Codec::Keys(_)) && is_text {
        return Err(PatternError::new(format!(
            "the hole `{}` has keys of another style, so it must be a JSON value, not a text",
            slot.name
        )));
    }
    let Some(map) = slot.codec.map() else {
        return Ok(());
    };
    let name = &slot.name;
    let wrong = |what: String| PatternError::new(format!("the map of `{name}`: {what}"));
    if matches!(slot.role, Role::WriteOnly(_)) {
        let words = map.words();
        let has_all = matches!(slot.shape.scalar(), Some(Scalar::Enum(values))
            if values.iter().all(|value| words.contains(value)));
        if !has_all {
            let what = format!(
                "`{{>{name}}}` needs a pair for each value of `{name}`, so `{name}` must be an `enum` or have a map"
            );
            return Err(wrong(what));
        }
    }
    if is_text {
        map.check_texts(&slot.shape).map_err(wrong)?;
    }
    if map.has_null() {
        slot.null = Null::Value;
    }
    Ok(())
}

/// Checks that a slot may occur at its position: a list needs a text that may be repeated, or `[,]` as a whole segment.
pub(super) fn check_position(slot: &Slot, position: HolePosition) -> Result<(), PatternError> {
    let is_list = matches!(slot.shape, Shape::Repeated(_) | Shape::Separated(..));
    let once = match position {
        HolePosition::Text | HolePosition::Path => true,
        HolePosition::Segment => !matches!(slot.shape, Shape::Separated(_, Delimiter::Comma)),
        HolePosition::Json | HolePosition::Rest | HolePosition::Words => false,
    };
    if is_list && once && slot.codec.keeps_elements() {
        return Err(PatternError::new(format!(
            "the hole `{}` is a list, which cannot be next to text or in a path, except `[,]` as a whole segment; give it its own query parameter",
            slot.name
        )));
    }
    if position == HolePosition::Text
        && slot.binds().is_some()
        && matches!(slot.absence, Absence::OmittedDefault(_))
    {
        let name = &slot.name;
        return Err(PatternError::new(format!(
            "the hole `{name}` is next to text, where a default cannot be omitted; write `{{{name}=…}}` here"
        )));
    }
    Ok(())
}
