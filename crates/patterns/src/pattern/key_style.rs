//! Key styles: `{x:keys(kebab=snake)}` renames all keys of a value, in objects and lists of any depth.
//!
//! Law: a renamed value is renamed back to the same value. A key that is not renamed back to itself is refused, so two
//! keys of an object never become one.

use std::borrow::Cow;

use super::default_json::default_json;
use crate::json::{Json, decode, encode};

/// The prefix of the styles after the name of a hole.
const BEGIN: &str = ":keys(";

/// A style of the words of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyStyle {
    /// `file_name`
    Snake,
    /// `file-name`
    Kebab,
    /// `fileName`
    Camel,
    /// `FileName`
    Pascal,
}

/// The styles of keys at the position of a hole, and in its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyStyles {
    here: KeyStyle,
    value: KeyStyle,
}

impl KeyStyle {
    const ALL: [KeyStyle; 4] = [
        KeyStyle::Snake,
        KeyStyle::Kebab,
        KeyStyle::Camel,
        KeyStyle::Pascal,
    ];

    const fn as_str(self) -> &'static str {
        match self {
            KeyStyle::Snake => "snake",
            KeyStyle::Kebab => "kebab",
            KeyStyle::Camel => "camel",
            KeyStyle::Pascal => "pascal",
        }
    }

    fn parse(word: &str) -> Result<KeyStyle, String> {
        let mut all = KeyStyle::ALL.into_iter();
        all.find(|style| style.as_str() == word).ok_or_else(|| {
            format!(
                "`{word}` is not a style of keys; styles are `snake`, `kebab`, `camel` and `pascal`"
            )
        })
    }

    /// Returns the words of a key in lower case.
    fn split(self, key: &str) -> Vec<String> {
        match self {
            KeyStyle::Snake => key.split('_').map(str::to_owned).collect(),
            KeyStyle::Kebab => key.split('-').map(str::to_owned).collect(),
            KeyStyle::Camel | KeyStyle::Pascal => {
                let mut words = vec![String::new()];
                for (at, character) in key.char_indices() {
                    if character.is_ascii_uppercase() && at > 0 {
                        words.push(String::new());
                    }
                    if let Some(word) = words.last_mut() {
                        word.push(character.to_ascii_lowercase());
                    }
                }
                words
            }
        }
    }

    fn join(self, words: &[String]) -> String {
        match self {
            KeyStyle::Snake => words.join("_"),
            KeyStyle::Kebab => words.join("-"),
            KeyStyle::Camel => match words.split_first() {
                Some((first, others)) => format!("{first}{}", capitalised(others)),
                None => String::new(),
            },
            KeyStyle::Pascal => capitalised(words),
        }
    }

    /// Returns a key of this style in another one, if that is renamed back to the same key.
    fn rename(self, key: &str, other: KeyStyle) -> Option<String> {
        let renamed = other.join(&self.split(key));
        let back = self.join(&other.split(&renamed));
        (back == key).then_some(renamed)
    }
}

fn capitalised(words: &[String]) -> String {
    let mut text = String::new();
    for word in words {
        let mut characters = word.chars();
        text.extend(characters.next().map(|first| first.to_ascii_uppercase()));
        text.push_str(characters.as_str());
    }
    text
}

impl KeyStyles {
    /// Parses `:keys(…)` as a whole. Returns `None` for any other text.
    pub(super) fn parse(spelled: &str) -> Option<Result<KeyStyles, String>> {
        let inside = spelled.strip_prefix(BEGIN)?;
        Some(KeyStyles::parse_styles(inside))
    }

    /// Returns the length of `:keys(…)` at the beginning of a text; zero if there is none.
    pub(super) fn length(spelled: &str) -> usize {
        let end = spelled
            .strip_prefix(BEGIN)
            .and_then(|inside| inside.find(')'));
        end.map_or(0, |end| BEGIN.len() + end + 1)
    }

    fn parse_styles(inside: &str) -> Result<KeyStyles, String> {
        let styles = inside
            .strip_suffix(')')
            .and_then(|inside| inside.split_once('='));
        let (here, value) = styles.ok_or(
            "write the style of the keys here and of those in the value: `keys(kebab=snake)`",
        )?;
        let (here, value) = (KeyStyle::parse(here)?, KeyStyle::parse(value)?);
        if here == value {
            return Err("the two styles are the same, so no key changes".into());
        }
        Ok(KeyStyles { here, value })
    }

    /// Returns the notation: `keys(kebab=snake)`.
    #[must_use]
    pub fn to_notation(self) -> String {
        format!("keys({}={})", self.here.as_str(), self.value.as_str())
    }

    /// Returns the value of the hole for a value at its position.
    pub(super) fn read(self, value: &Json) -> Result<Json, String> {
        renamed(value, self.here, self.value)
    }

    /// Returns the value to write for a value of the hole.
    pub(super) fn write(self, value: &Json) -> Result<Json, String> {
        renamed(value, self.value, self.here)
    }

    /// Returns a default, which is spelled like the value at the position of the hole, as the value of the hole.
    pub(super) fn default(self, spelled: &str) -> Result<String, String> {
        let Some(value) = default_json(spelled) else {
            return Ok(spelled.to_owned());
        };
        let value = self.read(&value)?;
        Ok(String::from_utf8_lossy(value.as_bytes()).into_owned())
    }

    /// Returns keys at the position of the hole that are refused.
    pub fn refused(self) -> impl Iterator<Item = &'static str> {
        refused(self.here, self.value)
    }

    /// Returns keys of the value that are refused.
    pub fn refused_values(self) -> impl Iterator<Item = &'static str> {
        refused(self.value, self.here)
    }
}

fn refused(from: KeyStyle, to: KeyStyle) -> impl Iterator<Item = &'static str> {
    let keys = ["a__b", "a_1", "aB_c", "A", "a-b_c", "_a"];
    keys.into_iter()
        .filter(move |key| from.rename(key, to).is_none())
}

/// Returns a value with all keys in another style. All other bytes are the same.
fn renamed(value: &Json, from: KeyStyle, to: KeyStyle) -> Result<Json, String> {
    let text = value.as_bytes();
    if !text.contains(&b'{') {
        return Ok(value.clone());
    }
    let mut out = Vec::with_capacity(text.len() + 16);
    // The enclosing arrays and objects, true for an object.
    let mut around: Vec<bool> = Vec::new();
    let (mut at, mut is_key) = (0, false);
    while let Some(byte) = text.get(at) {
        if *byte == b'"' {
            let end = end_of_string(text, at);
            let string = &text[at..end];
            if is_key {
                out_key(string, from, to, &mut out)?;
                is_key = false;
            } else {
                out.extend_from_slice(string);
            }
            at = end;
            continue;
        }
        match byte {
            b'{' | b'[' => {
                is_key = *byte == b'{';
                around.push(is_key);
            }
            b'}' | b']' => {
                around.pop();
                is_key = false;
            }
            b',' => is_key = around.last() == Some(&true),
            _ => {}
        }
        out.push(*byte);
        at += 1;
    }
    Ok(Json::written(out))
}

fn out_key(string: &[u8], from: KeyStyle, to: KeyStyle, out: &mut Vec<u8>) -> Result<(), String> {
    let key: Cow<'_, str> =
        decode(&string[1..string.len() - 1]).map_err(|fault| fault.to_string())?;
    let renamed = from.rename(&key, to).ok_or_else(|| {
        let (from, to) = (from.as_str(), to.as_str());
        format!(
            "the key `{}` in {from} style would not come back from {to} style",
            super::shown::shown(&key)
        )
    })?;
    encode(&renamed, out);
    Ok(())
}

/// Returns the end of the string that begins at a place. The text is valid JSON.
fn end_of_string(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(styles: &str, value: &str) -> Result<String, String> {
        let styles = KeyStyles::parse(&format!(":keys({styles})")).unwrap()?;
        let value = Json::parse(value.to_owned().into(), 16).unwrap();
        let read = styles.read(&value)?;
        assert_eq!(styles.write(&read).unwrap().as_bytes(), value.as_bytes());
        Ok(String::from_utf8(read.as_bytes().to_vec()).unwrap())
    }

    #[test]
    fn keys_of_any_depth_are_renamed() {
        for (styles, value, expected) in [
            (
                "kebab=snake",
                r#"{ "a-b": [{"c-d-e": "f-g", "h": {}}], "\"i-j": 1.0 }"#,
                r#"{ "a_b": [{"c_d_e": "f-g", "h": {}}], "\"i_j": 1.0 }"#,
            ),
            (
                "snake=camel",
                r#"{"file_name":{"x2":null}}"#,
                r#"{"fileName":{"x2":null}}"#,
            ),
            (
                "camel=pascal",
                r#"{"fileName":["a_b"]}"#,
                r#"{"FileName":["a_b"]}"#,
            ),
            ("pascal=kebab", r#"{"UserID":1}"#, r#"{"user-i-d":1}"#),
            ("snake=kebab", r#"["a_b",{}]"#, r#"["a_b",{}]"#),
        ] {
            assert_eq!(read(styles, value).unwrap(), expected, "{styles}");
        }
    }

    #[test]
    fn keys_that_do_not_come_back_are_refused() {
        for (styles, key) in [
            ("snake=camel", "a__b"),
            ("snake=camel", "a_1"),
            ("snake=kebab", "a-b"),
            ("kebab=camel", "aB"),
            ("camel=snake", "a_b"),
            ("camel=snake", "A"),
        ] {
            let error = read(styles, &format!("{{\"{key}\":1}}")).unwrap_err();
            assert!(
                error.contains("would not come back"),
                "{styles} {key}: {error}"
            );
        }
        for styles in ["snake", "snake=snake", "snake=upper"] {
            assert!(
                KeyStyles::parse(&format!(":keys({styles})"))
                    .unwrap()
                    .is_err()
            );
        }
    }

    proptest! {
        #[test]
        fn a_renamed_key_comes_back(key in "[a-cA-C0-1_-]{0,8}", from in 0..4_usize, to in 0..4_usize) {
            let (from, to) = (KeyStyle::ALL[from], KeyStyle::ALL[to]);
            if let Some(renamed) = from.rename(&key, to) {
                prop_assert_eq!(to.rename(&renamed, from), Some(key));
            }
        }
    }
}
