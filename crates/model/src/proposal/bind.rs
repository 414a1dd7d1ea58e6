//! The values that both responses of each pair have, as holes.
//!
//! One response is written, the other is read. A value is written from the first value of the read response that is
//! equal to it in all pairs, or as a literal if it is the same in all pairs and shown. Used by `proposal::row`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::native::{HIDDEN, is_opaque};
use super::pattern::RowPattern;

/// The longest list whose elements are looked at one by one.
const ELEMENTS: usize = 4;
/// The deepest place.
const DEPTH: usize = 8;
/// The most places of a response; a sketch has fewer.
const PLACES: usize = 256;

/// A path of names and indexes.
type Place = Vec<String>;

/// The values of all pairs at one place.
type Column<'v> = Vec<&'v Value>;

/// Values in order of their depth.
struct Places<'v>(Vec<(Place, Column<'v>)>);

/// The patterns of both responses.
#[derive(Debug)]
pub(super) struct Bound {
    pub(super) written: RowPattern,
    /// `None` if nothing is read.
    pub(super) read: Option<RowPattern>,
    /// The places of written values that the read response does not have, as JSON pointers.
    pub(super) missing: Vec<String>,
    pub(super) guesses: Vec<String>,
}

/// The values that are never holes: the status and the code, which are literals.
pub(super) struct Numbers {
    pub(super) status: u16,
    pub(super) code: Option<i64>,
}

/// Binds the values of the written responses to those of the read ones, pair by pair.
pub(super) fn bind(written: &[Value], read: &[Value], numbers: &Numbers) -> Bound {
    let (to, from) = (Places::of(written), Places::of(read));
    let mut binder = Binder {
        from: &from,
        numbers,
        holes: BTreeMap::new(),
        missing: Vec::new(),
        guesses: Vec::new(),
    };
    let Some((place, column)) = to.0.first() else {
        return Bound {
            written: RowPattern::Object(Vec::new()),
            read: None,
            missing: Vec::new(),
            guesses: Vec::new(),
        };
    };
    let written = binder.write(place, column);
    let read = from.0.first();
    let read = read.and_then(|(place, column)| binder.read(place, column));
    Bound {
        written,
        read,
        missing: binder.missing,
        guesses: binder.guesses,
    }
}

struct Binder<'p, 'v> {
    from: &'p Places<'v>,
    numbers: &'p Numbers,
    /// The names of holes, by the place of the read response.
    holes: BTreeMap<Place, String>,
    missing: Vec<String>,
    guesses: Vec<String>,
}

impl<'v> Places<'v> {
    fn of(values: &'v [Value]) -> Places<'v> {
        let mut found = vec![(Place::new(), values.iter().collect::<Column<'v>>())];
        let mut at = 0;
        while let Some((place, column)) = found.get(at) {
            let inner = if place.len() < DEPTH && found.len() < PLACES {
                children(place, column)
            } else {
                Vec::new()
            };
            found.extend(inner);
            at += 1;
        }
        found.retain(|(_, column)| !column.is_empty());
        Places(found)
    }
}

/// Returns the members or elements that all values have.
fn children<'v>(place: &Place, column: &Column<'v>) -> Vec<(Place, Column<'v>)> {
    let inside = |name: &str| {
        let mut inside = place.clone();
        inside.push(name.to_owned());
        inside
    };
    let objects: Option<Vec<&Map<String, Value>>> =
        column.iter().map(|value| value.as_object()).collect();
    if let Some((first, _)) = objects.as_ref().and_then(|all| all.split_first()) {
        let all = objects.iter().flatten();
        let names = first.keys().filter_map(|name| {
            let values: Option<Column<'v>> = all.clone().map(|one| one.get(name)).collect();
            Some((inside(name), values?))
        });
        return names.collect();
    }
    let lists: Option<Vec<&Vec<Value>>> = column.iter().map(|value| value.as_array()).collect();
    let lists = lists.unwrap_or_default();
    let length = lists.first().map_or(0, |list| list.len());
    if length > ELEMENTS || lists.iter().any(|list| list.len() != length) {
        return Vec::new();
    }
    let elements = (0..length).map(|at| {
        let values = lists.iter().filter_map(|list| list.get(at));
        (inside(&at.to_string()), values.collect())
    });
    elements.collect()
}

impl Binder<'_, '_> {
    /// Returns the pattern of a written value.
    fn write(&mut self, place: &Place, column: &Column<'_>) -> RowPattern {
        if let Some(hole) = self.hole(place, column) {
            return RowPattern::Hole(hole);
        }
        let constant = column
            .first()
            .filter(|first| column.iter().all(|value| value == *first));
        let inner = children(place, column);
        match constant {
            Some(value) if inner.is_empty() && is_known(value) => {
                if !place.is_empty() && !self.is_status_or_code(value) {
                    let last = place.last().map_or("", String::as_str);
                    self.guesses.push(format!("`{last}` is always {value}"));
                }
                return RowPattern::Literal((*value).clone());
            }
            _ => {}
        }
        if inner.is_empty() {
            self.missing.push(pointer(place));
            return RowPattern::Hole("_".to_owned());
        }
        let is_list = column.iter().all(|value| value.is_array());
        let names = column.iter().filter_map(|value| value.as_object());
        for name in names.flat_map(Map::keys) {
            let is_in_all = inner.iter().any(|(place, _)| place.last() == Some(name));
            let mut inside = place.clone();
            inside.push(name.clone());
            if !is_in_all && !self.missing.contains(&pointer(&inside)) {
                self.missing.push(pointer(&inside));
            }
        }
        let mut members = Vec::new();
        for (inside, column) in &inner {
            let pattern = self.write(inside, column);
            let name = inside.last().cloned().unwrap_or_default();
            if is_list || pattern != RowPattern::Hole("_".to_owned()) {
                members.push((name, pattern));
            }
        }
        match is_list {
            true => RowPattern::List(members.into_iter().map(|(_, pattern)| pattern).collect()),
            false => RowPattern::Object(members),
        }
    }

    /// Returns the hole for a written value, if the read response has this value.
    fn hole(&mut self, place: &Place, column: &Column<'_>) -> Option<String> {
        if !column.iter().any(|value| is_distinctive(value))
            || column.iter().any(|it| has_opaque(it))
        {
            return None;
        }
        if column.iter().any(|value| self.is_status_or_code(value)) {
            return None;
        }
        let last = place.last();
        let same = |found: &&(Place, Column<'_>)| found.1 == *column;
        let equal = || self.from.0.iter().filter(same);
        let named = equal().find(|(other, _)| other.last() == last);
        let (other, _) = named.or_else(|| equal().next())?;
        let is_coincidence = other.last() != last
            && column.iter().all(|value| value.is_number())
            && column.iter().all(|value| Some(value) == column.first());
        if is_coincidence {
            return None;
        }
        if let Some(known) = self.holes.get(other) {
            return Some(known.clone());
        }
        let name = self.free(last.or(other.last()));
        self.guesses.push(format!(
            "`{name}` is the same on both sides in {}",
            match column.len() {
                1 => "1 call".to_owned(),
                calls => format!("{calls} calls"),
            }
        ));
        self.holes.insert(other.clone(), name.clone());
        Some(name)
    }

    /// Returns a name that no other hole has.
    fn free(&self, wanted: Option<&String>) -> String {
        let plain = |c: char| match c.is_ascii_alphanumeric() {
            true => c.to_ascii_lowercase(),
            false => '_',
        };
        let wanted: String =
            wanted.map_or_else(String::new, |name| name.chars().map(plain).collect());
        let is_name = wanted.starts_with(|c: char| c.is_ascii_lowercase()) && wanted.len() <= 40;
        let wanted = if is_name { wanted } else { "value".to_owned() };
        let mut name = wanted.clone();
        let mut number = 1;
        while self.holes.values().any(|known| *known == name) {
            number += 1;
            name = format!("{wanted}{number}");
        }
        name
    }

    /// Returns the pattern of a read value; `None` if no hole is in it.
    fn read(&self, place: &Place, column: &Column<'_>) -> Option<RowPattern> {
        if let Some(hole) = self.holes.get(place) {
            return Some(RowPattern::Hole(hole.clone()));
        }
        let inner = children(place, column);
        let is_list = column.iter().all(|value| value.is_array());
        let patterns = inner.iter().map(|(inside, column)| {
            let name = inside.last().cloned().unwrap_or_default();
            (name, self.read(inside, column))
        });
        let mut patterns: Vec<(String, Option<RowPattern>)> = patterns.collect();
        if patterns.iter().all(|(_, pattern)| pattern.is_none()) {
            return None;
        }
        if is_list {
            let elements = patterns.into_iter();
            let any = || RowPattern::Hole("_".to_owned());
            let elements = elements.map(|(_, pattern)| pattern.unwrap_or_else(any));
            return Some(RowPattern::List(elements.collect()));
        }
        // The type of a block of a tool's content is known, even if the report does not show it.
        let has = |wanted: &str| patterns.iter().any(|(name, _)| name == wanted);
        if has("text") && has("type") && place.iter().any(|name| name == "content") {
            for (name, pattern) in &mut patterns {
                if name == "type" {
                    *pattern = Some(RowPattern::Literal(Value::from("text")));
                }
            }
        }
        let members = patterns.into_iter();
        let members = members.filter_map(|(name, pattern)| Some((name, pattern?)));
        Some(RowPattern::Object(members.collect()))
    }

    fn is_status_or_code(&self, value: &Value) -> bool {
        let number = value.as_i64();
        number.is_some()
            && (number == Some(i64::from(self.numbers.status)) || number == self.numbers.code)
    }
}

/// Returns true if an equal value is no coincidence.
fn is_distinctive(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) => false,
        Value::String(text) => !text.is_empty(),
        Value::Number(_) => true,
        Value::Array(elements) => !elements.is_empty(),
        Value::Object(members) => !members.is_empty(),
    }
}

/// Returns true if a value has a text whose equality the report does not show.
fn has_opaque(value: &Value) -> bool {
    match value {
        Value::String(text) => is_opaque(text),
        Value::Array(elements) => elements.iter().any(has_opaque),
        Value::Object(members) => members.values().any(has_opaque),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns true if the report shows the whole value.
pub(super) fn is_known(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.starts_with(HIDDEN),
        Value::Array(elements) => elements.iter().all(is_known),
        Value::Object(members) => members.values().all(is_known),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}

fn pointer(place: &Place) -> String {
    let mut text = String::new();
    for name in place {
        text.push('/');
        text.push_str(&name.replace('~', "~0").replace('/', "~1"));
    }
    text
}
