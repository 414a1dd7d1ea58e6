//! The parts of a block that are merged: all entries and tables below one key, however they are spelled.
//!
//! Used by `import::refresh::merge`.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::blocks::Block;
use super::pieces::{Piece, PieceKind};

/// The entries and tables of one key.
#[derive(Debug, Clone)]
pub(super) struct Unit {
    pub(super) key: String,
    /// The indices of its pieces.
    pub(super) pieces: Vec<usize>,
    pub(super) value: Option<Value>,
}

/// A table whose members are pieces of their own: `[route.params]`, or dotted keys.
#[derive(Debug)]
pub(super) struct OpenTable {
    pub(super) members: BTreeMap<String, Unit>,
    /// The words before the key of a member.
    pub(super) prefix: String,
    /// The place for a new member.
    pub(super) end: usize,
}

impl Unit {
    /// Renders the unit. Comments above its first piece are not part of it.
    pub(super) fn text(&self, block: &Block) -> String {
        let mut text = String::new();
        for (index, at) in self.pieces.iter().enumerate() {
            let piece = &block.pieces[*at];
            if index > 0 {
                text.push_str(&piece.lead);
            }
            text.push_str(&piece.text);
        }
        text
    }

    /// Returns true if comments stand inside of the unit.
    pub(super) fn has_comment(&self, block: &Block) -> bool {
        let mut pieces = self.pieces.iter().enumerate();
        pieces.any(|(index, at)| {
            let piece = &block.pieces[*at];
            piece.has_comment() || index > 0 && piece.lead.contains('#')
        })
    }

    /// Returns true if the unit begins with a header.
    pub(super) fn is_table(&self, block: &Block) -> bool {
        let first = self.pieces.first().and_then(|at| block.pieces.get(*at));
        first.is_some_and(Piece::is_header)
    }

    /// Returns the members, if each of them is a piece.
    pub(super) fn open(&self, block: &Block) -> Option<OpenTable> {
        let Some(Value::Table(table)) = &self.value else {
            return None;
        };
        let first = *self.pieces.first()?;
        let (skipped, prefix) = match &block.pieces[first].kind {
            PieceKind::Header(keys) if keys.len() == 2 => (1, String::new()),
            PieceKind::Entry(keys) if keys.len() > 1 => (0, format!("{}.", key(&self.key)?)),
            PieceKind::Header(_) | PieceKind::Entry(_) => return None,
        };
        let pieces = self.pieces.iter().skip(skipped).copied();
        let is_entry = |at: &usize| !block.pieces[*at].is_header();
        let entries = pieces.clone().take_while(is_entry).last();
        let members = group(block, pieces, 1, table);
        Some(OpenTable {
            members: by_key(members),
            prefix,
            end: entries.unwrap_or(first) + 1,
        })
    }
}

/// Returns the units of a block in their order.
pub(super) fn units(block: &Block) -> Vec<Unit> {
    let value = block.value().unwrap_or_default();
    group(block, 1..block.pieces.len(), 0, &value)
}

/// Returns units by their keys.
pub(super) fn by_key(units: Vec<Unit>) -> BTreeMap<String, Unit> {
    let units = units.into_iter();
    units.map(|unit| (unit.key.clone(), unit)).collect()
}

/// Returns a key as TOML, or `None` if it needs several lines.
pub(super) fn key(name: &str) -> Option<String> {
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if !name.is_empty() && name.bytes().all(is_bare) {
        return Some(name.to_owned());
    }
    let quoted = Value::String(name.to_owned()).to_string();
    let is_long = quoted.starts_with("\"\"\"") || quoted.starts_with("'''");
    (!is_long).then_some(quoted)
}

/// Groups pieces by one of their keys. `table` has the values.
fn group(
    block: &Block,
    pieces: impl Iterator<Item = usize>,
    depth: usize,
    table: &Table,
) -> Vec<Unit> {
    let paths = paths(block);
    let mut found: Vec<Unit> = Vec::new();
    let mut indices: BTreeMap<&String, usize> = BTreeMap::new();
    for at in pieces {
        let Some(key) = paths[at].get(depth) else {
            continue;
        };
        let index = *indices.entry(key).or_insert_with(|| {
            found.push(Unit {
                key: key.clone(),
                pieces: Vec::new(),
                value: table.get(key).cloned(),
            });
            found.len() - 1
        });
        found[index].pieces.push(at);
    }
    found
}

/// Returns the keys of each piece below the block's own.
fn paths(block: &Block) -> Vec<Vec<String>> {
    let mut inside: &[String] = &[];
    let pieces = block.pieces.iter();
    let paths = pieces.map(|piece| match &piece.kind {
        PieceKind::Header(keys) => {
            inside = keys.get(1..).unwrap_or_default();
            inside.to_vec()
        }
        PieceKind::Entry(keys) => [inside, keys].concat(),
    });
    paths.collect()
}
