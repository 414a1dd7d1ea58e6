//! The patterns of a URL: the template of its path, and the items of its query. Used throughout `model`.

use dualgauge_patterns::pattern::{
    HoleLength, HolePosition, SegmentText, Slot, TextPatterns, segment_intersection, segment_within,
};

/// The path of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template<H = Slot> {
    /// The pattern of each segment. The last one is the empty text if the path ends in a slash.
    pub segments: Vec<SegmentPattern>,
    /// The holes with their segments.
    pub holes: Vec<PlacedHole<H>>,
    /// The literal after the last `:`, as in `/v1/{name}:cancel`.
    pub verb: Option<String>,
}

impl<H> Template<H> {
    /// Returns the segments before a trailing slash, and whether there is such a slash.
    pub(crate) fn before_slash(&self) -> (&[SegmentPattern], bool) {
        match self.segments.split_last() {
            Some((SegmentPattern::Literal(last), before)) if last.is_empty() => (before, true),
            _ => (&self.segments, false),
        }
    }

    /// Returns the verb, if a segment that ends there is the last one.
    pub(super) fn verb_at(&self, end: usize) -> Option<&str> {
        let verb = self.verb.as_deref();
        verb.filter(|_| end == self.segments.len())
    }

    /// Returns the position of a hole: one whole segment, or a part or several.
    pub(crate) fn position(&self, placed: &PlacedHole<H>) -> HolePosition {
        match self.segments[placed.start..placed.end] {
            [SegmentPattern::One] => HolePosition::Segment,
            _ => HolePosition::Path,
        }
    }

    /// Returns the only path that matches, in normal form; `None` if there is a hole.
    #[must_use]
    pub fn literal(&self) -> Option<String> {
        let mut path = String::new();
        for segment in &self.segments {
            let SegmentPattern::Literal(text) = segment else {
                return None;
            };
            path.push('/');
            path.push_str(text);
        }
        match &self.verb {
            Some(verb) => Some(format!("{path}:{verb}")),
            None if path.is_empty() => Some("/".to_owned()),
            None => Some(path),
        }
    }
}

/// The pattern of one segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SegmentPattern {
    /// This text, in normal form.
    Literal(String),
    /// Text and holes, none of them empty.
    Text(SegmentText),
    /// Any text that is not empty.
    One,
    /// Any number of segments, including none; always the last pattern.
    Rest,
}

impl SegmentPattern {
    /// Returns true when some segment matches both.
    #[must_use]
    pub fn meets(&self, other: &SegmentPattern) -> bool {
        use SegmentPattern::{Literal, One, Rest, Text};
        match (self, other) {
            (Literal(one), Literal(other)) => one == other,
            (Literal(literal), Text(text)) | (Text(text), Literal(literal)) => {
                text.fits(literal, HoleLength::NotEmpty)
            }
            (Literal(literal), One | Rest) | (One | Rest, Literal(literal)) => !literal.is_empty(),
            (Text(one), Text(other)) => one == other || segment_intersection(one, other).is_some(),
            (Text(_) | One | Rest, One | Rest) | (One | Rest, Text(_)) => true,
        }
    }

    /// Returns true when this is compared before another pattern of the same segment: each segment that matches it
    /// matches the other one.
    pub(super) fn precedes(&self, other: &SegmentPattern) -> bool {
        use SegmentPattern::{Literal, One, Rest, Text};
        match (self, other) {
            (Literal(_), Text(_) | One | Rest) | (Text(_), One | Rest) | (One, Rest) => true,
            (Text(one), Text(other)) => segment_within(one, other) && !segment_within(other, one),
            (Literal(_), Literal(_)) | (Text(_) | One | Rest, _) => false,
        }
    }
}

/// A hole with its segments. Several holes may be in one segment, in the order of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedHole<H = Slot> {
    /// The hole.
    pub slot: H,
    /// The index of its first segment.
    pub start: usize,
    /// The index after its last segment; a [`SegmentPattern::Rest`] counts as one.
    pub end: usize,
}

/// One `key=value` of a query pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryItem<H = Slot> {
    /// The name in the URL.
    pub key: String,
    /// The pattern of the value.
    pub words: TextPatterns<H>,
}
