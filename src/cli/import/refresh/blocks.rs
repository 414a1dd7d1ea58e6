//! The blocks of a route file: a route with its outcomes, a local reply, or a table, each as its pieces.
//!
//! Used by `import::refresh`.

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

    /// Returns the index of the block that is another version of the given one: that of its name, else that of its calls.
    pub(super) fn index_of(&self, block: &Block) -> Option<usize> {
        self.index_of_name(block)
            .or_else(|| self.index_of_calls(block))
    }

    /// Returns the index of the block with the name of the given one.
    pub(super) fn index_of_name(&self, block: &Block) -> Option<usize> {
        self.index_by(block, |identity| identity.name.as_ref())
    }

    /// Returns the index of the block with the calls of the given one.
    pub(super) fn index_of_calls(&self, block: &Block) -> Option<usize> {
        self.index_by(block, |identity| identity.calls.as_ref())
    }

    fn index_by(&self, block: &Block, property: fn(&Identity) -> Option<&String>) -> Option<usize> {
        let wanted = property(&block.identity)?;
        let mut own = self.blocks.iter();
        own.position(|own| own.table == block.table && property(&own.identity) == Some(wanted))
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

    /// Returns true if both have the same text; or the same value, and this one has no comment inside.
    pub(super) fn is_same(&self, other: &Block) -> bool {
        if self.text() == other.text() {
            return true;
        }
        let mut pieces = self.pieces.iter().enumerate();
        let has_comment =
            pieces.any(|(at, piece)| piece.has_comment() || at > 0 && piece.lead.contains('#'));
        let value = self.value();
        !has_comment && value.is_some() && value == other.value()
    }

    /// Returns the name of the block, for people.
    pub(super) fn title(&self) -> String {
        let name = self.identity.name.as_ref().or(self.identity.calls.as_ref());
        name.map_or_else(|| format!("[{}]", self.table), |name| format!("`{name}`"))
    }

    /// Returns the table that the block writes.
    pub(super) fn value(&self) -> Option<Table> {
        let mut table = self.text().parse::<Table>().ok()?;
        match table.remove(&self.table)? {
            Value::Table(own) => Some(own),
            Value::Array(all) => match all.into_iter().next()? {
                Value::Table(own) => Some(own),
                Value::Array(_)
                | Value::String(_)
                | Value::Integer(_)
                | Value::Float(_)
                | Value::Boolean(_)
                | Value::Datetime(_) => None,
            },
            Value::String(_)
            | Value::Integer(_)
            | Value::Float(_)
            | Value::Boolean(_)
            | Value::Datetime(_) => None,
        }
    }

    fn identified(&self) -> Identity {
        let Some(table) = self.value() else {
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
}
