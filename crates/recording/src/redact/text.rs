//! Queries, forms, and strings.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use bytes::Bytes;

use super::{MAX_NESTED, Nameless, PLACEHOLDER, Redactor, SEARCHED_DEPTH};
use crate::recording::MAX_DEPTH;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::percent::{self, Keep, Plus, decode};

/// The shortest text after an authentication scheme that is taken for a credential.
pub(super) const SHORTEST_CREDENTIAL: usize = 8;

impl Redactor<'_> {
    /// Redacts a request target.
    #[must_use]
    pub fn target(&mut self, path: &str, query: Option<&str>) -> String {
        let mut target = self.path(path);
        if target != path {
            self.note("request.path");
        }
        if let Some(query) = query {
            target.push('?');
            target.push_str(&self.pairs("request.query", query, MAX_NESTED));
        }
        target
    }

    /// Redacts the value of a header.
    #[must_use]
    pub fn header(&mut self, place: &str, name: &str, value: &str) -> String {
        if self.hides(name) {
            self.note(&format!("{place}.{name}"));
            return PLACEHOLDER.to_owned();
        }
        match self.string(value, MAX_NESTED) {
            Some(redacted) => {
                self.note(&format!("{place}.{name}"));
                redacted
            }
            None => value.to_owned(),
        }
    }

    /// Redacts a query or a form.
    pub(super) fn pairs(&mut self, place: &str, text: &str, nested: u8) -> String {
        let pairs = text.split('&').map(|pair| self.pair(place, pair, nested));
        pairs.collect::<Vec<_>>().join("&")
    }

    fn pair<'t>(&mut self, place: &str, pair: &'t str, nested: u8) -> Cow<'t, str> {
        let Some((name, value)) = pair.split_once('=') else {
            let decoded = decode(pair, Plus::Space).unwrap_or(Cow::Borrowed(pair));
            let redacted = match self.nameless {
                Nameless::Kept => self.string(&decoded, nested),
                Nameless::Replaced | Nameless::AllReplaced => {
                    (!pair.is_empty()).then(|| PLACEHOLDER.to_owned())
                }
            };
            return match redacted {
                Some(redacted) => {
                    self.note(place);
                    Cow::Owned(encode(&redacted))
                }
                None => Cow::Borrowed(pair),
            };
        };
        let shown = decode(name, Plus::Space).unwrap_or(Cow::Borrowed(name));
        let redacted = match decode(value, Plus::Space) {
            _ if self.hides(&shown) || self.nameless == Nameless::AllReplaced => {
                (!value.is_empty()).then(|| PLACEHOLDER.to_owned())
            }
            Ok(value) => self.string(&value, nested),
            // A value that is no text has no names inside.
            Err(_) => self.string(value, nested),
        };
        match redacted {
            Some(redacted) => {
                self.note(&format!("{place}.{shown}"));
                Cow::Owned(format!("{name}={}", encode(&redacted)))
            }
            None => Cow::Borrowed(pair),
        }
    }

    /// Redacts a string, which may contain JSON or text in base64, a URL, or sensitive text. Returns `None` if it is
    /// unchanged.
    pub(super) fn string(&mut self, text: &str, nested: u8) -> Option<String> {
        if is_token(text) || is_credential_with_scheme(text) {
            return Some(PLACEHOLDER.to_owned());
        }
        if let Some(json) = contained_json(text.as_bytes()) {
            return self.contained(&json, nested);
        }
        match base64(text) {
            Some(Encoded::Json(json)) => {
                let redacted = self.contained(&json, nested)?;
                return Some(STANDARD.encode(redacted));
            }
            Some(Encoded::Text(inside))
                if nested == 0 || self.string(&inside, nested - 1).is_some() =>
            {
                return Some(PLACEHOLDER.to_owned());
            }
            Some(Encoded::Text(_)) | None => {}
        }
        let known = self.url(text, nested);
        let known = known.or_else(|| self.words(text, nested));
        let shown = known.as_deref().unwrap_or(text);
        let shown = self.rules.text(shown);
        (shown != text).then(|| shown.into_owned())
    }

    /// Redacts JSON inside a string. Returns `None` if it is unchanged.
    fn contained(&mut self, json: &Json, nested: u8) -> Option<String> {
        let text = Bytes::copy_from_slice(json.as_bytes());
        if nested == 0 || Json::read(text, SEARCHED_DEPTH).is_err() {
            return Some(PLACEHOLDER.to_owned());
        }
        let redacted = self.contained_json(json, nested - 1);
        redacted.map(|text| String::from_utf8_lossy(&text).into_owned())
    }
}

/// Returns the JSON object, array or string that is the whole text.
fn contained_json(text: &[u8]) -> Option<Json> {
    let starts = matches!(text.trim_ascii().first(), Some(b'{' | b'[' | b'"'));
    let text = starts.then(|| Bytes::copy_from_slice(text))?;
    Json::read(text, MAX_DEPTH).ok()
}

/// The content of a text in base64.
enum Encoded {
    /// A JSON object, array or string.
    Json(Json),
    Text(String),
}

/// Returns the content of a text that is base64 as a whole, if it is a text.
fn base64(text: &str) -> Option<Encoded> {
    let is_digit =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'=');
    if text.len() < 8 || !text.bytes().all(is_digit) {
        return None;
    }
    let engines = [&STANDARD, &STANDARD_NO_PAD, &URL_SAFE, &URL_SAFE_NO_PAD];
    let decoded = engines.iter().find_map(|one| one.decode(text).ok())?;
    match contained_json(&decoded) {
        Some(json) => Some(Encoded::Json(json)),
        None => String::from_utf8(decoded).ok().map(Encoded::Text),
    }
}

/// Returns true for a JSON Web Token (RFC 7519): base64url parts, of which the first is a JSON object.
pub(super) fn is_token(text: &str) -> bool {
    let is_part = |part: &str| {
        let mut bytes = part.bytes();
        bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    text.starts_with("ey") && text.split('.').count() >= 3 && text.split('.').all(is_part)
}

/// Returns true for a credential with its scheme (RFC 9110 §11.4).
fn is_credential_with_scheme(text: &str) -> bool {
    let Some((scheme, rest)) = text.trim_start().split_once(' ') else {
        return false;
    };
    let rest = rest.trim();
    is_scheme(scheme) && rest.len() >= SHORTEST_CREDENTIAL && !rest.contains(' ')
}

/// Returns true for the name of an authentication scheme.
pub(super) fn is_scheme(word: &str) -> bool {
    let schemes = ["bearer", "basic", "digest", "negotiate", "apikey", "token"];
    schemes.iter().any(|one| word.eq_ignore_ascii_case(one))
}

/// Encodes a value of a query or a form; the placeholder needs no escapes.
fn encode(text: &str) -> String {
    if text == PLACEHOLDER {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    percent::encode(text, Keep::Nothing, &mut out);
    out
}
