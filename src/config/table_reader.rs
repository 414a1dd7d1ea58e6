//! The reader of the merged tree, which reports every problem instead of stopping at the first.
//!
//! Each table is read by a function that asks for its keys, which are entries of the table of keys; a key that was
//! never asked for is reported as unknown. A getter reports an invalid value and returns `None`, so a function asks for
//! all its keys before it gives up. For an absent optional key it also returns `None`.
//!
//! Used throughout `config`.

mod json_values;
mod named_tables;
#[cfg(test)]
pub(super) mod requested_keys;

use figment::value::{Dict, Value};

use crate::config::key::{Key, List, Presence, SubTable};
use crate::config::kind::Kind;
use crate::config::layer::{Merged, element, join};
use crate::config::problem::{Problem, SourceLocation, Spanned, nearest};
use crate::config::value::{NameForm, RawValue, ValueError, cut};

const TABLE: &str = "table";

/// Reads the whole tree with one function; the result is valid only if there are no problems.
pub(super) fn read<T>(
    tree: &Merged,
    problems: &mut Vec<Problem>,
    by: impl FnOnce(&mut Table<'_>) -> Option<T>,
) -> Option<T> {
    let mut walk = TableWalk { tree, problems };
    walk.table(&tree.values, String::new(), by)
}

/// The shared state of reading: the tree, for locations, and the problems.
struct TableWalk<'w> {
    tree: &'w Merged,
    problems: &'w mut Vec<Problem>,
}

impl TableWalk<'_> {
    fn table<T>(
        &mut self,
        entries: &Dict,
        key: String,
        by: impl FnOnce(&mut Table<'_>) -> Option<T>,
    ) -> Option<T> {
        let mut table = Table {
            walk: TableWalk {
                tree: self.tree,
                problems: self.problems,
            },
            entries,
            key,
            known: Vec::new(),
        };
        let value = by(&mut table);
        table.finish();
        value
    }

    fn tables<T>(
        &mut self,
        items: &[Value],
        array: &str,
        by: impl Fn(&mut Table<'_>) -> Option<T>,
    ) -> Vec<T> {
        let mut read = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let key = element(array, index);
            if let Value::Dict(_, entries) = item {
                read.extend(self.table(entries, key, &by));
            } else {
                let shown = found(item, &self.tree.location(&key)).describe();
                self.report(key, ValueError::new(format!("{shown} is not a table")));
            }
        }
        read
    }

    fn report(&mut self, key: String, wrong: ValueError) {
        self.problems.push(Problem {
            place: self.tree.location(&key),
            key,
            message: wrong.message,
            hint: wrong.hint,
        });
    }

    fn value<T>(
        &mut self,
        value: &Value,
        key: String,
        kind: impl Fn(RawValue<'_>) -> Result<T, ValueError>,
    ) -> Option<Spanned<T>> {
        let place = self.tree.location(&key);
        match kind(found(value, &place)) {
            Ok(value) => Some(Spanned { value, place, key }),
            Err(wrong) => {
                self.report(key, wrong);
                None
            }
        }
    }
}

fn found<'v>(value: &'v Value, place: &SourceLocation) -> RawValue<'v> {
    let spelling = match place {
        SourceLocation::Variable(_) => NameForm::Text,
        SourceLocation::Default
        | SourceLocation::File { .. }
        | SourceLocation::Argument(_)
        | SourceLocation::Flip(_)
        | SourceLocation::Source(_) => NameForm::Typed,
    };
    RawValue { value, spelling }
}

/// One table of the tree while it is read.
pub(super) struct Table<'t> {
    walk: TableWalk<'t>,
    entries: &'t Dict,
    key: String,
    known: Vec<&'static str>,
}

impl<'t> Table<'t> {
    /// Reads a value. An absent key has its default; without one, the result is `None`.
    pub(super) fn get<T>(&mut self, key: &Key<T>) -> Option<Spanned<T>> {
        let Some(value) = self.ask(key.name) else {
            return self.absent(key);
        };
        let decode = |found: RawValue<'_>| key.kind.decode(found);
        self.walk.value(value, join(&self.key, key.name), decode)
    }

    /// Reads a value that other keys require.
    pub(super) fn require<T>(&mut self, key: &Key<T>) -> Option<Spanned<T>> {
        if self.ask(key.name).is_none() {
            self.missing(key.name);
            return None;
        }
        self.get(key)
    }

    /// Reads a value whose default depends on other keys.
    pub(super) fn get_or<T>(&mut self, key: &Key<T>, default: T) -> Option<Spanned<T>> {
        if self.ask(key.name).is_some() {
            return self.get(key);
        }
        Some(Spanned {
            value: default,
            place: SourceLocation::Default,
            key: join(&self.key, key.name),
        })
    }

    fn absent<T>(&mut self, key: &Key<T>) -> Option<Spanned<T>> {
        let text = match key.presence {
            Presence::Optional | Presence::Implied => return None,
            Presence::Required => {
                self.missing(key.name);
                return None;
            }
            Presence::Default(text) => text.to_owned(),
            Presence::Computed { text, .. } => text(),
        };
        self.default(join(&self.key, key.name), &key.kind, &text)
    }

    /// Decodes a default, which is written as in a variable.
    fn default<T>(&mut self, key: String, kind: &Kind<T>, text: &str) -> Option<Spanned<T>> {
        let value = Value::from(text);
        let found = RawValue {
            value: &value,
            spelling: NameForm::Text,
        };
        match kind.decode(found) {
            Ok(value) => Some(Spanned {
                value,
                place: SourceLocation::Default,
                key,
            }),
            Err(wrong) => {
                self.walk.report(key, wrong);
                None
            }
        }
    }

    /// Reads a list of values; if absent, it has the default items.
    pub(super) fn list<T>(&mut self, list: &List<T>) -> Option<Vec<Spanned<T>>> {
        let (name, key) = (list.name, join(&self.key, list.name));
        let Some(value) = self.ask(name) else {
            if list.is_required {
                self.missing(name);
            }
            let items = list.default.iter().enumerate();
            let items = items.map(|(place, text)| {
                let key = element(&key, place);
                self.default(key, &list.items, text)
            });
            return items.collect();
        };
        let decode = |found: RawValue<'_>| list.items.decode(found);
        if !list.is_one_or_many {
            let items = self.array(value, name, "list; write one such as `[\"a\", \"b\"]`")?;
            return self.items(items, &key, decode);
        }
        let Value::Array(_, items) = value else {
            return self.walk.value(value, key, decode).map(|one| vec![one]);
        };
        if items.is_empty() {
            self.report(
                name,
                ValueError::new("the list is empty; write at least one"),
            );
            return None;
        }
        self.items(items, &key, decode)
    }

    /// Reads a table with a function.
    pub(super) fn table<T>(
        &mut self,
        table: &SubTable,
        by: impl FnOnce(&mut Table<'_>) -> Option<T>,
    ) -> Option<T> {
        let key = join(&self.key, table.name);
        match (self.ask(table.name), table.presence) {
            (Some(value), _) => {
                let entries = self.dict(value, table.name)?;
                self.walk.table(entries, key, by)
            }
            (None, Presence::Implied) => self.walk.table(&Dict::new(), key, by),
            (None, Presence::Required) => {
                self.missing(table.name);
                None
            }
            (None, Presence::Optional | Presence::Default(_) | Presence::Computed { .. }) => None,
        }
    }

    /// Reads a table that other keys require.
    pub(super) fn require_table<T>(
        &mut self,
        table: &SubTable,
        by: impl FnOnce(&mut Table<'_>) -> Option<T>,
    ) -> Option<T> {
        if self.ask(table.name).is_none() {
            self.missing(table.name);
            return None;
        }
        self.table(table, by)
    }

    /// Reads an array of tables with one function; empty if absent.
    pub(super) fn tables<T>(
        &mut self,
        table: &SubTable,
        by: impl Fn(&mut Table<'_>) -> Option<T>,
    ) -> Vec<T> {
        let name = table.name;
        let value = self.ask(name);
        if let Some(Value::Dict(_, entries)) = value
            && let Some((inner, _)) = entries.iter().find(|(_, value)| is_list_of_tables(value))
        {
            let key = join(&without_indexes(&self.key), name);
            let message = format!(
                "`[[{key}.{inner}]]` must follow the `[[{key}]]` to which it belongs; `{key}` is a list of tables"
            );
            self.report(name, ValueError::new(message));
            return Vec::new();
        }
        if value.is_none() && matches!(table.presence, Presence::Required) {
            self.missing(name);
        }
        let Some(items) = value.and_then(|value| {
            let header = join(&without_indexes(&self.key), name);
            self.array(
                value,
                name,
                &format!("list of tables; write `[[{header}]]`"),
            )
        }) else {
            return Vec::new();
        };
        self.walk.tables(items, &join(&self.key, name), by)
    }

    /// Returns the shape of the value under a key.
    pub(super) fn shape(&mut self, name: &'static str) -> Shape {
        match self.ask(name) {
            None => Shape::Absent,
            Some(Value::Dict(..)) => Shape::Table,
            Some(_) => Shape::Value,
        }
    }

    /// Returns the user-chosen name of this table.
    pub(super) fn named(&mut self, chosen: &str, kind: &Kind<String>) -> Option<Spanned<String>> {
        let chosen = Value::from(chosen);
        let decode = |found: RawValue<'_>| kind.decode(found);
        self.walk.value(&chosen, self.key.clone(), decode)
    }

    /// Returns the table itself, for a problem that belongs to no single key.
    pub(super) fn here(&self) -> Spanned<()> {
        Spanned {
            value: (),
            place: self.walk.tree.location(&self.key),
            key: self.key.clone(),
        }
    }

    /// Returns the location of a key of this table.
    pub(super) fn at(&self, name: &str) -> Spanned<()> {
        let key = join(&self.key, name);
        Spanned {
            value: (),
            place: self.walk.tree.location(&key),
            key,
        }
    }

    /// Reports a problem with a key of this table.
    pub(super) fn report(&mut self, name: &str, wrong: ValueError) {
        self.walk.report(join(&self.key, name), wrong);
    }

    /// Reports a problem that was found by comparing values.
    pub(super) fn add(&mut self, problem: Problem) {
        self.walk.problems.push(problem);
    }

    fn ask(&mut self, name: &'static str) -> Option<&'t Value> {
        if !self.known.contains(&name) {
            self.known.push(name);
        }
        self.entries.get(name)
    }

    fn missing(&mut self, name: &str) {
        let mut problem = self.here().problem(format!("`{name}` is missing"));
        if problem.key.is_empty() {
            name.clone_into(&mut problem.key);
        }
        self.add(problem);
    }

    fn dict(&mut self, value: &'t Value, name: &str) -> Option<&'t Dict> {
        if let Value::Dict(_, entries) = value {
            return Some(entries);
        }
        self.wrong_shape(value, name, TABLE);
        None
    }

    fn array(&mut self, value: &'t Value, name: &str, what: &str) -> Option<&'t [Value]> {
        if let Value::Array(_, items) = value {
            return Some(items);
        }
        self.wrong_shape(value, name, what);
        None
    }

    fn wrong_shape(&mut self, value: &Value, name: &str, what: &str) {
        let place = self.walk.tree.location(&join(&self.key, name));
        let message = format!("{} is not a {what}", found(value, &place).describe());
        let hint = match place {
            SourceLocation::Variable(variable) if what == TABLE => {
                Some(format!("write a key of the table as `{variable}__KEY`"))
            }
            SourceLocation::Variable(_)
            | SourceLocation::Default
            | SourceLocation::File { .. }
            | SourceLocation::Argument(_)
            | SourceLocation::Flip(_)
            | SourceLocation::Source(_) => None,
        };
        self.report(name, ValueError { message, hint });
    }

    /// Reads every item, even after an invalid one.
    fn items<T>(
        &mut self,
        items: &[Value],
        key: &str,
        kind: impl Fn(RawValue<'_>) -> Result<T, ValueError>,
    ) -> Option<Vec<Spanned<T>>> {
        let mut read = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            read.extend(self.walk.value(item, element(key, index), &kind));
        }
        (read.len() == items.len()).then_some(read)
    }

    /// Reports each key that was never asked for.
    fn finish(mut self) {
        #[cfg(test)]
        requested_keys::note(&self.key, &self.known);
        for name in self.entries.keys() {
            if self.known.contains(&name.as_str()) {
                continue;
            }
            let near = || nearest(name, self.known.iter().copied());
            let hint = match self.walk.tree.location(&join(&self.key, name)) {
                SourceLocation::Variable(variable) => with_separator(&variable, name, &self.known),
                SourceLocation::Default
                | SourceLocation::File { .. }
                | SourceLocation::Argument(_)
                | SourceLocation::Flip(_)
                | SourceLocation::Source(_) => None,
            };
            let wrong = ValueError {
                message: "unknown key".to_owned(),
                hint: hint.or_else(|| near().map(|known| format!("did you mean `{known}`?"))),
            };
            self.report(name, wrong);
        }
    }
}

/// Returns a hint for a variable that has one `_` between a table and its key instead of two.
fn with_separator(variable: &str, name: &str, known: &[&str]) -> Option<String> {
    let mut tables = name.match_indices('_').map(|(at, _)| name.split_at(at));
    let (table, key) = tables.rfind(|(table, _)| known.contains(table))?;
    let (written, meant) = (name.to_uppercase(), format!("{table}_{key}").to_uppercase());
    let meant = variable
        .contains(&written)
        .then(|| variable.replacen(&written, &meant, 1))?;
    Some(format!(
        "did you mean `{meant}`? `__` separates a table from its key"
    ))
}

/// Returns a key as in a TOML table header: `route[3].reply` becomes `route.reply`.
fn without_indexes(key: &str) -> String {
    let pieces = key.split('[');
    let names = pieces.map(|piece| match piece.split_once(']') {
        Some((index, rest)) if index.bytes().all(|byte| byte.is_ascii_digit()) => rest,
        Some(_) | None => piece,
    });
    names.collect()
}

fn is_list_of_tables(value: &Value) -> bool {
    matches!(value, Value::Array(_, items) if matches!(items[..], [Value::Dict(..), ..]))
}

/// The shape of the value under a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// No value.
    Absent,
    /// A table.
    Table,
    /// Another value.
    Value,
}

/// Reports each name that is given twice.
pub(super) fn unique<'n>(
    names: impl IntoIterator<Item = &'n Spanned<String>>,
    table: &mut Table<'_>,
) {
    let mut first: std::collections::BTreeMap<&str, &Spanned<String>> =
        std::collections::BTreeMap::new();
    for name in names {
        if let Some(earlier) = first.get(name.value.as_str()) {
            let shown = cut(&name.value);
            let message = format!(
                "the name `{shown}` is already used by {} at {}",
                earlier.key, earlier.place
            );
            table.add(name.problem(message));
        } else {
            first.insert(&name.value, name);
        }
    }
}
