//! `login` of an upstream with a link: the call that opens each link. Used by `decode::link`.

use http::HeaderName;

use crate::config::key::{Key, Tree, key, section, tree};
use crate::config::kind::TEXT;
use crate::config::problem::Spanned;
use crate::config::raw::{RawFile, RawLogin, RawLoginPart, Secret};
use crate::config::table_reader::{Shape, Table};
use crate::config::value::ValueError;
use dualgauge_model::pending::{CallerCredential, ExpectedResult};
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::SourceTree;

section! {
    /// The login of a link.
    pub(super) LOGIN {
        /// Method of the call that opens each link
        METHOD: Key<String> = key("method", TEXT).required();
        /// Its params; texts may hold `{file:PATH}`, `{env:NAME}` and credentials of the caller; `[]` by default
        PARAMS: Tree = tree("params");
        /// Pattern of the result of a successful login; by default, any result other than `false`
        EXPECT: Tree = tree("expect");
    }
}

/// The placeholders of a text.
const PLACEHOLDERS: &str = "write `{file:PATH}`, `{env:NAME}`, `{authorization:bearer}`, `{authorization:user}`, \
     `{authorization:password}` or `{header:NAME}`; for a brace write `{{` or `}}`";

pub(super) fn login(table: &mut Table<'_>) -> Option<RawLogin> {
    let method = table.get(&METHOD);
    let place = table.here();
    let mut writer = ParamsWriter {
        parts: Vec::new(),
        place: Spanned {
            key: format!("{}.{}", place.key, PARAMS.name),
            ..place
        },
    };
    match table.tree(&PARAMS) {
        Some(params @ (SourceTree::List(_) | SourceTree::Table(_))) => {
            if let Err(wrong) = writer.value(&params) {
                table.report(PARAMS.name, wrong);
                return None;
            }
        }
        Some(SourceTree::Text(_) | SourceTree::Literal(_)) => {
            let wrong = "the params of a call are a list or a table";
            table.report(PARAMS.name, ValueError::new(wrong));
            return None;
        }
        None => writer.json("[]"),
    }
    let expect = match table.shape(EXPECT.name) {
        Shape::Absent => None,
        Shape::Table | Shape::Value => Some(expected(table)?),
    };
    Some(RawLogin {
        method: method?,
        params: writer.parts,
        expect,
    })
}

fn expected(table: &mut Table<'_>) -> Option<ExpectedResult> {
    let pattern = table.tree(&EXPECT)?;
    match ExpectedResult::new(&pattern) {
        Ok(expected) => Some(expected),
        Err(error) => {
            table.report_pattern(&EXPECT, error);
            None
        }
    }
}

/// A placeholder.
enum Placeholder<'t> {
    File(&'t str),
    Variable(&'t str),
    Caller(CallerCredential),
}

/// Writes params as the parts of a JSON text.
struct ParamsWriter {
    parts: Vec<RawLoginPart>,
    /// The location of the key.
    place: Spanned<()>,
}

impl ParamsWriter {
    fn json(&mut self, text: &str) {
        match self.parts.last_mut() {
            Some(RawLoginPart::Json(Secret(before))) => before.extend_from_slice(text.as_bytes()),
            _ => self
                .parts
                .push(RawLoginPart::Json(Secret(text.as_bytes().to_vec()))),
        }
    }

    fn value(&mut self, value: &SourceTree) -> Result<(), ValueError> {
        match value {
            SourceTree::Literal(json) => self.json(&String::from_utf8_lossy(json.as_bytes())),
            SourceTree::Text(text) => {
                self.json("\"");
                self.text(text)?;
                self.json("\"");
            }
            SourceTree::List(items) => {
                self.json("[");
                for (index, item) in items.iter().enumerate() {
                    self.json(if index > 0 { "," } else { "" });
                    self.value(item)?;
                }
                self.json("]");
            }
            SourceTree::Table(members) => {
                self.json("{");
                for (index, (name, member)) in members.iter().enumerate() {
                    self.json(if index > 0 { ",\"" } else { "\"" });
                    self.literal(name);
                    self.json("\":");
                    self.value(member)?;
                }
                self.json("}");
            }
        }
        Ok(())
    }

    /// Writes text within a JSON string.
    fn literal(&mut self, text: &str) {
        let quoted = Json::string(text).into_bytes();
        let inside = quoted.get(1..quoted.len() - 1).unwrap_or_default();
        self.json(&String::from_utf8_lossy(inside));
    }

    /// Writes text with placeholders within a JSON string. The text is never shown, since it may be a secret.
    fn text(&mut self, text: &str) -> Result<(), ValueError> {
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, from) = rest.split_at(at);
            self.literal(before);
            if let Some(after) = from.strip_prefix("{{") {
                self.literal("{");
                rest = after;
            } else if let Some(after) = from.strip_prefix("}}") {
                self.literal("}");
                rest = after;
            } else {
                let inside = from.strip_prefix('{').and_then(|from| from.split_once('}'));
                let Some((inside, after)) = inside else {
                    return Err(ValueError::new("a brace has no counterpart").hint(PLACEHOLDERS));
                };
                let found = placeholder(inside).ok_or_else(|| {
                    ValueError::new("a text has an unknown placeholder").hint(PLACEHOLDERS)
                })?;
                self.placeholder(found);
                rest = after;
            }
        }
        self.literal(rest);
        Ok(())
    }

    fn placeholder(&mut self, found: Placeholder<'_>) {
        let place = &self.place;
        self.parts.push(match found {
            Placeholder::File(path) => {
                RawLoginPart::File(RawFile::at(place.clone().map(|()| path.into())))
            }
            Placeholder::Variable(name) => {
                RawLoginPart::Variable(place.clone().map(|()| name.to_owned()))
            }
            Placeholder::Caller(credential) => {
                RawLoginPart::Caller(place.clone().map(|()| credential))
            }
        });
    }
}

fn placeholder(inside: &str) -> Option<Placeholder<'_>> {
    let (kind, name) = inside.split_once(':')?;
    match kind {
        _ if name.is_empty() => None,
        "file" => Some(Placeholder::File(name)),
        "env" => Some(Placeholder::Variable(name)),
        "authorization" => CallerCredential::in_authorization(name).map(Placeholder::Caller),
        "header" => {
            let name = HeaderName::from_bytes(name.to_ascii_lowercase().as_bytes()).ok()?;
            Some(Placeholder::Caller(CallerCredential::Header(name)))
        }
        _ => None,
    }
}
