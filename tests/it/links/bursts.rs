//! Much that a server tells at once: a client that reads loses nothing of it.

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::telling::{BOTH, TOKEN, begins, event, json_of, post, progress, token};
use crate::scene::call;
use crate::support::{Proxy, Upstream, becomes};
use crate::websocket::before;
use crate::websocket::ends::{End, accept, connect};
use crate::websocket::told::BROADCAST;

const OWN: &str = "sharing = \"client\"\n";

fn fate(proxy: &Proxy, fate: &str) -> f64 {
    let series =
        format!(r#"dualgauge_link_notifications_total{{upstream="socket",fate="{fate}"}}"#);
    proxy.metrics().value(&series)
}

/// A call, and its answer, so that the server knows the client.
fn asked(client: &mut End, server: &mut End) {
    client.say(call("do", "{}"));
    let heard = server.hear();
    server.echo(&heard);
    assert_eq!(client.hear()["id"], 1);
}

fn line(number: u64, load: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"line":{number},"load":"{load}"}}}}"#
    )
}

/// All that was told is counted as told. What a client is told is counted right behind it, so that it may know first.
fn is_told_all(proxy: &Proxy, count: f64) {
    becomes(|| fate(proxy, "told"), &count);
    assert_eq!(fate(proxy, "crowded"), 0.0);
}

fn hears_all(client: &mut End, count: u64) {
    for number in 0..count {
        assert_eq!(client.hear()["params"]["line"], number);
    }
}

#[test]
fn a_client_that_reads_hears_all_of_a_burst_on_its_own_socket_and_on_a_shared_one() {
    for keys in [OWN, BROADCAST] {
        let upstream = Upstream::start();
        let proxy = before(&upstream, keys);
        let mut client = connect(&proxy);
        if keys == OWN {
            client.say(r#"{"jsonrpc":"2.0","method":"hello"}"#);
        }
        let mut server = accept(&upstream);
        if keys == OWN {
            server.hear();
        }
        asked(&mut client, &mut server);
        for count in [300, 5_000] {
            std::thread::scope(|scope| {
                scope.spawn(|| (0..count).for_each(|number| server.say(line(number, ""))));
                hears_all(&mut client, count);
            });
        }
        is_told_all(&proxy, 5_300.0);
    }
}

#[test]
fn a_client_that_reads_late_hears_all_that_its_own_socket_tells() {
    let upstream = Upstream::start();
    let proxy = before(&upstream, OWN);
    let mut client = connect(&proxy);
    client.say(call("do", "{}"));
    let mut server = accept(&upstream);
    let heard = server.hear();
    server.echo(&heard);
    assert_eq!(client.hear()["id"], 1);
    let load = "x".repeat(64 * 1024);
    let count = 800;
    std::thread::scope(|scope| {
        // More than any buffer takes: the server is held up until the client reads.
        scope.spawn(|| (0..count).for_each(|number| server.say(line(number, &load))));
        becomes(|| fate(&proxy, "told") > 20.0, &true);
        hears_all(&mut client, count);
    });
    is_told_all(&proxy, 800.0);
}

#[test]
fn pings_are_answered_while_a_client_reads_nothing() {
    let upstream = Upstream::start();
    let proxy = before(&upstream, OWN);
    let mut client = connect(&proxy);
    client.say(call("do", "{}"));
    let mut server = accept(&upstream);
    let heard = server.hear();
    server.echo(&heard);
    client.hear();
    // The client is stuck in the first, and the others wait for it.
    server.say(line(0, &"x".repeat(15 * 1024 * 1024)));
    for number in 1..=300 {
        server.say(line(number, ""));
    }
    server.send(Message::Ping("are you there".into()));
    assert_eq!(server.next(), Message::Pong("are you there".into()));
    hears_all(&mut client, 301);
}

#[test]
fn one_that_reads_nothing_of_a_shared_socket_misses_what_others_hear() {
    let upstream = Upstream::start();
    let proxy = before(&upstream, BROADCAST);
    let mut server = accept(&upstream);
    let (mut slow, mut client) = (connect(&proxy), connect(&proxy));
    asked(&mut slow, &mut server);
    asked(&mut client, &mut server);
    let load = "x".repeat(256 * 1024);
    // More than sockets and the proxy keep for one that does not read.
    let count = 200;
    for number in 0..count {
        server.say(line(number, &load));
        assert_eq!(client.hear()["params"]["line"], number);
    }
    becomes(|| fate(&proxy, "told") + fate(&proxy, "crowded"), &400.0);
    assert!(fate(&proxy, "crowded") > 0.0);
    assert_eq!(proxy.log().matches("a client is too slow").count(), 1);
    // It hears the first of them, in their order, and what comes when it reads again.
    let heard = 400 - count - fate(&proxy, "crowded") as u64;
    hears_all(&mut slow, heard);
    server.say(line(count, ""));
    assert_eq!(slow.hear()["params"]["line"], count);
}

#[test]
fn who_posts_hears_all_of_a_burst_before_the_answer() {
    for keys in [
        "handshake = \"mcp\"\n",
        "handshake = \"mcp\"\nsharing = \"client\"\n",
    ] {
        let upstream = Upstream::start();
        let proxy = before(&upstream, keys);
        let mut client = post(&proxy, BOTH, &call("do", TOKEN));
        let mut server = accept(&upstream);
        server.greet();
        let heard = server.hear();
        let token: Value = token(&heard);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                (0..5_000).for_each(|done| server.say(progress(&token, &done.to_string())));
                server.echo(&heard);
            });
            begins(&mut client);
            for done in 0..5_000 {
                assert_eq!(event(&mut client), progress(&json!(7), &done.to_string()));
            }
            assert_eq!(json_of(&mut client)["id"], 1);
            assert_eq!(client.read_chunk(), None);
        });
        assert_eq!(fate(&proxy, "crowded"), 0.0);
    }
}
