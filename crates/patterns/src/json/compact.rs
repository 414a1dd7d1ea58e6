//! Compact JSON: values without white space between their tokens.

use super::Json;
use super::trusted_scan::{skip_string, skip_white};

impl Json {
    /// Returns the value without white space outside of strings, otherwise unchanged.
    #[must_use]
    pub fn compact(&self) -> Json {
        let text = self.as_bytes();
        let mut out = Vec::new();
        let mut copied = 0;
        let mut at = 0;
        while let Some(byte) = text.get(at) {
            match byte {
                b'"' => at = skip_string(text, at).0,
                b' ' | b'\n' | b'\r' | b'\t' => {
                    out.extend_from_slice(&text[copied..at]);
                    copied = skip_white(text, at);
                    at = copied;
                }
                _ => at += 1,
            }
        }
        if copied == 0 {
            // A value does not start with white space, so it has none at all.
            return self.clone();
        }
        out.extend_from_slice(&text[copied..]);
        Json::written(out)
    }
}
