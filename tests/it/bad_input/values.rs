//! Bad names and values of bodies, params, headers and messages.

use super::{INVALID, NO_HEADER, REFUSED, Row, get, passes, rest, rpc, with};

pub(super) const ROWS: &[Row] = &[
    Row {
        what: "a name of another letter case",
        place: "the query, params, a body; with or without the right name",
        rest: rest(
            REFUSED,
            &[
                get("GET /items?PAGE=1"),
                get("GET /items?page=1&Page=2"),
                get("DELETE /full?ID=7"),
                with("POST /full/7", r#"{"n":1,"N":2}"#),
                with("POST /full/7", r#"{"n":1,"X":"a"}"#),
                with("PUT /items/7", r#"{"ID":"8"}"#),
            ],
        ),
        rpc: rpc(
            INVALID,
            &[
                r#"full/delete {"ID":"7"}"#,
                r#"items/delete {"id":"7","Id":"8"}"#,
                r#"items/list {"PAGE":1}"#,
                r#"full/post {"id":"7","n":1,"N":2}"#,
                r#"tools/call {"name":"read","arguments":{"key":"7","KEY":"8"}}"#,
            ],
        ),
    },
    Row {
        what: "a name given twice",
        place: "an object that a pattern opens",
        rest: rest(
            REFUSED,
            &[
                with("POST /full/7", r#"{"n":1,"n":2}"#),
                with("POST /full/7", r#"{"n":1,"\u006e":2}"#),
                with("PUT /items/7", r#"{"a":1,"a":2}"#),
                with("PUT /items/7", r#"{"id":"8"}"#),
            ],
        ),
        rpc: rpc(
            INVALID,
            &[
                r#"items/delete {"id":"7","id":"8"}"#,
                r#"full/delete {"id":"7","id":"8"}"#,
                r#"tools/call {"name":"read","arguments":{"key":"7","key":"8"}}"#,
                r#"items/put {"id":"7","a":1,"a":2}"#,
            ],
        ),
    },
    Row {
        what: "a name given twice",
        place: "an object that no pattern opens",
        rest: passes(
            "passes, byte for byte",
            r#"{"a":1,"a":2}"#,
            &[with("POST /full/7", r#"{"n":1,"any":{"a":1,"a":2}}"#)],
        ),
        rpc: passes(
            "passes, byte for byte",
            r#"{"a":1,"a":2}"#,
            &[r#"full/post {"id":"7","n":1,"any":{"a":1,"a":2}}"#],
        ),
    },
    Row {
        what: "a header given twice, or not UTF-8",
        place: "a header that a pattern names",
        rest: rest(
            REFUSED,
            &[
                ("POST /full/7", ("X-Kind: a\r\nx-kind", b"b"), br#"{"n":1}"#),
                ("POST /full/7", ("X-Kind", b"\xff"), br#"{"n":1}"#),
            ],
        ),
        rpc: rpc(
            INVALID,
            &[
                r#"full/post {"id":"7","n":1,"kind":"a\r\nb"}"#,
                r#"full/post {"id":"7","n":1,"kind":" a"}"#,
            ],
        ),
    },
    Row {
        what: "a name that no sibling knows",
        place: "a route with `extra = \"drop\"`",
        rest: passes(
            "passes, without it",
            r#"!zzz"#,
            &[
                get("GET /dropping?zzz=1"),
                get("GET /dropping?zzz"),
                get("GET /full/dropping/7?zzz=1"),
            ],
        ),
        rpc: passes(
            "passes, without it",
            r#"!zzz"#,
            &[
                r#"dropping {"zzz":1}"#,
                r#"tools/call {"name":"drop","arguments":{"key":"7","zzz":1}}"#,
            ],
        ),
    },
    Row {
        what: "a query name that no sibling knows",
        place: "a route that does not drop it",
        rest: rest(
            "400 `unknown_query`",
            &[
                get("GET /items?zzz=1"),
                get("DELETE /items/7?zzz=1"),
                get("GET /full/7?zzz"),
                with("POST /full/7?zzz=1", r#"{"n":1}"#),
            ],
        ),
        rpc: rpc("", &[]),
    },
    Row {
        what: "a query name that no sibling knows",
        place: "`ignore_query`",
        rest: passes(
            "passes, without it",
            r#"!zzz"#,
            &[
                get("GET /items?utm_zzz=1"),
                get("DELETE /items/7?gclid=zzz"),
                with("POST /full/7?_=zzz", r#"{"n":1}"#),
            ],
        ),
        rpc: rpc("", &[]),
    },
    Row {
        what: "a name that no sibling knows",
        place: "any other route that cannot carry it",
        rest: rest(REFUSED, &[with("POST /full/7", r#"{"n":1,"zzz":1}"#)]),
        rpc: rpc(
            INVALID,
            &[
                r#"full/post {"id":"7","n":1,"zzz":1}"#,
                r#"items/clear {"ids":[1]}"#,
            ],
        ),
    },
    Row {
        what: "a number beyond 64 bits",
        place: "a hole of numbers or of any value, a value without a hole",
        rest: passes(
            "passes, digit for digit",
            r#"123456789012345678901234567890"#,
            &[
                get("GET /items?page=123456789012345678901234567890"),
                with("POST /full/7", r#"{"n":123456789012345678901234567890}"#),
                with("PUT /items/7", r#"{"a":123456789012345678901234567890}"#),
            ],
        ),
        rpc: passes(
            "passes, digit for digit",
            r#"123456789012345678901234567890"#,
            &[
                r#"items/list {"page":123456789012345678901234567890}"#,
                r#"full/post {"id":"7","n":123456789012345678901234567890}"#,
                r#"items/put {"id":"7","a":123456789012345678901234567890}"#,
            ],
        ),
    },
    Row {
        what: "an integer in another form (`12.0`, `1.2e1`)",
        place: "a hole of integers, in JSON",
        rest: passes(
            "passes, as `12`",
            r#""n":12"#,
            &[
                with("POST /full/7", r#"{"n":12.0}"#),
                with("POST /full/7", r#"{"n":1.2e1}"#),
            ],
        ),
        rpc: passes(
            "passes, as `12`",
            "12",
            &[
                r#"items/list {"page":12.0}"#,
                r#"full/post {"id":"7","n":1.2e1}"#,
            ],
        ),
    },
    Row {
        what: "not a 64-bit integer (`1.5`, `1e400`); another form in a URL",
        place: "a hole of integers",
        rest: rest(
            REFUSED,
            &[
                get("GET /items?page=1.0"),
                with("POST /full/7", r#"{"n":1e400}"#),
                with("POST /full/7", r#"{"n":1.5}"#),
                with("POST /full/7", r#"{"n":"1"}"#),
            ],
        ),
        rpc: rpc(
            INVALID,
            &[
                r#"items/list {"page":1e400}"#,
                r#"full/post {"id":"7","n":1.5}"#,
            ],
        ),
    },
    Row {
        what: "bytes that are not UTF-8",
        place: "a path hole, a query value",
        rest: rest(
            REFUSED,
            &[
                get("DELETE /items/%FF"),
                get("GET /items?q=%C3%28"),
                get("DELETE /full?id=%ED%A0%80"),
            ],
        ),
        rpc: rpc("", &[]),
    },
    Row {
        what: "bytes that are not UTF-8, no JSON, more than one value",
        place: "a body, a message",
        rest: rest(
            "400 `malformed_json`",
            &[
                ("POST /full/7", NO_HEADER, b"{\"n\":1,\"x\":\"\xff\"}"),
                ("PUT /items/7", NO_HEADER, b"{\"a\":\"\xc3\"}"),
                with("POST /full/7", r#"{"n":1}{}"#),
                with("PUT /items/7", r#"{"a":NaN}"#),
            ],
        ),
        rpc: rpc(
            "-32700 `malformed_json`",
            &[
                "\u{1}NOT-UTF8",
                r#"items/put {"a":01}"#,
                r#"full/delete {"id":'7'}"#,
            ],
        ),
    },
    Row {
        what: "a lone surrogate",
        place: "a text that a pattern opens, a name beside it",
        rest: rest(
            REFUSED,
            &[
                with("POST /full/7", r#"{"n":1,"x":"\ud800"}"#),
                with("POST /full/7", r#"{"n":1,"\udfff":1}"#),
            ],
        ),
        rpc: rpc(
            INVALID,
            &[
                r#"items/delete {"id":"\ud800"}"#,
                r#"full/delete {"id":"a\udc00"}"#,
                r#"items/delete {"id":"7","\ud800":1}"#,
            ],
        ),
    },
    Row {
        what: "a lone surrogate",
        place: "a value that no pattern opens",
        rest: passes(
            "passes, byte for byte",
            r#":"\ud800""#,
            &[
                with("POST /full/7", r#"{"n":1,"any":"\ud800"}"#),
                with("PUT /items/7", r#"{"a":"\ud800"}"#),
            ],
        ),
        rpc: passes(
            "passes, byte for byte",
            r#":"\ud800""#,
            &[
                r#"full/post {"id":"7","n":1,"any":"\ud800"}"#,
                r#"items/put {"id":"7","a":"\ud800"}"#,
            ],
        ),
    },
    Row {
        what: "10,000 nested arrays",
        place: "a body, params",
        rest: rest(
            "400 `too_deep`",
            &[
                with("POST /full/7", r#"{"n":1,"any":DEEP}"#),
                with("PUT /items/7", r#"{"a":DEEP}"#),
            ],
        ),
        rpc: rpc(
            "-31008 `too_deep`",
            &[
                r#"full/post {"id":"7","n":1,"any":DEEP}"#,
                r#"items/put {"id":"7","a":DEEP}"#,
                "items/list DEEP",
            ],
        ),
    },
    Row {
        what: "an envelope member given twice, or in another letter case",
        place: "a message",
        rest: rest("", &[]),
        rpc: rpc(
            "-32600 `invalid_request`",
            &[
                r#"{"jsonrpc":"2.0","id":1,"method":"items/list","method":"items/clear"}"#,
                r#"{"jsonrpc":"2.0","id":1,"method":"items/list","Method":"items/clear"}"#,
                r#"{"jsonrpc":"2.0","id":1,"method":"items/list","params":{},"Params":{}}"#,
                r#"{"jsonrpc":"2.0","id":1,"method":"items/list","params":7}"#,
            ],
        ),
    },
];
