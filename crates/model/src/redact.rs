//! Redaction: hides the values of headers, members, parameters and path segments that look like credentials, and of
//! those that the operator names.
//!
//! ```text
//! mod      names
//! hidden   the replacement of values
//! path     path segments
//! text     free text
//! ```
//!
//! Law: redaction depends on names and places only, never on the value; `***` replaces the value.
//!
//! Used by `config`, `model` and `upstream`.

mod hidden;
mod path;
#[cfg(test)]
mod tests;
mod text;

use std::borrow::Cow;

use http::HeaderName;
use http::header::{AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION, SET_COOKIE};

use super::rollout::Glob;
use super::route::Route;
use dualgauge_patterns::pattern::{Slot, TextPatterns};

pub use hidden::HIDDEN;
pub use path::PathMask;

/// Words that mark a name as a credential anywhere in it.
const SECRET_PARTS: [&str; 16] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "secret",
    "token",
    "authorization",
    "authentication",
    "cookie",
    "credential",
    "apikey",
    "accesskey",
    "privatekey",
    "sessionid",
    "signature",
    "bearer",
];

/// Names that are a credential only as a whole.
const SECRET_NAMES: [&str; 16] = [
    "auth", "pass", "pwd", "pin", "otp", "totp", "cvv", "cvc", "ssn", "jwt", "key", "nonce",
    "salt", "session", "csrf", "iban",
];

/// A name that may be a secret key, or the key of a table.
const KEY: &str = "key";

/// Returns the letters of a name; letter case and word separators do not matter.
fn letters(name: &str) -> String {
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    letters.map(|letter| letter.to_ascii_lowercase()).collect()
}

/// A name, or a pattern of names, for comparison with the letters of names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPattern(Glob);

impl KeyPattern {
    /// Parses a name in which `*` stands for any text; returns `None` if it would match every name.
    #[must_use]
    pub fn parse(text: &str) -> Option<KeyPattern> {
        let parts: Vec<_> = text.split('*').map(letters).collect();
        let has_letters = parts.iter().any(|part| !part.is_empty());
        has_letters.then(|| KeyPattern(Glob::new(parts.join("*"))))
    }

    fn fits(&self, letters: &str) -> bool {
        self.0.fits(letters)
    }
}

/// The configured redaction, in addition to the built-in rules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Redaction {
    /// Headers.
    pub headers: Vec<HeaderName>,
    /// Names of members, parameters, holes and headers.
    pub keys: Vec<KeyPattern>,
    /// Path segments.
    pub paths: Vec<PathMask>,
}

impl Redaction {
    /// Adds the path segments that are holes of routes with redacted names.
    #[must_use]
    pub fn of_routes<'r>(mut self, routes: impl IntoIterator<Item = &'r Route>) -> Redaction {
        let masks = routes
            .into_iter()
            .filter(|route| !route.is_frame())
            .filter_map(|route| PathMask::new(route, |name| self.hides(name)));
        let masks: Vec<_> = masks.collect();
        self.paths.extend(masks);
        self
    }

    /// Returns whether the value of a member, parameter, hole or header of this name is hidden. The plain name `key` is
    /// hidden only if the operator asks for it.
    #[must_use]
    pub fn hides(&self, name: &str) -> bool {
        let letters = letters(name);
        (letters != KEY && SECRET_NAMES.contains(&letters.as_str()))
            || self.hides_within_text(&letters)
            || self.is_header(name)
    }

    /// Returns the same for mismatch reports, which contain calls of other people: a `key` is hidden as well.
    #[must_use]
    pub fn hides_in_reports(&self, name: &str) -> bool {
        letters(name) == KEY || self.hides(name)
    }

    /// Returns the same for a name in free text, where `key: ` does not count as a name.
    fn hides_within_text(&self, letters: &str) -> bool {
        SECRET_PARTS.iter().any(|word| letters.contains(word))
            || self.keys.iter().any(|key| key.fits(letters))
    }

    fn is_header(&self, name: &str) -> bool {
        let mut headers = self.headers.iter();
        headers.any(|header| header.as_str().eq_ignore_ascii_case(name))
    }

    /// Returns whether the value of a header is hidden: credentials, and headers named in the configuration.
    #[must_use]
    pub fn hides_header(&self, name: &HeaderName) -> bool {
        [AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION, SET_COOKIE].contains(name)
            || self.hides(name.as_str())
    }

    /// Returns a path without its hidden segments; borrowed if there are none.
    #[must_use]
    pub fn path<'p>(&self, path: &'p str) -> Cow<'p, str> {
        path::hide(&self.paths, path)
    }

    /// Returns the RPC method of a call, or the method pattern of the route if one of its holes is hidden.
    #[must_use]
    pub fn method<'m>(&self, method: &'m str, route: Option<&'m Route>) -> &'m str {
        match route {
            Some(route) if self.hides_one_of(route, &route.rpc_call.method) => &route.rpc,
            Some(_) | None => method,
        }
    }

    fn hides_one_of(&self, route: &Route, words: &TextPatterns) -> bool {
        let mut holes = words.slots().into_iter().filter_map(Slot::binds);
        holes.any(|hole| {
            let hole = route.facts.holes.get(hole);
            hole.is_some_and(|hole| self.hides(&hole.name))
        })
    }

    /// Returns external text without the values of such names (`token=…`, `"password": "…"`, `Authorization: Bearer
    /// …`), and without the user info of URLs.
    #[must_use]
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        text::hide(self, text)
    }
}
