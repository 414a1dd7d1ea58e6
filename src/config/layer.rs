//! One layer of the configuration (files, variables, arguments) with the location of each key.
//!
//! figment merges the layers, and knows only the provider of each value. A merge replaces everything except tables, so
//! a merged value comes from the uppermost layer that sets its key: [`Merged::place`] is exact.
//!
//! Used throughout `config`.

use std::collections::HashMap;

use figment::value::{Dict, Map, Value};
use figment::{Figment, Metadata, Profile, Provider};

use crate::config::problem::{Problem, SourceLocation, SourceMap};
use dualgauge_patterns::pattern::as_key;

/// A tree of values, with the location of every key.
#[derive(Debug, Default)]
pub(super) struct Layer {
    name: &'static str,
    pub(super) values: Dict,
    origins: HashMap<String, KeyOrigin>,
}

/// The origin of a key.
#[derive(Debug, Clone)]
struct KeyOrigin {
    place: SourceLocation,
    /// The offset in its text: the order of the members of a table, which figment sorts by name.
    at: usize,
    /// True if the value is a date or a time: figment has no dates, only their text.
    is_date: bool,
}

impl Layer {
    pub(super) fn new(name: &'static str) -> Self {
        Layer {
            name,
            ..Layer::default()
        }
    }

    /// Records the location of a key, with its offset in the text; the first location wins.
    pub(super) fn note(&mut self, key: &str, place: &SourceLocation, at: usize) {
        if !self.origins.contains_key(key) {
            self.origins.insert(key.to_owned(), origin(place, at));
        }
    }

    /// Records that the value of a key is a date or a time.
    pub(super) fn note_date(&mut self, key: &str) {
        if let Some(origin) = self.origins.get_mut(key) {
            origin.is_date = true;
        }
    }

    /// Returns the location of a key in this layer.
    pub(super) fn location(&self, key: &str) -> Option<SourceLocation> {
        self.origins.get(key).map(|origin| origin.place.clone())
    }

    /// Puts a value at a path of keys. Missing tables on the way are created, also in place of another value: the
    /// longer path is more specific.
    pub(super) fn put(&mut self, path: &[String], value: Value, place: &SourceLocation) {
        let Some((last, tables)) = path.split_last() else {
            return;
        };
        let mut key = String::new();
        for name in tables {
            key = join(&key, name);
            self.note(&key, place, 0);
        }
        // The last layer that sets a leaf determines its location.
        self.origins.insert(join(&key, last), origin(place, 0));
        let mut values = &mut self.values;
        for name in tables {
            let entry = values.entry(name.clone()).or_insert_with(empty_table);
            if !matches!(entry, Value::Dict(..)) {
                *entry = empty_table();
            }
            let Value::Dict(_, table) = entry else { return };
            values = table;
        }
        values.insert(last.clone(), value);
    }
}

fn origin(place: &SourceLocation, at: usize) -> KeyOrigin {
    KeyOrigin {
        place: place.clone(),
        at,
        is_date: false,
    }
}

fn empty_table() -> Value {
    Value::from(Dict::new())
}

impl Provider for Layer {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.name)
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        Ok(Profile::Default.collect(self.values.clone()))
    }
}

/// The tree that results from merging all layers.
#[derive(Debug)]
pub(super) struct Merged {
    pub(super) values: Dict,
    uppermost_first: Vec<Layer>,
}

impl Merged {
    /// Merges the layers; each overrides those before it.
    pub(super) fn new(mut layers: Vec<Layer>) -> Result<Self, Problem> {
        let figment = layers.iter_mut().fold(Figment::new(), |figment, layer| {
            let merged = figment.merge(&*layer);
            // The merged tree has these values; frees the copy.
            layer.values = Dict::new();
            merged
        });
        let mut profiles = figment
            .data()
            .map_err(|error| Problem::for_file(SourceLocation::Default, error.to_string()))?;
        Ok(Merged {
            values: profiles.remove(&Profile::Default).unwrap_or_default(),
            uppermost_first: layers.into_iter().rev().collect(),
        })
    }

    /// Returns the location of a key.
    pub(super) fn location(&self, key: &str) -> SourceLocation {
        self.origin(key)
            .map_or(SourceLocation::Default, |origin| origin.place.clone())
    }

    /// Returns true if the value of a key is a date or a time.
    pub(super) fn is_date(&self, key: &str) -> bool {
        self.origin(key).is_some_and(|origin| origin.is_date)
    }

    /// Returns the members of the table under a key, in the order of the file.
    pub(super) fn in_order<'v>(&self, entries: &'v Dict, key: &str) -> Vec<(&'v str, &'v Value)> {
        let at = |name: &str| self.origin(&join(key, name)).map_or(0, |origin| origin.at);
        let mut members: Vec<_> = entries
            .iter()
            .map(|(name, value)| (name.as_str(), value))
            .collect();
        members.sort_by_key(|(name, _)| at(name));
        members
    }

    /// Returns the locations of the keys that begin with one of these roots, for compilation.
    pub(super) fn into_source_map(self, roots: &[&str]) -> SourceMap {
        let mut places = HashMap::new();
        for layer in self.uppermost_first.into_iter().rev() {
            let origins = layer.origins.into_iter();
            let below = origins.filter(|(key, _)| roots.iter().any(|root| key.starts_with(root)));
            places.extend(below.map(|(key, origin)| (key, origin.place)));
        }
        places.shrink_to_fit();
        SourceMap(places)
    }

    fn origin(&self, key: &str) -> Option<&KeyOrigin> {
        self.uppermost_first
            .iter()
            .find_map(|layer| layer.origins.get(key))
    }
}

/// Returns the key of a member, in the spelling of the file: a name that is not bare is quoted.
pub(super) fn join(table: &str, name: &str) -> String {
    let dot = if table.is_empty() { "" } else { "." };
    format!("{table}{dot}{}", as_key(name))
}

/// Returns the key of an element of an array.
pub(super) fn element(array: &str, index: usize) -> String {
    format!("{array}[{index}]")
}
