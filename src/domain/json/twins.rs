//! Names that lenient parsers take for one: the same, or differing only in letter case.
//!
//! Law: finding twins among n names costs no more than sorting them, whoever chose the names.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::{Member, OpenFault};

/// Up to this many names are compared each with each: cheaper than to sort them.
const FEW: usize = 16;

/// The first member that has a twin before it.
pub(super) fn twins(members: &[Member<'_>]) -> Option<OpenFault> {
    let (one, other) = if !members.iter().all(|member| member.name.is_ascii()) {
        let folded: Vec<_> = members.iter().map(|member| fold(&member.name)).collect();
        among_many(members.len(), |index| &*folded[index], str::cmp)
    } else if members.len() <= FEW {
        among_few(members)
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

fn among_few(members: &[Member<'_>]) -> Option<(usize, usize)> {
    for (later, member) in members.iter().enumerate() {
        let before = &members[..later];
        let twin = |other: &Member<'_>| other.name.eq_ignore_ascii_case(&member.name);
        if let Some(earlier) = before.iter().position(twin) {
            return Some((earlier, later));
        }
    }
    None
}

/// Sorted by a key that nearly always tells two names apart; where it does not, by the names themselves.
fn among_many<'a>(
    count: usize,
    name: impl Fn(usize) -> &'a str,
    compare: impl Fn(&str, &str) -> Ordering,
) -> Option<(usize, usize)> {
    let mut keyed: Vec<(u64, usize)> = (0..count).map(|index| (key(name(index)), index)).collect();
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

/// The same for names that differ only in the case of ASCII letters, made of their ends and their length.
fn key(name: &str) -> u64 {
    /// Sets the bit that tells lower-case letters from upper-case ones, whatever else that confuses.
    const LOWER: u64 = u64::from_ne_bytes([0x20; 8]);
    /// Any odd number with ones all over it.
    const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;
    let bytes = name.as_bytes();
    let (head, tail) = match (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        (Some(head), Some(tail)) => (u64::from_le_bytes(*head), u64::from_le_bytes(*tail)),
        _ => {
            let short = bytes
                .iter()
                .fold(0, |word, byte| (word << 8) | u64::from(*byte));
            (short, 0)
        }
    };
    let mixed = (head | LOWER).wrapping_mul(SPREAD).rotate_left(29) ^ (tail | LOWER);
    mixed.wrapping_mul(SPREAD).wrapping_add(bytes.len() as u64)
}

fn cmp_ignoring_ascii_case(one: &str, other: &str) -> Ordering {
    let lengths = one.len().cmp(&other.len());
    let lower = |byte: u8| byte.to_ascii_lowercase();
    lengths.then_with(|| one.bytes().map(lower).cmp(other.bytes().map(lower)))
}

/// Whether two names differ at most in letter case, as lenient parsers compare them.
#[must_use]
pub fn same_ignoring_case(one: &str, other: &str) -> bool {
    if one.is_ascii() && other.is_ascii() {
        one.eq_ignore_ascii_case(other)
    } else {
        fold(one) == fold(other)
    }
}

/// One spelling for all names that [`same_ignoring_case`].
fn fold(name: &str) -> Cow<'_, str> {
    if !name.is_ascii() {
        // Upper and lower in turn folds what has no single partner, such as `ſ` and the Kelvin sign.
        return name.to_uppercase().to_lowercase().into();
    }
    if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        name.to_ascii_lowercase().into()
    } else {
        name.into()
    }
}
