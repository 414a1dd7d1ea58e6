//! The encodings of values at their positions. Used by `pattern`.

use std::borrow::Cow;

use super::{Codec, Scalar, Slot, ValueMap};

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
