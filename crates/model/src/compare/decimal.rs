//! Decimal numbers by value, exact in every digit.
//!
//! Laws: `1.0`, `1` and `10e-1` are one value, as are `0` and `-0`; the order is that of the values, also beyond the
//! range of `f64`. A number whose exponent has more than 30 digits equals only its own spelling.
//!
//! Used by `compare::canonical_key`, `compare::diff` and `compare::rules`.

use std::borrow::Cow;
use std::cmp::Ordering;

/// The maximum number of digits of an exponent; with any length added, it still fits an `i128`.
const EXPONENT_DIGITS: usize = 30;

/// The value of a number: `0.DIGITS × 10^exponent`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Decimal<'a> {
    sign: Sign,
    /// The digits without zeros at either end; empty for zero.
    digits: Cow<'a, [u8]>,
    exponent: i128,
    /// The text of a number whose exponent is too large.
    beyond: Option<&'a [u8]>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sign {
    Minus,
    Plus,
}

impl<'a> Decimal<'a> {
    /// Parses a valid JSON number.
    pub(super) fn read(text: &'a [u8]) -> Decimal<'a> {
        let (sign, unsigned) = match text.strip_prefix(b"-") {
            Some(rest) => (Sign::Minus, rest),
            None => (Sign::Plus, text),
        };
        let mantissa = unsigned.iter().position(|byte| matches!(byte, b'e' | b'E'));
        let mantissa = mantissa.unwrap_or(unsigned.len());
        let (mantissa, exponent) = unsigned.split_at(mantissa);
        let point = mantissa.iter().position(|byte| *byte == b'.');
        let whole = point.unwrap_or(mantissa.len());
        let all = without_point(mantissa, point);
        let leading = all.iter().take_while(|byte| **byte == b'0').count();
        let digits = stripped(all, leading);
        if digits.is_empty() {
            return Decimal::zero();
        }
        let Some(written) = exponent_of(exponent) else {
            return Decimal {
                sign,
                digits,
                exponent: i128::MAX,
                beyond: Some(text),
            };
        };
        Decimal {
            sign,
            digits,
            exponent: written + signed(whole) - signed(leading),
            beyond: None,
        }
    }

    const fn zero() -> Decimal<'static> {
        Decimal {
            sign: Sign::Plus,
            digits: Cow::Borrowed(&[]),
            exponent: 0,
            beyond: None,
        }
    }

    /// Returns the same value with owned digits.
    pub(super) fn into_owned(self) -> Option<Decimal<'static>> {
        self.beyond.is_none().then(|| Decimal {
            sign: self.sign,
            digits: Cow::Owned(self.digits.into_owned()),
            exponent: self.exponent,
            beyond: None,
        })
    }

    /// Returns true if the number is less than zero.
    pub(super) fn is_negative(&self) -> bool {
        self.sign == Sign::Minus
    }

    /// Writes the canonical text of the value.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        if let Some(spelled) = self.beyond {
            out.extend_from_slice(spelled);
            return;
        }
        if self.is_negative() {
            out.push(b'-');
        }
        out.extend_from_slice(&self.digits);
        if !self.digits.is_empty() {
            out.extend_from_slice(format!("e{}", self.exponent).as_bytes());
        }
    }

    fn magnitude(&self, other: &Decimal<'_>) -> Ordering {
        match (self.digits.is_empty(), other.digits.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => self
                .exponent
                .cmp(&other.exponent)
                .then_with(|| self.digits.cmp(&other.digits))
                .then_with(|| self.beyond.cmp(&other.beyond)),
        }
    }

    /// Returns the value in units of `10^unit` if it is a whole number of them that fits an `i128`.
    fn in_units(&self, unit: i128) -> Option<i128> {
        if self.digits.is_empty() {
            return Some(0);
        }
        if self.beyond.is_some() {
            return None;
        }
        let zeros = self.last_digit_exponent()?.checked_sub(unit)?;
        let power = 10_i128.checked_pow(u32::try_from(zeros).ok()?)?;
        let digits = self.digits.iter().try_fold(0_i128, |value, digit| {
            value.checked_mul(10)?.checked_add(i128::from(digit - b'0'))
        })?;
        let value = digits.checked_mul(power)?;
        Some(match self.sign {
            Sign::Minus => -value,
            Sign::Plus => value,
        })
    }

    /// Returns the power of ten of the last digit.
    fn last_digit_exponent(&self) -> Option<i128> {
        self.exponent.checked_sub(signed(self.digits.len()))
    }

    fn approximate(&self) -> f64 {
        let mut text = Vec::with_capacity(self.digits.len() + 8);
        if self.is_negative() {
            text.push(b'-');
        }
        text.extend_from_slice(b"0.0");
        text.extend_from_slice(&self.digits);
        text.extend_from_slice(format!("e{}", self.exponent.saturating_add(1)).as_bytes());
        let text = String::from_utf8_lossy(&text);
        text.parse().unwrap_or(f64::NAN)
    }

    /// Returns true if both numbers are equal or at most `tolerance` apart. The result is exact if all three fit 38
    /// digits when aligned; otherwise it uses the nearest `f64`.
    pub(super) fn is_near(&self, other: &Decimal<'_>, tolerance: &Decimal<'_>) -> bool {
        if self == other {
            return true;
        }
        let exact = || {
            let all = [self, other, tolerance];
            let places = all.iter().filter(|one| !one.digits.is_empty());
            let unit = places.filter_map(|one| one.last_digit_exponent()).min()?;
            let apart = self.in_units(unit)?.checked_sub(other.in_units(unit)?)?;
            Some(apart.unsigned_abs() <= tolerance.in_units(unit)?.unsigned_abs())
        };
        exact().unwrap_or_else(|| {
            let apart = (self.approximate() - other.approximate()).abs();
            apart.is_finite() && apart <= tolerance.approximate()
        })
    }
}

impl Ord for Decimal<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.sign, other.sign) {
            (Sign::Plus, Sign::Plus) => self.magnitude(other),
            (Sign::Minus, Sign::Minus) => other.magnitude(self),
            (one, two) => one.cmp(&two),
        }
    }
}

impl PartialOrd for Decimal<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn without_point(mantissa: &[u8], point: Option<usize>) -> Cow<'_, [u8]> {
    match point {
        None => Cow::Borrowed(mantissa),
        Some(point) => {
            let (whole, fraction) = mantissa.split_at(point);
            Cow::Owned([whole, &fraction[1..]].concat())
        }
    }
}

/// Returns the digits without the zeros at both ends, of which `leading` are in front.
fn stripped(digits: Cow<'_, [u8]>, leading: usize) -> Cow<'_, [u8]> {
    let trailing = digits.iter().rev().take_while(|byte| **byte == b'0');
    let end = (digits.len() - trailing.count()).max(leading);
    match digits {
        Cow::Borrowed(digits) => Cow::Borrowed(&digits[leading..end]),
        Cow::Owned(digits) => Cow::Owned(digits[leading..end].to_vec()),
    }
}

/// Returns the number after `e`: zero without one, `None` if it is too long.
fn exponent_of(text: &[u8]) -> Option<i128> {
    let Some(text) = text.get(1..) else {
        return Some(0);
    };
    let (negative, digits) = match text.split_first() {
        Some((b'-', rest)) => (Sign::Minus, rest),
        Some((b'+', rest)) => (Sign::Plus, rest),
        Some(_) | None => (Sign::Plus, text),
    };
    let zeros = digits.iter().take_while(|byte| **byte == b'0').count();
    let digits = &digits[zeros..];
    if digits.len() > EXPONENT_DIGITS {
        return None;
    }
    let value = digits
        .iter()
        .fold(0_i128, |value, digit| value * 10 + i128::from(digit & 0xF));
    Some(match negative {
        Sign::Minus => -value,
        Sign::Plus => value,
    })
}

fn signed(length: usize) -> i128 {
    i128::try_from(length).unwrap_or(i128::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(text: &str) -> Decimal<'_> {
        Decimal::read(text.as_bytes())
    }

    #[test]
    fn a_value_has_many_spellings() {
        for spellings in [
            &[
                "1",
                "1.0",
                "1e0",
                "10e-1",
                "0.1E+1",
                "100000e-5",
                "1.000e00",
            ][..],
            &[
                "0",
                "-0",
                "0.0",
                "0e99999999999999999999999999999999999",
                "-0.00e-7",
            ],
            &["-120", "-1.2e2", "-0.0120e4"],
            &["1e400", "10e399", "0.1e401"],
            &[
                "123456789012345678901234567890",
                "12345678901234567890123456789.0e1",
            ],
        ] {
            for other in spellings {
                assert_eq!(of(spellings[0]), of(other), "{other}");
                assert_eq!(of(spellings[0]).cmp(&of(other)), Ordering::Equal);
            }
        }
    }

    #[test]
    fn digits_beyond_a_double_are_distinguished() {
        for (less, more) in [
            (
                "123456789012345678901234567890",
                "123456789012345678901234567891",
            ),
            ("0.1", "0.10000000000000000000000001"),
            ("9007199254740992", "9007199254740993"),
            ("-2", "-1"),
            ("-1", "0"),
            ("0", "1e-400"),
            ("9", "10"),
            ("1e399", "1e400"),
        ] {
            assert_eq!(of(less).cmp(&of(more)), Ordering::Less, "{less} {more}");
            assert_eq!(of(more).cmp(&of(less)), Ordering::Greater, "{less} {more}");
        }
        let far = format!("1e{}", "9".repeat(31));
        assert_eq!(of(&far), of(&far));
        assert_ne!(of(&far), of("1"));
    }

    #[test]
    fn near_is_exact_where_digits_allow() {
        let near = |one, two, by| of(one).is_near(&of(two), &of(by));
        assert!(
            near("0.3", "0.301", "0.001"),
            "a double says 0.0010000000000000009"
        );
        assert!(!near("0.3", "0.3010000001", "0.001"));
        assert!(near("-1", "1", "2"));
        assert!(near("5", "5.0", "0"));
        assert!(!near("5", "5.1", "0"));
        assert!(near("1e300", "1.0000000000000000001e300", "1e290"));
        assert!(!near("1e400", "2e400", "1"), "neither fits a double");
        assert!(near("1e400", "10e399", "0"));
        assert!(!near("0", "1e-400", "0"));
    }

    fn number() -> impl Strategy<Value = String> {
        prop_oneof![
            "-?(0|[1-9][0-9]{0,3})(\\.[0-9]{1,4})?([eE][+-]?[0-9]{1,2})?",
            "-?(0|[1-9][0-9]{0,40})(\\.[0-9]{1,40})?([eE][+-]?[0-9]{1,40})?",
        ]
    }

    proptest! {
        #[test]
        fn values_are_ordered_as_doubles_are_where_those_are_exact(one in -9999_i32..9999, two in -9999_i32..9999, scale in 0_u32..4) {
            let texts = [one, two].map(|value| format!("{value}e-{scale}"));
            prop_assert_eq!(of(&texts[0]).cmp(&of(&texts[1])), one.cmp(&two));
        }

        #[test]
        fn one_value_has_one_text(one in number(), two in number()) {
            let text = |number: &str| {
                let mut out = Vec::new();
                of(number).write(&mut out);
                out
            };
            prop_assert_eq!(of(&one) == of(&two), text(&one) == text(&two));
            prop_assert_eq!(of(&one) == of(&two), of(&one).cmp(&of(&two)) == Ordering::Equal);
        }

        #[test]
        fn near_does_not_depend_on_the_side(one in number(), two in number(), by in "[0-9]{1,3}(\\.[0-9]{1,3})?") {
            prop_assert_eq!(of(&one).is_near(&of(&two), &of(&by)), of(&two).is_near(&of(&one), &of(&by)));
            prop_assert!(of(&one).is_near(&of(&one), &of("0")));
        }
    }
}
