//! The specificity relation for path segments of text and holes. Types of holes are not compared here: routes of one
//! shape of path are compared hole by hole.

use super::texts::TextSet;
use crate::pattern::SegmentText;

/// Returns true if all segments that have the texts of `one` have those of `other`.
#[must_use]
pub fn segment_within(one: &SegmentText, other: &SegmentText) -> bool {
    TextSet::segment(one).within(&TextSet::segment(other))
}

/// Returns a segment, in normal form, that has the texts of both.
#[must_use]
pub fn segment_intersection(one: &SegmentText, other: &SegmentText) -> Option<String> {
    let found = TextSet::segment(one).common_text(&TextSet::segment(other))?;
    Some(found.chars().map(spelled).collect())
}

/// The first of the characters that stand for the bytes of escapes: an escape is one symbol of a segment.
const ESCAPES: u32 = 0xF_0000;

/// Returns a text in normal form as symbols: an escape is one of them.
pub(super) fn symbols(normal: &str) -> String {
    let mut symbols = String::with_capacity(normal.len());
    let mut rest = normal;
    while let Some(at) = rest.find('%') {
        symbols.push_str(&rest[..at]);
        let byte = rest.get(at + 1..at + 3);
        let byte = byte.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let Some(symbol) = byte.and_then(|byte| char::from_u32(ESCAPES + byte)) else {
            break;
        };
        symbols.push(symbol);
        rest = &rest[at + 3..];
    }
    symbols.push_str(rest);
    symbols
}

fn spelled(symbol: char) -> String {
    match u32::from(symbol).checked_sub(ESCAPES) {
        Some(byte) if byte < 256 => format!("%{byte:02X}"),
        Some(_) | None => symbol.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::pattern::HoleLength;

    fn text(parts: &[String]) -> SegmentText {
        SegmentText::parse(&parts[0], &parts[1..]).unwrap()
    }

    /// Texts of few characters, so that many overlap.
    fn segment_text() -> impl Strategy<Value = SegmentText> {
        let parts = (
            "[ab]{0,2}",
            proptest::collection::vec("[ab@]{1,2}", 0..3),
            "[ab]{0,2}",
        );
        parts.prop_map(|(before, mut parts, last)| {
            parts.insert(0, before);
            parts.push(last);
            text(&parts)
        })
    }

    #[test]
    fn texts_are_ordered_by_what_they_accept() {
        let text =
            |parts: &[&str]| text(&Vec::from_iter(parts.iter().map(|part| (*part).to_owned())));
        let (json, tx) = (text(&["", ".json"]), text(&["tx", ".json"]));
        assert!(segment_within(&tx, &json) && !segment_within(&json, &tx));
        let open = text(&["tx", ""]);
        assert!(!segment_within(&open, &json) && !segment_within(&json, &open));
        assert_eq!(segment_intersection(&open, &json).unwrap(), "tx.json");
        assert_eq!(segment_intersection(&json, &text(&["", ".hex"])), None);
        // Empty holes would match both.
        assert_eq!(
            segment_intersection(&text(&["a", ""]), &text(&["", "a"])),
            None
        );
        let escaped = text(&["é", "@"]);
        assert_eq!(
            segment_intersection(&escaped, &escaped).unwrap(),
            "%C3%A9a@"
        );
    }

    proptest! {
        #[test]
        fn common_segments_fit_both_and_narrower_texts_fit_less(
            one in segment_text(),
            other in segment_text(),
            segment in "[ab@c]{0,8}",
        ) {
            let fits = |text: &SegmentText, segment: &str| text.fits(segment, HoleLength::NotEmpty);
            match segment_intersection(&one, &other) {
                Some(common) => prop_assert!(fits(&one, &common) && fits(&other, &common), "{common}"),
                None => prop_assert!(!(fits(&one, &segment) && fits(&other, &segment)), "{segment}"),
            }
            if segment_within(&one, &other) {
                prop_assert!(!fits(&one, &segment) || fits(&other, &segment), "{segment}");
            }
        }
    }
}
