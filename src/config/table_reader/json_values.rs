//! Free-form values, as in patterns and examples: their members stay in the order of the file.
//!
//! TOML values without a JSON equivalent are rejected with a message. The parser limits the depth of values.

use figment::value::{Num, Value};

use super::{Table, TableWalk};
use crate::config::key::Tree;
use crate::config::layer::{element, join};
use crate::config::value::ValueError;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::{PatternError, SourceTree};

impl Table<'_> {
    /// Reads a free-form value.
    pub(in crate::config) fn tree(&mut self, tree: &Tree) -> Option<SourceTree> {
        let Some(value) = self.ask(tree.name) else {
            if tree.is_required {
                self.missing(tree.name);
            }
            return None;
        };
        self.walk.tree(value, &join(&self.key, tree.name))
    }

    /// Reads a table of free-form values, in order; empty if absent.
    pub(in crate::config) fn trees(&mut self, tree: &Tree) -> Option<Vec<(String, SourceTree)>> {
        let Some(value) = self.ask(tree.name) else {
            return Some(Vec::new());
        };
        self.dict(value, tree.name)?;
        match self.walk.tree(value, &join(&self.key, tree.name))? {
            SourceTree::Table(members) => Some(members),
            SourceTree::Text(_) | SourceTree::Literal(_) | SourceTree::List(_) => None,
        }
    }

    /// Reads a value without holes; problems are reported.
    pub(in crate::config) fn json(&mut self, tree: &Tree) -> Option<Json> {
        let found = self.tree(tree)?;
        match found.value() {
            Ok(json) => Some(json),
            Err(error) => {
                self.report_pattern(tree, error);
                None
            }
        }
    }

    /// Reports an invalid pattern of a free-form value.
    pub(in crate::config) fn report_pattern(&mut self, tree: &Tree, error: PatternError) {
        let error = error.under(&join(&self.key, tree.name));
        self.walk.report(error.key, ValueError::new(error.what));
    }
}

impl TableWalk<'_> {
    fn tree(&mut self, value: &Value, key: &str) -> Option<SourceTree> {
        match value {
            Value::String(_, text) => {
                if self.tree.is_date(key) {
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
