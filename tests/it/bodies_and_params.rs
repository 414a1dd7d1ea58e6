//! Bodies and params of translated calls that neither side may lose: bodies of DELETE and GET, `{}` where servers
//! expect a body, a value that path and body share, and the spellings of no params and of integers.

use crate::scene::{before_rest, before_rpc, body_of, json, problem, rpc_failure, saying};
use crate::support::{Message, Proxy, Upstream};

const ROUTES: &str = r#"
[[route]]
name = "objects.delete"
rest = "DELETE /objects"
rpc = "objects/delete"
[[route]]
name = "objects.purge"
rest = "DELETE /trash"
rpc = "objects/purge"
body = { ids = "{ids}" }
params = { ids = "{ids}" }
[[route]]
name = "objects.find"
rest = "GET /find"
rpc = "objects/find"
body = { query = "{query:object}", "..." = "{others}" }
params = { query = "{query}", "..." = "{others}" }
[[route]]
name = "objects.read"
rest = "GET /objects/{id}"
rpc = "objects/read"
params = { id = "{id}" }
[[route]]
name = "objects.list"
rest = "GET /objects?limit={limit:integer?}&q={q?}"
rpc = "objects/list"
[[route]]
name = "objects.loose"
rest = "DELETE /loose"
rpc = "objects/loose"
extra = "drop"
[[route]]
name = "objects.make"
rest = "POST /objects"
rpc = "objects/make"
[[route]]
name = "objects.cancel"
rest = "POST /objects/{id}/cancel"
rpc = "objects/cancel"
body = "none"
[[route]]
name = "objects.change"
rest = "PATCH /objects/{id}"
rpc = "objects/change"
body = { id = "{=id?}", name = "{name}" }
params = { id = "{id}", name = "{name}" }
[[route]]
name = "objects.replace"
rest = "PUT /objects/{id}"
rpc = "objects/replace"
body = { id = "{=id:integer}", name = "{name}" }
params = { id = "{id}", name = "{name}" }
[[route]]
name = "objects.count"
rest = "PUT /counts/{id:integer}"
rpc = "objects/count"
body = { id = "{=id}", n = "{n:integer}" }
params = { id = "{id}", n = "{n}" }
[[route]]
name = "tool"
rest = "GET /tool?q={q?}&n={n:integer?}"
rpc = "tools/call"
params = { name = "tool", arguments = { q = "{q}", n = "{n}" } }
[[route]]
name = "maker"
rest = "POST /tool"
rpc = "tools/call"
params = { name = "maker", arguments = { q = "{q?}" } }
body = { q = "{q}" }
[[route]]
name = "argued"
rest = "POST /argued"
rpc = "tools/call"
params = { name = "argued", arguments = "{arguments={}}" }
body = "{arguments}"
"#;

fn ask(proxy: &Proxy, method: &str, params: &str) -> Message {
    proxy.rpc(crate::scene::call(method, params))
}

/// Checks that a call of an RPC client arrives as this line with this body.
#[track_caller]
fn arrives(
    upstream: &Upstream,
    proxy: &Proxy,
    (method, params): (&str, &str),
    expected: (&str, &str),
) {
    let answer = ask(proxy, method, params);
    assert!(
        answer.text().contains("\"result\""),
        "{method} {params}: {answer:?}"
    );
    let sent = upstream.requests();
    let sent = sent.last().unwrap();
    let line = format!("{} HTTP/1.1", expected.0);
    assert_eq!(
        (&*sent.head.start, sent.text()),
        (&*line, expected.1),
        "{method} {params}"
    );
}

/// Checks that a call of an RPC client is refused with these words, and not sent on.
#[track_caller]
fn refused(upstream: &Upstream, proxy: &Proxy, (method, params): (&str, &str), words: &str) {
    let before = upstream.requests().len();
    let answer = ask(proxy, method, params);
    assert_eq!(
        rpc_failure(&answer.json()),
        (-32602, "invalid_params"),
        "{answer:?}"
    );
    assert!(
        answer.text().contains(words),
        "{method} {params}: {answer:?}"
    );
    assert_eq!(upstream.requests().len(), before, "{method} {params}");
}

#[test]
fn a_call_is_never_sent_without_params_that_its_route_has_no_place_for() {
    let upstream = Upstream::answering(json("1"));
    let proxy = before_rest(&upstream, ROUTES);
    let unknown = "the route does not know it";
    refused(
        &upstream,
        &proxy,
        ("objects/delete", r#"{"ids":["a","b"]}"#),
        unknown,
    );
    refused(
        &upstream,
        &proxy,
        ("objects/list", r#"{"limit":1,"mine":true}"#),
        unknown,
    );
    refused(
        &upstream,
        &proxy,
        ("objects/read", r#"{"id":"7","mine":true}"#),
        unknown,
    );
    refused(
        &upstream,
        &proxy,
        ("objects/cancel", r#"{"id":"7","why":"x"}"#),
        unknown,
    );
    // What belongs to the protocol is no param, and a route may still say that it drops the others.
    arrives(
        &upstream,
        &proxy,
        ("objects/delete", r#"{"_meta":{"t":1}}"#),
        ("DELETE /objects", ""),
    );
    arrives(
        &upstream,
        &proxy,
        ("objects/loose", r#"{"ids":[1]}"#),
        ("DELETE /loose", ""),
    );
    proxy.log_line(&["route=objects.loose", "dropped=1"]);
}

#[test]
fn a_delete_and_a_get_carry_the_body_that_their_route_names() {
    let upstream = Upstream::answering(json("1"));
    let proxy = before_rest(&upstream, ROUTES);
    let ids = r#"{"ids":["a","b"]}"#;
    arrives(
        &upstream,
        &proxy,
        ("objects/purge", ids),
        ("DELETE /trash", ids),
    );
    let query = r#"{"query":{"match":1.0},"size":5}"#;
    arrives(
        &upstream,
        &proxy,
        ("objects/find", query),
        ("GET /find", query),
    );

    let upstream = saying(r#""result":1"#);
    let proxy = before_rpc(&upstream, ROUTES);
    for (method, path, body) in [("DELETE", "/trash", ids), ("GET", "/find", query)] {
        body_of(&proxy.rest(method, path, &[], body), 200);
        let sent = upstream.requests();
        let sent = sent.last().unwrap().text().to_owned();
        assert!(sent.contains(&format!(r#""params":{body}"#)), "{sent}");
    }
}

#[test]
fn empty_params_of_a_short_form_are_an_empty_object_unless_the_route_has_no_body() {
    let upstream = Upstream::answering(json("1"));
    let proxy = before_rest(&upstream, ROUTES);
    for params in ["{}", "[]", r#"{"_meta":{}}"#] {
        arrives(
            &upstream,
            &proxy,
            ("objects/make", params),
            ("POST /objects", "{}"),
        );
    }
    let sent = upstream.requests();
    let sent = sent.last().unwrap();
    assert_eq!(sent.head.one("content-type"), Some("application/json"));
    arrives(
        &upstream,
        &proxy,
        ("objects/cancel", r#"{"id":"7"}"#),
        ("POST /objects/7/cancel", ""),
    );
    let sent = upstream.requests();
    assert_eq!(sent.last().unwrap().head.one("content-type"), None);
    let batch = format!(
        "[{},{}]",
        crate::scene::call("objects/make", "{}"),
        crate::scene::call("objects/delete", "{}"),
    );
    let answer = proxy.rpc(batch);
    assert_eq!(answer.text().matches("\"result\"").count(), 2, "{answer:?}");
    let all = upstream.requests();
    let bodies: Vec<(&str, &str)> = all[all.len() - 2..]
        .iter()
        .map(|sent| (sent.head.start.split(' ').next().unwrap(), sent.text()))
        .collect();
    assert!(
        bodies.contains(&("POST", "{}")) && bodies.contains(&("DELETE", "")),
        "{bodies:?}"
    );
}

#[test]
fn a_route_without_content_refuses_members_of_a_body() {
    let upstream = saying(r#""result":1"#);
    let proxy = before_rpc(&upstream, ROUTES);
    body_of(&proxy.rest("POST", "/objects/7/cancel", &[], ""), 200);
    assert!(upstream.request().text().contains(r#""params":{"id":"7"}"#));
    let refused = proxy.rest("POST", "/objects/7/cancel", &[], r#"{"why":"x"}"#);
    assert_eq!(refused.status(), 400);
    let (reason, detail) = problem(&refused);
    assert_eq!(reason, "invalid_params");
    assert!(
        detail.contains("body/why: the route does not know it"),
        "{detail}"
    );
}

#[test]
fn a_body_may_repeat_the_value_of_the_path_in_any_spelling() {
    let upstream = saying(r#""result":1"#);
    let proxy = before_rpc(&upstream, ROUTES);
    for body in [
        r#"{"name":"x"}"#,
        r#"{"id":7,"name":"x"}"#,
        r#"{"id":"7","name":"x"}"#,
        r#"{"id":7.0,"name":"x"}"#,
        r#"{"name":"x","id":7}"#,
        r#"{"id":null,"name":"x"}"#,
    ] {
        body_of(&proxy.rest("PATCH", "/objects/7", &[], body), 200);
        let sent = upstream.requests();
        let sent = sent.last().unwrap().text().to_owned();
        assert!(
            sent.contains(r#""params":{"id":"7","name":"x"}"#),
            "{body}: {sent}"
        );
    }
}

#[test]
fn a_value_that_differs_between_path_and_body_is_refused() {
    let upstream = saying(r#""result":1"#);
    let proxy = before_rpc(&upstream, ROUTES);
    for (method, path, body, words) in [
        (
            "PATCH",
            "/objects/7",
            r#"{"id":8,"name":"x"}"#,
            "body/id: it differs from `id` in the path, the query or a header",
        ),
        (
            "PATCH",
            "/objects/07",
            r#"{"id":7,"name":"x"}"#,
            "body/id: it differs from `id` in the path, the query or a header",
        ),
        (
            "PATCH",
            "/objects/7",
            r#"{"id":[7],"name":"x"}"#,
            "body/id: it differs from `id` in the path, the query or a header",
        ),
        (
            "PUT",
            "/objects/7",
            r#"{"name":"x"}"#,
            "body/id: it is required",
        ),
        (
            "PUT",
            "/objects/7",
            r#"{"id":"7","name":"x"}"#,
            "body/id: it must be an integer",
        ),
        (
            "PUT",
            "/counts/7",
            r#"{"id":"8","n":1}"#,
            "body/id: it differs from `id` in the path, the query or a header",
        ),
    ] {
        let refused = proxy.rest(method, path, &[], body);
        assert_eq!(refused.status(), 400, "{body}: {refused:?}");
        let (reason, detail) = problem(&refused);
        assert_eq!(reason, "invalid_params");
        assert!(detail.contains(words), "{body}: {detail}");
    }
    assert!(upstream.requests().is_empty());
}

#[test]
fn a_value_of_path_and_body_is_compared_after_its_type() {
    let upstream = saying(r#""result":1"#);
    let proxy = before_rpc(&upstream, ROUTES);
    body_of(
        &proxy.rest("PUT", "/counts/7", &[], r#"{"id":"7","n":1e1}"#),
        200,
    );
    let sent = upstream.requests();
    assert!(
        sent.last()
            .unwrap()
            .text()
            .contains(r#""params":{"id":7,"n":10}"#)
    );
}

#[test]
fn a_value_of_path_and_body_is_written_in_the_type_of_each_place() {
    let upstream = Upstream::answering(json("1"));
    let proxy = before_rest(&upstream, ROUTES);
    let params = r#"{"id":"7","name":"x"}"#;
    arrives(
        &upstream,
        &proxy,
        ("objects/change", params),
        ("PATCH /objects/7", r#"{"name":"x"}"#),
    );
    arrives(
        &upstream,
        &proxy,
        ("objects/replace", params),
        ("PUT /objects/7", r#"{"id":7,"name":"x"}"#),
    );
    let count = r#"{"id":7.0,"n":3e0}"#;
    arrives(
        &upstream,
        &proxy,
        ("objects/count", count),
        ("PUT /counts/7", r#"{"id":7,"n":3}"#),
    );
    refused(
        &upstream,
        &proxy,
        ("objects/replace", r#"{"id":"seven","name":"x"}"#),
        "it must be an integer",
    );
}

#[test]
fn no_params_and_no_arguments_may_be_spelled_as_empty_or_null() {
    let upstream = Upstream::answering(json("1"));
    let proxy = before_rest(&upstream, ROUTES);
    arrives(
        &upstream,
        &proxy,
        ("objects/list", "[]"),
        ("GET /objects", ""),
    );
    arrives(
        &upstream,
        &proxy,
        ("objects/delete", " [ ] "),
        ("DELETE /objects", ""),
    );
    for arguments in ["null", "{}", r#"{"q":null,"n":null}"#] {
        let params = format!(r#"{{"name":"tool","arguments":{arguments}}}"#);
        arrives(
            &upstream,
            &proxy,
            ("tools/call", &params),
            ("GET /tool", ""),
        );
    }
    arrives(
        &upstream,
        &proxy,
        ("tools/call", r#"{"name":"tool"}"#),
        ("GET /tool", ""),
    );
    arrives(
        &upstream,
        &proxy,
        (
            "tools/call",
            r#"{"arguments":null,"name":"tool","_meta":{}}"#,
        ),
        ("GET /tool", ""),
    );
    arrives(
        &upstream,
        &proxy,
        ("tools/call", r#"{"name":"maker","arguments":null}"#),
        ("POST /tool", ""),
    );
    refused(
        &upstream,
        &proxy,
        ("objects/read", "[]"),
        "params/id: it is required",
    );
    refused(
        &upstream,
        &proxy,
        ("objects/list", "[1]"),
        "it must be an object, not an array",
    );
}

#[test]
fn an_integer_with_a_fraction_of_zero_is_that_integer() {
    let upstream = Upstream::answering(json("1"));
    let proxy = before_rest(&upstream, ROUTES);
    for (limit, digits) in [
        ("3", "3"),
        ("3.0", "3"),
        ("3e0", "3"),
        ("0.3e1", "3"),
        ("-0.0", "0"),
        // Digits keep their text, however many there are.
        ("18446744073709551616", "18446744073709551616"),
        ("-0", "-0"),
    ] {
        let params = format!(r#"{{"limit":{limit}}}"#);
        let line = format!("GET /objects?limit={digits}");
        arrives(&upstream, &proxy, ("objects/list", &params), (&line, ""));
    }
    for limit in ["3.5", "1e30", "-1E30", "1e400", "18446744073709551616.0"] {
        let params = format!(r#"{{"limit":{limit}}}"#);
        refused(
            &upstream,
            &proxy,
            ("objects/list", &params),
            "is not an integer",
        );
    }
}

#[test]
fn null_is_absent_where_either_side_has_an_object_as_default() {
    let upstream = Upstream::answering(json("1"));
    let proxy = before_rest(&upstream, ROUTES);
    for params in [
        r#"{"name":"argued"}"#,
        r#"{"name":"argued","arguments":{}}"#,
        r#"{"name":"argued","arguments":null}"#,
    ] {
        arrives(
            &upstream,
            &proxy,
            ("tools/call", params),
            ("POST /argued", "{}"),
        );
    }
}
