//! The correspondents of the wider pattern's holes in the narrower pattern. A hole that occurs several times requires
//! equal values, so its correspondents must be equal in all positions.
//!
//! Used by `pattern::compare::subsumption`.

use crate::pattern::{Absence, BoundValue, Codec, Null, Pattern, Slot};

/// The correspondent of a hole at one position.
#[derive(Debug, Clone)]
pub(super) enum HoleLink<'p> {
    /// Always this value.
    Value(BoundValue),
    /// Always absent.
    Nothing,
    /// The value of this hole of the narrower pattern.
    Hole(&'p Slot),
    /// Unknown.
    Unknown,
}

/// All binding holes of the wider pattern, with their correspondents.
#[derive(Debug, Default)]
pub(super) struct HoleLinks<'p> {
    found: Vec<LinkedHole<'p>>,
}

/// A hole of the wider pattern at one position.
#[derive(Debug)]
struct LinkedHole<'p> {
    hole: usize,
    slot: &'p Slot,
    link: HoleLink<'p>,
}

impl<'p> HoleLinks<'p> {
    /// Adds the correspondent of a hole at one more position.
    pub(super) fn add(&mut self, slot: &'p Slot, link: HoleLink<'p>) {
        if let Some(hole) = slot.binds().or(slot.equals()) {
            let link = match link {
                HoleLink::Nothing if slot.equals().is_some() => return,
                HoleLink::Nothing => slot
                    .read_absent()
                    .map_or(HoleLink::Unknown, HoleLink::Value),
                HoleLink::Value(_) | HoleLink::Hole(_) | HoleLink::Unknown => link,
            };
            self.found.push(LinkedHole { hole, slot, link });
        }
    }

    /// Records that the holes of a pattern were read with unknown values.
    pub(super) fn unknown(&mut self, pattern: &'p Pattern) {
        let mut holes: Vec<(usize, &'p Slot)> = Vec::new();
        pattern.slots(&mut |slot| {
            if let Some(hole) = slot.binds()
                && !holes.iter().any(|(known, _)| *known == hole)
            {
                holes.push((hole, slot));
            }
        });
        for (_, slot) in holes {
            self.add(slot, HoleLink::Unknown);
        }
    }

    /// Adds the links of the elements of an array.
    pub(super) fn add_lists(&mut self, inside: HoleLinks<'p>) {
        for (index, linked) in inside.found.iter().enumerate() {
            // The positions within one element have been compared, so each hole is added once.
            let mut before = inside.found[..index].iter();
            if before.any(|known| known.hole == linked.hole) {
                continue;
            }
            // A list of equal values may have another length elsewhere.
            let link = match &linked.link {
                link @ HoleLink::Hole(_) => link.clone(),
                HoleLink::Value(_) | HoleLink::Nothing | HoleLink::Unknown => HoleLink::Unknown,
            };
            self.found.push(LinkedHole { link, ..*linked });
        }
    }

    /// Returns true if the correspondents of each hole are equal in all positions.
    pub(super) fn agree(&self) -> bool {
        self.found.iter().enumerate().all(|(index, linked)| {
            let mut before = self.found[..index].iter().rev();
            // Equality is transitive, so the nearest position suffices.
            let before = before.find(|known| known.hole == linked.hole);
            before.is_none_or(|before| equal(before, linked))
        })
    }
}

fn equal(one: &LinkedHole<'_>, other: &LinkedHole<'_>) -> bool {
    match (&one.link, &other.link) {
        (HoleLink::Value(value), HoleLink::Value(twin)) => value.same(twin),
        (HoleLink::Hole(hole), HoleLink::Hole(twin)) => {
            let hole_of = |slot: &Slot| slot.binds().or(slot.equals());
            let both = hole_of(hole).is_some() && hole_of(hole) == hole_of(twin);
            // A position that equals a hole has no value of its own.
            if [hole, twin].iter().any(|slot| slot.equals().is_some()) {
                return both;
            }
            let equal_reading = alike(hole, one.slot) && alike(twin, other.slot);
            let as_is = is_as_is(hole) && is_as_is(twin) && alike(one.slot, other.slot);
            both && (equal_reading || as_is)
        }
        (HoleLink::Value(_) | HoleLink::Nothing | HoleLink::Hole(_) | HoleLink::Unknown, _) => {
            false
        }
    }
}

/// Returns true if two holes read every value in the same way.
fn alike(one: &Slot, other: &Slot) -> bool {
    one.shape == other.shape
        && one.absence == other.absence
        && one.codec == other.codec
        && one.null == other.null
}

/// Returns true if equal bindings imply equal values.
fn is_as_is(slot: &Slot) -> bool {
    slot.codec == Codec::Plain
        && slot.null == Null::Value
        && matches!(slot.absence, Absence::Required | Absence::Optional)
}
