//! Pages of long lists: the query that asks for one, and the part that is returned.
//!
//! Law: the pages of a list whose offsets follow each other have each of its items once.
//!
//! Used by `admin::views`.

use serde::Serialize;

/// The most items of a page.
pub(super) const MAX_LIMIT: usize = 100;
/// The number of items if the query does not say.
pub(super) const LIMIT: usize = 50;

/// The order of a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ListOrder {
    /// That of the configuration.
    #[default]
    Configured,
    /// Most calls first.
    Calls,
}

/// A query for a page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListQuery {
    /// A text that an item contains, in lower case; empty for all items.
    pub search: String,
    /// The number of items before the page.
    pub offset: usize,
    /// The most items of the page.
    pub limit: usize,
    /// The order.
    pub order: ListOrder,
}

impl Default for ListQuery {
    fn default() -> ListQuery {
        ListQuery {
            search: String::new(),
            offset: 0,
            limit: LIMIT,
            order: ListOrder::default(),
        }
    }
}

impl ListQuery {
    /// Returns true if one of the texts contains the searched one; case does not matter.
    pub fn finds(&self, texts: &[&str]) -> bool {
        let search = &self.search;
        let contains = |text: &&str| text.to_lowercase().contains(search);
        search.is_empty() || texts.iter().any(contains)
    }

    /// Cuts the page out of all found items.
    pub fn cut<T>(&self, found: Vec<T>) -> Page<T> {
        let total = found.len();
        let items = found.into_iter().skip(self.offset).take(self.limit);
        Page {
            total,
            offset: self.offset,
            items: items.collect(),
        }
    }
}

/// A part of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Page<T> {
    /// The number of found items on all pages.
    pub total: usize,
    /// The number of items before this page.
    pub offset: usize,
    /// The items of this page.
    pub items: Vec<T>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pages_have_each_item_once(total in 0_usize..40, limit in 1_usize..12) {
            let all: Vec<usize> = (0..total).collect();
            let mut seen = Vec::new();
            for offset in (0..=total).step_by(limit) {
                let query = ListQuery { offset, limit, ..ListQuery::default() };
                let page = query.cut(all.clone());
                prop_assert_eq!((page.total, page.offset), (total, offset));
                prop_assert!(page.items.len() <= limit);
                seen.extend(page.items);
            }
            prop_assert_eq!(seen, all);
        }
    }

    #[test]
    fn a_search_ignores_case() {
        let query = ListQuery {
            search: "ios".to_owned(),
            ..ListQuery::default()
        };
        assert!(query.finds(&["x", "My-iOS-app"]));
        assert!(!query.finds(&["android"]));
        assert!(ListQuery::default().finds(&["android"]));
    }
}
