//! The three-way merge of a route file: the old draft, the edited table and the new draft.
//!
//! Laws (tested): with an unchanged draft the table stays as it is, byte for byte; an unedited table becomes the new
//! draft; an edit is never lost. Where both changed the same part, the edit stays and the new draft's text is a comment.
//!
//! Used by `import::refresh`.

use std::collections::{BTreeMap, BTreeSet};

use toml::Table;

use super::blocks::{Block, Layout, Unit};
use super::comments::{self, split_lead};
use super::pieces::Piece;

/// The parts of a refreshed table that differ from the edited one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RefreshReport {
    pub(super) changed: usize,
    pub(super) added: usize,
    pub(super) removed: usize,
    /// What both sides changed, for people.
    pub(super) conflicts: Vec<String>,
    /// Changes of the documents to routes that the table does not have any more.
    pub(super) deleted: Vec<String>,
}

/// The three versions.
struct Versions<'v> {
    base: &'v Layout,
    theirs: &'v Layout,
    report: RefreshReport,
}

/// Merges the changes between two drafts into an edited table. All texts are valid TOML.
pub(super) fn merge(base: &str, edited: &str, new: &str) -> (String, RefreshReport) {
    let (base, edited, theirs) = (Layout::new(base), Layout::new(edited), Layout::new(new));
    let mut versions = Versions {
        base: &base,
        theirs: &theirs,
        report: RefreshReport::default(),
    };
    let mut merged = versions.blocks(edited);
    comments::merge_paragraphs(&mut merged, &base, &theirs);
    (merged.text(), versions.report)
}

impl Versions<'_> {
    fn blocks(&mut self, edited: Layout) -> Layout {
        // The new blocks, by the block that they follow.
        let mut added = self.added(&edited);
        let mut blocks = Vec::new();
        for (at, mut block) in added.remove(&None).into_iter().flatten() {
            self.report.added += 1;
            follow_on(&mut block, at);
            blocks.push(block);
        }
        let mut found = BTreeSet::new();
        let mut apart = String::new();
        for (at, block) in edited.blocks.iter().enumerate() {
            let old = self.base.index_of(block).filter(|old| found.insert(*old));
            let kept = match old {
                Some(old) => self.block(block, &self.base.blocks[old]),
                None => Some(block.clone()),
            };
            match kept {
                Some(mut kept) => {
                    if let Some(first) = kept.pieces.first_mut() {
                        first.lead = below(&std::mem::take(&mut apart), &first.lead);
                    }
                    blocks.push(kept);
                }
                // Paragraphs above a removed block stay.
                None => {
                    let lead = block.pieces.first().map(|piece| piece.lead.as_str());
                    apart = below(&apart, split_lead(lead.unwrap_or_default()).0);
                }
            }
            for (place, mut block) in added.remove(&Some(at)).into_iter().flatten() {
                self.report.added += 1;
                follow_on(&mut block, place);
                blocks.push(block);
            }
        }
        for (at, old) in self.base.blocks.iter().enumerate() {
            let new = self
                .theirs
                .index_of(old)
                .map(|new| &self.theirs.blocks[new]);
            if !found.contains(&at) && new.is_none_or(|new| new.text() != old.text()) {
                self.report.deleted.push(old.title());
            }
        }
        let tail = below(&apart, &edited.tail);
        Layout {
            blocks,
            tail,
            ..edited
        }
    }

    /// Returns the blocks that only the new draft has, by the edited block that they follow. Each has its place in the
    /// new draft.
    fn added(&mut self, edited: &Layout) -> BTreeMap<Option<usize>, Vec<(usize, Block)>> {
        let known: BTreeSet<usize> = self
            .base
            .blocks
            .iter()
            .filter_map(|old| self.theirs.index_of(old))
            .collect();
        let mut after: Option<usize> = None;
        let mut added: BTreeMap<Option<usize>, Vec<(usize, Block)>> = BTreeMap::new();
        for (place, block) in self.theirs.blocks.iter().enumerate() {
            let own = edited.index_of(block);
            match (known.contains(&place), own) {
                (true, Some(own)) => after = Some(own),
                (true, None) => {}
                (false, Some(own)) if edited.blocks[own].text() == block.text() => {}
                (false, Some(_)) => {
                    let what = format!("{} is in the table already", block.title());
                    self.report.conflicts.push(what);
                }
                (false, None) => added.entry(after).or_default().push((place, block.clone())),
            }
        }
        added
    }

    /// Merges one block; `None` if the documents do not have it any more.
    fn block(&mut self, edited: &Block, old: &Block) -> Option<Block> {
        let new = self
            .theirs
            .index_of(old)
            .map(|new| &self.theirs.blocks[new]);
        let Some(new) = new else {
            let lead = |block: &Block| {
                let lead = block.pieces.first().map(|piece| piece.lead.as_str());
                split_lead(lead.unwrap_or_default()).1.to_owned()
            };
            if edited.text() == old.text() && lead(edited) == lead(old) {
                self.report.removed += 1;
                return None;
            }
            let what = "the documents do not have it any more, and it was edited";
            let mut kept = edited.clone();
            self.conflict(&mut kept, what, "");
            return Some(kept);
        };
        let mut merged = edited.clone();
        if let (Some(own), Some(old), Some(new)) = (
            merged.pieces.first_mut(),
            old.pieces.first(),
            new.pieces.first(),
        ) {
            let (apart, ours) = split_lead(&own.lead);
            let (base, theirs) = (split_lead(&old.lead).1, split_lead(&new.lead).1);
            own.lead = format!("{apart}{}", comments::merge(ours, base, theirs));
        }
        if new.text() != old.text() {
            self.units(&mut merged, old, new);
        }
        if merged.text() != edited.text() {
            self.report.changed += 1;
        }
        Some(merged)
    }

    /// Merges the parts of a block.
    fn units(&mut self, merged: &mut Block, old: &Block, new: &Block) {
        let (old_units, new_units) = (units(old), units(new));
        let mut keys: Vec<&String> = old_units
            .keys()
            .filter(|key| !new_units.contains_key(*key))
            .collect();
        let order = new.units();
        keys.extend(order.iter().map(|unit| &unit.key));
        let mut before: Option<String> = None;
        for key in keys {
            let drafted = [old_units.get(key), new_units.get(key)];
            let [base, theirs] = drafted.map(|unit| unit.map(|unit| &unit.value));
            if same(base, theirs) {
                before = Some(key.clone());
                continue;
            }
            let own = merged.units().into_iter().find(|unit| unit.key == *key);
            let ours = own.as_ref().map(|unit| &unit.value);
            let text = own.as_ref().map(|unit| unit.text(merged));
            // A comment inside the part is an edit, too.
            let is_edited = !same(base, ours) || text != drafted[0].map(|unit| unit.text(old));
            let pieces = theirs_pieces(new, drafted[1]);
            if !is_edited {
                replace(merged, own.as_ref(), pieces, before.as_deref());
            } else if !same(ours, theirs) {
                let text: String = pieces.iter().map(|piece| piece.text.as_str()).collect();
                let what = match (theirs, ours) {
                    (None, _) => format!("`{key}` was edited; the new draft does not have it"),
                    (Some(_), None) => format!("`{key}` was removed; the new draft has"),
                    (Some(_), Some(_)) => format!("`{key}` was edited; the new draft has"),
                };
                self.conflict(merged, &what, &text);
            }
            before = Some(key.clone());
        }
    }

    /// Reports a conflict, and describes it in a comment before the block.
    fn conflict(&mut self, block: &mut Block, what: &str, text: &str) {
        self.report
            .conflicts
            .push(format!("{}: {what}", block.title()));
        let Some(first) = block.pieces.first_mut() else {
            return;
        };
        let mut comment = format!("# conflict: {what}\n");
        for line in text.lines() {
            comment.push_str(&format!("#   {line}\n"));
        }
        if !first.lead.contains(&comment) {
            first.lead.push_str(&comment);
        }
    }
}

/// Joins the paragraphs above a removed block and what follows it.
fn below(apart: &str, lead: &str) -> String {
    if apart.trim().is_empty() {
        return lead.to_owned();
    }
    format!("{apart}{}", lead.strip_prefix('\n').unwrap_or(lead))
}

/// Separates a new block from the one before it.
fn follow_on(block: &mut Block, place: usize) {
    let Some(first) = block.pieces.first_mut() else {
        return;
    };
    // Paragraphs that stand apart are merged on their own.
    let own = split_lead(&first.lead).1.to_owned();
    let is_first = place == 0 && own.is_empty();
    first.lead = if is_first { own } else { format!("\n{own}") };
}

fn units(block: &Block) -> BTreeMap<String, Unit> {
    let units = block.units().into_iter();
    units.map(|unit| (unit.key.clone(), unit)).collect()
}

fn theirs_pieces(block: &Block, unit: Option<&Unit>) -> Vec<Piece> {
    let pieces = unit.map(|unit| unit.pieces.as_slice()).unwrap_or_default();
    pieces.iter().map(|at| block.pieces[*at].clone()).collect()
}

fn same(one: Option<&Table>, other: Option<&Table>) -> bool {
    one == other
}

/// Replaces a unit by pieces, or inserts them after the unit `before`.
fn replace(block: &mut Block, own: Option<&Unit>, mut pieces: Vec<Piece>, before: Option<&str>) {
    let at = match own {
        Some(unit) => {
            let first = unit.pieces.first().copied().unwrap_or(1);
            if let (Some(new), Some(old)) = (pieces.first_mut(), block.pieces.get(first)) {
                new.lead.clone_from(&old.lead);
            } else if let Some(old) = block.pieces.get(first) {
                // Comments above a removed part stay.
                let lead = old.lead.clone();
                if let Some(header) = block.pieces.first_mut() {
                    header.lead.push_str(&lead);
                }
            }
            for index in unit.pieces.iter().rev() {
                block.pieces.remove(*index);
            }
            first
        }
        None => {
            let units = block.units();
            let before = before.and_then(|key| units.iter().find(|unit| unit.key == key));
            let is_table = pieces
                .first()
                .is_some_and(|piece| piece.text.trim_start().starts_with('['));
            let last_entry = units.iter().filter(|unit| !unit.key.starts_with('['));
            let last_entry = last_entry.filter_map(|unit| unit.pieces.last()).max();
            match before.and_then(|unit| unit.pieces.last()) {
                _ if is_table => block.pieces.len(),
                Some(last) if last_entry.is_some_and(|entry| last <= entry) => last + 1,
                Some(_) | None => last_entry.map_or(1, |entry| entry + 1),
            }
        }
    };
    // The last line of a file may have no end.
    if let Some(previous) = block.pieces.get_mut(at - 1)
        && !previous.text.ends_with('\n')
    {
        previous.text.push('\n');
    }
    block.pieces.splice(at..at, pieces);
}

#[cfg(test)]
mod tests;
