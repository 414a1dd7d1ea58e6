//! Routes with `old`: what they are, and the problems of their keys.

use super::{BOTH, problems};

const DONE: &str = "[[route.outcome]]\nold = { body = { result = '{result}', tag = '{>id}' } }\nrpc = { result = '{result}' }\n";

/// Returns the problems of one old route, spelled `old = { … }` with these parts.
fn refused(parts: &str) -> String {
    problems(&route(parts))
}

fn route(parts: &str) -> String {
    format!("{BOTH}[[route]]\nname = 'a'\nold = {{ {parts} }}\nrpc = 'run'\n{DONE}")
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
