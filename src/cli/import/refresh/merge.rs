//! The three-way merge of a route file: the old draft, the edited table and the new draft.
//!
//! Laws (tested): with an unchanged draft the table stays as it is, byte for byte; an unedited table becomes the new
//! draft; an edit is never lost. Where both changed the same part, the edit stays and the new draft's text is a comment.
//!
//! ```text
//! parts   the merge of one block, by its keys
//! ```
//!
//! Used by `import::refresh`.

mod parts;

use std::collections::{BTreeMap, BTreeSet};

use super::blocks::{Block, Layout};
use super::comments::{self, split_lead};
use super::lines::LineEnds;
use super::spelling;

/// The parts of a refreshed table that differ from the edited one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RefreshReport {
    pub(super) changed: usize,
    pub(super) added: usize,
    pub(super) removed: usize,
    /// The parts that both sides changed, for people.
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
    // Version control may have changed the line ends of a draft.
    let base = base.replace("\r\n", "\n");
    if base == new {
        return (edited.to_owned(), RefreshReport::default());
    }
    let lines = LineEnds::of(edited);
    let (merged, report) = merge_lines(&base, &lines.unified(edited), new);
    (lines.restored(&merged), report)
}

/// Merges texts whose lines all end with a line feed.
fn merge_lines(base: &str, edited: &str, new: &str) -> (String, RefreshReport) {
    let (base, mut edited, theirs) = (Layout::new(base), Layout::new(edited), Layout::new(new));
    let drafted = base.blocks.iter().chain(&theirs.blocks);
    let drafted = drafted.map(|block| block.table.as_str()).collect();
    spelling::open_tables(&mut edited, &drafted);
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
        let former = self.former(&edited);
        let found: BTreeSet<usize> = former.iter().copied().flatten().collect();
        let mut apart = String::new();
        for (at, (block, old)) in edited.blocks.iter().zip(former).enumerate() {
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

    /// Returns the index of the old draft's block for each edited one. A block with the same name precedes a copy of it.
    fn former(&self, edited: &Layout) -> Vec<Option<usize>> {
        let mut taken = BTreeSet::new();
        let blocks = edited.blocks.iter();
        let by_name = blocks.map(|block| {
            let old = self.base.index_of_name(block);
            old.filter(|old| taken.insert(*old))
        });
        let by_name: Vec<Option<usize>> = by_name.collect();
        let blocks = edited.blocks.iter().zip(by_name);
        let found = blocks.map(|(block, old)| {
            old.or_else(|| {
                let old = self.base.index_of_calls(block);
                old.filter(|old| taken.insert(*old))
            })
        });
        found.collect()
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
                (false, Some(own)) if edited.blocks[own].is_same(block) => {}
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
            let known = lead(old);
            let adds_no_comment = lead(edited).lines().all(|line| known.contains(line));
            if edited.is_same(old) && adds_no_comment {
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
        let mut edits = parts::merge(merged, old, new);
        let conflicts = std::mem::take(&mut edits.conflicts);
        edits.apply(merged);
        for (what, text) in conflicts {
            self.conflict(merged, &what, &text);
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

#[cfg(test)]
mod tests;
