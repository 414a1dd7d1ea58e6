//! References inside a document, followed within bounds.
//!
//! A document is what one file or one answer says: a reference that leaves it would let it name files and
//! servers of its reader, so it is refused before anything else is looked at.

use std::cell::Cell;

use serde_json::Value;

use crate::domain::percent::{self, Plus};

/// References to references, at most.
const LONGEST_CHAIN: usize = 32;
/// Nesting of a document, at most.
const DEEPEST: usize = 200;
/// Schemas that are looked at, at most; `allOf` of `allOf` multiplies.
const MOST_STEPS: usize = 500_000;
/// Members whose value is an example or a text, whatever it looks like.
const OPAQUE: &[&str] = &["example", "examples", "default", "enum", "const"];

/// What is wrong with a document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It is something else than was asked for.
    #[error("{0}")]
    Kind(String),
    /// A reference that leaves the document.
    #[error(
        "{place}: `$ref: {reference}` leaves the document; only references that begin with `#/` are followed, bundle the documents into one first"
    )]
    Remote {
        /// Where, as a JSON pointer.
        place: String,
        /// The reference.
        reference: String,
    },
    /// A reference that leads nowhere.
    #[error("`$ref: {0}` names nothing in the document")]
    Dangling(String),
    /// A reference that leads back to itself.
    #[error("`$ref: {0}` leads to itself, or through more than {LONGEST_CHAIN} references")]
    Cycle(String),
    /// Nesting beyond any use.
    #[error("nested more than {DEEPEST} deep at {0}")]
    TooDeep(String),
    /// A schema made of schemas made of schemas.
    #[error("`allOf` inside `allOf` leads to itself, or is nested more than {0} deep")]
    AllOf(usize),
    /// Schemas that multiply.
    #[error(
        "schemas that lead to more than {MOST_STEPS} others; `allOf` inside `allOf` multiplies"
    )]
    TooMany,
}

/// A document whose references may be followed.
#[derive(Debug)]
pub(super) struct Refs<'v> {
    root: &'v Value,
    steps: Cell<usize>,
}

impl<'v> Refs<'v> {
    /// Refuses a document that refers to something outside of it.
    pub(super) fn of(root: &'v Value) -> Result<Refs<'v>, Fault> {
        scan(root, &mut Vec::new())?;
        Ok(Refs {
            root,
            steps: Cell::new(0),
        })
    }

    /// The value itself, or what it refers to.
    pub(super) fn follow(&self, value: &'v Value) -> Result<&'v Value, Fault> {
        self.step()?;
        let mut value = value;
        for _ in 0..LONGEST_CHAIN {
            let Some(reference) = reference(value) else {
                return Ok(value);
            };
            value = self.named(reference)?;
        }
        let reference = reference(value).unwrap_or_default();
        Err(Fault::Cycle(shown(reference)))
    }

    fn named(&self, reference: &str) -> Result<&'v Value, Fault> {
        let dangling = || Fault::Dangling(shown(reference));
        let pointer = reference.strip_prefix('#').ok_or_else(dangling)?;
        let pointer = percent::decode(pointer, Plus::Literal).map_err(|_| dangling())?;
        self.root.pointer(&pointer).ok_or_else(dangling)
    }

    /// Counts one more schema.
    pub(super) fn step(&self) -> Result<(), Fault> {
        let steps = self.steps.get() + 1;
        self.steps.set(steps);
        if steps > MOST_STEPS {
            Err(Fault::TooMany)
        } else {
            Ok(())
        }
    }
}

fn reference(value: &Value) -> Option<&str> {
    value.get("$ref")?.as_str()
}

fn scan<'v>(value: &'v Value, path: &mut Vec<&'v str>) -> Result<(), Fault> {
    if path.len() > DEEPEST {
        return Err(Fault::TooDeep(place(&path[..8])));
    }
    match value {
        Value::Object(members) => {
            if let Some(reference) = reference(value)
                && !reference.starts_with('#')
            {
                return Err(Fault::Remote {
                    place: place(path),
                    reference: shown(reference),
                });
            }
            // Under `properties` a name is a name: a property may well be called `example`.
            let named = path.last() == Some(&"properties");
            for (name, value) in members {
                if named || !OPAQUE.contains(&name.as_str()) {
                    path.push(name);
                    scan(value, path)?;
                    path.pop();
                }
            }
        }
        Value::Array(elements) => {
            for element in elements {
                path.push("*");
                scan(element, path)?;
                path.pop();
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    Ok(())
}

fn place(path: &[&str]) -> String {
    let names = path
        .iter()
        .map(|name| name.replace('~', "~0").replace('/', "~1"));
    format!("#/{}", names.collect::<Vec<_>>().join("/"))
}

/// A text of the document, short and on one line.
pub(super) fn shown(text: &str) -> String {
    const LONGEST: usize = 120;
    let tidy: String = text
        .chars()
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .collect();
    let words = tidy.split_whitespace().collect::<Vec<_>>().join(" ");
    if words.chars().count() <= LONGEST {
        return words;
    }
    let cut: String = words.chars().take(LONGEST).collect();
    format!("{}…", cut.trim_end())
}
