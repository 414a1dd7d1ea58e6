//! Equality of values as JSON Schema defines it: numbers compare by value, members have no order.
//!
//! Used by `schema::node`.

use std::hash::{DefaultHasher, Hash, Hasher};

use jsonschema::json::cmp::equal_numbers;
use serde_json::Value;

use super::meter::Meter;
use super::value::ValueItem;

/// Bytes of text compared in one step.
const BYTES_PER_STEP: usize = 64;

/// Returns whether an item equals a value of the schema; `false` when the budget is spent.
pub(super) fn equals(item: &ValueItem, expected: &Value, meter: Option<&Meter<'_>>) -> bool {
    if !paid(item, meter) {
        return false;
    }
    match (item, expected) {
        (ValueItem::Null, Value::Null) => true,
        (ValueItem::Boolean(one), Value::Bool(other)) => one == other,
        (ValueItem::Number(one), Value::Number(other)) => equal_numbers(one, other),
        (ValueItem::Text(one), Value::String(other)) => **one == **other,
        (ValueItem::Array(one), Value::Array(other)) => {
            let mut pairs = one.iter().zip(other);
            one.len() == other.len() && pairs.all(|(one, other)| equals(one, other, meter))
        }
        (ValueItem::Object(one), Value::Object(other)) => {
            let is_there = |(name, item): &(Box<str>, ValueItem)| {
                let other = other.get(&**name);
                other.is_some_and(|other| equals(item, other, meter))
            };
            one.len() == other.len() && one.iter().all(is_there)
        }
        _ => false,
    }
}

/// Returns whether all items differ; meaningless when the budget is spent.
pub(super) fn all_differ(items: &[ValueItem], meter: Option<&Meter<'_>>) -> bool {
    let fits_memory = meter.is_none_or(|meter| meter.hold(items.len().saturating_mul(16)));
    if !fits_memory {
        return true;
    }
    let mut hashes: Vec<(u64, usize)> = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let mut hasher = DefaultHasher::new();
        if !hash(item, &mut hasher, meter) {
            return true;
        }
        hashes.push((hasher.finish(), index));
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

fn same(one: &ValueItem, other: &ValueItem, meter: Option<&Meter<'_>>) -> bool {
    if !paid(one, meter) {
        return false;
    }
    match (one, other) {
        (ValueItem::Null, ValueItem::Null) => true,
        (ValueItem::Boolean(one), ValueItem::Boolean(other)) => one == other,
        (ValueItem::Number(one), ValueItem::Number(other)) => equal_numbers(one, other),
        (ValueItem::Text(one), ValueItem::Text(other)) => one == other,
        (ValueItem::Array(one), ValueItem::Array(other)) => {
            let mut pairs = one.iter().zip(other);
            one.len() == other.len() && pairs.all(|(one, other)| same(one, other, meter))
        }
        (ValueItem::Object(one), ValueItem::Object(other)) => {
            let mut pairs = one.iter().zip(other);
            one.len() == other.len()
                && pairs.all(|(one, other)| one.0 == other.0 && same(&one.1, &other.1, meter))
        }
        _ => false,
    }
}

/// Hashes an item so that equal items have equal hashes. Returns `false` when the budget is spent.
fn hash(item: &ValueItem, hasher: &mut DefaultHasher, meter: Option<&Meter<'_>>) -> bool {
    match item {
        ValueItem::Null => 0u8.hash(hasher),
        ValueItem::Boolean(value) => value.hash(hasher),
        ValueItem::Number(number) => {
            // Zero and negative zero are equal.
            let number = number.as_f64().map(|number| number + 0.0);
            number.map(f64::to_bits).hash(hasher);
        }
        ValueItem::Text(text) => text.hash(hasher),
        ValueItem::Array(items) => {
            items.len().hash(hasher);
            return paid(item, meter) && items.iter().all(|item| hash(item, hasher, meter));
        }
        ValueItem::Object(members) => {
            members.len().hash(hasher);
            let each = |(name, item): &(Box<str>, ValueItem)| {
                name.hash(hasher);
                hash(item, hasher, meter)
            };
            return paid(item, meter) && members.iter().all(each);
        }
    }
    paid(item, meter)
}

fn paid(item: &ValueItem, meter: Option<&Meter<'_>>) -> bool {
    let steps = match item {
        ValueItem::Text(text) => 1 + text.len() / BYTES_PER_STEP,
        ValueItem::Null
        | ValueItem::Boolean(_)
        | ValueItem::Number(_)
        | ValueItem::Array(_)
        | ValueItem::Object(_) => 1,
    };
    meter.is_none_or(|meter| meter.step(steps))
}
