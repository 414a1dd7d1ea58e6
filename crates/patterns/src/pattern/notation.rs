//! Patterns as text for route listings and explanations; this text is never parsed.

use super::{
    Absence, Codec, EachPattern, EitherPattern, HoleFacts, HoleSource, JsonText, ListPattern,
    ObjectPattern, Pattern, Role, Scalar, Shape, Slot, TextPart, TextPattern, TextPatterns,
};
use crate::json::Json;

fn text_of(json: &Json) -> String {
    String::from_utf8_lossy(json.as_bytes()).into_owned()
}

fn quoted(text: &str) -> String {
    text_of(&Json::string(text))
}

impl Scalar {
    /// Returns the name of the type: `integer`, `enum(a|b)`.
    #[must_use]
    pub fn to_notation(&self) -> String {
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
    pub fn to_notation(&self) -> String {
        match self {
            Shape::Any => "any".to_owned(),
            Shape::One(scalar) => scalar.to_notation(),
            Shape::Repeated(scalar) => format!("{}[]", scalar.to_notation()),
            Shape::Separated(scalar, delimiter) => {
                format!("{}{}", scalar.to_notation(), delimiter.to_notation())
            }
            Shape::Object => "object".to_owned(),
            Shape::Array => "array".to_owned(),
            Shape::Null => "null".to_owned(),
        }
    }
}

impl Shape {
    /// Returns the suffix of the type of a list: `[]`, `[,]`.
    fn list_notation(&self) -> &'static str {
        match self {
            Shape::Repeated(_) => "[]",
            Shape::Separated(_, delimiter) => delimiter.to_notation(),
            Shape::Any | Shape::One(_) | Shape::Object | Shape::Array | Shape::Null => "",
        }
    }
}

impl Slot {
    /// Returns the hole with its type, `?` and default: `limit:integer=50`.
    #[must_use]
    pub fn to_notation(&self) -> String {
        let (name, shape) = (&self.name, self.shape.to_notation());
        match &self.absence {
            Absence::Required => format!("{name}:{shape}"),
            Absence::Optional => format!("{name}:{shape}?"),
            Absence::Default(default) => format!("{name}:{shape}={}", text_of(default)),
            Absence::OmittedDefault(default) => format!("{name}:{shape}?={}", text_of(default)),
        }
    }

    /// Returns the hole as it appears in a pattern, by name without type: `{limit}`, `{>now}`, `{_}`.
    #[must_use]
    pub fn to_reference(&self) -> String {
        let codec = match &self.codec {
            Codec::Plain | Codec::Percent => String::new(),
            Codec::Json(JsonText::Plain) => ":json".to_owned(),
            Codec::Json(JsonText::Base64) => ":base64".to_owned(),
            Codec::Page(page) => format!(":{}", page.to_notation()),
            Codec::Keys(styles) => format!(":{}", styles.to_notation()),
            Codec::Map(map) => format!(":{}{}", map.to_notation(), self.shape.list_notation()),
        };
        match &self.role {
            Role::Shared(_) => format!("{{{}{codec}}}", self.name),
            Role::WriteOnly(HoleSource::Hole(_) | HoleSource::Call(_) | HoleSource::Now) => {
                format!("{{>{}{codec}}}", self.name)
            }
            Role::ReadOnly(_) => format!("{{<{}{codec}}}", self.name),
            Role::Equal(_) => {
                let may_be_absent = if self.is_required() { "" } else { "?" };
                format!("{{={}{may_be_absent}}}", self.name)
            }
            Role::Ignored(None) => "{_}".to_owned(),
            Role::Ignored(Some(value)) => format!("{{_={}}}", text_of(value)),
        }
    }
}

impl HoleFacts {
    /// Returns each hole with the type, `?` and default of the first slot that binds it; only the name if there is none.
    #[must_use]
    pub fn to_notations(&self, slots: &[&Slot]) -> Vec<String> {
        let holes = self.holes.iter().enumerate();
        let holes = holes.filter(|(_, hole)| !hole.is_choice());
        let holes = holes.map(|(place, hole)| {
            let slot = slots.iter().find(|slot| slot.binds() == Some(place));
            slot.map_or_else(|| hole.name.clone(), |slot| slot.to_notation())
        });
        holes.collect()
    }
}

impl Pattern {
    /// Returns the pattern as JSON with holes in strings: `{"code":"{code}"}`.
    #[must_use]
    pub fn to_notation(&self) -> String {
        match self {
            Pattern::Literal(json) => text_of(json),
            Pattern::Hole(slot) => quoted(&slot.to_reference()),
            Pattern::Text(text) => quoted(&text.to_notation()),
            Pattern::Object(object) => object.to_notation(),
            Pattern::List(list) => list.to_notation(),
            Pattern::Each(each) => each.to_notation(),
            Pattern::Either(either) => either.to_notation(),
        }
    }
}

impl ObjectPattern {
    fn to_notation(&self) -> String {
        let member = |name: &str, value: String| format!("{}:{value}", quoted(name));
        let named = self.members.iter();
        let named = named.map(|(name, pattern)| member(name, pattern.to_notation()));
        let rest = self.rest.iter();
        let rest = rest.map(|slot| member("...", quoted(&slot.to_reference())));
        format!("{{{}}}", named.chain(rest).collect::<Vec<_>>().join(","))
    }
}

impl ListPattern {
    fn to_notation(&self) -> String {
        let items = self.items.iter().map(Pattern::to_notation);
        let rest = self.rest.iter();
        let rest = rest.map(|slot| format!("\"{{{}...}}\"", slot.name));
        format!("[{}]", items.chain(rest).collect::<Vec<_>>().join(","))
    }
}

impl EachPattern {
    fn to_notation(&self) -> String {
        format!("[\"*\",{}]", self.item.to_notation())
    }
}

impl EitherPattern {
    fn to_notation(&self) -> String {
        let sign = if self.choice.is_some() { "{|}" } else { "{/}" };
        let patterns = self.alternatives.iter().map(Pattern::to_notation);
        let patterns = patterns.collect::<Vec<_>>().join(",");
        format!("[\"{sign}\",{patterns}]")
    }
}

impl TextPattern {
    /// Returns the text with its holes.
    #[must_use]
    pub fn to_notation(&self) -> String {
        let parts = self.parts.iter().map(|part| match part {
            TextPart::Text(text) => text.clone(),
            TextPart::Hole(slot) => slot.to_reference(),
        });
        parts.collect()
    }
}

impl TextPatterns {
    /// Returns the text with its holes.
    #[must_use]
    pub fn to_notation(&self) -> String {
        match self {
            TextPatterns::Literal(text) => text.clone(),
            TextPatterns::Hole(slot) => slot.to_reference(),
            TextPatterns::Mixed(text) => text.to_notation(),
        }
    }
}
