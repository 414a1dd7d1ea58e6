//! Free-form values, as in patterns and examples: their members stay in the order of the file.
//!
//! TOML values without a JSON equivalent are rejected with a message. The parser limits the depth of values.

use figment::value::{Num, Value};

use super::{Table, TableWalk};
use crate::config::layer::{ValueKind, element, join};
use crate::config::value::ValueError;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::SourceTree;

impl Table<'_> {
    /// Reads an optional free-form value.
    pub(in crate::config) fn tree(&mut self, name: &'static str) -> Option<SourceTree> {
        let value = self.ask(name)?;
        self.walk.tree(value, &join(&self.key, name))
    }

    /// Reads a required free-form value.
    pub(in crate::config) fn require_tree(&mut self, name: &'static str) -> Option<SourceTree> {
        if self.ask(name).is_none() {
            self.missing(name);
        }
        self.tree(name)
    }

    /// Reads a table of free-form values, in order; empty if absent.
    pub(in crate::config) fn trees(
        &mut self,
        name: &'static str,
    ) -> Option<Vec<(String, SourceTree)>> {
        let Some(value) = self.ask(name) else {
            return Some(Vec::new());
        };
        self.dict(value, name)?;
        match self.walk.tree(value, &join(&self.key, name))? {
            SourceTree::Table(members) => Some(members),
            SourceTree::Text(_) | SourceTree::Literal(_) | SourceTree::List(_) => None,
        }
    }

    /// Reads an optional value without holes; problems are reported.
    pub(in crate::config) fn json(&mut self, name: &'static str) -> Option<Json> {
        let tree = self.tree(name)?;
        match tree.value() {
            Ok(json) => Some(json),
            Err(error) => {
                let key = error.under(&join(&self.key, name));
                self.walk.report(key.key, ValueError::new(key.what));
                None
            }
        }
    }

    /// Reads a required value without holes.
    pub(in crate::config) fn require_json(&mut self, name: &'static str) -> Option<Json> {
        if self.ask(name).is_none() {
            self.missing(name);
        }
        self.json(name)
    }
}

impl TableWalk<'_> {
    fn tree(&mut self, value: &Value, key: &str) -> Option<SourceTree> {
        match value {
            Value::String(_, text) => {
                if self.tree.kind(key) == ValueKind::Date {
                    let message = "a date or time is not a JSON value; write it as a string";
                    self.report(key.to_owned(), ValueError::new(message));
                    return None;
                }
                Some(SourceTree::Text(text.clone()))
            }
            Value::Dict(_, entries) => {
                let members = self.tree.in_order(entries, key);
                let read: Vec<_> = members
                    .iter()
                    .filter_map(|(name, member)| {
                        let tree = self.tree(member, &join(key, name))?;
                        Some(((*name).to_owned(), tree))
                    })
                    .collect();
                (read.len() == members.len()).then_some(SourceTree::Table(read))
            }
            Value::Array(_, items) => {
                let read: Vec<_> = items
                    .iter()
                    .enumerate()
                    .filter_map(|(index, item)| self.tree(item, &element(key, index)))
                    .collect();
                (read.len() == items.len()).then_some(SourceTree::List(read))
            }
            Value::Bool(..) | Value::Char(..) | Value::Num(..) | Value::Empty(..) => {
                self.literal(value, key)
            }
        }
    }

    fn literal(&mut self, value: &Value, key: &str) -> Option<SourceTree> {
        let text = if let Value::Num(_, Num::F64(float)) = value {
            // `Debug` keeps the point of `2.0`, and uses an exponent instead of many zeros.
            float.is_finite().then(|| format!("{float:?}"))
        } else {
            let truth = value.to_bool().map(|truth| truth.to_string());
            truth.or_else(|| value.to_i128().map(|number| number.to_string()))
        };
        let json = text.and_then(|text| Json::parse(text.into(), 1).ok());
        if json.is_none() {
            let message = "JSON has no infinite number and no `nan`; write a finite one";
            self.report(key.to_owned(), ValueError::new(message));
        }
        json.map(SourceTree::Literal)
    }
}
