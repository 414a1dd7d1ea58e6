//! What the tools do: each builds one SQL statement. Names are checked, values are bound. Used by `tools`.

use crate::database::{Database, Executed};
use crate::exceptions::Raised;
use crate::tools::Arguments;
use crate::value::{Dict, Value};

const SQL_TYPES: [&str; 8] = [
    "INTEGER", "TEXT", "REAL", "BLOB", "NUMERIC", "BOOLEAN", "DATE", "DATETIME",
];

type Raises<T> = Result<T, Raised>;

pub(super) fn create_table(database: &mut Database, arguments: &Arguments<'_>) -> Raises<Value> {
    let table = identifier(arguments.get("table_name"), "table")?;
    let primary_key = arguments.get("primary_key");
    let mut columns = Vec::new();
    for (name, sql_type) in members(arguments.get("schema"), "items")?.iter() {
        let column = column(name)?;
        let sql_type = sql_type_of(sql_type)?;
        let is_key = matches!(primary_key, Value::Text(key) if key == column);
        let suffix = if is_key && !sql_type.contains("PRIMARY KEY") {
            " PRIMARY KEY"
        } else {
            ""
        };
        columns.push(format!("{column} {sql_type}{suffix}"));
    }
    let sql = format!("CREATE TABLE {table} ({})", columns.join(", "));
    database.run(&sql, &[])?;
    Ok(format!("Table '{table}' created successfully").into())
}

pub(super) fn insert_record(database: &mut Database, arguments: &Arguments<'_>) -> Raises<Value> {
    let table = identifier(arguments.get("table_name"), "table")?;
    let data = members(arguments.get("data"), "keys")?;
    let mut columns = Vec::new();
    let mut values = Vec::new();
    for (name, value) in data.iter() {
        columns.push(column(name)?);
        values.push(value);
    }
    let marks = vec!["?"; values.len()].join(", ");
    let sql = format!(
        "INSERT INTO {table} ({}) VALUES ({marks})",
        columns.join(", ")
    );
    let executed = database.run(&sql, &values)?;
    Ok(Value::dict([
        ("id", executed.last_row_id.into()),
        ("data", Value::Dict(data.clone())),
    ]))
}

pub(super) fn query_records(database: &mut Database, arguments: &Arguments<'_>) -> Raises<Value> {
    let table = identifier(arguments.get("table_name"), "table")?;
    let mut values = Vec::new();
    let mut sql = format!("SELECT * FROM {table}");
    sql.push_str(&matching(arguments.get("filters"), &mut values)?);
    let order_by = arguments.get("order_by");
    if order_by.is_truthy() {
        let column = identifier(order_by, "column")?;
        sql.push_str(&format!(" ORDER BY {column}"));
    }
    // Whole numbers by now, so they need no binding; `OFFSET` without `LIMIT` is SQLite's to refuse.
    for (name, keyword) in [("limit", "LIMIT"), ("offset", "OFFSET")] {
        let number = arguments.get(name);
        if number.is_truthy() {
            sql.push_str(&format!(" {keyword} {}", whole(number)?));
        }
    }
    database.run(&sql, &values).map(|done| done.rows.into())
}

pub(super) fn update_record(database: &mut Database, arguments: &Arguments<'_>) -> Raises<Value> {
    let table = identifier(arguments.get("table_name"), "table")?;
    let mut values = Vec::new();
    let mut changes = Vec::new();
    for (name, value) in members(arguments.get("data"), "items")?.iter() {
        changes.push(format!("{} = ?", column(name)?));
        values.push(value);
    }
    let which = matching(arguments.get("filters"), &mut values)?;
    let sql = format!("UPDATE {table} SET {}{which}", changes.join(", "));
    database
        .run(&sql, &values)
        .map(|done| done.rows_affected.into())
}

pub(super) fn delete_record(database: &mut Database, arguments: &Arguments<'_>) -> Raises<Value> {
    let table = identifier(arguments.get("table_name"), "table")?;
    let mut values = Vec::new();
    let which = matching(arguments.get("filters"), &mut values)?;
    let sql = format!("DELETE FROM {table}{which}");
    database
        .run(&sql, &values)
        .map(|done| done.rows_affected.into())
}

pub(super) fn list_tables(database: &mut Database, _: &Arguments<'_>) -> Raises<Value> {
    let sql = "SELECT name FROM sqlite_master WHERE type='table' ORDER BY name";
    let names = database.run(sql, &[])?.rows.into_iter().filter_map(|row| {
        let Value::Dict(row) = row else { return None };
        row.get("name").cloned()
    });
    Ok(names.collect::<Vec<_>>().into())
}

pub(super) fn describe_table(database: &mut Database, arguments: &Arguments<'_>) -> Raises<Value> {
    let table = identifier(arguments.get("table_name"), "table")?;
    let sql = format!("PRAGMA table_info({table})");
    database.run(&sql, &[]).map(|done| done.rows.into())
}

pub(super) fn execute_raw_query(
    database: &mut Database,
    arguments: &Arguments<'_>,
) -> Raises<Value> {
    let query = arguments.get("query");
    let Value::Text(sql) = query else {
        return Err(no_attribute(query, "strip"));
    };
    let is_select = sql.trim().to_uppercase().starts_with("SELECT");
    let read_only = arguments.given("read_only").is_none_or(Value::is_truthy);
    if read_only && !is_select {
        let text = "Only SELECT queries allowed in read-only mode. \
            To execute write operations, set read_only=False in the arguments.";
        return Err(Raised::Other(text.to_owned()));
    }
    let params = arguments.get("params");
    let params: Vec<&Value> = if let Value::List(items) = params {
        items.iter().collect()
    } else if params.is_truthy() {
        let text = "parameters are of unsupported type";
        return Err(Raised::Other(text.to_owned()));
    } else {
        Vec::new()
    };
    let Executed {
        rows,
        rows_affected,
        ..
    } = database.run(sql, &params)?;
    if !is_select {
        return Ok(Value::dict([("rows_affected", rows_affected.into())]));
    }
    let count = i64::try_from(rows.len()).unwrap_or(i64::MAX);
    Ok(Value::dict([
        ("rows", rows.into()),
        ("count", count.into()),
    ]))
}

/// ` WHERE a = ? AND b = ?`, or nothing without filters: then every record matches.
fn matching<'a>(filters: &'a Value, values: &mut Vec<&'a Value>) -> Raises<String> {
    if !filters.is_truthy() {
        return Ok(String::new());
    }
    let mut conditions = Vec::new();
    for (name, value) in members(filters, "items")?.iter() {
        conditions.push(format!("{} = ?", column(name)?));
        values.push(value);
    }
    Ok(format!(" WHERE {}", conditions.join(" AND ")))
}

/// A name that may stand in SQL as it is.
fn identifier<'a>(value: &'a Value, kind: &str) -> Raises<&'a str> {
    let Value::Text(name) = value else {
        return Err(Raised::Other(format!(
            "expected string or bytes-like object, got '{}'",
            value.type_name()
        )));
    };
    check_identifier(name, kind)
}

fn column(name: &str) -> Raises<&str> {
    check_identifier(name, "column")
}

fn check_identifier<'a>(name: &'a str, kind: &str) -> Raises<&'a str> {
    let plain = |c: char| c == '_' || c.is_ascii_alphanumeric();
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || !name.chars().all(plain)
    {
        return Err(Raised::Other(format!("Invalid {kind} name: {name}")));
    }
    Ok(name)
}

/// Only the first word of a type is checked; constraints such as `NOT NULL` may follow it.
fn sql_type_of(value: &Value) -> Raises<String> {
    let Value::Text(text) = value else {
        return Err(no_attribute(value, "strip"));
    };
    let sql_type = text.to_uppercase();
    match sql_type.split_whitespace().next() {
        None => Err(Raised::Other("list index out of range".to_owned())),
        Some(word) if SQL_TYPES.contains(&word) => Ok(sql_type),
        Some(_) => Err(Raised::ValueError(format!("Invalid SQL type: {text}"))),
    }
}

fn members<'a>(value: &'a Value, method: &str) -> Raises<&'a Dict> {
    let Value::Dict(dict) = value else {
        return Err(no_attribute(value, method));
    };
    Ok(dict)
}

fn no_attribute(value: &Value, method: &str) -> Raised {
    let kind = value.type_name();
    Raised::Other(format!("'{kind}' object has no attribute '{method}'"))
}

/// What `int(value)` gives, as digits.
fn whole(value: &Value) -> Raises<String> {
    match value {
        Value::Bool(truth) => Ok(i64::from(*truth).to_string()),
        Value::Int(number) => Ok(number.to_string()),
        Value::Big(digits) => Ok(digits.clone()),
        Value::Float(number) if number.is_finite() => Ok(format!("{:.0}", number.trunc())),
        Value::Text(text) => match text.trim().parse::<i64>() {
            Ok(number) => Ok(number.to_string()),
            Err(_) => Err(Raised::ValueError(format!(
                "invalid literal for int() with base 10: {}",
                crate::repr::repr(value)
            ))),
        },
        Value::None | Value::Float(_) | Value::Bytes(_) | Value::List(_) | Value::Dict(_) => {
            Err(Raised::Other(format!(
                "int() argument must be a string, a bytes-like object or a real number, not '{}'",
                value.type_name()
            )))
        }
    }
}
