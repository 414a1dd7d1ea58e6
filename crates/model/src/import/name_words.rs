//! Names split into words, and the comparison of names by them.
//!
//! `listPets`, `list_pets`, `pets/list` and `GET /pets` all mean the verb *list* and the noun *pet*.
//!
//! Used by `import`.

use super::model::{RestOperation, Segment, SegmentPart};

/// Words that mean the same kind of operation.
const VERBS: &[(&str, &[&str])] = &[
    (
        "get",
        &[
            "get", "read", "fetch", "retrieve", "show", "describe", "load",
        ],
    ),
    ("list", &["list", "all", "index", "enumerate"]),
    ("create", &["create", "add", "new", "insert", "post"]),
    (
        "update",
        &["update", "replace", "put", "edit", "modify", "patch", "set"],
    ),
    ("delete", &["delete", "remove", "destroy", "del"]),
];

/// Path segments that do not describe the operation.
const EMPTY: &[&str] = &["api", "apis", "rest", "rpc", "mcp", "public"];

/// The meaning of a name: a verb, with its nouns in the singular and in alphabetical order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NameWords {
    pub(super) verb: &'static str,
    pub(super) nouns: Vec<String>,
}

/// Splits a name at every sign and at the capitals of camel case. Words are in lower case.
pub(super) fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let characters: Vec<char> = name.chars().collect();
    for (at, character) in characters.iter().copied().enumerate() {
        let before = at.checked_sub(1).map(|at| characters[at]);
        let after = characters.get(at + 1);
        let begins = character.is_uppercase()
            && (before.is_some_and(|before| !before.is_uppercase())
                || after.is_some_and(|after| after.is_lowercase()));
        if (begins || !character.is_alphanumeric()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if character.is_alphanumeric() {
            word.extend(character.to_lowercase());
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// Returns the singular of a word, guessed from its ending.
pub(super) fn singular(word: &str) -> String {
    let cut = |ending: &str| word.strip_suffix(ending);
    if word.len() < 4 || cut("ss").is_some() || cut("us").is_some() || cut("is").is_some() {
        return word.to_owned();
    }
    if let Some(stem) = cut("ies") {
        return format!("{stem}y");
    }
    for ending in ["sses", "shes", "ches", "xes", "zes"] {
        if cut(ending).is_some() {
            return word[..word.len() - 2].to_owned();
        }
    }
    cut("s").unwrap_or(word).to_owned()
}

fn is_plural(word: &str) -> bool {
    singular(word) != word
}

fn verb(word: &str) -> Option<&'static str> {
    let found = VERBS.iter().find(|(_, words)| words.contains(&word));
    found.map(|(verb, _)| *verb)
}

/// Returns true when two names differ only in signs, case and number.
pub(super) fn same_name(one: &str, other: &str) -> bool {
    plain(one) == plain(other)
}

/// Returns true for `petId` and `id`: one name is the other without its first word, and both end in `id` or `name`.
pub(super) fn same_end(one: &str, other: &str) -> bool {
    let (one, other) = (words(one), words(other));
    let ends = |words: &[String]| {
        let last = words.last();
        last.is_some_and(|word| word == "id" || word == "name")
    };
    let is_longer = |one: &[String], other: &[String]| one.len() > 1 && one[1..] == *other;
    ends(&one) && ends(&other) && (is_longer(&one, &other) || is_longer(&other, &one))
}

/// Returns the words of a name in the singular.
pub(super) fn plain(name: &str) -> Vec<String> {
    words(name).iter().map(|word| singular(word)).collect()
}

/// Returns the meaning of an operation's name. Without a known verb, all words are nouns and the verb is empty.
pub(super) fn from_name(name: &str) -> NameWords {
    let words = words(name);
    let at = match (words.first(), words.last()) {
        (Some(first), _) if verb(first).is_some() => Some(0),
        (_, Some(last)) if verb(last).is_some() => Some(words.len() - 1),
        (_, _) => None,
    };
    let verb_name = at.and_then(|at| verb(&words[at])).unwrap_or_default();
    let rest = words
        .iter()
        .enumerate()
        .filter(|(index, _)| Some(*index) != at);
    let rest: Vec<&str> = rest.map(|(_, word)| word.as_str()).collect();
    // `getPets` lists; `pets.get` gets one of the pets.
    let verb_name = if at == Some(0) {
        number(verb_name, &rest)
    } else {
        verb_name
    };
    meaning(verb_name, &rest)
}

fn number(verb: &'static str, nouns: &[&str]) -> &'static str {
    let plural = nouns.last().is_some_and(|word| is_plural(word));
    if verb == "get" && plural {
        "list"
    } else {
        verb
    }
}

fn meaning(verb: &'static str, nouns: &[&str]) -> NameWords {
    // `getPetById` gets a pet.
    let by = nouns.iter().position(|word| *word == "by");
    let nouns = &nouns[..by.unwrap_or(nouns.len())];
    let mut nouns: Vec<String> = nouns.iter().map(|word| singular(word)).collect();
    nouns.sort_unstable();
    nouns.dedup();
    NameWords { verb, nouns }
}

/// Returns the literal words of a path, without prefixes and versions.
pub(super) fn path_words(operation: &RestOperation) -> Vec<String> {
    let literals = operation
        .segments
        .iter()
        .filter_map(|segment| match segment {
            Segment::Literal(text) => Some(text.as_str()),
            Segment::Hole { verb, .. } => verb.as_deref(),
            Segment::Mixed(_) => None,
        });
    let known = literals.filter(|text| !is_uninformative(text));
    known.flat_map(words).collect()
}

fn is_uninformative(segment: &str) -> bool {
    let version = segment
        .strip_prefix(['v', 'V'])
        .is_some_and(|rest| rest.starts_with(|character: char| character.is_ascii_digit()));
    version || EMPTY.contains(&segment.to_ascii_lowercase().as_str())
}

/// Returns the verb that the HTTP method and the path of an operation imply.
pub(super) fn method_verb(operation: &RestOperation) -> &'static str {
    let ends_in_hole = operation.last_segment().is_some_and(Segment::has_hole);
    match operation.method.as_str() {
        "GET" | "HEAD" if ends_in_hole => "get",
        "GET" | "HEAD" => {
            let plural = path_words(operation)
                .last()
                .is_some_and(|word| is_plural(word));
            if plural { "list" } else { "get" }
        }
        "POST" => "create",
        "PUT" | "PATCH" => "update",
        "DELETE" => "delete",
        _ => "",
    }
}

/// Returns the meaning of method and path, with all literals of the path.
pub(super) fn from_whole_path(operation: &RestOperation) -> NameWords {
    let words = path_words(operation);
    let nouns: Vec<&str> = words.iter().map(String::as_str).collect();
    meaning(method_verb(operation), &nouns)
}

/// Returns the meaning of method and path, with the last literal alone.
pub(super) fn from_last_literal(operation: &RestOperation) -> NameWords {
    let literals = operation.segments.iter().rev();
    let last = literals
        .filter_map(|segment| match segment {
            Segment::Literal(text) => Some(text.as_str()),
            Segment::Hole { .. } | Segment::Mixed(_) => None,
        })
        .find(|text| !text.is_empty() && !is_uninformative(text));
    let words = last.map(words).unwrap_or_default();
    let nouns: Vec<&str> = words.iter().map(String::as_str).collect();
    meaning(method_verb(operation), &nouns)
}

/// Returns the words of a path that spells out the whole operation: `/tools/call`.
pub(super) fn spelled_by_path(operation: &RestOperation) -> Vec<String> {
    let mut words: Vec<String> = path_words(operation)
        .iter()
        .map(|word| singular(word))
        .collect();
    words.sort_unstable();
    words.dedup();
    words
}

/// Returns the same words of the name of an RPC operation.
pub(super) fn spelled_by_name(name: &str) -> Vec<String> {
    let mut words = plain(name);
    words.sort_unstable();
    words.dedup();
    words
}

/// Returns a name for an operation without one: `users.pets.list`.
pub(super) fn invented(operation: &RestOperation) -> String {
    with_verb(operation, path_words(operation))
}

/// Returns a name that includes the path parameters: `users.id.section.get`.
pub(super) fn invented_with_holes(operation: &RestOperation) -> String {
    let segments = operation.segments.iter().flat_map(|segment| match segment {
        Segment::Literal(text) => vec![text.as_str()],
        Segment::Hole { name, verb } => {
            let verb = verb.as_deref();
            std::iter::once(name.as_str()).chain(verb).collect()
        }
        Segment::Mixed(parts) => {
            let parts = parts.iter().map(|part| match part {
                SegmentPart::Text(text) | SegmentPart::Hole(text) => text.as_str(),
            });
            parts.collect()
        }
    });
    let known = segments.filter(|text| !is_uninformative(text));
    with_verb(operation, known.flat_map(words).collect())
}

fn with_verb(operation: &RestOperation, mut words: Vec<String>) -> String {
    let verb = match operation.method.as_str() {
        "PATCH" => "patch".to_owned(),
        _ => match method_verb(operation) {
            "" => operation.method.to_lowercase(),
            verb => verb.to_owned(),
        },
    };
    if words.is_empty() {
        words.push("root".to_owned());
    }
    // The verb of `/notes:archive` is in the path already.
    let has_verb = match operation.last_segment() {
        Some(Segment::Literal(text)) => text.contains(':'),
        Some(Segment::Hole { verb, .. }) => verb.is_some(),
        Some(Segment::Mixed(_)) | None => false,
    };
    if !has_verb {
        words.push(verb);
    }
    words.join(".")
}
