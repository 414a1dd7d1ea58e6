//! Value maps: `{state:map(open=TASK_OPEN|done=TASK_DONE)}`.
//!
//! The left word of a pair is the value at the position of the hole, the right word is the value of the hole. Laws: no
//! word occurs twice in a column, so the map is a bijection; a value outside of it is refused.

use super::Shape;
use super::default_json::default_json;
use super::number::Number;
use crate::json::{Json, JsonKind};
use crate::percent::{self, Keep};

/// The most pairs of one map.
const MOST: usize = 1_000;
/// The prefix of a map after the name of a hole.
const BEGIN: &str = ":map(";

/// The pairs of a map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueMap {
    pairs: Vec<ValuePair>,
}

/// One pair.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ValuePair {
    /// The value at the position of the hole, in JSON.
    here: Json,
    /// The same as a text of a URL or a header.
    text: String,
    /// The value of the hole.
    value: Json,
    word: String,
}

impl ValueMap {
    /// Parses `:map(…)` at the beginning of a text. Returns the map and the text after it, or `None` for any other text.
    pub(super) fn parse(spelled: &str) -> Option<Result<(ValueMap, &str), String>> {
        let inside = spelled.strip_prefix(BEGIN)?;
        Some(ValueMap::parse_pairs(inside))
    }

    fn parse_pairs(mut rest: &str) -> Result<(ValueMap, &str), String> {
        let mut map = ValueMap { pairs: Vec::new() };
        loop {
            let (here, after) = parse_word(rest)?;
            let after = after.strip_prefix('=').ok_or_else(no_pair)?;
            let (value, after) = parse_word(after)?;
            map.add(here, value)?;
            rest = match after.strip_prefix('|') {
                Some(next) => next,
                None => {
                    let after = after.strip_prefix(')').ok_or_else(no_pair)?;
                    return Ok((map, after));
                }
            };
        }
    }

    fn add(&mut self, here: Json, value: Json) -> Result<(), String> {
        let spelled = |json: &Json| String::from_utf8_lossy(json.as_bytes()).into_owned();
        let Some(Ok(word)) = value.text() else {
            return Err(format!(
                "the right word `{0}` would be the string \"{0}\"; write `\"{0}\"` if the other side has a text, or the map on the other side, where `{0}` is a left word",
                spelled(&value)
            ));
        };
        let text = match here.text() {
            Some(Ok(text)) => text,
            Some(Err(fault)) => return Err(fault.to_string()),
            None => spelled(&here),
        };
        for pair in &self.pairs {
            if pair.here.same(&here) {
                return Err(format!("the left word `{text}` occurs twice"));
            }
            if pair.word == word {
                return Err(format!("the right word `{word}` occurs twice"));
            }
        }
        if self.pairs.len() == MOST {
            return Err(format!("a map has at most {MOST} pairs"));
        }
        self.pairs.push(ValuePair {
            here,
            text,
            value,
            word,
        });
        Ok(())
    }

    /// Returns the values of the hole.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        self.pairs.iter().map(|pair| pair.word.clone()).collect()
    }

    /// Returns the values at the position of the hole, in JSON.
    pub fn values(&self) -> impl Iterator<Item = &Json> {
        self.pairs.iter().map(|pair| &pair.here)
    }

    /// Returns the values at the position of the hole, as texts.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.pairs.iter().map(|pair| pair.text.as_str())
    }

    /// Returns each text at the position of the hole, with the value of the hole.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (&str, &Json)> {
        let pairs = self.pairs.iter();
        pairs.map(|pair| (pair.text.as_str(), &pair.value))
    }

    /// Returns the map with percent-encoded texts, for a text that is a URL.
    pub(super) fn percent_encoded(&self) -> ValueMap {
        let mut encoded = self.clone();
        for pair in &mut encoded.pairs {
            let mut text = String::with_capacity(pair.text.len());
            percent::encode(&pair.text, Keep::Nothing, &mut text);
            pair.text = text;
        }
        encoded
    }

    /// Returns the notation: `map(open=TASK_OPEN|done=TASK_DONE)`.
    #[must_use]
    pub fn to_notation(&self) -> String {
        let pairs = self.pairs.iter().map(|pair| {
            let (here, value) = (spelled(&pair.here), spelled(&pair.value));
            format!("{here}={value}")
        });
        format!("map({})", pairs.collect::<Vec<_>>().join("|"))
    }

    /// Checks that all words can be texts of a URL or a header, the elements of a list among them.
    ///
    /// # Errors
    ///
    /// Names the word that cannot.
    pub(super) fn check_texts(&self, shape: &Shape) -> Result<(), String> {
        for (index, pair) in self.pairs.iter().enumerate() {
            let text = &pair.text;
            if text.is_empty() {
                return Err("an empty left word is no text".into());
            }
            if self.pairs[..index].iter().any(|known| known.text == *text) {
                return Err(format!("two left words have the text `{text}`"));
            }
            if let Shape::Separated(_, delimiter) = shape
                && text.contains(delimiter.as_char())
            {
                return Err(format!(
                    "the left word `{text}` contains {}, which separates the elements of this list",
                    delimiter.named()
                ));
            }
        }
        Ok(())
    }

    /// Returns a default, which is spelled like the value at the position of the hole, as the value of the hole.
    pub(super) fn default(&self, shape: &Shape, spelled: &str) -> Result<String, String> {
        let value = match (default_json(spelled), shape) {
            (Some(list), Shape::Repeated(_) | Shape::Separated(..)) => self.read(shape, list),
            (Some(value), _) if self.of_json(value.as_bytes()).is_some() => self.read(shape, value),
            (_, _) => self.of_text(spelled).map(|pair| pair.value.clone()),
        };
        value.map(|value| self::spelled_json(&value))
    }

    fn of_text(&self, text: &str) -> Result<&ValuePair, String> {
        let mut pairs = self.pairs.iter();
        pairs.find(|pair| pair.text == text).ok_or_else(|| {
            format!(
                "`{}` is not {}",
                super::shown::shown(text),
                self.described()
            )
        })
    }

    fn of_json(&self, value: &[u8]) -> Option<&ValuePair> {
        let mut pairs = self.pairs.iter();
        let same = pairs.find(|pair| pair.here.as_bytes() == value);
        same.or_else(|| {
            let value = Json::written(value.to_vec());
            let is_string = value.kind() == JsonKind::String;
            let mut pairs = self.pairs.iter();
            pairs.find(|pair| is_string && pair.here.same(&value))
        })
    }

    fn of_word(&self, value: &[u8]) -> Option<&ValuePair> {
        let mut pairs = self.pairs.iter();
        let same = pairs.find(|pair| pair.value.as_bytes() == value);
        same.or_else(|| {
            let value = Json::written(value.to_vec());
            let mut pairs = self.pairs.iter();
            pairs.find(|pair| pair.value.same(&value))
        })
    }

    /// Returns true if `null` is a left word.
    pub(super) fn has_null(&self) -> bool {
        self.values().any(|here| here.kind() == JsonKind::Null)
    }

    /// Describes the accepted values, for messages.
    #[must_use]
    pub fn described(&self) -> String {
        let words: Vec<String> = self.values().map(spelled).collect();
        format!("one of `{}`", words.join("`, `"))
    }

    /// Returns the value of the hole for a JSON value.
    pub(super) fn read(&self, shape: &Shape, value: Json) -> Result<Json, String> {
        let one = |value: &[u8]| match self.of_json(value) {
            Some(pair) => Ok(&pair.value),
            None => Err(self.refusal(value)),
        };
        each(shape, value, one)
    }

    /// Returns the message for a value that is no left word.
    fn refusal(&self, value: &[u8]) -> String {
        let number = |json: &Json| match json.kind() {
            JsonKind::Number => Number::from_text(&spelled(json)),
            JsonKind::Null
            | JsonKind::Boolean
            | JsonKind::String
            | JsonKind::Array
            | JsonKind::Object => None,
        };
        let found = number(&Json::written(value.to_vec()));
        match self
            .values()
            .find(|here| found.is_some() && number(here) == found)
        {
            Some(here) => format!("this number must be spelled `{}`", spelled(here)),
            None => format!("it must be {}", self.described()),
        }
    }

    /// Returns the JSON value to write for a value of the hole.
    pub(super) fn write(&self, shape: &Shape, value: &Json) -> Result<Json, String> {
        let one = |value: &[u8]| match self.of_word(value) {
            Some(pair) => Ok(&pair.here),
            None => Err(self.no_word()),
        };
        each(shape, value.clone(), one)
    }

    /// Returns the text to write for a value of the hole.
    pub(super) fn write_text(&self, value: &[u8]) -> Result<&str, String> {
        let pair = self.of_word(value);
        pair.map(|pair| &*pair.text).ok_or_else(|| self.no_word())
    }

    fn no_word(&self) -> String {
        format!("it must be one of `{}`", self.words().join("`, `"))
    }

    /// Returns the value of the hole for one text.
    pub(super) fn read_text(&self, text: &str) -> Result<Json, String> {
        self.of_text(text).map(|pair| pair.value.clone())
    }

    /// Returns the list of values for texts.
    pub(super) fn read_texts<'t>(
        &self,
        texts: impl Iterator<Item = &'t str>,
    ) -> Result<Json, String> {
        let mut list = vec![b'['];
        for text in texts {
            if list.len() > 1 {
                list.push(b',');
            }
            list.extend_from_slice(self.of_text(text)?.value.as_bytes());
        }
        list.push(b']');
        Ok(Json::written(list))
    }
}

/// Replaces a value, or each element of a list.
fn each<'m>(
    shape: &Shape,
    value: Json,
    one: impl Fn(&[u8]) -> Result<&'m Json, String>,
) -> Result<Json, String> {
    if !matches!(shape, Shape::Repeated(_) | Shape::Separated(..)) {
        return one(value.as_bytes()).cloned();
    }
    if value.kind() != JsonKind::Array {
        let found = value.kind().described();
        return Err(format!("it must be an array, not {found}"));
    }
    let mut list = vec![b'['];
    for (index, range) in value.elements().enumerate() {
        if index > 0 {
            list.push(b',');
        }
        let element = one(&value.as_bytes()[range]);
        let element = element.map_err(|what| format!("element {index}: {what}"))?;
        list.extend_from_slice(element.as_bytes());
    }
    list.push(b']');
    Ok(Json::written(list))
}

/// Returns a word as written in a map: quoted where the bare text would be another value.
fn spelled(word: &Json) -> String {
    let quoted = spelled_json(word);
    let Some(Ok(text)) = word.text() else {
        return quoted;
    };
    let is_bare = parse_word(&text).is_ok_and(|(read, rest)| rest.is_empty() && read.same(word));
    if is_bare { text } else { quoted }
}

fn spelled_json(value: &Json) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

fn no_pair() -> String {
    "a map has pairs of words, such as `map(open=OPEN|done=DONE)`; quote a word with other signs: `\"a=b\"`".into()
}

/// Parses a word: a JSON string, or a bare text that is a string unless it spells another scalar.
fn parse_word(text: &str) -> Result<(Json, &str), String> {
    let end = if text.starts_with('"') {
        let mut escaped = false;
        let end = text.bytes().skip(1).position(|byte| {
            let ends = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            ends
        });
        end.map_or(text.len(), |end| end + 2)
    } else {
        let ends = ['|', '=', '(', ')', '"', '{', '}'];
        text.find(ends).unwrap_or(text.len())
    };
    let (word, rest) = text.split_at(end);
    if word.is_empty() {
        return Err(no_pair());
    }
    let parsed = Json::parse(bytes::Bytes::copy_from_slice(word.as_bytes()), 0);
    match parsed {
        Ok(value) => match value.text() {
            Some(Ok(text)) => Ok((Json::string(&text), rest)),
            Some(Err(fault)) => Err(fault.to_string()),
            None => Ok((value, rest)),
        },
        Err(_) if word.starts_with('"') => Err(format!("`{word}` is not a JSON string")),
        Err(_) => Ok((Json::string(word), rest)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(inside: &str) -> Result<ValueMap, String> {
        let spelled = format!(":map({inside})");
        let (map, rest) = ValueMap::parse(&spelled).unwrap()?;
        assert_eq!(rest, "");
        Ok(map)
    }

    #[test]
    fn a_word_is_a_scalar_or_a_string() {
        for (inside, shown) in [
            ("open=OPEN|done=DONE", "map(open=OPEN|done=DONE)"),
            ("0=off|1=on", "map(0=off|1=on)"),
            ("\"0\"=off|true=\"1\"", "map(\"0\"=off|true=\"1\")"),
            ("\"a|b\"=x y|null=\"\\u0041\"", "map(\"a|b\"=x y|null=A)"),
            ("\"a\"=\"b\"", "map(a=b)"),
        ] {
            let map = map(inside).unwrap();
            assert_eq!(map.to_notation(), shown);
            assert_eq!(map_again(&map), map);
        }
    }

    fn map_again(written: &ValueMap) -> ValueMap {
        let notation = written.to_notation();
        let inside = notation.strip_prefix("map(").unwrap();
        map(inside.strip_suffix(')').unwrap()).unwrap()
    }

    #[test]
    fn a_map_that_is_no_bijection_is_refused() {
        for (inside, words) in [
            ("", "pairs of words"),
            ("a", "pairs of words"),
            ("a=b|", "pairs of words"),
            ("a=b|a=c", "the left word `a` occurs twice"),
            ("a=b|\"a\"=c", "the left word `a` occurs twice"),
            ("a=c|b=c", "the right word `c` occurs twice"),
            ("a=0", "the map on the other side"),
            ("\"a=b", "is not a JSON string"),
        ] {
            let error = map(inside).unwrap_err();
            assert!(error.contains(words), "{inside}: {error}");
        }
        let many: Vec<String> = (0..=MOST)
            .map(|index| format!("l{index}=r{index}"))
            .collect();
        assert!(map(&many.join("|")).unwrap_err().contains("at most"));
    }
}
