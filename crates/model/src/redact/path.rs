//! Redaction of path segments. Paths are processed in raw form, since malformed ones are logged as well.

use std::borrow::Cow;

use super::hidden::HIDDEN;
use crate::route::{Route, SegmentPattern, Segments};
use dualgauge_patterns::pattern::Slot;
use dualgauge_patterns::percent::normalise;

/// A path prefix with hidden segments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathMask(Vec<MaskStep>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct MaskStep {
    fits: Fits,
    is_hidden: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Fits {
    /// This text in normal form, ignoring letter case, so that a misspelling reveals nothing.
    Text(String),
    /// Any one segment.
    Any,
    /// All remaining segments.
    Rest,
}

impl PathMask {
    /// Parses a path in which `*` stands for a hidden segment, and `**` at its end for all remaining ones.
    ///
    /// # Errors
    /// The fault, in words.
    pub fn parse(text: &str) -> Result<PathMask, &'static str> {
        if !text.starts_with('/') {
            return Err("a path begins with a slash, such as `/reset/*`");
        }
        let segments = Segments::split(text);
        if segments.irregular().is_some() {
            return Err("a path must not have empty or dot segments");
        }
        // A trailing slash does not matter here.
        let segments = segments.iter().filter(|segment| !segment.is_empty());
        let steps: Vec<_> = segments.map(step).collect();
        if !steps.iter().any(|step| step.is_hidden) {
            return Err("it hides nothing; write `*` for a segment, or `**` for the rest");
        }
        let before_last = steps.iter().rev().skip(1);
        if before_last.clone().any(|step| step.fits == Fits::Rest) {
            return Err("`**` is allowed only at the end");
        }
        if steps
            .iter()
            .any(|step| matches!(&step.fits, Fits::Text(text) if text.contains('*')))
        {
            return Err("`*` must be a whole segment");
        }
        Ok(PathMask(steps))
    }

    /// Returns the mask for a route's path, hiding the segments that are holes of hidden names; `None` if there are
    /// none.
    pub(super) fn new(route: &Route, hides: impl Fn(&str) -> bool) -> Option<PathMask> {
        let template = &route.rest_call.path;
        let hidden = |slot: &Slot| {
            let hole = slot.binds().and_then(|hole| route.facts.holes.get(hole));
            hole.is_some_and(|hole| hides(&hole.name))
        };
        let holes: Vec<_> = template
            .holes
            .iter()
            .filter(|hole| hidden(&hole.slot))
            .collect();
        if holes.is_empty() {
            return None;
        }
        let (segments, _) = template.before_slash();
        let steps = segments.iter().enumerate().map(|(at, segment)| MaskStep {
            fits: match segment {
                SegmentPattern::Literal(text) => Fits::Text(text.clone()),
                // A misspelling of the text reveals nothing, either.
                SegmentPattern::Text(_) | SegmentPattern::One => Fits::Any,
                SegmentPattern::Rest => Fits::Rest,
            },
            is_hidden: holes
                .iter()
                .any(|hole| (hole.start..hole.end).contains(&at)),
        });
        Some(PathMask(steps.collect()))
    }

    /// Marks the hidden segments of a path that begins like the mask.
    fn mark(&self, pieces: &mut [PathPiece<'_>]) {
        let mut hidden = Vec::new();
        for (at, step) in self.0.iter().enumerate() {
            if step.fits == Fits::Rest {
                hidden.extend((at..pieces.len()).filter(|_| step.is_hidden));
                break;
            }
            let Some(piece) = pieces.get(at) else { return };
            if let Fits::Text(text) = &step.fits
                && !piece.is(text)
            {
                return;
            }
            if step.is_hidden {
                hidden.push(at);
            }
        }
        for index in hidden {
            if let Some(piece) = pieces.get_mut(index) {
                piece.is_hidden = true;
            }
        }
    }
}

fn step(segment: &str) -> MaskStep {
    let (fits, is_hidden) = match segment {
        "*" => (Fits::Any, true),
        "**" => (Fits::Rest, true),
        text => (Fits::Text(normalise(text).into_owned()), false),
    };
    MaskStep { fits, is_hidden }
}

/// A non-empty segment.
struct PathPiece<'p> {
    raw: &'p str,
    normal: Cow<'p, str>,
    is_hidden: bool,
}

impl PathPiece<'_> {
    /// Returns whether a segment equals a text of a mask; a verb at the end of a path is not part of the segment's
    /// pattern.
    fn is(&self, text: &str) -> bool {
        let before = self.normal.rsplit_once(':').map(|(before, _)| before);
        let same = |one: &str| one.eq_ignore_ascii_case(text);
        same(&self.normal) || before.is_some_and(same)
    }

    /// Returns whether a server might read the segment as several, or as a parent reference: anything may follow then.
    fn misleads(&self) -> bool {
        let escaped = ["%2F", "%5C"]
            .iter()
            .any(|slash| self.normal.contains(slash));
        self.normal == ".." || escaped || self.normal.contains('\\')
    }
}

/// Returns a path without the segments that the masks hide. Empty segments and `.` are skipped; from an ambiguous
/// segment on, everything is hidden if a mask could apply.
pub(super) fn hide<'p>(masks: &[PathMask], path: &'p str) -> Cow<'p, str> {
    if masks.is_empty() {
        return Cow::Borrowed(path);
    }
    let segments: Vec<_> = path.strip_prefix('/').unwrap_or(path).split('/').collect();
    let mut pieces: Vec<_> = segments.iter().copied().map(piece).collect();
    let mut significant: Vec<_> = pieces
        .extract_if(.., |piece| !matches!(&*piece.normal, "" | "."))
        .collect();
    for mask in masks {
        mask.mark(&mut significant);
    }
    let misled = significant.iter().position(PathPiece::misleads);
    for piece in significant.iter_mut().skip(misled.unwrap_or(usize::MAX)) {
        piece.is_hidden = true;
    }
    if !significant.iter().any(|piece| piece.is_hidden) {
        return Cow::Borrowed(path);
    }
    let shown = significant.iter().map(|piece| match piece.is_hidden {
        true => HIDDEN,
        false => piece.raw,
    });
    Cow::Owned(shown.fold(String::new(), |path, piece| path + "/" + piece))
}

fn piece(raw: &str) -> PathPiece<'_> {
    PathPiece {
        raw,
        normal: normalise(raw),
        is_hidden: false,
    }
}
