//! The three-way merge of one block, key by key.
//!
//! A key that a person has spelled in another way is the same key: values are compared, not texts. A table whose members
//! are lines of their own is merged member by member, in its spelling.

use std::collections::BTreeSet;

use toml::Value;

use crate::cli::import::refresh::blocks::Block;
use crate::cli::import::refresh::edits::Edits;
use crate::cli::import::refresh::pieces::{Piece, PieceKind};
use crate::cli::import::refresh::units::{self, OpenTable, Unit, by_key};

/// The versions of one key.
#[derive(Clone, Copy)]
struct Part<'p> {
    key: &'p str,
    base: Option<&'p Unit>,
    ours: Option<&'p Unit>,
    theirs: Option<&'p Unit>,
}

/// The versions of one block.
struct Blocks<'b> {
    base: &'b Block,
    ours: &'b Block,
    theirs: &'b Block,
    edits: Edits,
}

/// Merges the changes from `base` to `theirs` into `ours`.
pub(super) fn merge(ours: &Block, base: &Block, theirs: &Block) -> Edits {
    let new_units = units::units(theirs);
    let order: Vec<&str> = new_units.iter().map(|unit| unit.key.as_str()).collect();
    let (old, own) = (by_key(units::units(base)), by_key(units::units(ours)));
    let new = by_key(new_units.clone());
    let removed = old.keys().filter(|key| !new.contains_key(*key));
    let keys = removed.map(String::as_str).chain(order);
    // Entries precede the tables of their block.
    let tables = ours.pieces.iter().skip(1).position(Piece::is_header);
    let end = tables.map_or(ours.pieces.len(), |table| table + 1);
    let mut after = end;
    let mut blocks = Blocks {
        base,
        ours,
        theirs,
        edits: Edits::default(),
    };
    for key in keys {
        let part = Part {
            key,
            base: old.get(key),
            ours: own.get(key),
            theirs: new.get(key),
        };
        let place = part
            .ours
            .and_then(|unit| unit.pieces.last())
            .map(|at| at + 1);
        if !same(part.base, part.theirs) {
            blocks.part(part, after);
        }
        after = place.filter(|place| *place <= end).unwrap_or(after);
    }
    blocks.edits
}

impl Blocks<'_> {
    /// Merges one key. A new entry is inserted at `after`, a new table at the end of the block.
    fn part(&mut self, part: Part<'_>, after: usize) {
        let pieces = self.new_pieces(part.theirs);
        let is_table = pieces.first().is_some_and(Piece::is_header);
        let Some(own) = part.ours else {
            match part.base {
                None if is_table => self.edits.insert(self.ours.pieces.len(), pieces),
                None => self.edits.insert(after, pieces),
                Some(_) => self.conflict(part, &pieces),
            }
            return;
        };
        let text = own.text(self.ours);
        let is_same = same(part.base, part.ours);
        let is_untouched = part.base.is_some_and(|base| base.text(self.base) == text);
        let first = own.pieces.first().copied().unwrap_or(after);
        let place = match (is_table, own.is_table(self.ours)) {
            (true, false) => self.ours.pieces.len(),
            (false, true) => after,
            (true, true) | (false, false) => first,
        };
        if is_same && is_untouched {
            self.edits.replace(self.ours, own, pieces, place);
        } else if same(part.ours, part.theirs) {
            // Both sides made the same change.
        } else if let Some(open) = self.open(part) {
            self.members(part, &open);
        } else if is_same && !own.has_comment(self.ours) {
            self.edits.replace(self.ours, own, pieces, place);
        } else {
            self.conflict(part, &pieces);
        }
    }

    /// Returns the edited table, if the key is a table in all versions, and its members are pieces.
    fn open(&self, part: Part<'_>) -> Option<OpenTable> {
        let is_table = |unit: Option<&Unit>| {
            let value = unit.and_then(|unit| unit.value.as_ref());
            value.is_some_and(Value::is_table)
        };
        let are_tables = is_table(part.theirs) && (part.base.is_none() || is_table(part.base));
        part.ours.filter(|_| are_tables)?.open(self.ours)
    }

    /// Merges the members of a table in the spelling of the edited one.
    fn members(&mut self, part: Part<'_>, open: &OpenTable) {
        let table = |unit: Option<&Unit>| match unit.and_then(|unit| unit.value.clone()) {
            Some(Value::Table(table)) => table,
            _ => toml::Table::new(),
        };
        let (base, theirs) = (table(part.base), table(part.theirs));
        let keys: BTreeSet<&String> = base.keys().chain(theirs.keys()).collect();
        let drafted = part.theirs.and_then(|unit| unit.open(self.theirs));
        let former = part.base.and_then(|unit| unit.open(self.base));
        for key in keys {
            let (old, new) = (base.get(key), theirs.get(key));
            if old == new {
                continue;
            }
            let member = drafted.as_ref().and_then(|open| open.members.get(key));
            let written = new.map(|value| self.written(key, value, member));
            let piece = written.map(|written| new_member(&open.prefix, key, &written));
            let own = open.members.get(key);
            let ours = own.and_then(|unit| unit.value.as_ref());
            let pieces: Vec<Piece> = piece.into_iter().collect();
            let known = former.as_ref().and_then(|open| open.members.get(key));
            let known = known.map(|unit| unit.text(self.base));
            let has_comment = own.is_some_and(|unit| {
                unit.has_comment(self.ours) && Some(unit.text(self.ours)) != known
            });
            if ours == new && ours.is_some() {
                continue;
            }
            let name = format!("{}.{key}", part.key);
            match own {
                Some(own) if ours == old && !has_comment => {
                    let at = own.pieces.first().copied().unwrap_or(open.end);
                    self.edits.replace(self.ours, own, pieces, at);
                }
                None if old.is_none() => self.edits.insert(open.end, pieces),
                Some(_) | None => {
                    let sides = [ours.is_some(), new.is_some()];
                    self.edits.conflicts.extend(conflict(&name, sides, &pieces));
                }
            }
        }
    }

    /// Returns the value of a member as the draft writes it, with the end of its line.
    fn written(&self, key: &str, value: &Value, member: Option<&Unit>) -> String {
        let pieces = member.map(|unit| unit.pieces.as_slice());
        let entry = match pieces {
            Some([at]) => Some(&self.theirs.pieces[*at]),
            Some(_) | None => None,
        };
        let ends_here = |piece: &&Piece| match &piece.kind {
            PieceKind::Entry(keys) => keys.last().is_some_and(|last| last == key),
            PieceKind::Header(_) => false,
        };
        match entry.filter(ends_here) {
            Some(piece) => piece.key_and_value().1.to_owned(),
            None => format!("{value}\n"),
        }
    }

    fn new_pieces(&self, unit: Option<&Unit>) -> Vec<Piece> {
        let pieces = unit.map(|unit| unit.pieces.as_slice()).unwrap_or_default();
        let pieces = pieces.iter();
        pieces.map(|at| self.theirs.pieces[*at].clone()).collect()
    }

    fn conflict(&mut self, part: Part<'_>, pieces: &[Piece]) {
        let sides = [part.ours.is_some(), part.theirs.is_some()];
        self.edits
            .conflicts
            .extend(conflict(part.key, sides, pieces));
    }
}

/// Returns the member of a table as an entry.
fn new_member(prefix: &str, key: &str, written: &str) -> Piece {
    let name = units::key(key).unwrap_or_else(|| Value::String(key.to_owned()).to_string());
    let end = if written.ends_with('\n') { "" } else { "\n" };
    Piece {
        lead: String::new(),
        kind: PieceKind::Entry(vec![key.to_owned()]),
        text: format!("{prefix}{name} = {written}{end}"),
    }
}

/// Returns the description of a conflict and the text of the new draft. `sides` tell if the table and the new draft have
/// the key.
fn conflict(key: &str, sides: [bool; 2], pieces: &[Piece]) -> Option<(String, String)> {
    let text: String = pieces.iter().map(|piece| piece.text.as_str()).collect();
    let what = match sides {
        [true, true] => format!("`{key}` was edited; the new draft has"),
        [true, false] => format!("`{key}` was edited; the new draft does not have it"),
        [false, true] => format!("`{key}` was removed; the new draft has"),
        [false, false] => return None,
    };
    Some((what, text))
}

fn same(one: Option<&Unit>, other: Option<&Unit>) -> bool {
    let value = |unit: Option<&Unit>| unit.and_then(|unit| unit.value.clone());
    value(one) == value(other)
}
