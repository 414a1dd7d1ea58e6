//! Detection of names that lenient parsers treat as one: equal names, or names that differ only in letter case.
//!
//! Law: finding duplicates among n names costs no more than sorting them, even for hostile names.
//!
//! Used by `json::members`.

use std::cmp::Ordering;

use super::letter_case::fold;
use super::members::{OpenFault, OpenMember};

/// Up to this many names are compared without a list; that is nearly always enough.
const FEW: usize = 16;

/// Returns the first member with a duplicate before it.
pub(super) fn find_duplicate(members: &[OpenMember<'_>]) -> Option<OpenFault> {
    let (one, other) = if !members.iter().all(|member| member.name.is_ascii()) {
        let folded: Vec<_> = members.iter().map(|member| fold(&member.name)).collect();
        among_many(members.len(), |index| &*folded[index], str::cmp)
    } else if members.len() <= FEW && !may_collide(members) {
        None
    } else {
        among_many(
            members.len(),
            |index| &*members[index].name,
            cmp_ignoring_ascii_case,
        )
    }?;
    let (one, other) = (&*members[one].name, &*members[other].name);
    Some(match one.cmp(other) {
        Ordering::Equal => OpenFault::Twice(one.to_owned()),
        Ordering::Less => OpenFault::Twins(other.to_owned(), one.to_owned()),
        Ordering::Greater => OpenFault::Twins(one.to_owned(), other.to_owned()),
    })
}

/// Returns false if the keys of all names select different bits of 1024; then there are no duplicates.
fn may_collide(members: &[OpenMember<'_>]) -> bool {
    let mut seen = [0_u64; 16];
    let mut collisions = 0;
    for member in members {
        let slot = key(&member.name) >> 54;
        let (word, bit) = (&mut seen[slot as usize >> 6], 1 << (slot & 63));
        collisions |= *word & bit;
        *word |= bit;
    }
    collisions != 0
}

/// Returns the names whose keys collide, by their keys. With 32 bits for each name, few collide unless chosen to.
fn colliding<'a>(count: usize, name: impl Fn(usize) -> &'a str) -> Vec<(u64, usize)> {
    let words = (count / 2).next_power_of_two().max(2);
    let slot = |key: u64| {
        let bit = key >> (58 - words.ilog2());
        (bit as usize >> 6, 1_u64 << (bit & 63))
    };
    let mut once = vec![0_u64; words];
    let mut twice = vec![0_u64; words];
    for index in 0..count {
        let (word, bit) = slot(key(name(index)));
        twice[word] |= once[word] & bit;
        once[word] |= bit;
    }
    let keyed = (0..count).map(|index| (key(name(index)), index));
    keyed
        .filter(|(key, _)| {
            let (word, bit) = slot(*key);
            twice[word] & bit != 0
        })
        .collect()
}

/// Sorts names by a key that nearly always distinguishes them, and by the names themselves otherwise.
fn among_many<'a>(
    count: usize,
    name: impl Fn(usize) -> &'a str + Copy,
    compare: impl Fn(&str, &str) -> Ordering,
) -> Option<(usize, usize)> {
    let mut keyed = colliding(count, name);
    keyed.sort_unstable();
    let mut first: Option<(usize, usize)> = None;
    for alike in keyed.chunk_by_mut(|one, other| one.0 == other.0) {
        if alike.len() == 1 {
            continue;
        }
        alike.sort_unstable_by(|one, other| {
            compare(name(one.1), name(other.1)).then(one.1.cmp(&other.1))
        });
        for [one, other] in alike.array_windows() {
            let nearer = first.is_none_or(|(_, later)| other.1 < later);
            if nearer && compare(name(one.1), name(other.1)) == Ordering::Equal {
                first = Some((one.1, other.1));
            }
        }
    }
    first
}

/// Returns a key that is equal for names that differ only in ASCII letter case, made of their ends and their length;
/// the upper bits are the best mixed.
#[inline]
fn key(name: &str) -> u64 {
    /// The bit that separates lower-case from upper-case letters; it may merge other bytes, too.
    const LOWER: u64 = u64::from_ne_bytes([0x20; 8]);
    /// An odd multiplier with well spread ones.
    const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;
    let bytes = name.as_bytes();
    let (head, tail) = if let (Some(head), Some(tail)) = (bytes.first_chunk(), bytes.last_chunk()) {
        (u64::from_le_bytes(*head), u64::from_le_bytes(*tail))
    } else if let (Some(head), Some(tail)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let (head, tail) = (u32::from_le_bytes(*head), u32::from_le_bytes(*tail));
        (u64::from(head), u64::from(tail))
    } else {
        let short = bytes
            .iter()
            .fold(0, |word, byte| (word << 8) | u64::from(*byte));
        (short, 0)
    };
    let head = (head | LOWER).wrapping_add(bytes.len() as u64);
    (head.wrapping_mul(SPREAD).rotate_left(29) ^ (tail | LOWER)).wrapping_mul(SPREAD)
}

fn cmp_ignoring_ascii_case(one: &str, other: &str) -> Ordering {
    let lengths = one.len().cmp(&other.len());
    let lower = |byte: u8| byte.to_ascii_lowercase();
    lengths.then_with(|| one.bytes().map(lower).cmp(other.bytes().map(lower)))
}
