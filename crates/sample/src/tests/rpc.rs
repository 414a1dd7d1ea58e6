//! The envelope of JSON-RPC.

use super::*;

#[test]
fn rpc_asks_less_of_a_tool_call_than_rest() {
    let table = [
        (
            r#"{"arguments":{}}"#,
            r#""error":{"code":-32602,"message":"Tool name is required"}"#,
        ),
        (
            r#"{"name":""}"#,
            r#""error":{"code":-32602,"message":"Tool name is required"}"#,
        ),
        (
            r#"{"name":5}"#,
            r#""error":{"code":-32602,"message":"Tool not found: 5"}"#,
        ),
        (
            r#"{"name":[1]}"#,
            r#""error":{"code":-32603,"message":"Internal error","data":{"details":"unhashable type: 'list'"}}"#,
        ),
        (
            r#"{"name":"list_tables"}"#,
            r#""result":{"content":[{"type":"text","text":"['users']"}]}"#,
        ),
        (
            r#"{"name":"query_records","arguments":null}"#,
            r#""error":{"code":-32603,"message":"Internal error","data":{"details":"src.database.crud_operations.CRUDOperations.query_records() argument after ** must be a mapping, not NoneType"}}"#,
        ),
    ];
    for (params, outcome) in table {
        let body = format!(r#"{{"id":1,"method":"tools/call","params":{params}}}"#);
        let expected = format!(r#"{{"jsonrpc":"2.0","id":1,{outcome}}}"#);
        assert_eq!(text(&post("/jsonrpc", &body)), expected, "{params}");
    }
}

/// The members of an envelope around `"method":"ping"`, and what comes back on `/`.
const ENVELOPES: [(&str, &str); 14] = [
    ("", r#"{"jsonrpc":"2.0","result":{}}"#),
    (r#","id":null"#, r#"{"jsonrpc":"2.0","result":{}}"#),
    (r#","id":"1""#, r#"{"jsonrpc":"2.0","id":"1","result":{}}"#),
    (r#","id":0"#, r#"{"jsonrpc":"2.0","id":0,"result":{}}"#),
    (
        r#","id":123456789012345678901234567890"#,
        r#"{"jsonrpc":"2.0","id":123456789012345678901234567890,"result":{}}"#,
    ),
    (r#","id":2.0"#, r#"{"jsonrpc":"2.0","id":2,"result":{}}"#),
    (r#","id":-0.0"#, r#"{"jsonrpc":"2.0","id":0,"result":{}}"#),
    (r#","id":1e3"#, r#"{"jsonrpc":"2.0","id":1000,"result":{}}"#),
    (
        r#","id":9007199254740993.0"#,
        r#"{"jsonrpc":"2.0","id":9007199254740992,"result":{}}"#,
    ),
    (r#","id":true"#, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
    (r#","id":false"#, r#"{"jsonrpc":"2.0","id":0,"result":{}}"#),
    (
        r#","id":1,"jsonrpc":"2.0""#,
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
    ),
    (
        r#","id":1,"params":null"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
    ),
    (
        r#","id":1,"params":{},"other":1"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
    ),
];

#[test]
fn an_envelope_is_read_generously() {
    for (members, answer) in ENVELOPES {
        let reply = post("/", &format!(r#"{{"method":"ping"{members}}}"#));
        assert_eq!(reply.status(), 200, "{members}");
        assert_eq!(text(&reply), answer, "{members}");
    }
}

#[test]
fn an_envelope_that_does_not_validate_gets_no_rpc_answer() {
    let table = [
        (
            r#"{"method":"ping","id":1.5}"#,
            r#"{"type":"string_type","loc":["body","id","str"],"msg":"Input should be a valid string","input":1.5},{"type":"int_from_float","loc":["body","id","int"],"msg":"Input should be a valid integer, got a number with a fractional part","input":1.5}"#,
        ),
        (
            r#"{"method":"ping","id":1e30}"#,
            r#"{"type":"string_type","loc":["body","id","str"],"msg":"Input should be a valid string","input":1e+30},{"type":"int_parsing_size","loc":["body","id","int"],"msg":"Unable to parse input string as an integer, exceeded maximum size","input":1e+30}"#,
        ),
        (
            r#"{"method":"ping","id":[1]}"#,
            r#"{"type":"string_type","loc":["body","id","str"],"msg":"Input should be a valid string","input":[1]},{"type":"int_type","loc":["body","id","int"],"msg":"Input should be a valid integer","input":[1]}"#,
        ),
        (
            r#"{"method":"ping","jsonrpc":"1.0"}"#,
            r#"{"type":"literal_error","loc":["body","jsonrpc"],"msg":"Input should be '2.0'","input":"1.0","ctx":{"expected":"'2.0'"}}"#,
        ),
        (
            r#"{"params":[1]}"#,
            r#"{"type":"missing","loc":["body","method"],"msg":"Field required","input":{"params":[1]}},{"type":"dict_type","loc":["body","params"],"msg":"Input should be a valid dictionary","input":[1]}"#,
        ),
        (
            "[]",
            r#"{"type":"model_attributes_type","loc":["body"],"msg":"Input should be a valid dictionary or object to extract fields from","input":[]}"#,
        ),
        (
            r#"[{"method":"ping"}]"#,
            r#"{"type":"model_attributes_type","loc":["body"],"msg":"Input should be a valid dictionary or object to extract fields from","input":[{"method":"ping"}]}"#,
        ),
        (
            "{",
            r#"{"type":"json_invalid","loc":["body",1],"msg":"JSON decode error","input":{},"ctx":{"error":"Expecting property name enclosed in double quotes"}}"#,
        ),
    ];
    for path in ["/", "/mcp"] {
        for (body, problems) in table {
            let reply = post(path, body);
            assert_eq!(reply.status(), 422);
            assert_eq!(text(&reply), format!(r#"{{"detail":[{problems}]}}"#));
            assert_eq!(header(&reply, "mcp-session-id"), "");
        }
    }
}

#[test]
fn an_unknown_method_is_answered_even_without_an_id() {
    let body = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert_eq!(
        text(&post("/", body)),
        r#"{"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found: notifications/initialized"}}"#
    );
    let reply = post("/mcp", body);
    assert_eq!((reply.status().as_u16(), text(&reply)), (202, ""));
    assert_eq!(header(&reply, "mcp-session-id").len(), 36);
    assert_eq!(header(&reply, "mcp-protocol-version"), "2024-11-05");
    assert_eq!(header(&reply, "content-type"), "");
}
