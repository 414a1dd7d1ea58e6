//! The comparison of names without regard to letter case.

use std::borrow::Cow;

/// Returns whether two names differ at most in letter case, as lenient parsers compare them.
#[must_use]
pub fn same_ignoring_case(one: &str, other: &str) -> bool {
    if one.is_ascii() && other.is_ascii() {
        one.eq_ignore_ascii_case(other)
    } else {
        fold(one) == fold(other)
    }
}

/// Returns one spelling for all names for which [`same_ignoring_case`] holds.
pub(super) fn fold(name: &str) -> Cow<'_, str> {
    if !name.is_ascii() {
        // Conversion to upper and then lower case folds characters without a single counterpart, such as `ſ` and the
        // Kelvin sign.
        return name.to_uppercase().to_lowercase().into();
    }
    if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        name.to_ascii_lowercase().into()
    } else {
        name.into()
    }
}
