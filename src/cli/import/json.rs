//! JSON parsing of documents: a limited number of nodes, and no repeated names in an object.
//!
//! Used by `import::discover` and `import::read`.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use dualgauge_model::import::printable;

/// Maximum number of nodes in a document: GitHub's has 400,000.
const MOST_NODES: usize = 1_000_000;

/// Parses JSON.
///
/// # Errors
/// Malformed JSON is a syntax error; too many nodes and repeated names are data errors.
pub(super) fn parse(text: &str) -> serde_json::Result<Value> {
    let nodes = Cell::new(0);
    let mut parser = serde_json::Deserializer::from_str(text);
    let value = ValueSeed { nodes: &nodes }.deserialize(&mut parser)?;
    parser.end()?;
    Ok(value)
}

/// A value that is being parsed, with all values in it.
#[derive(Clone, Copy)]
struct ValueSeed<'n> {
    nodes: &'n Cell<usize>,
}

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        let nodes = self.nodes.get() + 1;
        self.nodes.set(nodes);
        if nodes > MOST_NODES {
            return Err(Error::custom(format_args!("more than {MOST_NODES} values")));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut found = Vec::new();
        while let Some(element) = elements.next_element_seed(self)? {
            found.push(element);
        }
        Ok(Value::Array(found))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut found = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            if found.contains_key(&name) {
                return Err(Error::custom(format_args!(
                    "the name `{}` stands twice in one object",
                    printable(&name)
                )));
            }
            let value = members.next_value_seed(self)?;
            found.insert(name, value);
        }
        Ok(Value::Object(found))
    }
}
