//! A lexer for Rust, as far as it is needed to find string literals and their context.

/// A token. Comments, characters and lifetime marks are omitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Token {
    /// The value of a string literal.
    Text(String),
    /// An identifier, a keyword or a number.
    Word(String),
    /// A punctuation character.
    Mark(char),
}

impl Token {
    pub(crate) fn is_word(&self, word: &str) -> bool {
        matches!(self, Token::Word(found) if found == word)
    }

    pub(crate) fn is_mark(&self, mark: char) -> bool {
        matches!(self, Token::Mark(found) if *found == mark)
    }
}

/// Splits a source into tokens.
pub(crate) fn tokens(source: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        rest = if first.is_whitespace() {
            rest.trim_start()
        } else if rest.starts_with("//") {
            rest.split_once('\n').map_or("", |(_, rest)| rest)
        } else if rest.starts_with("/*") {
            rest.split_once("*/").map_or("", |(_, rest)| rest)
        } else if let Some((text, rest)) = raw(rest).or_else(|| quoted(rest)) {
            tokens.push(Token::Text(text));
            rest
        } else if first == '\'' {
            after_quote(rest)
        } else if first.is_alphanumeric() || first == '_' {
            let is_end = |c: char| !c.is_alphanumeric() && c != '_';
            let (word, rest) = rest.split_at(rest.find(is_end).unwrap_or(rest.len()));
            tokens.push(Token::Word(word.to_owned()));
            rest
        } else {
            tokens.push(Token::Mark(first));
            &rest[first.len_utf8()..]
        };
    }
    tokens
}

/// Skips a character literal, or the mark of a lifetime.
fn after_quote(source: &str) -> &str {
    let rest = &source[1..];
    let mut chars = rest.chars();
    match (chars.next(), chars.next()) {
        (Some('\\'), Some(escaped)) => {
            let rest = &rest[1 + escaped.len_utf8()..];
            rest.split_once('\'').map_or("", |(_, rest)| rest)
        }
        (Some(_), Some('\'')) => chars.as_str(),
        _ => rest,
    }
}

/// Parses a raw string literal: `r"…"`, `r#"…"#`, `br"…"`.
fn raw(source: &str) -> Option<(String, &str)> {
    let rest = source.strip_prefix('b').unwrap_or(source);
    let rest = rest.strip_prefix('r')?;
    let hashes = rest.len() - rest.trim_start_matches('#').len();
    let rest = rest[hashes..].strip_prefix('"')?;
    let (text, rest) = rest.split_once(&format!("\"{}", "#".repeat(hashes)))?;
    Some((text.to_owned(), rest))
}

/// Parses a string literal with escapes: `"…"`, `b"…"`.
fn quoted(source: &str) -> Option<(String, &str)> {
    let mut rest = source
        .strip_prefix('"')
        .or_else(|| source.strip_prefix("b\""))?;
    let mut text = String::new();
    loop {
        let end = rest.find(['"', '\\'])?;
        text += &rest[..end];
        let is_end = rest[end..].starts_with('"');
        rest = &rest[end + 1..];
        if is_end {
            return Some((text, rest));
        }
        let escaped = rest.chars().next()?;
        rest = &rest[escaped.len_utf8()..];
        match escaped {
            'n' => text.push('\n'),
            't' => text.push('\t'),
            '"' | '\\' | '\'' => text.push(escaped),
            // A line break and the indentation after it are not part of the value.
            '\n' => rest = rest.trim_start(),
            // Other escapes are shown as they are written.
            other => text.extend(['\\', other]),
        }
    }
}

#[test]
fn literals_comments_and_characters_are_told_apart() {
    let source = r##"f("a \"b\"", 'x', '\'', b'"', r#"c "d""#, "e \
        f") // "g"
        /* "h" */ fn x<'a>() {}"##;
    let texts = tokens(source).into_iter().filter_map(|token| match token {
        Token::Text(text) => Some(text),
        Token::Word(_) | Token::Mark(_) => None,
    });
    let texts: Vec<_> = texts.collect();
    assert_eq!(texts, ["a \"b\"", "c \"d\"", "e f"]);
}
