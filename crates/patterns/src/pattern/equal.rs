//! `{=x}`: a value that must equal the value of another hole, and binds none itself.
//!
//! Values are compared by value, not by spelling. A text equals the number or boolean that it spells, so the `7` of a
//! path equals `7`, `7.0` and `"7"` in a body. Law: a value written here reads as equal.

use std::borrow::Cow;

use super::number::Number;
use super::{Absence, BoundValue, MatchError, PatternReader, Scalar, Slot};
use crate::json::{Json, JsonKind, is_number};

impl Slot {
    /// Reads a JSON value without binding it. It is kept only for the comparison.
    pub(super) fn take_unbound(&self, value: Json) -> Result<BoundValue, String> {
        if self.equals().is_none() {
            return Ok(BoundValue::Absent);
        }
        if self.absence == Absence::Optional && value.kind() == JsonKind::Null {
            return Ok(BoundValue::Absent);
        }
        self.shape.take(value).map(BoundValue::Value)
    }

    /// Returns the value of the other hole in the type of this slot.
    pub(super) fn equal_json<'b>(&self, value: Cow<'b, Json>) -> Result<Cow<'b, Json>, String> {
        let Err(what) = self.shape.check(&value) else {
            return Ok(value);
        };
        let converted = match (self.shape.scalar(), value.text()) {
            (Some(Scalar::String | Scalar::Enum(_)), None) => {
                Some(Json::string(&String::from_utf8_lossy(value.as_bytes())))
            }
            (Some(Scalar::Integer | Scalar::Number | Scalar::Boolean), Some(Ok(text))) => {
                Json::parse(text.into(), 0).ok()
            }
            (_, _) => None,
        };
        let converted = converted.and_then(|value| self.shape.take(value).ok());
        converted.map(Cow::Owned).ok_or(what)
    }
}

impl PatternReader {
    /// Compares a value with that of the hole it must equal. A hole that has not been read accepts any value.
    #[cold]
    pub(super) fn compare(&self, slot: &Slot, value: &BoundValue) -> Result<(), MatchError> {
        let Some(hole) = slot.equals() else {
            return Ok(());
        };
        let is_equal = match (value, self.bindings.get(hole)) {
            (BoundValue::Absent | BoundValue::Unbound, _) | (_, BoundValue::Unbound) => true,
            (BoundValue::Value(one), BoundValue::Value(other)) => equal(one, other),
            (BoundValue::Value(_) | BoundValue::Members(_) | BoundValue::Each(_), _) => false,
        };
        if is_equal {
            Ok(())
        } else {
            let what = format!(
                "it differs from `{}` in the path, the query or a header",
                slot.name
            );
            Err(MatchError::here(what))
        }
    }
}

/// Returns true if two values are equal; a text may spell a number or a boolean.
fn equal(one: &Json, other: &Json) -> bool {
    if one.same(other) {
        return true;
    }
    match (one.text(), other.text()) {
        (Some(Ok(text)), None) => spells(&text, other),
        (None, Some(Ok(text))) => spells(&text, one),
        (None, None) => match (number(one), number(other)) {
            (Some(one), Some(other)) => one == other,
            (_, _) => false,
        },
        (_, _) => false,
    }
}

/// Returns true if a text spells a number or a boolean.
fn spells(text: &str, value: &Json) -> bool {
    match value.kind() {
        JsonKind::Boolean => text.as_bytes() == value.as_bytes(),
        JsonKind::Number if text.as_bytes() == value.as_bytes() => true,
        JsonKind::Number => {
            let spelled = Some(text).filter(|text| is_number(text.as_bytes()));
            spelled
                .and_then(Number::from_text)
                .is_some_and(|spelled| number(value) == Some(spelled))
        }
        JsonKind::Object | JsonKind::Array | JsonKind::String | JsonKind::Null => false,
    }
}

fn number(value: &Json) -> Option<Number> {
    let text = std::str::from_utf8(value.as_bytes()).ok()?;
    Number::from_text(text).filter(|_| value.kind() == JsonKind::Number)
}
