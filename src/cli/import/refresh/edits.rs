//! Changes of the pieces of a block, applied at once. Indices are those of the unchanged block.
//!
//! Used by `import::refresh::merge`.

use std::collections::{BTreeMap, BTreeSet};

use super::blocks::Block;
use super::pieces::Piece;
use super::units::Unit;

/// The changes of one block.
#[derive(Debug, Default)]
pub(super) struct Edits {
    removed: BTreeSet<usize>,
    /// New pieces, by the index of the piece that they precede.
    inserted: BTreeMap<usize, Vec<Piece>>,
    /// Comments above removed parts.
    comments: String,
    /// The parts that both sides changed, with the text of the new draft.
    pub(super) conflicts: Vec<(String, String)>,
}

impl Edits {
    pub(super) fn insert(&mut self, at: usize, pieces: Vec<Piece>) {
        self.inserted.entry(at).or_default().extend(pieces);
    }

    /// Removes a unit and inserts pieces, if any, at `at`. Comments above the unit stay.
    pub(super) fn replace(&mut self, block: &Block, own: &Unit, mut pieces: Vec<Piece>, at: usize) {
        let old = own.pieces.first().map(|first| &block.pieces[*first]);
        match (old, pieces.first_mut()) {
            (Some(old), Some(new)) => {
                let is_kept = old.is_header() == new.is_header() || old.lead.contains('#');
                new.lead = if is_kept {
                    old.lead.clone()
                } else {
                    String::new()
                };
            }
            (Some(old), None) => {
                let lines = old.lead.lines().filter(|line| !line.trim().is_empty());
                self.comments.extend(lines.flat_map(|line| [line, "\n"]));
            }
            (None, _) => {}
        }
        self.removed.extend(&own.pieces);
        self.insert(at, pieces);
    }

    /// Changes the block. Conflicts become comments before it.
    pub(super) fn apply(mut self, block: &mut Block) {
        let mut merged: Vec<Piece> = Vec::new();
        let mut push = |mut piece: Piece| {
            if let Some(last) = merged.last_mut() {
                // The last line of a file may have no end.
                if !last.text.ends_with('\n') {
                    last.text.push('\n');
                }
            } else {
                piece.lead.push_str(&self.comments);
            }
            merged.push(piece);
        };
        let count = block.pieces.len();
        for (at, piece) in std::mem::take(&mut block.pieces).into_iter().enumerate() {
            self.inserted
                .remove(&at)
                .into_iter()
                .flatten()
                .for_each(&mut push);
            if !self.removed.contains(&at) {
                push(piece);
            }
        }
        self.inserted
            .remove(&count)
            .into_iter()
            .flatten()
            .for_each(&mut push);
        block.pieces = merged;
    }
}
