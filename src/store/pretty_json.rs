//! JSON formatted for people, with one member or element per line. Used by `file::contents` and `snapshot`.

/// The maximum indentation depth, which bounds the growth of a text.
const DEEPEST: usize = 8;

/// Formats a valid JSON text with line breaks and indentation; every token is kept as it is.
pub(super) fn pretty(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 2);
    let mut depth = 0_usize;
    let mut before = "";
    for token in JsonTokens(text) {
        if matches!(token, "}" | "]") {
            depth = depth.saturating_sub(1);
        }
        let breaks = match (before, token) {
            ("{" | "[", "}" | "]") => false,
            ("{" | "[" | ",", _) | (_, "}" | "]") => true,
            _ => false,
        };
        if breaks {
            new_line(&mut out, depth);
        }
        out.push_str(token);
        if token == ":" {
            out.push(' ');
        }
        if matches!(token, "{" | "[") {
            depth += 1;
        }
        before = token;
    }
    out.push('\n');
    out
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    for _ in 0..depth.min(DEEPEST) {
        out.push_str("  ");
    }
}

/// The tokens of a valid JSON text.
struct JsonTokens<'t>(&'t str);

impl<'t> Iterator for JsonTokens<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        self.0 = self.0.trim_start_matches([' ', '\t', '\n', '\r']);
        let length = match self.0.as_bytes().first()? {
            b'"' => string(self.0),
            b'{' | b'}' | b'[' | b']' | b',' | b':' => 1,
            _ => scalar(self.0),
        };
        let (token, rest) = self.0.split_at(length);
        self.0 = rest;
        Some(token)
    }
}

fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            b'"' if !escaped => return at + 1,
            b'\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    text.len()
}

fn scalar(text: &str) -> usize {
    let ends = |c: char| matches!(c, ' ' | '\t' | '\n' | '\r' | ',' | ':' | '}' | ']');
    text.find(ends).unwrap_or(text.len()).max(1)
}
