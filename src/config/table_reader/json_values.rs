//! Values of any kind, as patterns and examples are written: their members stay in the order of the file.
//!
//! What TOML can say and JSON cannot is refused with words. How deep a value lies, the parser bounds.

use figment::value::{Num, Value};

use super::{Table, TableWalk};
use crate::config::layer::{ValueKind, element, join};
use crate::config::value::ValueError;
use crate::domain::json::Json;
use crate::domain::pattern::SourceTree;

impl Table<'_> {
    /// A value of any kind that may be absent.
    pub(in crate::config) fn tree(&mut self, name: &'static str) -> Option<SourceTree> {
        let value = self.ask(name)?;
        self.walk.tree(value, &join(&self.key, name))
    }

    /// A value of any kind that must be there.
    pub(in crate::config) fn require_tree(&mut self, name: &'static str) -> Option<SourceTree> {
        if self.ask(name).is_none() {
            self.missing(name);
        }
        self.tree(name)
    }

    /// A table of values of any kind, in order; empty when it is absent.
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

    /// A value without holes that may be absent; what is wrong with it is reported.
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

    /// A value without holes that must be there.
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
                    let message = "a date or a time is no JSON value; write it as a string";
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
            // Its `Debug` keeps the point of `2.0`, and an exponent where there would be many zeros.
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
