//! Choices that depend on a seed alone, and the values that they choose among.

use super::json::Json;
use super::pattern::{Absence, Hole, Place, Shape};

/// SplitMix64.
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

/// Texts for JSON.
const TEXTS: [&str; 20] = [
    "\u{1}\u{7f}",
    "\u{2028}",
    "ﬀ\u{301}",
    "\r\n\t\u{8}",
    "a",
    "b1",
    "",
    "é ü",
    "a/b",
    "1",
    "true",
    "null",
    "say \"q\"",
    "a\\b",
    "one\ntwo",
    "{b}",
    "😀",
    "%2F",
    "a+b&c=d",
    " ",
];
/// Texts for a path or a query, where they are neither empty nor dots.
const URL_TEXTS: [&str; 17] = [
    "...",
    "a:b",
    "*",
    "100%",
    " a ",
    "😀",
    "~!$'(),;@",
    "a",
    "b1",
    "é ü",
    "a/b",
    "1",
    "true",
    "{b}",
    "%2F",
    "a+b&c=d?#",
    "a.b",
];
/// Texts for a header, and for the middle of a text.
const PLAIN_TEXTS: [&str; 6] = ["a", "b1", "x y", "7", "null", "a=b"];
const INTEGERS: [&str; 5] = ["0", "-1", "7", "5", "123456789012345678901234567890"];
const NUMBERS: [&str; 6] = ["1.10", "1e3", "-0.5", "5", "0.0", "98765432109876543210.5"];
/// What a hole of no type may hold in JSON.
const ANY: [&str; 12] = [
    "null",
    "true",
    "0",
    "1.10",
    "-1E+2",
    "123456789012345678901234567890",
    "\"\"",
    "\"x\"",
    "[]",
    "{}",
    "{\"k\":[1,{}],\"K2\":null}",
    "[[1.0],\"a\"]",
];

impl Dice {
    pub(crate) fn of(seed: u64) -> Dice {
        Dice(seed)
    }

    /// From 0, below this.
    pub(crate) fn below(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        usize::try_from(mixed % u64::try_from(sides).unwrap()).unwrap()
    }

    /// Once in so many throws.
    pub(crate) fn once_in(&mut self, sides: usize) -> bool {
        self.below(sides) == 0
    }

    pub(crate) fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }

    fn scalar(&mut self, shape: &Shape, place: Place) -> Json {
        match (shape, place) {
            (Shape::Integer, _) => Json::number(self.pick(&INTEGERS)),
            (Shape::Status, _) => Json::number(self.pick(&[400, 418, 451, 503, 599])),
            (Shape::Code, _) => Json::number(self.pick(&[-32000, 7, -1, 0, 32_768])),
            (Shape::Number, _) => Json::number(self.pick(&NUMBERS)),
            (Shape::Boolean, _) => Json::Boolean(self.once_in(2)),
            (Shape::Enum, _) => Json::text(self.pick(&["p", "r"])),
            (Shape::Any, Place::Json) => Json::parse(self.pick(&ANY)),
            (Shape::Object, _) => self.members(),
            (Shape::Array, _) => Json::parse(self.pick(&["[]", "[1.10,null]", "[{\"a\":[]}]"])),
            (Shape::Encoded, Place::Query) => Json::parse(self.pick(&ANY)),
            (_, Place::Json) => Json::text(self.pick(&TEXTS)),
            (_, Place::Path | Place::Query) => Json::text(self.pick(&URL_TEXTS)),
            (_, Place::Header | Place::Mixed) => Json::text(self.pick(&PLAIN_TEXTS)),
            (_, Place::Deep) => Json::text(format!("dir/{}", self.pick(&["a", "é", "x y"]))),
        }
    }

    /// Members that no pattern names.
    pub(crate) fn members(&mut self) -> Json {
        let names = ["zone", "é", "z 2"];
        let some = names.into_iter().take(self.below(4));
        let named = some.map(|name| (name.to_owned(), Json::parse(self.pick(&ANY))));
        Json::Object(named.collect())
    }

    /// A value for a hole, or none where it may be absent.
    pub(crate) fn value(&mut self, hole: &Hole) -> Option<Json> {
        let may_be_absent = !matches!(hole.absence, Absence::Required);
        if may_be_absent && self.once_in(3) {
            return None;
        }
        if let Absence::Default(value) | Absence::OmittedDefault(value) = &hole.absence
            && self.once_in(3)
        {
            return Some(value.clone());
        }
        let is_text = matches!(hole.shape, Shape::Any | Shape::Text);
        if may_be_absent && is_text && hole.place == Place::Query && self.once_in(6) {
            return Some(Json::text(""));
        }
        if may_be_absent && matches!(hole.shape, Shape::Separated(_)) && self.once_in(6) {
            return Some(Json::List(Vec::new()));
        }
        let (Shape::Repeated(element) | Shape::Separated(element)) = &hole.shape else {
            return Some(self.scalar(&hole.shape, hole.place));
        };
        let (element, place) = (element.as_ref(), Place::Mixed);
        let count = 1 + self.below(3);
        Some(Json::List(
            (0..count).map(|_| self.scalar(element, place)).collect(),
        ))
    }
}
