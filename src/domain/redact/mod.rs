//! What is never shown: the values of headers, members, parameters and pieces of paths that look like credentials, and
//! of those that the operator names.
//!
//! ```text
//! mod      names
//! path     pieces of paths
//! text     texts that others wrote
//! ```
//!
//! Law: what is hidden depends on names and places only, never on the value; `***` stands for it.

mod path;
#[cfg(test)]
mod tests;
mod text;

use std::borrow::Cow;

use http::HeaderName;
use http::header::{AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION, SET_COOKIE};

use super::pattern::{Slot, TextPatterns};
use super::rollout::Glob;
use super::route::Route;

pub use path::PathMask;

/// What stands for a value that is not shown.
pub const HIDDEN: &str = "***";

/// Words that make a name one of a credential wherever they stand in it.
const TELLING: [&str; 16] = [
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

/// Names that are one of a credential only whole.
const WHOLE: [&str; 16] = [
    "auth", "pass", "pwd", "pin", "otp", "totp", "cvv", "cvc", "ssn", "jwt", "key", "nonce",
    "salt", "session", "csrf", "iban",
];

/// What may be the key to a door, or to a table.
const KEY: &str = "key";

/// The letters of a name, by which it is known: neither letter case nor what separates its words matters.
fn letters(name: &str) -> String {
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    letters.map(|letter| letter.to_ascii_lowercase()).collect()
}

/// A name, or a pattern of names, as it is compared with the letters of names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPattern(Glob);

impl KeyPattern {
    /// Reads a name in which `*` stands for any text; `None` where every name would fit.
    #[must_use]
    pub fn parse(text: &str) -> Option<KeyPattern> {
        let parts: Vec<_> = text.split('*').map(letters).collect();
        let says_something = parts.iter().any(|part| !part.is_empty());
        says_something.then(|| KeyPattern(Glob::new(parts.join("*"))))
    }

    fn fits(&self, letters: &str) -> bool {
        self.0.fits(letters)
    }
}

/// What is hidden beside that which always is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Redaction {
    /// Headers.
    pub headers: Vec<HeaderName>,
    /// Members, parameters, holes and headers, by their names.
    pub keys: Vec<KeyPattern>,
    /// Pieces of paths.
    pub paths: Vec<PathMask>,
}

impl Redaction {
    /// Adds the pieces of paths that are holes of routes with such names.
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

    /// Whether the value of a member, a parameter, a hole or a header of this name is hidden. One that is just called
    /// `key` is the key of anything, and hidden only where the operator says so.
    #[must_use]
    pub fn hides(&self, name: &str) -> bool {
        let letters = letters(name);
        (letters != KEY && WHOLE.contains(&letters.as_str()))
            || self.hides_within_text(&letters)
            || self.is_header(name)
    }

    /// The same in reports of mismatches, which are of calls of others: a `key` is hidden as well.
    #[must_use]
    pub fn hides_in_reports(&self, name: &str) -> bool {
        letters(name) == KEY || self.hides(name)
    }

    /// The same for what looks like a name in a text that people wrote, where `key: ` is no name.
    fn hides_within_text(&self, letters: &str) -> bool {
        TELLING.iter().any(|word| letters.contains(word))
            || self.keys.iter().any(|key| key.fits(letters))
    }

    fn is_header(&self, name: &str) -> bool {
        let mut headers = self.headers.iter();
        headers.any(|header| header.as_str().eq_ignore_ascii_case(name))
    }

    /// Whether the value of a header is hidden: of those that bear credentials, and of those that are named.
    #[must_use]
    pub fn hides_header(&self, name: &HeaderName) -> bool {
        [AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION, SET_COOKIE].contains(name)
            || self.hides(name.as_str())
    }

    /// A path without the pieces that are hidden; borrowed where there are none.
    #[must_use]
    pub fn path<'p>(&self, path: &'p str) -> Cow<'p, str> {
        path::hide(&self.paths, path)
    }

    /// The RPC method of a call: as it came, or as the route writes it where a hole of it is hidden.
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

    /// A text of somebody else without what stands behind such names in it (`token=…`, `"password": "…"`,
    /// `Authorization: Bearer …`), and without the user of an address.
    #[must_use]
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        text::hide(self, text)
    }
}
