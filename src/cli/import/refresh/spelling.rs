//! Drafted tables that stand before the first header of an edited file: `route = [{ … }]`, `schemas.Pet = "…"`.
//!
//! They are rewritten as headers and entries, so that new routes can follow them. Values and comments stay.
//!
//! Used by `import::refresh::merge`.

use std::collections::BTreeSet;

use super::blocks::Layout;
use super::pieces::{Piece, PieceKind, elements, inside};
use super::units::key;

/// Rewrites the entries of `drafted` tables before the first header as blocks.
pub(super) fn open_tables(layout: &mut Layout, drafted: &BTreeSet<&str>) {
    let is_drafted = |piece: &Piece| match &piece.kind {
        PieceKind::Entry(keys) => keys
            .first()
            .is_some_and(|key| drafted.contains(key.as_str())),
        PieceKind::Header(_) => false,
    };
    if !layout.head.iter().any(is_drafted) {
        return;
    }
    let mut head = String::new();
    // A table may be spelled in several entries with others between them.
    let mut opened: Vec<(&str, String)> = Vec::new();
    for piece in &layout.head {
        let keys = match &piece.kind {
            PieceKind::Entry(keys) => keys.split_first(),
            PieceKind::Header(_) => None,
        };
        let Some((table, more)) = keys.filter(|(table, _)| drafted.contains(table.as_str())) else {
            head.push_str(&piece.lead);
            head.push_str(&piece.text);
            continue;
        };
        let known = opened.iter().position(|(name, _)| name == table);
        let at = known.unwrap_or_else(|| {
            opened.push((table, String::new()));
            opened.len() - 1
        });
        let text = &mut opened[at].1;
        text.push_str(&piece.lead);
        let value = piece.key_and_value().1.trim_end();
        let is_array = more.is_empty() && value.starts_with('[');
        if known.is_none() && !is_array {
            text.push_str(&format!("[{table}]\n"));
        }
        open(table, more, value, text);
    }
    let opened: String = opened.into_iter().map(|(_, text)| text).collect();
    let blocks: String = layout
        .blocks
        .iter()
        .flat_map(|block| &block.pieces)
        .flat_map(|piece| [piece.lead.as_str(), piece.text.as_str()])
        .collect();
    let text = format!("{head}{opened}{blocks}{}", layout.tail);
    *layout = Layout::new(&text);
}

/// Writes an entry of a table as entries below its header, or as tables of an array.
fn open(table: &str, more: &[String], value: &str, text: &mut String) {
    if !more.is_empty() {
        let keys: Vec<String> = more.iter().filter_map(|name| key(name)).collect();
        text.push_str(&format!("{} = {value}\n", keys.join(".")));
        return;
    }
    let (own, after) = inside(value);
    comment(after, text);
    if value.starts_with('{') {
        members(own, text);
        return;
    }
    for (lead, element) in elements(own) {
        text.push_str(&format!("\n{lead}[[{table}]]\n"));
        let (own, after) = inside(&element);
        members(own, text);
        comment(after, text);
    }
}

/// Writes the members of an inline table as entries.
fn members(own: &str, text: &mut String) {
    for (lead, member) in elements(own) {
        text.push_str(&lead);
        text.push_str(&member);
        text.push('\n');
    }
}

/// Writes a comment after a value on a line of its own.
fn comment(after: &str, text: &mut String) {
    if !after.trim().is_empty() {
        text.push_str(after.trim());
        text.push('\n');
    }
}
