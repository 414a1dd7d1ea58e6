//! Objects that a rule opens: each name once, in any letter case, so that no two parsers read two values.

use std::ops::Range;

use super::{Json, decode, scan_object};

/// A member of an opened object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The name, decoded.
    pub name: String,
    /// The member with its name, as a place in the object's text.
    pub whole: Range<usize>,
    /// The value, as a place in the object's text.
    pub value: Range<usize>,
}

/// Why an object cannot be opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenFault {
    /// A name that is no Unicode text.
    #[error("a member name: a lone surrogate escape is no Unicode text")]
    NoText,
    /// A name given twice.
    #[error("member `{0}`: it is given twice")]
    Twice(String),
    /// Two names that lenient parsers take for one.
    #[error("member `{0}`: it differs from `{1}` only in letter case")]
    Twins(String, String),
}

impl Json {
    /// The members of an object, in order; none for other kinds.
    ///
    /// # Errors
    /// [`OpenFault`] where two parsers could read two values.
    pub fn open(&self) -> Result<Vec<Member>, OpenFault> {
        let text = self.as_bytes();
        let mut found = Vec::new();
        let mut fault = None;
        // The text was validated, with its depth, when it came in.
        let _ = scan_object(text, u16::MAX, |member| {
            match decode(&text[member.name.clone()]) {
                Ok(name) => found.push(Member {
                    name: name.into_owned(),
                    whole: member.name.start - 1..member.value.end,
                    value: member.value,
                }),
                Err(_) => fault = Some(OpenFault::NoText),
            }
        });
        match fault.or_else(|| twins(&found)) {
            None => Ok(found),
            Some(fault) => Err(fault),
        }
    }

    /// The value of a member of an object that can be opened.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<Json> {
        let members = self.open().ok()?;
        members
            .into_iter()
            .find(|member| member.name == name)
            .map(|member| self.piece(member.value))
    }
}

fn twins(members: &[Member]) -> Option<OpenFault> {
    let mut folded: Vec<(String, &str)> = members
        .iter()
        .map(|member| (fold(&member.name), &*member.name))
        .collect();
    folded.sort();
    let [(_, one), (_, other)] = folded
        .array_windows()
        .find(|[one, other]| one.0 == other.0)?;
    Some(if one == other {
        OpenFault::Twice((*other).to_owned())
    } else {
        OpenFault::Twins((*other).to_owned(), (*one).to_owned())
    })
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
fn fold(name: &str) -> String {
    if name.is_ascii() {
        return name.to_ascii_lowercase();
    }
    // Upper and lower in turn folds what has no single partner, such as `ſ` and the Kelvin sign.
    name.to_uppercase().to_lowercase()
}
