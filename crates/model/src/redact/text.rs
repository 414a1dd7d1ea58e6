//! Redaction of external text: error messages of upstreams, and the standard error of child processes.
//!
//! The format is unknown, so a value is the text after a name and `=` or `:`, up to the next blank or separator, or up
//! to the closing quote. Cookies have separators themselves: they end with the line, or at the quote that encloses them.

use std::borrow::Cow;

use super::hidden::HIDDEN;
use super::{Redaction, SECRET_NAMES, letters};

/// Authentication schemes that precede a credential.
const SCHEMES: [&str; 4] = ["bearer", "basic", "digest", "negotiate"];

/// Returns the text without hidden values.
pub(super) fn hide<'t>(redaction: &Redaction, text: &'t str) -> Cow<'t, str> {
    let mut shown = String::new();
    // The text before this offset is already in `shown`.
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = text[at..].find(['=', ':']) {
        let sign = at + found;
        let value = if text[sign..].starts_with("://") {
            user(text, sign + 3)
        } else {
            named(redaction, text, sign)
        };
        at = sign + 1;
        if let Some((start, end)) = value
            && start >= copied
        {
            shown.push_str(&text[copied..start]);
            shown.push_str(HIDDEN);
            copied = end;
            at = at.max(end);
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    shown.push_str(&text[copied..]);
    Cow::Owned(shown)
}

/// Finds the user info of a URL.
fn user(text: &str, start: usize) -> Option<(usize, usize)> {
    let ends = |c: char| c.is_whitespace() || matches!(c, '/' | '"' | '\'' | '<' | '>' | '`');
    let authority = &text[start..];
    let authority = &authority[..authority.find(ends).unwrap_or(authority.len())];
    let user = authority.rfind('@')?;
    Some((start, start + user))
}

/// Finds the value after a separator, if its name is hidden.
fn named(redaction: &Redaction, text: &str, sign: usize) -> Option<(usize, usize)> {
    let before = text[..sign].trim_end();
    let quoted = before.ends_with(['"', '\'']);
    let before = before.trim_end_matches(['"', '\'', '\\']);
    let no_name = |c: char| !(c.is_alphanumeric() || matches!(c, '-' | '_' | '.'));
    let start = before.rfind(no_name).map_or(0, |at| {
        at + before[at..].chars().next().map_or(1, char::len_utf8)
    });
    let name = letters(&before[start..]);
    // `key: ` in a sentence is not a name, but `key=` and `"key":` are.
    let spelled = quoted || text[sign..].starts_with('=');
    let hidden = redaction.hides_within_text(&name)
        || redaction.is_header(&before[start..])
        || (spelled && SECRET_NAMES.contains(&name.as_str()));
    let is_cookie = matches!(name.as_str(), "cookie" | "setcookie");
    if is_cookie && !quoted && text[sign..].starts_with(':') {
        let quote = before[..start].chars().next_back();
        let quote = quote.filter(|c| matches!(c, '"' | '\'' | '`'));
        return line(text, sign + 1, quote);
    }
    hidden.then(|| value(text, sign + 1)).flatten()
}

/// Returns the range of a value up to the end of its line, or to the quote that encloses it.
fn line(text: &str, from: usize, quote: Option<char>) -> Option<(usize, usize)> {
    let rest = &text[from..];
    let start = from + (rest.len() - rest.trim_start_matches(' ').len());
    let ends = |c: char| matches!(c, '\r' | '\n') || Some(c) == quote;
    let length = text[start..].find(ends).unwrap_or(text.len() - start);
    (length > 0).then_some((start, start + length))
}

/// Returns the range of the value; an authentication scheme before it stays visible.
fn value(text: &str, from: usize) -> Option<(usize, usize)> {
    let rest = &text[from..];
    let start = from + (rest.len() - rest.trim_start().len());
    let value = &text[start..];
    let bare = value.trim_start_matches('\\');
    if let Some(quote) = bare.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        let inside = start + (value.len() - bare.len()) + 1;
        let end = closing(&text[inside..], quote).unwrap_or(text.len() - inside);
        return (end > 0).then_some((inside, inside + end));
    }
    let ends = |c: char| {
        c.is_whitespace() || matches!(c, ',' | ';' | '&' | ')' | ']' | '}' | '"' | '\'' | '`')
    };
    let length = value.find(ends).unwrap_or(value.len());
    let word = &value[..length];
    if SCHEMES
        .iter()
        .any(|scheme| word.eq_ignore_ascii_case(scheme))
    {
        return self::value(text, start + length);
    }
    (length > 0).then_some((start, start + length))
}

/// Returns the offset of the quote that closes the value.
fn closing(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    text.char_indices().find_map(|(at, c)| {
        let closes = c == quote && !escaped;
        escaped = c == '\\' && !escaped;
        closes.then_some(at)
    })
}
