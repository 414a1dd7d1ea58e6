//! Names that a route does not know, captured into an object: query parameters, and headers with a prefix.
//!
//! Each member is a string, or an array of at least two strings for a name that occurs several times. Laws: written
//! members read as the same object; a name that the route knows is never captured, and never written from an object;
//! names that differ only in letter case are refused, since no object could be read back.
//!
//! Used by `check`, `document`, `route`, and `translate`.

use std::borrow::Cow;

use http::{HeaderMap, HeaderName, HeaderValue};

use super::headers::{HeaderItem, OF_THE_CONNECTION, header_value, words};
use super::template::QueryItem;
use dualgauge_patterns::json::{Json, JsonKind, encode, same_ignoring_case};
use dualgauge_patterns::pattern::{
    BoundValue, Codec, HoleRef, MatchError, PatternError, PatternReader, PatternWriter, Slot,
    SourceTree, TextPatterns, as_key,
};

/// The key for all names that a route does not know, and the end of a key for those with a prefix.
pub(super) const OTHERS: &str = "...";

/// The most values that one object may have.
pub const MAX_CAPTURED: usize = 256;

/// The headers whose names begin with a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderPrefix<H = Slot> {
    /// The beginning of the names, in lower case; it ends in `-`.
    pub prefix: String,
    /// The hole of the object. Its names have no prefix.
    pub slot: H,
}

impl<H> HeaderPrefix<H> {
    /// Returns the rest of a name that is captured: it has the prefix, and no pattern names it.
    fn rest<'n, I>(&self, name: &'n HeaderName, named: &[HeaderItem<I>]) -> Option<&'n str> {
        let rest = name.as_str().strip_prefix(&self.prefix)?;
        let is_named = named.iter().any(|item| item.name == *name);
        (!rest.is_empty() && !is_named).then_some(rest)
    }

    /// Returns true when a header is captured.
    #[must_use]
    pub fn takes<I>(&self, name: &HeaderName, named: &[HeaderItem<I>]) -> bool {
        self.rest(name, named).is_some()
    }
}

/// Takes the hole of all other names out of the patterns of a query.
pub(super) fn other_query(
    query: &mut Vec<QueryItem<HoleRef>>,
) -> Result<Option<HoleRef>, PatternError> {
    let Some(at) = query.iter().position(|item| item.key == OTHERS) else {
        return Ok(None);
    };
    let mention = capture(query.remove(at).words);
    mention
        .map(Some)
        .map_err(|error| error.under("query.\"...\""))
}

/// Parses the headers that are named by a prefix.
pub(super) fn parse_prefixes(
    headers: &[(String, SourceTree)],
    errors: &mut Vec<PatternError>,
) -> Vec<HeaderPrefix<HoleRef>> {
    let mut prefixes: Vec<HeaderPrefix<HoleRef>> = Vec::new();
    for (name, tree) in headers {
        let parsed = prefix(name, &prefixes).and_then(|prefix| {
            let slot = capture(words(tree)?)?;
            Ok(HeaderPrefix { prefix, slot })
        });
        match parsed {
            Ok(prefix) => prefixes.push(prefix),
            Err(error) => errors.push(error.under(&format!("headers.{}", as_key(name)))),
        }
    }
    prefixes
}

/// Returns the hole of captured names.
fn capture(words: TextPatterns<HoleRef>) -> Result<HoleRef, PatternError> {
    let TextPatterns::Hole(mention) = words else {
        return Err(PatternError::new(
            "names that the route does not know are captured by one hole: `\"...\" = \"{others}\"`",
        ));
    };
    if mention.name == "_" {
        return Err(PatternError::new(
            "`{_}` would forget the names; headers that no pattern names are ignored anyway, and `ignore_query = [\"*\"]` drops query names",
        ));
    }
    let name = &mention.name;
    if !mention.is_bare() {
        return Err(PatternError::new(format!(
            "the hole `{name}` receives all captured names, maybe none; write its name alone"
        )));
    }
    match mention.codec {
        Codec::Plain => Ok(mention),
        Codec::Json(_) | Codec::Percent | Codec::Map(_) | Codec::Keys(_) | Codec::Page(_) => {
            Err(PatternError::new(format!(
                "the hole `{name}` receives the captured names as they are; write `{{{name}}}`, and another encoding only on the RPC side"
            )))
        }
    }
}

/// Headers that belong to the proxy, to the connection, or to all calls. No prefix may capture or write them.
const OF_ALL_CALLS: [&str; 24] = [
    "accept-",
    "access-control-",
    "authorization",
    "cache-control",
    "content-type",
    "cookie",
    "date",
    "if-match",
    "if-none-match",
    "mcp-",
    "origin",
    "proxy-",
    "range",
    "referer",
    "sec-",
    "set-cookie",
    "traceparent",
    "tracestate",
    "user-agent",
    "www-authenticate",
    "x-api-key",
    "x-forwarded-",
    "x-real-ip",
    "x-request-id",
];

/// Returns the prefix of a key such as `x-meta-...`.
fn prefix(key: &str, known: &[HeaderPrefix<HoleRef>]) -> Result<String, PatternError> {
    let prefix = key.strip_suffix(OTHERS).unwrap_or(key);
    if prefix.is_empty() {
        return Err(PatternError::new(
            "headers are captured only by a prefix, such as `\"x-meta-...\"`: the others are credentials, cookies and those of the connection",
        ));
    }
    let is_name = HeaderName::from_bytes(prefix.as_bytes()).is_ok_and(|name| name == *prefix);
    if !is_name || !prefix.ends_with('-') || prefix.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Err(PatternError::new(format!(
            "the prefix `{prefix}` must be a header name in lower case that ends in `-`, such as `x-meta-`"
        )));
    }
    let reserved = OF_ALL_CALLS.iter().chain(&OF_THE_CONNECTION);
    let mut reserved = reserved.filter(|name| {
        name.starts_with(prefix) || (name.ends_with('-') && prefix.starts_with(**name))
    });
    if let Some(name) = reserved.next() {
        return Err(PatternError::new(format!(
            "the prefix `{prefix}` would capture `{name}`, which belongs to the proxy, to the connection or to all calls; write a longer prefix"
        )));
    }
    let overlaps = |other: &&HeaderPrefix<HoleRef>| {
        other.prefix.starts_with(prefix) || prefix.starts_with(&other.prefix)
    };
    match known.iter().find(overlaps) {
        Some(other) => Err(PatternError::new(format!(
            "the prefixes `{prefix}` and `{}` share names; keep one",
            other.prefix
        ))),
        None => Ok(prefix.to_owned()),
    }
}

/// The captured names with their values, in the order of first occurrence.
#[derive(Debug, Default)]
pub(super) struct Captured<'a> {
    names: Vec<(&'a str, Vec<Cow<'a, str>>)>,
    values: usize,
}

impl<'a> Captured<'a> {
    /// Adds a value.
    ///
    /// # Errors
    /// Fails if there are too many, or if the name differs from another one only in letter case.
    pub(super) fn add(&mut self, name: &'a str, value: Cow<'a, str>) -> Result<(), String> {
        self.values += 1;
        if self.values > MAX_CAPTURED {
            return Err(format!(
                "it is one of more than {MAX_CAPTURED} values that the route does not name"
            ));
        }
        let known = self
            .names
            .iter_mut()
            .find(|(known, _)| same_ignoring_case(known, name));
        match known {
            Some((known, values)) if *known == name => values.push(value),
            Some((known, _)) => {
                return Err(format!("it differs from `{known}` only in letter case"));
            }
            None => self.names.push((name, vec![value])),
        }
        Ok(())
    }

    /// Binds the object to its hole.
    pub(super) fn bind(self, slot: &Slot, reading: &mut PatternReader) -> Result<(), MatchError> {
        let mut text = vec![b'{'];
        for (name, values) in &self.names {
            if text.len() > 1 {
                text.push(b',');
            }
            encode(name, &mut text);
            text.push(b':');
            if let [value] = &values[..] {
                encode(value, &mut text);
                continue;
            }
            for (index, value) in values.iter().enumerate() {
                text.push(if index == 0 { b'[' } else { b',' });
                encode(value, &mut text);
            }
            text.push(b']');
        }
        text.push(b'}');
        reading.bind(slot, BoundValue::Value(Json::written(text)))
    }
}

/// Returns the members of the object to write, each with its values.
pub(super) fn members(
    slot: &Slot,
    writing: &PatternWriter<'_>,
) -> Result<Vec<(String, Vec<String>)>, MatchError> {
    let at_hole = |what: String| MatchError::new(&slot.name, what);
    let bound = slot.bound(writing);
    let Some(object) = slot.write_json(&bound).map_err(at_hole)? else {
        return Ok(Vec::new());
    };
    if object.kind() != JsonKind::Object {
        return Err(at_hole(format!(
            "it must be an object, not {}",
            object.kind().described()
        )));
    }
    let opened = object.open().map_err(|fault| at_hole(fault.to_string()))?;
    let mut count = 0;
    let members = opened.iter().map(|member| {
        let name = member.name.clone().into_owned();
        let values = values_of(&object.piece(member.value.clone()));
        let values = values.map_err(|what| at_hole(format!("member `{name}`: {what}")))?;
        count += values.len();
        match count > MAX_CAPTURED {
            true => Err(at_hole(format!("it has more than {MAX_CAPTURED} values"))),
            false => Ok((name, values)),
        }
    });
    members.collect()
}

/// Returns the values of a member: one for a string, at least two for an array.
fn values_of(value: &Json) -> Result<Vec<String>, String> {
    let text = |value: &Json| match value.text() {
        Some(Ok(text)) => Ok(text),
        Some(Err(fault)) => Err(fault.to_string()),
        None => Err(format!(
            "it must be a string, not {}",
            value.kind().described()
        )),
    };
    if value.kind() != JsonKind::Array {
        return Ok(vec![text(value)?]);
    }
    let elements = value.elements().map(|range| text(&value.piece(range)));
    let elements: Vec<String> = elements.collect::<Result<_, _>>()?;
    match elements.len() {
        0 | 1 => Err("an array must have at least two strings; write one value as a string".into()),
        _ => Ok(elements),
    }
}

/// Reads the headers with a prefix.
pub(crate) fn read_prefixed(
    prefixes: &[HeaderPrefix],
    named: &[HeaderItem],
    headers: &HeaderMap,
    reading: &mut PatternReader,
) -> Result<(), MatchError> {
    for prefix in prefixes {
        let mut captured = Captured::default();
        for (name, value) in headers {
            let Some(rest) = prefix.rest(name, named) else {
                continue;
            };
            let at = |what: String| MatchError::new(format!("header `{name}`"), what);
            let text = std::str::from_utf8(value.as_bytes());
            let text = text.map_err(|_| at("it is not UTF-8".into()))?;
            captured.add(rest, Cow::Borrowed(text)).map_err(at)?;
        }
        captured.bind(&prefix.slot, reading)?;
    }
    Ok(())
}

/// Writes the headers of the objects of prefixes.
pub(crate) fn write_prefixed(
    prefixes: &[HeaderPrefix],
    named: &[HeaderItem],
    writing: &PatternWriter<'_>,
    headers: &mut Vec<(HeaderName, HeaderValue)>,
) -> Result<(), MatchError> {
    for prefix in prefixes {
        for (member, values) in members(&prefix.slot, writing)? {
            let at = |what: &str| {
                MatchError::new(&prefix.slot.name, format!("member `{member}`: {what}"))
            };
            let name = HeaderName::from_bytes(format!("{}{member}", prefix.prefix).as_bytes());
            let name = name.map_err(|_| at("it is not the rest of a header name"))?;
            if member.is_empty() || member.bytes().any(|byte| byte.is_ascii_uppercase()) {
                return Err(at(
                    "the rest of a header name is in lower case, and not empty",
                ));
            }
            if !prefix.takes(&name, named) {
                return Err(at("the route has a pattern for this header"));
            }
            for value in values {
                headers.push((name.clone(), header_value(&value).map_err(at)?));
            }
        }
    }
    Ok(())
}
