//! Text and holes in one path segment: `{hash}.json`, `{base}...{head}`.
//!
//! The texts are compared with the segment in normal form, before its values are decoded. So a reserved character
//! ends a hole only where it is not percent-encoded (RFC 3986 §2.2). An unreserved one is the same in both spellings
//! (§2.3). A hole is not empty, and ends where the next text first occurs. Law: written segments read as the same
//! values.
//!
//! Used by `pattern::compare::segments` and `pattern::compare::texts`.

use super::hole_syntax::PatternError;
use crate::percent::{Keep, PercentError, Plus, decode, encode, normalise};

/// The texts of a path segment, with a hole between each two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentText {
    /// The text before the first hole, in normal form; it may be empty.
    before: String,
    /// The text after each hole, in normal form; only the last one may be empty.
    after: Vec<String>,
}

/// The values that a hole may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoleLength {
    /// Any text that is not empty.
    NotEmpty,
    /// Any text: another program may accept an empty value.
    Any,
}

impl SegmentText {
    /// Creates the texts of a segment as written in a route: the text before the first hole, and the one after each.
    ///
    /// # Errors
    /// Fails on a malformed escape.
    pub fn parse(before: &str, after: &[String]) -> Result<SegmentText, PatternError> {
        let normal = |text: &str| {
            let normal = normal_text(text);
            match decode(&normal, Plus::Literal) {
                Err(fault @ PercentError::Malformed) => {
                    Err(PatternError::new(format!("`{text}` in a path: {fault}")))
                }
                Ok(_) | Err(PercentError::NotUtf8) => Ok(normal),
            }
        };
        let after = after.iter().map(|text| normal(text));
        Ok(SegmentText {
            before: normal(before)?,
            after: after.collect::<Result<_, _>>()?,
        })
    }

    /// Returns the same texts in another spelling.
    #[must_use]
    pub fn spelled(&self, spell: impl Fn(&str) -> String) -> SegmentText {
        SegmentText {
            before: spell(&self.before),
            after: self.after.iter().map(|text| spell(text)).collect(),
        }
    }

    /// Returns the text before the first hole.
    #[must_use]
    pub fn before(&self) -> &str {
        &self.before
    }

    /// Returns the text after each hole.
    #[must_use]
    pub fn after(&self) -> &[String] {
        &self.after
    }

    /// Returns true if a segment in normal form has these texts.
    #[must_use]
    pub fn fits(&self, segment: &str, length: HoleLength) -> bool {
        self.walk(segment, length, |_| ()).is_some()
    }

    /// Returns the value of each hole of a segment in normal form, still encoded.
    #[must_use]
    pub fn split<'s>(&self, segment: &'s str) -> Option<Vec<&'s str>> {
        let mut values = Vec::with_capacity(self.after.len());
        self.walk(segment, HoleLength::NotEmpty, |value| values.push(value))?;
        Some(values)
    }

    fn walk<'s>(
        &self,
        segment: &'s str,
        length: HoleLength,
        mut value: impl FnMut(&'s str),
    ) -> Option<()> {
        let mut rest = segment.strip_prefix(self.before.as_str())?;
        for text in &self.after {
            let end = match text.is_empty() {
                true => rest.len(),
                false => first(rest, text)?,
            };
            if end == 0 && length == HoleLength::NotEmpty {
                return None;
            }
            value(&rest[..end]);
            rest = &rest[end + text.len()..];
        }
        rest.is_empty().then_some(())
    }

    /// Appends a value to a segment, with the text after it.
    ///
    /// # Errors
    /// Fails if the hole with this index would be read as another value.
    pub fn write(&self, index: usize, value: &str, out: &mut String) -> Result<(), String> {
        let text = self.after.get(index).map_or("", String::as_str);
        if value.is_empty() {
            return Err("it must not be empty".into());
        }
        let start = out.len();
        encode(value, Keep::Nothing, out);
        let end = out.len();
        out.push_str(text);
        if text.is_empty() || first(&out[start..], text) == Some(end - start) {
            return Ok(());
        }
        Err(format!("it contains `{text}`, the text that ends it here"))
    }

    /// Returns the segment with `{}` for each hole.
    #[must_use]
    pub fn shown(&self) -> String {
        let after = self.after.iter().map(|text| format!("{{}}{text}"));
        after.fold(self.before.clone(), |shown, text| shown + &text)
    }
}

/// Returns a literal text of a path in normal form: characters that RFC 3986 §3.3 does not allow are encoded.
#[must_use]
pub fn normal_text(text: &str) -> String {
    let mut escaped = String::new();
    for letter in text.chars() {
        // Keeps the characters that RFC 3986 §3.3 allows in a segment, and escapes in the pattern.
        if letter.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:@%".contains(letter) {
            escaped.push(letter);
        } else {
            encode(letter.encode_utf8(&mut [0; 4]), Keep::Nothing, &mut escaped);
        }
    }
    normalise(&escaped).into_owned()
}

/// Returns the first occurrence of a text that does not begin inside an escape. In normal form `%` only begins one.
fn first(segment: &str, text: &str) -> Option<usize> {
    let bytes = segment.as_bytes();
    let is_inside = |at: usize| {
        let begins = |back: usize| at >= back && bytes[at - back] == b'%';
        begins(1) || begins(2)
    };
    let mut found = segment.match_indices(text).map(|(at, _)| at);
    let first = found.next()?;
    if !is_inside(first) {
        return Some(first);
    }
    // `match_indices` skips overlapping occurrences, so the search continues one byte after each.
    let mut from = first + 1;
    loop {
        let at = from + segment.get(from..)?.find(text)?;
        if !is_inside(at) {
            return Some(at);
        }
        from = at + 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(parts: &[&str]) -> SegmentText {
        let after: Vec<String> = parts[1..].iter().map(|part| (*part).to_owned()).collect();
        SegmentText::parse(parts[0], &after).unwrap()
    }

    fn split(parts: &[&str], segment: &str) -> Option<Vec<String>> {
        let text = text(parts);
        let normal = normalise(segment).into_owned();
        let values = text.split(&normal)?;
        let values = values
            .iter()
            .map(|value| decode(value, Plus::Literal).unwrap().into_owned());
        Some(values.collect())
    }

    #[test]
    fn a_hole_ends_where_the_next_text_first_occurs() {
        let json = ["", ".json"];
        assert_eq!(split(&json, "ab.json").unwrap(), ["ab"]);
        assert_eq!(split(&json, "ab%2Ejson").unwrap(), ["ab"]);
        assert_eq!(split(&json, "a.b.json").unwrap(), ["a.b"]);
        for other in [".json", "ab.jso", "ab.json.json", "ab.jsonx", ""] {
            assert_eq!(split(&json, other), None, "{other}");
        }
        let range = ["", "...", ""];
        assert_eq!(split(&range, "v1...v2").unwrap(), ["v1", "v2"]);
        assert_eq!(split(&range, "v1....v2").unwrap(), ["v1", ".v2"]);
        assert_eq!(
            split(&["tx-", "-", ".hex"], "tx-0-7.hex").unwrap(),
            ["0", "7"]
        );
    }

    #[test]
    fn an_encoded_reserved_character_ends_no_hole() {
        let scoped = ["", "@", ""];
        assert_eq!(split(&scoped, "a%40b@c").unwrap(), ["a@b", "c"]);
        assert_eq!(split(&scoped, "a%40b"), None);
        // The `3` of `%C3` is no text.
        assert_eq!(split(&["", "3", ""], "%C3%A93x").unwrap(), ["é", "x"]);
        assert_eq!(split(&["", "é", ""], "aéb").unwrap(), ["a", "b"]);
    }

    #[test]
    fn a_value_that_would_end_elsewhere_is_refused() {
        let range = text(&["", "...", ""]);
        for value in ["a...b", "a.", "..."] {
            range.write(0, value, &mut String::new()).unwrap_err();
        }
        range.write(1, "a...b", &mut String::new()).unwrap();
        range.write(1, "", &mut String::new()).unwrap_err();
    }

    proptest! {
        #[test]
        fn written_segments_read_as_the_same_values(
            before in "[a%.@-]{0,2}",
            after in proptest::collection::vec("[a3.@é-]{1,3}", 1..3),
            is_open in any::<bool>(),
            values in proptest::collection::vec("[a3.@é%C/-]{0,5}", 3),
        ) {
            let mut after = after;
            if is_open {
                after.push(String::new());
            }
            let Ok(text) = SegmentText::parse(&before, &after) else { return Ok(()) };
            let mut segment = text.before().to_owned();
            let written = values.iter().take(after.len()).enumerate()
                .try_for_each(|(index, value)| text.write(index, value, &mut segment));
            if written.is_err() { return Ok(()) }
            prop_assert_eq!(&*normalise(&segment), &*segment);
            let read = text.split(&segment).unwrap();
            let read: Vec<_> = read.iter().map(|value| decode(value, Plus::Literal).unwrap().into_owned()).collect();
            prop_assert_eq!(&read[..], &values[..after.len()]);
        }

        #[test]
        fn read_values_write_the_same_segment(segment in "[a3.@%40C-]{0,12}") {
            let normal = normalise(&segment).into_owned();
            for parts in [&["", ".", ""][..], &["a", "@"], &["", "3", "-", ""], &["", ".json"]] {
                let text = text(parts);
                let Some(values) = text.split(&normal) else { continue };
                let Ok(values) = values.iter().map(|value| decode(value, Plus::Literal)).collect::<Result<Vec<_>, _>>() else { continue };
                let mut back = text.before().to_owned();
                for (index, value) in values.iter().enumerate() {
                    text.write(index, value, &mut back).unwrap();
                }
                // Reserved characters of values are encoded, which their readers do not distinguish.
                let again = text.split(&back).unwrap();
                let again: Vec<_> = again.iter().map(|value| decode(value, Plus::Literal).unwrap()).collect();
                prop_assert_eq!(again, values);
            }
        }
    }
}
