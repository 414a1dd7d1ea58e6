//! A URL read into values, and written from them.

use std::borrow::Cow;

use super::{PlacedHole, QueryValue, Route, SegmentPattern, Segments};
use crate::domain::json::{Member, OpenFault, same_ignoring_case};
use crate::domain::pattern::{Hole, Presence};
use crate::domain::percent::{self, Keep, Plus};

/// Why a call cannot be translated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {what}")]
pub struct BindError {
    /// Where: a path hole, a query parameter, a member of params, the body.
    pub place: String,
    /// What is wrong there, and what is allowed.
    pub what: String,
}

impl BindError {
    pub(in crate::domain) fn new(place: impl Into<String>, what: impl ToString) -> BindError {
        BindError {
            place: place.into(),
            what: what.to_string(),
        }
    }
}

impl From<OpenFault> for BindError {
    fn from(fault: OpenFault) -> Self {
        // The fault's own words begin with its place.
        let words = fault.to_string();
        let (place, what) = words.split_once(": ").unwrap_or(("params", &words));
        BindError::new(place, what)
    }
}

/// A query, cut into its pairs; values are decoded where they are read.
#[derive(Debug, Default)]
pub struct Query<'a> {
    pairs: Vec<(Cow<'a, str>, &'a str)>,
}

impl<'a> Query<'a> {
    /// Cuts at `&` and at the first `=` of each pair, and decodes the names.
    ///
    /// # Errors
    /// [`BindError`] for a name that is malformed.
    pub fn parse(query: Option<&'a str>) -> Result<Query<'a>, BindError> {
        let mut pairs = Vec::new();
        for pair in query
            .unwrap_or_default()
            .split('&')
            .filter(|pair| !pair.is_empty())
        {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = percent::decode(name, Plus::Space);
            pairs.push((
                name.map_err(|error| BindError::new("a name in the query", error))?,
                value,
            ));
        }
        Ok(Query { pairs })
    }

    /// Whether a name occurs.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.pairs.iter().any(|(known, _)| known == name)
    }

    fn values(&self, name: &str) -> Result<Vec<Cow<'a, str>>, BindError> {
        let named = self.pairs.iter().filter(|(known, _)| known == name);
        let values = named.map(|(_, value)| percent::decode(value, Plus::Space));
        values
            .collect::<Result<_, _>>()
            .map_err(|error| BindError::new(in_query(name), error))
    }

    /// How many pairs bear none of the names that a route knows.
    fn unknown(&self, route: &Route) -> usize {
        let known = |name: &str| route.query.iter().any(|item| item.key == name);
        self.pairs.iter().filter(|(name, _)| !known(name)).count()
    }
}

fn in_query(name: &str) -> String {
    format!("query parameter `{name}`")
}

/// What a URL says.
#[derive(Debug, Default)]
pub struct UrlValues {
    /// Members of params by the name of their hole, as JSON text: `"id":"7","limit":5`.
    pub members: Vec<u8>,
    /// Query parameters that the route does not know.
    pub dropped: usize,
}

/// Reads the holes of a route from a URL that has its path.
///
/// # Errors
/// [`BindError`] names the place that does not fit.
pub fn read(
    route: &Route,
    segments: &Segments<'_>,
    query: &Query<'_>,
) -> Result<UrlValues, BindError> {
    let mut values = UrlValues::default();
    for placed in &route.path.holes {
        let place = || format!("path parameter `{}`", placed.hole.name);
        let text =
            path_text(route, placed, segments).map_err(|what| BindError::new(place(), what))?;
        member(&placed.hole, &[&text], &mut values.members)
            .map_err(|what| BindError::new(place(), what))?;
    }
    for item in &route.query {
        let found = query.values(&item.key)?;
        let found: Vec<&str> = found.iter().map(AsRef::as_ref).collect();
        let read = match &item.value {
            QueryValue::Hole(hole) => member(hole, &found, &mut values.members),
            QueryValue::Literal(text) if found == [text] => Ok(()),
            QueryValue::Literal(text) => Err(format!("it must be `{text}`, once")),
        };
        read.map_err(|what| BindError::new(in_query(&item.key), what))?;
    }
    if let Some(name) = route.foreign.query.iter().find(|name| query.has(name)) {
        return Err(BindError::new(
            in_query(name),
            format!("the route `{}` does not take it", route.name),
        ));
    }
    values.dropped = query.unknown(route);
    Ok(values)
}

fn member(hole: &Hole, texts: &[&str], members: &mut Vec<u8>) -> Result<(), String> {
    let before = members.len();
    if before > 0 {
        members.push(b',');
    }
    members.push(b'"');
    // The name of a hole has nothing to escape.
    members.extend_from_slice(hole.name.as_bytes());
    members.extend_from_slice(b"\":");
    if hole.read(texts, members)? == Presence::Absent {
        members.truncate(before);
    }
    Ok(())
}

/// The decoded text of a hole in a path.
fn path_text<'a>(
    route: &Route,
    placed: &PlacedHole,
    segments: &Segments<'a>,
) -> Result<Cow<'a, str>, String> {
    let spans_rest = route.path.segments[placed.start..placed.end].contains(&SegmentPattern::Rest);
    let end = if spans_rest {
        segments.raw().len()
    } else {
        placed.end
    };
    let raw = &segments.raw()[placed.start.min(end)..end];
    let verb = if end == segments.raw().len() {
        route.path.verb.as_deref()
    } else {
        None
    };
    let last = |segment: &'a str| match verb {
        Some(_) => segment.rsplit_once(':').map_or(segment, |(head, _)| head),
        None => segment,
    };
    let text = match raw {
        [single] if placed.end - placed.start == 1 && !spans_rest => {
            percent::decode(last(single), Plus::Literal).map_err(|error| error.to_string())?
        }
        [head @ .., tail] => {
            let mut joined = String::new();
            for segment in head.iter().copied().chain([last(tail)]) {
                if percent::normalise(segment).contains("%2F") {
                    return Err(
                        "`%2F` in a value of several segments cannot be told from a slash".into(),
                    );
                }
                let decoded =
                    percent::decode(segment, Plus::Literal).map_err(|error| error.to_string())?;
                if !joined.is_empty() {
                    joined.push('/');
                }
                joined.push_str(&decoded);
            }
            Cow::Owned(joined)
        }
        [] => Cow::Borrowed(""),
    };
    safe_in_path(&text)?;
    Ok(text)
}

/// Refuses what a program between here and the file system may read as something else.
fn safe_in_path(text: &str) -> Result<(), String> {
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

/// Writes the target of a route from the members of params, which are places in `text`.
///
/// # Errors
/// [`BindError`] names the member that does not fit.
pub fn write(route: &Route, text: &[u8], members: &[Member]) -> Result<String, BindError> {
    for member in members {
        refuse_strange(route, &member.name)?;
    }
    let texts = |hole: &Hole| {
        let member = members.iter().find(|member| member.name == hole.name);
        let value = member.map(|member| &text[member.value.clone()]);
        hole.write(value)
            .map_err(|what| BindError::new(format!("params/{}", hole.name), what))
    };
    let mut target = String::with_capacity(64);
    write_path(route, &texts, &mut target)?;
    let mut separator = '?';
    for item in &route.query {
        let values = match &item.value {
            QueryValue::Literal(text) => vec![text.clone()],
            QueryValue::Hole(hole) => texts(hole)?,
        };
        for value in values {
            target.push(separator);
            separator = '&';
            percent::encode(&item.key, Keep::Nothing, &mut target);
            target.push('=');
            percent::encode(&value, Keep::Nothing, &mut target);
        }
    }
    Ok(target)
}

/// Refuses a member that only a sibling of the route takes, or that a lenient server may take for a hole.
fn refuse_strange(route: &Route, name: &str) -> Result<(), BindError> {
    let place = || format!("params/{name}");
    if route.foreign.members.iter().any(|foreign| foreign == name) {
        return Err(BindError::new(
            place(),
            format!("the route `{}` does not take it", route.name),
        ));
    }
    match route
        .holes()
        .find(|hole| hole.name != name && same_ignoring_case(&hole.name, name))
    {
        Some(hole) => Err(BindError::new(
            place(),
            format!("it differs from `{}` only in letter case", hole.name),
        )),
        None => Ok(()),
    }
}

fn write_path(
    route: &Route,
    texts: &impl Fn(&Hole) -> Result<Vec<String>, BindError>,
    target: &mut String,
) -> Result<(), BindError> {
    let mut at = 0;
    while let Some(segment) = route.path.segments.get(at) {
        target.push('/');
        if let Some(placed) = route.path.holes.iter().find(|placed| placed.start == at) {
            let text = texts(&placed.hole)?.swap_remove(0);
            let checked = safe_in_path(&text).and_then(|()| spans(route, placed, &text));
            checked.map_err(|what| BindError::new(format!("params/{}", placed.hole.name), what))?;
            let single = route.path.segments[placed.start..placed.end] == [SegmentPattern::One];
            percent::encode(
                &text,
                if single { Keep::Nothing } else { Keep::Slashes },
                target,
            );
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
    if let Some(verb) = &route.path.verb {
        target.push(':');
        target.push_str(verb);
    }
    Ok(())
}

/// Whether a text has the segments that its hole spans: `{x=items/*}` takes `items/7`.
fn spans(route: &Route, placed: &PlacedHole, text: &str) -> Result<(), String> {
    let patterns = &route.path.segments[placed.start..placed.end];
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
