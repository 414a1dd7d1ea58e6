//! Pieces of paths that are not shown. A path is looked at as it came, for a malformed one is logged as well.

use std::borrow::Cow;

use super::HIDDEN;
use crate::domain::pattern::Slot;
use crate::domain::percent::normalise;
use crate::domain::route::{Route, SegmentPattern, Segments};

/// A beginning of paths, some pieces of which are hidden.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathMask(Vec<MaskStep>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct MaskStep {
    fits: Fits,
    shown: MaskedPiece,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Fits {
    /// This text in normal form; letter case does not matter, so that a slip shows nothing.
    Text(String),
    /// Any one piece.
    Any,
    /// All that is left.
    Rest,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MaskedPiece {
    Yes,
    No,
}

impl PathMask {
    /// Reads a path in which `*` stands for a piece that is hidden, and `**` at its end for all that is left.
    ///
    /// # Errors
    /// In words, what is wrong with it.
    pub fn parse(text: &str) -> Result<PathMask, &'static str> {
        if !text.starts_with('/') {
            return Err("a path begins with a slash, such as `/reset/*`");
        }
        let segments = Segments::split(text);
        if segments.irregular().is_some() {
            return Err("a path has no empty segments, and no dot segments");
        }
        // Where a path ends in a slash does not matter here.
        let segments = segments.iter().filter(|segment| !segment.is_empty());
        let steps: Vec<_> = segments.map(step).collect();
        if steps.iter().all(|step| step.shown == MaskedPiece::Yes) {
            return Err("it hides nothing; write `*` for a segment, or `**` for the rest");
        }
        let behind = steps.iter().rev().skip(1);
        if behind.clone().any(|step| step.fits == Fits::Rest) {
            return Err("`**` stands at the end only");
        }
        if steps
            .iter()
            .any(|step| matches!(&step.fits, Fits::Text(text) if text.contains('*')))
        {
            return Err("`*` stands for a whole segment");
        }
        Ok(PathMask(steps))
    }

    /// The path of a route, with those pieces hidden that are holes of hidden names, if there are any.
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
        let steps = segments.iter().enumerate().map(|(at, segment)| {
            let inside = holes
                .iter()
                .any(|hole| (hole.start..hole.end).contains(&at));
            MaskStep {
                fits: match segment {
                    SegmentPattern::Literal(text) => Fits::Text(text.clone()),
                    SegmentPattern::One => Fits::Any,
                    SegmentPattern::Rest => Fits::Rest,
                },
                shown: if inside {
                    MaskedPiece::No
                } else {
                    MaskedPiece::Yes
                },
            }
        });
        Some(PathMask(steps.collect()))
    }

    /// Marks the pieces of a path that are hidden, where the path begins like this.
    fn mark(&self, pieces: &mut [PathPiece<'_>]) {
        let mut hidden = Vec::new();
        for (at, step) in self.0.iter().enumerate() {
            if step.fits == Fits::Rest {
                hidden.extend((at..pieces.len()).filter(|_| step.shown == MaskedPiece::No));
                break;
            }
            let Some(piece) = pieces.get(at) else { return };
            if let Fits::Text(text) = &step.fits
                && !piece.is(text)
            {
                return;
            }
            if step.shown == MaskedPiece::No {
                hidden.push(at);
            }
        }
        for index in hidden {
            if let Some(piece) = pieces.get_mut(index) {
                piece.shown = MaskedPiece::No;
            }
        }
    }
}

fn step(segment: &str) -> MaskStep {
    let (fits, shown) = match segment {
        "*" => (Fits::Any, MaskedPiece::No),
        "**" => (Fits::Rest, MaskedPiece::No),
        text => (Fits::Text(normalise(text).into_owned()), MaskedPiece::Yes),
    };
    MaskStep { fits, shown }
}

/// A segment that says something.
struct PathPiece<'p> {
    came: &'p str,
    normal: Cow<'p, str>,
    shown: MaskedPiece,
}

impl PathPiece<'_> {
    /// Whether it is a text of a mask; a verb at the end of a path belongs to no segment of its pattern.
    fn is(&self, text: &str) -> bool {
        let before = self.normal.rsplit_once(':').map(|(before, _)| before);
        let same = |one: &str| one.eq_ignore_ascii_case(text);
        same(&self.normal) || before.is_some_and(same)
    }

    /// Whether somebody might read it as several segments, or as a way back: what follows may be anything.
    fn misleads(&self) -> bool {
        let escaped = ["%2F", "%5C"]
            .iter()
            .any(|slash| self.normal.contains(slash));
        self.normal == ".." || escaped || self.normal.contains('\\')
    }
}

/// A path without what the masks hide. Empty segments and `.` are passed over; from a piece on that misleads, all is
/// hidden where anything at all might be.
pub(super) fn hide<'p>(masks: &[PathMask], path: &'p str) -> Cow<'p, str> {
    if masks.is_empty() {
        return Cow::Borrowed(path);
    }
    let segments: Vec<_> = path.strip_prefix('/').unwrap_or(path).split('/').collect();
    let mut pieces: Vec<_> = segments.iter().copied().map(piece).collect();
    let mut telling: Vec<_> = pieces
        .extract_if(.., |piece| !matches!(&*piece.normal, "" | "."))
        .collect();
    for mask in masks {
        mask.mark(&mut telling);
    }
    let misled = telling.iter().position(PathPiece::misleads);
    for piece in telling.iter_mut().skip(misled.unwrap_or(usize::MAX)) {
        piece.shown = MaskedPiece::No;
    }
    if telling.iter().all(|piece| piece.shown == MaskedPiece::Yes) {
        return Cow::Borrowed(path);
    }
    let shown = telling.iter().map(|piece| match piece.shown {
        MaskedPiece::Yes => piece.came,
        MaskedPiece::No => HIDDEN,
    });
    Cow::Owned(shown.fold(String::new(), |path, piece| path + "/" + piece))
}

fn piece(came: &str) -> PathPiece<'_> {
    PathPiece {
        came,
        normal: normalise(came),
        shown: MaskedPiece::Yes,
    }
}
