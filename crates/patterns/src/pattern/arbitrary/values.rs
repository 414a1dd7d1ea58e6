//! Values that fit a pattern, or nearly do.

use super::{Dice, LITERALS, TEXTS, json};
use crate::json::Json;
use crate::pattern::compare::{array, object};
use crate::pattern::{Pattern, Scalar, Shape, Slot, TextPart, TextPattern, TextPatterns};

/// A value that mostly fits a pattern.
pub fn value(pattern: &Pattern, dice: &mut Dice) -> Json {
    if dice.below(24) == 23 {
        return json(LITERALS[dice.below(LITERALS.len())]);
    }
    match pattern {
        Pattern::Literal(value) => value.clone(),
        Pattern::Hole(slot) => slot_value(slot, dice),
        Pattern::Text(text) => Json::string(&spelled(text, dice)),
        Pattern::Object(described) => {
            let mut members: Vec<(&str, Json)> = Vec::new();
            for (name, member) in &described.members {
                if !member.may_be_absent() || dice.below(2) == 0 {
                    members.push((name, value(member, dice)));
                }
            }
            for _ in 0..dice.below(6).saturating_sub(3) {
                let name = dice.pick(&["a", "b", "c", "A", "1", "d"]);
                if !members.iter().any(|(known, _)| *known == name) {
                    members.push((name, any_value(dice)));
                }
            }
            object(&members)
        }
        Pattern::List(list) => {
            let mut items: Vec<Json> = list.items.iter().map(|item| value(item, dice)).collect();
            items.truncate(
                items.len()
                    - dice
                        .below(items.len() + 2)
                        .saturating_sub(2)
                        .min(items.len()),
            );
            if list.rest.is_some() {
                items.extend((0..dice.below(3)).map(|_| any_value(dice)));
            }
            array(&items)
        }
        Pattern::Each(each) => {
            let items: Vec<Json> = (0..dice.below(3))
                .map(|_| value(&each.item, dice))
                .collect();
            array(&items)
        }
        Pattern::Either(either) => {
            let chosen = dice.below(either.alternatives.len());
            value(&either.alternatives[chosen], dice)
        }
    }
}

fn any_value(dice: &mut Dice) -> Json {
    match dice.below(3) {
        0 => json("{}"),
        1 => json("[1]"),
        _ => json(LITERALS[dice.below(LITERALS.len())]),
    }
}

fn word(scalar: &Scalar, dice: &mut Dice) -> String {
    match scalar {
        Scalar::String => {
            let pieces = (0..dice.below(4)).map(|_| dice.pick(TEXTS));
            pieces.collect()
        }
        Scalar::Integer => dice.pick(&["1", "-2", "0", "10"]).to_owned(),
        Scalar::Number => dice.pick(&["1", "1.5", "-2e9"]).to_owned(),
        Scalar::Boolean => dice.pick(&["true", "false"]).to_owned(),
        Scalar::Enum(words) => words[dice.below(words.len())].clone(),
    }
}

fn scalar_value(scalar: &Scalar, dice: &mut Dice) -> Json {
    let word = word(scalar, dice);
    match scalar {
        Scalar::String | Scalar::Enum(_) => Json::string(&word),
        Scalar::Integer | Scalar::Number | Scalar::Boolean => Json::written(word.into_bytes()),
    }
}

fn slot_value(slot: &Slot, dice: &mut Dice) -> Json {
    if dice.below(8) == 7 {
        return json("null");
    }
    let value = match &slot.shape {
        Shape::Any => any_value(dice),
        Shape::One(scalar) => scalar_value(scalar, dice),
        Shape::Repeated(scalar) | Shape::Separated(scalar, _) => {
            let items: Vec<Json> = (0..dice.below(3))
                .map(|_| scalar_value(scalar, dice))
                .collect();
            array(&items)
        }
        Shape::Object => json("{\"a\":1}"),
        Shape::Array => json("[1,\"x\"]"),
        Shape::Null => json("null"),
    };
    let written = slot.as_json(std::borrow::Cow::Borrowed(&value));
    written.map_or(value.clone(), std::borrow::Cow::into_owned)
}

/// A text that mostly fits a pattern.
pub(super) fn spelled(text: &TextPattern, dice: &mut Dice) -> String {
    let parts = text.parts.iter().map(|part| match part {
        TextPart::Text(text) => text.clone(),
        TextPart::Hole(slot) => slot
            .shape
            .scalar()
            .map_or(String::new(), |scalar| word(scalar, dice)),
    });
    parts.collect()
}

/// Texts that mostly fit: none, one, several.
pub fn texts(words: &TextPatterns, dice: &mut Dice) -> Vec<String> {
    let one = |dice: &mut Dice| match words {
        TextPatterns::Literal(text) => text.clone(),
        TextPatterns::Hole(slot) => match (&slot.shape, dice.below(6)) {
            (_, 0) => String::new(),
            (Shape::Separated(scalar, delimiter), _) => {
                let words: Vec<String> =
                    (0..1 + dice.below(2)).map(|_| word(scalar, dice)).collect();
                words.join(&delimiter.as_char().to_string())
            }
            (shape, _) => shape
                .scalar()
                .map_or(String::new(), |scalar| word(scalar, dice)),
        },
        TextPatterns::Mixed(text) => spelled(text, dice),
    };
    let count = [1, 1, 1, 0, 2][dice.below(5)];
    (0..count).map(|_| one(dice)).collect()
}
