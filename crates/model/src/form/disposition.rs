//! Parameters of the fields `Content-Type` and `Content-Disposition`. Used by `form`.

use std::borrow::Cow;

use dualgauge_patterns::percent::{Plus, decode};

/// The most parameters of a field.
const MOST: usize = 16;

/// The parameters of a field, by name in lower case.
#[derive(Debug, Default)]
pub(super) struct Parameters<'t>(Vec<(String, Cow<'t, str>)>);

impl<'t> Parameters<'t> {
    /// Parses the text after the first `;`. Returns `None` if it is malformed, too long, or has a name twice.
    pub(super) fn parse(text: &'t str) -> Option<Parameters<'t>> {
        let mut parameters = Parameters::default();
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            let (name, after) = token(rest)?;
            let (value, after) = quoted_or_token(after.strip_prefix('=')?)?;
            let name = name.to_ascii_lowercase();
            if parameters.get(&name).is_some() || parameters.0.len() == MOST {
                return None;
            }
            parameters.0.push((name, value));
            rest = after.trim_start();
            if !rest.is_empty() {
                rest = rest.strip_prefix(';')?.trim_start();
            }
        }
        Some(parameters)
    }

    /// Returns the value of a parameter.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| &**value)
    }

    /// Removes the value of a parameter.
    pub(super) fn take(&mut self, name: &str) -> Option<Cow<'t, str>> {
        let at = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.swap_remove(at).1)
    }
}

/// Splits a token (RFC 9110 §5.6.2) from the start of a text.
fn token(text: &str) -> Option<(&str, &str)> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let end = text.bytes().position(|byte| !is_token(byte));
    let (token, rest) = text.split_at(end.unwrap_or(text.len()));
    (!token.is_empty()).then_some((token, rest))
}

/// Splits a token or a quoted string from the start of a text. `\"` is a quote; any other backslash stands for itself,
/// because browsers write file names that way (WHATWG HTML, "multipart/form-data encoding algorithm").
pub(super) fn quoted_or_token(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let Some(inside) = text.strip_prefix('"') else {
        let (token, rest) = token(text)?;
        return Some((Cow::Borrowed(token), rest));
    };
    let mut value = Cow::Borrowed("");
    let mut start = 0;
    for (at, byte) in inside.bytes().enumerate() {
        match byte {
            b'"' if inside[..at].ends_with('\\') => {
                value = Cow::Owned(format!("{value}{}\"", &inside[start..at - 1]));
                start = at + 1;
            }
            b'"' => {
                let tail = &inside[start..at];
                let value = match value {
                    Cow::Borrowed(_) => Cow::Borrowed(tail),
                    Cow::Owned(value) => Cow::Owned(value + tail),
                };
                return Some((value, &inside[at + 1..]));
            }
            _ => {}
        }
    }
    None
}

/// Decodes the three escapes of names and file names: `%22`, `%0D` and `%0A` (WHATWG HTML).
pub(super) fn unescaped(text: Cow<'_, str>) -> Cow<'_, str> {
    if !text.contains('%') {
        return text;
    }
    let mut plain = text.into_owned();
    for (escape, letter) in [("%22", "\""), ("%0D", "\r"), ("%0A", "\n")] {
        plain = plain.replace(escape, letter);
    }
    Cow::Owned(plain)
}

/// Decodes the value of `filename*` (RFC 8187): `UTF-8''na%C3%AFve.txt`.
pub(super) fn extended(text: &str) -> Option<String> {
    let mut parts = text.splitn(3, '\'');
    let (charset, _, value) = (parts.next()?, parts.next()?, parts.next()?);
    if !charset.eq_ignore_ascii_case("utf-8") {
        return None;
    }
    decode(value, Plus::Literal).ok().map(Cow::into_owned)
}

/// Returns a name in quotes. Returns `None` if readers of parts understand it in different ways.
pub(super) fn quoted(text: &str) -> Option<String> {
    let is_unsafe = |letter: char| letter.is_control() || letter == '\\';
    let has_escape = ["%22", "%0D", "%0A"]
        .iter()
        .any(|escape| text.contains(escape));
    if text.contains(is_unsafe) || has_escape {
        return None;
    }
    Some(format!("\"{}\"", text.replace('"', "%22")))
}
