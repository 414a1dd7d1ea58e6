//! The route file, written as TOML 1.1.
//!
//! Law: the text is valid TOML for any document; text of a document occurs in strings and comments only.
//!
//! Used by `import`.

use serde_json::{Map, Value};

use super::drafted::{Drafted, DraftedDocs, DraftedResult, Pattern};
use super::refs::{printable, shown};
use super::table::Table;

/// The query names that every route ignores in the default configuration.
const IGNORED: [&str; 4] = ["utm_*", "gclid", "fbclid", "_"];

/// The longest line; a longer value spans several lines.
const WIDEST: usize = 110;

/// Renders a whole route file.
pub(super) fn write(names: &[&str], table: &Table) -> String {
    let mut text = String::new();
    let mut line = |words: &str| comment(words, &mut text);
    line("A draft of a route table, made by `dualgauge import` from");
    for name in names {
        line(&format!("  {}", shown(name)));
    }
    line("");
    line(
        "What to do next: read each `look:` and each `unpaired:`, change or delete the route, then name this file",
    );
    line("in `include` of the main configuration and run `dualgauge check --config FILE`.");
    for note in &table.notes {
        line(&format!("look: {note}"));
    }
    write_routes(table, &mut text);
    write_schemas(&table.schemas, &mut text);
    text
}

/// Renders the schemas that routes share.
pub(super) fn write_schemas(shared: &Map<String, Value>, text: &mut String) {
    if shared.is_empty() {
        return;
    }
    text.push_str("\n[schemas]\n");
    for (name, schema) in shared {
        text.push_str(&format!("{} = {}\n", bare(name), json_text(schema)));
    }
}

/// Renders the routes, and the operations without one.
pub(super) fn write_routes(table: &Table, text: &mut String) {
    for route in &table.routes {
        text.push('\n');
        write_route(route, text);
    }
    if !table.report.left_out.is_empty() {
        text.push_str("\n# No route:\n");
        for left_out in &table.report.left_out {
            comment(&format!("  {}: {}", left_out.what, left_out.why), text);
        }
    }
}

/// Renders one line of a comment, for any text.
pub(super) fn comment(words: &str, text: &mut String) {
    text.push('#');
    if !words.is_empty() {
        text.push(' ');
    }
    text.push_str(&printable(words));
    text.push('\n');
}

fn write_route(route: &Drafted, text: &mut String) {
    for words in &route.comments {
        comment(words, text);
    }
    if let Some(why) = &route.refused {
        comment(&format!("commented out: {why}"), text);
    }
    let mut lines = String::from("[[route]]\n");
    write_keys(route, &mut lines);
    for outcome in &route.outcomes {
        lines.push_str("[[route.outcome]]\n");
        if let Some(why) = outcome.lossy {
            lines.push_str(&format!("lossy = {}\n", quoted(why)));
        }
        for (name, side) in [("rest", &outcome.rest), ("rpc", &outcome.rpc)] {
            lines.push_str(&format!("{name} = {}\n", pattern(name, side)));
        }
    }
    if route.refused.is_some() {
        for line in lines.lines() {
            comment(line, text);
        }
    } else {
        text.push_str(&lines);
    }
    if let Some(named) = &route.by_name {
        text.push('\n');
        write_route(named, text);
    }
}

/// Renders the keys of a route, without its outcomes.
fn write_keys(route: &Drafted, lines: &mut String) {
    let mut key = |name: &str, value: &str| {
        lines.push_str(&format!("{name} = {value}\n"));
    };
    key("name", &quoted(&route.name));
    key("rest", &quoted(&route.rest));
    key("rpc", &quoted(&route.rpc));
    if let Some(side) = route.from {
        key("from", &quoted(side));
    }
    if route.always_passes {
        key("stage", "\"passthrough\"");
    }
    if let Some(effect) = route.effect {
        key("effect", &quoted(effect));
    }
    if let Some(format) = route.stream {
        key("stream", &quoted(format));
    }
    if !route.headers.is_empty() {
        key(
            "headers",
            &pattern("headers", &Pattern::Object(route.headers.clone())),
        );
    }
    if !route.unread.is_empty() {
        key("ignore_query", &ignored(&route.unread));
    }
    if let Some(format) = route.body_format {
        key("body_format", &quoted(format));
    }
    if let Some(body) = &route.body {
        key("body", &pattern("body", body));
    }
    if let Some(params) = &route.params {
        key("params", &pattern("params", params));
    }
    if route.result != DraftedResult::Whole {
        key("result", "\"tool\"");
    }
    if let Some(docs) = &route.docs {
        write_docs(docs, lines);
    }
}

/// Renders the documentation of a tool's route.
fn write_docs(docs: &DraftedDocs, lines: &mut String) {
    let mut key = |name: &str, value: &str| lines.push_str(&format!("{name} = {value}\n"));
    for (name, words) in [
        ("summary", &docs.summary),
        ("description", &docs.description),
    ] {
        if let Some(words) = words {
            key(name, &quoted(words));
        }
    }
    if let Some(words) = &docs.body {
        key("body_description", &quoted(words));
    }
    if !docs.tags.is_empty() {
        let tags = docs.tags.iter().cloned().map(Pattern::Text).collect();
        key("tags", &pattern("tags", &Pattern::List(tags)));
    }
    let schemas = [
        ("schema.params", &docs.params),
        ("schema.result", &docs.result),
    ];
    // A boolean schema says nothing.
    let schemas = schemas
        .into_iter()
        .filter_map(|(name, schema)| Some((name, schema.as_ref().filter(|one| one.is_object())?)));
    let schemas: Vec<(&str, &Value)> = schemas.collect();
    if !schemas.is_empty() {
        // The schemas of a document may be stricter than its server.
        key("schema.validate", "false");
    }
    for (name, schema) in schemas {
        key(name, &json_text(schema));
    }
    for (name, responses) in [
        ("schema.successes", &docs.successes),
        ("schema.failures", &docs.failures),
    ] {
        if let Some(responses) = responses {
            key(name, &json_text(responses));
        }
    }
}

/// Renders JSON as a literal string, which has neither quotes nor control characters.
pub(super) fn json_text(json: &Value) -> String {
    let text = json.to_string();
    format!(
        "'{}'",
        text.replace('\'', "\\u0027").replace('\u{7f}', "\\u007f")
    )
}

/// Renders the query names that a route ignores: those of all routes, and its own.
fn ignored(unread: &[String]) -> String {
    let names = IGNORED.iter().map(|name| (*name).to_owned());
    // An object may also be written as `name[member]`.
    let unread = unread.iter().flat_map(|name| {
        let members = (name != "*").then(|| format!("{name}[*]"));
        std::iter::once(name.clone()).chain(members)
    });
    let names: Vec<Pattern> = names.chain(unread).map(Pattern::Text).collect();
    pattern("ignore_query", &Pattern::List(names))
}

/// Renders a pattern on one line if it fits, else on several.
fn pattern(key: &str, pattern: &Pattern) -> String {
    let line = one_line(pattern);
    if line.chars().count() + key.len() + 3 <= WIDEST {
        line
    } else {
        let mut text = String::new();
        spread(pattern, 0, &mut text);
        text
    }
}

fn one_line(pattern: &Pattern) -> String {
    match pattern {
        Pattern::Text(text) => quoted(text),
        Pattern::Literal(text) => text.clone(),
        Pattern::Object(members) if members.is_empty() => "{}".to_owned(),
        Pattern::Object(members) => {
            let members = members
                .iter()
                .map(|(name, pattern)| format!("{} = {}", bare(name), one_line(pattern)));
            format!("{{ {} }}", members.collect::<Vec<_>>().join(", "))
        }
        Pattern::List(elements) => {
            let elements: Vec<String> = elements.iter().map(one_line).collect();
            format!("[{}]", elements.join(", "))
        }
    }
}

/// Renders a part of a pattern on the rest of its line if it fits there.
fn fit(pattern: &Pattern, depth: usize, text: &mut String) {
    let used = text.rsplit('\n').next().unwrap_or_default();
    let line = one_line(pattern);
    if used.chars().count() + line.chars().count() < WIDEST {
        text.push_str(&line);
    } else {
        spread(pattern, depth, text);
    }
}

fn spread(pattern: &Pattern, depth: usize, text: &mut String) {
    let indent = "  ".repeat(depth + 1);
    match pattern {
        Pattern::Object(members) if !members.is_empty() => {
            text.push_str("{\n");
            for (name, pattern) in members {
                text.push_str(&format!("{indent}{} = ", bare(name)));
                fit(pattern, depth + 1, text);
                text.push_str(",\n");
            }
            text.push_str(&format!("{}}}", "  ".repeat(depth)));
        }
        Pattern::List(elements) if !elements.is_empty() => {
            text.push_str("[\n");
            for element in elements {
                text.push_str(&indent);
                fit(element, depth + 1, text);
                text.push_str(",\n");
            }
            text.push_str(&format!("{}]", "  ".repeat(depth)));
        }
        Pattern::Text(_) | Pattern::Literal(_) | Pattern::Object(_) | Pattern::List(_) => {
            text.push_str(&one_line(pattern));
        }
    }
}

/// Renders a key, with quotes if needed.
pub(crate) fn bare(name: &str) -> String {
    let plain =
        |character: char| character.is_ascii_alphanumeric() || character == '_' || character == '-';
    if !name.is_empty() && name.chars().all(plain) {
        name.to_owned()
    } else {
        quoted(name)
    }
}

/// Renders a basic string.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '\n' => quoted.push_str("\\n"),
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            character if character.is_control() => {
                quoted.push_str(&format!("\\u{:04X}", u32::from(character)));
            }
            character => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}
