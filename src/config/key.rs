//! The table of keys: each key stands once, with its kind, its default and its meaning.
//!
//! Sections stand beside their decoders; `decode::CONFIG` and `flags::FILE` are the roots. The decoders read each key
//! through [`crate::config::table_reader`]; the JSON Schema and the page of keys come from the same entries.
//!
//! Used throughout `config`.

use serde_json::{Value, json};

use crate::config::kind::Kind;

/// The meaning of an absent key.
#[derive(Debug, Clone, Copy)]
pub(super) enum Presence {
    /// The key has no value.
    Optional,
    /// The key is missing, which is a problem.
    Required,
    /// The table is read as an empty one.
    Implied,
    /// This text is read, as if from a variable.
    Default(&'static str),
    /// The text of a function is read.
    Computed {
        /// The meaning of the text.
        about: &'static str,
        /// Returns the text.
        text: fn() -> String,
    },
}

/// A key with one value.
pub(super) struct Key<T: 'static> {
    pub(super) name: &'static str,
    pub(super) kind: Kind<T>,
    pub(super) presence: Presence,
    about: &'static str,
}

/// A key with a list of values.
pub(super) struct List<T: 'static> {
    pub(super) name: &'static str,
    pub(super) items: Kind<T>,
    pub(super) is_required: bool,
    /// Set if a single value is accepted as a list of one.
    pub(super) is_one_or_many: bool,
    /// The items if the key is absent.
    pub(super) default: &'static [&'static str],
    about: &'static str,
}

/// A table of values under names of the user's choice.
pub(super) struct NamedValues<T: 'static> {
    pub(super) name: &'static str,
    pub(super) kind: Kind<T>,
    about: &'static str,
}

/// A key with a free-form value.
pub(super) struct Tree {
    pub(super) name: &'static str,
    pub(super) is_required: bool,
    form: TreeForm,
    about: &'static str,
}

/// The accepted free-form values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TreeForm {
    Any,
    Table,
}

/// A key with one table or several.
pub(super) struct SubTable {
    pub(super) name: &'static str,
    pub(super) presence: Presence,
    section: &'static Section,
    shape: TableShape,
    about: &'static str,
}

/// The place of tables under a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TableShape {
    /// `[key]`
    One,
    /// `[[key]]`
    List,
    /// `[key.NAME]`
    Named,
    /// `[[key.NAME]]`
    NamedLists,
}

/// The keys of a table.
pub(super) struct Section {
    /// The keys of all its tables.
    pub(super) keys: &'static [&'static dyn Describe],
    /// Further keys, which only some of its tables may have.
    pub(super) more: &'static [&'static Section],
    /// Rules between the keys. The decoder enforces them; the JSON Schema states them.
    pub(super) rules: &'static [Rule],
}

/// A rule between the keys of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// The table has exactly one of these keys.
    ExactlyOne(&'static [&'static str]),
    /// The key excludes each of the others.
    Excludes(&'static str, &'static [&'static str]),
    /// The key needs one of the others.
    Needs(&'static str, &'static [&'static str]),
}

/// Returns an optional key.
pub(super) const fn key<T>(name: &'static str, kind: Kind<T>) -> Key<T> {
    Key {
        name,
        kind,
        presence: Presence::Optional,
        about: "",
    }
}

impl<T: 'static> Key<T> {
    /// Makes the key required.
    pub(super) const fn required(mut self) -> Self {
        self.presence = Presence::Required;
        self
    }

    /// Sets the default, as a text of a variable.
    pub(super) const fn or(mut self, text: &'static str) -> Self {
        self.presence = Presence::Default(text);
        self
    }

    /// Sets a default that the machine determines.
    pub(super) const fn or_computed(mut self, about: &'static str, text: fn() -> String) -> Self {
        self.presence = Presence::Computed { about, text };
        self
    }

    /// Sets the meaning; [`section!`] does this.
    pub(super) const fn about(mut self, about: &'static str) -> Self {
        self.about = about;
        self
    }
}

/// Returns an optional list.
pub(super) const fn list<T>(name: &'static str, items: Kind<T>) -> List<T> {
    List {
        name,
        items,
        is_required: false,
        is_one_or_many: false,
        default: &[],
        about: "",
    }
}

/// Returns an optional list; one value may stand for a list with this value.
pub(super) const fn one_or_many<T>(name: &'static str, items: Kind<T>) -> List<T> {
    let mut list = list(name, items);
    list.is_one_or_many = true;
    list
}

impl<T: 'static> List<T> {
    /// Makes the key required.
    pub(super) const fn required(mut self) -> Self {
        self.is_required = true;
        self
    }

    /// Sets the default items, as texts of variables.
    pub(super) const fn or(mut self, default: &'static [&'static str]) -> Self {
        self.default = default;
        self
    }

    /// Sets the meaning; [`section!`] does this.
    pub(super) const fn about(mut self, about: &'static str) -> Self {
        self.about = about;
        self
    }
}

/// Returns an optional table of values.
pub(super) const fn named_values<T>(name: &'static str, kind: Kind<T>) -> NamedValues<T> {
    NamedValues {
        name,
        kind,
        about: "",
    }
}

impl<T: 'static> NamedValues<T> {
    /// Sets the meaning; [`section!`] does this.
    pub(super) const fn about(mut self, about: &'static str) -> Self {
        self.about = about;
        self
    }
}

/// Returns an optional key with any value.
pub(super) const fn tree(name: &'static str) -> Tree {
    Tree {
        name,
        is_required: false,
        form: TreeForm::Any,
        about: "",
    }
}

/// Returns an optional key with a table of any values.
pub(super) const fn tree_table(name: &'static str) -> Tree {
    let mut tree = tree(name);
    tree.form = TreeForm::Table;
    tree
}

impl Tree {
    /// Makes the key required.
    pub(super) const fn required(mut self) -> Self {
        self.is_required = true;
        self
    }

    /// Sets the meaning; [`section!`] does this.
    pub(super) const fn about(mut self, about: &'static str) -> Self {
        self.about = about;
        self
    }
}

/// Returns an optional table.
pub(super) const fn table(name: &'static str, section: &'static Section) -> SubTable {
    SubTable {
        name,
        presence: Presence::Optional,
        section,
        shape: TableShape::One,
        about: "",
    }
}

impl SubTable {
    /// Sets the place of the tables.
    pub(super) const fn of(mut self, shape: TableShape) -> Self {
        self.shape = shape;
        self
    }

    /// Makes the key required.
    pub(super) const fn required(mut self) -> Self {
        self.presence = Presence::Required;
        self
    }

    /// Reads an absent table as an empty one.
    pub(super) const fn implied(mut self) -> Self {
        self.presence = Presence::Implied;
        self
    }

    /// Sets the meaning; [`section!`] does this.
    pub(super) const fn about(mut self, about: &'static str) -> Self {
        self.about = about;
        self
    }
}

/// The description of a key.
pub(super) struct Description {
    pub(super) name: &'static str,
    /// The meaning, in one sentence.
    pub(super) about: &'static str,
    pub(super) is_required: bool,
    pub(super) default: Option<DefaultValue>,
    pub(super) value: DescribedValue,
}

/// A default.
pub(super) enum DefaultValue {
    /// A value of a file.
    Fixed(Value),
    /// The meaning of a value that the machine determines.
    Computed(&'static str),
}

/// The accepted values of a key.
pub(super) enum DescribedValue {
    /// Values, for people and as a JSON Schema.
    Value { accepts: String, schema: Value },
    /// Tables.
    Tables(&'static Section, TableShape),
}

/// A key that describes itself.
pub(super) trait Describe: Sync {
    /// Returns the description.
    fn describe(&self) -> Description;
}

impl<T: Sync + 'static> Describe for Key<T> {
    fn describe(&self) -> Description {
        Description {
            name: self.name,
            about: self.about,
            is_required: matches!(self.presence, Presence::Required),
            default: match self.presence {
                Presence::Default(text) => Some(DefaultValue::Fixed(default(text))),
                Presence::Computed { about, .. } => Some(DefaultValue::Computed(about)),
                Presence::Optional | Presence::Required | Presence::Implied => None,
            },
            value: DescribedValue::Value {
                accepts: self.kind.accepts(),
                schema: self.kind.schema(),
            },
        }
    }
}

/// Returns a default as a value of a file.
fn default(text: &str) -> Value {
    let typed = serde_json::from_str::<Value>(text).ok();
    typed
        .filter(|value| value.is_number() || value.is_boolean())
        .unwrap_or_else(|| Value::from(text))
}

impl<T: Sync + 'static> Describe for List<T> {
    fn describe(&self) -> Description {
        let (item, schema) = (self.items.accepts(), self.items.schema());
        let list = json!({ "type": "array", "items": schema });
        let (accepts, schema) = match (self.is_one_or_many, item.as_str()) {
            (true, item) => (
                format!("{item}, or a list of them"),
                json!({ "anyOf": [schema, list] }),
            ),
            (false, "string") => ("list of strings".to_owned(), list),
            (false, item) => (format!("list of: {item}"), list),
        };
        Description {
            name: self.name,
            about: self.about,
            is_required: self.is_required,
            default: (!self.default.is_empty())
                .then(|| DefaultValue::Fixed(Value::from(self.default))),
            value: DescribedValue::Value { accepts, schema },
        }
    }
}

impl<T: Sync + 'static> Describe for NamedValues<T> {
    fn describe(&self) -> Description {
        let schema = json!({ "type": "object", "additionalProperties": self.kind.schema() });
        Description {
            name: self.name,
            about: self.about,
            is_required: false,
            default: None,
            value: DescribedValue::Value {
                accepts: format!("table; each value: {}", self.kind.accepts()),
                schema,
            },
        }
    }
}

impl Describe for Tree {
    fn describe(&self) -> Description {
        let (accepts, schema) = match self.form {
            TreeForm::Any => ("a pattern, or any value", Value::Bool(true)),
            TreeForm::Table => ("table", json!({ "type": "object" })),
        };
        Description {
            name: self.name,
            about: self.about,
            is_required: self.is_required,
            default: None,
            value: DescribedValue::Value {
                accepts: accepts.to_owned(),
                schema,
            },
        }
    }
}

impl Describe for SubTable {
    fn describe(&self) -> Description {
        Description {
            name: self.name,
            about: self.about,
            is_required: matches!(self.presence, Presence::Required),
            default: None,
            value: DescribedValue::Tables(self.section, self.shape),
        }
    }
}

/// Declares the keys of a table, the rules between them, and the table as a [`Section`]. The documentation of a key is its
/// description.
macro_rules! section {
    (
        $(#[doc = $text:literal])+
        $visibility:vis $section:ident $(+ $more:ident)* {
            $(
                $(#[doc = $about:literal])+
                $of_key:vis $key:ident: $type:ty = $value:expr;
            )*
        }
        $(rules [$($rule:expr),* $(,)?])?
    ) => {
        $(
            $(#[doc = $about])+
            $of_key static $key: $type = $value.about(concat!($($about),+));
        )*
        $(#[doc = $text])+
        $visibility static $section: $crate::config::key::Section = $crate::config::key::Section {
            keys: &[$(&$key),*],
            more: &[$(&$more),*],
            rules: &[$($($rule),*)?],
        };
    };
}

pub(super) use section;
