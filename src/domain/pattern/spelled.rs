//! Patterns as text for route listings and explanations; this text is never parsed.

use super::{
    Absence, Codec, EachPattern, HoleSource, ListPattern, ObjectPattern, Pattern, Role, Scalar,
    Shape, Slot, TextPart, TextPattern, TextPatterns,
};
use crate::domain::json::Json;

fn text_of(json: &Json) -> String {
    String::from_utf8_lossy(json.as_bytes()).into_owned()
}

impl Scalar {
    /// Returns the name of the type: `integer`, `enum(a|b)`.
    #[must_use]
    pub fn spelled(&self) -> String {
        match self {
            Scalar::String => "string".to_owned(),
            Scalar::Integer => "integer".to_owned(),
            Scalar::Number => "number".to_owned(),
            Scalar::Boolean => "boolean".to_owned(),
            Scalar::Enum(words) => format!("enum({})", words.join("|")),
        }
    }
}

impl Shape {
    /// Returns the type as a hole declares it; `any` without a declaration.
    #[must_use]
    pub fn spelled(&self) -> String {
        match self {
            Shape::Any => "any".to_owned(),
            Shape::One(scalar) => scalar.spelled(),
            Shape::Repeated(scalar) => format!("{}[]", scalar.spelled()),
            Shape::Separated(scalar, delimiter) => {
                format!("{}{}", scalar.spelled(), delimiter.spelled())
            }
            Shape::Object => "object".to_owned(),
            Shape::Array => "array".to_owned(),
            Shape::Null => "null".to_owned(),
        }
    }
}

impl Slot {
    /// Returns the hole with its type, `?` and default: `limit:integer=50`.
    #[must_use]
    pub fn spelled(&self) -> String {
        let (name, shape) = (&self.name, self.shape.spelled());
        match &self.absence {
            Absence::Refused => format!("{name}:{shape}"),
            Absence::Preserved => format!("{name}:{shape}?"),
            Absence::Filled(default) => format!("{name}:{shape}={}", text_of(default)),
            Absence::Implied(default) => format!("{name}:{shape}?={}", text_of(default)),
        }
    }

    /// Returns the hole in braces, by name only: `{limit}`, `{>now}`, `{_}`.
    #[must_use]
    pub fn mentioned(&self) -> String {
        let codec = match self.codec {
            Codec::Plain | Codec::Percent => "",
            Codec::Json => ":json",
        };
        match &self.role {
            Role::Shared(_) => format!("{{{}{codec}}}", self.name),
            Role::Written(HoleSource::Hole(_) | HoleSource::Call(_) | HoleSource::Now) => {
                format!("{{>{}{codec}}}", self.name)
            }
            Role::Equal(_) => {
                let may_be_absent = if self.is_required() { "" } else { "?" };
                format!("{{={}{may_be_absent}}}", self.name)
            }
            Role::Forgotten(None) => "{_}".to_owned(),
            Role::Forgotten(Some(value)) => format!("{{_={}}}", text_of(value)),
        }
    }
}

impl Pattern {
    /// Returns the pattern as JSON with holes in strings: `{"code":"{code}"}`.
    #[must_use]
    pub fn spelled(&self) -> String {
        match self {
            Pattern::Literal(json) => text_of(json),
            Pattern::Hole(slot) => format!("\"{}\"", slot.mentioned()),
            Pattern::Text(text) => text_of(&Json::string(&text.spelled())),
            Pattern::Object(object) => object.spelled(),
            Pattern::List(list) => list.spelled(),
            Pattern::Each(each) => each.spelled(),
        }
    }
}

impl ObjectPattern {
    fn spelled(&self) -> String {
        let member =
            |name: &str, value: String| format!("{}:{value}", text_of(&Json::string(name)));
        let named = self.members.iter();
        let named = named.map(|(name, pattern)| member(name, pattern.spelled()));
        let rest = self.rest.iter();
        let rest = rest.map(|slot| member("...", format!("\"{}\"", slot.mentioned())));
        format!("{{{}}}", named.chain(rest).collect::<Vec<_>>().join(","))
    }
}

impl ListPattern {
    fn spelled(&self) -> String {
        let items = self.items.iter().map(Pattern::spelled);
        let rest = self.rest.iter();
        let rest = rest.map(|slot| format!("\"{{{}...}}\"", slot.name));
        format!("[{}]", items.chain(rest).collect::<Vec<_>>().join(","))
    }
}

impl EachPattern {
    fn spelled(&self) -> String {
        format!("[\"*\",{}]", self.item.spelled())
    }
}

impl TextPattern {
    /// Returns the text with its holes.
    #[must_use]
    pub fn spelled(&self) -> String {
        let parts = self.parts.iter().map(|part| match part {
            TextPart::Text(text) => text.clone(),
            TextPart::Hole(slot) => slot.mentioned(),
        });
        parts.collect()
    }
}

impl TextPatterns {
    /// Returns the text with its holes.
    #[must_use]
    pub fn spelled(&self) -> String {
        match self {
            TextPatterns::Literal(text) => text.clone(),
            TextPatterns::Hole(slot) => slot.mentioned(),
            TextPatterns::Mixed(text) => text.spelled(),
        }
    }
}
