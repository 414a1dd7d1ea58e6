//! Logins on WebSockets, before a server that refuses calls without one, as TrueNAS does.

use serde_json::{Value, json};

use super::ends::{End, accept, connect_with};
use super::{before, failure, metric, post};
use crate::scene::body_of;
use crate::support::{Proxy, Upstream, becomes};

/// The login of an upstream; the key is in a file beside the configuration.
const LOGIN: &str = "login = { method = \"auth.login_with_api_key\", params = [\"{file:key}\"] }\n";

const KEY: &str = "1-s3cret";

fn logins(proxy: &Proxy, result: &str) -> f64 {
    let series = format!(r#"dualgauge_link_logins_total{{upstream="socket",result="{result}"}}"#);
    metric(proxy, &series)
}

fn before_with_key(upstream: &Upstream, keys: &str) -> Proxy {
    let address = upstream.address();
    let config = format!(
        "[listen]\nworkers = 2\n[upstream.socket]\nside = \"rpc\"\nurl = \"ws://{address}/live\"\n{LOGIN}{keys}"
    );
    Proxy::start_with(&config, &[("key", &format!("{KEY}\n"))])
}

/// Answers the next call: a login with the right key with true, any other with false, another call with its params
/// once there was a login. Returns the call.
fn serve(server: &mut End, is_logged_in: &mut bool) -> Value {
    let call = server.hear();
    let id = &call["id"];
    let response = match call["method"].as_str() {
        Some("auth.login_with_api_key") => {
            *is_logged_in = call["params"] == json!([KEY]);
            json!({ "jsonrpc": "2.0", "id": id, "result": *is_logged_in })
        }
        _ if *is_logged_in => json!({ "jsonrpc": "2.0", "id": id, "result": call["params"] }),
        _ => {
            json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32001, "message": "ENOTAUTHENTICATED" } })
        }
    };
    server.say(response.to_string());
    call
}

/// Accepts connections until one brings a login. On a loaded machine a short time limit of the proxy ends some before.
fn accept_login(upstream: &Upstream) -> (End, Value) {
    loop {
        let Some(mut server) = End::of(upstream.accept()) else {
            continue;
        };
        if let Some(login) = server.heard() {
            return (server, serde_json::from_str(&login).unwrap());
        }
    }
}

fn ask(proxy: &Proxy, number: u64) -> crate::support::Wire {
    let body = format!(r#"{{"jsonrpc":"2.0","id":{number},"method":"do","params":[{number}]}}"#);
    post(proxy, &body)
}

fn result(number: u64) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{number},"result":[{number}]}}"#)
}

#[test]
fn a_shared_socket_logs_in_before_its_first_call_and_after_each_reconnect() {
    let upstream = Upstream::start();
    let proxy = before_with_key(&upstream, "");
    for number in [1, 2] {
        let mut server = accept(&upstream);
        let mut client = ask(&proxy, number);
        let mut is_logged_in = false;
        let login = serve(&mut server, &mut is_logged_in);
        assert_eq!(login["method"], "auth.login_with_api_key");
        assert!(is_logged_in, "{login}");
        serve(&mut server, &mut is_logged_in);
        // The ids of the client are its own.
        let found: Value = serde_json::from_str(body_of(&client.read_answer(), 200)).unwrap();
        let wanted: Value = serde_json::from_str(&result(number)).unwrap();
        assert_eq!(found, wanted);
        drop(server);
    }
    becomes(|| logins(&proxy, "ok"), &2.0);
    assert!(!proxy.log().contains("s3cret"), "{}", proxy.log());
}

#[test]
fn a_refused_login_is_tried_again_and_reported() {
    let upstream = Upstream::start();
    let proxy = before_with_key(&upstream, "connect_timeout = \"300ms\"\n");
    let (mut server, login) = accept_login(&upstream);
    let error = json!({ "code": 207, "message": format!("the key {KEY} is not known") });
    server.say(json!({ "jsonrpc": "2.0", "id": login["id"], "error": error }).to_string());
    becomes(|| logins(&proxy, "refused"), &1.0);
    proxy.log_line(&[
        "the link is lost",
        "the server refused the login: it answered with the error 207",
    ]);
    let (code, reason) = failure(&mut ask(&proxy, 7));
    assert_eq!((code, reason.as_str()), (-31021, "upstream_unreachable"));
    proxy.log_line(&["cannot log in at the upstream `socket`"]);
    let (mut server, login) = accept_login(&upstream);
    server.say(json!({ "jsonrpc": "2.0", "id": login["id"], "result": true }).to_string());
    becomes(|| logins(&proxy, "ok"), &1.0);
    assert!(!proxy.log().contains("s3cret"), "{}", proxy.log());
}

#[test]
fn a_result_that_is_not_expected_is_a_refusal() {
    let upstream = Upstream::start();
    let address = upstream.address();
    let login = "login = { method = \"auth.login_ex\", params = [\"{file:key}\"], expect = { response_type = \"SUCCESS\" } }";
    let config = format!(
        "[upstream.socket]\nside = \"rpc\"\nurl = \"ws://{address}/live\"\nconnect_timeout = \"300ms\"\n{login}\n"
    );
    let proxy = Proxy::start_with(&config, &[("key", KEY)]);
    for (response_type, counted) in [("AUTH_ERR", "refused"), ("SUCCESS", "ok")] {
        let (mut server, login) = accept_login(&upstream);
        let result = json!({ "response_type": response_type, "user": KEY });
        server.say(json!({ "jsonrpc": "2.0", "id": login["id"], "result": result }).to_string());
        becomes(|| logins(&proxy, counted), &1.0);
    }
    proxy.log_line(&["the server refused the login: its result does not match `expect`"]);
    assert!(!proxy.log().contains("s3cret"), "{}", proxy.log());
}

#[test]
fn a_slow_login_is_counted() {
    let upstream = Upstream::start();
    let proxy = before_with_key(&upstream, "start_timeout = \"200ms\"\n");
    let (_server, _login) = accept_login(&upstream);
    becomes(|| logins(&proxy, "timeout") >= 1.0, &true);
    proxy.log_line(&["the link is lost", "did not answer the login in time"]);
}

#[test]
fn a_cut_login_is_counted() {
    let upstream = Upstream::start();
    let proxy = before_with_key(&upstream, "");
    let mut server = accept(&upstream);
    server.hear();
    drop(server);
    becomes(|| logins(&proxy, "cut"), &1.0);
    proxy.log_line(&["the link is lost"]);
}

#[test]
fn each_client_logs_in_with_its_own_credentials() {
    let upstream = Upstream::start();
    let login =
        "login = { method = \"auth.login_with_api_key\", params = [\"{authorization:bearer}\"] }\n";
    let proxy = before(
        &upstream,
        &format!("sharing = \"client\"\n{login}[rpc]\nwebsocket = true\n"),
    );
    // `post` sends the token `mine`.
    let mut client = ask(&proxy, 1);
    let mut server = accept(&upstream);
    let call = server.hear();
    assert_eq!(call["params"], json!(["mine"]));
    server.say(json!({ "jsonrpc": "2.0", "id": call["id"], "result": true }).to_string());
    serve(&mut server, &mut true);
    assert_eq!(client.read_answer().status(), 200);
    // Another token on the same connection gets another socket.
    let body = r#"{"jsonrpc":"2.0","id":2,"method":"do","params":[]}"#;
    let length = body.len();
    client.send(format!(
        "POST /rpc HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer other\r\nContent-Length: {length}\r\n\r\n{body}"
    ));
    let mut second = accept(&upstream);
    let call = second.hear();
    assert_eq!(call["params"], json!(["other"]));
    // A refusal is told at once, and the socket is not opened again.
    second.say(json!({ "jsonrpc": "2.0", "id": call["id"], "result": false }).to_string());
    let answer = client.read_answer();
    assert_eq!(
        answer.json()["error"]["data"]["reason"],
        "unauthenticated",
        "{answer:?}"
    );
    assert_eq!(second.heard(), None);
    // Without a token no socket is opened.
    client.send(format!(
        "POST /rpc HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{body}"
    ));
    assert_eq!(
        client.read_answer().json()["error"]["data"]["reason"],
        "unauthenticated"
    );
    // A client on a WebSocket logs in with the headers of its handshake.
    let (mut socket, _) = connect_with(&proxy, &[("authorization", "Bearer third")]);
    let mut server = accept(&upstream);
    let call = server.hear();
    assert_eq!(call["params"], json!(["third"]));
    server.say(json!({ "jsonrpc": "2.0", "id": call["id"], "result": false }).to_string());
    assert_eq!(socket.heard(), None);
    becomes(|| logins(&proxy, "refused"), &2.0);
    assert!(!proxy.log().contains("Bearer"), "{}", proxy.log());
}
