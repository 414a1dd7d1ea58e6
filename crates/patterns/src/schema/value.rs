//! The validated value as a compact tree, whose memory is counted while it is built.
//!
//! Used by `schema`, `schema::equality` and `schema::node`.

use serde_json::Number;

use super::error::{SchemaError, SchemaViolation};
use super::meter::{Exceeded, Meter};
use crate::json::{Json, JsonKind};

/// Bytes of a member's index while its object is read.
const INDEX_BYTES: usize = 128;
/// Bytes that an allocation takes in addition to its content.
const ALLOCATION: usize = 16;
/// A value up to this length is read in one step.
const BYTES_PER_STEP: usize = 64;

/// One value of a document.
#[derive(Debug, Default)]
pub(super) enum ValueItem {
    #[default]
    Null,
    Boolean(bool),
    Number(Number),
    Text(Box<str>),
    Array(Box<[ValueItem]>),
    /// Sorted by name.
    Object(Box<[ValueMember]>),
}

/// A name and its value.
pub(super) type ValueMember = (Box<str>, ValueItem);

/// A tree, with the length of the longest JSON pointer into it.
#[derive(Debug)]
pub(super) struct ValueTree {
    pub(super) root: ValueItem,
    pub(super) longest_pointer: usize,
}

impl ValueTree {
    /// Reads a value.
    ///
    /// # Errors
    /// [`SchemaError`] if two parsers could read two values, or the budget is spent.
    pub(super) fn read(value: &Json, meter: &Meter<'_>) -> Result<ValueTree, SchemaError> {
        let mut reader = ValueReader {
            meter,
            pointer: String::new(),
            longest: 0,
        };
        let root = reader.item(value)?;
        Ok(ValueTree {
            root,
            longest_pointer: reader.longest,
        })
    }
}

struct ValueReader<'m, 'r> {
    meter: &'m Meter<'r>,
    pointer: String,
    longest: usize,
}

impl ValueReader<'_, '_> {
    fn item(&mut self, value: &Json) -> Result<ValueItem, SchemaError> {
        self.longest = self.longest.max(self.pointer.len());
        let length = value.as_bytes().len();
        self.pay(1 + length / BYTES_PER_STEP, 0)?;
        match value.kind() {
            JsonKind::Null => Ok(ValueItem::Null),
            JsonKind::Boolean => Ok(ValueItem::Boolean(value.as_bytes() == b"true")),
            JsonKind::Number => match serde_json::from_slice::<Number>(value.as_bytes()) {
                Ok(number) => Ok(ValueItem::Number(number)),
                Err(_) => Err(self.fault("it is not a 64-bit number")),
            },
            JsonKind::String => {
                self.pay(0, length + ALLOCATION)?;
                match value.text() {
                    Some(Ok(text)) => Ok(ValueItem::Text(text.into_boxed_str())),
                    Some(Err(error)) => Err(self.fault(&error.to_string())),
                    None => Ok(ValueItem::Null),
                }
            }
            JsonKind::Array => self.array(value),
            JsonKind::Object => self.object(value),
        }
    }

    fn array(&mut self, value: &Json) -> Result<ValueItem, SchemaError> {
        let mut items = Vec::new();
        for (index, element) in value.elements().enumerate() {
            let index = index.to_string();
            // A growing list has up to as much unused capacity as content.
            self.pay(0, 2 * size_of::<ValueItem>())?;
            items.push(self.below(&index, &value.piece(element))?);
        }
        self.meter.release(items.len() * size_of::<ValueItem>());
        Ok(ValueItem::Array(items.into_boxed_slice()))
    }

    fn object(&mut self, value: &Json) -> Result<ValueItem, SchemaError> {
        // The members are counted before their list is allocated.
        let count = value.member_count();
        let index_bytes = count.saturating_mul(INDEX_BYTES);
        self.pay(count, index_bytes)?;
        let members = value.open();
        let members = members.map_err(|error| self.fault(&error.to_string()))?;
        let mut object = Vec::with_capacity(members.len());
        for member in members {
            self.pay(0, size_of::<ValueMember>() + member.name.len() + ALLOCATION)?;
            let item = self.below(&member.name, &value.piece(member.value))?;
            object.push((member.name.into_owned().into_boxed_str(), item));
        }
        self.meter.release(index_bytes);
        object.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Ok(ValueItem::Object(object.into_boxed_slice()))
    }

    /// Reads a value one level deeper.
    fn below(&mut self, step: &str, value: &Json) -> Result<ValueItem, SchemaError> {
        let length = self.pointer.len();
        self.pointer.push('/');
        for letter in step.chars() {
            match letter {
                '~' => self.pointer.push_str("~0"),
                '/' => self.pointer.push_str("~1"),
                letter => self.pointer.push(letter),
            }
        }
        let item = self.item(value)?;
        self.pointer.truncate(length);
        Ok(item)
    }

    fn pay(&self, steps: usize, bytes: usize) -> Result<(), SchemaError> {
        if self.meter.step(steps) && self.meter.hold(bytes) {
            return Ok(());
        }
        let exceeded = self.meter.exceeded().unwrap_or(Exceeded::Memory);
        Err(SchemaError::Exceeded(exceeded))
    }

    fn fault(&self, what: &str) -> SchemaError {
        SchemaError::Violation(SchemaViolation {
            pointer: self.pointer.clone(),
            what: what.to_owned(),
        })
    }
}
