//! Each tool, as its result or its exception prints.

use super::*;
use crate::json;

/// Calls one tool after the other on one database, and says what the last one printed.
fn last(calls: &[(&str, &str)]) -> Result<String, String> {
    let mut database = Database::seeded().unwrap();
    let mut printed = Ok(String::new());
    for (name, arguments) in calls {
        let arguments = json::parse(arguments).unwrap();
        printed = call(&mut database, &Value::from(*name), &arguments);
    }
    printed.map_err(|raised| raised.text().to_owned())
}

fn prints(calls: &[(&str, &str)], expected: &str) {
    assert_eq!(last(calls).as_deref(), Ok(expected), "{calls:?}");
}

fn raises(name: &str, arguments: &str, expected: &str) {
    let raised = last(&[(name, arguments)]).unwrap_err();
    assert_eq!(raised, expected, "{name} {arguments}");
}

#[test]
fn create_table_takes_types_with_constraints_and_a_key() {
    let create = (
        "create_table",
        r#"{"table_name":"t","schema":{"id":"integer","n":"TEXT NOT NULL"},"primary_key":"id"}"#,
    );
    prints(&[create], "Table 't' created successfully");
    prints(
        &[create, ("describe_table", r#"{"table_name":"t"}"#)],
        "[{'cid': 0, 'name': 'id', 'type': 'INTEGER', 'notnull': 0, 'dflt_value': None, 'pk': 1}, \
         {'cid': 1, 'name': 'n', 'type': 'TEXT', 'notnull': 1, 'dflt_value': None, 'pk': 0}]",
    );
    prints(&[create, ("list_tables", "{}")], "['t', 'users']");
}

#[test]
fn create_table_checks_names_and_types() {
    let table = [
        (
            r#"{"table_name":"1t","schema":{}}"#,
            "Invalid table name: 1t",
        ),
        (
            r#"{"table_name":"t","schema":{"a;b":"TEXT"}}"#,
            "Invalid column name: a;b",
        ),
        (
            r#"{"table_name":"t","schema":{"a":"JSON"}}"#,
            "Invalid SQL type: JSON",
        ),
        (
            r#"{"table_name":"t","schema":{"a":" "}}"#,
            "list index out of range",
        ),
        (
            r#"{"table_name":"t","schema":{"a":1}}"#,
            "'int' object has no attribute 'strip'",
        ),
        (
            r#"{"table_name":"t","schema":{"a":"TEXT ); DROP TABLE users; --"}}"#,
            "You can only execute one statement at a time.",
        ),
        (
            r#"{"table_name":"users","schema":{"a":"TEXT"}}"#,
            "table users already exists",
        ),
    ];
    for (arguments, expected) in table {
        raises("create_table", arguments, expected);
    }
}

#[test]
fn insert_record_tells_the_id_and_echoes_the_data() {
    prints(
        &[(
            "insert_record",
            r#"{"table_name":"users","data":{"name":"x'); --","age":true}}"#,
        )],
        "{'id': 3, 'data': {'name': \"x'); --\", 'age': True}}",
    );
    let table = [
        (
            r#"{"table_name":"users","data":{"nope":1}}"#,
            "table users has no column named nope",
        ),
        (
            r#"{"table_name":"users","data":{}}"#,
            "near \")\": syntax error",
        ),
        (
            r#"{"table_name":"users","data":null}"#,
            "'NoneType' object has no attribute 'keys'",
        ),
        (
            r#"{"table_name":null,"data":{}}"#,
            "expected string or bytes-like object, got 'NoneType'",
        ),
    ];
    for (arguments, expected) in table {
        raises("insert_record", arguments, expected);
    }
}

#[test]
fn query_records_filters_sorts_and_pages() {
    let table = [
        (
            r#""filters":{"name":"O'Brien"}"#,
            "[{'id': 1, 'name': \"O'Brien\", 'age': 30}]",
        ),
        (r#""filters":{"name":"' OR 1=1 --"}"#, "[]"),
        (
            r#""order_by":"age","limit":1"#,
            "[{'id': 2, 'name': None, 'age': None}]",
        ),
        (
            r#""limit":"5","offset":1.9"#,
            "[{'id': 2, 'name': None, 'age': None}]",
        ),
        (
            r#""limit":true,"filters":null,"offset":0"#,
            "[{'id': 1, 'name': \"O'Brien\", 'age': 30}]",
        ),
    ];
    for (more, expected) in table {
        let arguments = format!(r#"{{"table_name":"users",{more}}}"#);
        prints(&[("query_records", &arguments)], expected);
    }
    let table = [
        (r#""offset":1"#, "near \"1\": syntax error"),
        (
            r#""limit":"x""#,
            "invalid literal for int() with base 10: 'x'",
        ),
        (r#""order_by":"age desc""#, "Invalid column name: age desc"),
        (r#""filters":{"nope":1}"#, "no such column: nope"),
        (r#""filters":[1]"#, "'list' object has no attribute 'items'"),
    ];
    for (more, expected) in table {
        let arguments = format!(r#"{{"table_name":"users",{more}}}"#);
        raises("query_records", &arguments, expected);
    }
}

#[test]
fn update_record_and_delete_record_print_how_many() {
    let update = r#"{"table_name":"users","filters":{"id":1},"data":{"age":31}}"#;
    prints(&[("update_record", update)], "1");
    prints(
        &[
            ("update_record", update),
            (
                "query_records",
                r#"{"table_name":"users","filters":{"age":31}}"#,
            ),
        ],
        "[{'id': 1, 'name': \"O'Brien\", 'age': 31}]",
    );
    prints(
        &[(
            "delete_record",
            r#"{"table_name":"users","filters":{"id":9}}"#,
        )],
        "0",
    );
    prints(
        &[
            ("delete_record", r#"{"table_name":"users","filters":{}}"#),
            ("query_records", r#"{"table_name":"users"}"#),
        ],
        "[]",
    );
}

#[test]
fn a_raw_query_reads_unless_it_is_allowed_to_write() {
    prints(
        &[(
            "execute_raw_query",
            r#"{"query":" select x'00ff' b, ? t, 1e400 f","params":["a"]}"#,
        )],
        r"{'rows': [{'b': b'\x00\xff', 't': 'a', 'f': inf}], 'count': 1}",
    );
    prints(
        &[(
            "execute_raw_query",
            r#"{"query":"UPDATE users SET age = ?","params":[1],"read_only":false}"#,
        )],
        "{'rows_affected': 2}",
    );
    raises(
        "execute_raw_query",
        r#"{"query":"WITH a AS (SELECT 1) SELECT * FROM a"}"#,
        "Only SELECT queries allowed in read-only mode. To execute write operations, set read_only=False in the arguments.",
    );
    raises(
        "execute_raw_query",
        r#"{"query":"SELECT ?"}"#,
        "Incorrect number of bindings supplied. The current statement uses 1, and there are 0 supplied.",
    );
    raises(
        "execute_raw_query",
        r#"{"query":5}"#,
        "'int' object has no attribute 'strip'",
    );
}

#[test]
fn the_arguments_are_checked_as_python_checks_a_call() {
    let table = [
        (
            "update_record",
            "{}",
            "CRUDOperations.update_record() missing 3 required positional arguments: 'table_name', 'filters', and 'data'",
        ),
        (
            "insert_record",
            "{}",
            "CRUDOperations.insert_record() missing 2 required positional arguments: 'table_name' and 'data'",
        ),
        (
            "delete_record",
            r#"{"where":{}}"#,
            "CRUDOperations.delete_record() got an unexpected keyword argument 'where'",
        ),
        (
            "list_tables",
            r#"{"a":1}"#,
            "register_all_tools.<locals>.<lambda>() got an unexpected keyword argument 'a'",
        ),
        (
            "list_tables",
            "[]",
            "src.server.register_all_tools.<locals>.<lambda>() argument after ** must be a mapping, not list",
        ),
    ];
    for (name, arguments, expected) in table {
        raises(name, arguments, expected);
    }
}

#[test]
fn each_tool_describes_its_parameters() {
    let text = json::write(&list(), json::Spacing::Compact);
    let described: serde_json::Value = serde_json::from_str(&text).unwrap();
    let tools: Vec<String> = described["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| format!("{} {}", tool["name"], tool["inputSchema"]["required"]))
        .collect();
    assert_eq!(
        tools,
        [
            r#""create_table" ["table_name","schema"]"#,
            r#""insert_record" ["table_name","data"]"#,
            r#""query_records" ["table_name"]"#,
            r#""update_record" ["table_name","filters","data"]"#,
            r#""delete_record" ["table_name","filters"]"#,
            r#""list_tables" []"#,
            r#""describe_table" ["table_name"]"#,
            r#""execute_raw_query" ["query"]"#,
        ]
    );
    assert_eq!(
        described["tools"][7]["inputSchema"]["properties"]["params"],
        serde_json::json!({"type": "array", "items": {}, "description": "Values for its question marks"})
    );
}
