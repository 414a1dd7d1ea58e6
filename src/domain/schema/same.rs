//! Equality of values as JSON Schema defines it: numbers are compared as numbers, members have no order.

use std::hash::{DefaultHasher, Hash, Hasher};

use jsonschema::json::cmp::equal_numbers;
use serde_json::Value;

use super::meter::Meter;
use super::value::Item;

/// Bytes of text that are compared in one step.
const BYTES_PER_STEP: usize = 64;

/// Whether an item is equal to a value of the schema. `false` when the budget is spent.
pub(super) fn equals(item: &Item, expected: &Value, meter: Option<&Meter<'_>>) -> bool {
    if !paid(item, meter) {
        return false;
    }
    match (item, expected) {
        (Item::Null, Value::Null) => true,
        (Item::Boolean(one), Value::Bool(other)) => one == other,
        (Item::Number(one), Value::Number(other)) => equal_numbers(one, other),
        (Item::Text(one), Value::String(other)) => **one == **other,
        (Item::Array(one), Value::Array(other)) => {
            let mut pairs = one.iter().zip(other);
            one.len() == other.len() && pairs.all(|(one, other)| equals(one, other, meter))
        }
        (Item::Object(one), Value::Object(other)) => {
            let is_there = |(name, item): &(Box<str>, Item)| {
                let other = other.get(&**name);
                other.is_some_and(|other| equals(item, other, meter))
            };
            one.len() == other.len() && one.iter().all(is_there)
        }
        _ => false,
    }
}

/// Whether no two items are equal. Meaningless when the budget is spent.
pub(super) fn all_differ(items: &[Item], meter: Option<&Meter<'_>>) -> bool {
    let has_room = meter.is_none_or(|meter| meter.hold(items.len().saturating_mul(16)));
    if !has_room {
        return true;
    }
    let mut hashes: Vec<(u64, usize)> = Vec::with_capacity(items.len());
    for (place, item) in items.iter().enumerate() {
        let mut hasher = DefaultHasher::new();
        if !hash(item, &mut hasher, meter) {
            return true;
        }
        hashes.push((hasher.finish(), place));
    }
    hashes.sort_unstable();
    let alike = hashes.chunk_by(|(one, _), (other, _)| one == other);
    for alike in alike.filter(|alike| alike.len() > 1) {
        for (index, (_, one)) in alike.iter().enumerate() {
            let mut others = alike[index + 1..].iter();
            if others.any(|(_, other)| same(&items[*one], &items[*other], meter)) {
                return false;
            }
        }
    }
    true
}

fn same(one: &Item, other: &Item, meter: Option<&Meter<'_>>) -> bool {
    if !paid(one, meter) {
        return false;
    }
    match (one, other) {
        (Item::Null, Item::Null) => true,
        (Item::Boolean(one), Item::Boolean(other)) => one == other,
        (Item::Number(one), Item::Number(other)) => equal_numbers(one, other),
        (Item::Text(one), Item::Text(other)) => one == other,
        (Item::Array(one), Item::Array(other)) => {
            let mut pairs = one.iter().zip(other);
            one.len() == other.len() && pairs.all(|(one, other)| same(one, other, meter))
        }
        (Item::Object(one), Item::Object(other)) => {
            let mut pairs = one.iter().zip(other);
            one.len() == other.len()
                && pairs.all(|(one, other)| one.0 == other.0 && same(&one.1, &other.1, meter))
        }
        _ => false,
    }
}

/// Hashes an item so that equal items have equal hashes. Returns `false` when the budget is spent.
fn hash(item: &Item, hasher: &mut DefaultHasher, meter: Option<&Meter<'_>>) -> bool {
    match item {
        Item::Null => 0u8.hash(hasher),
        Item::Boolean(value) => value.hash(hasher),
        Item::Number(number) => {
            // Zero and negative zero are equal.
            let number = number.as_f64().map(|number| number + 0.0);
            number.map(f64::to_bits).hash(hasher);
        }
        Item::Text(text) => text.hash(hasher),
        Item::Array(items) => {
            items.len().hash(hasher);
            return paid(item, meter) && items.iter().all(|item| hash(item, hasher, meter));
        }
        Item::Object(members) => {
            members.len().hash(hasher);
            let each = |(name, item): &(Box<str>, Item)| {
                name.hash(hasher);
                hash(item, hasher, meter)
            };
            return paid(item, meter) && members.iter().all(each);
        }
    }
    paid(item, meter)
}

fn paid(item: &Item, meter: Option<&Meter<'_>>) -> bool {
    let steps = match item {
        Item::Text(text) => 1 + text.len() / BYTES_PER_STEP,
        Item::Null | Item::Boolean(_) | Item::Number(_) | Item::Array(_) | Item::Object(_) => 1,
    };
    meter.is_none_or(|meter| meter.step(steps))
}
