//! Sample values for each hole: plain ones first, followed by edge cases. Used by `check::subject`.

use super::locations::{LocatedHole, LocationKind, Locations};
use crate::route::{Route, SegmentPattern};
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::{Absence, HoleFacts, Scalar, Shape};
use dualgauge_patterns::percent::{Plus, decode};

/// The values tried for one hole; `None` stands for an absent value.
#[derive(Debug, Clone)]
pub(super) struct Samples {
    /// Ordinary values.
    pub(super) plain: Vec<Json>,
    /// Edge cases.
    pub(super) odd: Vec<Option<Json>>,
}

impl Samples {
    /// Returns the plain value of a round; rounds are tried one after the other until one passes.
    pub(super) fn plain(&self, round: usize) -> Json {
        let plain = self.plain.get(round % self.plain.len().max(1));
        plain.cloned().unwrap_or(Json::literal("null"))
    }

    /// Returns all values.
    pub(super) fn all(&self) -> impl Iterator<Item = Option<Json>> {
        let plain = self.plain.iter().cloned().map(Some);
        plain.chain(self.odd.iter().cloned())
    }
}

/// Returns the values of all holes of a pair.
pub(super) fn samples(facts: &HoleFacts, sides: [&Locations<'_>; 2]) -> Vec<Samples> {
    let holes = facts.holes.iter().enumerate();
    holes
        .map(|(hole, fact)| {
            let mut located = Vec::new();
            for locations in sides {
                let own = |located: &&LocatedHole<'_>| located.slot.binds() == Some(hole);
                located.extend(locations.holes.iter().filter(own));
            }
            let mut samples = of_hole(&fact.shape, &located);
            let equal = sides.iter().flat_map(|locations| &locations.holes);
            for located in equal.filter(|located| located.slot.equals() == Some(hole)) {
                samples.keep_equal(&fact.shape, &located.slot.shape);
            }
            samples
        })
        .collect()
}

impl Samples {
    /// Keeps the plain values that also have a form in the type of another place.
    fn keep_equal(&mut self, own: &Shape, other: &Shape) {
        let text = |value: &Json| Json::string(&String::from_utf8_lossy(value.as_bytes()));
        let (values, _) = of_shape(other);
        let fits = |value: &Json| own.check(value).is_ok();
        let forms = values
            .into_iter()
            .map(|value| if fits(&value) { value } else { text(&value) });
        let fitting: Vec<Json> = forms.filter(fits).collect();
        if !fitting.is_empty() && other.scalar().is_some() {
            self.plain = fitting;
        }
    }
}

fn of_hole(shape: &Shape, located: &[&LocatedHole<'_>]) -> Samples {
    let is_number = located
        .iter()
        .any(|located| located.kind == LocationKind::Number && located.slot.codec.map().is_none());
    let is_captured = (located.iter()).any(|located| located.kind == LocationKind::Captured);
    let (mut plain, mut odd) = if is_number {
        (jsons(&["418", "503", "409"]), Vec::new())
    } else if is_captured {
        let plain = jsons(&["{\"k\":\"v\"}", "{\"q\":[\"a b\",\"c\"],\"z\":\"1\"}"]);
        let odd = jsons(&["{}", "{\"k\":\"\"}", "{\"k\":1}"]);
        (plain, odd.into_iter().map(Some).collect())
    } else {
        of_shape(shape)
    };
    for located in located {
        match &located.slot.absence {
            Absence::Required => {}
            Absence::Optional => odd.push(None),
            Absence::Default(default) | Absence::OmittedDefault(default) => {
                plain.retain(|value| !value.same(default));
                odd.push(Some(default.clone()));
            }
        }
    }
    if plain.is_empty() {
        plain.extend(odd.iter().flatten().take(1).cloned());
    }
    odd.dedup();
    Samples { plain, odd }
}

/// Returns a value for a hole of the path that spans several segments: `items/a1` for `items/*`.
pub(super) fn spanned(route: &Route, hole: usize) -> Option<Json> {
    let path = &route.rest_call.path;
    let placed = path
        .holes
        .iter()
        .find(|placed| placed.slot.binds() == Some(hole))?;
    let segments = path.segments.get(placed.start..placed.end)?;
    if let [SegmentPattern::One | SegmentPattern::Text(_)] = segments {
        return None;
    }
    let texts = segments.iter().map(|segment| match segment {
        SegmentPattern::Literal(text) => {
            decode(text, Plus::Literal).map_or_else(|_| text.clone(), std::borrow::Cow::into_owned)
        }
        SegmentPattern::Text(_) | SegmentPattern::One => "a1".to_owned(),
        SegmentPattern::Rest => "b/c".to_owned(),
    });
    Some(Json::string(&texts.collect::<Vec<_>>().join("/")))
}

fn jsons(texts: &[&'static str]) -> Vec<Json> {
    texts.iter().map(|text| Json::literal(text)).collect()
}

fn of_shape(shape: &Shape) -> (Vec<Json>, Vec<Option<Json>>) {
    let (plain, odd): (Vec<Json>, Vec<Json>) = match shape {
        Shape::Any => (
            jsons(&["\"a1\"", "{\"k\":1.10}", "[7]"]),
            jsons(&["7", "true", "null", "\"\"", "{}", "[]", "{\"k\": [1, {}]}"]),
        ),
        Shape::One(scalar) => of_scalar(scalar),
        Shape::Repeated(scalar) | Shape::Separated(scalar, _) => {
            let (plain, odd) = of_scalar(scalar);
            let list = |values: &[&Json]| {
                let texts = values
                    .iter()
                    .map(|value| String::from_utf8_lossy(value.as_bytes()));
                Json::written(format!("[{}]", texts.collect::<Vec<_>>().join(",")))
            };
            let one = plain.iter().map(|value| list(&[value])).collect();
            let two = plain.iter().chain(&odd).map(|value| list(&[value, value]));
            (one, two.chain([Json::literal("[]")]).collect())
        }
        Shape::Object => (
            jsons(&["{\"k\":1.10}", "{\"q\":[]}"]),
            jsons(&["{}", "{\"k\": \"\\u0041\"}"]),
        ),
        Shape::Array => (jsons(&["[7]", "[\"a1\",{}]"]), jsons(&["[]"])),
        Shape::Null => (jsons(&["null"]), Vec::new()),
    };
    (plain, odd.into_iter().map(Some).collect())
}

fn of_scalar(scalar: &Scalar) -> (Vec<Json>, Vec<Json>) {
    match scalar {
        Scalar::String => (
            jsons(&["\"a1\"", "\"q\"", "\"Z_9\""]),
            jsons(&[
                "\"\"",
                "\"b c/d?&=+%\"",
                "\"\\u00e9\"",
                "\"7\"",
                "\"null\"",
                "\" \"",
            ]),
        ),
        Scalar::Integer => (
            jsons(&["7", "42", "-3"]),
            jsons(&["0", "123456789012345678901234567890"]),
        ),
        Scalar::Number => (jsons(&["1.5", "42", "-3"]), jsons(&["0", "1.10", "1e3"])),
        Scalar::Boolean => (jsons(&["true", "false"]), Vec::new()),
        Scalar::Enum(words) => (
            words.iter().map(|word| Json::string(word)).collect(),
            Vec::new(),
        ),
    }
}
