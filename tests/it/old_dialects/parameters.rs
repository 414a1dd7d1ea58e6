//! JSON-RPC over GET with the whole message in one query parameter, as Kodi has it.

use super::{TRANSLATE, new_server};
use crate::scene::{Called, body_of, call, json};
use crate::support::{Message, Proxy, Upstream, becomes, both};

const KODI: &str = r#"
[[route]]
name   = "kodi"
effect = "safe"
old    = { method = "GET", path = "/jsonrpc", parameter = "request", body = { jsonrpc = "2.0", method = "{method}", params = "{params:object={}}", id = "{id?}" } }
rpc    = "{method}"
params = { "..." = "{params}" }

[[route.outcome]]
after = "failed"
old = { body = { id = "{>id}", jsonrpc = "2.0", result = "{result}" } }
rpc = { result = "{result}" }

[[route.outcome]]
name  = "failed"
lossy = "the data of an error"
old = { body = { id = "{>id}", jsonrpc = "2.0", error = { code = "{code:integer}", message = "{message:string}" } } }
rpc = { error = { code = "{code}", message = "{message}" } }
"#;

/// `{"jsonrpc":"2.0","method":"Player.Open","params":{"file":"a+b&c"},"id":"x"}`
const ENCODED: &str = "/jsonrpc?request=%7B%22jsonrpc%22:%222.0%22,%22method%22:%22Player.Open%22,%22params%22:%7B%22file%22:%22a%2Bb%26c%22%7D,%22id%22:%22x%22%7D";

/// An old server, which reads the message in the query only.
fn old_server() -> Upstream {
    Upstream::serving(|request| {
        assert_eq!(request.text(), "", "a GET has no content");
        json(r#"{"id":1,"jsonrpc":"2.0","result":"old"}"#)
    })
}

fn target(request: &Message) -> &str {
    request.head.start.split(' ').nth(1).unwrap()
}

#[test]
fn a_message_in_the_query_reaches_the_new_server() {
    let (old, new) = (old_server(), new_server());
    let proxy = Proxy::start(&format!("{}{KODI}{TRANSLATE}", both(&old, &new)));
    let came = proxy.rest("GET", ENCODED, &[], "");
    assert_eq!(
        body_of(&came, 200),
        r#"{"id":"x","jsonrpc":"2.0","result":{"file":"a+b&c"}}"#
    );
    assert_eq!(Called::of(&new.request()).method(), "Player.Open");
    proxy.log_line(&["route=kodi", "side=rest", "old=http", "stage=translate"]);
    // A failure repeats the id.
    let came = proxy.rest(
        "GET",
        "/jsonrpc?request=%7B%22jsonrpc%22:%222.0%22,%22method%22:%22missing%22,%22id%22:8%7D",
        &[],
        "",
    );
    assert_eq!(
        body_of(&came, 200),
        r#"{"id":8,"jsonrpc":"2.0","error":{"code":-5,"message":"none"}}"#
    );
    // Two messages are none, and no other parameter is one: such requests pass.
    for other in [&format!("{ENCODED}&request=%7B%7D"), "/jsonrpc?ask=%7B%7D"] {
        let came = proxy.rest("GET", other, &[], "");
        assert_eq!(came.json()["result"], "old");
        assert_eq!(target(old.requests().last().unwrap()), other);
    }
    assert_eq!(new.requests().len(), 2);
}

#[test]
fn a_new_call_is_written_into_the_query_for_the_old_server() {
    let (old, new) = (old_server(), new_server());
    let proxy = Proxy::start(&format!("{}{KODI}{TRANSLATE}", both(&old, &new)));
    let came = proxy.rpc(call("Player.Open", r#"{"file":"a+b&c"}"#));
    assert_eq!(came.json()["result"], "old");
    let request = old.request();
    let written = "/jsonrpc?request=%7B%22jsonrpc%22%3A%222.0%22%2C%22method%22%3A%22Player.Open%22%2C%22params%22%3A%7B%22file%22%3A%22a%2Bb%26c%22%7D%2C%22id%22%3A1%7D";
    assert_eq!(target(&request), written);
    assert_eq!(request.head.start.split(' ').next(), Some("GET"));
    // A call that does not fit into a target is refused.
    let long = format!(r#"{{"file":"{}"}}"#, "x".repeat(10_000));
    let came = proxy.rpc(call("Player.Open", &long));
    assert!(
        came.json()["error"]["message"]
            .as_str()
            .unwrap()
            .contains("longer than 8192 bytes"),
        "{came:?}"
    );
}

#[test]
fn a_message_that_passes_keeps_its_query_and_has_no_content() {
    let (old, new) = (old_server(), new_server());
    for (stage, verdicts) in [("passthrough", 0.0), ("shadow", 1.0), ("verify", 1.0)] {
        let flags = format!("[[flag]]\nname = \"f\"\nstage = \"{stage}\"\n");
        let config = format!(
            "{}{KODI}[rollout.candidates]\nnoise = 0\n",
            both(&old, &new)
        );
        let proxy = Proxy::start_with_flags(&config, &flags);
        let came = proxy.rest("GET", ENCODED, &[], "");
        assert_eq!(came.status(), 200);
        let labels = ["route", "client", "side", "stage", "verdict"];
        let compared = || {
            let table = proxy.metrics().table("dualgauge_verdicts_total", &labels);
            table.values().sum::<f64>()
        };
        becomes(compared, &verdicts);
        let requests = old.requests();
        assert_eq!(target(requests.last().unwrap()), ENCODED, "{stage}");
    }
    // Each stage has sent the message to the old server once.
    assert_eq!(old.requests().len(), 3);
}

#[test]
fn a_message_that_is_sent_again_has_no_content_though_the_client_states_a_length() {
    let (old, new) = (old_server(), new_server());
    let flags = "[[flag]]\nname = \"f\"\nstage = \"verify\"\n";
    let config = format!(
        "{}{KODI}[rollout.candidates]\nnoise = 0\n",
        both(&old, &new)
    );
    let proxy = Proxy::start_with_flags(&config, flags);
    let came = proxy.rest("GET", ENCODED, &[("content-length", "0")], "");
    assert_eq!(came.status(), 200);
    let labels = ["route", "client", "side", "stage", "verdict"];
    let verdicts = || proxy.metrics().table("dualgauge_verdicts_total", &labels);
    // Both servers have answered, each in its own way.
    let differ = [("kodi other rest verify mismatch".to_owned(), 1.0)].into();
    becomes(verdicts, &differ);
    let again = old.request();
    assert_eq!((target(&again), again.text()), (ENCODED, ""));
    assert_eq!(again.head.one("content-length"), None);
}
