//! The texts in the sources, with their kinds.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::lexer::{Token, tokens};

const LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

/// The first words of items, in which a comma does not end anything.
const ITEMS: [&str; 12] = [
    "async",
    "const",
    "enum",
    "fn",
    "impl",
    "macro_rules",
    "mod",
    "static",
    "struct",
    "trait",
    "type",
    "use",
];

/// Sources without texts for users: the sample server imitates another program, and the store has scripts.
const UNREAD: [&str; 2] = ["crates/sample", "src/store/redis/script.rs"];

/// The use of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The message of a log line.
    Log,
    /// An error (`#[error("…")]`).
    Error,
    /// A text in a function that builds a `Failure`.
    Failure,
    /// Any other text of several words.
    Other,
}

/// A text in a source.
#[derive(Debug)]
pub(crate) struct Text {
    pub(crate) kind: Kind,
    /// The level of a log message, with a space; otherwise empty.
    pub(crate) label: String,
    pub(crate) text: String,
}

/// Returns the texts of all sources, by path.
pub(crate) fn all() -> BTreeMap<String, Vec<Text>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = BTreeMap::new();
    read(&root.join("src"), &mut files);
    for entry in fs::read_dir(root.join("crates")).unwrap() {
        read(&entry.unwrap().path().join("src"), &mut files);
    }
    let mut tests = BTreeSet::new();
    for (path, tokens) in &mut files {
        remove_tests(path, tokens, &mut tests);
    }
    let is_test = |path: &Path| {
        let mut above = path.ancestors();
        above.any(|path| tests.contains(&path.with_extension("")))
    };
    let files = files.into_iter().filter(|(path, _)| !is_test(path));
    let files = files.map(|(path, tokens)| {
        let path = path.strip_prefix(root).unwrap().display().to_string();
        (path, texts(&tokens))
    });
    let is_read = |path: &str| !UNREAD.iter().any(|unread| path.starts_with(unread));
    files.filter(|(path, _)| is_read(path)).collect()
}

fn read(folder: &Path, files: &mut BTreeMap<PathBuf, Vec<Token>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let tokens = tokens(&fs::read_to_string(&path).unwrap());
            files.insert(path, tokens);
        }
    }
}

/// Removes items with `#[cfg(test)]` or `#[cfg(any(test, …))]`, and records the paths of test modules in other files, without their extension.
fn remove_tests(path: &Path, tokens: &mut Vec<Token>, tests: &mut BTreeSet<PathBuf>) {
    let is_marked = |tokens: &[Token]| {
        let found = tokens.get(..7);
        found.is_some_and(|found| {
            let is_condition = found[0].is_mark('#') && found[2].is_word("cfg");
            let is_test = found[4].is_word("test");
            let is_also_test = found[4].is_word("any") && found[6].is_word("test");
            is_condition && (is_test || is_also_test)
        })
    };
    while let Some(start) = (0..tokens.len()).find(|at| is_marked(&tokens[*at..])) {
        let end = end_of_item(tokens, start);
        let item: Vec<_> = tokens.drain(start..end).collect();
        let module = item.iter().position(|token| token.is_word("mod"));
        if let Some(module) = module
            && let Some(Token::Word(name)) = item.get(module + 1)
            && item.last().is_some_and(|last| last.is_mark(';'))
        {
            tests.insert(path.with_extension("").join(name));
        }
    }
}

/// Returns the index after the item, field or arm that starts at `start` with an attribute.
fn end_of_item(tokens: &[Token], start: usize) -> usize {
    let mut at = start;
    while tokens.get(at).is_some_and(|token| token.is_mark('#')) {
        at = closing(tokens, at + 1) + 1;
    }
    let mut words = tokens[at..].iter().take(5);
    let is_item = words.any(|token| ITEMS.iter().any(|item| token.is_word(item)));
    while let Some(token) = tokens.get(at) {
        match token {
            Token::Mark('{') => return closing(tokens, at) + 1,
            Token::Mark(';') => return at + 1,
            Token::Mark(',') if !is_item => return at + 1,
            Token::Mark('}' | ']' | ')') => return at,
            Token::Mark('(' | '[') => at = closing(tokens, at) + 1,
            Token::Text(_) | Token::Word(_) | Token::Mark(_) => at += 1,
        }
    }
    at
}

/// Returns the index of the bracket that closes the one at `open`, or of the last token.
fn closing(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token {
            Token::Mark('(' | '[' | '{') => depth += 1,
            Token::Mark(')' | ']' | '}') => depth = depth.saturating_sub(1),
            Token::Text(_) | Token::Word(_) | Token::Mark(_) => {}
        }
        if depth == 0 && at > open {
            return at;
        }
    }
    tokens.len() - 1
}

/// Returns the texts of one source.
fn texts(tokens: &[Token]) -> Vec<Text> {
    let failures = functions_with_failures(tokens);
    let mut texts = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if let Some((end, error)) = attribute(tokens, at) {
            texts.extend(error);
            at = end;
        } else if let Some((end, message)) = log_message(tokens, at) {
            texts.push(message);
            at = end;
        } else {
            if let Token::Text(text) = &tokens[at]
                && is_sentence(text)
            {
                let kind = match failures.iter().any(|function| function.contains(&at)) {
                    true => Kind::Failure,
                    false => Kind::Other,
                };
                texts.push(Text::new(kind, text));
            }
            at += 1;
        }
    }
    texts
}

impl Text {
    fn new(kind: Kind, text: &str) -> Text {
        let (label, text) = (String::new(), text.to_owned());
        Text { kind, label, text }
    }
}

/// Returns the end of an attribute, and its text if it is the one of an error.
fn attribute(tokens: &[Token], at: usize) -> Option<(usize, Option<Text>)> {
    let open = match tokens.get(at..at + 3)? {
        [hash, open, _] if hash.is_mark('#') && open.is_mark('[') => at + 1,
        [hash, not, open] if hash.is_mark('#') && not.is_mark('!') && open.is_mark('[') => at + 2,
        _ => return None,
    };
    let end = closing(tokens, open) + 1;
    let inner = &tokens[open + 1..end];
    let is_error = inner.first().is_some_and(|word| word.is_word("error"));
    let error = inner.iter().find_map(|token| match token {
        Token::Text(text) if is_error => Some(Text::new(Kind::Error, text)),
        Token::Text(_) | Token::Word(_) | Token::Mark(_) => None,
    });
    Some((end, error))
}

/// Returns the end of a logging macro, and its message: the last argument that is a literal.
fn log_message(tokens: &[Token], at: usize) -> Option<(usize, Text)> {
    let [Token::Word(level), not, open] = tokens.get(at..at + 3)? else {
        return None;
    };
    if !LEVELS.contains(&level.as_str()) || !not.is_mark('!') || !open.is_mark('(') {
        return None;
    }
    let end = closing(tokens, at + 2);
    let inner = &tokens[at + 2..end];
    let mut pairs = inner.windows(2).filter_map(|pair| match pair {
        [Token::Mark('(' | ','), Token::Text(text)] => Some(text),
        _ => None,
    });
    let message = pairs.next_back().map_or("(no message)", String::as_str);
    let message = Text {
        label: format!("{level:<6}"),
        ..Text::new(Kind::Log, message)
    };
    Some((end + 1, message))
}

/// Returns the functions in which the type `Failure` occurs.
fn functions_with_failures(tokens: &[Token]) -> Vec<Range<usize>> {
    let mut functions = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at].is_word("fn") && matches!(tokens.get(at + 1), Some(Token::Word(_))) {
            let end = end_of_item(tokens, at);
            let mut inner = tokens[at..end].iter();
            if inner.any(|token| token.is_word("Failure")) {
                functions.push(at..end);
            }
            at = end;
        } else {
            at += 1;
        }
    }
    functions
}

/// Returns true if a text has several words outside of placeholders, one of them in lower case. Examples of commands are
/// on the help pages.
fn is_sentence(text: &str) -> bool {
    if text.starts_with("Examples:") {
        return false;
    }
    let mut depth = 0_usize;
    let mut shown = String::new();
    for c in text.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            c if depth == 0 => shown.push(c),
            _ => {}
        }
    }
    let words = shown.split_whitespace().filter(|word| {
        let word = word.trim_matches(|c: char| c.is_ascii_punctuation());
        word.len() > 1 && word.chars().all(|c| c.is_alphabetic() || "-'`".contains(c))
    });
    let words: Vec<_> = words.collect();
    words.len() > 1 && words.iter().any(|word| word.contains(char::is_lowercase))
}
