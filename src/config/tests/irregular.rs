//! `unrouted_irregular`: the calls that it refuses.

use http::{HeaderMap, Method, Uri};
use proptest::prelude::*;

use super::Fixture;
use crate::config::compile::compile;
use dualgauge_model::failure::Reason;
use dualgauge_model::plan::{Plan, Unrouted};
use dualgauge_model::routing::{RequestHead, RouteMatch, match_route};

const REST: &str = "[upstream.old]\nside = 'rest'\nurl = 'http://127.0.0.1:1'\n";
const RPC: &str = "[upstream.new]\nside = 'rpc'\nurl = 'http://127.0.0.1:2/v1/mcp'\n";
const LOCAL: &str = "[rpc]\npaths = ['/mcp']\n[[local]]\nrest = 'GET /status'\nanswer = { status = 200, body = {} }\n";
const STREAM: &str = "[[stream]]\nname = 's'\nrest = 'GET /events/{id}'\nrpc = 'GET /sse/{id}'\n";
const ROUTES: &str = "[[route]]\nname = 'list'\nrest = 'GET /a/b'\nrpc = 'list'\n\
    [[route]]\nname = 'get'\nrest = 'GET /a/{id}'\nrpc = 'get'\n\
    [[route]]\nname = 'drop'\nrest = 'DELETE /a/{id}/b'\nrpc = 'drop'\n\
    [[route]]\nname = 'slashed'\nrest = 'GET /b/'\nrpc = 'slashed'\n";

fn plan(word: &str, upstreams: &str) -> Plan {
    let text = format!("unrouted_irregular = '{word}'\n{upstreams}{LOCAL}{ROUTES}");
    let config = Fixture::new(&text).config();
    compile(&config, &[]).unwrap_or_else(|problems| panic!("{problems}"))
}

/// Returns the outcome of a call: the index of its route, `passes`, `near`, or the reason of a refusal.
fn outcome(plan: &Plan, method: &Method, path: &str) -> String {
    let uri: Uri = path.parse().unwrap();
    let head = RequestHead {
        method,
        uri: &uri,
        headers: &HeaderMap::new(),
    };
    match match_route(plan, head) {
        Ok(RouteMatch::Route(place)) => place.to_string(),
        Ok(RouteMatch::ByBody(_)) => "by body".to_owned(),
        Ok(RouteMatch::Unrouted) => "passes".to_owned(),
        Ok(RouteMatch::Near(_)) => "near".to_owned(),
        Err(failure) => failure.reason.row().label.to_owned(),
    }
}

#[test]
fn irregular_paths_of_no_route_are_refused_where_the_key_says_so() {
    let both = format!("{REST}{RPC}{STREAM}");
    let [pass, reject] = ["pass", "reject"].map(|word| plan(word, &both));
    let get = |path: &'static str| (Method::GET, path);
    for (method, path) in [
        get("/A/b"),
        get("/a%2fb"),
        get("/a;x/b"),
        get("/x%5c..%5ca/b"),
        get("/Events/7"),
        get("/sse%2f7"),
        get("/Status"),
        get("/MCP"),
        (Method::POST, "/mcp%00"),
        (Method::DELETE, "/a/x%2fb"),
    ] {
        let words = [&pass, &reject].map(|plan| outcome(plan, &method, path));
        assert_eq!(words, ["passes", "irregular_path"], "{method} {path}");
    }
    for path in ["//a/b", "/x/../a/b", "/a//b", "/a/./b"] {
        let words = [&pass, &reject].map(|plan| outcome(plan, &Method::GET, path));
        assert_eq!(words, ["near", "irregular_path"], "{path}");
    }
    // A slash at the end is no irregularity, nor is an escape of a letter.
    for (path, word) in [
        ("/a/b/", "near"),
        ("/a/Q/", "near"),
        ("/%61/%62/", "near"),
        ("/b", "near"),
        ("/%62", "near"),
        ("/a/B", "1"),
        ("/a/x%2Fy", "1"),
        ("/%61/b", "0"),
        ("/mcp", "passes"),
        ("/a.b", "passes"),
        ("/C/d%2Fe", "passes"),
    ] {
        let words = [&pass, &reject].map(|plan| outcome(plan, &Method::GET, path));
        assert_eq!(words, [word, word], "{path}");
    }
}

#[test]
fn paths_that_pass_to_an_rpc_upstream_only_are_checked_too() {
    let [pass, reject] = ["pass", "reject"].map(|word| plan(word, RPC));
    for (path, refused) in [
        ("/MCP", "irregular_path"),
        ("/A/b", "irregular_path"),
        ("/.well-known/agent.json", "passes"),
    ] {
        let words = [&pass, &reject].map(|plan| outcome(plan, &Method::GET, path));
        assert_eq!(words, ["passes", refused], "{path}");
    }
}

#[test]
fn what_is_rejected_in_any_case_keeps_its_reason() {
    let plan = Plan {
        unrouted: Unrouted::Reject,
        ..plan("reject", &format!("{REST}{RPC}"))
    };
    assert_eq!(outcome(&plan, &Method::GET, "/A/b"), "route_not_found");
}

#[test]
fn a_call_is_refused_only_if_it_belongs_to_no_route_and_its_path_is_irregular() {
    let both = format!("{REST}{RPC}{STREAM}");
    let [pass, reject] = ["pass", "reject"].map(|word| plan(word, &both));
    let irregular = Reason::IrregularPath.row().label;
    let path = "(/(a|b|x|events|[a-c.]{1,2}|%61|A|a%2[fF]b|a;x|\\.\\.|%5C)?){1,4}";
    let method = prop_oneof![Just(Method::GET), Just(Method::DELETE), Just(Method::HEAD)];
    proptest!(|(path in path, method in method)| {
        let [strict, lenient] = [&pass, &reject].map(|plan| outcome(plan, &method, &path));
        if lenient == irregular {
            prop_assert!(strict == "passes" || strict == "near", "{} {}", path, strict);
            let is_odd = path.contains(['%', ';', 'A', '.']) || path.contains("//");
            prop_assert!(is_odd, "{}", path);
        } else {
            prop_assert_eq!(strict, lenient, "{}", path);
        }
    });
}
