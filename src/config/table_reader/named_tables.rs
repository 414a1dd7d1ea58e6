//! What stands under names that the user chose.

use figment::value::Value;

use super::{Table, found};
use crate::config::layer::join;
use crate::config::problem::Spanned;
use crate::config::value::{RawValue, ValueError};

impl Table<'_> {
    /// Tables under names that the user chose (`[upstream.old]`), each read by the same function.
    pub(in crate::config) fn named_tables<T>(
        &mut self,
        name: &'static str,
        by: impl Fn(&mut Table<'_>, &str) -> Option<T>,
    ) -> Vec<T> {
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
                let shown = found(value, &self.walk.tree.place(&key)).describe();
                let message = format!("{shown} is no table; write `[{key}]`");
                self.walk.report(key, ValueError::new(message));
            }
        }
        read
    }

    /// Arrays of tables under names that the user chose (`[[outcomes.common]]`), each table read by the same function.
    pub(in crate::config) fn named_lists<T>(
        &mut self,
        name: &'static str,
        by: impl Fn(&mut Table<'_>) -> Option<T>,
    ) -> Vec<(Spanned<String>, Vec<T>)> {
        let Some(entries) = self.ask(name).and_then(|value| self.dict(value, name)) else {
            return Vec::new();
        };
        let map = join(&self.key, name);
        let mut read = Vec::with_capacity(entries.len());
        for (chosen, value) in entries {
            let key = join(&map, chosen);
            let place = self.walk.tree.place(&key);
            if let Value::Array(_, items) = value {
                let tables = self.walk.tables(items, &key, &by);
                let value = chosen.clone();
                read.push((Spanned { value, place, key }, tables));
            } else {
                let shown = found(value, &place).describe();
                let message = format!("{shown} is no list of tables; write `[[{key}]]`");
                self.walk.report(key, ValueError::new(message));
            }
        }
        read
    }

    /// Values under names that the user chose (`header = { x-client = "ios-*" }`); `None` when it is absent.
    pub(in crate::config) fn named_values<T>(
        &mut self,
        name: &'static str,
        kind: impl Fn(RawValue<'_>) -> Result<T, ValueError>,
    ) -> Option<Vec<(Spanned<String>, Spanned<T>)>> {
        let value = self.ask(name)?;
        let entries = self.dict(value, name)?;
        let map = join(&self.key, name);
        let mut read = Vec::with_capacity(entries.len());
        for (chosen, value) in entries {
            let key = join(&map, chosen);
            let named = Spanned {
                value: chosen.clone(),
                place: self.walk.tree.place(&key),
                key: key.clone(),
            };
            read.extend(
                self.walk
                    .value(value, key, &kind)
                    .map(|value| (named, value)),
            );
        }
        (read.len() == entries.len()).then_some(read)
    }
}
