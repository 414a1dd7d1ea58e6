//! The numbers of pages and the offsets of their first items. Used by `pattern`.

use std::sync::Arc;

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
    pub(super) page: Arc<Page>,
    pub(super) number: i64,
    pub(super) hole: usize,
    pub(super) name: String,
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

    pub(super) fn offset(&self, number: i64, limit: i64) -> Result<i64, String> {
        let before = number - self.first;
        before
            .checked_mul(limit)
            .ok_or_else(|| format!("page {number} with the limit {limit} begins beyond 64 bits"))
    }

    /// Returns the number of items of a page. The message names no hole, since clients read it.
    pub(super) fn limit(limit: Option<&Json>) -> Result<i64, String> {
        limit
            .and_then(number)
            .filter(|limit| *limit > 0)
            .ok_or_else(|| "the limit of a page must be at least 1, within 64 bits".into())
    }

    /// Returns the page of an offset.
    pub(super) fn page(&self, offset: &Json, limit: Option<&Json>) -> Result<Json, String> {
        let limit = Page::limit(limit)?;
        let offset = number(offset)
            .filter(|offset| *offset >= 0)
            .ok_or("it must be an offset within 64 bits, at least 0")?;
        if offset % limit != 0 {
            return Err(format!(
                "the offset {offset} is no multiple of the limit {limit}, so no page begins there"
            ));
        }
        let page = (offset / limit).checked_add(self.first);
        let page = page.ok_or("the page is beyond 64 bits")?;
        Ok(Json::written(page.to_string()))
    }
}

pub(super) fn number(value: &Json) -> Option<i64> {
    std::str::from_utf8(value.as_bytes()).ok()?.parse().ok()
}
