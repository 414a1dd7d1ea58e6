//! A report as one HTML page without scripts, images, links or anything from a network. Used by `cli::report`.
//!
//! Law: texts and names never become markup.

use super::document::{Block, Column, Document, Inline, Line, Table, one_line};

const HEAD: &str = r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
"#;

const STYLE: &str = "<style>
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 0 auto; padding: 1rem; }
h1, h2 { line-height: 1.2; }
h2 { margin-top: 2rem; }
div { overflow-x: auto; }
table { border-collapse: collapse; }
th, td { border: 1px solid #8888; padding: .25rem .6rem; text-align: left; vertical-align: top; }
.n { text-align: right; font-variant-numeric: tabular-nums; }
code { overflow-wrap: anywhere; }
@media print { body { max-width: none; } h2, tr { break-inside: avoid; } }
</style>
";

/// Returns the document as a page.
pub(super) fn html(document: &Document) -> String {
    let title = escape(&document.title);
    let mut text = format!("{HEAD}<title>{title}</title>\n{STYLE}</head>\n<body>\n<main>\n");
    push(&mut text, &["<h1>", &title, "</h1>"]);
    for block in &document.blocks {
        match block {
            Block::Heading(heading) => push(&mut text, &["<h2>", &escape(heading), "</h2>"]),
            Block::Paragraph(line) => push(&mut text, &["<p>", &inline(line), "</p>"]),
            Block::List(lines) => {
                push(&mut text, &["<ul>"]);
                for line in lines {
                    push(&mut text, &["<li>", &inline(line), "</li>"]);
                }
                push(&mut text, &["</ul>"]);
            }
            Block::Table(table) => push_table(&mut text, table),
        }
    }
    text.push_str("</main>\n</body>\n</html>\n");
    text
}

fn push(text: &mut String, parts: &[&str]) {
    text.extend(parts.iter().copied());
    text.push('\n');
}

fn push_table(text: &mut String, table: &Table) {
    // A region that scrolls must be reachable with the keyboard.
    push(text, &["<div tabindex=\"0\">\n<table>\n<thead>\n<tr>"]);
    for column in table.columns() {
        let class = class(*column);
        let title = escape(column.title());
        push(text, &["<th scope=\"col\"", class, ">", &title, "</th>"]);
    }
    push(text, &["</tr>\n</thead>\n<tbody>"]);
    for row in table.rows() {
        text.push_str("<tr>");
        for (cell, column) in row.iter().zip(table.columns()) {
            text.extend(["<td", class(*column), ">", &inline(cell), "</td>"]);
        }
        push(text, &["</tr>"]);
    }
    push(text, &["</tbody>\n</table>\n</div>"]);
    if table.more() > 0 {
        push(text, &["<p>and ", &table.more().to_string(), " more</p>"]);
    }
}

const fn class(column: Column) -> &'static str {
    match column {
        Column::Text(_) => "",
        Column::Number(_) => " class=\"n\"",
    }
}

fn inline(line: &Line) -> String {
    let parts = line.parts().iter();
    parts
        .map(|part| match part {
            Inline::Text(text) => escape(text),
            Inline::Code(text) => format!("<code>{}</code>", escape(text)),
        })
        .collect()
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in one_line(text).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_text_becomes_markup(text in any::<String>()) {
            let escaped = escape(&text);
            prop_assert!(!escaped.contains(['<', '>', '"', '\'']));
            let back = escaped.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
            let back = back.replace("&#39;", "'").replace("&amp;", "&");
            prop_assert_eq!(back, one_line(&text));
        }
    }
}
