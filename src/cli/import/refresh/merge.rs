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
        for (at, block) in edited.blocks.iter().enumerate() {
            let old = self.base.index_of(block).filter(|old| found.insert(*old));
            blocks.extend(match old {
                Some(old) => self.block(block, &self.base.blocks[old]),
                None => Some(block.clone()),
            });
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
        Layout { blocks, ..edited }
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
        let (base, theirs) = (units(old), units(new));
        let mut keys: Vec<&String> = base
            .keys()
            .filter(|key| !theirs.contains_key(*key))
            .collect();
        let order = new.units();
        keys.extend(order.iter().map(|unit| &unit.key));
        let mut before: Option<String> = None;
        for key in keys {
            let own = merged.units().into_iter().find(|unit| unit.key == *key);
            let values = [own.as_ref(), base.get(key), theirs.get(key)];
            let [ours, base, theirs] = values.map(|unit| unit.map(|unit| &unit.value));
            let (is_new, is_edited) = (!same(base, theirs), !same(base, ours));
            if is_new && !is_edited {
                let pieces = theirs_pieces(new, key);
                replace(merged, own.as_ref(), pieces, before.as_deref());
            } else if is_new && !same(ours, theirs) {
                let text: String = theirs_pieces(new, key)
                    .iter()
                    .map(|piece| piece.text.as_str())
                    .collect();
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

fn theirs_pieces(block: &Block, key: &str) -> Vec<Piece> {
    let units = block.units();
    let unit = units.iter().find(|unit| unit.key == key);
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
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BASE: &str = r#"# A draft of a route table, made by `dualgauge import` from
#   api.json

# paired: the operationId is the name
[[route]]
name = "pets.get"
rest = "GET /pets/{id}"
rpc = "pets.get"

# look: check this
[[route]]
name = "pets.add"
rest = "POST /pets"
rpc = "pets.add"
params = { name = "{name}" }
[[route.outcome]]
rest = { status = 201 }
rpc = { result = "{_:null}" }

[[route]]
name = "pets.old"
rest = "GET /old"
rpc = "pets.old"

# No route:
#   POST /photo: its body is an image
"#;

    const NEW: &str = r#"# A draft of a route table, made by `dualgauge import` from
#   api-2.json

# paired: the operationId is the name
[[route]]
name = "pets.get"
rest = "GET /pets/{id}?full={full?}"
rpc = "pets.get"

# look: `age` is new
[[route]]
name = "pets.add"
rest = "POST /pets"
rpc = "pets.add"
effect = "idempotent"
params = { name = "{name}", age = "{age?}" }
[[route.outcome]]
rest = { status = 202 }
rpc = { result = "{_:null}" }

[[route]]
name = "pets.find"
rest = "GET /find"
rpc = "pets.find"
"#;

    #[test]
    fn an_unchanged_draft_changes_nothing() {
        let edited = BASE
            .replace("pets.get", "mine")
            .replace("# look: check this\n", "# checked\n")
            .replace(
                "rest = \"GET /old\"",
                "timeout = '1s' # slow\nrest = \"GET /old\"",
            );
        let (text, report) = merge(BASE, &edited, BASE);
        assert_eq!(text, edited);
        assert_eq!(report, RefreshReport::default());
    }

    #[test]
    fn an_unedited_table_becomes_the_new_draft() {
        let (text, report) = merge(BASE, BASE, NEW);
        assert_eq!(text, NEW);
        assert_eq!((report.changed, report.added, report.removed), (2, 1, 1));
        assert_eq!(report.conflicts, Vec::<String>::new());
    }

    #[test]
    fn edits_and_changes_of_different_parts_are_both_in_the_table() {
        let edited = BASE
            .replace(
                "name = \"pets.get\"",
                "# ours\nname = \"pets.read\"\ntimeout = \"2s\" # slow",
            )
            .replace(
                "[[route.outcome]]\n",
                "effect = 'safe'\n[[route.outcome]]\n",
            )
            .replace(
                "# No route",
                "[[route]]\nname = \"mine\"\nrest = \"GET /mine\"\nrpc = \"mine\"\n\n# No route",
            );
        let (text, report) = merge(BASE, &edited, NEW);
        for line in [
            "# ours",
            "name = \"pets.read\"",
            "timeout = \"2s\" # slow",
            "rest = \"GET /pets/{id}?full={full?}\"",
            "effect = 'safe'",
            "params = { name = \"{name}\", age = \"{age?}\" }",
            "rest = { status = 202 }",
            "# conflict: `effect` was edited; the new draft has",
            "#   effect = \"idempotent\"",
            "name = \"mine\"",
            "name = \"pets.find\"",
            "#   api-2.json",
        ] {
            assert!(text.lines().any(|own| own == line), "{line}\nin\n{text}");
        }
        assert!(
            !text.contains("pets.old") && !text.contains("POST /photo"),
            "{text}"
        );
        assert!(text.parse::<Table>().is_ok(), "{text}");
        assert_eq!(
            report.conflicts,
            ["`pets.add`: `effect` was edited; the new draft has"]
        );
    }

    #[test]
    fn what_was_deleted_stays_deleted_and_what_was_edited_stays() {
        let start = BASE.find("# look").unwrap();
        let end = BASE.find("[[route]]\nname = \"pets.old\"").unwrap();
        let edited = format!("{}{}", &BASE[..start], &BASE[end..]);
        let edited = edited.replace("name = \"pets.old\"", "name = \"pets.old\" # still in use");
        let (text, report) = merge(BASE, &edited, NEW);
        assert!(!text.contains("POST /pets"), "{text}");
        assert!(
            text.contains("name = \"pets.old\" # still in use"),
            "{text}"
        );
        assert_eq!(report.deleted, ["`pets.add`"]);
        assert_eq!(report.conflicts.len(), 1, "{report:?}");
    }

    /// A route file: routes with some keys, outcomes and comments.
    fn file(routes: &BTreeMap<u8, (u8, u8, u8)>, with: impl Fn(u8) -> &'static str) -> String {
        let mut text = "# A draft\n".to_owned();
        for (name, (rest, params, rows)) in routes {
            text.push_str(&format!(
                "\n# route {name}\n[[route]]\nname = \"r{name}\"\n"
            ));
            text.push_str(&format!(
                "rest = \"GET /{name}/{rest}\"\nrpc = \"m{name}\"\n"
            ));
            if *params > 0 {
                text.push_str(&format!("params = {{ a = \"{params}\" }}\n"));
            }
            text.push_str(with(*name));
            for row in 0..*rows {
                text.push_str(&format!("[[route.outcome]]\nrest = {{ status = {row} }}\n"));
            }
        }
        text
    }

    fn routes() -> impl Strategy<Value = BTreeMap<u8, (u8, u8, u8)>> {
        prop::collection::btree_map(0..6_u8, (0..2_u8, 0..3_u8, 0..3_u8), 0..6)
    }

    proptest! {
        #[test]
        fn an_edit_is_never_lost(base in routes(), new in routes(), edited in 0..6_u8) {
            let edit = "timeout = \"1s\" # ours\n";
            let (old, new) = (file(&base, |_| ""), file(&new, |_| ""));
            let ours = file(&base, |name| if name == edited { edit } else { "" });
            let (text, report) = merge(&old, &ours, &new);
            prop_assert!(text.parse::<Table>().is_ok(), "{}", text);
            prop_assert_eq!(text.contains(edit), base.contains_key(&edited), "{}", text);
            prop_assert_eq!(merge(&old, &ours, &old).0, ours.clone());
            // Merging the same change again changes nothing.
            let (again, more) = merge(&new, &text, &new);
            prop_assert_eq!(&again, &text);
            prop_assert_eq!(more, RefreshReport::default());
            let (plain, _) = merge(&old, &old, &new);
            prop_assert_eq!(plain.parse::<Table>(), new.parse::<Table>(), "{}", plain);
            if report.conflicts.is_empty() && !base.contains_key(&edited) {
                prop_assert_eq!(text.parse::<Table>(), new.parse::<Table>(), "{}", text);
            }
        }
    }
}
