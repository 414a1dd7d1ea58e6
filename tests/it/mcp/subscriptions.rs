//! Subscriptions of clients at an MCP server without sessions.

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex};

use serde_json::{Value, json};

use super::bridge::conversions;
use super::scripted::{asked, begun, last, result, sessions_observed, stateless, stream};
use super::{IN_FLIGHT, ask, before};
use crate::links::telling::{BOTH, begins, json_of, post};
use crate::scene::{Called, call, json as json_answer};
use crate::support::{Message, Proxy, Upstream, Wire, becomes};

const KEY: &str = "io.modelcontextprotocol/subscriptionId";
const LISTEN: &str = r#"{"jsonrpc":"2.0","id":"mine","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true}}}"#;

/// Acknowledges subscriptions and tells each of a change; the stream of every second one ends then.
pub(super) fn serve() -> impl Fn(&Message, &Called<'_>) -> Vec<u8> + Send + Sync {
    let (turns, next): (_, Receiver<bool>) = channel();
    [false, true, false, true]
        .into_iter()
        .for_each(|ends| turns.send(ends).unwrap());
    let next = Mutex::new(next);
    move |_, called| {
        if called.method() != "subscriptions/listen" {
            return result(called, "1");
        }
        let id = called.id();
        let told = ["subscriptions/acknowledged", "tools/list_changed"].map(|kind| {
            let meta = format!(r#"{{"_meta":{{"{KEY}":{id}}}}}"#);
            format!(
                "data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/{kind}\",\"params\":{meta}}}\n\n"
            )
        });
        match next.lock().unwrap().recv().unwrap() {
            true => stream(&told.concat()),
            false => begun(&told.concat()),
        }
    }
}

#[test]
fn a_subscription_takes_no_slot_and_ends_as_either_end_says() {
    let server = stateless(serve());
    let proxy = before(&server, "in_flight = 1\n");
    for ends in [false, true] {
        let mut client = post(&proxy, BOTH, LISTEN);
        begins(&mut client);
        for kind in ["subscriptions/acknowledged", "tools/list_changed"] {
            let told = json_of(&mut client);
            assert_eq!(told["method"], format!("notifications/{kind}"));
            assert_eq!(told["params"]["_meta"][KEY], "mine");
        }
        assert_eq!(ask(&proxy, "any")["result"], 1);
        assert_eq!(proxy.metrics().value(IN_FLIGHT), 0.0);
        if ends {
            let end = json_of(&mut client);
            assert_eq!(end["id"], "mine");
            let wanted = json!({"resultType": "complete", "_meta": {KEY: "mine"}});
            assert_eq!(end["result"], wanted);
            assert_eq!(client.read_chunk(), None);
        } else {
            drop(client);
            proxy.log_line(&["rpc_method=subscriptions/listen", "outcome=cancelled"]);
            becomes(|| proxy.metrics().value("dualgauge_calls_in_flight"), &0.0);
        }
    }
}

/// A server with sessions whose stream tells of changes once it got `count` requests to subscribe to a resource.
pub(super) fn with_changes(count: usize) -> Upstream {
    let subscribed = Arc::<(Mutex<usize>, Condvar)>::default();
    let waits = subscribed.clone();
    let told = [
        r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:b"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"c:d"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
    ];
    let told = told.map(|told| format!("data: {told}\n\n")).concat();
    let streams = move |_: &Message| {
        let (got, changed) = &*waits;
        let wait = changed.wait_while(got.lock().unwrap(), |got| *got < count);
        drop(wait.unwrap());
        begun(&told)
    };
    let observe = move |request: &Message| {
        if request.json()["method"] == "resources/subscribe" {
            *subscribed.0.lock().unwrap() += 1;
            subscribed.1.notify_all();
        }
    };
    sessions_observed(observe, streams, |_, called| result(called, "{}"))
}

#[test]
fn a_server_with_sessions_serves_the_subscriptions_of_stateless_clients() {
    let server = with_changes(1);
    let proxy = before(&server, "");
    let body = r#"{"jsonrpc":"2.0","id":"mine","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourceSubscriptions":["a:b"]}}}"#;
    let mut client = post(&proxy, BOTH, body);
    begins(&mut client);
    let acknowledged = json_of(&mut client);
    assert_eq!(
        acknowledged["method"],
        "notifications/subscriptions/acknowledged"
    );
    let honoured = json!({ "toolsListChanged": true, "resourceSubscriptions": ["a:b"] });
    assert_eq!(acknowledged["params"]["notifications"], honoured);
    let updated = json_of(&mut client);
    assert_eq!(updated["method"], "notifications/resources/updated");
    assert_eq!(
        updated["params"],
        json!({ "uri": "a:b", "_meta": { KEY: "mine" } })
    );
    assert_eq!(
        json_of(&mut client)["method"],
        "notifications/tools/list_changed"
    );
    let params = last(&server, "resources/subscribe").json()["params"].clone();
    assert_eq!(params, json!({ "uri": "a:b" }));
    assert!(!asked(&server).iter().any(|asked| asked.contains("listen")));
    drop(client);
    becomes(
        || asked(&server).contains(&"POST resources/unsubscribe".to_owned()),
        &true,
    );
}

/// A server without sessions that acknowledges each subscription and tells of an update of each of its resources.
pub(super) fn updating() -> Upstream {
    stateless(|_, called| {
        if called.method() != "subscriptions/listen" {
            return result(called, "1");
        }
        let id = called.id();
        let params: Value = serde_json::from_str(called.params()).unwrap();
        let filter = &params["notifications"];
        let tell = |kind: &str, mut params: Value| {
            params["_meta"] = json!({ KEY: id.parse::<u64>().unwrap() });
            let message = json!({ "jsonrpc": "2.0", "method": format!("notifications/{kind}"), "params": params });
            format!("data: {message}\n\n")
        };
        let mut told = tell(
            "subscriptions/acknowledged",
            json!({ "notifications": filter }),
        );
        let resources = filter["resourceSubscriptions"].as_array();
        for uri in resources.into_iter().flatten() {
            told += &tell("resources/updated", json!({ "uri": uri }));
        }
        begun(&told)
    })
}

/// Opens the stream of the session `s`.
pub(super) fn open_stream(proxy: &Proxy) -> Wire {
    let mut wire = proxy.connect();
    wire.send(
        "GET /rpc HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\nMcp-Session-Id: s\r\n\r\n",
    );
    begins(&mut wire);
    wire
}

pub(super) fn in_session(proxy: &Proxy, method: &str, uri: &str) -> Value {
    let body = call(method, &json!({ "uri": uri }).to_string());
    post(proxy, BOTH, &body).read_answer().json()
}

pub(super) fn updated_uri(client: &mut Wire) -> String {
    let told = json_of(client);
    assert_eq!(told["method"], "notifications/resources/updated");
    told["params"]["uri"].as_str().unwrap().to_owned()
}

#[test]
fn a_client_with_a_session_hears_of_its_resources_from_a_server_without_sessions() {
    let server = updating();
    let proxy = before(&server, "");
    assert_eq!(
        in_session(&proxy, "resources/subscribe", "a:b")["result"],
        json!({})
    );
    let mut client = open_stream(&proxy);
    assert_eq!(updated_uri(&mut client), "a:b");
    let filter = || last(&server, "subscriptions/listen").json()["params"]["notifications"].clone();
    assert_eq!(filter()["toolsListChanged"], true);
    in_session(&proxy, "resources/subscribe", "c:d");
    // The response comes after the server's acknowledgement, so that no update is lost in between.
    assert_eq!(filter()["resourceSubscriptions"], json!(["a:b", "c:d"]));
    assert_eq!(
        [updated_uri(&mut client), updated_uri(&mut client)],
        ["a:b", "c:d"]
    );
    in_session(&proxy, "resources/unsubscribe", "a:b");
    assert_eq!(updated_uri(&mut client), "c:d");
    assert_eq!(filter()["resourceSubscriptions"], json!(["c:d"]));
    assert!(conversions(&proxy, "subscription") >= 3.0);
    // The next stream of the session replaces the first.
    let mut next = open_stream(&proxy);
    assert_eq!(client.read_chunk(), None);
    assert_eq!(updated_uri(&mut next), "c:d");
    assert!(proxy.stop().status.success());
}

#[test]
fn a_client_with_a_session_hears_of_its_resources_from_a_server_with_sessions() {
    // The server tells at once, before it answers the client's own request.
    let server = with_changes(1);
    let proxy = before(&server, "");
    let mut client = open_stream(&proxy);
    in_session(&proxy, "resources/subscribe", "a:b");
    // While the subscription is renewed, the former one still delivers changes of lists, so that the order is open and
    // such a change may come twice (docs/reference/mcp.md).
    let mut told = BTreeSet::new();
    while told.len() < 2 {
        let message = json_of(&mut client);
        let uri = message["params"]["uri"].as_str().map(str::to_owned);
        told.insert((message["method"].as_str().unwrap().to_owned(), uri));
    }
    let wanted = [
        ("notifications/resources/updated", Some("a:b")),
        ("notifications/tools/list_changed", None),
    ];
    let wanted = wanted.map(|(method, uri)| (method.to_owned(), uri.map(str::to_owned)));
    assert_eq!(told, BTreeSet::from(wanted));
    in_session(&proxy, "resources/unsubscribe", "a:b");
    let unsubscribed = "POST resources/unsubscribe".to_owned();
    becomes(|| asked(&server).contains(&unsubscribed), &true);
}

/// Returns the numbers of requests to subscribe to a resource, and no longer to.
fn subscriptions(server: &Upstream) -> [usize; 2] {
    let asked = asked(server);
    ["subscribe", "unsubscribe"].map(|method| {
        let wanted = format!("POST resources/{method}");
        asked.iter().filter(|asked| **asked == wanted).count()
    })
}

fn delete_session(proxy: &Proxy) -> u16 {
    let headers = [("Mcp-Session-Id", "s")];
    proxy.rest("DELETE", "/rpc", &headers, "").status()
}

#[test]
fn a_session_without_a_stream_is_unsubscribed_when_it_ends() {
    let server = with_changes(9);
    let proxy = before(&server, "");
    in_session(&proxy, "resources/subscribe", "a:b");
    assert_eq!(delete_session(&proxy), 204);
    becomes(|| subscriptions(&server)[1], &1);
    in_session(&proxy, "resources/subscribe", "a:b");
    in_session(&proxy, "resources/unsubscribe", "a:b");
    becomes(|| subscriptions(&server)[1], &2);
    // A stream that opens takes over without a new subscription. Each of the three is one of the link and one of the client.
    in_session(&proxy, "resources/subscribe", "a:b");
    let mut client = open_stream(&proxy);
    in_session(&proxy, "resources/subscribe", "a:b");
    assert_eq!(subscriptions(&server), [7, 2]);
    // The end of the session is the end of its stream.
    assert_eq!(delete_session(&proxy), 204);
    assert_eq!(client.read_chunk(), None);
    becomes(|| subscriptions(&server)[1], &3);
    assert_eq!(proxy.rest("DELETE", "/rpc", &[], "").status(), 405);
    assert!(proxy.stop().status.success());
}

#[test]
fn a_subscription_that_the_server_refuses_is_not_kept() {
    let server = sessions_observed(
        |_| {},
        |_| begun(""),
        |_, called| {
            let id = called.id();
            json_answer(format!(
                r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32002,"message":"no"}}}}"#
            ))
        },
    );
    let proxy = before(&server, "");
    let _client = open_stream(&proxy);
    let refused = in_session(&proxy, "resources/subscribe", "a:b");
    assert_eq!(refused["error"]["code"], -32002);
    becomes(|| subscriptions(&server), &[2, 1]);
}

/// Puts a proxy before another server.
fn move_to(proxy: &Proxy, server: &Upstream) {
    let path = proxy.folder().join("dualgauge.toml");
    let config = std::fs::read_to_string(&path).unwrap();
    let start = config.find("url = ").unwrap();
    let end = start + config[start..].find('\n').unwrap();
    let url = format!("url = \"http://{}/mcp\"", server.address());
    std::fs::write(path, [&config[..start], &url, &config[end..]].concat()).unwrap();
    proxy.signal("HUP");
}

#[test]
fn the_stream_of_a_session_moves_to_the_server_of_a_new_plan() {
    let (first, second) = (with_changes(9), updating());
    let proxy = before(&first, "");
    let mut client = open_stream(&proxy);
    in_session(&proxy, "resources/subscribe", "a:b");
    becomes(|| subscriptions(&first)[0], &2);
    move_to(&proxy, &second);
    assert_eq!(updated_uri(&mut client), "a:b");
    // The open stream does not keep the link to the first server.
    let ended = |server: &Upstream| {
        asked(server)
            .iter()
            .any(|asked| asked.starts_with("DELETE"))
    };
    becomes(|| ended(&first), &true);
}

#[test]
fn a_client_with_a_link_of_its_own_unsubscribes_at_the_server() {
    let server = with_changes(9);
    let proxy = super::before(&server, "authorization = \"client\"\n");
    for method in ["resources/subscribe", "resources/unsubscribe"] {
        assert_eq!(in_session(&proxy, method, "a:b")["result"], json!({}));
    }
    assert_eq!(subscriptions(&server), [1, 1]);
}

#[test]
fn a_stream_without_a_session_is_refused() {
    let proxy = before(&updating(), "");
    let headers = [("Accept", "text/event-stream")];
    assert_eq!(proxy.rest("GET", "/rpc", &headers, "").status(), 405);
}
