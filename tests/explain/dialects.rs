//! The lines of `explain` for logins, links, old dialects and responses that stream.

use super::Bench;

const MAIN: &str = r#"
include = ["routes.toml"]
[upstream.old]
side = "rest"
url = "http://127.0.0.1:9001"
[upstream.new]
side = "rpc"
url = "http://127.0.0.1:9002/rpc"
default = true
[upstream.live]
side = "rpc"
url = "ws://127.0.0.1:9003/"
login = { method = "auth.login", params = ["PLANTED"], expect = { status = "ok" } }
[upstream.plain]
side = "rpc"
url = "ws://127.0.0.1:9004/"
sharing = "client"
login = { method = "auth.token", params = ["{header:x-token}"] }
[upstream.language]
side = "rpc"
command = ["server"]
handshake = "none"
framing = "content-length"
[rpc]
paths = ["/rpc", "/jsonrpc"]
[rollout]
default = { rest = "translate", rpc = "translate" }
"#;

const ROUTES: &str = r#"
[[route]]
name = "live.read"
rest = "GET /live/{id}"
rpc = "live.read"
upstream = { rpc = "live" }

[[route]]
name = "plain.read"
rest = "GET /plain/{id}"
rpc = "plain.read"
upstream = { rpc = "plain" }

[[route]]
name = "language.read"
rest = "GET /language/{id}"
rpc = "language/read"
upstream = { rpc = "language" }

[[route]]
name = "heads"
rest = "GET /heads/{kind}"
rpc = "subscribe"
params = ["{kind}"]
upstream = { rpc = "live" }
[route.subscription]
notification = { method = "subscription", params = { subscription = "{id}", result = "{event}" } }
unsubscribe = { method = "unsubscribe" }

[[route]]
name = "lines"
rest = "GET /lines"
rpc = "lines"
stream = "ndjson"

[[route]]
name = "never"
rest = "GET /never"
rpc = "never"
stream = false

[[route]]
name = "tasks"
rest = "GET /tasks?page={offset:page(limit)}&per_page={limit:integer=20}&state={state:map(open=TASK_OPEN|done=TASK_DONE)?}"
rpc = "tasks"
params = { offset = "{offset}", limit = "{limit}", state = "{state}" }

[[route]]
name = "kodi"
from = "old"
effect = "safe"
old = { method = "GET", path = "/jsonrpc", parameter = "request", body = { jsonrpc = "2.0", method = "{method}", params = "{params:object={}}", id = "{id?}" } }
rpc = "{method}"
params = { "..." = "{params}" }
[[route.outcome]]
old = { body = { id = "{>id}", jsonrpc = "2.0", result = "{result}" } }
rpc = { result = "{result}" }

[[route]]
name = "follow"
old = { path = "/rpc", body = { method = "follow", task = "{task}", tag = "{id:integer}" } }
rpc = "Follow"
params = { task = "{task}" }
stream = "sse"
[[route.outcome]]
old = { body = { ok = "{result}", tag = "{>id}" } }
rpc = { result = "{result}" }
"#;

fn bench() -> Bench {
    let bench = Bench::new();
    bench.write("dualgauge.toml", MAIN);
    bench.write("routes.toml", ROUTES);
    bench
}

/// Asserts that the explanation has each of the lines.
fn assert_lines(arguments: &[&str], lines: &[&str]) {
    let told = bench().explain(arguments);
    for line in lines {
        assert!(
            told.lines().any(|told| told.trim_start() == *line),
            "{line}\n{told}"
        );
    }
    assert!(!told.contains("PLANTED"), "{told}");
}

#[test]
fn a_login_is_named_without_its_params() {
    let expected = "login      auth.login, with the proxy's credentials, before the first call; its result must match `expect`";
    assert_lines(&["/live/7"], &[expected]);
    let of_caller = "login      auth.token, with the caller's credentials, before the first call";
    assert_lines(&["/plain/7", "-H", "x-token: PLANTED"], &[of_caller]);
}

#[test]
fn a_message_for_a_child_has_the_framing_of_the_child() {
    let sends = "sends      one message after its `Content-Length`   to language at server";
    assert_lines(&["/language/7"], &[sends]);
}

#[test]
fn a_message_in_a_query_parameter_is_explained_as_the_call_that_it_is() {
    let message = "request=%7B%22jsonrpc%22:%222.0%22,%22id%22:7,%22method%22:%22A.B%22,%22params%22:%7B%22x%22:1.50%7D%7D";
    assert_lines(
        &[&format!("/jsonrpc?{message}")],
        &[
            "route      kodi  GET /jsonrpc = {method}",
            "holes      method  string  \"A.B\"",
            "params  object  {\"x\":1.50}",
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"A.B\",\"params\":{\"x\":1.50}}",
        ],
    );
}

#[test]
fn a_response_that_streams_is_described() {
    for (arguments, line) in [
        (
            &["/heads/new", "-H", "accept: text/event-stream"][..],
            "the call opens a subscription: each notification `subscription` with its id is an event; `unsubscribe` ends it",
        ),
        (
            &[
                "/heads/new",
                "-H",
                "upgrade: websocket",
                "-H",
                "connection: upgrade",
            ],
            "the call opens a subscription: each notification `subscription` with its id is a message of a WebSocket that the proxy serves; `unsubscribe` ends it",
        ),
        (
            &["/lines"],
            "each event is translated as it arrives; the client gets `application/x-ndjson`",
        ),
        (
            &["/never"],
            "a response that streams is refused with `upstream_stream`: the route has `stream = false`",
        ),
    ] {
        assert_lines(arguments, &[&format!("stream     {line}")]);
    }
}

#[test]
fn a_complete_response_for_a_client_that_reads_only_events_is_explained_as_an_event() {
    let bench = bench();
    let reply = r#"{"jsonrpc":"2.0","id":1,"result":[1.0]}"#;
    let reply = bench.write("reply.json", reply);
    let follow = |accept: &str| {
        let (accept, reply) = (format!("accept: {accept}"), reply.to_str().unwrap());
        let call = r#"{"method":"follow","task":"t","tag":5}"#;
        bench.explain(&["/rpc", "-d", call, "-H", &accept, "--reply", reply])
    };
    let streams = "each event is translated as it arrives; the client gets `text/event-stream`";
    let events = follow("text/event-stream");
    for part in [
        &format!("{streams}, and a complete response as one event\n"),
        "content-type: text/event-stream\n",
        "data: {\"ok\":[1.0],\"tag\":5}\n",
        "a complete response, as the only event",
    ] {
        assert!(events.contains(part), "{part}: {events}");
    }
    let both = follow("application/json, text/event-stream");
    for part in [&format!("{streams}\n"), "{\"ok\":[1.0],\"tag\":5}\n"] {
        assert!(both.contains(part), "{part}: {both}");
    }
    assert!(!both.contains("data: "), "{both}");
}

#[test]
fn pages_and_value_maps_show_the_values_of_the_other_side() {
    let sent = r#"{"jsonrpc":"2.0","id":1,"method":"tasks","params":{"offset":40,"limit":20,"state":"TASK_OPEN"}}"#;
    assert_lines(&["/tasks?page=3&per_page=20&state=open"], &[sent]);
    let refused = bench().explain(&["/tasks?page=0&per_page=20"]);
    let words = "query parameter `page`: it must be a page, at least 1";
    assert!(refused.contains(words), "{refused}");
}

#[test]
fn the_elements_of_a_batch_are_no_events_of_their_own() {
    let bench = bench();
    let reply = bench.write("reply.json", r#"{"jsonrpc":"2.0","id":1,"result":[1.0]}"#);
    let batch =
        r#"[{"method":"follow","task":"t","tag":5},{"method":"follow","task":"u","tag":6}]"#;
    let told = bench.explain(&[
        "/rpc",
        "-d",
        batch,
        "-H",
        "accept: text/event-stream",
        "--reply",
        reply.to_str().unwrap(),
    ]);
    for part in [
        "stream     a response that streams is refused with `upstream_stream`: the call is part of a batch\n",
        "{\"ok\":[1.0],\"tag\":5}\n",
        "{\"ok\":[1.0],\"tag\":6}\n",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(!told.contains("as one event"), "{told}");
    assert!(!told.contains("data: "), "{told}");
}

/// A command that is a frame on sockets, beside the routes with old messages over HTTP.
const COMMAND: &str = r#"
[[route]]
name = "stop"
frame = { command = "stop", request_id = "{id?}" }
rpc = "stop"
[[route.outcome]]
lossy = "any result"
frame = { event = "stopped", request_id = "{>id}" }
rpc = { result = "{_}" }
"#;

#[test]
fn a_posted_message_of_an_old_dialect_is_no_frame() {
    let bench = Bench::new();
    bench.write("dualgauge.toml", MAIN);
    bench.write("routes.toml", &format!("{ROUTES}{COMMAND}"));
    let explain = |call: &str| bench.explain(&["/rpc", "-d", call]);
    let old = explain(r#"{"method":"follow","task":"t","tag":5}"#);
    assert!(old.contains("route      follow"), "{old}");
    let frame = explain(r#"{"command":"stop","request_id":1}"#);
    assert!(frame.contains("route      stop"), "{frame}");
}

#[test]
fn a_frame_is_explained_for_a_response_without_a_result() {
    let bench = Bench::new();
    bench.write("dualgauge.toml", MAIN);
    bench.write("routes.toml", &format!("{ROUTES}{COMMAND}"));
    let reply = bench.write("reply.json", r#"{"jsonrpc":"2.0","id":1}"#);
    let call = r#"{"command":"stop","request_id":1}"#;
    let told = bench.explain(&["/rpc", "-d", call, "--reply", reply.to_str().unwrap()]);
    let frame = r#"{"event":"stopped","request_id":1}"#;
    assert!(told.contains(frame), "{told}");
}
