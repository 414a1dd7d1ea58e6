//! A representation of JSON for the validator, whose nodes count each access.
//!
//! When the budget is spent, arrays and objects appear to be empty, so that the validator ends soon. Its verdict is
//! meaningless then.
//!
//! Used by `schema`.

use std::borrow::Cow;
use std::ptr;
use std::slice;

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, Node, NodeIdentity, Object};
use serde_json::{Number, Value};

use super::equality;
use super::meter::Meter;
use super::value::{ValueItem, ValueMember};

/// Bytes that the validator may keep for one visit of a recursive reference.
const VISIT_BYTES: usize = 64;
/// Bytes of one collected error, without its location.
const ERROR_BYTES: usize = 1024;
/// Bytes of text that are read in one step.
const BYTES_PER_STEP: usize = 32;

/// The value in errors, in place of the real one.
static HIDDEN: Value = Value::Null;

/// The representation.
pub(super) struct Metered;

/// A handle on one item. Names of members have no meter: they are counted with their object.
#[derive(Clone, Copy)]
pub(super) struct Handle<'a> {
    item: &'a ValueItem,
    meter: Option<&'a Meter<'a>>,
    longest_pointer: usize,
}

impl<'a> Handle<'a> {
    pub(super) fn new(
        item: &'a ValueItem,
        longest_pointer: usize,
        meter: &'a Meter<'a>,
    ) -> Handle<'a> {
        Handle {
            item,
            meter: Some(meter),
            longest_pointer,
        }
    }

    fn of(self, item: &'a ValueItem) -> Handle<'a> {
        Handle { item, ..self }
    }

    fn step(&self, steps: usize) -> bool {
        self.meter.is_none_or(|meter| meter.step(steps))
    }
}

impl Json for Metered {
    type Node<'a> = Handle<'a>;
    type PreparedKey = String;
    type StringBuffer = ValueItem;
    // A lookup compares as many names as in a sorted map.
    const KEYS_PER_LOOKUP: usize = 2;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(
        buffer: &mut ValueItem,
        string: &str,
        f: impl FnOnce(Handle<'_>) -> T,
    ) -> T {
        *buffer = ValueItem::Text(string.into());
        f(Handle {
            item: buffer,
            meter: None,
            longest_pointer: 0,
        })
    }
}

impl<'a> Node<'a, Metered> for Handle<'a> {
    type Object = ObjectMembers<'a>;
    type Array = Elements<'a>;
    type Number = &'a Number;

    fn as_object(&self) -> Option<ObjectMembers<'a>> {
        self.step(1);
        let ValueItem::Object(members) = self.item else {
            return None;
        };
        Some(ObjectMembers { of: *self, members })
    }

    fn as_array(&self) -> Option<Elements<'a>> {
        self.step(1);
        let ValueItem::Array(items) = self.item else {
            return None;
        };
        Some(Elements { of: *self, items })
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        self.step(1);
        let ValueItem::Text(text) = self.item else {
            return None;
        };
        self.step(text.len() / BYTES_PER_STEP);
        Some(Cow::Borrowed(text))
    }

    fn as_number(&self) -> Option<&'a Number> {
        self.step(1);
        let ValueItem::Number(number) = self.item else {
            return None;
        };
        Some(number)
    }

    fn as_boolean(&self) -> Option<bool> {
        self.step(1);
        let ValueItem::Boolean(value) = self.item else {
            return None;
        };
        Some(*value)
    }

    fn is_null(&self) -> bool {
        self.step(1);
        matches!(self.item, ValueItem::Null)
    }

    fn json_type(&self) -> JsonType {
        self.step(1);
        match self.item {
            ValueItem::Null => JsonType::Null,
            ValueItem::Boolean(_) => JsonType::Boolean,
            ValueItem::Number(_) => JsonType::Number,
            ValueItem::Text(_) => JsonType::String,
            ValueItem::Array(_) => JsonType::Array,
            ValueItem::Object(_) => JsonType::Object,
        }
    }

    fn equals_value(&self, expected: &Value) -> bool {
        equality::equals(self.item, expected, self.meter)
    }

    fn to_value(&self) -> Cow<'a, Value> {
        // Called once for each error, which keeps its location.
        if let Some(meter) = self.meter {
            meter.hold_for_errors(ERROR_BYTES + self.longest_pointer);
        }
        Cow::Borrowed(&HIDDEN)
    }

    fn identity(&self) -> Option<NodeIdentity> {
        self.step(1);
        Some(NodeIdentity::new(ptr::from_ref(self.item) as usize))
    }

    fn container_identity(&self) -> Option<NodeIdentity> {
        if !matches!(self.item, ValueItem::Array(_) | ValueItem::Object(_)) {
            return None;
        }
        if let Some(meter) = self.meter {
            meter.hold(VISIT_BYTES);
        }
        self.identity()
    }
}

/// The members of an object.
pub(super) struct ObjectMembers<'a> {
    of: Handle<'a>,
    members: &'a [ValueMember],
}

impl<'a> Object<'a, Metered> for ObjectMembers<'a> {
    type Node = Handle<'a>;
    type MemberName = &'a str;
    type MembersIter = MembersIter<'a>;

    fn len(&self) -> usize {
        self.members.len()
    }

    fn get(&self, key: &String) -> Option<Handle<'a>> {
        if !self.of.step(1) {
            return None;
        }
        let found = self.members.binary_search_by(|(name, _)| (**name).cmp(key));
        found.ok().map(|index| self.of.of(&self.members[index].1))
    }

    fn members(&self) -> MembersIter<'a> {
        MembersIter {
            of: self.of,
            rest: self.members.iter(),
        }
    }
}

/// Ends when the budget is spent.
pub(super) struct MembersIter<'a> {
    of: Handle<'a>,
    rest: slice::Iter<'a, ValueMember>,
}

impl<'a> Iterator for MembersIter<'a> {
    type Item = (&'a str, Handle<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, item) = self.rest.next()?;
        if !self.of.step(1 + name.len() / BYTES_PER_STEP) {
            return None;
        }
        if let Some(meter) = self.of.meter {
            // An error may list the names that are not allowed.
            meter.hold_for_errors(name.len() + 32);
        }
        Some((name, self.of.of(item)))
    }
}

/// The elements of an array.
pub(super) struct Elements<'a> {
    of: Handle<'a>,
    items: &'a [ValueItem],
}

impl<'a> Array<'a, Metered> for Elements<'a> {
    type Node = Handle<'a>;
    type ElementsIter = ElementsIter<'a>;

    fn len(&self) -> usize {
        self.items.len()
    }

    fn elements(&self) -> ElementsIter<'a> {
        ElementsIter {
            of: self.of,
            rest: self.items.iter(),
        }
    }

    fn is_unique(&self) -> bool {
        equality::all_differ(self.items, self.of.meter)
    }
}

/// Ends when the budget is spent.
pub(super) struct ElementsIter<'a> {
    of: Handle<'a>,
    rest: slice::Iter<'a, ValueItem>,
}

impl<'a> Iterator for ElementsIter<'a> {
    type Item = Handle<'a>;

    fn next(&mut self) -> Option<Handle<'a>> {
        let item = self.rest.next()?;
        self.of.step(1).then(|| self.of.of(item))
    }
}
