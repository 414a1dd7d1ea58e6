//! URLs, and words of longer texts.

use std::borrow::Cow;

use super::text::{SHORTEST_CREDENTIAL, is_scheme, is_token};
use super::{PLACEHOLDER, Redactor};
use dualgauge_patterns::percent::{Plus, decode};

impl Redactor<'_> {
    /// Redacts a path: sensitive segments, tokens, and path parameters such as `;token=x`.
    pub(super) fn path(&self, path: &str) -> String {
        let shown = self.rules.path(path);
        let segments = shown.split('/').map(|part| self.path_parameters(part));
        segments.collect::<Vec<_>>().join("/")
    }

    fn path_parameters(&self, segment: &str) -> String {
        let parts = segment.split(';').map(|part| match part.split_once('=') {
            Some((name, _)) if self.hides(&decoded(name)) => {
                Cow::Owned(format!("{name}={PLACEHOLDER}"))
            }
            Some(_) | None => without_tokens(part),
        });
        parts.collect::<Vec<_>>().join(";")
    }

    /// Redacts URLs that follow each other, as in a list, or a path with or without a query. Returns `None` if the text
    /// is something else, or unchanged.
    pub(super) fn url(&mut self, text: &str, nested: u8) -> Option<String> {
        let may_be_url = text.starts_with('/') || text.contains("://");
        if !may_be_url || text.contains(char::is_whitespace) {
            return None;
        }
        let mut shown = String::new();
        let mut from = 0;
        for to in starts(text).into_iter().chain([text.len()]) {
            let piece = &text[from..to];
            let url = piece.trim_end_matches([',', '(', ')', '[', ']']);
            match split_authority(url) {
                Some(_) if nested == 0 => return Some(PLACEHOLDER.to_owned()),
                Some((before, rest)) => {
                    shown.push_str(&before);
                    self.after_authority(rest, nested - 1, &mut shown);
                }
                None => shown.push_str(&without_tokens(url)),
            }
            shown.push_str(&piece[url.len()..]);
            from = to;
        }
        (shown != text).then_some(shown)
    }

    /// Redacts the path, the query and the fragment of a URL.
    fn after_authority(&mut self, rest: &str, nested: u8, shown: &mut String) {
        let (rest, fragment) = cut(rest, '#');
        let (path, query) = cut(rest, '?');
        shown.push_str(&self.path(path));
        // The place of the text is noted by its owner.
        let places = self.places.len();
        for (sign, part) in [('?', query), ('#', fragment)] {
            if let Some(part) = part {
                shown.push(sign);
                shown.push_str(&self.pairs("", part, nested));
            }
        }
        self.places.truncate(places);
    }

    /// Redacts the URLs, tokens and credentials in a longer text. Returns `None` if it has none.
    pub(super) fn words(&mut self, text: &str, nested: u8) -> Option<String> {
        let is_end = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>');
        let mut shown = String::new();
        let (mut follows_scheme, mut follows_bracket) = (false, false);
        for piece in text.split_inclusive(is_end) {
            let word = piece.strip_suffix(is_end).unwrap_or(piece);
            let redacted = match word {
                _ if follows_scheme && looks_secret(word) => Some(PLACEHOLDER.to_owned()),
                // A path alone is a URL only in brackets, as in the header `Link`.
                _ if follows_bracket || word.contains("://") => self.url(word, nested),
                _ => None,
            };
            shown.push_str(&redacted.map_or_else(|| without_tokens(word), Cow::Owned));
            shown.push_str(&piece[word.len()..]);
            follows_bracket = piece.ends_with('<');
            if !word.is_empty() {
                follows_scheme = ends_with_scheme(word);
            }
        }
        (shown != text).then_some(shown)
    }
}

/// Returns the places where the URLs of a text begin, before the query or fragment of one. A URL after `/` is a part of
/// the path before it.
fn starts(text: &str) -> Vec<usize> {
    let first = match text.starts_with('/') {
        true => 0,
        false => text.find("://").unwrap_or(text.len()),
    };
    let end = text[first..].find(['?', '#']);
    let end = end.map_or(text.len(), |length| first + length);
    let schemes = text[..end].match_indices("://").filter_map(|(at, _)| {
        let before = text[..at].trim_end_matches(is_scheme_char);
        let scheme = text[before.len()..at].trim_start_matches(|c: char| !c.is_ascii_alphabetic());
        (!scheme.is_empty() && !before.ends_with('/')).then_some(at - scheme.len())
    });
    schemes.collect()
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
    text.starts_with(|first: char| first.is_ascii_alphabetic()) && text.chars().all(is_scheme_char)
}

const fn is_scheme_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.')
}

/// Decodes the name of a path parameter. A name with malformed escapes stays.
fn decoded(name: &str) -> Cow<'_, str> {
    decode(name, Plus::Literal).unwrap_or(Cow::Borrowed(name))
}

fn cut(text: &str, sign: char) -> (&str, Option<&str>) {
    match text.split_once(sign) {
        Some((before, after)) => (before, Some(after)),
        None => (text, None),
    }
}

/// Returns true for a word that ends with an authentication scheme, such as `(Bearer` or `auth:Bearer:`. A scheme
/// before a full stop ends a sentence.
fn ends_with_scheme(word: &str) -> bool {
    let is_sign = |c: char| c.is_ascii_punctuation() && !matches!(c, '-' | '_');
    let name = word
        .trim_end_matches([':', '=', ','])
        .rsplit(is_sign)
        .next();
    name.is_some_and(is_scheme)
}

/// Returns true for a word that looks like a credential. Ordinary words have only lower-case letters, as in `Basic
/// training`.
fn looks_secret(word: &str) -> bool {
    let is_unusual = |byte: u8| byte.is_ascii() && !byte.is_ascii_lowercase();
    let end = ['.', ',', ';', ':', '!', '?', ')', ']', '}'];
    word.len() >= SHORTEST_CREDENTIAL && word.trim_end_matches(end).bytes().skip(1).any(is_unusual)
}

/// Replaces the JSON Web Tokens in a word.
fn without_tokens(word: &str) -> Cow<'_, str> {
    // The base64 of `{"` begins with it.
    const START: &str = "eyJ";
    if !word.contains(START) {
        return Cow::Borrowed(word);
    }
    let is_end = |c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | '.');
    let parts = word.split_inclusive(is_end).map(|piece| {
        let part = piece.strip_suffix(is_end).unwrap_or(piece);
        match part.starts_with(START) && is_token(part) {
            true => Cow::Owned(format!("{PLACEHOLDER}{}", &piece[part.len()..])),
            false => Cow::Borrowed(piece),
        }
    });
    Cow::Owned(parts.collect())
}
