//! Redaction of values in reports.
//!
//! A report never shows the value itself, unless the route has `show = true`. A string becomes its length and eight
//! digits of a hash. The hash is salted per process, so that equal texts look equal and cannot be guessed elsewhere.
//! If the name of a member, a header or a container looks like that of a credential, only the type is shown.
//!
//! Used by `compare::diff`, `compare::parts` and `compare::pointer`.

use std::fmt;

use sha2::{Digest as _, Sha256};

use dualgauge_patterns::json::{JsonKind, Spelled, Value};

use super::rules::Show;

/// The maximum length of a number that is shown; a longer one may be a card number or a personal identifier.
const SHORT_NUMBER: usize = 8;
/// The maximum number of characters of a value with `show = true`.
const LONGEST: usize = 80;

/// Random bytes of this process, which prevent guessing of hashed values.
#[derive(Clone, Copy)]
pub struct Salt(pub [u8; 16]);

impl fmt::Debug for Salt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Salt(***)")
    }
}

/// A value as a report shows it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RedactedValue(String);

impl RedactedValue {
    /// Restores a value from a stored report; the excess over the longest possible one is cut.
    #[must_use]
    pub fn restore(text: &str) -> RedactedValue {
        /// At most ten characters for an escaped one, and the quotes.
        const MAX_STORED: usize = LONGEST * 10 + 2;
        RedactedValue(text.chars().take(MAX_STORED).collect())
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn absent() -> RedactedValue {
        RedactedValue("absent".into())
    }

    pub(super) fn number(number: impl fmt::Display) -> RedactedValue {
        RedactedValue(number.to_string())
    }

    pub(super) fn count(count: usize) -> RedactedValue {
        RedactedValue(format!("array of {count}"))
    }
}

impl fmt::Display for RedactedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The visibility of a value.
#[derive(Clone, Copy)]
pub(super) struct Visibility<'t> {
    pub(super) show: Show,
    pub(super) salt: &'t Salt,
    /// True if a name on the path looks like that of a credential.
    pub(super) is_secret: bool,
}

impl Visibility<'_> {
    /// Redacts a JSON value.
    pub(super) fn value(&self, value: &Value<'_>) -> RedactedValue {
        let text = value.value();
        let plain = || String::from_utf8_lossy(text).into_owned();
        let shown = match value.kind() {
            JsonKind::Null => "null".into(),
            JsonKind::Object => format!("object of {}", value.children().count()),
            JsonKind::Array => format!("array of {}", value.children().count()),
            kind @ (JsonKind::Boolean | JsonKind::Number | JsonKind::String) if self.is_secret => {
                format!("{} (hidden)", word(kind))
            }
            JsonKind::Boolean => plain(),
            JsonKind::Number if text.len() <= SHORT_NUMBER => plain(),
            JsonKind::Number => match self.show {
                Show::Values => cut(&plain()),
                Show::Likeness => {
                    format!("number of {} characters #{}", text.len(), self.hash(text))
                }
            },
            JsonKind::String => return self.text("string", &Spelled::read(text).shown()),
        };
        RedactedValue(shown)
    }

    /// Redacts a text that is not JSON, or the content of a string.
    pub(super) fn text(&self, what: &str, text: &str) -> RedactedValue {
        RedactedValue(match self.show {
            _ if self.is_secret => format!("{what} (hidden)"),
            Show::Values => format!("\"{}\"", cut(text)),
            Show::Likeness => {
                let length = text.chars().count();
                format!("{what} of {length} #{}", self.hash(text.as_bytes()))
            }
        })
    }

    /// Redacts bytes that may not be valid text.
    pub(super) fn bytes(&self, what: &str, bytes: &[u8]) -> RedactedValue {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.text(what, text),
            Err(_) => {
                let (length, hash) = (bytes.len(), self.hash(bytes));
                RedactedValue(format!("{length} bytes #{hash}"))
            }
        }
    }

    fn hash(&self, bytes: &[u8]) -> String {
        let digest = Sha256::new().chain_update(self.salt.0).chain_update(bytes);
        let digest = digest.finalize();
        let start = digest.iter().take(4);
        start.map(|byte| format!("{byte:02x}")).collect()
    }
}

const fn word(kind: JsonKind) -> &'static str {
    match kind {
        JsonKind::Object => "object",
        JsonKind::Array => "array",
        JsonKind::String => "string",
        JsonKind::Number => "number",
        JsonKind::Boolean => "boolean",
        JsonKind::Null => "null",
    }
}

/// Returns the beginning of a text, with special characters escaped.
fn cut(text: &str) -> String {
    let mut characters = text.chars();
    let start: String = characters.by_ref().take(LONGEST).collect();
    let rest = if characters.next().is_some() {
        "…"
    } else {
        ""
    };
    format!("{}{rest}", start.escape_debug())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use dualgauge_patterns::json::JsonIndex;

    const SALT: Salt = Salt([7; 16]);

    fn shown(text: &str, show: Show, is_secret: bool) -> String {
        let visibility = Visibility {
            show,
            salt: &SALT,
            is_secret,
        };
        visibility
            .value(&JsonIndex::read(text.as_bytes()).root())
            .to_string()
    }

    #[test]
    fn a_value_is_described_by_its_type_and_length() {
        let plain = |text| shown(text, Show::Likeness, false);
        for (text, expected) in [
            ("null", "null"),
            ("true", "true"),
            ("-12.5e3", "-12.5e3"),
            ("[1,[2]]", "array of 2"),
            ("{\"a\":{\"b\":1}}", "object of 1"),
        ] {
            assert_eq!(plain(text), expected);
        }
        let card = plain("4111111111111111");
        assert!(card.starts_with("number of 16 characters #"), "{card}");
        let text = plain("\"K\\u00e4se\"");
        assert!(text.starts_with("string of 4 #"), "{text}");
        assert_eq!(text.len(), "string of 4 #".len() + 8);
        assert_eq!(plain("\"Käse\""), text, "one text has one hash");
        assert_ne!(plain("\"Kase\""), text);
    }

    #[test]
    fn the_salt_makes_the_hash() {
        let other = Salt([8; 16]);
        let visibility = |salt| Visibility {
            show: Show::Likeness,
            salt,
            is_secret: false,
        };
        assert_ne!(
            visibility(&SALT).text("string", "a"),
            visibility(&other).text("string", "a")
        );
        assert_eq!(format!("{SALT:?}"), "Salt(***)");
    }

    #[test]
    fn a_route_may_allow_values_but_not_those_of_credentials() {
        let open = |text| shown(text, Show::Values, false);
        assert_eq!(open("\"a\\nb\""), "\"a\\nb\"");
        assert_eq!(open("1234567890"), "1234567890");
        let long = format!("\"{}\"", "x".repeat(200));
        assert_eq!(open(&long), format!("\"{}…\"", "x".repeat(LONGEST)));
        assert_eq!(open("[\"a\"]"), "array of 1");
        for show in [Show::Likeness, Show::Values] {
            let secret = |text| shown(text, show, true);
            assert_eq!(secret("\"hunter2\""), "string (hidden)");
            assert_eq!(secret("1234"), "number (hidden)");
            assert_eq!(secret("true"), "boolean (hidden)");
            assert_eq!(secret("null"), "null");
            assert_eq!(secret("[1]"), "array of 1");
        }
    }

    proptest! {
        #[test]
        fn no_text_of_some_length_is_shown_unless_allowed(text in "[a-z]{12,40}") {
            let quoted = format!("\"{text}\"");
            prop_assert!(!shown(&quoted, Show::Likeness, false).contains(&text));
            prop_assert!(!shown(&quoted, Show::Values, true).contains(&text));
        }
    }
}
