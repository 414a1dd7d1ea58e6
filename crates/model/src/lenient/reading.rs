//! The readings of a path by lenient servers: each combination of a few steps, in a fixed order.
//!
//! A step returns nothing if it changes nothing, so a path with one irregularity has two readings. A path has at most
//! 2^7 readings, none longer than the path itself.
//!
//! Used by `lenient` and `lenient::tree`.

use std::borrow::Cow;

/// A transformation that a lenient server applies to a path.
type Step = fn(&str) -> Option<String>;

/// All steps. A server may decode twice, and may cut parameters before or after decoding.
const STEPS: [Step; 7] = [
    without_parameters,
    decode,
    decode,
    without_parameters,
    with_slashes,
    end_at_terminators,
    normalize_segments,
];

/// Returns the first result of `find` over the readings of a path.
pub(super) fn find_reading<T>(path: &str, mut find: impl FnMut(&str) -> Option<T>) -> Option<T> {
    each(path, &STEPS, &mut find)
}

fn each<T, F: FnMut(&str) -> Option<T>>(path: &str, steps: &[Step], find: &mut F) -> Option<T> {
    let Some((step, later)) = steps.split_first() else {
        return find(path);
    };
    if let Some(found) = each(path, later, find) {
        return Some(found);
    }
    // A step that changes nothing would repeat the readings that were just tried.
    each(&step(path)?, later, find)
}

/// Returns whether some step might change a path or its letter case; it may return true for a path that no step
/// changes.
pub(super) fn may_be_irregular(path: &[u8]) -> bool {
    let mut before = 0;
    let found = path.iter().any(|byte| {
        let is_odd = match byte {
            b'%' | b'\\' | b';' | b'A'..=b'Z' | 0..=b' ' | 0x7f.. => true,
            b'/' => matches!(before, b'/' | b'.'),
            b'.' => before == b'/',
            _ => false,
        };
        before = *byte;
        is_odd
    });
    found || before == b'.'
}

/// Returns whether a text differs from its case-folded form.
pub(super) fn has_uppercase(text: &str) -> bool {
    let plain = decode(text).unwrap_or_else(|| text.to_owned());
    fold(&plain) != plain
}

/// Returns the form in which a segment is compared: decoded and case-folded.
pub(super) fn canonical(segment: &str) -> Cow<'_, str> {
    let is_plain = |byte: &u8| byte.is_ascii() && *byte != b'%' && !byte.is_ascii_uppercase();
    if segment.as_bytes().iter().all(is_plain) {
        return Cow::Borrowed(segment);
    }
    Cow::Owned(match decode(segment) {
        Some(plain) => fold(&plain),
        None => fold(segment),
    })
}

/// Folds in both directions, since `ſ` has the capital `S`, and the Kelvin sign is a capital of `k`.
fn fold(text: &str) -> String {
    match text.is_ascii() {
        true => text.to_ascii_lowercase(),
        false => text.to_uppercase().to_lowercase(),
    }
}

/// Decodes every escape, and reads overlong UTF-8 as the ASCII character that it encodes. A malformed escape stays.
fn decode(text: &str) -> Option<String> {
    if !text.contains('%') {
        return None;
    }
    let bytes = text.as_bytes();
    let mut found = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    let mut any = false;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        match escaped(*byte, after) {
            Some(value) => {
                rest = after.get(2..).unwrap_or_default();
                any = true;
                push(value, &mut found);
            }
            None => found.push(*byte),
        }
    }
    any.then(|| String::from_utf8_lossy(&found).into_owned())
}

fn escaped(byte: u8, after: &[u8]) -> Option<u8> {
    let digits = after.first_chunk::<2>().filter(|_| byte == b'%')?;
    let [high, low] = digits.map(|digit| char::from(digit).to_digit(16));
    u8::try_from(high? * 16 + low?).ok()
}

/// Appends a byte. `C0` and `C1` begin no valid character: with the next byte they are an overlong ASCII character.
fn push(value: u8, found: &mut Vec<u8>) {
    match (found.last(), value) {
        (Some(first @ (0xc0 | 0xc1)), 0x80..=0xbf) => {
            let character = ((first & 1) << 6) | (value & 0x3f);
            found.pop();
            found.push(character);
        }
        _ => found.push(value),
    }
}

/// Removes path parameters: `/items;v=1/7` becomes `/items/7`.
fn without_parameters(path: &str) -> Option<String> {
    path.contains(';').then(|| {
        map_segments(path, |segment| {
            let end = segment.find(';').unwrap_or(segment.len());
            &segment[..end]
        })
    })
}

fn with_slashes(path: &str) -> Option<String> {
    path.contains('\\').then(|| path.replace('\\', "/"))
}

/// Ends the path at NUL, at `?` and at `#`, and each segment before trailing white space and dots.
fn end_at_terminators(path: &str) -> Option<String> {
    let end = path.find(['\0', '?', '#']).unwrap_or(path.len());
    let cut = map_segments(&path[..end], |segment| {
        let segment = segment.trim_end_matches(|letter: char| letter <= ' ');
        let short = segment.trim_end_matches(|letter: char| letter <= ' ' || letter == '.');
        // A dot segment stays one.
        match short.is_empty() {
            true => segment,
            false => short,
        }
    });
    (cut != path).then_some(cut)
}

/// Removes dot segments and empty ones; a trailing slash stays.
fn normalize_segments(path: &str) -> Option<String> {
    let mut segments = Vec::new();
    let mut ends_in_slash = false;
    for segment in path.split('/') {
        ends_in_slash = matches!(segment, "" | "." | "..");
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            _ => segments.push(segment),
        }
    }
    if ends_in_slash {
        segments.push("");
    }
    let normalized = format!("/{}", segments.join("/"));
    (normalized != path).then_some(normalized)
}

fn map_segments<'p>(path: &'p str, mut change: impl FnMut(&'p str) -> &'p str) -> String {
    let mut changed = String::with_capacity(path.len());
    for (index, segment) in path.split('/').enumerate() {
        if index > 0 {
            changed.push('/');
        }
        changed.push_str(change(segment));
    }
    changed
}
