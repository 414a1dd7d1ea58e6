//! Streams of old RPC dialects: each event is a message of the dialect of its client.

use super::compared::streamed;
use super::{HEAD, Streamed, chunk, expect, post, rpc_call};
use crate::scene::{Called, json};
use crate::support::{Proxy, Upstream, becomes, both, rpc_only};

const OLD: &str = r#"
[[route]]
name = "follow"
old = { body = { method = "follow", task = "{task}", tag = "{id:integer}" } }
rpc = "Follow"
params = { task = "{task}" }
stream = "sse"
outcomes = "old"

[[route]]
name = "get"
old = { body = { method = "get", task = "{task}", tag = "{id:integer}" } }
rpc = "Get"
params = { task = "{task}" }
outcomes = "old"

[[outcomes.old]]
old = { body = { type = "result", ok = "{result}", tag = "{>id}" } }
rpc = { result = "{result}" }

[[outcomes.old]]
old = { body = { type = "error", no = { code = "{code:integer}", why = "{message:string}" }, tag = "{>id}" } }
rpc = { error = { code = "{code}", message = "{message}" } }
"#;

const COMPLETE: &str = r#"dualgauge_events_total{route="follow",side="rest",kind="complete"}"#;

fn old_call(method: &str, more: &str) -> String {
    let body = format!(r#"{{"method":"{method}","task":"t","tag":5}}"#);
    post("/rpc", more, &body)
}

fn open(proxy: &Proxy, upstream: &Upstream, request: &str) -> Streamed {
    let mut call = Streamed::open(proxy, upstream, request);
    call.server.send(HEAD);
    assert_eq!(call.client.read_head().status(), 200);
    call
}

#[test]
fn an_old_client_gets_each_event_in_its_dialect() {
    let upstream = Upstream::start();
    let proxy = Proxy::start(&format!("{}{OLD}", rpc_only(&upstream)));
    let mut call = open(&proxy, &upstream, &old_call("follow", ""));
    let asked = call.request.head.one("accept");
    assert_eq!(asked, Some("application/json, text/event-stream"));
    call.tell_result("{\"n\": 1.0}");
    expect(
        &mut call.client,
        "data: {\"type\":\"result\",\"ok\":{\"n\": 1.0},\"tag\":5}\n\n",
    );
    call.tell(": ping\n\n");
    expect(&mut call.client, ": ping\n\n");
    // An error is the last event, and has the type that the server gave it.
    let id = call.id();
    call.tell(&format!(
        "data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":-5,\"message\":\"gone\"}}}}\n\n"
    ));
    let last = "data: {\"type\":\"error\",\"no\":{\"code\":-5,\"why\":\"gone\"},\"tag\":5}\n\n";
    expect(&mut call.client, last);
    assert_eq!(call.client.read_chunk(), None);
    call.server.expect_gone();
    proxy.log_line(&["route=follow", "outcome=error", "code=-5", "events=2"]);
}

#[test]
fn a_failure_of_the_proxy_ends_the_stream_in_the_dialect_of_its_client() {
    let upstream = Upstream::start();
    let proxy = Proxy::start(&format!("{}{OLD}", rpc_only(&upstream)));
    let mut call = open(&proxy, &upstream, &old_call("follow", ""));
    call.tell("data: {\n\n");
    let last = String::from_utf8(call.client.read_chunk().unwrap()).unwrap();
    assert!(
        last.starts_with("data: {\"type\":\"error\",\"no\":{\"code\":-31"),
        "{last}"
    );
    assert!(last.ends_with(",\"tag\":5}\n\n"), "{last}");
    assert_eq!(call.client.read_chunk(), None);
    proxy.log_line(&["route=follow", "reason=upstream_not_json"]);
}

#[test]
fn an_rpc_client_gets_the_events_of_an_old_server() {
    let upstream = Upstream::start();
    let other = Upstream::start();
    let stages = "[rollout]\ndefault = { rpc = \"translate\" }\n";
    let proxy = Proxy::start(&format!("{}{OLD}{stages}", both(&upstream, &other)));
    let mut call = open(
        &proxy,
        &upstream,
        &rpc_call("Follow", "{\"task\":\"t\"}", "\"a\""),
    );
    call.tell("data: {\"type\":\"result\",\"ok\":[1.0],\"tag\":1}\n\n");
    let first = "data: {\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":[1.0]}\n\n";
    expect(&mut call.client, first);
    call.tell("data: {\"type\":\"error\",\"no\":{\"code\":-5,\"why\":\"gone\"},\"tag\":1}\n\n");
    let last = "event: error\ndata: {\"jsonrpc\":\"2.0\",\"id\":\"a\",\"error\":{\"code\":-5,\"message\":\"gone\"}}\n\n";
    expect(&mut call.client, last);
    assert_eq!(call.client.read_chunk(), None);
    proxy.log_line(&["side=rpc", "route=follow", "outcome=error", "events=2"]);
}

#[test]
fn an_old_client_that_reads_only_events_gets_a_complete_response_as_an_event() {
    let upstream = Upstream::serving(|request| {
        let id = Called::of(request).id().to_owned();
        json(format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\n\"error\":{{\"code\":-5,\"message\":\"none\"}}}}"
        ))
    });
    let proxy = Proxy::start(&format!("{}{OLD}", rpc_only(&upstream)));
    let answered = |accept: &str| {
        let mut client = proxy.connect();
        client.send(old_call("follow", &format!("Accept: {accept}\r\n")));
        let came = client.read_answer();
        (
            came.head.one("content-type").map(str::to_owned),
            came.text().to_owned(),
        )
    };
    let error = r#"{"type":"error","no":{"code":-5,"why":"none"},"tag":5}"#;
    let events = (
        Some("text/event-stream".to_owned()),
        format!("data: {error}\n\n"),
    );
    assert_eq!(answered("text/event-stream"), events);
    proxy.log_line(&["route=follow", "code=-5", "events=1"]);
    let complete = (Some("application/json".to_owned()), error.to_owned());
    assert_eq!(answered("application/json, text/event-stream"), complete);
    assert_eq!(answered("text/event-stream, */*"), complete);
    assert_eq!(proxy.metrics().value(COMPLETE), 1.0);
    // A failure of the proxy has the same form.
    let odd = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1\r\n\r\n1";
    let proxy = Proxy::start(&format!("{}{OLD}", rpc_only(&Upstream::answering(odd))));
    let mut client = proxy.connect();
    client.send(old_call("follow", "Accept: text/event-stream\r\n"));
    let came = client.read_answer();
    assert_eq!(came.head.one("content-type"), Some("text/event-stream"));
    assert!(
        came.text()
            .starts_with("data: {\"type\":\"error\",\"no\":{\"code\":-31"),
        "{came:?}"
    );
    proxy.log_line(&["reason=upstream_not_protocol", "events=1"]);
    assert_eq!(proxy.metrics().value(COMPLETE), 1.0);
}

#[test]
fn a_complete_response_as_an_event_is_compared_with_the_events_of_the_old_server() {
    for (result, verdict) in [("1.0", "match"), ("2", "mismatch")] {
        let event = "data: {\"type\":\"result\",\"ok\":1,\"tag\":5}\n\n";
        let old = Upstream::answering(streamed(event));
        let new = Upstream::serving(move |request| {
            let id = Called::of(request).id().to_owned();
            json(format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#
            ))
        });
        let routes = OLD.replacen("stream = ", "effect = \"safe\"\nstream = ", 1);
        let config = format!(
            "{}{routes}[rollout.candidates]\nnoise = 0\n",
            both(&old, &new)
        );
        let flags = "[[flag]]\nname = \"f\"\nstage = \"shadow\"\n";
        let proxy = Proxy::start_with_flags(&config, flags);
        let mut client = proxy.connect();
        client.send(old_call("follow", "Accept: text/event-stream\r\n"));
        assert_eq!(client.read_answer().text(), event);
        let labels = ["route", "client", "side", "stage", "verdict"];
        let verdicts = || proxy.metrics().table("dualgauge_verdicts_total", &labels);
        let expected = [(format!("follow other rest shadow {verdict}"), 1.0)].into();
        becomes(verdicts, &expected);
        // No client has got the event of the candidate.
        let labels = ["route", "side", "kind"];
        let events = proxy.metrics().table("dualgauge_events_total", &labels);
        assert!(events.is_empty(), "{events:?}");
    }
}

#[test]
fn an_old_route_streams_only_if_it_says_so_and_never_in_a_batch() {
    let upstream = Upstream::answering(format!("{HEAD}{}", chunk("data: 1\n\n")));
    let proxy = Proxy::start(&format!("{}{OLD}", rpc_only(&upstream)));
    // `upstream_stream`.
    let refused = Some(-31075);
    let mut client = proxy.connect();
    client.send(old_call("get", "Accept: text/event-stream\r\n"));
    assert_eq!(client.read_answer().json()["no"]["code"].as_i64(), refused);
    let batch = r#"[{"method":"follow","task":"t","tag":5}]"#;
    let came = proxy.rest("POST", "/rpc", &[("accept", "text/event-stream")], batch);
    assert_eq!(came.json()[0]["no"]["code"].as_i64(), refused);
    // The client may refuse streams.
    let mut client = proxy.connect();
    client.send(old_call("follow", "Accept: application/json\r\n"));
    assert_eq!(client.read_answer().json()["no"]["code"].as_i64(), refused);
}
