//! Pages: `{offset:page(limit)}` is the number of a page, and the value of the hole is the offset of its first item.
//!
//! Page `p` with the limit `l` has the offset `(p - 1) * l`; `page0` counts from zero. Laws: a page that was read is
//! written back; an offset that is no multiple of the limit is refused, and so is one beyond 64 bits.

use std::borrow::Cow;
use std::sync::Arc;

use super::{BoundValue, Codec, MatchError, PatternReader, PatternWriter, Slot};
use crate::json::Json;

/// The codec of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The name of the hole for the number of items of a page.
    pub(super) limit: String,
    /// The number of that hole, once resolved.
    pub(super) hole: usize,
    /// The number of the first page.
    pub(super) first: i64,
}

/// A page whose limit has not been read when it was.
#[derive(Debug, Clone)]
pub(super) struct PendingPage {
    page: Arc<Page>,
    number: i64,
    hole: usize,
    name: String,
}

impl Page {
    /// Parses `:page(limit)` or `:page0(limit)` as a whole. Returns `None` for any other text.
    pub(super) fn parse(typed: &str) -> Option<Result<Page, String>> {
        let (first, inside) = match typed.strip_prefix(":page(") {
            Some(inside) => (1, inside),
            None => (0, typed.strip_prefix(":page0(")?),
        };
        let is_name = |name: &&str| {
            let mut bytes = name.bytes();
            let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            bytes.clone().all(is_word) && bytes.next().is_some_and(|first| !first.is_ascii_digit())
        };
        let limit = inside.strip_suffix(')').filter(is_name);
        Some(match limit {
            Some(limit) => Ok(Page {
                limit: limit.to_owned(),
                hole: 0,
                first,
            }),
            None => Err("write the hole for the number of items of a page: `page(limit)`".into()),
        })
    }

    /// Returns the notation: `page(limit)`.
    #[must_use]
    pub fn to_notation(&self) -> String {
        let zero = if self.first == 0 { "0" } else { "" };
        format!("page{zero}({})", self.limit)
    }

    /// Returns the number of the first page.
    #[must_use]
    pub fn first(&self) -> i64 {
        self.first
    }

    /// Returns the number of the hole for the limit.
    #[must_use]
    pub fn limit_hole(&self) -> usize {
        self.hole
    }

    /// Returns the offset of a default: only the first page has the same offset for each limit.
    pub(super) fn default(&self, spelled: &str) -> Result<String, String> {
        if spelled == self.first.to_string() {
            Ok("0".to_owned())
        } else {
            Err(format!(
                "the default page is {}, because any other one has an offset that depends on `{}`",
                self.first, self.limit
            ))
        }
    }

    /// Returns a page number that was read, unchanged.
    pub(super) fn check(&self, page: Json) -> Result<Json, String> {
        match number(&page) {
            Some(number) if number >= self.first => Ok(page),
            Some(_) => Err(format!("it must be a page, at least {}", self.first)),
            None => Err("it must be a page, a number within 64 bits".into()),
        }
    }

    /// Returns the page for the offset zero, the only one without a limit.
    pub(super) fn without_limit(&self, offset: &Json) -> Option<Json> {
        (offset.as_bytes() == b"0").then(|| Json::written(self.first.to_string()))
    }

    fn offset(&self, number: i64, limit: i64) -> Result<i64, String> {
        let before = number - self.first;
        before
            .checked_mul(limit)
            .ok_or_else(|| format!("page {number} with the limit {limit} begins beyond 64 bits"))
    }

    fn limit(&self, bound: &BoundValue) -> Result<i64, String> {
        let limit = match bound {
            BoundValue::Value(limit) => number(limit),
            BoundValue::Unbound
            | BoundValue::Absent
            | BoundValue::Members(_)
            | BoundValue::Each(_) => None,
        };
        limit.filter(|limit| *limit > 0).ok_or_else(|| {
            format!(
                "`{}` must be the number of items of a page, at least 1",
                self.limit
            )
        })
    }

    /// Returns the page of an offset.
    fn page(&self, offset: &Json, limit: &BoundValue) -> Result<Json, String> {
        let limit = self.limit(limit)?;
        let offset = number(offset)
            .filter(|offset| *offset >= 0)
            .ok_or("it must be an offset within 64 bits, at least 0")?;
        if offset % limit != 0 {
            return Err(format!(
                "the offset {offset} is no multiple of `{}`, {limit}, so no page begins there",
                self.limit
            ));
        }
        let page = (offset / limit).checked_add(self.first);
        let page = page.ok_or("the page is beyond 64 bits")?;
        Ok(Json::written(page.to_string()))
    }
}

fn number(value: &Json) -> Option<i64> {
    std::str::from_utf8(value.as_bytes()).ok()?.parse().ok()
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
            // The first page, or the default.
            Some(0) => self.bind_offset(hole, value, &slot.name),
            Some(number) => {
                self.pages.push(PendingPage {
                    page: Arc::clone(page),
                    number,
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
    /// Fails if such a value does not exist.
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
            let limit = page.limit(self.bindings.get(page.hole));
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
            return Ok(Cow::Owned(BoundValue::Absent));
        }
        let number = page.page(offset, writing.hole(page.hole))?;
        Ok(Cow::Owned(BoundValue::Value(number)))
    }
}
