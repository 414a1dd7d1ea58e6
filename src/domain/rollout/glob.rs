//! Globs: `*` stands for any text, also none; everything else for itself.

/// A pattern of names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob {
    text: String,
    /// The place of the first `*`.
    star: Option<usize>,
}

impl Glob {
    /// The pattern that a text spells; every text is one.
    #[must_use]
    pub fn new(pattern: impl Into<String>) -> Glob {
        let text = pattern.into();
        let star = text.find('*');
        Glob { text, star }
    }

    /// The pattern as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the pattern is a plain text, which fits itself only.
    #[must_use]
    pub fn is_literal(&self) -> bool {
        self.star.is_none()
    }

    /// Whether every text that fits this pattern fits the other one.
    #[must_use]
    pub fn is_within(&self, other: &Glob) -> bool {
        // A `*` of this pattern stands for any text, and only a `*` of the other one takes it: the literal
        // parts of the other have none.
        other.fits(&self.text)
    }

    /// Whether some text fits both patterns.
    #[must_use]
    pub fn meets(&self, other: &Glob) -> bool {
        match (self.ends(), other.ends()) {
            (None, _) => other.fits(&self.text),
            (_, None) => self.fits(&other.text),
            // What stands between the ends can be written one behind the other.
            (Some(one), Some(two)) => {
                let begins = one.0.starts_with(two.0) || two.0.starts_with(one.0);
                begins && (one.1.ends_with(two.1) || two.1.ends_with(one.1))
            }
        }
    }

    /// The texts before the first and behind the last `*`.
    fn ends(&self) -> Option<(&str, &str)> {
        let (_, last) = self.text.rsplit_once('*')?;
        Some((&self.text[..self.star?], last))
    }

    /// Whether a text fits the pattern, in time linear in both for each `*`.
    #[must_use]
    pub fn fits(&self, text: &str) -> bool {
        let Some(star) = self.star else {
            return text == self.text;
        };
        let (first, behind) = (&self.text[..star], &self.text[star + 1..]);
        let Some(mut rest) = text.strip_prefix(first) else {
            return false;
        };
        // Most patterns are a beginning.
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
