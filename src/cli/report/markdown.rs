//! A report as Markdown (CommonMark with the tables of GitHub). Used by `cli::report`.
//!
//! Law: texts and names never become markup.

use super::document::{Block, Column, Document, Inline, Line, Table, one_line};

/// Returns the document as Markdown.
pub(super) fn markdown(document: &Document) -> String {
    let mut text = format!("# {}\n", plain(&document.title));
    for block in &document.blocks {
        text.push('\n');
        match block {
            Block::Heading(heading) => push(&mut text, &["## ", heading]),
            Block::Paragraph(line) => push(&mut text, &[&inline(line)]),
            Block::List(lines) => {
                for line in lines {
                    push(&mut text, &["- ", &inline(line)]);
                }
            }
            Block::Table(table) => push_table(&mut text, table),
        }
    }
    text
}

fn push(text: &mut String, parts: &[&str]) {
    text.extend(parts.iter().copied());
    text.push('\n');
}

fn push_table(text: &mut String, table: &Table) {
    let titles: Vec<&str> = table.columns().iter().map(|it| it.title()).collect();
    push(text, &["| ", &titles.join(" | "), " |"]);
    let rules = table.columns().iter().map(|column| match column {
        Column::Text(_) => "---",
        Column::Number(_) => "---:",
    });
    push(text, &["| ", &rules.collect::<Vec<_>>().join(" | "), " |"]);
    for row in table.rows() {
        let cells: Vec<String> = row.iter().map(inline).collect();
        push(text, &["| ", &cells.join(" | "), " |"]);
    }
    if table.more() > 0 {
        push(text, &["\nand ", &table.more().to_string(), " more"]);
    }
}

fn inline(line: &Line) -> String {
    let parts = line.parts().iter();
    parts
        .map(|part| match part {
            Inline::Text(text) => plain(text),
            Inline::Code(text) => code(text),
        })
        .collect()
}

/// Escapes the characters that could begin markup within a line.
fn plain(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in one_line(text).chars() {
        if "\\`*_[]<>|~#&$".contains(c) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

/// Returns a code span. Its fence is longer than any backticks in it; a table needs `|` escaped also there.
fn code(text: &str) -> String {
    let text = one_line(text).replace('|', "\\|");
    if text.trim().is_empty() {
        return "` `".to_owned();
    }
    let (mut run, mut longest) = (0, 0);
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(longest + 1);
    let space = if text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']) {
        " "
    } else {
        ""
    };
    format!("{fence}{space}{text}{space}{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_becomes_markup() {
        assert_eq!(plain("a|b\n<i>*_`"), "a\\|b \\<i\\>\\*\\_\\`");
        assert_eq!(code("/body/``x|"), "```/body/``x\\|```");
        assert_eq!(code("`"), "`` ` ``");
        assert_eq!(code("\n"), "` `");
    }
}
