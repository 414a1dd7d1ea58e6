//! References inside a document, followed within limits.
//!
//! A reference that leaves the document is never followed: it would let the document name files and servers of its
//! reader. References are followed only where an operation needs them. An unneeded one, or one in an extension (`x-…`),
//! is plain JSON.
//!
//! Used by `cli` and `import`.

use std::cell::Cell;
use std::collections::BTreeMap;

use serde_json::Value;

use dualgauge_patterns::percent::{self, Plus};

/// The longest chain of references to references.
const LONGEST_CHAIN: usize = 32;
/// The deepest nesting of a document.
const DEEPEST: usize = 200;
/// The most members, elements and references that are visited, because repeated references multiply. A document itself
/// may have less than half as many.
const MOST_STEPS: usize = 1_000_000;
/// The most enumeration values that are read, for the same reason.
const MOST_WORDS: usize = 1_000_000;
/// The number of bytes of text that count as one step.
const STEP: usize = 64;
/// Members with a sample value or a text; a `$ref` in it is not a reference.
const OPAQUE: &[&str] = &["example", "examples", "default", "enum", "const"];
/// Members that are maps: their own members have arbitrary names (OpenAPI 3.2 §4.7, JSON Schema 2020-12 §10.3).
const MAPS: &[&str] = &[
    "properties",
    "patternProperties",
    "dependentSchemas",
    "$defs",
    "definitions",
    "schemas",
    "responses",
    "parameters",
    "requestBodies",
    "headers",
    "pathItems",
    "mediaTypes",
    "content",
    "callbacks",
];
/// Members that name a schema (JSON Schema 2020-12 §8.2.2).
const ANCHORS: [&str; 2] = ["$anchor", "$dynamicAnchor"];

/// The reason why a document cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocumentFault {
    /// It is not of the expected kind.
    #[error("{0}")]
    Kind(String),
    /// A reference leaves the document.
    #[error(
        "`$ref: {0}` leaves the document; only references that begin with `#` are followed, bundle the documents into one first"
    )]
    Remote(String),
    /// A reference has no target.
    #[error("`$ref: {0}` has no target in the document")]
    Dangling(String),
    /// A reference leads back to itself.
    #[error("`$ref: {0}` leads to itself, or through more than {LONGEST_CHAIN} references")]
    Cycle(String),
    /// The nesting is too deep.
    #[error("nested more than {DEEPEST} deep at {0}")]
    TooDeep(String),
    /// `allOf` is nested too deep.
    #[error("`allOf` inside `allOf` leads to itself, or is nested more than {0} deep")]
    AllOf(usize),
    /// Repeated references lead to too many values.
    #[error("its references lead to more than {MOST_STEPS} values; repeated references multiply")]
    TooMany,
}

/// A document whose references can be followed.
#[derive(Debug)]
pub(super) struct Refs<'v> {
    root: &'v Value,
    anchors: BTreeMap<&'v str, &'v Value>,
    steps: Cell<usize>,
    words: Cell<usize>,
    replies: ReplyTypes,
}

/// The content types of responses that can be translated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum ReplyTypes {
    /// JSON and plain text.
    #[default]
    JsonOrText,
    /// All but event streams, which do not end.
    Any,
}

impl<'v> Refs<'v> {
    /// Sets the content types of responses that can be translated.
    pub(super) fn accepting(self, replies: ReplyTypes) -> Refs<'v> {
        Refs { replies, ..self }
    }

    pub(super) fn reply_types(&self) -> ReplyTypes {
        self.replies
    }

    /// Collects the anchors of a document.
    ///
    /// # Errors
    /// [`DocumentFault::TooDeep`]
    pub(super) fn new(root: &'v Value) -> Result<Refs<'v>, DocumentFault> {
        let mut anchors = BTreeMap::new();
        scan(root, &mut Vec::new(), &mut anchors)?;
        Ok(Refs {
            root,
            anchors,
            steps: Cell::new(0),
            words: Cell::new(0),
            replies: ReplyTypes::default(),
        })
    }

    /// Returns the value itself, or the target of its reference.
    pub(super) fn follow(&self, value: &'v Value) -> Result<&'v Value, DocumentFault> {
        self.steps(1)?;
        let mut value = value;
        for _ in 0..LONGEST_CHAIN {
            let Some(reference) = reference(value) else {
                return Ok(value);
            };
            self.text(reference)?;
            value = self.named(reference)?;
        }
        let reference = reference(value).unwrap_or_default();
        Err(DocumentFault::Cycle(shown(reference)))
    }

    fn named(&self, reference: &str) -> Result<&'v Value, DocumentFault> {
        let dangling = || DocumentFault::Dangling(shown(reference));
        // A document may refer to itself by name (OpenAPI 3.2 §4.1, `$self`).
        let id = text(self.root, "$self").and_then(|id| reference.strip_prefix(id));
        let local = id.filter(|rest| rest.starts_with('#')).unwrap_or(reference);
        let remote = || DocumentFault::Remote(shown(reference));
        let fragment = local.strip_prefix('#').ok_or_else(remote)?;
        let fragment = percent::decode(fragment, Plus::Literal).map_err(|_| dangling())?;
        let found = if fragment.is_empty() || fragment.starts_with('/') {
            self.root.pointer(&fragment)
        } else {
            self.anchors.get(fragment.as_ref()).copied()
        };
        found.ok_or_else(dangling)
    }

    /// Counts visited members or elements.
    ///
    /// # Errors
    /// [`DocumentFault::TooMany`]
    pub(super) fn steps(&self, count: usize) -> Result<(), DocumentFault> {
        let steps = self.steps.get().saturating_add(count);
        self.steps.set(steps);
        if steps > MOST_STEPS {
            Err(DocumentFault::TooMany)
        } else {
            Ok(())
        }
    }

    /// Counts a text that becomes part of an operation; short texts are free.
    ///
    /// # Errors
    /// [`DocumentFault::TooMany`]
    pub(super) fn text(&self, text: &str) -> Result<(), DocumentFault> {
        self.steps(text.len() / STEP)
    }

    /// Returns true when an enumeration may be read, and counts its values.
    pub(super) fn may_read_words(&self, values: &[Value]) -> bool {
        let more = |count: usize| {
            let words = self.words.get().saturating_add(count);
            self.words.set(words);
            words <= MOST_WORDS
        };
        // The length is checked first, so that the values over the limit are not visited.
        more(values.len()) && {
            let texts = values.iter().filter_map(Value::as_str);
            more(texts.map(|text| text.len() / STEP).sum())
        }
    }
}

fn reference(value: &Value) -> Option<&str> {
    value.get("$ref")?.as_str()
}

/// Checks the depth and collects the anchors.
fn scan<'v>(
    value: &'v Value,
    path: &mut Vec<&'v str>,
    anchors: &mut BTreeMap<&'v str, &'v Value>,
) -> Result<(), DocumentFault> {
    if path.len() > DEEPEST {
        return Err(DocumentFault::TooDeep(pointer(&path[..8])));
    }
    match value {
        Value::Object(members) => {
            // Members of `properties` are plain names: a property may be called `example` or `x-id`.
            let named = path.last().is_some_and(|name| MAPS.contains(name));
            let names = ANCHORS.iter().filter_map(|name| text(value, name));
            for name in names.filter(|_| !named) {
                anchors.entry(name).or_insert(value);
            }
            for (name, value) in members {
                if named || !(OPAQUE.contains(&name.as_str()) || name.starts_with("x-")) {
                    path.push(name);
                    scan(value, path, anchors)?;
                    path.pop();
                }
            }
        }
        Value::Array(elements) => {
            for element in elements {
                path.push("*");
                scan(element, path, anchors)?;
                path.pop();
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    Ok(())
}

fn pointer(path: &[&str]) -> String {
    let names = path
        .iter()
        .map(|name| name.replace('~', "~0").replace('/', "~1"));
    shown(&format!("#/{}", names.collect::<Vec<_>>().join("/")))
}

/// Removes the control characters of a document's text, so that no terminal interprets them.
#[must_use]
pub fn printable(text: &str) -> String {
    let tidy = |character: char| {
        if character.is_control() {
            ' '
        } else {
            character
        }
    };
    text.chars().map(tidy).collect()
}

/// Shortens a text of the document to one line.
pub(super) fn shown(text: &str) -> String {
    const LONGEST: usize = 120;
    /// Limits the work on a text with many spaces.
    const LONGEST_INPUT: usize = 1_000;
    let seen = text
        .char_indices()
        .nth(LONGEST_INPUT)
        .map(|(at, _)| &text[..at]);
    let words = printable(seen.unwrap_or(text))
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    if seen.is_none() && words.chars().count() <= LONGEST {
        return words;
    }
    let cut: String = words.chars().take(LONGEST).collect();
    format!("{}…", cut.trim_end())
}

/// Returns a text member, if there is one.
pub(super) fn text<'v>(value: &'v Value, name: &str) -> Option<&'v str> {
    value.get(name)?.as_str()
}
