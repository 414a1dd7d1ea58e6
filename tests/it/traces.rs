//! W3C Trace Context between real ends: kept, begun, and told to a collector (OTLP over HTTP).

use crate::support::{Message, Proxy, Upstream, both, eventually};

const SAID: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

const ROUTES: &str = r#"
[[route]]
name = "items.read"
rest = "GET /items/{id}"
rpc = "items/read"

[[client]]
name = "mover"
match = { header = { x-client = "mover" } }
"#;

const FLAGS: &str = "[[flag]]\nname = 'f'\nclient = 'mover'\nstage = 'translate'\n";

const JSON: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
const TAKEN: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// Both servers, and the proxy before them.
struct Scene {
    proxy: Proxy,
    rest: Upstream,
    rpc: Upstream,
}

fn scene(trace: &str) -> Scene {
    let (rest, rpc) = (Upstream::answering(JSON), Upstream::answering(JSON));
    let config = format!("{}{ROUTES}{trace}", both(&rest, &rpc));
    let proxy = Proxy::start_with_flags(&config, FLAGS);
    Scene { proxy, rest, rpc }
}

/// What the server gets of a call that passes, and of one that is translated.
fn calls(scene: &Scene, headers: &[(&str, &str)]) -> [Message; 2] {
    scene.proxy.rest("GET", "/items/7", headers, "");
    let moved: Vec<_> = headers
        .iter()
        .copied()
        .chain([("x-client", "mover")])
        .collect();
    scene.proxy.rest("GET", "/items/7", &moved, "");
    [scene.rest.request(), scene.rpc.request()]
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = (0..hex.len()).step_by(2);
    digits
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
        .collect()
}

fn holds(body: &[u8], wanted: &[u8]) -> bool {
    body.windows(wanted.len()).any(|window| window == wanted)
}

#[test]
fn the_trace_of_a_caller_is_passed_on_to_the_letter_and_named_in_the_log() {
    for trace in ["", "[trace]\n"] {
        let scene = scene(trace);
        for got in calls(&scene, &[("traceparent", SAID), ("tracestate", "a=b,c=d")]) {
            assert_eq!(got.head.all("traceparent"), [SAID]);
            assert_eq!(got.head.all("tracestate"), ["a=b,c=d"]);
        }
        let line = format!("trace_id={TRACE}");
        scene.proxy.log_line(&["client=other", &line]);
        scene.proxy.log_line(&["client=mover", &line]);
    }
}

#[test]
fn without_a_word_of_traces_none_begins() {
    for got in calls(&scene(""), &[]) {
        assert_eq!(got.head.one("traceparent"), None);
    }
    let broken = [("traceparent", "00-x"), ("tracestate", "a=b")];
    for got in calls(&scene(""), &broken) {
        assert_eq!(got.head.one("traceparent"), Some("00-x"));
    }
}

#[test]
fn a_trace_begins_here_where_the_caller_has_none_that_can_be_read() {
    for headers in [&[][..], &[("traceparent", "00-x"), ("tracestate", "a=b")]] {
        let scene = scene("[trace]\n");
        let traces = calls(&scene, headers).map(|got| {
            assert_eq!(got.head.one("tracestate"), None);
            let said = got.head.one("traceparent").unwrap().to_owned();
            assert!(
                said.starts_with("00-") && said.ends_with("-01") && said.len() == 55,
                "{said}"
            );
            said[3..35].to_owned()
        });
        assert_ne!(traces[0], traces[1]);
        scene
            .proxy
            .log_line(&["client=other", &format!("trace_id={}", traces[0])]);
    }
}

#[test]
fn traces_that_begin_here_are_recorded_in_the_share_that_is_said() {
    let scene = scene("[trace]\nsample = 0\n");
    let [passed, _] = calls(&scene, &[]);
    assert!(passed.head.one("traceparent").unwrap().ends_with("-00"));
}

#[test]
fn a_collector_is_told_of_each_call_that_is_recorded_and_of_nothing_secret() {
    let collector = Upstream::answering(TAKEN);
    let endpoint = format!(
        "[trace]\nendpoint = \"http://{}/v1/traces\"\nservice = \"front\"\n",
        collector.address()
    );
    let scene = scene(&endpoint);
    let secret = "planted-secret";
    let headers = [
        ("traceparent", SAID),
        ("authorization", secret),
        ("cookie", secret),
    ];
    scene
        .proxy
        .rest("GET", &format!("/items/7?key={secret}"), &headers, "");
    let got = scene.rest.request();
    let told = got.head.one("traceparent").unwrap().to_owned();
    assert!(told.starts_with(&format!("00-{TRACE}-")), "{told}");
    assert_ne!(told, SAID);
    let unrecorded = format!("{}00", &SAID[..53]);
    scene
        .proxy
        .rest("GET", "/items/8", &[("traceparent", &unrecorded)], "");

    let batch = eventually("a batch", || collector.requests().into_iter().next());
    assert_eq!(batch.head.start, "POST /v1/traces HTTP/1.1");
    assert_eq!(
        batch.head.one("content-type"),
        Some("application/x-protobuf")
    );
    for wanted in [bytes(TRACE), bytes(&told[36..52]), bytes(PARENT)] {
        assert!(holds(&batch.body, &wanted), "{wanted:02x?}");
    }
    for wanted in [
        "front",
        "rest items.read",
        "http.route",
        "/items/7",
        "passthrough",
        "default",
    ] {
        assert!(holds(&batch.body, wanted.as_bytes()), "{wanted}");
    }
    for unwanted in [secret, "/items/8"] {
        assert!(!holds(&batch.body, unwanted.as_bytes()), "{unwanted}");
    }
}

#[test]
fn a_call_of_which_nothing_was_sent_yet_is_told_at_the_end_of_the_program() {
    let collector = Upstream::answering(TAKEN);
    let endpoint = format!("[trace]\nendpoint = \"http://{}/\"\n", collector.address());
    let scene = scene(&endpoint);
    scene
        .proxy
        .rest("GET", "/items/7", &[("traceparent", SAID)], "");
    scene.proxy.stop();
    assert!(holds(&collector.request().body, &bytes(TRACE)));
}

#[test]
fn a_collector_that_is_away_costs_spans_and_no_call() {
    let nobody = Upstream::nowhere();
    let endpoint = format!("[trace]\nendpoint = \"http://{}/\"\n", nobody.address());
    let scene = scene(&endpoint);
    let answer = scene.proxy.rest("GET", "/items/7", &[], "");
    assert_eq!(answer.status(), 200);
    scene
        .proxy
        .log_line(&["the trace collector does not accept spans"]);
    let dropped = || {
        let dropped = scene.proxy.metrics().value("dualgauge_spans_dropped_total");
        (dropped >= 1.0).then_some(())
    };
    eventually("dropped spans", dropped);
}
