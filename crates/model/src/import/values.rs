//! The values of one call, with the location of each on either side. Used by `import::bind` and `import::route`.

use std::collections::{BTreeMap, BTreeSet};

use super::hole::{self, Absence};
use super::matching::is_abbreviation;
use super::model::{CallModel, List, RestOperation, RpcOperation};
use super::refs::shown;
use super::schema::{NamedValue, Type};

/// The location of a value in a REST call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RestLocation {
    Path(String),
    Query(String),
    Header(String),
    Member(String),
    /// The whole body.
    Body,
}

/// The location of a value in an RPC call.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RpcLocation {
    Named(String),
    Position(usize),
    /// A member of this name in an object.
    Inside(Box<RpcLocation>, String),
    /// Not present: the value is the same as another one, which is.
    Twin,
    /// Not present: the value equals another one, which is.
    Equal,
}

/// One value of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BoundParameter {
    pub(super) hole: String,
    pub(super) kind: Type,
    pub(super) list: Option<List>,
    pub(super) absence: Absence,
    pub(super) rest: RestLocation,
    pub(super) rpc: RpcLocation,
}

impl BoundParameter {
    /// Returns the hole with its type, for its first mention.
    pub(super) fn declared(&self) -> String {
        match self.rpc {
            RpcLocation::Twin => self.named(),
            RpcLocation::Equal => {
                let name = format!("={}", self.hole);
                hole::spell(&name, &self.kind, None, &self.absence)
            }
            RpcLocation::Named(_) | RpcLocation::Position(_) | RpcLocation::Inside(..) => {
                hole::spell(&self.hole, &self.kind, self.list, &self.absence)
            }
        }
    }

    /// Returns true when the value is in the body or is the body.
    pub(super) fn is_in_body(&self) -> bool {
        matches!(self.rest, RestLocation::Member(_) | RestLocation::Body)
    }

    /// Returns true when it is a single value of the path, the query or a header.
    pub(super) fn is_in_head(&self) -> bool {
        !self.is_in_body() && self.list.is_none()
    }

    /// Returns the hole by its name alone.
    pub(super) fn named(&self) -> String {
        format!("{{{}}}", self.hole)
    }
}

pub(super) fn note_other_name(rest: &str, rpc: &str, found: &mut Bindings) {
    if is_abbreviation(rest, rpc) {
        let (rest, rpc) = (shown(rest), shown(rpc));
        let note =
            format!("guess: `{rest}` is `{rpc}`: no other name is left, and one begins the other");
        found.notes.push(note);
    }
}

pub(super) fn note_unfilled(rest: &NamedValue, rpc: &NamedValue, found: &mut Bindings) {
    if rest.is_required && !rpc.is_required {
        let name = shown(&rest.name);
        let why = format!("`{name}` is required for REST and optional for RPC");
        found.unfilled.get_or_insert(why);
    }
}

pub(super) fn note_type_conflict(name: &str, found: &mut Bindings) {
    found.note(format!("the types of `{}` differ", shown(name)));
}

/// Returns the type of a member that equals a value of the head, if the two have different spellings in JSON.
pub(super) fn equal_type(head: &Type, member: &Type) -> Option<Type> {
    let text = |kind: &Type| matches!(kind, Type::Any | Type::String | Type::Enum(_));
    match member {
        Type::Any => Some(Type::Any),
        Type::Object | Type::Array => None,
        _ if head == member || (text(head) && text(member)) => None,
        Type::String | Type::Integer | Type::Number | Type::Boolean | Type::Enum(_) => {
            Some(member.clone())
        }
    }
}

/// All values of a call.
#[derive(Debug, Default)]
pub(super) struct Bindings {
    pub(super) bounds: Vec<BoundParameter>,
    /// The hole names in use.
    pub(super) names: hole::HoleNames,
    /// The first value of each named param.
    pub(super) params: BTreeMap<String, usize>,
    /// Records whether unnamed members are passed on.
    pub(super) has_others: bool,
    /// Query names without a counterpart on the other side.
    pub(super) unread: Vec<String>,
    pub(super) notes: Vec<String>,
    /// The reason why an RPC call may have no value for a required part of the REST call.
    pub(super) unfilled: Option<String>,
}

impl Bindings {
    /// Adds a value.
    pub(super) fn push(&mut self, bound: BoundParameter) {
        if let RpcLocation::Named(name) = &bound.rpc {
            let at = self.bounds.len();
            self.params.entry(name.clone()).or_insert(at);
        }
        self.bounds.push(bound);
    }

    /// Returns the reason why no pattern can have these params: two of them have the same name, apart from letter case.
    pub(super) fn same_names(&self) -> Option<String> {
        let mut names: BTreeSet<(String, String)> = BTreeSet::new();
        let same = self.bounds.iter().find_map(|bound| {
            let (object, name) = match &bound.rpc {
                RpcLocation::Named(name) => (String::new(), name),
                RpcLocation::Inside(object, name) => (format!("{object:?}"), name),
                RpcLocation::Position(_) | RpcLocation::Twin | RpcLocation::Equal => return None,
            };
            let is_new = names.insert((object.to_lowercase(), name.to_lowercase()));
            (!is_new).then_some(name)
        });
        let name = shown(same?);
        Some(format!(
            "two of its arguments are called `{name}`, apart from letter case"
        ))
    }

    /// Returns the value of the param of this name.
    pub(super) fn for_param(&self, name: &str) -> Option<&BoundParameter> {
        self.bounds.get(*self.params.get(name)?)
    }

    /// Reserves a hole name for any name.
    pub(super) fn unique(&mut self, wire: &str) -> String {
        self.names.unique(wire)
    }

    /// Returns a free hole name for any name, without reserving it.
    pub(super) fn free(&self, wire: &str) -> String {
        self.names.clone().unique(wire)
    }

    /// Returns true when the short form of a route expresses all values.
    pub(super) fn is_short(&self, rest: &RestOperation, call: CallModel) -> bool {
        let plain = |bound: &BoundParameter| match (&bound.rest, &bound.rpc) {
            (
                RestLocation::Path(_) | RestLocation::Query(_) | RestLocation::Header(_),
                RpcLocation::Named(name),
            ) => *name == bound.hole,
            (RestLocation::Member(member), RpcLocation::Named(name)) => member == name,
            (_, _) => false,
        };
        let has_body = self.has_others || self.bounds.iter().any(BoundParameter::is_in_body);
        let carried = !has_body || rest.short_form_carries();
        carried && call == CallModel::ByName && self.bounds.iter().all(plain)
    }

    /// Returns the first reason why a call of one side may have no counterpart on the other: a value that only one side
    /// has, that both have in different types, or that RPC clients may omit and REST servers require.
    pub(super) fn mismatch(&self) -> Option<&str> {
        let notes = self.notes.iter();
        let mut notes = notes.filter_map(|note| note.strip_prefix("look: "));
        notes.next().or(self.unfilled.as_deref())
    }

    /// Adds a note that a person should check.
    pub(super) fn note(&mut self, text: String) {
        self.notes.push(format!("look: {text}"));
    }

    /// Renames each object of a query whose name another param has.
    pub(super) fn name_objects_apart(&mut self) {
        let objects = self.bounds.iter().filter_map(|bound| match &bound.rpc {
            RpcLocation::Inside(location, _) => match &**location {
                RpcLocation::Named(name) => Some(name.clone()),
                RpcLocation::Position(_)
                | RpcLocation::Inside(..)
                | RpcLocation::Twin
                | RpcLocation::Equal => None,
            },
            RpcLocation::Named(_)
            | RpcLocation::Position(_)
            | RpcLocation::Twin
            | RpcLocation::Equal => None,
        });
        let objects: BTreeSet<String> = objects.collect();
        let mut apart: BTreeMap<String, String> = BTreeMap::new();
        for bound in &mut self.bounds {
            if let RpcLocation::Inside(location, _) = &mut bound.rpc
                && let RpcLocation::Named(name) = &mut **location
                && self.params.contains_key(name)
            {
                let wanted = name.clone();
                let found = apart.entry(wanted).or_insert_with_key(|wanted| {
                    let mut found = wanted.clone();
                    let mut number = 2;
                    while self.params.contains_key(&found) || objects.contains(&found) {
                        found = format!("{wanted}_{number}");
                        number += 1;
                    }
                    found
                });
                name.clone_from(found);
            }
        }
    }

    /// Makes all elements of an array required but the last one.
    pub(super) fn fix_positions(&mut self, rpc: &RpcOperation) {
        let positions = self.bounds.iter().filter_map(|bound| match bound.rpc {
            RpcLocation::Position(at) => Some(at),
            RpcLocation::Inside(..)
            | RpcLocation::Named(_)
            | RpcLocation::Twin
            | RpcLocation::Equal => None,
        });
        let last = positions.max();
        let mut notes = Vec::new();
        for bound in &mut self.bounds {
            let RpcLocation::Position(at) = bound.rpc else {
                continue;
            };
            if bound.absence != Absence::Optional || Some(at) == last {
                continue;
            }
            let default = rpc.params[at].default.as_ref();
            let default = default.and_then(|value| hole::default(&bound.kind, bound.list, value));
            bound.absence = default.map_or(Absence::Required, Absence::Default);
            if bound.absence == Absence::Required {
                notes.push(format!(
                    "`{}` is optional, but only the last element of an array can be absent; it is required here",
                    shown(&rpc.params[at].name)
                ));
            }
        }
        notes.into_iter().for_each(|note| self.note(note));
    }
}
