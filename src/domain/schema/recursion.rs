//! Schemas that recur without going down into the value, which a validator can follow for ever.
//!
//! JSON Schema forbids them (2020-12 Core, section 9.4.1). The number of subschemas that apply to one and the same
//! place of a value is bounded for the same reason: their work cannot be counted by what they read.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::domain::percent::{Plus, decode};

/// Subschemas that may apply to one place of a value.
const MOST_IN_PLACE: usize = 100_000;
/// The longest chain of subschemas that apply to one place of a value.
const DEEPEST: usize = 200;

/// Keywords with one subschema that applies to the same place.
const ONE: [&str; 4] = ["not", "if", "then", "else"];
/// Keywords with a list of them.
const LIST: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// Keywords with an object of them.
const NAMED: [&str; 2] = ["dependentSchemas", "dependencies"];

/// Keywords with an object of subschemas, whose names are no keywords.
const NAMES: [&str; 6] = [
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
    "dependencies",
];
/// Keywords with values that are no subschemas, unless a reference leads there.
const DATA: [&str; 4] = ["enum", "const", "default", "examples"];

/// Refuses a schema that recurs without going down into the value.
///
/// # Errors
/// The problem, for the author of the schema.
pub(super) fn refuse(schema: &Value) -> Result<(), String> {
    let mut search = RecursionSearch {
        document: SchemaDocument::new(schema),
        known: HashMap::new(),
        chain: Vec::new(),
    };
    let starts = search.document.objects.clone();
    for start in starts {
        search.count(start)?;
    }
    Ok(())
}

/// A subschema, by its address within the document.
type Id = usize;

fn id(object: &Map<String, Value>) -> Id {
    std::ptr::from_ref(object) as usize
}

/// Whose members an object has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MemberKind {
    /// Those of a subschema, which are keywords.
    Keywords,
    /// Subschemas under names of their own.
    Names,
    /// Those of a value that is no subschema.
    Data,
}

impl MemberKind {
    /// What a member of an object with such members has.
    fn below(self, name: &str) -> MemberKind {
        match self {
            MemberKind::Keywords if DATA.contains(&name) => MemberKind::Data,
            MemberKind::Keywords if NAMES.contains(&name) => MemberKind::Names,
            MemberKind::Keywords | MemberKind::Names => MemberKind::Keywords,
            MemberKind::Data => MemberKind::Data,
        }
    }
}

/// An object of the document, its JSON pointer, and the root of the resource that it is in.
#[derive(Clone)]
struct SchemaPlace<'s> {
    object: &'s Map<String, Value>,
    pointer: String,
    resource: &'s Value,
}

struct SchemaDocument<'s> {
    objects: Vec<Id>,
    places: HashMap<Id, SchemaPlace<'s>>,
    /// Targets of `#name`.
    anchors: HashMap<&'s str, Vec<Id>>,
    /// Targets of `$id`.
    resources: HashMap<&'s str, &'s Value>,
    root: &'s Value,
    /// Before 2019-09 a `$ref` makes its siblings mean nothing.
    ref_stands_alone: bool,
}

impl<'s> SchemaDocument<'s> {
    fn new(root: &'s Value) -> SchemaDocument<'s> {
        let draft = root.get("$schema").and_then(Value::as_str);
        let mut document = SchemaDocument {
            objects: Vec::new(),
            places: HashMap::new(),
            anchors: HashMap::new(),
            resources: HashMap::new(),
            root,
            ref_stands_alone: draft.is_some_and(|draft| draft.contains("draft-0")),
        };
        document.visit((root, MemberKind::Keywords), String::new(), root);
        document
    }

    /// Notes an object that may be a subschema, and its names. Returns the root of the resource that it is in.
    fn start(
        &mut self,
        value: &'s Value,
        object: &'s Map<String, Value>,
        mut resource: &'s Value,
    ) -> &'s Value {
        let name = object.get("$id").or(object.get("id"));
        if let Some(name) = name.and_then(Value::as_str) {
            match name.strip_prefix('#') {
                Some(anchor) => self.anchors.entry(anchor).or_default().push(id(object)),
                None => {
                    resource = value;
                    self.resources.insert(name.trim_end_matches('#'), value);
                }
            }
        }
        for keyword in ["$anchor", "$dynamicAnchor"] {
            if let Some(anchor) = object.get(keyword).and_then(Value::as_str) {
                self.anchors.entry(anchor).or_default().push(id(object));
            }
        }
        self.objects.push(id(object));
        resource
    }

    fn visit(
        &mut self,
        (value, members): (&'s Value, MemberKind),
        pointer: String,
        resource: &'s Value,
    ) {
        match value {
            Value::Object(object) => {
                let resource = match members {
                    MemberKind::Data => resource,
                    MemberKind::Keywords | MemberKind::Names => self.start(value, object, resource),
                };
                let place = SchemaPlace {
                    object,
                    pointer: pointer.clone(),
                    resource,
                };
                self.places.insert(id(object), place);
                for (name, inner) in object {
                    let step = name.replace('~', "~0").replace('/', "~1");
                    let inner = (inner, members.below(name));
                    self.visit(inner, format!("{pointer}/{step}"), resource);
                }
            }
            Value::Array(items) => {
                for (index, inner) in items.iter().enumerate() {
                    self.visit((inner, members), format!("{pointer}/{index}"), resource);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// The subschemas that apply to the same place of a value as this one.
    fn in_place(&self, place: &SchemaPlace<'s>) -> Vec<Id> {
        let object = place.object;
        let mut found = Vec::new();
        if let Some(target) = object.get("$ref").and_then(Value::as_str) {
            found.extend(self.targets(target, place.resource));
            if self.ref_stands_alone {
                return found;
            }
        }
        if let Some(target) = object.get("$dynamicRef").and_then(Value::as_str) {
            found.extend(self.targets(target, place.resource));
        }
        if object.get("$recursiveRef").is_some() {
            found.extend(place.resource.as_object().map(id));
        }
        let single = ONE.iter().filter_map(|name| object.get(*name)?.as_object());
        found.extend(single.map(id));
        for list in LIST.iter().filter_map(|name| object.get(*name)?.as_array()) {
            found.extend(list.iter().filter_map(Value::as_object).map(id));
        }
        let named = NAMED
            .iter()
            .filter_map(|name| object.get(*name)?.as_object());
        for named in named {
            found.extend(named.values().filter_map(Value::as_object).map(id));
        }
        found
    }

    /// Where a reference may lead. A reference that is not understood leads nowhere: the validator refuses it, or
    /// its own guard ends it.
    fn targets(&self, reference: &str, resource: &'s Value) -> Vec<Id> {
        let (name, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let base = match name {
            "" => Some(resource),
            name => self.resources.get(name).copied().or_else(|| {
                let mut all = self.resources.iter();
                let end = name.rsplit('/').next().unwrap_or(name);
                let found = all.find(|(other, _)| other.rsplit('/').next() == Some(end));
                found.map(|(_, resource)| *resource)
            }),
        };
        let Ok(fragment) = decode(fragment, Plus::Literal) else {
            return Vec::new();
        };
        if !fragment.is_empty() && !fragment.starts_with('/') {
            return self.anchors.get(&*fragment).cloned().unwrap_or_default();
        }
        let Some(base) = base else {
            return Vec::new();
        };
        // A value of the schema may have been taken for an `$id`.
        let elsewhere = || self.root.pointer(&fragment);
        let target = base.pointer(&fragment).or_else(elsewhere);
        let target = target.and_then(Value::as_object);
        target.map(id).into_iter().collect()
    }
}

struct RecursionSearch<'s> {
    document: SchemaDocument<'s>,
    /// How many subschemas apply at one place where this one does.
    known: HashMap<Id, usize>,
    chain: Vec<Id>,
}

impl RecursionSearch<'_> {
    fn count(&mut self, subschema: Id) -> Result<usize, String> {
        if let Some(known) = self.known.get(&subschema) {
            return Ok(*known);
        }
        let Some(place) = self.document.places.get(&subschema) else {
            return Ok(1);
        };
        let pointer = &place.pointer;
        if self.chain.contains(&subschema) {
            return Err(format!(
                "the schema at `#{pointer}` refers to itself without going down into the value, so no value has an \
                 end to its check; put the reference into `properties` or `items`"
            ));
        }
        if self.chain.len() >= DEEPEST {
            return Err(format!(
                "more than {DEEPEST} references and combinations follow each other before `#{pointer}` without \
                 going down into the value"
            ));
        }
        let inner = self.document.in_place(place);
        self.chain.push(subschema);
        let mut sum: usize = 1;
        for inner in inner {
            sum = sum.saturating_add(self.count(inner)?);
        }
        self.chain.pop();
        if sum > MOST_IN_PLACE {
            let pointer = self.document.places.get(&subschema);
            let pointer = pointer.map_or("", |place| &place.pointer);
            return Err(format!(
                "the schema at `#{pointer}` applies more than {MOST_IN_PLACE} subschemas to one value"
            ));
        }
        self.known.insert(subschema, sum);
        Ok(sum)
    }
}
