//! Patterns for property tests, and values that fit them or nearly do. A [`Dice`] makes all choices, so a
//! failing case shrinks with the throws it was made of.

use std::sync::Arc;

use proptest::prelude::*;

use super::{
    Absence, Codec, Delimiter, EachPattern, EitherPattern, JsonText, KeyStyles, ListPattern, Null,
    ObjectPattern, Pattern, Role, Scalar, Shape, Slot, TextPart, TextPattern, TextPatterns,
    ValueMap,
};
use crate::json::Json;

mod values;

pub use values::{texts, value};

/// Throws that are known beforehand; when they are used up, each is zero.
#[derive(Clone)]
pub struct Dice {
    throws: Vec<u8>,
    next: usize,
}

impl std::fmt::Debug for Dice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(
            &bytes::Bytes::copy_from_slice(&self.throws)
                .escape_ascii()
                .to_string(),
        )
    }
}

impl Dice {
    /// Returns the next throw, below a number of sides.
    pub fn below(&mut self, sides: usize) -> usize {
        let throw = self.throws.get(self.next).copied().unwrap_or(0);
        self.next += 1;
        usize::from(throw) % sides
    }

    /// Returns one of these texts.
    pub fn pick<'t>(&mut self, from: &[&'t str]) -> &'t str {
        from[self.below(from.len())]
    }
}

/// Dice of any throws.
pub fn dice() -> impl Strategy<Value = Dice> {
    thrown(0..120)
}

/// Dice of any throws, as many as these.
pub fn thrown(count: std::ops::Range<usize>) -> impl Strategy<Value = Dice> {
    let throws = proptest::collection::vec(any::<u8>(), count);
    throws.prop_map(|throws| Dice { throws, next: 0 })
}

const NAMES: &[&str] = &["a", "b", "c", "A", "1"];
const TEXTS: &[&str] = &["x", "y", ": ", "-", "xx", "xyx", "1", "tru", "|"];
const WORDS: &[&str] = &["x", "y", "x-y", "1", "true", "x: y"];
const LITERALS: &[&str] = &[
    "1", "-2", "1.0", "true", "null", "\"x\"", "\"1\"", "\"x-y\"", "\"\"",
];

fn json(text: &'static str) -> Json {
    Json::literal(text)
}

fn scalar(dice: &mut Dice) -> Scalar {
    match dice.below(6) {
        0 | 1 => Scalar::String,
        2 => Scalar::Integer,
        3 => Scalar::Number,
        4 => Scalar::Boolean,
        _ => {
            let words = (0..1 + dice.below(2)).map(|_| dice.pick(WORDS).to_owned());
            Scalar::Enum(words.collect())
        }
    }
}

fn delimiter(dice: &mut Dice) -> Delimiter {
    Delimiter::ALL[dice.below(Delimiter::ALL.len())]
}

fn absence(dice: &mut Dice, shape: &Shape) -> Absence {
    let default = match shape {
        Shape::One(Scalar::Integer | Scalar::Number) | Shape::Any => json("1"),
        Shape::One(Scalar::Boolean) => json("true"),
        Shape::One(Scalar::Enum(words)) => Json::string(&words[0]),
        Shape::One(Scalar::String) => json("\"x\""),
        Shape::Repeated(_) | Shape::Separated(..) | Shape::Array => json("[]"),
        Shape::Object => json("{}"),
        Shape::Null => json("null"),
    };
    match dice.below(6) {
        0..=2 => Absence::Required,
        3 => Absence::Optional,
        4 => Absence::Default(default),
        _ => Absence::OmittedDefault(default),
    }
}

/// A few holes have the same number, and then all else is the same as well.
fn slot(dice: &mut Dice, shape: Shape) -> Slot {
    let role = match dice.below(8) {
        0 => Role::Ignored(None),
        _ => Role::Shared(0),
    };
    let absence = absence(dice, &shape);
    let null = match (&absence, dice.below(4)) {
        (Absence::Required, _) | (_, 0..=2) => Null::Value,
        (Absence::Optional | Absence::Default(_) | Absence::OmittedDefault(_), _) => Null::Absent,
    };
    let codec = match (dice.below(12), shape.scalar()) {
        (11, _) if dice.below(2) == 0 => Codec::Json(JsonText::Base64),
        (11, _) => Codec::Json(JsonText::Plain),
        (10, None) => match KeyStyles::parse(":keys(snake=camel)") {
            Some(Ok(styles)) => Codec::Keys(styles),
            _ => Codec::Plain,
        },
        (7.., Some(Scalar::Enum(words))) => map(dice, words),
        (_, _) => Codec::Plain,
    };
    let name = "h".to_owned();
    Slot {
        name,
        role,
        shape,
        absence,
        codec,
        null,
    }
}

/// A map of some literals to these words.
fn map(dice: &mut Dice, words: &[String]) -> Codec {
    let first = dice.below(LITERALS.len());
    let mut values = LITERALS.iter().cycle().skip(first);
    let pairs = words.iter().enumerate().filter_map(|(index, word)| {
        let twice = words[..index].contains(word);
        let value = values.find(|value| **value != "\"\"")?;
        (!twice).then(|| format!("{value}=\"{word}\""))
    });
    let pairs: Vec<String> = pairs.collect();
    let spelled = format!(":map({})", pairs.join("|"));
    match ValueMap::parse(&spelled) {
        Some(Ok((map, ""))) => Codec::Map(Arc::new(map)),
        _ => Codec::Plain,
    }
}

fn text(dice: &mut Dice) -> TextPattern {
    let mut parts = Vec::new();
    let start = dice.below(2);
    for index in 0..2 + dice.below(4) {
        if index % 2 == start {
            parts.push(TextPart::Text(dice.pick(TEXTS).to_owned()));
        } else {
            let scalar = match dice.below(2) {
                0 => Scalar::String,
                _ => scalar(dice),
            };
            let mut slot = slot(dice, Shape::One(scalar));
            // JSON inside of a longer text is compared by samples only.
            if slot.codec.is_json() {
                slot.codec = Codec::Plain;
            }
            parts.push(TextPart::Hole(slot));
        }
    }
    TextPattern { parts }
}

fn grown(dice: &mut Dice, depth: usize) -> Pattern {
    match dice.below(if depth == 0 { 6 } else { 12 }) {
        0 | 1 => Pattern::Literal(json(LITERALS[dice.below(LITERALS.len())])),
        2 => Pattern::Hole(slot(dice, Shape::Any)),
        3 | 4 => {
            let shape = match dice.below(8) {
                0 => Shape::Object,
                1 => Shape::Array,
                2 => Shape::Null,
                3 => Shape::Repeated(scalar(dice)),
                4 => Shape::Separated(scalar(dice), delimiter(dice)),
                _ => Shape::One(scalar(dice)),
            };
            Pattern::Hole(slot(dice, shape))
        }
        5 => Pattern::Text(text(dice)),
        6..=8 => Pattern::Object(object(dice, depth)),
        9 => Pattern::List(ListPattern {
            items: (0..dice.below(4)).map(|_| grown(dice, depth - 1)).collect(),
            rest: (dice.below(3) == 0).then(|| rest(dice, Shape::Array)),
        }),
        10 => either(dice, depth),
        _ => Pattern::Each(EachPattern {
            item: Box::new(grown(dice, depth - 1)),
            holes: Vec::new(),
        }),
    }
}

/// Alternatives.
fn either(dice: &mut Dice, depth: usize) -> Pattern {
    let count = 2 + dice.below(2);
    let alternatives = (0..count).map(|_| grown(dice, depth - 1));
    undecided(alternatives.collect())
}

/// Alternatives that are compared once their holes have numbers.
fn undecided(alternatives: Vec<Pattern>) -> Pattern {
    Pattern::Either(EitherPattern {
        choice: Some(Box::new(choice())),
        alternatives,
        plans: Vec::new(),
        order: Vec::new(),
    })
}

fn choice() -> Slot {
    Slot {
        name: "|".to_owned(),
        role: Role::Shared(0),
        shape: Shape::One(Scalar::Enum(Vec::new())),
        absence: Absence::Required,
        codec: Codec::Plain,
        null: Null::Value,
    }
}

fn rest(dice: &mut Dice, shape: Shape) -> Slot {
    let absence = Absence::Required;
    Slot {
        absence,
        codec: Codec::Plain,
        null: Null::Value,
        ..slot(dice, shape)
    }
}

fn object(dice: &mut Dice, depth: usize) -> ObjectPattern {
    let mut members: Vec<(String, Pattern)> = Vec::new();
    for _ in 0..dice.below(4) {
        let name = dice.pick(NAMES);
        if !members
            .iter()
            .any(|(known, _)| known.eq_ignore_ascii_case(name))
        {
            members.push((name.to_owned(), grown(dice, depth - 1)));
        }
    }
    let rest = (dice.below(4) == 0).then(|| rest(dice, Shape::Object));
    let overlapping_names = match dice.below(12) {
        0 => vec!["d".to_owned()],
        _ => Vec::new(),
    };
    ObjectPattern {
        overlapping_names,
        ..ObjectPattern::understood(members, rest)
    }
}

/// The number of occurrences allowed for a hole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holes {
    Once,
    Twice,
}

/// Numbers the holes; equal ones at one depth may become one.
struct Numbers {
    known: Vec<(Slot, usize)>,
    /// The number of first holes that no further position may have.
    hidden: usize,
    holes: Holes,
}

impl Numbers {
    fn number(&mut self, slot: &mut Slot, depth: usize, dice: &mut Dice) {
        if slot.binds().is_none() {
            return;
        }
        let twins: Vec<usize> = (self.hidden..self.known.len())
            .filter(|index| {
                let (known, at) = &self.known[*index];
                *at == depth && known.shape == slot.shape && known.absence == slot.absence
            })
            .collect();
        let number = match twins.last() {
            Some(twin) if self.holes == Holes::Twice && dice.below(2) == 0 => *twin,
            Some(_) | None => self.known.len(),
        };
        slot.role = Role::Shared(number);
        slot.name = format!("h{number}");
        if number == self.known.len() {
            self.known.push((slot.clone(), depth));
        }
    }

    fn pattern(&mut self, pattern: &mut Pattern, depth: usize, dice: &mut Dice) {
        match pattern {
            Pattern::Literal(_) => {}
            Pattern::Hole(slot) => self.number(slot, depth, dice),
            Pattern::Text(text) => {
                for part in &mut text.parts {
                    if let TextPart::Hole(slot) = part {
                        self.number(slot, depth, dice);
                    }
                }
            }
            Pattern::Object(object) => object.change(|members, rest| {
                for member in members {
                    self.pattern(member, depth, dice);
                }
                if let Some(rest) = rest {
                    self.number(rest, depth, dice);
                }
            }),
            Pattern::List(list) => {
                for item in &mut list.items {
                    self.pattern(item, depth, dice);
                }
                if let Some(rest) = &mut list.rest {
                    self.number(rest, depth, dice);
                }
            }
            Pattern::Either(either) => {
                *pattern = self.either(std::mem::take(&mut either.alternatives), depth, dice);
            }
            Pattern::Each(each) => {
                self.pattern(&mut each.item, depth + 1, dice);
                let mut holes = Vec::new();
                each.item.slots(&mut |slot| holes.extend(slot.binds()));
                holes.sort_unstable();
                holes.dedup();
                each.holes = holes;
            }
        }
    }
}

impl Numbers {
    /// Numbers the holes of alternatives. If these cannot be told apart, the first one is the pattern.
    fn either(&mut self, mut alternatives: Vec<Pattern>, depth: usize, dice: &mut Dice) -> Pattern {
        let mut choice = choice();
        choice.role = Role::Shared(self.known.len());
        // No other hole has this depth.
        self.known.push((choice.clone(), usize::MAX));
        for alternative in &mut alternatives {
            // Holes are local to an alternative.
            self.hidden = self.known.len();
            self.pattern(alternative, depth, dice);
        }
        self.hidden = self.known.len();
        let first = alternatives.first().cloned();
        match (EitherPattern::understood(Some(choice), alternatives), first) {
            (Ok(either), _) => Pattern::Either(either),
            (Err(_), first) => first.unwrap_or(Pattern::Literal(json("1"))),
        }
    }
}

fn numbered(mut pattern: Pattern, holes: Holes, dice: &mut Dice) -> Pattern {
    let known = Vec::new();
    let hidden = 0;
    let mut numbers = Numbers {
        known,
        hidden,
        holes,
    };
    numbers.pattern(&mut pattern, 0, dice);
    pattern
}

/// A small pattern.
pub fn pattern(dice: &mut Dice) -> Pattern {
    let grown = grown(dice, 2);
    numbered(grown, Holes::Twice, dice)
}

/// A small pattern in which each hole occurs once.
pub fn plain_pattern(dice: &mut Dice) -> Pattern {
    let grown = grown(dice, 2);
    numbered(grown, Holes::Once, dice)
}

/// A pattern that many values of another one fit: parts of it are more general, few differ.
pub fn near(pattern: &Pattern, dice: &mut Dice) -> Pattern {
    let loosened = loosened(pattern, dice);
    numbered(loosened, Holes::Once, dice)
}

fn loosened(pattern: &Pattern, dice: &mut Dice) -> Pattern {
    match dice.below(10) {
        0 => return Pattern::Hole(slot(dice, Shape::Any)),
        1 => return Pattern::Hole(slot(dice, Shape::One(Scalar::String))),
        2 => return grown(dice, 1),
        _ => {}
    }
    match pattern {
        Pattern::Literal(value) => match value.text() {
            Some(Ok(text)) if dice.below(2) == 0 => {
                Pattern::Hole(slot(dice, Shape::One(Scalar::Enum(vec![text, "z".into()]))))
            }
            _ => pattern.clone(),
        },
        Pattern::Hole(hole) => {
            let mut hole = hole.clone();
            hole.absence = absence(dice, &hole.shape);
            hole.null = Null::Value;
            Pattern::Hole(hole)
        }
        Pattern::Text(text) => Pattern::Text(loosened_text(text, dice)),
        Pattern::Object(object) => {
            let mut members = object.members.clone();
            members.retain(|_| dice.below(5) > 0);
            for (_, member) in &mut members {
                *member = loosened(member, dice);
            }
            let others = match dice.below(4) {
                0 => Some(rest(dice, Shape::Object)),
                _ => object.rest.clone(),
            };
            Pattern::Object(ObjectPattern {
                overlapping_names: object.overlapping_names.clone(),
                ..ObjectPattern::understood(members, others)
            })
        }
        Pattern::List(list) => {
            let mut near = list.clone();
            for item in &mut near.items {
                *item = loosened(item, dice);
            }
            if dice.below(3) == 0 {
                near.items.pop();
                near.rest = Some(rest(dice, Shape::Array));
            }
            Pattern::List(near)
        }
        Pattern::Each(each) => Pattern::Each(EachPattern {
            item: Box::new(loosened(&each.item, dice)),
            holes: Vec::new(),
        }),
        Pattern::Either(either) => {
            let alternatives = either.alternatives.iter();
            let near = alternatives.map(|alternative| loosened(alternative, dice));
            undecided(near.collect())
        }
    }
}

fn loosened_text(text: &TextPattern, dice: &mut Dice) -> TextPattern {
    let mut text = text.clone();
    if text.parts.len() > 2 {
        match dice.below(4) {
            0 => drop(text.parts.remove(0)),
            1 => drop(text.parts.pop()),
            _ => {}
        }
    }
    for part in &mut text.parts {
        if let (TextPart::Text(text), 0) = (part, dice.below(4)) {
            text.truncate(1);
        }
    }
    text
}

/// Small words.
pub fn words(dice: &mut Dice) -> TextPatterns {
    match dice.below(3) {
        0 => TextPatterns::Literal(dice.pick(WORDS).to_owned()),
        1 => {
            let shape = match dice.below(3) {
                0 => Shape::Repeated(scalar(dice)),
                1 => Shape::Separated(scalar(dice), delimiter(dice)),
                _ => Shape::One(scalar(dice)),
            };
            let mut slot = slot(dice, shape);
            if slot.codec.is_json() {
                slot.codec = Codec::Plain;
            }
            TextPatterns::Hole(slot)
        }
        _ => {
            let mixed = numbered(Pattern::Text(text(dice)), Holes::Twice, dice);
            if let Pattern::Text(text) = mixed {
                return TextPatterns::Mixed(text);
            }
            TextPatterns::Literal(String::new())
        }
    }
}
