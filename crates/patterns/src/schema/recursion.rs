//! Detection of schemas that recur without descending into the value, which would make a validator run forever.
//!
//! JSON Schema forbids them (2020-12 Core, section 9.4.1). The number of subschemas that apply to one location of a
//! value is limited for the same reason: their cost does not depend on the bytes that they read.
//!
//! Used by `schema`.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::percent::{Plus, decode};

/// Maximum number of subschemas that apply to one location.
const MOST_IN_PLACE: usize = 100_000;
/// Maximum chain of subschemas that apply to one location.
const DEEPEST: usize = 200;

/// Keywords with one subschema for the same location.
const ONE: [&str; 4] = ["not", "if", "then", "else"];
/// Keywords with a list of subschemas for the same location.
const LIST: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// Keywords with an object of subschemas for the same location.
const NAMED: [&str; 2] = ["dependentSchemas", "dependencies"];

/// Keywords with an object of subschemas, whose names are not keywords.
const NAMES: [&str; 6] = [
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
    "dependencies",
];
/// Keywords with values that are not subschemas, unless a reference points to them.
const DATA: [&str; 4] = ["enum", "const", "default", "examples"];

/// Rejects a schema that recurs without descending into the value.
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

/// The kind of an object's members.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MemberKind {
    /// Members of a subschema: keywords.
    Keywords,
    /// Subschemas under arbitrary names.
    Names,
    /// Members of a value that is not a subschema.
    Data,
}

impl MemberKind {
    /// Returns the kind of members of a member's value.
    fn below(self, name: &str) -> MemberKind {
        match self {
            MemberKind::Keywords if DATA.contains(&name) => MemberKind::Data,
            MemberKind::Keywords if NAMES.contains(&name) => MemberKind::Names,
            MemberKind::Keywords | MemberKind::Names => MemberKind::Keywords,
            MemberKind::Data => MemberKind::Data,
        }
    }
}

/// An object of the document, with its JSON pointer and the root of its resource.
#[derive(Clone)]
struct SchemaLocation<'s> {
    object: &'s Map<String, Value>,
    pointer: String,
    resource: &'s Value,
}

struct SchemaDocument<'s> {
    objects: Vec<Id>,
    locations: HashMap<Id, SchemaLocation<'s>>,
    /// Targets of `#name`.
    anchors: HashMap<&'s str, Vec<Id>>,
    /// Targets of `$id`.
    resources: HashMap<&'s str, &'s Value>,
    root: &'s Value,
    /// True before 2019-09, when siblings of a `$ref` are ignored.
    ref_stands_alone: bool,
}

impl<'s> SchemaDocument<'s> {
    fn new(root: &'s Value) -> SchemaDocument<'s> {
        let draft = root.get("$schema").and_then(Value::as_str);
        let mut document = SchemaDocument {
            objects: Vec::new(),
            locations: HashMap::new(),
            anchors: HashMap::new(),
            resources: HashMap::new(),
            root,
            ref_stands_alone: draft.is_some_and(|draft| draft.contains("draft-0")),
        };
        document.visit(root, MemberKind::Keywords, String::new(), root);
        document
    }

    /// Records an object that may be a subschema, and its names. Returns the root of its resource.
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
        value: &'s Value,
        members: MemberKind,
        pointer: String,
        resource: &'s Value,
    ) {
        match value {
            Value::Object(object) => {
                let resource = match members {
                    MemberKind::Data => resource,
                    MemberKind::Keywords | MemberKind::Names => self.start(value, object, resource),
                };
                let location = SchemaLocation {
                    object,
                    pointer: pointer.clone(),
                    resource,
                };
                self.locations.insert(id(object), location);
                for (name, inner) in object {
                    let step = name.replace('~', "~0").replace('/', "~1");
                    let pointer = format!("{pointer}/{step}");
                    self.visit(inner, members.below(name), pointer, resource);
                }
            }
            Value::Array(items) => {
                for (index, inner) in items.iter().enumerate() {
                    self.visit(inner, members, format!("{pointer}/{index}"), resource);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Returns the subschemas that apply to the same location as this one.
    fn in_place(&self, location: &SchemaLocation<'s>) -> Vec<Id> {
        let object = location.object;
        let mut found = Vec::new();
        if let Some(target) = object.get("$ref").and_then(Value::as_str) {
            found.extend(self.targets(target, location.resource));
            if self.ref_stands_alone {
                return found;
            }
        }
        if let Some(target) = object.get("$dynamicRef").and_then(Value::as_str) {
            found.extend(self.targets(target, location.resource));
        }
        if object.get("$recursiveRef").is_some() {
            found.extend(location.resource.as_object().map(id));
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

    /// Returns the possible targets of a reference. A reference that is not understood has none: the validator rejects
    /// it, or its own guard ends it.
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
        // A value of the schema may have been mistaken for an `$id`.
        let elsewhere = || self.root.pointer(&fragment);
        let target = base.pointer(&fragment).or_else(elsewhere);
        let target = target.and_then(Value::as_object);
        target.map(id).into_iter().collect()
    }
}

struct RecursionSearch<'s> {
    document: SchemaDocument<'s>,
    /// The number of subschemas that apply at a location together with this one.
    known: HashMap<Id, usize>,
    chain: Vec<Id>,
}

impl RecursionSearch<'_> {
    fn count(&mut self, subschema: Id) -> Result<usize, String> {
        if let Some(known) = self.known.get(&subschema) {
            return Ok(*known);
        }
        let Some(location) = self.document.locations.get(&subschema) else {
            return Ok(1);
        };
        let pointer = &location.pointer;
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
        let inner = self.document.in_place(location);
        self.chain.push(subschema);
        let mut sum: usize = 1;
        for inner in inner {
            sum = sum.saturating_add(self.count(inner)?);
        }
        self.chain.pop();
        if sum > MOST_IN_PLACE {
            let pointer = self.document.locations.get(&subschema);
            let pointer = pointer.map_or("", |location| &location.pointer);
            return Err(format!(
                "the schema at `#{pointer}` applies more than {MOST_IN_PLACE} subschemas to one value"
            ));
        }
        self.known.insert(subschema, sum);
        Ok(sum)
    }
}
