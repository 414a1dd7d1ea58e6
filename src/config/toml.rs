//! TOML 1.1 documents, with the location of every key.
//!
//! figment's own provider reads TOML 1.0, loses line numbers, and replaces arrays when it merges. Here the arrays of
//! several files are joined before figment sees them, so `route[7]` still has its file and line.
//!
//! Used by `flags`, `load` and `other_files`.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use figment::value::{Dict, Empty, Num, Tag, Value};
use toml::Spanned;
use toml::de::{DeFloat, DeInteger, DeTable, DeValue};

use crate::config::digest::{Digest, Digests};
use crate::config::layer::{Layer, element, join};
use crate::config::problem::{Position, Problem, SourceLocation};
use crate::config::regular;

/// The prefix of set keys: routes of several files form one list, but a set belongs to one file.
const SETS: &str = "outcomes.";

/// A file: its path as given, and its text.
#[derive(Debug)]
pub(super) struct TomlDocument {
    path: Arc<PathBuf>,
    text: String,
    line_starts: Vec<usize>,
}

/// The role of a file.
#[derive(Debug, Clone, Copy)]
pub(super) enum KeyPath {
    /// The main file, which may contain all tables.
    Main,
    /// An included file, which may contain only these tables.
    Included(&'static [&'static str]),
}

impl TomlDocument {
    /// Reads a file, and records its digest.
    pub(super) fn read(path: &Path, digests: &mut Digests) -> Result<Self, Problem> {
        let bytes = regular::read(path, regular::LONGEST).map_err(|error| {
            Problem::for_file(
                SourceLocation::file(path),
                format!("cannot be read: {error}"),
            )
        })?;
        digests.insert(path.to_path_buf(), Digest::from_bytes(&bytes));
        TomlDocument::decode(path, bytes)
    }

    /// Decodes the bytes of a file as text.
    pub(super) fn decode(path: &Path, bytes: Vec<u8>) -> Result<Self, Problem> {
        String::from_utf8(bytes)
            .map(|text| TomlDocument::new(path, text))
            .map_err(|error| {
                let valid = error.utf8_error().valid_up_to();
                let before = String::from_utf8_lossy(&error.as_bytes()[..valid]).into_owned();
                let end = before.len();
                let place = TomlDocument::new(path, before).column(end);
                Problem::for_file(place, "is not UTF-8 text")
            })
    }

    /// Returns a document for a file's text.
    pub(super) fn new(path: &Path, text: String) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let line_starts = std::iter::once(0)
            .chain(ends.map(|(end, _)| end + 1))
            .collect();
        TomlDocument {
            path: Arc::new(path.to_owned()),
            text,
            line_starts,
        }
    }

    /// Adds the content of the file to a layer: tables and arrays are joined with existing ones.
    ///
    /// Returns the problems of single keys.
    ///
    /// # Errors
    /// A text that is not TOML adds nothing, and is one problem: everything after the first error would be guesswork.
    pub(super) fn add_to(&self, layer: &mut Layer, part: KeyPath) -> Result<Vec<Problem>, Problem> {
        let (table, errors) = DeTable::parse_recoverable(&self.text);
        if let Some((at, message)) = first(&errors) {
            let problem = Problem::for_file(self.column(at), message.clone());
            return Err(match self.is_late_list(at, &message) {
                true => problem.hint("a list of tables comes before the lists in it: `[[route]]` before its `[[route.outcome]]`"),
                false => problem,
            });
        }
        let mut graft = Graft {
            layer,
            problems: Vec::new(),
            place_of: &|at| self.line(at),
        };
        let table = graft.allowed(table.into_inner(), part);
        let before = std::mem::take(&mut graft.layer.values);
        graft.layer.values = graft.table(before, table, "");
        Ok(graft.problems)
    }

    /// Returns true if the duplicate key is the name in a `[[name]]` header: an earlier header has made it a table.
    fn is_late_list(&self, at: usize, message: &str) -> bool {
        let before = self.text.get(..at);
        message == "duplicate key" && before.is_some_and(|before| before.ends_with("[["))
    }

    /// Returns the strings of the value at a path, which is a string or an array. From a document that is not TOML,
    /// only well-formed strings are returned.
    pub(super) fn strings_at(&self, path: &[&str]) -> Vec<String> {
        let (table, _) = DeTable::parse_recoverable(&self.text);
        let (Some((last, before)), mut table) = (path.split_last(), table.get_ref()) else {
            return Vec::new();
        };
        for name in before {
            match member(table, name).and_then(|value| value.get_ref().as_table()) {
                Some(inner) => table = inner,
                None => return Vec::new(),
            }
        }
        let Some(value) = member(table, last) else {
            return Vec::new();
        };
        let items = match value.get_ref().as_array() {
            Some(items) => items.iter().collect(),
            None => vec![value],
        };
        items
            .into_iter()
            .filter_map(|item| self.string(item))
            .collect()
    }

    /// Returns a string, unless the parser made it from an error.
    fn string(&self, value: &Spanned<DeValue<'_>>) -> Option<String> {
        let text = value.get_ref().as_str()?;
        let (again, errors) = DeValue::parse_recoverable(self.text.get(value.span())?);
        let is_whole = errors.is_empty() && again.get_ref().as_str() == Some(text);
        is_whole.then(|| text.to_owned())
    }

    fn line_index(&self, at: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= at) - 1
    }

    fn line(&self, at: usize) -> SourceLocation {
        SourceLocation::File {
            path: Arc::clone(&self.path),
            position: Some(Position {
                line: count(self.line_index(at) + 1),
                column: None,
            }),
        }
    }

    fn column(&self, at: usize) -> SourceLocation {
        let index = self.line_index(at);
        let before = self.text.get(self.line_starts[index]..at);
        SourceLocation::File {
            path: Arc::clone(&self.path),
            position: Some(Position {
                line: count(index + 1),
                column: before.map(|text| count(text.chars().count() + 1)),
            }),
        }
    }
}

fn member<'t, 'd>(table: &'t DeTable<'d>, name: &str) -> Option<&'t Spanned<DeValue<'d>>> {
    let mut members = table.iter();
    let found = members.find(|(found, _)| found.get_ref() == name);
    found.map(|(_, value)| value)
}

/// Converts a line or column number; no file has more.
fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Parses one value from outside of a file, such as `["/rpc"]` in a variable.
pub(super) fn parse_value(
    text: &str,
    key: &str,
    place: &SourceLocation,
    layer: &mut Layer,
) -> Result<Value, Vec<Problem>> {
    let (value, errors) = DeValue::parse_recoverable(text);
    if let Some((_, message)) = first(&errors) {
        let mut problem = Problem::for_file(place.clone(), message);
        key.clone_into(&mut problem.key);
        return Err(vec![problem]);
    }
    let mut graft = Graft {
        layer,
        problems: Vec::new(),
        place_of: &|_| place.clone(),
    };
    let value = graft.value(None, value, key);
    if graft.problems.is_empty() {
        Ok(value)
    } else {
        Err(graft.problems)
    }
}

/// Returns the first error in the text, with the parser's message; the parser does not sort them.
fn first(errors: &[toml::de::Error]) -> Option<(usize, String)> {
    errors
        .iter()
        .map(|error| {
            let at = error.span().map_or(0, |Range { start, .. }| start);
            (at, error.message().to_owned())
        })
        .min_by_key(|(at, _)| *at)
}

/// A visitor that puts parsed values into a layer, and records their locations.
struct Graft<'l> {
    layer: &'l mut Layer,
    problems: Vec<Problem>,
    place_of: &'l dyn Fn(usize) -> SourceLocation,
}

impl Graft<'_> {
    fn report(&mut self, at: usize, key: &str, message: String) {
        self.problems.push(Problem {
            place: (self.place_of)(at),
            key: key.to_owned(),
            message,
            hint: None,
        });
    }

    /// Returns the tables that are allowed in a file of this role.
    fn allowed<'t>(&mut self, table: DeTable<'t>, part: KeyPath) -> DeTable<'t> {
        let KeyPath::Included(allowed) = part else {
            return table;
        };
        let mut included = DeTable::new();
        for (name, value) in table {
            if allowed.contains(&name.get_ref().as_ref()) {
                included.insert(name, value);
            } else {
                let message =
                    "an included file can contain only routes; write this key in the main file";
                let key = join("", name.get_ref());
                self.report(start(&name, &value), &key, message.to_owned());
            }
        }
        included
    }

    fn table(&mut self, mut into: Dict, table: DeTable<'_>, key: &str) -> Dict {
        for (name, value) in table {
            let at = start(&name, &value);
            let name = name.into_inner().into_owned();
            let member = join(key, &name);
            self.layer.note(&member, &(self.place_of)(at), at);
            let before = into.remove(&name);
            let value = self.value(before, value, &member);
            into.insert(name, value);
        }
        into
    }

    fn value(&mut self, before: Option<Value>, found: Spanned<DeValue<'_>>, key: &str) -> Value {
        let at = found.span().start;
        match (before, found.into_inner()) {
            (None, DeValue::Table(table)) => Value::from(self.table(Dict::new(), table, key)),
            (None, DeValue::Array(items)) => Value::from(self.array(Vec::new(), items, key)),
            (None, scalar) => self.scalar(scalar, at, key),
            (Some(Value::Dict(_, into)), DeValue::Table(table)) => {
                Value::from(self.table(into, table, key))
            }
            (Some(before), DeValue::Array(_)) if key.starts_with(SETS) => {
                let first = self.layer.location(key).unwrap_or(SourceLocation::Default);
                let message = format!(
                    "the set is also defined at {first}; write all its rows in one file, or give it another name"
                );
                self.report(at, key, message);
                before
            }
            (Some(Value::Array(_, into)), DeValue::Array(items)) => {
                Value::from(self.array(into, items, key))
            }
            (Some(before), _) => {
                let message = "cannot be merged with the value of this key in another file";
                self.report(at, key, message.to_owned());
                before
            }
        }
    }

    fn array(
        &mut self,
        mut into: Vec<Value>,
        items: toml::de::DeArray<'_>,
        key: &str,
    ) -> Vec<Value> {
        for item in items {
            let member = element(key, into.len());
            let at = item.span().start;
            let place = (self.place_of)(at);
            self.layer.note(&member, &place, at);
            let value = self.value(None, item, &member);
            into.push(value);
        }
        into
    }

    fn scalar(&mut self, scalar: DeValue<'_>, at: usize, key: &str) -> Value {
        match scalar {
            DeValue::String(text) => Value::from(text.into_owned()),
            DeValue::Boolean(value) => Value::from(value),
            DeValue::Integer(number) => self.integer(&number, at, key),
            DeValue::Float(number) => float(&number),
            // figment has no dates, so they become text; patterns learn the original type.
            DeValue::Datetime(date) => {
                self.layer.note_date(key);
                Value::from(date.to_string())
            }
            DeValue::Array(_) | DeValue::Table(_) => Value::Empty(Tag::Default, Empty::None),
        }
    }

    fn integer(&mut self, number: &DeInteger<'_>, at: usize, key: &str) -> Value {
        let parsed = i64::from_str_radix(number.as_str(), number.radix());
        Value::from(parsed.unwrap_or_else(|_| {
            let message = format!("`{number}` does not fit into 64 bits");
            self.report(at, key, message);
            0
        }))
    }
}

fn float(number: &DeFloat<'_>) -> Value {
    let parsed = number.as_str().parse().unwrap_or(f64::NAN);
    Value::Num(Tag::Default, Num::F64(parsed))
}

/// Returns the start of a member. For an array of tables the name has the position of the last header, the value that
/// of the first.
fn start<N, V>(name: &Spanned<N>, value: &Spanned<V>) -> usize {
    name.span().start.min(value.span().start)
}
