//! Subscriptions of clients at an MCP server without sessions.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};

use serde_json::json;

use super::scripted::{begun, result, stateless, stream};
use super::{IN_FLIGHT, ask, before};
use crate::links::telling::{BOTH, begins, json_of, post};
use crate::scene::Called;
use crate::support::{Message, becomes};

const KEY: &str = "io.modelcontextprotocol/subscriptionId";
const LISTEN: &str = r#"{"jsonrpc":"2.0","id":"mine","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true}}}"#;

/// Acknowledges subscriptions and tells each of a change; the stream of every second one ends then.
fn serve() -> impl Fn(&Message, &Called<'_>) -> Vec<u8> + Send + Sync {
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
