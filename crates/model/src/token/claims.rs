//! The claims of a verified token. Used by `config`, `rollout` and `gateway`.

use core::fmt;
use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::rollout::Glob;

/// The claims of a token with a verified signature.
#[derive(Clone, PartialEq)]
pub struct Claims(Map<String, Value>);

/// Hides the claims, which concern a person.
impl fmt::Debug for Claims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Claims(***)")
    }
}

impl Claims {
    /// Returns the claims of a token.
    #[must_use]
    pub fn new(members: Map<String, Value>) -> Claims {
        Claims(members)
    }

    /// Returns whether a claim is present.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Returns a claim that is a number.
    pub(super) fn number(&self, name: &str) -> Option<f64> {
        self.0.get(name)?.as_f64()
    }

    /// Returns whether a claim is this text, or a list that contains it.
    pub(super) fn names(&self, name: &str, text: &str) -> bool {
        let is_text = |value: &Value| value.as_str() == Some(text);
        self.0.get(name).is_some_and(|value| match value {
            Value::Array(items) => items.iter().any(is_text),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Object(_) => is_text(value),
        })
    }
}

/// The path of a claim: a name, or names of nested claims separated by dots. A claim whose own name has dots, such as a
/// URL, takes precedence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimPath(String);

impl ClaimPath {
    /// Returns the path for a text; every text is one.
    #[must_use]
    pub fn new(path: impl Into<String>) -> ClaimPath {
        ClaimPath(path.into())
    }

    /// Returns the path as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether the claim matches: its text, or one of the texts of a list.
    #[must_use]
    pub fn fits(&self, claims: &Claims, glob: &Glob) -> bool {
        let fits = |value: &Value| text(value).is_some_and(|text| glob.fits(&text));
        match self.find(claims) {
            Some(Value::Array(items)) => items.iter().any(fits),
            Some(value) => fits(value),
            None => false,
        }
    }

    /// Returns the text of the claim, if it is one text or number and not empty.
    #[must_use]
    pub fn text(&self, claims: &Claims) -> Option<String> {
        let text = text(self.find(claims)?)?;
        (!text.is_empty()).then(|| text.into_owned())
    }

    fn find<'c>(&self, claims: &'c Claims) -> Option<&'c Value> {
        claims.0.get(&self.0).or_else(|| {
            let mut names = self.0.split('.');
            let first = claims.0.get(names.next()?)?;
            names.try_fold(first, |value, name| value.as_object()?.get(name))
        })
    }
}

/// Returns a value as text for a glob; lists, objects and null have none.
fn text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Bool(truth) => Some(Cow::Owned(truth.to_string())),
        Value::Number(number) => Some(Cow::Owned(number.to_string())),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
