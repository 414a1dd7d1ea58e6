//! Patterns as plain values: how they are spelled, and what they write.

use std::collections::BTreeMap;

use super::call::encoded;
use super::dice::Dice;
use super::json::Json;
use super::route::Side;

/// Where a hole stands at its narrowest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Json,
    Path,
    /// Several segments of a path.
    Deep,
    Query,
    Header,
    /// Between texts.
    Mixed,
}

#[derive(Debug, Clone)]
pub(crate) enum Shape {
    Any,
    Text,
    Integer,
    Number,
    Boolean,
    Object,
    Array,
    /// `p` or `r`
    Enum,
    /// A number that is a status of a failure.
    Status,
    /// A number that is a code of an error.
    Code,
    /// Any value, which stands as JSON in a text on one side at least.
    Encoded,
    Repeated(Box<Shape>),
    Separated(Box<Shape>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Absence {
    Required,
    Optional,
    /// `{x=v}`
    Default(Json),
    /// `{x?=v}`
    OmittedDefault(Json),
}

#[derive(Debug, Clone)]
pub(crate) struct Hole {
    pub(crate) name: String,
    pub(crate) shape: Shape,
    pub(crate) absence: Absence,
    /// What the RPC side says of it, where that is something else.
    pub(crate) rpc_absence: Option<Absence>,
    pub(crate) place: Place,
}

/// A pattern of one side; holes are known by their names.
#[derive(Debug, Clone)]
pub(crate) enum Pattern {
    Literal(Json),
    Hole(String),
    /// `{x:json}`
    Encoded(String),
    /// A text: literals, and holes between them.
    Mixed(Vec<Part>),
    Object(Vec<(String, Pattern)>, Option<String>),
    List(Vec<Pattern>, Option<String>),
    /// `["*", pattern]`; the elements are a group of bindings.
    Each(String, Box<Pattern>),
    /// `{_}` or `{_=v}`
    Forgotten(Option<Json>),
    /// `{>x}`
    Written(String),
    /// `{>x:json}`
    WrittenEncoded(String),
}

#[derive(Debug, Clone)]
pub(crate) enum Part {
    Text(String),
    Hole(String),
}

/// The values of holes; one that is absent is not there.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bindings {
    pub(crate) values: BTreeMap<String, Json>,
    pub(crate) groups: BTreeMap<String, Vec<Bindings>>,
    /// Whether JSON in texts has blanks around it.
    pub(crate) spaced: bool,
    /// Whether objects that would be empty are left out.
    pub(crate) bare: bool,
}

/// The holes of a pair, by name, and those of its groups.
#[derive(Debug, Clone, Default)]
pub(crate) struct Holes {
    pub(crate) all: BTreeMap<String, Hole>,
    pub(crate) groups: BTreeMap<String, Vec<Hole>>,
}

impl Holes {
    pub(crate) fn add(&mut self, hole: Hole) -> String {
        let name = hole.name.clone();
        self.all.insert(name.clone(), hole);
        name
    }

    pub(crate) fn find(&self, name: &str) -> &Hole {
        let mut grouped = self.groups.values().flatten();
        let hole = self.all.get(name);
        hole.or_else(|| grouped.find(|hole| hole.name == name))
            .unwrap_or_else(|| panic!("no hole {name}"))
    }

    /// Values for all of them, as a message of this side bears them.
    pub(crate) fn throw(&self, from: Side, dice: &mut Dice) -> Bindings {
        let mut bindings = thrown(self.all.values(), dice);
        for hole in self.all.values().filter(|_| from == Side::Rpc) {
            hole.throw_nothing(&mut bindings, dice);
        }
        for (group, holes) in &self.groups {
            let elements = 0..dice.below(4);
            let elements = elements.map(|_| thrown(holes.iter(), dice)).collect();
            bindings.groups.insert(group.clone(), elements);
        }
        bindings.spaced = dice.once_in(3);
        bindings.bare = dice.once_in(3);
        bindings
    }

    /// What is bound where this side sent this: defaults stand for what is absent.
    pub(crate) fn read(&self, from: Side, sent: &Bindings) -> Bindings {
        let mut read = filled((self.all.values(), from), sent);
        for (group, elements) in &sent.groups {
            let holes = &self.groups[group];
            let elements = elements
                .iter()
                .map(|sent| filled((holes.iter(), from), sent));
            read.groups.insert(group.clone(), elements.collect());
        }
        read
    }

    /// What is written on this side of what is bound: a default that is implied is left out.
    pub(crate) fn written(&self, on: Side, read: &Bindings) -> Bindings {
        let mut written = left_out((self.all.values(), on), read);
        written.spaced = false;
        written.bare = false;
        for (group, elements) in &read.groups {
            let holes = &self.groups[group];
            let elements = elements
                .iter()
                .map(|read| left_out((holes.iter(), on), read));
            written.groups.insert(group.clone(), elements.collect());
        }
        written
    }
}

impl Hole {
    pub(crate) fn absence_on(&self, side: Side) -> &Absence {
        let own = self.rpc_absence.as_ref().filter(|_| side == Side::Rpc);
        own.unwrap_or(&self.absence)
    }

    /// Whether it stands in a URL or a header, where there is no `null`; one that is JSON there may be `null`.
    fn is_text(&self) -> bool {
        !matches!(self.place, Place::Json | Place::Mixed) && !matches!(self.shape, Shape::Encoded)
    }

    /// What JSON alone can say of something that is not there.
    fn throw_nothing(&self, bindings: &mut Bindings, dice: &mut Dice) {
        let is_list = matches!(self.shape, Shape::Repeated(_) | Shape::Separated(_));
        let value = match (is_list, self.absence != Absence::Required && self.is_text()) {
            (_, false) => return,
            (true, true) => dice.pick(&[Json::Null, Json::List(Vec::new())]),
            (false, true) => Json::Null,
        };
        if dice.once_in(4) {
            bindings.values.insert(self.name.clone(), value);
        }
    }
}

impl Bindings {
    /// The values as they stand in a URL.
    pub(crate) fn encoded(&self) -> Bindings {
        let values = self.values.iter();
        let values =
            values.map(|(name, value)| (name.clone(), Json::Text(encoded(&value.plain()))));
        Bindings {
            values: values.collect(),
            ..Bindings::default()
        }
    }
}

fn thrown<'h>(holes: impl Iterator<Item = &'h Hole>, dice: &mut Dice) -> Bindings {
    let mut bindings = Bindings::default();
    for hole in holes {
        if let Some(value) = dice.value(hole) {
            bindings.values.insert(hole.name.clone(), value);
        }
    }
    bindings
}

fn filled<'h>((holes, from): (impl Iterator<Item = &'h Hole>, Side), sent: &Bindings) -> Bindings {
    let mut read = sent.clone();
    for hole in holes {
        let nothing = read.values.get(&hole.name) == Some(&Json::Null);
        if nothing && hole.is_text() {
            read.values.remove(&hole.name);
        }
        if let Absence::Default(value) | Absence::OmittedDefault(value) = hole.absence_on(from) {
            let missing = || value.clone();
            read.values.entry(hole.name.clone()).or_insert_with(missing);
        }
    }
    read
}

fn left_out<'h>((holes, on): (impl Iterator<Item = &'h Hole>, Side), read: &Bindings) -> Bindings {
    let mut written = read.clone();
    for hole in holes {
        let value = written.values.get(&hole.name);
        let implied = matches!(hole.absence_on(on), Absence::OmittedDefault(default) if value == Some(default));
        // An empty list has no text.
        let no_text = on == Side::Rest && hole.is_text() && value == Some(&Json::List(Vec::new()));
        if implied || no_text {
            written.values.remove(&hole.name);
        }
    }
    written
}

impl Pattern {
    /// What stands there, if anything does.
    pub(crate) fn write(&self, bindings: &Bindings) -> Option<Json> {
        let value = |name: &String| bindings.values.get(name).cloned();
        match self {
            Pattern::Literal(json) => Some(json.clone()),
            Pattern::Hole(name) | Pattern::Written(name) => value(name),
            Pattern::Encoded(name) | Pattern::WrittenEncoded(name) => {
                let blank = if bindings.spaced { " " } else { "" };
                value(name).map(|value| Json::Text(format!("{blank}{value}{blank}")))
            }
            Pattern::Mixed(parts) => Some(Json::Text(mixed(parts, bindings))),
            Pattern::Object(members, rest) => {
                let others = rest.as_ref().and_then(value);
                let mut object = match others {
                    Some(Json::Object(others)) => others,
                    _ => BTreeMap::new(),
                };
                for (name, pattern) in members {
                    let value = pattern.write(bindings);
                    let empty = value == Some(Json::object([]));
                    let left_out = bindings.bare && empty && matches!(pattern, Pattern::Object(..));
                    object.extend(
                        value
                            .filter(|_| !left_out)
                            .map(|value| (name.clone(), value)),
                    );
                }
                Some(Json::Object(object))
            }
            Pattern::List(first, rest) => {
                let mut list: Vec<Json> = first
                    .iter()
                    .filter_map(|pattern| pattern.write(bindings))
                    .collect();
                if let Some(Json::List(others)) = rest.as_ref().and_then(value) {
                    list.extend(others);
                }
                Some(Json::List(list))
            }
            Pattern::Each(group, element) => {
                let elements = bindings.groups.get(group).into_iter().flatten();
                let written = elements.filter_map(|bindings| element.write(bindings));
                Some(Json::List(written.collect()))
            }
            Pattern::Forgotten(value) => value.clone(),
        }
    }

    /// Whether all of it may be absent.
    pub(crate) fn may_be_empty(&self, holes: &Holes) -> bool {
        match self {
            Pattern::Hole(name) | Pattern::Encoded(name) => {
                holes.find(name).absence != Absence::Required
            }
            Pattern::Object(members, _) => {
                members.iter().all(|(_, member)| member.may_be_empty(holes))
            }
            Pattern::Forgotten(_) | Pattern::Written(_) | Pattern::WrittenEncoded(_) => true,
            Pattern::Literal(_) | Pattern::Mixed(_) | Pattern::List(..) | Pattern::Each(..) => {
                false
            }
        }
    }
}

pub(crate) fn mixed(parts: &[Part], bindings: &Bindings) -> String {
    let text = |part: &Part| match part {
        Part::Text(text) => text.clone(),
        Part::Hole(name) => bindings.values[name].plain(),
    };
    parts.iter().map(text).collect()
}

/// Spells patterns as a route table does: what a hole is, is said where it comes first.
pub(crate) struct Speller<'h> {
    holes: &'h Holes,
    said: BTreeMap<String, usize>,
}

/// The same text in a string of TOML.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

impl<'h> Speller<'h> {
    pub(crate) fn of(holes: &'h Holes) -> Speller<'h> {
        Speller {
            holes,
            said: BTreeMap::new(),
        }
    }

    /// `{x:integer=5}` for the first time, then `{x}`.
    pub(crate) fn hole(&mut self, name: &str) -> String {
        let said = self.said.entry(name.to_owned()).or_default();
        *said += 1;
        let hole = self.holes.find(name);
        match (*said, &hole.rpc_absence) {
            (1, _) => format!("{{{name}{}{}}}", kind(&hole.shape), absence(&hole.absence)),
            (_, Some(own)) => format!("{{{name}{}}}", absence(own)),
            (_, None) => format!("{{{name}}}"),
        }
    }

    pub(crate) fn parts(&mut self, parts: &[Part]) -> String {
        let spelled = parts.iter().map(|part| match part {
            Part::Text(text) => braces(text),
            Part::Hole(name) => self.hole(name),
        });
        spelled.collect()
    }

    /// A value of TOML.
    pub(crate) fn value(&mut self, pattern: &Pattern) -> String {
        match pattern {
            Pattern::Literal(json) => literal(json),
            Pattern::Hole(name) => quoted(&self.hole(name)),
            Pattern::Encoded(name) => quoted(&format!("{{{name}:json}}")),
            Pattern::Mixed(parts) => quoted(&self.parts(parts)),
            Pattern::Object(members, rest) => {
                let member = |(name, value): &(String, Pattern)| {
                    format!("{} = {}", quoted(name), self.value(value))
                };
                let mut spelled: Vec<String> = members.iter().map(member).collect();
                if let Some(rest) = rest {
                    spelled.push(format!("\"...\" = {}", quoted(&format!("{{{rest}}}"))));
                }
                format!("{{ {} }}", spelled.join(", "))
            }
            Pattern::List(first, rest) => {
                let mut spelled: Vec<String> =
                    first.iter().map(|value| self.value(value)).collect();
                spelled.extend(rest.iter().map(|rest| quoted(&format!("{{{rest}...}}"))));
                format!("[{}]", spelled.join(", "))
            }
            Pattern::Each(_, element) => format!("[\"*\", {}]", self.value(element)),
            Pattern::Forgotten(None) => quoted("{_}"),
            Pattern::Forgotten(Some(value)) => quoted(&format!("{{_={}}}", value.plain())),
            Pattern::Written(name) => quoted(&format!("{{>{name}}}")),
            Pattern::WrittenEncoded(name) => quoted(&format!("{{>{name}:json}}")),
        }
    }
}

fn absence(absence: &Absence) -> String {
    match absence {
        Absence::Required => String::new(),
        Absence::Optional => "?".to_owned(),
        Absence::Default(value) => format!("={}", value.plain()),
        Absence::OmittedDefault(value) => format!("?={}", value.plain()),
    }
}

fn kind(shape: &Shape) -> String {
    match shape {
        Shape::Any | Shape::Encoded => String::new(),
        Shape::Text => ":string".to_owned(),
        Shape::Integer | Shape::Status | Shape::Code => ":integer".to_owned(),
        Shape::Number => ":number".to_owned(),
        Shape::Boolean => ":boolean".to_owned(),
        Shape::Object => ":object".to_owned(),
        Shape::Array => ":array".to_owned(),
        Shape::Enum => ":enum(p|r)".to_owned(),
        Shape::Repeated(element) => format!("{}[]", kind(element)),
        Shape::Separated(element) => format!("{}[,]", kind(element)),
    }
}

/// A text whose braces are braces.
pub(crate) fn braces(text: &str) -> String {
    text.replace('{', "{{").replace('}', "}}")
}

fn literal(json: &Json) -> String {
    match json {
        Json::Null => quoted("{_:null}"),
        Json::Boolean(_) | Json::Number(_) => json.to_string(),
        Json::Text(text) => quoted(&braces(text)),
        Json::List(elements) => {
            let elements: Vec<String> = elements.iter().map(literal).collect();
            format!("[{}]", elements.join(", "))
        }
        Json::Object(members) => {
            let member =
                |(name, value): (&String, &Json)| format!("{} = {}", quoted(name), literal(value));
            let members: Vec<String> = members.iter().map(member).collect();
            format!("{{ {} }}", members.join(", "))
        }
    }
}
