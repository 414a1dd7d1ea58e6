//! A TOML text as pieces: headers and entries, each with the comments before it. Used by `import::refresh`.
//!
//! Law: the pieces of a valid TOML text, and its tail, are the text. The caller checks that the text is valid.

/// A header or an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    /// The comments and blank lines before it.
    pub(super) lead: String,
    pub(super) kind: PieceKind,
    /// Its lines, with the end of the last one.
    pub(super) text: String,
}

/// The kind of a piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PieceKind {
    /// `[a.b]` or `[[a.b]]`, by its keys.
    Header(Vec<String>),
    /// `a.b = value`, by its keys.
    Entry(Vec<String>),
}

impl Piece {
    pub(super) fn is_header(&self) -> bool {
        match self.kind {
            PieceKind::Header(_) => true,
            PieceKind::Entry(_) => false,
        }
    }

    /// Returns true if a comment stands inside of the piece, not before it.
    pub(super) fn has_comment(&self) -> bool {
        let bytes = self.text.as_bytes();
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'#' => return true,
                b'"' | b'\'' => at = string_end(bytes, at),
                _ => at += 1,
            }
        }
        false
    }

    /// Returns the key of an entry as written, and its value with all that follows it.
    pub(super) fn key_and_value(&self) -> (&str, &str) {
        let bytes = self.text.as_bytes();
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'=' => return (self.text[..at].trim(), self.text[at + 1..].trim_start()),
                b'"' | b'\'' => at = string_end(bytes, at),
                _ => at += 1,
            }
        }
        (self.text.trim(), "")
    }
}

/// The pieces of a text, and the comments after the last one.
pub(super) fn split(text: &str) -> (Vec<Piece>, String) {
    let mut found = Vec::new();
    let mut lead = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let line = &rest[..rest.find('\n').map_or(rest.len(), |end| end + 1)];
        let words = line.trim_start();
        let length = if words.is_empty() || words.starts_with('#') {
            lead.push_str(line);
            line.len()
        } else {
            let (kind, length) = match words.starts_with('[') {
                true => (PieceKind::Header(keys(line)), line.len()),
                false => {
                    let (key, length) = entry(rest);
                    (PieceKind::Entry(keys(&format!("{key} = 0"))), length)
                }
            };
            found.push(Piece {
                lead: std::mem::take(&mut lead),
                kind,
                text: rest[..length].to_owned(),
            });
            length
        };
        rest = &rest[length..];
    }
    (found, lead)
}

/// Returns the keys of a header or of an entry.
fn keys(line: &str) -> Vec<String> {
    let mut keys = Vec::new();
    let Ok(table) = line.parse::<toml::Table>() else {
        return keys;
    };
    let mut table = Some(table);
    while let Some((key, value)) = table.take().and_then(|table| table.into_iter().next()) {
        keys.push(key);
        table = match value {
            toml::Value::Table(inner) => Some(inner),
            toml::Value::Array(elements) => match elements.into_iter().next() {
                Some(toml::Value::Table(inner)) => Some(inner),
                _ => None,
            },
            toml::Value::String(_)
            | toml::Value::Integer(_)
            | toml::Value::Float(_)
            | toml::Value::Boolean(_)
            | toml::Value::Datetime(_) => None,
        };
    }
    keys
}

/// Returns the key and the length of the entry at the beginning of a text.
fn entry(text: &str) -> (String, usize) {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (0, 0_usize);
    let mut key = None;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'=' if key.is_none() => key = Some(text[..at].trim().to_owned()),
            b'"' | b'\'' | b'#' => {
                at = no_syntax_end(bytes, at);
                continue;
            }
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'\n' if depth == 0 => return (key.unwrap_or_default(), at + 1),
            _ => {}
        }
        at += 1;
    }
    (key.unwrap_or_default(), text.len())
}

/// Returns the end of the string or comment that begins at a position. No byte of it is a bracket or a line of the table.
fn no_syntax_end(bytes: &[u8], at: usize) -> usize {
    if bytes[at] != b'#' {
        return string_end(bytes, at);
    }
    let line = bytes[at..].iter().position(|byte| *byte == b'\n');
    line.map_or(bytes.len(), |line| at + line)
}

/// Returns the text between the brackets of an array or of an inline table, and the text after it.
pub(super) fn inside(value: &str) -> (&str, &str) {
    let bytes = value.as_bytes();
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' | b'\'' | b'#' => {
                at = no_syntax_end(bytes, at);
                continue;
            }
            b'[' | b'{' => depth += 1,
            b']' | b'}' if depth <= 1 => {
                return (value.get(1..at).unwrap_or_default(), &value[at + 1..]);
            }
            b']' | b'}' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
    (value.get(1..).unwrap_or_default(), "")
}

/// Splits the inside of an array or of an inline table at its commas. Each element has the comments before it.
pub(super) fn elements(text: &str) -> Vec<(String, String)> {
    let bytes = text.as_bytes();
    let (mut at, mut depth, mut start) = (0, 0_usize, None);
    let (mut found, mut lead) = (Vec::new(), String::new());
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'#' => {
                let line = bytes[at..].iter().position(|byte| *byte == b'\n');
                let end = line.map_or(bytes.len(), |line| at + line + 1);
                if start.is_none() {
                    lead.push_str(text[at..end].trim_end());
                    lead.push('\n');
                }
                at = end;
                continue;
            }
            b',' if depth == 0 => {
                if let Some(start) = start.take() {
                    let element: &str = &text[start..at];
                    found.push((std::mem::take(&mut lead), element.trim_end().to_owned()));
                }
                at += 1;
                continue;
            }
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if !byte.is_ascii_whitespace() {
            start.get_or_insert(at);
        }
        at = match byte {
            b'"' | b'\'' => string_end(bytes, at),
            _ => at + 1,
        };
    }
    if let Some(start) = start {
        found.push((
            std::mem::take(&mut lead),
            text[start..].trim_end().to_owned(),
        ));
    }
    // Comments after the last element stay with it.
    if let Some((comments, _)) = found.last_mut() {
        comments.push_str(&lead);
    }
    found
}

/// Returns the place after the string that begins here.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let quote = bytes[start];
    let is_basic = quote == b'"';
    let triple = [quote; 3];
    let is_long = bytes[start..].starts_with(&triple);
    let mut at = start + if is_long { 3 } else { 1 };
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' if is_basic => at += 2,
            byte if *byte == quote && !is_long => return at + 1,
            byte if *byte == quote && bytes[at..].starts_with(&triple) => {
                // Up to two quotes may stand before the last three.
                let quotes = bytes[at..].iter().take_while(|byte| **byte == quote);
                return at + quotes.count().min(5);
            }
            _ => at += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "# head\n\nkey = 1 # one\n\n# route\n[[route]] # first\na = [\n  1, # [\n  '[[route]]',\n]\n\
                        b = { x = \"\\\"}\",\n  y = '''\n[[route]]\n'''' }\n\"c=d\" = \"\"\"\n[x]\n\\\"\"\"\"\"\n\
                        [[route.outcome]]\nrest = {}\n[schemas]\n\"a b\" = ''\n# tail\n";

    fn kinds(text: &str) -> Vec<String> {
        let (pieces, _) = split(text);
        let kinds = pieces.into_iter().map(|piece| match piece.kind {
            PieceKind::Header(keys) => format!("[{}]", keys.join(".")),
            PieceKind::Entry(keys) => keys.join("."),
        });
        kinds.collect()
    }

    fn joined(text: &str) -> String {
        let (pieces, tail) = split(text);
        let pieces = pieces.iter();
        let mut whole: String = pieces
            .map(|piece| format!("{}{}", piece.lead, piece.text))
            .collect();
        whole.push_str(&tail);
        whole
    }

    #[test]
    fn strings_and_lists_are_one_entry() {
        assert!(TEXT.parse::<toml::Table>().is_ok(), "{TEXT}");
        let expected = [
            "key",
            "[route]",
            "a",
            "b",
            "c=d",
            "[route.outcome]",
            "rest",
            "[schemas]",
            "a b",
        ];
        assert_eq!(kinds(TEXT), expected);
        assert_eq!(joined(TEXT), TEXT);
    }

    #[test]
    fn elements_keep_their_text_and_their_comments() {
        let text = " 1, # one\n [2, '3,'], # two\n { a = \"}\" } # three\n, # end\n";
        let found = elements(text);
        let expected = [
            ("", "1"),
            ("# one\n", "[2, '3,']"),
            ("# two\n# end\n", "{ a = \"}\" } # three"),
        ];
        let expected = expected.map(|(lead, text)| (lead.to_owned(), text.to_owned()));
        assert_eq!(found, expected);
    }

    proptest! {
        #[test]
        fn the_pieces_of_any_text_are_the_text(text in "[a-c=\\[\\]{}\"'#\\\\\n ]{0,60}") {
            prop_assert_eq!(joined(&text), text);
        }
    }
}
