//! One layer of the configuration (defaults, files, variables, arguments) that knows where each key was said.
//!
//! figment merges the layers and knows of each value only its provider. A merge replaces everything but tables,
//! so whatever is left under a key came from the uppermost layer that says this key: [`Merged::place`] is exact.

use std::collections::HashMap;

use figment::value::{Dict, Map, Value};
use figment::{Figment, Metadata, Profile, Provider};

use crate::config::problem::{Place, Problem};

/// A tree of values, and the place of every key in it.
#[derive(Debug, Default)]
pub(super) struct Layer {
    name: &'static str,
    pub(super) values: Dict,
    places: HashMap<String, Place>,
}

impl Layer {
    pub(super) fn new(name: &'static str) -> Self {
        Layer {
            name,
            ..Layer::default()
        }
    }

    /// Notes where a key was said; the first place stays.
    pub(super) fn note(&mut self, key: &str, place: &Place) {
        if !self.places.contains_key(key) {
            self.places.insert(key.to_owned(), place.clone());
        }
    }

    /// Where a key was said in this layer.
    pub(super) fn place(&self, key: &str) -> Option<Place> {
        self.places.get(key).cloned()
    }

    /// Forgets where the keys were said: nobody said them.
    pub(super) fn placeless(mut self) -> Self {
        self.places.clear();
        self
    }

    /// Puts a value at a path of keys. Tables on the way are made where they are missing, also in place of
    /// something else: the longer path says more.
    pub(super) fn put(&mut self, path: &[String], value: Value, place: &Place) {
        let Some((last, tables)) = path.split_last() else {
            return;
        };
        let mut values = &mut self.values;
        let mut key = String::new();
        for name in tables {
            key = join(&key, name);
            self.places
                .entry(key.clone())
                .or_insert_with(|| place.clone());
            let entry = values.entry(name.clone()).or_insert_with(empty_table);
            if !matches!(entry, Value::Dict(..)) {
                *entry = empty_table();
            }
            let Value::Dict(_, table) = entry else { return };
            values = table;
        }
        values.insert(last.clone(), value);
        // The last one to say a leaf is where it is from.
        self.places.insert(join(&key, last), place.clone());
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

/// The tree that is left when all layers are laid over each other.
#[derive(Debug)]
pub(super) struct Merged {
    pub(super) values: Dict,
    uppermost_first: Vec<Layer>,
}

impl Merged {
    /// Lays each layer over those before it.
    pub(super) fn new(layers: Vec<Layer>) -> Result<Self, Problem> {
        let figment = layers.iter().fold(Figment::new(), Figment::merge);
        let mut profiles = figment
            .data()
            .map_err(|error| Problem::of_file(Place::Default, error.to_string()))?;
        Ok(Merged {
            values: profiles.remove(&Profile::Default).unwrap_or_default(),
            uppermost_first: layers.into_iter().rev().collect(),
        })
    }

    /// Where a key was said.
    pub(super) fn place(&self, key: &str) -> Place {
        self.uppermost_first
            .iter()
            .find_map(|layer| layer.place(key))
            .unwrap_or(Place::Default)
    }
}

/// The key of a member, in the spelling of the file: a name that is not bare is quoted.
pub(super) fn join(table: &str, name: &str) -> String {
    let bare = !name.is_empty()
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    let dot = if table.is_empty() { "" } else { "." };
    if bare {
        format!("{table}{dot}{name}")
    } else {
        format!("{table}{dot}{name:?}")
    }
}

/// The key of an element of an array.
pub(super) fn element(array: &str, index: usize) -> String {
    format!("{array}[{index}]")
}
