//! The value of a JSON number, exactly: its sign, its digits and where its point lies.

/// The longest exponent that is read.
const LONGEST_EXPONENT: usize = 6;

/// The value of a number. Two numbers are equal when their values are, however they are spelled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Number {
    /// `-`, or nothing.
    sign: &'static str,
    /// Without zeros at either end; empty for zero.
    digits: String,
    /// The value is the digits times ten to the power of this.
    exponent: i64,
}

impl Number {
    /// Reads the text of a JSON number. Returns `None` where its exponent is longer than six characters.
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

    /// Returns the number in digits only, where it is an integer of 64 bits.
    pub(super) fn integer(&self) -> Option<String> {
        if self.digits.is_empty() {
            return Some("0".to_owned());
        }
        // 20 digits are as many as 64 bits have.
        let zeros = usize::try_from(self.exponent)
            .ok()
            .filter(|zeros| *zeros <= 20)?;
        let integer = format!("{}{}{}", self.sign, self.digits, "0".repeat(zeros));
        let value: i128 = integer.parse().ok()?;
        let fits = (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&value);
        fits.then_some(integer)
    }
}
