//! The URL of a REST call: reading the values of holes from it, and writing it.
//!
//! Used by `check`, `explain`, `route` and `translate`.

use std::borrow::Cow;

use memchr::memchr2;

use super::definition::{RestCall, Route};
use super::options::Extra;
use super::segments::Segments;
use super::template::{PlacedHole, QueryItem, SegmentPattern, Template};
use dualgauge_patterns::json::same_ignoring_case;
use dualgauge_patterns::pattern::{MatchError, PatternReader, PatternWriter, Shape, TextPatterns};
use dualgauge_patterns::percent::{self, Keep, Plus, cut, is_word};

/// A query, split into pairs; values are decoded on demand.
#[derive(Debug, Default)]
pub struct Query<'a> {
    pairs: Vec<(Cow<'a, str>, &'a str)>,
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
    fn read(&self, item: &QueryItem, reading: &mut PatternReader) -> Result<usize, MatchError> {
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
    fn is_as_declared(&self, items: &[QueryItem]) -> bool {
        let mut both = self.pairs.iter().zip(items);
        self.pairs.len() == items.len() && both.all(|((name, _), item)| *name == item.key)
    }

    /// Returns the names that a route does not know.
    pub fn unknown(&self, call: &RestCall) -> impl Iterator<Item = &str> {
        let known = |name: &str| call.query.iter().any(|item| item.key == name);
        let names = self.pairs.iter().map(|(name, _)| &**name);
        names.filter(move |name| !known(name))
    }
}

/// Reads the value of a parameter that occurs once.
#[inline]
fn read_once(item: &QueryItem, value: &str, reading: &mut PatternReader) -> Result<(), MatchError> {
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

/// Reads the holes of a route from a URL with a matching path.
///
/// # Errors
/// Returns [`MatchError`] with the place that does not fit.
pub fn read_url(
    route: &Route,
    segments: &Segments<'_>,
    query: &Query<'_>,
    reading: &mut PatternReader,
) -> Result<(), MatchError> {
    let call = &route.rest_call;
    read_path(&call.path, segments, reading)?;
    if query.is_as_declared(&call.query) {
        for (item, (_, value)) in call.query.iter().zip(&query.pairs) {
            read_once(item, value, reading)?;
        }
        return Ok(());
    }
    let mut declared_pairs = 0;
    for item in &call.query {
        declared_pairs += query.read(item, reading)?;
    }
    if declared_pairs == query.pairs.len() {
        return Ok(());
    }
    for name in query.unknown(call) {
        refuse_similar(route, name)?;
        reading.dropped += 1;
    }
    match route.extra {
        Extra::Reject => refuse_unknown(route, query),
        Extra::Drop | Extra::Carry => Ok(()),
    }
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
fn refuse_similar(route: &Route, name: &str) -> Result<(), MatchError> {
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

fn read_path(
    path: &Template,
    segments: &Segments<'_>,
    reading: &mut PatternReader,
) -> Result<(), MatchError> {
    let mut found = segments.iter();
    let mut at = 0;
    for placed in &path.holes {
        while at < placed.start {
            found.next();
            at += 1;
        }
        at = placed.end;
        read_hole(path, placed, &mut found, reading)
            .map_err(|misfit| misfit.within(&format!("path parameter `{}`", placed.slot.name)))?;
    }
    Ok(())
}

fn read_hole<'a>(
    path: &Template,
    placed: &PlacedHole,
    found: &mut impl Iterator<Item = &'a str>,
    reading: &mut PatternReader,
) -> Result<(), MatchError> {
    let patterns = &path.segments[placed.start..placed.end];
    let verb = path.verb.as_deref();
    let verb = verb.filter(|_| placed.end == path.segments.len());
    let text = if let [SegmentPattern::One | SegmentPattern::Literal(_)] = patterns {
        let ends = || MatchError::here("the path ends before it");
        let single = strip_verb(verb, found.next().ok_or_else(ends)?);
        if placed.slot.read_word(single, reading).is_some() {
            return Ok(());
        }
        let one = placed.slot.expect_one_spelling(single);
        one.map_err(MatchError::here)?;
        percent::decode(single, Plus::Literal).map_err(MatchError::here)?
    } else {
        Cow::Owned(read_segments(patterns, verb, found).map_err(MatchError::here)?)
    };
    check_safe_in_path(&text).map_err(MatchError::here)?;
    let bound = placed.slot.read_texts(&[&text], reading.depth);
    reading.bind(&placed.slot, bound.map_err(MatchError::here)?)
}

/// Returns the last segment without the verb after it.
#[inline]
fn strip_verb<'a>(verb: Option<&str>, segment: &'a str) -> &'a str {
    match verb.and_then(|_| segment.rsplit_once(':')) {
        Some((head, _)) => head,
        None => segment,
    }
}

/// Returns the decoded text of a hole that spans the next segments.
fn read_segments<'a>(
    patterns: &[SegmentPattern],
    verb: Option<&str>,
    found: &mut impl Iterator<Item = &'a str>,
) -> Result<String, String> {
    let spans_rest = patterns.contains(&SegmentPattern::Rest);
    let most = if spans_rest {
        usize::MAX
    } else {
        patterns.len()
    };
    let mut raw: Vec<&str> = found.take(most).collect();
    if raw.len() < patterns.len() && !spans_rest {
        return Err("the path ends before it".into());
    }
    if let Some(tail) = raw.last_mut() {
        *tail = strip_verb(verb, tail);
    }
    decode_segments(&raw)
}

/// Returns the decoded text of several segments.
fn decode_segments(raw: &[&str]) -> Result<String, String> {
    let mut text = String::new();
    for segment in raw {
        if percent::normalise(segment).contains("%2F") {
            return Err(
                "`%2F` in a value of several segments cannot be distinguished from a slash".into(),
            );
        }
        let decoded = percent::decode(segment, Plus::Literal).map_err(|error| error.to_string())?;
        if !text.is_empty() {
            text.push('/');
        }
        text.push_str(&decoded);
    }
    Ok(text)
}

/// Refuses texts that a program on the way to the file system may read differently.
fn check_safe_in_path(text: &str) -> Result<(), String> {
    // Fast path: most values contain nothing special.
    if is_word(text.as_bytes()) {
        return Ok(());
    }
    if text
        .split('/')
        .any(|segment| segment == "." || segment == "..")
    {
        return Err("`.` and `..` are refused in a path".into());
    }
    if let Some(letter) = text
        .chars()
        .find(|letter| *letter == '\\' || letter.is_control())
    {
        return Err(format!(
            "`{}` is refused in a path",
            letter.escape_default()
        ));
    }
    Ok(())
}

/// Writes the target of a route.
///
/// # Errors
/// Returns [`MatchError`] with the hole whose value does not fit.
pub fn write_url(route: &Route, writing: &PatternWriter<'_>) -> Result<String, MatchError> {
    let mut target = String::with_capacity(128);
    write_path(&route.rest_call.path, writing, &mut target)?;
    let mut separator = '?';
    for item in &route.rest_call.query {
        let mut name = |target: &mut String| {
            target.push(separator);
            separator = '&';
            percent::encode(&item.key, Keep::Nothing, target);
            target.push('=');
        };
        if let TextPatterns::Hole(slot) = &item.words
            && let Some(word) = slot.word(writing)
        {
            name(&mut target);
            target.push_str(word);
            continue;
        }
        for value in item.words.write(writing)? {
            name(&mut target);
            percent::encode(&value, Keep::Nothing, &mut target);
        }
    }
    Ok(target)
}

fn write_path(
    path: &Template,
    writing: &PatternWriter<'_>,
    target: &mut String,
) -> Result<(), MatchError> {
    let mut holes = path.holes.iter().peekable();
    let mut at = 0;
    while let Some(segment) = path.segments.get(at) {
        target.push('/');
        if let Some(placed) = holes.next_if(|placed| placed.start == at) {
            write_hole(path, placed, writing, target)
                .map_err(|what| MatchError::new(&placed.slot.name, what))?;
            at = placed.end;
        } else {
            if let SegmentPattern::Literal(text) = segment {
                target.push_str(text);
            }
            at += 1;
        }
    }
    if target.is_empty() {
        target.push('/');
    }
    if let Some(verb) = &path.verb {
        target.push(':');
        target.push_str(verb);
    }
    Ok(())
}

fn write_hole(
    path: &Template,
    placed: &PlacedHole,
    writing: &PatternWriter<'_>,
    target: &mut String,
) -> Result<(), String> {
    let is_single = path.segments[placed.start..placed.end] == [SegmentPattern::One];
    if is_single && let Some(word) = placed.slot.word(writing) {
        target.push_str(word);
        return Ok(());
    }
    let text = placed.slot.texts(writing)?.last().unwrap_or_default();
    check_safe_in_path(&text)?;
    check_segments(path, placed, &text)?;
    let keep = if matches!(placed.slot.shape, Shape::Separated(..)) {
        // The elements contain no comma.
        Keep::Commas
    } else if is_single {
        Keep::Nothing
    } else {
        Keep::Slashes
    };
    percent::encode(&text, keep, target);
    Ok(())
}

/// Fails unless a text has the segments that its hole spans: `{x=items/*}` matches `items/7`.
fn check_segments(path: &Template, placed: &PlacedHole, text: &str) -> Result<(), String> {
    let patterns = &path.segments[placed.start..placed.end];
    if patterns == [SegmentPattern::One] {
        return Ok(());
    }
    let mut segments = text.split('/');
    for pattern in patterns {
        let fits = match pattern {
            SegmentPattern::Rest => {
                return if segments.any(str::is_empty) {
                    Err(empty())
                } else {
                    Ok(())
                };
            }
            SegmentPattern::One => segments.next().is_some_and(|segment| !segment.is_empty()),
            SegmentPattern::Literal(literal) => segments.next().is_some_and(|segment| {
                let mut encoded = String::new();
                percent::encode(segment, Keep::Nothing, &mut encoded);
                encoded == *literal || segment == literal
            }),
        };
        if !fits {
            return Err(format!("it must have the form `{}`", shown(patterns)));
        }
    }
    if segments.next().is_some() {
        Err(format!("it must have the form `{}`", shown(patterns)))
    } else {
        Ok(())
    }
}

fn empty() -> String {
    "an empty segment is refused in a path".into()
}

fn shown(patterns: &[SegmentPattern]) -> String {
    let words = patterns.iter().map(|pattern| match pattern {
        SegmentPattern::Literal(text) => text.as_str(),
        SegmentPattern::One => "*",
        SegmentPattern::Rest => "**",
    });
    words.collect::<Vec<_>>().join("/")
}
