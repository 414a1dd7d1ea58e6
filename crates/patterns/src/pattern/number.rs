//! The exact value of a JSON number: sign, digits and exponent. Used by `pattern::equal`, `pattern::integer` and `pattern::value_map`.

/// The maximum length of an exponent that is parsed.
const LONGEST_EXPONENT: usize = 6;

/// The value of a number. Two numbers are equal if their values are, regardless of spelling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Number {
    /// `-`, or nothing.
    sign: &'static str,
    /// The digits without zeros at either end; empty for zero.
    digits: String,
    /// The power of ten by which the digits are multiplied.
    exponent: i64,
}

impl Number {
    /// Parses the text of a JSON number. Returns `None` if its exponent is longer than six characters.
    pub(super) fn from_text(text: &str) -> Option<Number> {
        let (sign, unsigned) = match text.strip_prefix('-') {
            Some(unsigned) => ("-", unsigned),
            None => ("", text),
        };
        let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = [whole, fraction].concat();
        let digits = digits.trim_start_matches('0');
        let significant = digits.trim_end_matches('0');
        if significant.is_empty() {
            return Some(Number {
                sign: "",
                digits: String::new(),
                exponent: 0,
            });
        }
        if exponent.len() > LONGEST_EXPONENT {
            return None;
        }
        let exponent: i64 = exponent
            .strip_prefix('+')
            .unwrap_or(exponent)
            .parse()
            .ok()?;
        let fraction = i64::try_from(fraction.len()).ok()?;
        let zeros = i64::try_from(digits.len() - significant.len()).ok()?;
        Some(Number {
            sign,
            digits: significant.to_owned(),
            exponent: exponent - fraction + zeros,
        })
    }

    /// Returns the number in digits only, if it is a 64-bit integer.
    pub(super) fn integer(&self) -> Option<String> {
        if self.digits.is_empty() {
            return Some("0".to_owned());
        }
        // A 64-bit integer has at most 20 digits.
        let zeros = usize::try_from(self.exponent)
            .ok()
            .filter(|zeros| *zeros <= 20)?;
        let integer = format!("{}{}{}", self.sign, self.digits, "0".repeat(zeros));
        let value: i128 = integer.parse().ok()?;
        let fits = (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&value);
        fits.then_some(integer)
    }
}
