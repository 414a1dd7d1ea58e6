//! The blocks of a route file: a route with its outcomes, a local reply, or a table, each as its pieces.
//!
//! Used by `import::refresh`.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::pieces::{Piece, PieceKind, split};

/// The text of a route file.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    /// The entries before the first header.
    pub(super) head: Vec<Piece>,
    pub(super) blocks: Vec<Block>,
    /// The comments at the end.
    pub(super) tail: String,
}

/// A header with everything below it.
#[derive(Debug, Clone)]
pub(super) struct Block {
    pub(super) pieces: Vec<Piece>,
    /// The first key of the header.
    pub(super) table: String,
    pub(super) identity: Identity,
}

/// The properties by which a block is found in another version of its file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Identity {
    pub(super) name: Option<String>,
    /// The calls of the block.
    pub(super) calls: Option<String>,
}

/// A part of a block that is merged as a whole: an entry, or all tables of one name.
#[derive(Debug, Clone)]
pub(super) struct Unit {
    pub(super) key: String,
    /// The indices of its pieces.
    pub(super) pieces: Vec<usize>,
    pub(super) value: Table,
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
}

impl Layout {
    /// Splits a valid TOML text.
    pub(super) fn new(text: &str) -> Layout {
        let (pieces, tail) = split(text);
        let mut layout = Layout {
            head: Vec::new(),
            blocks: Vec::new(),
            tail,
        };
        for piece in pieces {
            let opened = match &piece.kind {
                PieceKind::Header(keys) => {
                    let table = keys.first().cloned().unwrap_or_default();
                    let last = layout.blocks.last();
                    let continues = keys.len() > 1 && last.is_some_and(|last| last.table == table);
                    (!continues).then_some(table)
                }
                PieceKind::Entry(_) => None,
            };
            match (opened, layout.blocks.last_mut()) {
                (Some(table), _) => layout.blocks.push(Block {
                    pieces: vec![piece],
                    table,
                    identity: Identity::default(),
                }),
                (None, Some(block)) => block.pieces.push(piece),
                (None, None) => layout.head.push(piece),
            }
        }
        for block in &mut layout.blocks {
            block.identity = block.identified();
        }
        layout
    }

    /// Renders the file.
    pub(super) fn text(&self) -> String {
        let blocks = self.blocks.iter().flat_map(|block| &block.pieces);
        let pieces = self.head.iter().chain(blocks);
        let mut text: String = pieces
            .flat_map(|piece| [piece.lead.as_str(), piece.text.as_str()])
            .collect();
        text.push_str(&self.tail);
        text
    }

    /// Returns the index of the block that is another version of the given one.
    pub(super) fn index_of(&self, block: &Block) -> Option<usize> {
        let same = |wanted: fn(&Identity) -> &Option<String>| {
            let wanted_value = wanted(&block.identity).as_ref()?;
            self.blocks.iter().position(|own| {
                own.table == block.table && wanted(&own.identity).as_ref() == Some(wanted_value)
            })
        };
        same(|identity| &identity.name).or_else(|| same(|identity| &identity.calls))
    }
}

impl Block {
    /// Renders the block without the comments before it.
    pub(super) fn text(&self) -> String {
        let pieces = self.pieces.iter().enumerate();
        let parts = pieces.flat_map(|(at, piece)| {
            let lead = if at == 0 { "" } else { piece.lead.as_str() };
            [lead, piece.text.as_str()]
        });
        parts.collect()
    }

    /// Returns the name of the block, for people.
    pub(super) fn title(&self) -> String {
        let name = self.identity.name.as_ref().or(self.identity.calls.as_ref());
        name.map_or_else(|| format!("[{}]", self.table), |name| format!("`{name}`"))
    }

    fn identified(&self) -> Identity {
        let own = |table: &Table| match table.get(&self.table)? {
            Value::Table(own) => Some(own.clone()),
            Value::Array(all) => all.first()?.as_table().cloned(),
            Value::String(_)
            | Value::Integer(_)
            | Value::Float(_)
            | Value::Boolean(_)
            | Value::Datetime(_) => None,
        };
        let table = self.text().parse::<Table>().ok();
        let Some(table) = table.as_ref().and_then(own) else {
            return Identity::default();
        };
        let word = |key: &str| table.get(key).and_then(Value::as_str);
        match self.table.as_str() {
            "route" => {
                let params = table.get("params").and_then(Value::as_table);
                let tool = params.and_then(|params| params.get("name")?.as_str());
                let is_tool = word("rpc") == Some("tools/call");
                let rpc = [word("rpc"), tool.filter(|_| is_tool), word("from")];
                let sides = [word("rest")].into_iter().chain(rpc);
                let sides: Vec<&str> = sides.map(Option::unwrap_or_default).collect();
                Identity {
                    name: word("name").map(str::to_owned),
                    calls: Some(sides.join(" ").trim().to_owned()),
                }
            }
            "local" => Identity {
                name: None,
                calls: word("rest").or(word("rpc")).map(str::to_owned),
            },
            name => Identity {
                name: Some(name.to_owned()).filter(|name| name == "schemas"),
                calls: None,
            },
        }
    }

    /// Returns the units of the block.
    pub(super) fn units(&self) -> Vec<Unit> {
        let mut found: Vec<Unit> = Vec::new();
        let mut indices: BTreeMap<String, usize> = BTreeMap::new();
        // The unit of the last header below the block's own.
        let mut inside: Option<String> = None;
        for (at, piece) in self.pieces.iter().enumerate().skip(1) {
            if let PieceKind::Header(keys) = &piece.kind {
                inside = keys.get(1).map(|key| format!("[{key}]"));
            }
            let key = match (&inside, &piece.kind) {
                (Some(inside), _) => inside.clone(),
                (None, PieceKind::Entry(key)) => key.clone(),
                (None, PieceKind::Header(_)) => continue,
            };
            let index = *indices.entry(key.clone()).or_insert_with(|| {
                found.push(Unit {
                    key,
                    pieces: Vec::new(),
                    value: Table::new(),
                });
                found.len() - 1
            });
            found[index].pieces.push(at);
        }
        for unit in &mut found {
            let text: String = unit
                .pieces
                .iter()
                .map(|at| self.pieces[*at].text.as_str())
                .collect();
            unit.value = text.parse().unwrap_or_default();
        }
        found
    }
}
