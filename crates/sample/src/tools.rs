//! The eight tools: how each describes itself, and how a call finds its arguments. Used by `crud`, `rest` and `rpc`.

use crate::crud;
use crate::database::Database;
use crate::exceptions::Raised;
use crate::repr;
use crate::value::{Dict, Value};

/// One tool.
struct Tool {
    name: &'static str,
    description: &'static str,
    parameters: &'static [Parameter],
    run: fn(&mut Database, &Arguments<'_>) -> Result<Value, Raised>,
}

struct Parameter {
    name: &'static str,
    is_required: bool,
    kind: &'static str,
    description: &'static str,
}

/// Arguments of which all required ones are there, and no unknown one.
pub(super) struct Arguments<'a>(&'a Dict);

impl<'a> Arguments<'a> {
    /// The argument of this name; `None`, the default in Python, if it was left out.
    pub(super) fn get(&self, name: &str) -> &'a Value {
        self.0.get(name).unwrap_or(&Value::None)
    }

    /// The argument of this name, for parameters whose default is not `None`.
    pub(super) fn given(&self, name: &str) -> Option<&'a Value> {
        self.0.get(name)
    }
}

const fn required(name: &'static str, kind: &'static str, description: &'static str) -> Parameter {
    Parameter {
        name,
        is_required: true,
        kind,
        description,
    }
}

const fn optional(name: &'static str, kind: &'static str, description: &'static str) -> Parameter {
    Parameter {
        name,
        is_required: false,
        kind,
        description,
    }
}

const TABLE: Parameter = required("table_name", "string", "Name of the table");
const FILTERS: &str = "Values that columns of a matching record have";

const TOOLS: [Tool; 8] = [
    Tool {
        name: "create_table",
        description: "Create a table",
        parameters: &[
            TABLE,
            required("schema", "object", "SQL type of each column by name"),
            optional("primary_key", "string", "Name of the key column"),
        ],
        run: crud::create_table,
    },
    Tool {
        name: "insert_record",
        description: "Insert a record into a table",
        parameters: &[
            TABLE,
            required("data", "object", "Value of each column by name"),
        ],
        run: crud::insert_record,
    },
    Tool {
        name: "query_records",
        description: "Read records of a table",
        parameters: &[
            TABLE,
            optional("filters", "object", FILTERS),
            optional("limit", "integer", "How many records at most"),
            optional("offset", "integer", "How many records to skip"),
            optional("order_by", "string", "Name of the column to sort by"),
        ],
        run: crud::query_records,
    },
    Tool {
        name: "update_record",
        description: "Change records of a table",
        parameters: &[
            TABLE,
            required("filters", "object", FILTERS),
            required("data", "object", "New value of each changed column by name"),
        ],
        run: crud::update_record,
    },
    Tool {
        name: "delete_record",
        description: "Delete records of a table",
        parameters: &[TABLE, required("filters", "object", FILTERS)],
        run: crud::delete_record,
    },
    Tool {
        name: "list_tables",
        description: "List all tables in the database",
        parameters: &[],
        run: crud::list_tables,
    },
    Tool {
        name: "describe_table",
        description: "Describe the columns of a table",
        parameters: &[TABLE],
        run: crud::describe_table,
    },
    Tool {
        name: "execute_raw_query",
        description: "Execute one SQL statement",
        parameters: &[
            required("query", "string", "The SQL text"),
            optional("params", "array", "Values for its question marks"),
            optional(
                "read_only",
                "boolean",
                "Refuse all but SELECT (default: true)",
            ),
        ],
        run: crud::execute_raw_query,
    },
];

/// What `tools/list` answers: all tools, in the order in which they were registered.
pub(super) fn list() -> Value {
    let tools = TOOLS.iter().map(Tool::describe).collect::<Vec<_>>();
    Value::dict([("tools", tools.into())])
}

/// Calls a tool and prints its result as Python's `str()` does.
pub(super) fn call(
    database: &mut Database,
    name: &Value,
    arguments: &Value,
) -> Result<String, Raised> {
    if matches!(name, Value::List(_) | Value::Dict(_)) {
        return Err(Raised::Other(format!(
            "unhashable type: '{}'",
            name.type_name()
        )));
    }
    let name = repr::str(name);
    let Some(tool) = TOOLS.iter().find(|tool| tool.name == name) else {
        return Err(Raised::ValueError(format!("Tool not found: {name}")));
    };
    let arguments = tool.accept(arguments)?;
    (tool.run)(database, &arguments).map(|result| repr::str(&result))
}

impl Tool {
    fn describe(&self) -> Value {
        let properties = self
            .parameters
            .iter()
            .map(|parameter| (parameter.name.to_owned(), parameter.describe()))
            .collect();
        let required: Vec<Value> = self.required().map(Value::from).collect();
        Value::dict([
            ("name", self.name.into()),
            ("description", self.description.into()),
            (
                "inputSchema",
                Value::dict([
                    ("type", "object".into()),
                    ("properties", Value::Dict(Dict::new(properties))),
                    ("required", required.into()),
                ]),
            ),
        ])
    }

    fn required(&self) -> impl Iterator<Item = &'static str> {
        self.parameters
            .iter()
            .filter(|parameter| parameter.is_required)
            .map(|parameter| parameter.name)
    }

    /// What Python checks when it calls `method(**arguments)`.
    fn accept<'a>(&self, arguments: &'a Value) -> Result<Arguments<'a>, Raised> {
        let (module, method) = self.python_name();
        let Value::Dict(arguments) = arguments else {
            return Err(Raised::Other(format!(
                "{module}.{method}() argument after ** must be a mapping, not {}",
                arguments.type_name()
            )));
        };
        let known = |name: &str| self.parameters.iter().any(|known| known.name == name);
        if let Some((name, _)) = arguments.iter().find(|(name, _)| !known(name)) {
            return Err(Raised::Other(format!(
                "{method}() got an unexpected keyword argument '{name}'"
            )));
        }
        let missing: Vec<String> = self
            .required()
            .filter(|name| arguments.get(name).is_none())
            .map(|name| format!("'{name}'"))
            .collect();
        let names = match missing.as_slice() {
            [] => return Ok(Arguments(arguments)),
            [only] => return Err(missing_arguments(&method, "1", "argument", only)),
            [first, second] => format!("{first} and {second}"),
            [most @ .., last] => format!("{}, and {last}", most.join(", ")),
        };
        let count = missing.len().to_string();
        Err(missing_arguments(&method, &count, "arguments", &names))
    }

    /// The module and the qualified name of the function behind the tool; one was registered as a lambda.
    fn python_name(&self) -> (&'static str, String) {
        if self.name == "list_tables" {
            let lambda = "register_all_tools.<locals>.<lambda>";
            ("src.server", lambda.to_owned())
        } else {
            let method = format!("CRUDOperations.{}", self.name);
            ("src.database.crud_operations", method)
        }
    }
}

fn missing_arguments(method: &str, count: &str, noun: &str, names: &str) -> Raised {
    Raised::Other(format!(
        "{method}() missing {count} required positional {noun}: {names}"
    ))
}

impl Parameter {
    fn describe(&self) -> Value {
        let (kind, description) = (self.kind.into(), self.description.into());
        if self.kind == "array" {
            return Value::dict([
                ("type", kind),
                ("items", Value::dict([])),
                ("description", description),
            ]);
        }
        Value::dict([("type", kind), ("description", description)])
    }
}

#[cfg(test)]
mod tests;
