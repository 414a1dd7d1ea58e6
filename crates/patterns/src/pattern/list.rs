//! Lists in texts: one text for each element, or one text with delimiters. Used by `pattern::value`.

use std::borrow::Cow;
use std::ops::Range;

use super::{BoundValue, Codec, Delimiter, Scalar, Slot};
use crate::json::{Json, JsonKind};

impl Slot {
    /// Returns the texts of the elements of a list.
    pub(super) fn elements<'v>(
        &'v self,
        scalar: &Scalar,
        value: &'v Json,
    ) -> Result<Vec<Cow<'v, str>>, String> {
        must_be_array(value)?;
        let texts = value.elements().enumerate();
        let texts = texts.map(|(index, range)| self.element(scalar, value, index, range));
        let texts: Vec<Cow<'v, str>> = texts.collect::<Result<_, _>>()?;
        if texts.is_empty() && self.is_required() {
            Err("it must not be empty".into())
        } else {
            Ok(texts)
        }
    }

    /// Returns the one text of a list.
    pub(super) fn separated(
        &self,
        scalar: &Scalar,
        delimiter: Delimiter,
        value: &Json,
    ) -> Result<Option<String>, String> {
        let character = delimiter.as_char();
        must_be_array(value)?;
        let mut joined = String::with_capacity(value.as_bytes().len());
        let mut count = 0;
        let mut within = None;
        for range in value.elements() {
            let text = self.element(scalar, value, count, range)?;
            if text.contains(character) {
                within = within.or(Some(count));
            }
            if count > 0 {
                joined.push(character);
            }
            joined.push_str(&text);
            count += 1;
        }
        match (count, within) {
            (0, _) if self.is_required() => Err("it must not be empty".into()),
            (0, _) => Ok(None),
            (_, Some(index)) => Err(format!(
                "element {index}: it contains {}, which separates the elements of this list",
                delimiter.named()
            )),
            (1, None) if joined.is_empty() => {
                Err("element 0: one empty element is indistinguishable from an empty list".into())
            }
            (_, None) => Ok(Some(joined)),
        }
    }
}

impl Slot {
    /// Reads texts into a list of values.
    pub(super) fn read_list<'t>(
        &self,
        scalar: &Scalar,
        texts: impl Iterator<Item = &'t str>,
    ) -> Result<BoundValue, String> {
        match &self.codec {
            Codec::Map(map) => map.read_texts(texts).map(BoundValue::Value),
            Codec::Plain | Codec::Json(_) | Codec::Percent | Codec::Keys(_) | Codec::Page(_) => {
                scalar.read_list(texts)
            }
        }
    }

    /// Returns the text of an element.
    fn element<'v>(
        &'v self,
        scalar: &Scalar,
        value: &'v Json,
        index: usize,
        range: Range<usize>,
    ) -> Result<Cow<'v, str>, String> {
        let text = self.text_of(scalar, &value.as_bytes()[range]);
        text.map_err(|what| format!("element {index}: {what}"))
    }
}

fn must_be_array(value: &Json) -> Result<(), String> {
    match value.kind() {
        JsonKind::Array => Ok(()),
        kind @ (JsonKind::Object
        | JsonKind::String
        | JsonKind::Number
        | JsonKind::Boolean
        | JsonKind::Null) => Err(format!("it must be an array, not {}", kind.described())),
    }
}
