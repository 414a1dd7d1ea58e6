//! Checks of values against their shape, and descriptions of shapes.

use super::{Scalar, Shape};
use crate::json::{Json, JsonKind};

impl Shape {
    /// Checks that a value has this shape.
    ///
    /// # Errors
    ///
    /// Describes the expected value.
    pub fn check(&self, value: &Json) -> Result<(), String> {
        let kind = value.kind();
        let right = match self {
            Shape::Any => true,
            Shape::One(scalar) => return scalar.check(value.as_bytes()),
            Shape::Object => kind == JsonKind::Object,
            Shape::Array => kind == JsonKind::Array,
            Shape::Null => kind == JsonKind::Null,
            Shape::Repeated(scalar) | Shape::Separated(scalar, _) => {
                if kind == JsonKind::Array {
                    for (index, range) in value.elements().enumerate() {
                        scalar
                            .check(&value.as_bytes()[range])
                            .map_err(|what| format!("element {index}: {what}"))?;
                    }
                }
                kind == JsonKind::Array
            }
        };
        if right {
            Ok(())
        } else {
            let wanted = match self {
                Shape::Repeated(_) | Shape::Separated(..) => Shape::Array.described(),
                Shape::Any | Shape::One(_) | Shape::Object | Shape::Array | Shape::Null => {
                    self.described()
                }
            };
            Err(format!("it must be {wanted}, not {}", kind.described()))
        }
    }

    /// Returns a value of this shape in its normal form.
    ///
    /// # Errors
    ///
    /// Describes the expected value.
    #[inline]
    pub(super) fn take(&self, value: Json) -> Result<Json, String> {
        match self.check(&value) {
            Ok(()) => Ok(value),
            Err(what) => self.with_plain_integers(&value).ok_or(what),
        }
    }

    /// Parses a default as a value of this shape.
    pub(super) fn check_default(&self, default: &str) -> Result<Json, String> {
        let bare = matches!(self, Shape::One(Scalar::String | Scalar::Enum(_)));
        let parsed = Json::parse(bytes::Bytes::copy_from_slice(default.as_bytes()), 16);
        let json = match parsed {
            Ok(json) if !bare || json.kind() == JsonKind::String => json,
            Ok(_) | Err(_) if bare => Json::string(default),
            Err(_) if *self == Shape::Any => Json::string(default),
            Ok(_) | Err(_) => {
                return Err(format!(
                    "the default `{default}` is not {}",
                    self.described()
                ));
            }
        };
        self.take(json)
            .map_err(|what| format!("the default `{default}`: {what}"))
    }

    /// Describes the accepted values, for messages.
    #[must_use]
    pub fn described(&self) -> String {
        match self {
            Shape::Any => "any value".into(),
            Shape::One(scalar) => scalar.described(),
            Shape::Object => "an object".into(),
            Shape::Array => "an array".into(),
            Shape::Null => "null".into(),
            Shape::Repeated(scalar) | Shape::Separated(scalar, _) => {
                format!("an array, each element {}", scalar.described())
            }
        }
    }
}
