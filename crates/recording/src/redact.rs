//! Redaction of recorded calls: values of sensitive names become placeholders of the same type.
//!
//! ```text
//! mod    the redactor and its rules
//! json   JSON values, also JSON inside strings
//! text   queries, forms, and strings
//! url    URLs, and words of longer texts
//! ```
//!
//! The placeholder of a string is `***`, of a number `0`, of a boolean `false`, and of an object `{}`; each element of an
//! array gets its own; `null` stays. Law: a value with a sensitive name is nowhere in the result; the names decide, except
//! for JSON Web Tokens and credentials after `Bearer` or `Basic`, which are recognized by their form.

mod json;
#[cfg(test)]
mod tests;
mod text;
mod url;

use std::borrow::Cow;

use bytes::Bytes;

use crate::recording::RecordedBody;
use dualgauge_patterns::json::Json;

/// The placeholder of a string.
pub const PLACEHOLDER: &str = "***";

/// The maximum number of places that are listed for a call; further values are replaced and not listed.
const MAX_PLACES: usize = 256;

/// The maximum depth of JSON and URLs inside strings; deeper strings are replaced as a whole.
const MAX_NESTED: u8 = 4;

/// The depth to which JSON is searched. Each level reads its values once more, so that deep JSON would take long.
const SEARCHED_DEPTH: u16 = 64;

/// The names and texts that are sensitive.
pub trait Sensitive {
    /// Returns true if the value of a member, parameter or header of this name is sensitive.
    fn hides(&self, name: &str) -> bool;

    /// Returns a text in which sensitive parts are replaced.
    fn text<'t>(&self, text: &'t str) -> Cow<'t, str>;

    /// Returns a path in which sensitive segments are replaced.
    fn path<'p>(&self, path: &'p str) -> Cow<'p, str>;
}

/// The values of a call that are replaced without a sensitive name of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nameless {
    /// None.
    Kept,
    /// Those without a name: params by position, results and bodies that are no objects. The method or the path of the
    /// call is sensitive.
    Replaced,
    /// Those, and the members of params, results and bodies, the values of the query, and the method: the route reads a
    /// sensitive value from any of them.
    AllReplaced,
}

/// The redaction of one call, with the places that it has replaced.
pub struct Redactor<'r> {
    rules: &'r dyn Sensitive,
    nameless: Nameless,
    places: Vec<String>,
}

impl std::fmt::Debug for Redactor<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redactor").finish_non_exhaustive()
    }
}

impl<'r> Redactor<'r> {
    /// Creates the redactor of a call.
    #[must_use]
    pub fn new(rules: &'r dyn Sensitive, nameless: Nameless) -> Redactor<'r> {
        Redactor {
            rules,
            nameless,
            places: Vec::new(),
        }
    }

    /// Returns the treatment of values without a sensitive name.
    #[must_use]
    pub const fn nameless(&self) -> Nameless {
        self.nameless
    }

    /// Returns the places whose values were replaced.
    #[must_use]
    pub fn into_places(self) -> Vec<String> {
        self.places
    }

    /// Redacts the body of a message. A body that is neither JSON nor a form is left out, because its secrets have no
    /// names.
    #[must_use]
    pub fn body(&mut self, place: &str, kind: Option<&str>, content: &Bytes) -> RecordedBody {
        if content.is_empty() {
            return RecordedBody::Empty;
        }
        if let Ok(json) = Json::read(content.clone(), SEARCHED_DEPTH) {
            return RecordedBody::Json(self.json(place, &json));
        }
        let is_form = kind.is_some_and(|kind| {
            let essence = kind.split(';').next().unwrap_or_default().trim();
            essence.eq_ignore_ascii_case("application/x-www-form-urlencoded")
        });
        match std::str::from_utf8(content) {
            Ok(form) if is_form => RecordedBody::Text(self.pairs(place, form, MAX_NESTED)),
            Ok(_) | Err(_) => RecordedBody::Omitted(content.len() as u64),
        }
    }

    /// Lists a place whose value is replaced.
    pub fn note(&mut self, place: &str) {
        let is_known = self.places.iter().any(|known| known == place);
        if self.places.len() < MAX_PLACES && !is_known {
            self.places.push(place.to_owned());
        }
    }

    /// Returns true for a sensitive name; a name such as `user[pin]` or `user.pin` is sensitive if one of its parts is.
    fn hides(&self, name: &str) -> bool {
        let is_separator = |letter: char| matches!(letter, '[' | ']' | '.' | '/' | '$');
        self.rules.hides(name)
            || (name.contains(is_separator)
                && name.split(is_separator).any(|part| self.rules.hides(part)))
    }
}
