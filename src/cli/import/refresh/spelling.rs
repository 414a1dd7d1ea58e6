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
    let (mut head, mut opened) = (String::new(), String::new());
    let mut tables: BTreeSet<String> = BTreeSet::new();
    for piece in &layout.head {
        if !is_drafted(piece) {
            head.push_str(&piece.lead);
            head.push_str(&piece.text);
            continue;
        }
        opened.push_str(&piece.lead);
        if let PieceKind::Entry(keys) = &piece.kind {
            open(keys, piece, &mut tables, &mut opened);
        }
    }
    let blocks: String = layout
        .blocks
        .iter()
        .flat_map(|block| &block.pieces)
        .flat_map(|piece| [piece.lead.as_str(), piece.text.as_str()])
        .collect();
    let text = format!("{head}{opened}{blocks}{}", layout.tail);
    *layout = Layout::new(&text);
}

/// Writes one entry as headers and entries below them.
fn open(keys: &[String], piece: &Piece, tables: &mut BTreeSet<String>, text: &mut String) {
    let [table, more @ ..] = keys else { return };
    let value = piece.key_and_value().1.trim_end();
    let mut header = |text: &mut String| {
        if tables.insert(table.clone()) {
            text.push_str(&format!("[{table}]\n"));
        }
    };
    if !more.is_empty() {
        header(text);
        let keys: Vec<String> = more.iter().filter_map(|name| key(name)).collect();
        text.push_str(&format!("{} = {value}\n", keys.join(".")));
        return;
    }
    let (own, after) = inside(value);
    comment(after, text);
    if value.starts_with('{') {
        header(text);
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
