//! Pages: `{offset:page(limit)}` is the number of a page, and the value of the hole is the offset of its first item.
//!
//! Page `p` with the limit `l` has the offset `(p - 1) * l`; `page0` counts from zero. Laws: a page that was read is
//! written back; an offset that is no multiple of the limit is refused, and so is one beyond 64 bits.

use std::borrow::Cow;
use std::sync::Arc;

use super::page_number::{Page, PendingPage, number};
use super::{BoundValue, Codec, MatchError, PatternReader, PatternWriter, Slot};
use crate::json::Json;

fn value_of(bound: &BoundValue) -> Option<&Json> {
    match bound {
        BoundValue::Value(value) => Some(value),
        BoundValue::Unbound | BoundValue::Absent | BoundValue::Members(_) | BoundValue::Each(_) => {
            None
        }
    }
}

impl PatternReader {
    /// Binds the offset of a page, now or once the limit is known.
    #[cold]
    pub(super) fn bind_page(
        &mut self,
        slot: &Slot,
        hole: usize,
        value: BoundValue,
    ) -> Result<(), MatchError> {
        let (Codec::Page(page), BoundValue::Value(read)) = (&slot.codec, &value) else {
            return self.bind_offset(hole, value, &slot.name);
        };
        match number(read) {
            Some(number) => {
                self.pages.push(PendingPage {
                    page: Arc::clone(page),
                    // A default is the offset of the first page, zero.
                    number: number.max(page.first()),
                    hole,
                    name: slot.name.clone(),
                });
                Ok(())
            }
            None => Err(MatchError::here("it must be a page")),
        }
    }

    fn bind_offset(
        &mut self,
        hole: usize,
        value: BoundValue,
        name: &str,
    ) -> Result<(), MatchError> {
        let bound = self.bind_hole(hole, value);
        bound.map_err(|()| MatchError::here(format!("it differs from another value of `{name}`")))
    }

    /// Binds what depends on values that were read later. To be called when the whole message has been read.
    ///
    /// # Errors
    ///
    /// Fails with the name of the hole if such a value does not exist.
    #[inline]
    pub fn settle(&mut self) -> Result<(), MatchError> {
        if self.pages.is_empty() {
            Ok(())
        } else {
            self.settle_pages()
        }
    }

    #[cold]
    fn settle_pages(&mut self) -> Result<(), MatchError> {
        for pending in std::mem::take(&mut self.pages) {
            let page = &pending.page;
            let limit = Page::limit(value_of(self.bindings.get(page.hole)));
            let offset = limit.and_then(|limit| page.offset(pending.number, limit));
            let offset = offset.map_err(|what| MatchError::new(&pending.name, what))?;
            let value = BoundValue::Value(Json::written(offset.to_string()));
            let bound = self.bind_offset(pending.hole, value, &pending.name);
            bound.map_err(|error| error.within(&pending.name))?;
        }
        Ok(())
    }
}

impl Slot {
    /// Returns the value to write here, before its encoding: the page instead of its offset.
    pub fn written<'w>(&self, writing: &PatternWriter<'w>) -> Result<Cow<'w, BoundValue>, String> {
        let bound = self.bound(writing);
        let (Codec::Page(page), BoundValue::Value(offset)) = (&self.codec, bound.as_ref()) else {
            return Ok(bound);
        };
        if self.leaves_out(offset) {
            Page::limit(value_of(writing.hole(page.hole)))?;
            return Ok(Cow::Owned(BoundValue::Absent));
        }
        let number = page.page(offset, value_of(writing.hole(page.hole)))?;
        Ok(Cow::Owned(BoundValue::Value(number)))
    }
}
