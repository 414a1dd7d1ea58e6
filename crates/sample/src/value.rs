//! A value as Python sees it: what JSON carries, what SQLite stores, and what `str()` prints.
//!
//! Unlike `serde_json::Value` it keeps the order of members, whole numbers of any length, and bytes.
//!
//! Used throughout `sample`.

/// Any value of a request, of a row, or of an answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    None,
    Bool(bool),
    Int(i64),
    /// A whole number beyond `i64`, by its digits.
    Big(String),
    Float(f64),
    Text(String),
    Bytes(Vec<u8>),
    List(Vec<Value>),
    Dict(Dict),
}

/// Members in the order in which they were first named.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Dict(Vec<(String, Value)>);

impl Dict {
    /// Keeps members as they are; the caller has made sure that no name comes twice.
    pub(super) const fn new(members: Vec<(String, Value)>) -> Self {
        Dict(members)
    }

    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, v)| v)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Value {
    /// A dict written out in code.
    pub(super) fn dict<const N: usize>(members: [(&str, Value); N]) -> Value {
        let members = members.map(|(name, value)| (name.to_owned(), value));
        Value::Dict(Dict::new(members.into()))
    }

    /// The name of its type in Python, for the texts of exceptions.
    pub(super) const fn type_name(&self) -> &'static str {
        match self {
            Value::None => "NoneType",
            Value::Bool(_) => "bool",
            Value::Int(_) | Value::Big(_) => "int",
            Value::Float(_) => "float",
            Value::Text(_) => "str",
            Value::Bytes(_) => "bytes",
            Value::List(_) => "list",
            Value::Dict(_) => "dict",
        }
    }

    /// Whether Python's `if value:` takes the branch.
    pub(super) fn is_truthy(&self) -> bool {
        match self {
            Value::None => false,
            Value::Bool(truth) => *truth,
            Value::Int(number) => *number != 0,
            Value::Big(_) => true,
            Value::Float(number) => *number != 0.0,
            Value::Text(text) => !text.is_empty(),
            Value::Bytes(bytes) => !bytes.is_empty(),
            Value::List(items) => !items.is_empty(),
            Value::Dict(dict) => !dict.is_empty(),
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::Text(text)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Value::Int(number)
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Self {
        Value::Bool(truth)
    }
}

impl From<Vec<Value>> for Value {
    fn from(items: Vec<Value>) -> Self {
        Value::List(items)
    }
}
