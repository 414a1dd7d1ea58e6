//! Integers that are spelled with a fraction or an exponent.
//!
//! `3.0` and `3e0` are the integer 3 (JSON Schema 2020-12 §4.2.3), and servers that parse integers expect `3`. Law:
//! the result consists of digits only, has the same value, and fits 64 bits. An integer in digits is not converted: it
//! keeps its spelling, whatever its length.

use super::number::Number;
use super::{Scalar, Shape};
use crate::json::{Json, JsonKind, is_integer, is_number, kind_of};

impl Shape {
    /// Returns the normal form of a value of this shape with integers spelled with a fraction or an exponent, or
    /// `None` if the value does not have this shape.
    pub(super) fn with_plain_integers(&self, value: &Json) -> Option<Json> {
        match self {
            Shape::One(Scalar::Integer) => plain(value.as_bytes()).map(Json::written),
            Shape::Repeated(Scalar::Integer) | Shape::Separated(Scalar::Integer, _)
                if value.kind() == JsonKind::Array =>
            {
                let mut text = String::with_capacity(value.as_bytes().len());
                for range in value.elements() {
                    text.push(if text.is_empty() { '[' } else { ',' });
                    text.push_str(&plain(&value.as_bytes()[range])?);
                }
                text.push_str(if text.is_empty() { "[]" } else { "]" });
                Some(Json::written(text))
            }
            Shape::Any
            | Shape::One(_)
            | Shape::Repeated(_)
            | Shape::Separated(..)
            | Shape::Object
            | Shape::Array
            | Shape::Null => None,
        }
    }
}

/// Returns an integer in digits.
fn plain(text: &[u8]) -> Option<String> {
    let spelled = std::str::from_utf8(text).ok()?;
    if is_integer(text) {
        return Some(spelled.to_owned());
    }
    if kind_of(text) != JsonKind::Number || !is_number(text) {
        return None;
    }
    Number::from_text(spelled)?.integer()
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn an_integer_with_a_fraction_or_an_exponent_is_written_in_digits() {
        for (spelled, digits) in [
            ("3.0", "3"),
            ("3e0", "3"),
            ("-3.00", "-3"),
            ("1.50e1", "15"),
            ("100e-2", "1"),
            ("120.0e-1", "12"),
            ("1E+3", "1000"),
            ("0.0", "0"),
            ("-0.0", "0"),
            ("0e999999999", "0"),
            ("9223372036854775807.0", "9223372036854775807"),
            ("-9223372036854775808.0", "-9223372036854775808"),
            ("1.8446744073709551615e19", "18446744073709551615"),
            (
                "123456789012345678901234567890",
                "123456789012345678901234567890",
            ),
        ] {
            assert_eq!(
                plain(spelled.as_bytes()).as_deref(),
                Some(digits),
                "{spelled}"
            );
        }
    }

    #[test]
    fn a_number_beyond_64_bits_is_refused() {
        for spelled in [
            "3.5",
            "1e-1",
            "1e400",
            "1e99999999999",
            "18446744073709551616.0",
            "-9223372036854775809.0",
            "1e20",
            "0.1",
            "\"3.0\"",
            "null",
            "true",
            "[3.0]",
        ] {
            assert_eq!(plain(spelled.as_bytes()), None, "{spelled}");
        }
    }
}
