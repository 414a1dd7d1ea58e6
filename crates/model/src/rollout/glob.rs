//! Globs: `*` matches any text, including none; every other character matches itself. Used in most modules.

/// A glob pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob {
    text: String,
    /// The position of the first `*`.
    star: Option<usize>,
}

impl Glob {
    /// Creates a pattern; every text is valid.
    #[must_use]
    pub fn new(pattern: impl Into<String>) -> Glob {
        let text = pattern.into();
        let star = text.find('*');
        Glob { text, star }
    }

    /// Returns the pattern as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns true if the pattern is a literal, which matches only itself.
    #[must_use]
    pub fn is_literal(&self) -> bool {
        self.star.is_none()
    }

    /// Returns true if every text that matches this pattern matches the other one.
    #[must_use]
    pub fn is_within(&self, other: &Glob) -> bool {
        // A `*` of this pattern stands for any text, so only a `*` of the other pattern matches it: the literal parts
        // of the other contain none.
        other.fits(&self.text)
    }

    /// Returns true if some text matches both patterns.
    #[must_use]
    pub fn meets(&self, other: &Glob) -> bool {
        match (self.ends(), other.ends()) {
            (None, _) => other.fits(&self.text),
            (_, None) => self.fits(&other.text),
            // The parts between the ends can be concatenated.
            (Some(one), Some(two)) => {
                let begins = one.0.starts_with(two.0) || two.0.starts_with(one.0);
                begins && (one.1.ends_with(two.1) || two.1.ends_with(one.1))
            }
        }
    }

    /// Returns the texts before the first and after the last `*`.
    fn ends(&self) -> Option<(&str, &str)> {
        let (_, last) = self.text.rsplit_once('*')?;
        Some((&self.text[..self.star?], last))
    }

    /// Returns true if a text matches the pattern. The time is linear in both for each `*`.
    #[must_use]
    pub fn fits(&self, text: &str) -> bool {
        let Some(star) = self.star else {
            return text == self.text;
        };
        let (first, behind) = (&self.text[..star], &self.text[star + 1..]);
        let Some(mut rest) = text.strip_prefix(first) else {
            return false;
        };
        // Fast path: most patterns are a prefix.
        if behind.is_empty() {
            return true;
        }
        let mut parts = behind.split('*');
        let last = parts.next_back().unwrap_or_default();
        for part in parts {
            let Some(at) = rest.find(part) else {
                return false;
            };
            rest = &rest[at + part.len()..];
        }
        rest.ends_with(last)
    }
}
