//! Responses that stream in the stages that compare: event by event, as far as both were read.

use crate::scene::{Called, json};
use crate::support::{Message, Proxy, Upstream, both, chunked, eventually};

const ROUTES: &str = r#"
[[route]]
name = "watch"
rest = "GET /tasks/{id}"
rpc = "WatchTask"
stream = "sse"
"#;

/// A complete response with these events.
pub(super) fn streamed(events: &str) -> Vec<u8> {
    [super::HEAD.as_bytes(), &chunked(&[events.as_bytes()])].concat()
}

/// A REST server that streams these bodies.
fn rest(bodies: &'static [&'static str]) -> Upstream {
    let events: String = bodies
        .iter()
        .map(|body| format!("id: 1\ndata: {body}\n\n"))
        .collect();
    Upstream::answering(streamed(&events))
}

/// An RPC server that streams these results.
fn rpc(results: &'static [&'static str]) -> Upstream {
    Upstream::serving(move |request| {
        let id = Called::of(request).id().to_owned();
        let events = results.iter().map(|result| {
            format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n\n")
        });
        streamed(&events.collect::<String>())
    })
}

fn shadowing(rest: &Upstream, rpc: &Upstream, bounds: &str) -> Proxy {
    in_stage("shadow", &both(rest, rpc), bounds)
}

fn verifying(rest: &Upstream, rpc: &Upstream) -> Proxy {
    in_stage("verify", &both(rest, rpc), "")
}

fn in_stage(stage: &str, upstreams: &str, bounds: &str) -> Proxy {
    let bounds = format!("[rollout.candidates]\nnoise = 0\n{bounds}");
    let flags = format!("[[flag]]\nname = \"f\"\nstage = \"{stage}\"\n");
    Proxy::start_with_flags(&format!("{upstreams}{bounds}{ROUTES}"), &flags)
}

fn ask(proxy: &Proxy) -> Message {
    proxy.rest("GET", "/tasks/7", &[("accept", "text/event-stream")], "")
}

/// Waits for a verdict.
fn verdict(proxy: &Proxy, verdict: &str) {
    eventually("the verdict", || {
        let labels = ["route", "client", "side", "stage", "verdict"];
        let verdicts = proxy.metrics().table("dualgauge_verdicts_total", &labels);
        verdicts.get(&format!("watch other {verdict}")).copied()
    });
}

#[test]
fn equal_streams_match_whatever_their_ids() {
    let (rest, rpc) = (rest(&["{\"a\":1}", "2"]), rpc(&["{\"a\":1.0}", "2"]));
    let proxy = shadowing(&rest, &rpc, "");
    assert_eq!(
        ask(&proxy).text(),
        "id: 1\ndata: {\"a\":1}\n\nid: 1\ndata: 2\n\n"
    );
    verdict(&proxy, "rest shadow match");
    assert!(watch(&proxy).text().contains("\"id\":\"x\""));
    verdict(&proxy, "rpc shadow match");
    let bounds = proxy
        .metrics()
        .table("dualgauge_partial_comparisons_total", &["bound"]);
    assert_eq!(bounds.values().sum::<f64>(), 0.0);
}

#[test]
fn the_verdict_says_which_event_differs() {
    let proxy = shadowing(&rest(&["1", "{\"a\":2}"]), &rpc(&["1", "{\"a\":3}"]), "");
    ask(&proxy);
    verdict(&proxy, "rest shadow mismatch");
    proxy.log_line(&["responses differ", "/body/events/1/data/a"]);
}

/// The RPC call that a client makes of the route.
fn watch(proxy: &Proxy) -> Message {
    let mut client = proxy.connect();
    client.send(super::rpc_call("WatchTask", "{\"id\":\"7\"}", "\"x\""));
    client.read_answer()
}

/// The stream of these results that the client of `watch` gets.
fn results(results: &[&str]) -> String {
    let events = results.iter().map(|result| {
        format!("id: 1\ndata: {{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":{result}}}\n\n")
    });
    events.collect()
}

#[test]
fn a_rest_client_in_verify_gets_the_new_stream_and_the_old_one_is_compared() {
    for (served, last, name) in [
        (&["{\"a\":1}", "2.0"], "2.0", "match"),
        (&["{\"a\":1}", "3"], "3", "mismatch"),
    ] {
        let (rest, rpc) = (rest(&["{\"a\":1}", "2"]), rpc(served));
        let proxy = verifying(&rest, &rpc);
        let wanted = format!("data: {{\"a\":1}}\n\ndata: {last}\n\n");
        assert_eq!(ask(&proxy).text(), wanted);
        verdict(&proxy, &format!("rest verify {name}"));
        // The candidate is the call as it came.
        let asked = rest.request();
        assert_eq!(asked.head.start, "GET /tasks/7 HTTP/1.1");
        assert_eq!(asked.head.one("accept"), Some("text/event-stream"));
        assert_eq!(Called::of(&rpc.request()).method(), "WatchTask");
        if name == "mismatch" {
            proxy.log_line(&["dualgauge::mismatch", "watch", "/body/events/1/data"]);
        }
    }
}

#[test]
fn an_rpc_client_in_verify_gets_the_rest_stream_and_the_rpc_one_is_compared() {
    for (served, name) in [
        (&["{\"a\":1.0}", "2"], "match"),
        (&["{\"a\":1}", "3"], "mismatch"),
    ] {
        let (rest, rpc) = (rest(&["{\"a\":1}", "2"]), rpc(served));
        let proxy = verifying(&rest, &rpc);
        assert_eq!(watch(&proxy).text(), results(&["{\"a\":1}", "2"]));
        verdict(&proxy, &format!("rpc verify {name}"));
        assert_eq!(rest.request().head.start, "GET /tasks/7 HTTP/1.1");
        // The candidate is the call as it came, with the id of the client.
        let asked = rpc.request();
        let asked = Called::of(&asked);
        assert_eq!((asked.method(), asked.id()), ("WatchTask", "\"x\""));
        if name == "mismatch" {
            proxy.log_line(&["dualgauge::mismatch", "watch", "/result/events/1/data"]);
        }
    }
}

#[test]
fn a_stream_in_verify_that_ends_early_differs() {
    let proxy = verifying(&rest(&["1"]), &rpc(&["1", "2"]));
    assert_eq!(ask(&proxy).text(), "data: 1\n\ndata: 2\n\n");
    verdict(&proxy, "rest verify mismatch");
    proxy.log_line(&["responses differ", "/body/length"]);
}

#[test]
fn a_stream_that_ends_early_differs() {
    let proxy = shadowing(&rest(&["1", "2"]), &rpc(&["1"]), "");
    ask(&proxy);
    verdict(&proxy, "rest shadow mismatch");
    proxy.log_line(&["responses differ", "/body/length"]);
}

#[test]
fn a_stream_that_does_not_end_is_compared_in_part() {
    let rpc = Upstream::serving(|request| {
        let id = Called::of(request).id().to_owned();
        let event = format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":1}}\n\n");
        format!("{}{}", super::HEAD, super::chunk(&event)).into_bytes()
    });
    let short = "timeout = \"400ms\"\n";
    let proxy = shadowing(&rest(&["1"]), &rpc, short);
    ask(&proxy);
    verdict(&proxy, "rest shadow match");
    let bounds = proxy
        .metrics()
        .table("dualgauge_partial_comparisons_total", &["bound"]);
    assert_eq!(bounds["time"], 1.0);
}

#[test]
fn a_stream_whose_head_is_late_is_compared_within_the_time_of_its_candidate() {
    let (rest, rpc) = (Upstream::start(), Upstream::start());
    let limited = "timeout = \"1200ms\"\n[upstream.new]";
    let upstreams = both(&rest, &rpc).replace("[upstream.new]", limited);
    let proxy = in_stage("shadow", &upstreams, "timeout = \"2s\"\n");
    let mut client = proxy.connect();
    client.send(super::get("/tasks/7", "Accept: text/event-stream\r\n"));
    let mut control = rest.accept();
    control.read_request();
    control.send(streamed("data: 1\n\n"));
    assert_eq!(client.read_answer().text(), "data: 1\n\n");
    let mut candidate = rpc.accept();
    let request = candidate.read_request();
    let id = Called::of(&request).id().to_owned();
    // Another call, which waits for its whole timeout, is the clock.
    assert_eq!(proxy.rest("GET", "/slow", &[], "").status(), 504);
    let event = format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":1}}\n\n");
    candidate.send(format!("{}{}", super::HEAD, super::chunk(&event)));
    verdict(&proxy, "rest shadow match");
}

/// Waits for a candidate that is skipped, and returns its route and the reason.
fn skipped(proxy: &Proxy) -> String {
    eventually("the skip", || {
        let labels = ["route", "reason"];
        let skipped = proxy
            .metrics()
            .table("dualgauge_candidates_skipped_total", &labels);
        let skipped = skipped.into_iter().filter(|(_, count)| *count > 0.0);
        skipped.map(|(reason, _)| reason).next()
    })
}

#[test]
fn a_stream_with_a_content_coding_is_not_compared() {
    let head = super::HEAD.replace("\r\n\r\n", "\r\nContent-Encoding: gzip\r\n\r\n");
    let coded = [head.as_bytes(), &chunked(&[&b"\x1f\x8b\n\n"[..]])].concat();
    let proxy = shadowing(&Upstream::answering(coded), &rpc(&["1"]), "");
    ask(&proxy);
    assert_eq!(skipped(&proxy), "watch coded");
}

#[test]
fn an_incomplete_event_of_a_candidate_counts_in_the_memory_of_candidates() {
    let rpc = Upstream::serving(|_| {
        let event = format!("data: {}", "x".repeat(100_000));
        format!("{}{}", super::HEAD, super::chunk(&event)).into_bytes()
    });
    let proxy = shadowing(&rest(&["1"]), &rpc, "memory = \"64KiB\"\n");
    ask(&proxy);
    assert_eq!(skipped(&proxy), "watch large");
}

#[test]
fn a_stream_beside_a_complete_response_differs() {
    let proxy = shadowing(&Upstream::answering(json("1")), &rpc(&["1"]), "");
    assert_eq!(proxy.rest("GET", "/tasks/7", &[], "").text(), "1");
    verdict(&proxy, "rest shadow mismatch");
}
