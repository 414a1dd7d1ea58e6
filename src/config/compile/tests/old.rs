//! Routes with `old`: what they are, and the problems of their keys.

use http::Request;

use super::{BOTH, plan, problems};
use dualgauge_model::dialect;
use dualgauge_model::plan::Plan;
use dualgauge_model::route::Segments;
use dualgauge_model::routing::RequestHead;
use dualgauge_patterns::json::Json;

const OLD: &str =
    "[[route]]\nname = 'a'\nold = { body = { command = 'run', tag = '{id?}' } }\nrpc = 'run'\n";
const DONE: &str = "[[route.outcome]]\nold = { body = { result = '{result}', tag = '{>id}' } }\nrpc = { result = '{result}' }\n";

/// Returns the problems of one old route, spelled `old = { … }` with these parts.
fn refused(parts: &str) -> String {
    problems(&route(parts))
}

fn route(parts: &str) -> String {
    format!("{BOTH}[[route]]\nname = 'a'\nold = {{ {parts} }}\nrpc = 'run'\n{DONE}")
}

fn is_old(plan: &Plan, path: &str, message: &'static str) -> bool {
    let (head, ()) = Request::post(path).body(()).unwrap().into_parts();
    let message = Json::literal(message);
    dialect::is_old(plan, RequestHead::new(&head), &message)
}

/// Returns the problems of a route with these parts of `pass`.
fn refused_pass(parts: &str) -> String {
    refused(&format!(
        "body = {{ command = 'run', tag = '{{id?}}' }}, pass = {{ {parts} }}"
    ))
}

#[test]
fn headers_of_the_connection_do_not_pass() {
    let names = [
        "content-length",
        "transfer-encoding",
        "connection",
        "host",
        "content-encoding",
        "proxy-authorization",
        "accept",
        "accept-encoding",
        "x-forwarded-for",
    ];
    for name in names {
        let expected = format!(
            "9: route[0].old.pass.headers[1]: `{name}` belongs to a single connection or is written by the proxy, so it cannot pass"
        );
        let upper = name.to_ascii_uppercase();
        for name in [name, &upper] {
            let refused = refused_pass(&format!("status = 409, headers = ['x-a', '{name}']"));
            assert_eq!(refused, expected);
        }
    }
    assert_eq!(
        refused_pass("status = 409, headers = ['content-type']"),
        "9: route[0].old.pass.headers[0]: `content-type` always passes with such responses, and requests have that of the translated body; leave it out"
    );
}

#[test]
fn a_wrong_part_of_pass_hides_no_other_one() {
    assert_eq!(
        refused_pass("status = 200, headers = ['x-a', 'a b']"),
        "9: route[0].old.pass.headers[1]: `a b` is not an HTTP header name\n\
         9: route[0].old.pass.status: the number `200` is not a whole number from 400 to 599"
    );
}

#[test]
fn a_wrong_from_names_the_form_of_the_route() {
    let rest = "rest = 'POST /run'\n";
    let frame = "frame = { command = 'run' }\n";
    let message = "old = { message = { command = 'run' } }\n";
    let old = "old = { body = { command = 'run' } }\n";
    let cases = [
        (rest, "frame", "rest"),
        (rest, "old", "rest"),
        (frame, "rest", "frame"),
        (frame, "old", "frame"),
        (message, "rest", "old"),
        (message, "frame", "old"),
        (old, "rest", "old"),
        (old, "frame", "old"),
    ];
    for (left, from, form) in cases {
        let main =
            format!("{BOTH}[[route]]\nname = 'a'\n{left}rpc = 'run'\nfrom = '{from}'\n{DONE}");
        let expected = format!("route[0].from: the route has no `{from}`; write `{form}` or `rpc`");
        let found = problems(&main);
        assert!(found.contains(&expected), "{left}: {found}");
    }
}

#[test]
fn problems_of_an_old_message_have_its_key() {
    let cases = [
        (
            "message = { command = 'run', tag = '{other}' }",
            "9: route[0].old.message: the hole `other` is on the rest side only",
        ),
        (
            "message = {}",
            "route[0].old.message: a message must be an object with a member that identifies it, such as `{ command = \"run\" }`",
        ),
        (
            "method = 'post', body = { command = 'run' }",
            "route[0].old.method: `post` is not an HTTP method",
        ),
        (
            "method = 'CONNECT', body = { command = 'run' }",
            "route[0].old.method: CONNECT opens a tunnel and cannot be a route",
        ),
    ];
    for (parts, expected) in cases {
        let found = refused(parts);
        assert!(found.contains(expected), "{parts}: {found}");
    }
}

#[test]
fn an_id_that_the_proxy_cannot_write_is_refused() {
    for hole in ["id:enum(a|b)", "id:object", "id:boolean", "id:array"] {
        let found = refused(&format!("body = {{ command = 'run', tag = '{{{hole}}}' }}"));
        let is_refused =
            found.contains("route[0].old: the proxy writes `1` as the id, which is not ");
        assert!(is_refused, "{hole}: {found}");
    }
    for hole in [
        "id",
        "id?",
        "id:string",
        "id:integer?",
        "id:number",
        "id:enum(1|2)",
    ] {
        plan(&route(&format!(
            "body = {{ command = 'run', tag = '{{{hole}}}' }}"
        )));
    }
    // No call from the other side is written.
    let one_way = route("body = { command = 'run', tag = '{id:enum(a|b)}' }");
    plan(&one_way.replace("rpc = 'run'\n", "rpc = 'run'\nfrom = 'old'\n"));
}

#[test]
fn headers_of_calls_over_a_link_are_located_at_their_key() {
    let main = format!("{BOTH}{OLD}rpc_headers = {{ x-a = 'a' }}\n{DONE}")
        .replace("http://127.0.0.1:9002/rpc", "ws://127.0.0.1:9002/rpc");
    let found = problems(&main);
    assert!(
        found.contains("11: route[0].rpc_headers: `rpc_headers` cannot reach the upstream `new`"),
        "{found}"
    );
}

#[test]
fn the_path_of_an_rpc_server_is_literal() {
    let paths = "[rpc]\npaths = ['/rpc', '/a{b}']\n";
    let plan = plan(&format!("{paths}{BOTH}{OLD}{DONE}"));
    for (path, expected) in [("/rpc", true), ("/a%7Bb%7D", true), ("/axx", false)] {
        let segments = Segments::split(path);
        let found = plan.routes.old_at(&http::Method::POST, &segments);
        assert_eq!(found.is_some(), expected, "{path}");
    }
    let first = "[rpc]\npaths = ['/a{b']\n";
    super::plan(&format!("{first}{BOTH}{OLD}{DONE}"));
}

#[test]
fn a_repeated_rpc_path_is_no_fault_of_its_routes() {
    let paths = "[rpc]\npaths = ['/rpc', '/rpc', '/%72pc']\n";
    assert_eq!(
        problems(&format!("{paths}{BOTH}{OLD}{DONE}")),
        "2: rpc.paths[1]: the path `/rpc` is given twice; see rpc.paths[0]\n\
         2: rpc.paths[2]: the path `/%72pc` is given twice; see rpc.paths[0]"
    );
}

/// An old route whose messages are JSON-RPC 2.0 calls as well.
const SAME: &str = "old = { PATHbody = { jsonrpc = '2.0', method = '{method}', params = '{params:array=[]}', id = '{id?}' } }\n";

#[test]
fn only_messages_on_an_rpc_path_can_be_taken_for_json_rpc() {
    let main = |path: &str| {
        let old = SAME.replace("PATH", path);
        format!(
            "{BOTH}[[route]]\nname = 'a'\n{old}rpc = '{{method}}'\nparams = ['{{params...}}']\n{DONE}"
        )
    };
    plan(&main("path = '/legacy', "));
    let refused = [
        "",
        "path = '/rpc', ",
        "path = '/{method}', ",
        "path = '/rpc/', ",
    ];
    for path in refused {
        let found = problems(&main(path));
        assert!(found.contains("cannot distinguish"), "{path}: {found}");
    }
}

#[test]
fn messages_without_a_route_stay_json_rpc_where_unrouted_calls_do_not_pass() {
    let unknown = r#"{"command":"other"}"#;
    for (unrouted, expected) in [
        ("passthrough", true),
        ("reject", false),
        ("unavailable", false),
    ] {
        let plan = plan(&format!("unrouted = '{unrouted}'\n{BOTH}{OLD}{DONE}"));
        assert_eq!(is_old(&plan, "/rpc", unknown), expected, "{unrouted}");
        assert!(is_old(&plan, "/rpc", r#"{"command":"run"}"#), "{unrouted}");
    }
}

#[test]
fn a_batch_of_old_messages_has_at_most_the_allowed_number() {
    let plan = plan(&format!("limits.batch = 2\n{BOTH}{OLD}{DONE}"));
    let one = r#"{"command":"run"}"#;
    for (count, expected) in [(0, false), (1, true), (2, true), (3, false)] {
        let batch = format!("[{}]", vec![one; count].join(","));
        assert_eq!(is_old(&plan, "/rpc", batch.leak()), expected, "{count}");
    }
}

#[test]
fn a_rest_route_beside_an_old_one_knows_no_old_messages() {
    let plain = "[[route]]\nname = 'plain'\nrest = 'POST /{at}'\nbody = { kind = 'new' }\nrpc = 'plain'\nparams = { at = '{at}' }\n";
    let plan = plan(&format!(
        "unrouted = 'reject'\n{BOTH}{OLD}after = ['plain']\n{DONE}{plain}"
    ));
    assert!(is_old(&plan, "/rpc", r#"{"command":"run"}"#));
    assert!(!is_old(&plan, "/rpc", r#"{"kind":"new"}"#));
}
