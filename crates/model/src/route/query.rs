//! The query of a REST call: splitting it, reading its parameters, and refusing unknown names.
//!
//! Used by `route::table`, `route::url` and `translate`.

use std::borrow::Cow;

use memchr::memchr2;

use super::captured::Captured;
use super::definition::{RestCall, Route};
use super::template::QueryItem;
use dualgauge_patterns::json::same_ignoring_case;
use dualgauge_patterns::pattern::{MatchError, PatternReader, Slot, TextPatterns};
use dualgauge_patterns::percent::{self, Plus, cut};

/// A query, split into pairs; values are decoded on demand.
#[derive(Debug, Default)]
pub struct Query<'a> {
    pub(super) pairs: Vec<(Cow<'a, str>, &'a str)>,
}

impl<'a> Query<'a> {
    /// Splits at `&` and at the first `=` of each pair, and decodes the names.
    ///
    /// # Errors
    /// Returns [`MatchError`] for a malformed name.
    pub fn parse(query: Option<&'a str>) -> Result<Query<'a>, MatchError> {
        /// Most queries have no more pairs.
        const USUAL: usize = 8;
        let mut pairs = Vec::with_capacity(if query.is_some() { USUAL } else { 0 });
        let is_encoded = query.is_some_and(|query| memchr2(b'%', b'+', query.as_bytes()).is_some());
        let mut rest = query;
        while let Some(text) = rest {
            let (pair, behind) = cut::<b'&'>(text);
            rest = behind;
            if pair.is_empty() {
                continue;
            }
            let (name, value) = cut::<b'='>(pair);
            let name = if is_encoded {
                percent::decode(name, Plus::Space)
                    .map_err(|error| MatchError::new("a name in the query", error))?
            } else {
                Cow::Borrowed(name)
            };
            pairs.push((name, value.unwrap_or_default()));
        }
        Ok(Query { pairs })
    }

    /// Returns true when a name occurs.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.pairs.iter().any(|(known, _)| known == name)
    }

    /// Returns true when the query has the literals of a route.
    pub(super) fn has_literals(&self, items: &[QueryItem]) -> bool {
        items.iter().all(|item| match &item.words {
            TextPatterns::Literal(text) => {
                let values = self.values(&item.key);
                values.is_ok_and(|values| values.iter().any(|value| value == text))
            }
            TextPatterns::Hole(_) | TextPatterns::Mixed(_) => true,
        })
    }

    fn values(&self, name: &str) -> Result<Vec<Cow<'a, str>>, MatchError> {
        let named = self.pairs.iter().filter(|(known, _)| known == name);
        named.map(|(_, value)| decode(name, value)).collect()
    }

    /// Reads the values of a parameter, usually one, and returns their number.
    pub(crate) fn read(
        &self,
        item: &QueryItem,
        reading: &mut PatternReader,
    ) -> Result<usize, MatchError> {
        let mut named = self.pairs.iter().filter(|(known, _)| *known == item.key);
        let found = match (named.next(), named.next()) {
            (None, _) => Vec::new(),
            (Some((_, value)), None) => return read_once(item, value, reading).map(|()| 1),
            (Some(_), Some(_)) => self.values(&item.key)?,
        };
        let found: Vec<&str> = found.iter().map(AsRef::as_ref).collect();
        let read = item.words.read(&found, reading);
        read.map_err(|misfit| misfit.within(&in_query(&item.key)))?;
        Ok(found.len())
    }

    /// Returns true when the query has each parameter once, in the order of the pattern, and no other.
    pub(super) fn is_as_declared(&self, items: &[QueryItem]) -> bool {
        let mut both = self.pairs.iter().zip(items);
        self.pairs.len() == items.len() && both.all(|((name, _), item)| *name == item.key)
    }

    /// Returns the names that a route does not know.
    pub fn unknown(&self, call: &RestCall) -> impl Iterator<Item = &str> {
        let captures = call.other_query.is_some();
        let known = move |name: &str| {
            captures || call.has_message_in(name) || call.query.iter().any(|item| item.key == name)
        };
        let names = self.pairs.iter().map(|(name, _)| &**name);
        names.filter(move |name| !known(name))
    }
}

/// Reads the names that a route captures: all that it does not know.
pub(super) fn read_captured(
    route: &Route,
    slot: &Slot,
    query: &Query<'_>,
    reading: &mut PatternReader,
) -> Result<(), MatchError> {
    let mut captured = Captured::default();
    for (name, value) in &query.pairs {
        let call = &route.rest_call;
        if call.has_message_in(name) || call.query.iter().any(|item| item.key == *name) {
            continue;
        }
        refuse_similar(route, name)?;
        let added = captured.add(name, decode(name, value)?);
        added.map_err(|what| MatchError::new(in_query(name), what))?;
    }
    captured.bind(slot, reading)
}

/// Reads the value of a parameter that occurs once.
#[inline]
pub(super) fn read_once(
    item: &QueryItem,
    value: &str,
    reading: &mut PatternReader,
) -> Result<(), MatchError> {
    if item.words.read_word(value, reading).is_some() {
        return Ok(());
    }
    if let TextPatterns::Hole(slot) = &item.words {
        let one = slot.expect_one_spelling(value);
        one.map_err(|what| MatchError::new(in_query(&item.key), what))?;
    }
    let value = decode(&item.key, value)?;
    let read = item.words.read(&[&value], reading);
    read.map_err(|misfit| misfit.within(&in_query(&item.key)))
}

/// Decodes a value of the parameter with this name.
fn decode<'a>(name: &str, value: &'a str) -> Result<Cow<'a, str>, MatchError> {
    let value = percent::decode(value, Plus::Space);
    value.map_err(|error| MatchError::new(in_query(name), error))
}

fn in_query(name: &str) -> String {
    format!("query parameter `{name}`")
}

/// Refuses a query with names that the route neither knows nor drops.
///
/// # Errors
/// Returns [`MatchError`] with the names.
pub fn refuse_unknown(route: &Route, query: &Query<'_>) -> Result<(), MatchError> {
    /// The most names in the error; a query may have thousands.
    const SHOWN: usize = 8;
    let mut names: Vec<&str> = Vec::new();
    let unknown = query.unknown(&route.rest_call);
    for name in unknown.filter(|name| !route.unknown_query.drops(name)) {
        if !names.contains(&name) {
            names.push(name);
        }
        if names.len() > SHOWN {
            break;
        }
    }
    let (location, them) = match names[..] {
        [] => return Ok(()),
        [name] => (in_query(name), "it"),
        _ => {
            let more = if names.len() > SHOWN { ", …" } else { "" };
            let shown: Vec<String> = names
                .iter()
                .take(SHOWN)
                .map(|name| format!("`{name}`"))
                .collect();
            (
                format!("query parameters {}{more}", shown.join(", ")),
                "them",
            )
        }
    };
    let what = format!("the route `{}` does not know {them}", route.name);
    Err(MatchError::unknown_query(location, what))
}

/// Refuses a name that an overlapping route knows, or that differs from a known one in case only: a lenient server may
/// confuse them.
pub(super) fn refuse_similar(route: &Route, name: &str) -> Result<(), MatchError> {
    let call = &route.rest_call;
    let overlaps = |other: &String| same_ignoring_case(other, name);
    if call.overlapping_names.iter().any(overlaps) {
        let what = format!("the route `{}` does not accept it", route.name);
        return Err(MatchError::new(in_query(name), what));
    }
    let mut keys = call.query.iter().map(|item| &item.key);
    match keys.find(|key| same_ignoring_case(key, name)) {
        Some(key) => {
            let what = format!("it differs from `{key}` only in letter case");
            Err(MatchError::new(in_query(name), what))
        }
        None => Ok(()),
    }
}
