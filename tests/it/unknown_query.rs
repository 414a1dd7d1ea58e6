//! Query names that a route does not know: translated calls are refused, and shadow tells of them before the flip.

use crate::scene::{before_rpc, body_of, json, problem, saying};
use crate::support::{Proxy, Upstream, becomes, both};

const ROUTES: &str = r#"
[[route]]
name = "items.list"
rest = "GET /items?page={page:integer?}"
rpc = "items/list"
[[route]]
name = "items.make"
rest = "POST /items"
rpc = "items/make"
[[route]]
name = "dropping"
rest = "GET /dropping"
rpc = "dropping"
extra = "drop"
[[route]]
name = "own"
rest = "POST /own"
rpc = "own"
ignore_query = ["x-*", "debug"]
"#;

#[test]
fn unknown_query_names_of_a_translated_call_are_refused_by_name() {
    let upstream = Upstream::start();
    let proxy = before_rpc(&upstream, ROUTES);
    for (method, target, words) in [
        (
            "GET",
            "/items?page=1&sort=a",
            "query parameter `sort`: the route `items.list` does not know it",
        ),
        (
            "GET",
            "/items?b=1&a=2&b=3&utm_x=4",
            "query parameters `b`, `a`: the route `items.list` does not know them",
        ),
        ("GET", "/items?%73ort", "`sort`"),
        ("HEAD", "/items?sort=a", ""),
        ("POST", "/items?sort=a", "query parameter `sort`"),
        (
            "POST",
            "/own?gclid=1&x-a=2",
            "query parameter `gclid`: the route `own`",
        ),
    ] {
        let answer = proxy.rest(method, target, &[], "");
        assert_eq!(answer.status(), 400, "{method} {target}");
        if method != "HEAD" {
            let (reason, told) = problem(&answer);
            assert_eq!(reason, "unknown_query", "{target}");
            assert!(told.contains(words), "{target}: {told}");
        }
    }
    let many: Vec<String> = (0..50).map(|at| format!("n{at}=1")).collect();
    let answer = proxy.rest("GET", &format!("/items?{}", many.join("&")), &[], "");
    let (_, told) = problem(&answer);
    assert!(
        told.contains("`n7`, …:") && !told.contains("`n8`"),
        "{told}"
    );
    upstream.expect_no_connection();
}

#[test]
fn names_that_are_ignored_and_routes_that_drop_are_counted() {
    let upstream = saying(r#""result":1"#);
    let proxy = before_rpc(&upstream, ROUTES);
    for (method, target) in [
        ("GET", "/items?utm_source=a&gclid=b&fbclid=c&_=d"),
        ("GET", "/dropping?a=1&b=2&gclid=3&d=4"),
        ("POST", "/own?x-a=1&x-=2&debug&debug=1"),
    ] {
        body_of(&proxy.rest(method, target, &[], ""), 200);
    }
    for route in ["items.list", "dropping", "own"] {
        let series = format!("dualgauge_dropped_members_total{{route=\"{route}\"}}");
        becomes(|| proxy.metrics().value(&series), &4.0);
    }
    let config = format!(
        "ignore_query = []\n{}{ROUTES}",
        crate::support::rpc_only(&upstream)
    );
    let proxy = Proxy::start(&config);
    assert_eq!(proxy.rest("GET", "/items?gclid=1", &[], "").status(), 400);
}

#[test]
fn unknown_query_names_pass_through_and_fail_the_candidate_of_a_call_in_shadow() {
    let rest = Upstream::answering(json("{}"));
    let rpc = saying(r#""result":{}"#);
    let config = format!("{}{ROUTES}", both(&rest, &rpc));
    let flags = "[[flag]]\nname = \"f\"\nstage = \"shadow\"\n";
    let proxy = Proxy::start_with_flags(&config, flags);
    body_of(&proxy.rest("GET", "/items?sort=a", &[], ""), 200);
    assert_eq!(rest.request().head.start, "GET /items?sort=a HTTP/1.1");
    let labels = ["route", "reason"];
    let failed = || {
        proxy
            .metrics()
            .table("dualgauge_candidates_failed_total", &labels)
    };
    becomes(
        failed,
        &[("items.list unknown_query".to_owned(), 1.0)].into(),
    );
    let labels = ["route", "client", "side", "stage", "verdict"];
    let verdicts = || proxy.metrics().table("dualgauge_verdicts_total", &labels);
    becomes(
        verdicts,
        &[(
            "items.list other rest shadow candidate-failed".to_owned(),
            1.0,
        )]
        .into(),
    );
    assert!(rpc.requests().is_empty());
}
