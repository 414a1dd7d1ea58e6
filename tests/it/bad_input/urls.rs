//! Bad values of a URL, and what stands for them in params.

use super::{INVALID, MALFORMED, REFUSED, Row, get, passes, rest, rpc, with};

pub(super) const ROWS: &[Row] = &[
    Row {
        what: "an empty value",
        place: "a path hole",
        rest: rest(
            MALFORMED,
            &[
                get("DELETE /items/"),
                get("DELETE /items//"),
                get("GET /full/"),
                get("PUT /items/."),
                get("GET /items/?q=x"),
            ],
        ),
        rpc: rpc(
            INVALID,
            &[
                r#"items/delete {"id":""}"#,
                r#"tools/call {"name":"read","arguments":{"key":""}}"#,
            ],
        ),
    },
    Row {
        what: "an empty segment, a dot segment",
        place: "a path without a route in either form",
        rest: rest(
            "404 `route_not_found`",
            &[
                get("GET /nothing/"),
                get("GET /nothing//7"),
                get("PUT /nothing/."),
            ],
        ),
        rpc: rpc("", &[]),
    },
    Row {
        what: "an empty value",
        place: "a required query hole, a typed one",
        rest: rest(
            REFUSED,
            &[
                get("DELETE /full?id="),
                get("DELETE /full?id"),
                get("GET /items?page="),
            ],
        ),
        rpc: rpc(
            INVALID,
            &[r#"full/delete {"id":""}"#, r#"items/list {"page":""}"#],
        ),
    },
    Row {
        what: "an empty text",
        place: "an optional query hole of text",
        rest: passes(
            "passes, as the empty text",
            r#""q":"""#,
            &[get("GET /items?q=")],
        ),
        rpc: passes(
            "passes, as the empty text",
            r#"q= "#,
            &[r#"items/list {"q":""}"#],
        ),
    },
    Row {
        what: "`null`, a value of another type",
        place: "a required hole",
        rest: rest("", &[]),
        rpc: rpc(
            INVALID,
            &[
                r#"items/delete {"id":null}"#,
                r#"items/delete {"id":7}"#,
                r#"full/delete {"id":null}"#,
                r#"full/delete {"id":[]}"#,
                r#"full/delete {"id":{}}"#,
            ],
        ),
    },
    Row {
        what: "a missing required value",
        place: "params, if no sibling fits without it",
        rest: rest("", &[]),
        rpc: rpc(
            INVALID,
            &[
                "items/delete {}",
                "items/delete",
                "items/delete []",
                r#"tools/call {"name":"read"}"#,
            ],
        ),
    },
    Row {
        what: "`.`, `..`",
        place: "a path hole",
        rest: rest(
            MALFORMED,
            &[
                get("DELETE /items/."),
                get("DELETE /items/%2E"),
                get("DELETE /items/7/.."),
                get("DELETE /items/7/%2e%2E"),
                get("GET /files/a/../b"),
                get("GET /full/7/../8"),
            ],
        ),
        rpc: rpc(
            INVALID,
            &[
                r#"items/delete {"id":"."}"#,
                r#"items/delete {"id":".."}"#,
                r#"files/get {"path":"a/../b"}"#,
                r#"tools/call {"name":"read","arguments":{"key":".."}}"#,
            ],
        ),
    },
    Row {
        what: "`.`, `..`",
        place: "behind an encoded slash",
        rest: rest(
            REFUSED,
            &[get("DELETE /items/..%2Fb"), get("GET /full/a%2f.%2fb")],
        ),
        rpc: rpc(
            INVALID,
            &[
                r#"items/delete {"id":"../b"}"#,
                r#"tools/call {"name":"read","arguments":{"key":"a/."}}"#,
            ],
        ),
    },
    Row {
        what: "`%2F`, a slash",
        place: "a path hole of one segment",
        rest: passes(
            "passes, as a slash of the value",
            r#""a/b""#,
            &[get("DELETE /items/a%2Fb"), get("GET /full/a%2fb")],
        ),
        rpc: passes(
            "passes, as `%2F`",
            r#"/a%2Fb "#,
            &[
                r#"items/delete {"id":"a/b"}"#,
                r#"tools/call {"name":"read","arguments":{"key":"a/b"}}"#,
            ],
        ),
    },
    Row {
        what: "`%2F`",
        place: "a path hole of several segments",
        rest: rest(
            REFUSED,
            &[get("GET /files/a%2Fb"), get("GET /files/a/b%2fc")],
        ),
        rpc: rpc("", &[]),
    },
    Row {
        what: "NUL, a control character, a backslash",
        place: "a path hole",
        rest: rest(
            REFUSED,
            &[
                get("DELETE /items/%00"),
                get("GET /full/a%0Ab"),
                get("GET /files/a%5Cb"),
            ],
        ),
        rpc: rpc(
            INVALID,
            &[
                r#"items/delete {"id":"\u0000"}"#,
                r#"files/get {"path":"a\\b"}"#,
                r#"tools/call {"name":"read","arguments":{"key":"\n"}}"#,
            ],
        ),
    },
    Row {
        what: "malformed percent-encoding",
        place: "a path hole, a query value, a query name",
        rest: rest(
            REFUSED,
            &[
                get("DELETE /items/%"),
                get("DELETE /items/%zz"),
                get("GET /full/a%2"),
                get("GET /items?q=%"),
                get("GET /items?%zz=1"),
                get("DELETE /full?id=%g1"),
            ],
        ),
        rpc: passes(
            "passes, as text",
            r#"%25"#,
            &[r#"items/delete {"id":"%zz"}"#, r#"full/delete {"id":"%"}"#],
        ),
    },
    Row {
        what: "a scalar given twice",
        place: "the query, also in two spellings",
        rest: rest(
            REFUSED,
            &[
                get("GET /items?page=1&page=1"),
                get("GET /items?q=a&%71=b"),
                get("DELETE /full?id=1&id=2"),
                with("POST /full/7?page=1&page=2", r#"{"n":1}"#),
            ],
        ),
        rpc: rpc("", &[]),
    },
];
