//! The URL of a REST call: reading the values of holes from it, and writing it.
//!
//! Used by `check`, `explain`, `route` and `translate`.

use std::borrow::Cow;

use super::captured::members;
use super::definition::{RestCall, Route};
use super::options::Extra;
use super::query::{Query, read_captured, read_once, refuse_similar, refuse_unknown};
use super::segments::Segments;
use super::template::{PlacedHole, SegmentPattern, Template};
use dualgauge_patterns::json::same_ignoring_case;
use dualgauge_patterns::pattern::{
    MatchError, PatternError, PatternReader, PatternWriter, SegmentText, Shape, Slot, TextPatterns,
    UnknownMembers,
};
use dualgauge_patterns::percent::{self, Keep, Plus, is_word};

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
        return match &call.other_query {
            Some(slot) => read_captured(route, slot, query, reading),
            None => Ok(()),
        };
    }
    let mut declared_pairs = 0;
    for item in &call.query {
        declared_pairs += query.read(item, reading)?;
    }
    if let Some(slot) = &call.other_query {
        return read_captured(route, slot, query, reading);
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

/// Returns true when the values of a path with the right number of segments fit the holes of a route.
pub(super) fn fits_path(route: &Route, segments: &Segments<'_>, depth: u16) -> bool {
    let holes = route.facts.holes.len();
    let mut reading = PatternReader::new(holes, UnknownMembers::Dropped, depth);
    read_path(&route.rest_call.path, segments, &mut reading).is_ok()
}

fn read_path(
    path: &Template,
    segments: &Segments<'_>,
    reading: &mut PatternReader,
) -> Result<(), MatchError> {
    let mut found = segments.iter();
    let mut at = 0;
    let mut holes = &path.holes[..];
    while let [placed, others @ ..] = holes {
        while at < placed.start {
            found.next();
            at += 1;
        }
        at = placed.end;
        if let SegmentPattern::Text(text) = &path.segments[placed.start] {
            let (beside_text, others) = holes.split_at(text.after().len().min(holes.len()));
            let segment = strip_verb(path.verb_at(at), found.next().unwrap_or_default());
            read_segment(text, beside_text, segment, reading)?;
            holes = others;
            continue;
        }
        read_hole(path, placed, &mut found, reading)
            .map_err(|misfit| misfit.within(&in_path(placed)))?;
        holes = others;
    }
    Ok(())
}

fn in_path(placed: &PlacedHole) -> String {
    format!("path parameter `{}`", placed.slot.name)
}

/// Reads the holes of a segment of text and holes.
fn read_segment(
    text: &SegmentText,
    holes: &[PlacedHole],
    segment: &str,
    reading: &mut PatternReader,
) -> Result<(), MatchError> {
    let normal = percent::normalise(segment);
    let values = text.split(&normal).ok_or_else(|| {
        let what = format!(
            "it must have the form `{}`, without empty holes",
            text.shown()
        );
        MatchError::new("path", what)
    })?;
    for (placed, value) in holes.iter().zip(values) {
        let read = || {
            let text = percent::decode(value, Plus::Literal).map_err(MatchError::here)?;
            check_safe_in_path(&text).map_err(MatchError::here)?;
            let bound = placed.slot.read_texts(&[&text], reading.depth);
            bound.map_err(MatchError::here)
        };
        let within = |misfit: MatchError| misfit.within(&in_path(placed));
        let bound = read().map_err(within)?;
        reading.bind(&placed.slot, bound).map_err(within)?;
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
    let verb = path.verb_at(placed.end);
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
    if let Some(slot) = &route.rest_call.other_query {
        write_captured(&route.rest_call, slot, writing, &mut target)?;
    }
    Ok(target)
}

/// Writes the members of an object as query parameters.
fn write_captured(
    call: &RestCall,
    slot: &Slot,
    writing: &PatternWriter<'_>,
    target: &mut String,
) -> Result<(), MatchError> {
    for (name, values) in members(slot, writing)? {
        let known = call.query.iter().map(|item| &item.key);
        let mut known = known.chain(&call.message_parameter);
        if let Some(known) = known.find(|known| same_ignoring_case(known, &name)) {
            let what = format!("member `{name}`: the route has the query parameter `{known}`");
            return Err(MatchError::new(&slot.name, what));
        }
        for value in values {
            target.push(if target.contains('?') { '&' } else { '?' });
            percent::encode(&name, Keep::Nothing, target);
            target.push('=');
            percent::encode(&value, Keep::Nothing, target);
        }
    }
    Ok(())
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
        if let SegmentPattern::Text(text) = segment {
            target.push_str(text.before());
            let mut index = 0;
            while let Some(placed) = holes.next_if(|placed| placed.start == at) {
                write_part(text, index, &placed.slot, writing, target)
                    .map_err(|what| MatchError::new(&placed.slot.name, what))?;
                index += 1;
            }
            at += 1;
        } else if let Some(placed) = holes.next_if(|placed| placed.start == at) {
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

/// Writes a hole of a segment of text and holes, with the text after it.
fn write_part(
    pattern: &SegmentText,
    index: usize,
    slot: &Slot,
    writing: &PatternWriter<'_>,
    target: &mut String,
) -> Result<(), String> {
    let text = slot.texts(writing)?.last().unwrap_or_default();
    check_safe_in_path(&text)?;
    pattern.write(index, &text, target)
}

/// Checks that a path can have every word of the value maps of its holes.
///
/// # Errors
/// Returns [`PatternError`] with the word that it cannot have.
pub(super) fn check_words(path: &Template) -> Result<(), PatternError> {
    for (at, placed) in path.holes.iter().enumerate() {
        let before = path.holes[..at].iter();
        let index = before.filter(|hole| hole.start == placed.start).count();
        for (word, _) in placed.slot.map_words() {
            let fits = check_safe_in_path(word).and_then(|()| match &path.segments[placed.start] {
                SegmentPattern::Text(text) => text.write(index, word, &mut String::new()),
                SegmentPattern::Literal(_) | SegmentPattern::One | SegmentPattern::Rest => {
                    check_segments(path, placed, word)
                }
            });
            fits.map_err(|what| placed.slot.unwritable_word(word, &what))?;
        }
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
            // A hole beside text is written by `write_part`.
            SegmentPattern::Text(_) => false,
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
        SegmentPattern::Text(_) | SegmentPattern::One => "*",
        SegmentPattern::Rest => "**",
    });
    words.collect::<Vec<_>>().join("/")
}
