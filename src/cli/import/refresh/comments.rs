//! Comments of three versions of a file, merged line by line beside a block and paragraph by paragraph elsewhere.
//!
//! Used by `import::refresh`.

use std::collections::BTreeSet;

use super::blocks::Layout;

/// Splits the comments before a block: those that stand apart, and those that belong to the block.
pub(super) fn split_lead(lead: &str) -> (&str, &str) {
    let mut start = lead.len();
    for line in lead.split_inclusive('\n').rev() {
        if line.trim().is_empty() {
            break;
        }
        start -= line.len();
    }
    lead.split_at(start)
}

/// Merges the comments of a block: the new draft's lines are added, and the old draft's lines are removed, unless they
/// are in both.
pub(super) fn merge(ours: &str, base: &str, theirs: &str) -> String {
    let lines = |text: &'_ str| -> BTreeSet<String> { text.lines().map(str::to_owned).collect() };
    let (known, wanted) = (lines(base), lines(theirs));
    let mut merged: String = ours
        .split_inclusive('\n')
        .filter(|line| {
            let line = line.trim_end_matches(['\n', '\r']);
            !known.contains(line) || wanted.contains(line)
        })
        .collect();
    let kept = lines(ours);
    for line in theirs.lines() {
        if !known.contains(line) && !kept.contains(line) {
            merged.push_str(line);
            merged.push('\n');
        }
    }
    merged
}

/// Merges the paragraphs of comments that belong to no block.
pub(super) fn merge_paragraphs(ours: &mut Layout, base: &Layout, theirs: &Layout) {
    let (known, wanted) = (paragraphs(base), paragraphs(theirs));
    let old: BTreeSet<&String> = known.iter().filter(|one| !wanted.contains(one)).collect();
    // The first paragraph names the documents; it stays the first.
    let renamed = match (known.first(), wanted.first()) {
        (Some(one), Some(other)) if one != other && old.contains(one) => Some((one, other)),
        (_, _) => None,
    };
    let mut replaced = false;
    let mut rewrite = |text: &mut String| {
        for one in &old {
            let Some(at) = find(text, one) else { continue };
            let new = match renamed {
                Some((first, other)) if first == *one => {
                    replaced = true;
                    other.clone()
                }
                Some(_) | None => String::new(),
            };
            let is_removed = new.is_empty();
            text.replace_range(at..at + one.len(), &new);
            // One of the blank lines around a removed paragraph goes with it.
            if is_removed && text[at..].starts_with('\n') {
                text.remove(at);
            } else if is_removed && text[..at].ends_with('\n') {
                text.remove(at - 1);
            }
        }
    };
    let first_pieces = ours.blocks.iter_mut();
    let first_pieces = first_pieces.filter_map(|block| block.pieces.first_mut());
    for piece in ours.head.iter_mut().chain(first_pieces) {
        rewrite(&mut piece.lead);
    }
    rewrite(&mut ours.tail);
    let present = paragraphs(ours);
    let first = renamed.filter(|_| replaced).map(|(_, other)| other);
    for one in &wanted {
        if !known.contains(one) && !present.contains(one) && Some(one) != first {
            ours.tail.push('\n');
            ours.tail.push_str(one);
        }
    }
}

/// Finds a paragraph in a text: whole lines.
fn find(text: &str, paragraph: &str) -> Option<usize> {
    let mut starts = text.match_indices(paragraph).map(|(at, _)| at);
    starts.find(|at| {
        let begins = *at == 0 || text[..*at].ends_with('\n');
        let after = &text[at + paragraph.len()..];
        begins && (after.is_empty() || after.starts_with('\n'))
    })
}

/// Returns the paragraphs of comments that belong to no block.
fn paragraphs(layout: &Layout) -> Vec<String> {
    let first_pieces = layout.blocks.iter();
    let first_pieces = first_pieces.filter_map(|block| block.pieces.first());
    let pieces = layout.head.iter().chain(first_pieces);
    let leads = pieces.map(|piece| split_lead(&piece.lead).0);
    let mut found = Vec::new();
    for text in leads.chain([layout.tail.as_str()]) {
        let mut paragraph = String::new();
        for line in text.split_inclusive('\n').chain(["\n"]) {
            if !line.trim().is_empty() {
                paragraph.push_str(line);
            } else if !paragraph.is_empty() {
                found.push(std::mem::take(&mut paragraph));
            }
        }
    }
    found
}
