//! Posted calls whose clients hear how far they are: in the stream of events that the answer is then.

use std::sync::Mutex;
use std::sync::mpsc::channel;

use serde_json::{Value, json};

use crate::mcp::scripted::{begun, response, result, stateless, with_sessions};
use crate::scene::{Called, call, rpc_failure};
use crate::stdio;
use crate::support::{Message, Proxy, Upstream, Wire, becomes};
use crate::websocket::ends::{End, accept, connect};
use crate::websocket::told::BROADCAST;

pub(crate) const BOTH: &str = "application/json, text/event-stream";
pub(crate) const TOKEN: &str = r#"{"_meta":{"progressToken":7}}"#;
const OPEN: &str = "dualgauge_calls_in_flight";

/// Posts a call of a client that reads these types, and does not wait for its answer.
pub(crate) fn post(proxy: &Proxy, accept: &str, body: &str) -> Wire {
    let length = body.len();
    let mut wire = proxy.connect();
    wire.send(format!(
        "POST /rpc HTTP/1.1\r\nHost: a\r\nAccept: {accept}\r\nMcp-Session-Id: s\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    ));
    wire
}

pub(crate) fn token(call: &Value) -> Value {
    call["params"]["_meta"]["progressToken"].clone()
}

pub(crate) fn progress(token: &Value, done: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{done}}}}}"#
    )
}

/// The head of a stream of events.
pub(crate) fn begins(client: &mut Wire) {
    let head = client.read_head();
    assert_eq!(head.status(), 200, "{head}");
    assert_eq!(head.one("content-type"), Some("text/event-stream"));
    assert_eq!(head.one("cache-control"), Some("no-cache"));
    assert_eq!(head.one("x-accel-buffering"), Some("no"));
}

/// The next event, as the text of its message.
pub(crate) fn event(client: &mut Wire) -> String {
    let mut came = String::new();
    while !came.ends_with("\n\n") {
        came += &String::from_utf8(client.read_chunk().unwrap()).unwrap();
    }
    let data = came.strip_prefix("event: message\ndata: ").unwrap();
    data.trim_end().to_owned()
}

pub(crate) fn json_of(client: &mut Wire) -> Value {
    serde_json::from_str(&event(client)).unwrap()
}

fn upstream() -> (Upstream, Proxy, End) {
    let upstream = Upstream::start();
    let keys = format!("handshake = \"mcp\"\n{BROADCAST}");
    let proxy = crate::websocket::before(&upstream, &keys);
    let mut server = accept(&upstream);
    server.greet();
    (upstream, proxy, server)
}

#[test]
fn who_posts_hears_how_far_its_own_call_is_before_the_answer() {
    let (_upstream, proxy, mut server) = upstream();
    let mut clients = Vec::new();
    let mut calls = Vec::new();
    for _ in 0..2 {
        clients.push(post(&proxy, BOTH, &call("do", TOKEN)));
        calls.push(server.hear());
    }
    // What two clients have chosen is told apart.
    assert_ne!(token(&calls[0]), token(&calls[1]));
    server.say(progress(&token(&calls[1]), "0.50"));
    begins(&mut clients[1]);
    assert_eq!(event(&mut clients[1]), progress(&json!(7), "0.50"));
    let logged = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info"}}"#;
    server.say(logged);
    begins(&mut clients[0]);
    for client in &mut clients {
        assert_eq!(event(client), logged);
    }
    // What comes right before the answer stands before it.
    server.say(progress(&token(&calls[1]), "1"));
    for (place, client) in clients.iter_mut().enumerate().rev() {
        server.echo(&calls[place]);
        if place == 1 {
            assert_eq!(event(client), progress(&json!(7), "1"));
        }
        let answer = json_of(client);
        assert_eq!(answer["id"], 1);
        assert!(answer["result"]["got"].is_object(), "{answer}");
        assert_eq!(client.read_chunk(), None);
    }
    let told = r#"dualgauge_link_notifications_total{upstream="socket",fate="told"}"#;
    assert_eq!(proxy.metrics().value(told), 4.0);
    proxy.log_line(&["rpc_method=do", "outcome=success", "status=200"]);
    becomes(|| proxy.metrics().value(OPEN), &0.0);
}

#[test]
fn where_nothing_is_told_or_wanted_the_answer_is_json() {
    let (_upstream, proxy, mut server) = upstream();
    for (accept, params, told) in [
        (BOTH, TOKEN, false),
        ("application/json", TOKEN, true),
        ("*/*", TOKEN, true),
        (BOTH, "{}", true),
        (BOTH, r#"{"progressToken":7}"#, true),
    ] {
        let mut client = post(&proxy, accept, &call("do", params));
        let heard = server.hear();
        if told {
            server.say(progress(&token(&heard), "0.5"));
            server.say(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#);
        }
        server.echo(&heard);
        let answer = client.read_answer();
        assert_eq!(answer.head.one("content-type"), Some("application/json"));
        assert_eq!(answer.json()["id"], 1, "{accept} {params}");
    }
    // A batch has one answer for all.
    let batch = format!("[{}]", call("do", TOKEN));
    let mut client = post(&proxy, BOTH, &batch);
    let heard = server.hear();
    server.say(progress(&token(&heard), "0.5"));
    server.echo(&heard);
    assert_eq!(client.read_answer().json()[0]["id"], 1);
}

#[test]
fn a_failure_after_something_was_told_is_the_last_event() {
    let (_upstream, proxy, mut server) = upstream();
    let mut client = post(&proxy, BOTH, &call("do", TOKEN));
    let heard = server.hear();
    server.say(progress(&token(&heard), "0.5"));
    begins(&mut client);
    event(&mut client);
    drop(server);
    let failure = json_of(&mut client);
    assert_eq!(rpc_failure(&failure), (-31023, "upstream_cut"));
    assert_eq!(failure["id"], 1);
    assert_eq!(client.read_chunk(), None);
    proxy.log_line(&["outcome=failed", "reason=upstream_cut"]);
}

#[test]
fn a_client_that_leaves_its_stream_or_recalls_its_call_cancels_it() {
    let (_upstream, proxy, mut server) = upstream();
    for leaves in [true, false] {
        let mut client = post(&proxy, BOTH, &call("do", TOKEN));
        let heard = server.hear();
        server.say(progress(&token(&heard), "0.5"));
        begins(&mut client);
        event(&mut client);
        if leaves {
            drop(client);
        } else {
            let cancelled =
                r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
            assert_eq!(post(&proxy, BOTH, cancelled).read_answer().status(), 202);
            assert_eq!(client.read_chunk(), None);
        }
        let told = server.hear();
        assert_eq!(told["method"], "notifications/cancelled");
        assert_eq!(told["params"]["requestId"], heard["id"]);
        becomes(|| proxy.metrics().value(OPEN), &0.0);
    }
    becomes(|| proxy.log().matches("outcome=cancelled").count(), &2);
}

#[test]
fn what_an_mcp_server_tells_in_the_stream_of_a_call_reaches_who_posted_it() {
    let server = with_sessions(|request, called| {
        let token = token(&request.json());
        let answer = response(called, "1");
        begun(&format!(
            "data: {}\n\ndata: {answer}\n\n",
            progress(&token, "0.5")
        ))
    });
    let proxy = crate::mcp::before(&server, "");
    let mut client = post(&proxy, BOTH, &call("work", TOKEN));
    begins(&mut client);
    assert_eq!(event(&mut client), progress(&json!(7), "0.5"));
    assert_eq!(json_of(&mut client)["result"], 1);
    assert_eq!(client.read_chunk(), None);
}

const LOGGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"secret"}}"#;

/// Logs in the response stream of `log`; `wait` is answered when the test says so.
fn logs(wait: impl Fn() + Send + Sync) -> impl Fn(&Message, &Called<'_>) -> Vec<u8> + Send + Sync {
    move |_, called| match called.method() {
        "log" => begun(&format!(
            "data: {LOGGED}\n\ndata: {}\n\n",
            response(called, "1")
        )),
        "wait" => {
            wait();
            result(called, "2")
        }
        _ => result(called, "3"),
    }
}

#[test]
fn what_an_mcp_server_logs_of_a_call_reaches_its_caller_alone() {
    for sessions in [true, false] {
        let (release, released) = channel::<()>();
        let released = Mutex::new(released);
        let calls = logs(move || released.lock().unwrap().recv().unwrap());
        let server = match sessions {
            true => with_sessions(calls),
            false => stateless(calls),
        };
        let proxy = crate::mcp::before(&server, BROADCAST);
        let mut others = [connect(&proxy), connect(&proxy)];
        let asked = |client: &mut End, method| {
            client.say(call(method, "{}"));
            client.hear()
        };
        for other in &mut others {
            assert_eq!(asked(other, "any")["id"], 1);
        }
        let mut listens = post(&proxy, BOTH, &call("wait", TOKEN));
        for params in ["{}", TOKEN] {
            let mut client = post(&proxy, BOTH, &call("log", params));
            begins(&mut client);
            assert_eq!(event(&mut client), LOGGED);
            assert_eq!(json_of(&mut client)["result"], 1);
            assert_eq!(client.read_chunk(), None);
        }
        // One that reads no streams gets the answer alone.
        let mut client = post(&proxy, "application/json", &call("log", "{}"));
        assert_eq!(client.read_answer().json()["result"], 1);
        let [one, other] = &mut others;
        one.say(call("log", "{}"));
        assert_eq!(one.hear_text(), LOGGED);
        assert_eq!(one.hear()["result"], 1);
        assert_eq!(asked(other, "any")["result"], 3);
        release.send(()).unwrap();
        let answer = listens.read_answer();
        assert_eq!(answer.head.one("content-type"), Some("application/json"));
        assert_eq!(answer.json()["result"], 2);
        let fate = |fate| {
            let series =
                format!(r#"dualgauge_link_notifications_total{{upstream="m",fate="{fate}"}}"#);
            proxy.metrics().value(&series)
        };
        assert_eq!((fate("told"), fate("nobody")), (3.0, 1.0));
    }
}

#[test]
fn what_a_child_tells_reaches_who_posted_a_call() {
    let proxy = stdio::before_child(BROADCAST);
    let mut client = post(&proxy, BOTH, &call("chatter", TOKEN));
    begins(&mut client);
    assert_eq!(json_of(&mut client)["params"]["level"], "error");
    assert_eq!(json_of(&mut client)["id"], 1);
}

#[test]
fn over_a_socket_of_its_own_a_client_hears_as_well() {
    let upstream = Upstream::start();
    let proxy = crate::websocket::before(&upstream, "sharing = \"client\"\n");
    let mut client = post(&proxy, BOTH, &call("do", TOKEN));
    let mut server = accept(&upstream);
    let heard = server.hear();
    server.say(progress(&token(&heard), "0.5"));
    begins(&mut client);
    assert_eq!(event(&mut client), progress(&json!(7), "0.5"));
    server.echo(&heard);
    assert_eq!(json_of(&mut client)["id"], 1);
}
