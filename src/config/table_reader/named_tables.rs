//! Tables, lists and values under user-chosen names.

use figment::value::Value;

use super::{Table, found};
use crate::config::key::{NamedValues, SubTable};
use crate::config::layer::join;
use crate::config::problem::Spanned;
use crate::config::value::ValueError;

impl Table<'_> {
    /// Reads tables under user-chosen names (`[upstream.old]`) with one function.
    pub(in crate::config) fn named_tables<T>(
        &mut self,
        table: &SubTable,
        by: impl Fn(&mut Table<'_>, &str) -> Option<T>,
    ) -> Vec<T> {
        let name = table.name;
        let Some(entries) = self.ask(name).and_then(|value| self.dict(value, name)) else {
            return Vec::new();
        };
        let map = join(&self.key, name);
        let mut read = Vec::with_capacity(entries.len());
        for (chosen, value) in entries {
            let key = join(&map, chosen);
            if let Value::Dict(_, entries) = value {
                read.extend(self.walk.table(entries, key, |table| by(table, chosen)));
            } else {
                let shown = found(value, &self.walk.tree.location(&key)).describe();
                let message = format!("{shown} is not a table; write `[{key}]`");
                self.walk.report(key, ValueError::new(message));
            }
        }
        read
    }

    /// Reads arrays of tables under user-chosen names (`[[outcomes.common]]`) with one function.
    pub(in crate::config) fn named_lists<T>(
        &mut self,
        table: &SubTable,
        by: impl Fn(&mut Table<'_>) -> Option<T>,
    ) -> Vec<(Spanned<String>, Vec<T>)> {
        let name = table.name;
        let Some(entries) = self.ask(name).and_then(|value| self.dict(value, name)) else {
            return Vec::new();
        };
        let map = join(&self.key, name);
        let mut read = Vec::with_capacity(entries.len());
        for (chosen, value) in entries {
            let key = join(&map, chosen);
            let place = self.walk.tree.location(&key);
            if let Value::Array(_, items) = value {
                let tables = self.walk.tables(items, &key, &by);
                let value = chosen.clone();
                read.push((Spanned { value, place, key }, tables));
            } else {
                let shown = found(value, &place).describe();
                let message = format!("{shown} is not a list of tables; write `[[{key}]]`");
                self.walk.report(key, ValueError::new(message));
            }
        }
        read
    }

    /// Reads values under user-chosen names (`header = { x-client = "ios-*" }`); returns `None` if absent.
    pub(in crate::config) fn named_values<T>(
        &mut self,
        values: &NamedValues<T>,
    ) -> Option<Vec<(Spanned<String>, Spanned<T>)>> {
        let name = values.name;
        let value = self.ask(name)?;
        let entries = self.dict(value, name)?;
        let map = join(&self.key, name);
        let mut read = Vec::with_capacity(entries.len());
        for (chosen, value) in entries {
            let key = join(&map, chosen);
            let named = Spanned {
                value: chosen.clone(),
                place: self.walk.tree.location(&key),
                key: key.clone(),
            };
            read.extend(
                self.walk
                    .value(value, key, |found| values.kind.decode(found))
                    .map(|value| (named, value)),
            );
        }
        (read.len() == entries.len()).then_some(read)
    }
}
