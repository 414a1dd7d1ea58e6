//! A link that a client has for itself and that is lost: the client hears of it, since its server has forgotten it.

use std::net::SocketAddr;

use serde_json::json;

use crate::scene::{call, rpc_failure};
use crate::support::{Proxy, Upstream, becomes};
use crate::websocket::before;
use crate::websocket::ends::{End, accept, accept_asked, connect};

const OWN: &str = "sharing = \"client\"\n";
const STARTS: &str = r#"dualgauge_link_starts_total{upstream="socket"}"#;
const WAITING: &str = r#"dualgauge_link_calls_in_flight{upstream="socket",state="waiting"}"#;
const UP: &str = r#"dualgauge_link_up{upstream="socket"}"#;

fn ask(client: &mut End, id: u64) {
    client.say(format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"do","params":[{id}]}}"#
    ));
}

/// A client that has a socket of its own, which has served a call.
fn served(upstream: &Upstream, proxy: &Proxy) -> (End, End) {
    let mut client = connect(proxy);
    ask(&mut client, 0);
    let mut server = accept(upstream);
    let heard = server.hear();
    server.echo(&heard);
    assert_eq!(client.hear()["id"], 0);
    (client, server)
}

fn is_told(client: End) {
    let (code, reason) = client.farewell().unwrap();
    assert_eq!(code, 1001);
    assert!(reason.contains("`socket`"), "{reason}");
}

#[test]
fn a_client_that_only_listens_is_closed_when_its_own_socket_is_lost() {
    let upstream = Upstream::start();
    let proxy = before(&upstream, OWN);
    let (client, server) = served(&upstream, &proxy);
    drop(server);
    is_told(client);
    // There is no other one in its place.
    becomes(|| proxy.metrics().series().contains(&UP), &false);
    assert_eq!(proxy.metrics().value(STARTS), 1.0);
    proxy.log_line(&["the link is lost", "socket"]);
}

#[test]
fn open_calls_fail_and_what_was_told_is_heard_before_the_client_is_closed() {
    let upstream = Upstream::start();
    let proxy = before(&upstream, "sharing = \"client\"\nin_flight = 2\n");
    let (mut client, mut server) = served(&upstream, &proxy);
    for id in 1..=3 {
        ask(&mut client, id);
    }
    server.hear();
    server.hear();
    // One that comes behind the loss is answered before what was told.
    becomes(|| proxy.metrics().value(WAITING), &1.0);
    let told = r#"{"jsonrpc":"2.0","method":"event/x","params":[1]}"#;
    server.say(told);
    drop(server);
    assert_eq!(client.hear_text(), told);
    let mut failed: Vec<_> = (1..=3).map(|_| client.hear()).collect();
    failed.sort_by_key(|failed| failed["id"].as_u64());
    let reasons: Vec<_> = failed.iter().map(rpc_failure).collect();
    // The last was never written.
    let cut = (-31023, "upstream_cut");
    assert_eq!(reasons, [cut, cut, (-31021, "upstream_unreachable")]);
    is_told(client);
}

#[test]
fn other_clients_stay_when_one_loses_its_socket() {
    let upstream = Upstream::start();
    let proxy = before(&upstream, OWN);
    let (one, first) = served(&upstream, &proxy);
    let (mut other, mut second) = served(&upstream, &proxy);
    drop(first);
    is_told(one);
    ask(&mut other, 7);
    let heard = second.hear();
    second.echo(&heard);
    assert_eq!(other.hear()["result"]["got"], json!([7]));
}

#[test]
fn a_client_whose_socket_was_never_there_stays() {
    let upstream = Upstream::nowhere();
    let proxy = before(
        &upstream,
        "sharing = \"client\"\nconnect_timeout = \"50ms\"\n",
    );
    let mut client = connect(&proxy);
    for id in 0..2 {
        ask(&mut client, id);
        assert_eq!(rpc_failure(&client.hear()).1, "upstream_unreachable");
    }
    let upstream = upstream.appears();
    let mut server = accept(&upstream);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let heard = server.hear();
            server.echo(&heard);
        });
        let answer = crate::support::eventually("the server", || {
            ask(&mut client, 3);
            let answer = client.hear();
            answer["result"].is_object().then_some(answer)
        });
        assert_eq!(answer["id"], 3);
    });
}

#[test]
fn who_posts_gets_another_socket_with_the_next_call() {
    let upstream = Upstream::start();
    let proxy = before(&upstream, OWN);
    let mut wire = proxy.connect();
    let body = call("do", "[]");
    let post = format!(
        "POST /rpc HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    wire.send(post.clone());
    let mut server = accept(&upstream);
    server.hear();
    drop(server);
    let failed = wire.read_answer().json();
    assert_eq!(rpc_failure(&failed), (-31023, "upstream_cut"));
    wire.send(post);
    let mut server = accept(&upstream);
    let heard = server.hear();
    server.echo(&heard);
    assert!(wire.read_answer().json()["result"].is_object());
}

#[test]
fn an_upstream_whose_clients_have_sockets_of_their_own_is_not_down_without_clients() {
    let upstream = Upstream::start();
    let proxy = before(&upstream, OWN);
    assert!(!proxy.metrics().series().contains(&UP));
    let (client, _server) = served(&upstream, &proxy);
    assert_eq!(proxy.metrics().value(UP), 1.0);
    drop(client);
    becomes(|| proxy.metrics().series().contains(&UP), &false);
    // One that all share is down as long as it is not there.
    let nowhere = before(&Upstream::nowhere(), "");
    assert_eq!(nowhere.metrics().value(UP), 0.0);
}

/// Writes the configuration anew, and waits until it is in force.
fn reload(proxy: &Proxy, (address, name, keys): (SocketAddr, &str, &str)) {
    plan(proxy, (&format!("ws://{address}/live"), name, keys));
}

fn plan(proxy: &Proxy, (url, name, keys): (&str, &str, &str)) {
    let reloads = r#"dualgauge_plan_reloads_total{result="ok"}"#;
    let before = proxy.metrics().value(reloads);
    let config = format!(
        "[listen]\nworkers = 2\n[upstream.{name}]\nside = \"rpc\"\nurl = \"{url}\"\n{keys}"
    );
    std::fs::write(proxy.folder().join("dualgauge.toml"), config).unwrap();
    proxy.signal("HUP");
    becomes(|| proxy.metrics().value(reloads), &(before + 1.0));
}

#[test]
fn a_client_keeps_its_own_socket_over_a_reload_that_changes_times_and_numbers() {
    let upstream = Upstream::start();
    let proxy = before(&upstream, OWN);
    let (mut client, mut server) = served(&upstream, &proxy);
    let keys = "sharing = \"client\"\ntimeout = \"29s\"\nconnections = 2\n";
    reload(&proxy, (upstream.address(), "socket", keys));
    ask(&mut client, 1);
    let heard = server.hear();
    assert_eq!(heard["params"], json!([1]));
    server.echo(&heard);
    assert_eq!(client.hear()["id"], 1);
    // Who comes now is served as the plan says, and those that were there are counted.
    let (_other, mut new) = served(&upstream, &proxy);
    let mut third = connect(&proxy);
    ask(&mut third, 0);
    assert_eq!(rpc_failure(&third.hear()).1, "upstream_busy");
    let event = r#"{"jsonrpc":"2.0","method":"notifications/message","params":[1]}"#;
    new.say(event.replace("[1]", "[2]"));
    server.say(event);
    assert_eq!(client.hear_text(), event);
    drop(server);
    is_told(client);
}

#[test]
fn a_client_whose_server_is_planned_no_more_is_let_go_and_says_nothing_to_any_other() {
    for change in [
        ("elsewhere", "socket", OWN),
        ("here", "socket", ""),
        (
            "here",
            "socket",
            "sharing = \"client\"\ncredentials = \"drop\"\n",
        ),
        (
            "here",
            "socket",
            "sharing = \"client\"\n[upstream.socket.headers]\nX-Tenant = \"b\"\n",
        ),
    ] {
        let (upstream, elsewhere) = (Upstream::start(), Upstream::start());
        let proxy = before(&upstream, OWN);
        let (mut client, mut server) = served(&upstream, &proxy);
        ask(&mut client, 1);
        let heard = server.hear();
        let (place, name, keys) = change;
        let planned = match place {
            "here" => &upstream,
            _ => &elsewhere,
        };
        reload(&proxy, (planned.address(), name, keys));
        proxy.log_line(&["accepts no more calls", "socket"]);
        ask(&mut client, 2);
        assert_eq!(
            rpc_failure(&client.hear()).1,
            "upstream_unreachable",
            "{change:?}"
        );
        server.echo(&heard);
        assert_eq!(client.hear()["id"], 1);
        is_told(client);
        assert_eq!(server.end(), Some(1001));
        // Who comes again is served as the plan says now.
        let _served = served(planned, &proxy);
    }
}

#[test]
fn a_client_whose_server_was_never_there_is_let_go_where_a_reload_names_another() {
    let nowhere = Upstream::nowhere();
    let proxy = before(
        &nowhere,
        "sharing = \"client\"\nconnect_timeout = \"50ms\"\n",
    );
    let mut client = connect(&proxy);
    ask(&mut client, 0);
    assert_eq!(rpc_failure(&client.hear()).1, "upstream_unreachable");
    let upstream = Upstream::start();
    reload(&proxy, (upstream.address(), "socket", OWN));
    is_told(client);
    let _served = served(&upstream, &proxy);
}

#[test]
fn a_client_whose_upstream_takes_posts_now_asks_nothing_there_before_it_is_let_go() {
    let (upstream, http) = (Upstream::start(), Upstream::start());
    let proxy = before(&upstream, OWN);
    let (mut client, mut server) = served(&upstream, &proxy);
    ask(&mut client, 1);
    let heard = server.hear();
    let url = format!("http://{}/rpc", http.address());
    plan(&proxy, (&url, "socket", "[rpc]\nwebsocket = true\n"));
    proxy.log_line(&["accepts no more calls", "socket"]);
    ask(&mut client, 2);
    assert_eq!(rpc_failure(&client.hear()).1, "upstream_unreachable");
    http.expect_no_connection();
    server.echo(&heard);
    assert_eq!(client.hear()["id"], 1);
    is_told(client);
}

#[test]
fn a_client_is_let_go_though_its_server_is_planned_again_meanwhile() {
    let (upstream, other) = (Upstream::start(), Upstream::start());
    let proxy = before(&upstream, "sharing = \"client\"\nconnections = 1\n");
    let (mut client, mut server) = served(&upstream, &proxy);
    ask(&mut client, 1);
    let heard = server.hear();
    reload(&proxy, (other.address(), "socket", OWN));
    reload(&proxy, (upstream.address(), "socket", OWN));
    ask(&mut client, 2);
    assert_eq!(rpc_failure(&client.hear()).1, "upstream_unreachable");
    server.echo(&heard);
    assert_eq!(client.hear()["id"], 1);
    is_told(client);
    let _served = served(&upstream, &proxy);
}

#[test]
fn a_secret_that_is_renewed_in_its_file_is_for_the_sockets_of_later() {
    let upstream = Upstream::start();
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "Bearer old\n").unwrap();
    let keys = format!("{OWN}headers = {{ authorization = {{ file = {token:?} }} }}\n");
    let proxy = before(&upstream, &keys);
    let (mut client, mut server) = served(&upstream, &proxy);
    std::fs::write(&token, "Bearer new\n").unwrap();
    reload(&proxy, (upstream.address(), "socket", &keys));
    ask(&mut client, 1);
    let heard = server.hear();
    server.echo(&heard);
    assert_eq!(client.hear()["id"], 1);
    let mut other = connect(&proxy);
    ask(&mut other, 0);
    let (_server, asked) = accept_asked(&upstream);
    assert_eq!(asked.headers()["authorization"], "Bearer new");
}

#[test]
fn a_client_whose_upstream_is_configured_no_more_is_closed_behind_its_answers() {
    let upstream = Upstream::start();
    let proxy = before(&upstream, OWN);
    let (mut client, mut server) = served(&upstream, &proxy);
    ask(&mut client, 1);
    let heard = server.hear();
    reload(&proxy, (upstream.address(), "other", OWN));
    server.echo(&heard);
    assert_eq!(client.hear()["id"], 1);
    is_told(client);
    assert_eq!(server.end(), Some(1001));
}
