//! Lists in one text, in a path and in a query, as they are on the wire of either side.

use crate::scene::{before_rest, before_rpc, call, json, problem, saying};
use crate::support::Upstream;

const ROUTES: &str = r#"
[[route]]
name = "lists"
rest = "GET /lists/{ids:integer[,]}?p={p:string[|]?}&s={s:string[ ]?}"
rpc = "lists"
"#;

#[test]
fn lists_in_one_text_are_arrays_on_the_other_side() {
    let rpc = saying(r#""result":1"#);
    let from_rest = before_rpc(&rpc, ROUTES);
    let rest = Upstream::answering(json("1"));
    let from_rpc = before_rest(&rest, ROUTES);
    for (target, params) in [
        ("/lists/1,2", r#"{"ids":[1,2]}"#),
        (
            "/lists/3?p=a%7Cb%2Cc&s=d%20e",
            r#"{"ids":[3],"p":["a","b,c"],"s":["d","e"]}"#,
        ),
    ] {
        assert_eq!(from_rest.rest("GET", target, &[], "").status(), 200);
        let requests = rpc.requests();
        let sent = requests.last().unwrap();
        let called = format!(r#""method":"lists","params":{params}}}"#);
        assert!(sent.text().ends_with(&called), "{}", sent.text());

        let answer = from_rpc.rpc(call("lists", params));
        assert_eq!(answer.json()["result"], 1, "{answer:?}");
        let requests = rest.requests();
        let sent = requests.last().unwrap();
        assert_eq!(sent.head.start, format!("GET {target} HTTP/1.1"));
    }
}

#[test]
fn a_list_that_may_mean_two_is_the_mistake_of_its_caller() {
    let rpc = saying(r#""result":1"#);
    let proxy = before_rpc(&rpc, ROUTES);
    let answer = proxy.rest("GET", "/lists/1?p=a%7Cb|c", &[], "");
    assert_eq!(answer.status(), 400, "{answer:?}");
    let (_, detail) = problem(&answer);
    assert!(detail.contains("either may separate"), "{detail}");
    assert!(rpc.requests().is_empty());
}
