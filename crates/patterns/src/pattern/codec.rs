//! The encodings of values at their positions. Used by `pattern`.

use std::borrow::Cow;

use base64::alphabet;
use base64::engine::{DecodePaddingMode, Engine as _, GeneralPurpose, GeneralPurposeConfig};

use super::{Codec, JsonText, PatternError, Scalar, Shape, Slot, TextPatterns, ValueMap};
use crate::json::Json;

impl JsonText {
    /// Returns the JSON text in a string.
    pub(super) fn decode(self, text: &str) -> Result<Cow<'_, str>, String> {
        match self {
            JsonText::Plain => Ok(Cow::Borrowed(text)),
            JsonText::Base64 => {
                let bytes = BASE64
                    .decode(text)
                    .map_err(|_| "it is not base64".to_owned())?;
                let decoded = String::from_utf8(bytes);
                decoded
                    .map(Cow::Owned)
                    .map_err(|_| "it is not base64 of UTF-8".to_owned())
            }
        }
    }

    /// Returns the string that contains a JSON text.
    #[must_use]
    pub fn encode(self, text: String) -> String {
        match self {
            JsonText::Plain => text,
            JsonText::Base64 => BASE64.encode(text),
        }
    }
}

/// Writes padding and accepts a text without it.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

impl Codec {
    /// Returns true for JSON in a string.
    #[must_use]
    pub fn is_json(&self) -> bool {
        matches!(self, Codec::Json(_))
    }

    /// Returns the map.
    #[must_use]
    pub fn map(&self) -> Option<&ValueMap> {
        match self {
            Codec::Map(map) => Some(map),
            Codec::Plain | Codec::Json(_) | Codec::Percent | Codec::Keys(_) | Codec::Page(_) => {
                None
            }
        }
    }

    /// Returns true if the value here differs from that of the hole.
    #[must_use]
    pub fn changes_value(&self) -> bool {
        match self {
            Codec::Map(_) | Codec::Keys(_) | Codec::Page(_) => true,
            Codec::Plain | Codec::Json(_) | Codec::Percent => false,
        }
    }

    /// Returns true if a list here has an own text for each element, and not one for the JSON of all.
    #[must_use]
    pub fn keeps_elements(&self) -> bool {
        match self {
            Codec::Plain | Codec::Map(_) => true,
            Codec::Json(_) | Codec::Percent | Codec::Keys(_) | Codec::Page(_) => false,
        }
    }
}

impl TextPatterns {
    /// Returns true if a page here has its offset in the hole with this name.
    #[must_use]
    pub fn has_page_of(&self, name: &str) -> bool {
        self.slots().iter().any(|slot| slot.is_page_of(name))
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
            Codec::Plain | Codec::Json(_) | Codec::Percent | Codec::Keys(_) | Codec::Page(_) => {
                scalar.write(value)
            }
        }
    }
}
