//! The encodings of values at their positions. Used by `pattern`.

use std::borrow::Cow;

use super::{Codec, PatternError, Scalar, Shape, Slot, ValueMap};
use crate::json::Json;

impl Codec {
    /// Returns the map.
    #[must_use]
    pub fn map(&self) -> Option<&ValueMap> {
        match self {
            Codec::Map(map) => Some(map),
            Codec::Plain | Codec::Json | Codec::Percent | Codec::Keys(_) | Codec::Page(_) => None,
        }
    }

    /// Returns true if the value here differs from that of the hole.
    #[must_use]
    pub fn changes_value(&self) -> bool {
        match self {
            Codec::Map(_) | Codec::Keys(_) | Codec::Page(_) => true,
            Codec::Plain | Codec::Json | Codec::Percent => false,
        }
    }

    /// Returns true if a list here has an own text for each element, and not one for the JSON of all.
    #[must_use]
    pub fn keeps_elements(&self) -> bool {
        match self {
            Codec::Plain | Codec::Map(_) => true,
            Codec::Json | Codec::Percent | Codec::Keys(_) | Codec::Page(_) => false,
        }
    }
}

impl Slot {
    /// Returns true if the page here has its offset in the hole with this name.
    #[must_use]
    pub fn is_page_of(&self, name: &str) -> bool {
        self.name == name && matches!(self.codec, Codec::Page(_))
    }

    /// Returns the left words of a map, each with a value of the hole that is written as this word here.
    #[must_use]
    pub fn map_words(&self) -> Vec<(&str, Json)> {
        let is_list = matches!(self.shape, Shape::Repeated(_) | Shape::Separated(..));
        let pairs = self.codec.map().into_iter().flat_map(ValueMap::pairs);
        let values = pairs.map(|(word, value)| match is_list {
            true => {
                let value = String::from_utf8_lossy(value.as_bytes());
                (word, Json::written(format!("[{value}]")))
            }
            false => (word, value.clone()),
        });
        values.collect()
    }

    /// Returns the error for a left word of the map that can never be written here.
    #[must_use]
    pub fn unwritable_word(&self, word: &str, what: &str) -> PatternError {
        PatternError::new(format!(
            "the left word `{word}` of the map of `{}`: {what}",
            self.name
        ))
    }

    /// Returns the text of a value or an element that is no JSON in a text.
    #[inline]
    pub(super) fn text_of<'v>(
        &'v self,
        scalar: &Scalar,
        value: &'v [u8],
    ) -> Result<Cow<'v, str>, String> {
        match &self.codec {
            Codec::Map(map) => map.write_text(value).map(Cow::Borrowed),
            // The offset of the first page is that of a default.
            Codec::Page(page) if value == b"0" => Ok(Cow::Owned(page.first().to_string())),
            Codec::Plain | Codec::Json | Codec::Percent | Codec::Keys(_) | Codec::Page(_) => {
                scalar.write(value)
            }
        }
    }
}
