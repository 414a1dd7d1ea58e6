//! What a server tells by itself, and who hears it, where all clients share one link.

use serde_json::{Value, json};

use super::ends::{End, accept, connect};
use super::{before, post, strays};
use crate::mcp::scripted::{begun, result, sessions_with_streams};
use crate::scene::call;
use crate::stdio;
use crate::support::{Proxy, Upstream, becomes};

/// Log messages of no call are for all.
pub(crate) const BROADCAST: &str = "log_messages = \"broadcast\"\n";

fn fate(proxy: &Proxy, upstream: &str, fate: &str) -> f64 {
    let series =
        format!(r#"dualgauge_link_notifications_total{{upstream="{upstream}",fate="{fate}"}}"#);
    proxy.metrics().value(&series)
}

fn ask(client: &mut End, id: u64, params: &str) {
    client.say(format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"do","params":{params}}}"#
    ));
}

/// A call, and its answer.
fn asked(client: &mut End, server: &mut End) {
    ask(client, 1, "{}");
    let heard = server.hear();
    server.echo(&heard);
    assert_eq!(client.hear()["id"], 1);
}

fn progress(token: &Value, done: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{done}}}}}"#
    )
}

#[test]
fn the_progress_of_a_call_is_told_to_its_caller_alone() {
    let upstream = Upstream::start();
    let proxy = before(&upstream, "");
    let mut server = accept(&upstream);
    let mut clients = [connect(&proxy), connect(&proxy)];
    let mut calls = Vec::new();
    for (place, client) in clients.iter_mut().enumerate() {
        let params = format!(r#"{{"place":{place},"_meta":{{"progressToken":7,"x":1.0}}}}"#);
        ask(client, 1, &params);
        calls.push(server.hear());
    }
    let tokens: Vec<Value> = calls
        .iter()
        .map(|call| call["params"]["_meta"]["progressToken"].clone())
        .collect();
    assert_ne!(tokens[0], tokens[1]);
    // Neither a token that is a client's own, nor one of nobody, reaches anybody.
    server.say(progress(&json!(7), "0.1"));
    server.say(progress(&json!("other"), "0.1"));
    server.say(progress(&tokens[1], "0.50"));
    assert_eq!(clients[1].hear_text(), progress(&json!(7), "0.50"));
    for (place, client) in clients.iter_mut().enumerate() {
        server.echo(&calls[place]);
        assert_eq!(client.hear()["result"]["got"]["place"], place);
    }
    // Nobody waits for it any more.
    server.say(progress(&tokens[1], "0.9"));
    becomes(|| fate(&proxy, "socket", "nobody"), &3.0);
    assert_eq!(fate(&proxy, "socket", "told"), 1.0);
    assert_eq!(strays(&proxy, "notified"), 4.0);
}

#[test]
fn what_is_everybodys_is_told_to_those_who_have_asked_something() {
    let upstream = Upstream::start();
    let proxy = before(&upstream, BROADCAST);
    let mut server = accept(&upstream);
    let (mut one, mut other, mut silent) = (connect(&proxy), connect(&proxy), connect(&proxy));
    for client in [&mut one, &mut other] {
        asked(client, &mut server);
    }
    let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    let logged = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info"}}"#;
    for told in [changed, logged] {
        server.say(told);
        assert_eq!(one.hear_text(), told);
        assert_eq!(other.hear_text(), told);
    }
    // What may be one client's is nobody's.
    server.say(r#"{"jsonrpc":"2.0","method":"event/x","params":[1]}"#);
    becomes(|| fate(&proxy, "socket", "nobody"), &1.0);
    assert_eq!(fate(&proxy, "socket", "told"), 4.0);
    asked(&mut silent, &mut server);
    drop(one);
    becomes(
        || proxy.metrics().value("dualgauge_client_connections"),
        &2.0,
    );
    server.say(changed);
    assert_eq!(other.hear_text(), changed);
    assert_eq!(silent.hear_text(), changed);
}

#[test]
fn a_log_message_of_no_call_reaches_nobody_unless_it_is_configured() {
    let upstream = Upstream::start();
    let proxy = before(&upstream, "");
    let mut server = accept(&upstream);
    let mut clients = [connect(&proxy), connect(&proxy)];
    for client in &mut clients {
        asked(client, &mut server);
    }
    ask(&mut clients[0], 2, "{}");
    let heard = server.hear();
    // It may be about the call of the other client, or of one whose call is over.
    server.say(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"secret"}}"#);
    server.echo(&heard);
    assert_eq!(clients[0].hear()["id"], 2);
    asked(&mut clients[1], &mut server);
    assert_eq!(fate(&proxy, "socket", "nobody"), 1.0);
    assert_eq!(fate(&proxy, "socket", "told"), 0.0);
}

#[test]
fn a_client_that_only_listens_hears_what_its_own_socket_tells() {
    let upstream = Upstream::start();
    let proxy = before(&upstream, "sharing = \"client\"\n");
    let mut ends = [(); 2].map(|()| {
        let client = connect(&proxy);
        (client, accept(&upstream))
    });
    for (place, (client, server)) in ends.iter_mut().enumerate() {
        for method in ["event/x", "notifications/message"] {
            let told = format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":[{place}]}}"#);
            server.say(told.clone());
            assert_eq!(client.hear_text(), told);
        }
        // A call goes over the socket that is there.
        asked(client, server);
    }
    let starts = r#"dualgauge_link_starts_total{upstream="socket"}"#;
    assert_eq!(proxy.metrics().value(starts), 2.0);
    let [(client, server), _] = ends;
    drop(client);
    assert_eq!(server.end(), Some(1001));
}

#[test]
fn who_posts_is_told_nothing_and_it_is_counted() {
    let upstream = Upstream::start();
    let proxy = before(&upstream, "");
    let mut server = accept(&upstream);
    let mut client = post(&proxy, &call("do", r#"{"_meta":{"progressToken":7}}"#));
    let heard = server.hear();
    assert_eq!(heard["params"]["_meta"]["progressToken"], 7);
    server.say(progress(&json!(7), "1"));
    server.echo(&heard);
    assert_eq!(client.read_answer().status(), 200);
    becomes(|| fate(&proxy, "socket", "nobody"), &1.0);
}

#[test]
fn a_client_that_reads_nothing_misses_what_is_told_and_it_is_counted() {
    let upstream = Upstream::start();
    let proxy = before(&upstream, BROADCAST);
    let mut server = accept(&upstream);
    let mut client = connect(&proxy);
    asked(&mut client, &mut server);
    let long = "x".repeat(256 * 1024);
    let logged =
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/message","params":"{long}"}}"#);
    for _ in 0..128 {
        server.say(logged.clone());
    }
    becomes(|| strays(&proxy, "notified"), &128.0);
    let (told, missed) = (
        fate(&proxy, "socket", "told"),
        fate(&proxy, "socket", "crowded"),
    );
    assert!(missed > 0.0 && told + missed == 128.0, "{told} {missed}");
}

#[test]
fn what_a_child_tells_reaches_clients_on_sockets() {
    let proxy = stdio::before_child(BROADCAST);
    let mut client = connect(&proxy);
    client.say(r#"{"jsonrpc":"2.0","id":1,"method":"chatter","params":{}}"#);
    let told = client.hear();
    assert_eq!(told["method"], "notifications/message");
    assert_eq!(told["params"]["level"], "error");
    assert_eq!(client.hear()["id"], 1);
    assert_eq!(fate(&proxy, "child", "told"), 1.0);
}

#[test]
fn what_an_mcp_server_tells_reaches_clients_on_sockets() {
    let server = sessions_with_streams(
        |_| begun(": here\n\n"),
        |_, called| {
            let told = r#"{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}"#;
            let answer = String::from_utf8(result(called, "1")).unwrap();
            let body = answer.split("\r\n\r\n").nth(1).unwrap();
            begun(&format!("data: {told}\n\ndata: {body}\n\n"))
        },
    );
    let proxy = crate::mcp::before(&server, "");
    let mut client = connect(&proxy);
    ask(&mut client, 1, "{}");
    assert_eq!(
        client.hear()["method"],
        "notifications/prompts/list_changed"
    );
    assert_eq!(client.hear()["id"], 1);
    assert_eq!(fate(&proxy, "m", "told"), 1.0);
}
