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
    /// `key = value`, by the key as written.
    Entry(String),
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
                true => (PieceKind::Header(header(line)), line.len()),
                false => {
                    let (key, length) = entry(rest);
                    (PieceKind::Entry(key), length)
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

/// Returns the keys of a header.
fn header(line: &str) -> Vec<String> {
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
            b'"' | b'\'' => {
                at = string_end(bytes, at);
                continue;
            }
            b'#' => {
                let line = bytes[at..].iter().position(|byte| *byte == b'\n');
                at = line.map_or(bytes.len(), |line| at + line);
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
            PieceKind::Entry(key) => key,
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
            "\"c=d\"",
            "[route.outcome]",
            "rest",
            "[schemas]",
            "\"a b\"",
        ];
        assert_eq!(kinds(TEXT), expected);
        assert_eq!(joined(TEXT), TEXT);
    }

    proptest! {
        #[test]
        fn the_pieces_of_any_text_are_the_text(text in "[a-c=\\[\\]{}\"'#\\\\\n ]{0,60}") {
            prop_assert_eq!(joined(&text), text);
        }
    }
}
