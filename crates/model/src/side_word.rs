//! A side as its word, `rest` or `rpc`, in serialized records: for `#[serde(with = "...")]`.
//!
//! Used by `explain::view` and `lifecycle::usage`.

use std::borrow::Cow;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

use dualgauge_patterns::side::Side;

pub(crate) fn serialize<S: Serializer>(side: &Side, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(side.as_str())
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Side, D::Error> {
    let word = Cow::<str>::deserialize(deserializer)?;
    let side = Side::ALL.into_iter().find(|side| side.as_str() == word);
    side.ok_or_else(|| D::Error::custom("a side is `rest` or `rpc`"))
}
