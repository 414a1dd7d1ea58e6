//! URLs, and words of longer texts.

use super::text::{is_scheme, is_token};
use super::{PLACEHOLDER, Redactor};

/// The shortest text after an authentication scheme that is taken for a credential.
const SHORTEST_CREDENTIAL: usize = 8;

impl Redactor<'_> {
    /// Redacts a path: sensitive segments, tokens, and path parameters such as `;token=x`.
    pub(super) fn path(&self, path: &str) -> String {
        let shown = self.rules.path(path);
        let segments = shown.split('/').map(|segment| match is_token(segment) {
            true => PLACEHOLDER.to_owned(),
            false => self.path_parameters(segment),
        });
        segments.collect::<Vec<_>>().join("/")
    }

    fn path_parameters(&self, segment: &str) -> String {
        let parts = segment.split(';').map(|part| match part.split_once('=') {
            Some((name, _)) if self.hides(name) => format!("{name}={PLACEHOLDER}"),
            Some(_) | None => part.to_owned(),
        });
        parts.collect::<Vec<_>>().join(";")
    }

    /// Redacts a URL, or a path with or without a query: user info, path, query and fragment. Returns `None` if the text
    /// is something else, or unchanged.
    pub(super) fn url(&mut self, text: &str, nested: u8) -> Option<String> {
        if text.contains(char::is_whitespace) {
            return None;
        }
        let (before, rest) = split_authority(text)?;
        if nested == 0 {
            return Some(PLACEHOLDER.to_owned());
        }
        let (rest, fragment) = cut(rest, '#');
        let (path, query) = cut(rest, '?');
        let mut shown = before + &self.path(path);
        // The place of the text is noted by its owner.
        let places = self.places.len();
        for (sign, part) in [('?', query), ('#', fragment)] {
            if let Some(part) = part {
                shown.push(sign);
                shown.push_str(&self.pairs("", part, nested - 1));
            }
        }
        self.places.truncate(places);
        (shown != text).then_some(shown)
    }

    /// Redacts the URLs, tokens and credentials in a longer text. Returns `None` if it has none.
    pub(super) fn words(&mut self, text: &str, nested: u8) -> Option<String> {
        let is_end =
            |letter: char| letter.is_whitespace() || matches!(letter, '"' | '\'' | '`' | '<' | '>');
        let mut shown = String::new();
        let (mut follows_scheme, mut follows_bracket) = (false, false);
        for piece in text.split_inclusive(is_end) {
            let word = piece.strip_suffix(is_end).unwrap_or(piece);
            let redacted = match word {
                _ if follows_scheme && is_credential(word) => Some(PLACEHOLDER.to_owned()),
                // A path alone is a URL only in brackets, as in the header `Link`.
                _ if follows_bracket || word.contains("://") => self.url(word, nested),
                _ => None,
            };
            shown.push_str(&redacted.unwrap_or_else(|| without_tokens(word)));
            shown.push_str(&piece[word.len()..]);
            follows_bracket = piece.ends_with('<');
            if !word.is_empty() {
                follows_scheme = is_scheme(word);
            }
        }
        (shown != text).then_some(shown)
    }
}

/// Splits a URL before its path; the part before has no user info. Returns `None` if the text is neither a URL nor a
/// path.
fn split_authority(text: &str) -> Option<(String, &str)> {
    let (scheme, after) = match text.split_once("://") {
        Some((scheme, after)) if is_scheme_name(scheme) => (format!("{scheme}://"), after),
        Some(_) | None => match text.strip_prefix("//") {
            Some(after) => ("//".to_owned(), after),
            None => return text.starts_with('/').then(|| (String::new(), text)),
        },
    };
    let end = after.find(['/', '?', '#']).unwrap_or(after.len());
    let (authority, rest) = after.split_at(end);
    let authority = match authority.rsplit_once('@') {
        Some((_, host)) => format!("{PLACEHOLDER}@{host}"),
        None => authority.to_owned(),
    };
    Some((scheme + &authority, rest))
}

/// Returns true for the name of a URL scheme (RFC 3986 §3.1).
fn is_scheme_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic())
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
}

fn cut(text: &str, sign: char) -> (&str, Option<&str>) {
    match text.split_once(sign) {
        Some((before, after)) => (before, Some(after)),
        None => (text, None),
    }
}

/// Returns true for a word that looks like a credential. Words of a language are small letters, such as in `Basic
/// training`.
fn is_credential(word: &str) -> bool {
    let is_unusual = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_uppercase() || byte == b'=';
    word.len() >= SHORTEST_CREDENTIAL && word.bytes().skip(1).any(is_unusual)
}

/// Replaces the JSON Web Tokens in a word.
fn without_tokens(word: &str) -> String {
    let is_end =
        |letter: char| !letter.is_ascii_alphanumeric() && !matches!(letter, '-' | '_' | '.');
    let parts = word.split_inclusive(is_end).map(|piece| {
        let part = piece.strip_suffix(is_end).unwrap_or(piece);
        // The base64 of `{"` begins so.
        match part.starts_with("eyJ") && is_token(part) {
            true => format!("{PLACEHOLDER}{}", &piece[part.len()..]),
            false => piece.to_owned(),
        }
    });
    parts.collect()
}
