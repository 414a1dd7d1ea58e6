//! Globs: `*` stands for any text, also none; everything else for itself.

/// A pattern of names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob(String);

impl Glob {
    /// The pattern that a text spells; every text is one.
    #[must_use]
    pub fn new(pattern: impl Into<String>) -> Glob {
        Glob(pattern.into())
    }

    /// The pattern as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the pattern is a plain text, which fits itself only.
    #[must_use]
    pub fn is_literal(&self) -> bool {
        !self.0.contains('*')
    }

    /// Whether every text that fits this pattern fits the other one.
    #[must_use]
    pub fn is_within(&self, other: &Glob) -> bool {
        // A `*` of this pattern stands for any text, and only a `*` of the other one takes it: the literal
        // parts of the other have none.
        other.fits(&self.0)
    }

    /// Whether some text fits both patterns.
    #[must_use]
    pub fn meets(&self, other: &Glob) -> bool {
        match (self.ends(), other.ends()) {
            (None, _) => other.fits(&self.0),
            (_, None) => self.fits(&other.0),
            // What stands between the ends can be written one behind the other.
            (Some(one), Some(two)) => {
                let begins = one.0.starts_with(two.0) || two.0.starts_with(one.0);
                begins && (one.1.ends_with(two.1) || two.1.ends_with(one.1))
            }
        }
    }

    /// The texts before the first and behind the last `*`.
    fn ends(&self) -> Option<(&str, &str)> {
        Some((self.0.split_once('*')?.0, self.0.rsplit_once('*')?.1))
    }

    /// Whether a text fits the pattern, in time linear in both for each `*`.
    #[must_use]
    pub fn fits(&self, text: &str) -> bool {
        let mut parts = self.0.split('*');
        let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else {
            return false;
        };
        let Some(last) = parts.next_back() else {
            return rest.is_empty();
        };
        for part in parts {
            let Some(at) = rest.find(part) else {
                return false;
            };
            rest = &rest[at + part.len()..];
        }
        rest.ends_with(last)
    }
}
