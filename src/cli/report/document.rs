//! A document of headings, paragraphs, lists and tables, without a format. Used throughout `report`.

/// The maximum number of rows of a table; further rows are counted.
pub(super) const MAX_ROWS: usize = 50;

/// A document.
#[derive(Debug, Default)]
pub(super) struct Document {
    /// The title.
    pub(super) title: String,
    /// The contents, from top to bottom.
    pub(super) blocks: Vec<Block>,
}

/// A part of a document.
#[derive(Debug)]
pub(super) enum Block {
    /// The heading of a section.
    Heading(&'static str),
    /// A paragraph.
    Paragraph(Line),
    /// A list without an order.
    List(Vec<Line>),
    /// A table.
    Table(Table),
}

/// A table. Each row has one cell for each column.
#[derive(Debug)]
pub(super) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Line>>,
    /// The number of rows beyond [`MAX_ROWS`].
    more: usize,
}

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub(super) enum Column {
    /// Texts, aligned to the left.
    Text(&'static str),
    /// Numbers, aligned to the right.
    Number(&'static str),
}

impl Column {
    /// Returns the heading.
    pub(super) const fn title(self) -> &'static str {
        match self {
            Column::Text(title) | Column::Number(title) => title,
        }
    }
}

impl Table {
    /// Creates a table without rows.
    pub(super) fn new(columns: &[Column]) -> Table {
        Table {
            columns: columns.to_vec(),
            rows: Vec::new(),
            more: 0,
        }
    }

    /// Adds a row, or counts it if the table is full.
    pub(super) fn push(&mut self, row: Vec<Line>) {
        if self.rows.len() < MAX_ROWS {
            self.rows.push(row);
        } else {
            self.more += 1;
        }
    }

    /// Returns the columns.
    pub(super) fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Returns the rows.
    pub(super) fn rows(&self) -> &[Vec<Line>] {
        &self.rows
    }

    /// Returns the number of rows that had no room.
    pub(super) const fn more(&self) -> usize {
        self.more
    }
}

/// A line of text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Line(Vec<Inline>);

/// A part of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Inline {
    /// Ordinary text.
    Text(String),
    /// A name or a path.
    Code(String),
}

impl Line {
    /// Creates a line of ordinary text.
    pub(super) fn text(text: impl Into<String>) -> Line {
        Line::default().and(text)
    }

    /// Creates a line of a name or a path.
    pub(super) fn code(text: impl Into<String>) -> Line {
        Line::default().and_code(text)
    }

    /// Creates a line of a number.
    pub(super) fn number(number: u64) -> Line {
        Line::text(number.to_string())
    }

    /// Adds ordinary text.
    pub(super) fn and(mut self, text: impl Into<String>) -> Line {
        self.0.push(Inline::Text(text.into()));
        self
    }

    /// Adds a name or a path.
    pub(super) fn and_code(mut self, text: impl Into<String>) -> Line {
        self.0.push(Inline::Code(text.into()));
        self
    }

    /// Returns the parts.
    pub(super) fn parts(&self) -> &[Inline] {
        &self.0
    }
}

/// Returns a text in one line: control characters, which could end a line or hide text, become spaces.
pub(super) fn one_line(text: &str) -> String {
    let hides =
        |c: char| c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars()
        .map(|c| if hides(c) { ' ' } else { c })
        .collect()
}
