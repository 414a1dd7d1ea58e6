//! An upstream with several addresses: which of them calls go to, which are left out, and what is tried again.

use std::sync::atomic::{AtomicUsize, Ordering};

use http::Response;

use crate::support::{Act, Multiplex, Proxy, Upstream, Wire, eventually};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const GONE: &str = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\ngone";

/// A proxy of one worker before these addresses.
fn before(addresses: &[&Upstream], more: &str) -> Proxy {
    let urls = addresses
        .iter()
        .map(|one| format!("\"http://{}\"", one.address()));
    let urls: Vec<String> = urls.collect();
    Proxy::start(&format!(
        "[listen]\nworkers = 1\n[upstream.old]\nside = \"rest\"\nurls = [{}]\n{more}\n",
        urls.join(", ")
    ))
}

fn statuses(proxy: &Proxy, calls: usize) -> Vec<u16> {
    (0..calls)
        .map(|_| proxy.rest("GET", "/a", &[], "").status())
        .collect()
}

fn value(proxy: &Proxy, name: &str) -> f64 {
    proxy.metrics().value(&format!("dualgauge_upstream_{name}"))
}

#[test]
fn equals_take_turns() {
    let (one, two) = (Upstream::answering(OK), Upstream::answering(OK));
    let proxy = before(&[&one, &two], "");
    assert_eq!(statuses(&proxy, 6), [200; 6]);
    assert_eq!((one.requests().len(), two.requests().len()), (3, 3));
}

#[test]
fn a_call_goes_on_to_another_address_where_one_cannot_be_reached() {
    let (away, here) = (Upstream::nowhere(), Upstream::answering(OK));
    let proxy = before(&[&away, &here], "eject = { failures = 3, pause = \"1h\" }");
    assert_eq!(statuses(&proxy, 10), [200; 10]);
    assert_eq!(here.requests().len(), 10);
    // Three times it was tried; then it is left out.
    assert_eq!(
        value(&proxy, "repeats_total{upstream=\"old\",result=\"sent\"}"),
        3.0
    );
    assert_eq!(value(&proxy, "ejections_total{upstream=\"old\"}"), 1.0);
    assert_eq!(value(&proxy, "addresses_left_out{upstream=\"old\"}"), 1.0);
    proxy.log_line(&["endpoint ejected", "old"]);
}

#[test]
fn what_says_that_nobody_is_there_is_left_out_and_the_others_serve() {
    let (gone, here) = (Upstream::answering(GONE), Upstream::answering(OK));
    let proxy = before(&[&gone, &here], "eject = { failures = 2, pause = \"1h\" }");
    let statuses = statuses(&proxy, 12);
    // It was answered, so no call is sent twice.
    assert_eq!(statuses.iter().filter(|status| **status == 503).count(), 2);
    assert_eq!((gone.requests().len(), here.requests().len()), (2, 10));
}

#[test]
fn a_call_without_a_budget_is_not_tried_again() {
    let (away, here) = (Upstream::nowhere(), Upstream::answering(OK));
    let more = "retry = { percent = 0, least = 0 }\neject = { failures = 2, pause = \"1h\" }";
    let proxy = before(&[&away, &here], more);
    let statuses = statuses(&proxy, 8);
    assert_eq!(statuses.iter().filter(|status| **status == 502).count(), 2);
    let refused = value(&proxy, "repeats_total{upstream=\"old\",result=\"refused\"}");
    assert_eq!(refused, 2.0);
}

#[test]
fn an_open_breaker_refuses_at_once_and_says_when_to_come_again_while_health_stays_green() {
    let gone = Upstream::answering(GONE);
    let proxy = before(&[&gone], "breaker = { failures = 3, pause = \"1h\" }");
    assert_eq!(statuses(&proxy, 3), [503; 3]);
    let answer = proxy.rest("GET", "/a", &[], "");
    assert_eq!(answer.status(), 503);
    assert_eq!(answer.head.one("retry-after"), Some("3600"));
    assert_eq!(answer.json()["reason"], "upstream_resting");
    assert_eq!(gone.requests().len(), 3);
    assert_eq!(proxy.ask("GET", "/healthz", "").status(), 200);
    assert_eq!(proxy.ask("GET", "/readyz", "").status(), 200);
    assert_eq!(value(&proxy, "breaker_open{upstream=\"old\"}"), 1.0);
    assert_eq!(
        value(&proxy, "breaker_openings_total{upstream=\"old\"}"),
        1.0
    );
    let line = proxy.log_line(&["reason=upstream_resting", "blame=upstream"]);
    assert!(!line.contains("upstream_ms"), "it was not asked: {line}");
}

#[test]
fn a_breaker_closes_when_a_call_is_answered_again() {
    let asked = AtomicUsize::new(0);
    let server = Upstream::serving(move |_| match asked.fetch_add(1, Ordering::Relaxed) {
        0..3 => GONE.into(),
        _ => OK.into(),
    });
    let proxy = before(&[&server], "breaker = { failures = 3, pause = \"50ms\" }");
    assert_eq!(statuses(&proxy, 3), [503; 3]);
    let answered = || {
        let answer = proxy.rest("GET", "/a", &[], "");
        (answer.status() == 200).then_some(())
    };
    eventually("a call that is let through", answered);
    proxy.log_line(&["circuit breaker closed"]);
    assert_eq!(value(&proxy, "breaker_open{upstream=\"old\"}"), 0.0);
}

#[test]
fn an_address_that_fails_its_health_checks_gets_no_calls_until_it_passes_them() {
    let (ill, well) = (Upstream::answering(GONE), Upstream::answering(OK));
    let health = "health = { path = \"/up\", every = \"1s\", down_after = 1, up_after = 1 }";
    let proxy = before(&[&ill, &well], health);
    proxy.log_line(&["endpoint failed its health checks"]);
    let asked = ill.requests();
    assert_eq!(asked[0].head.start, "GET /up HTTP/1.1");
    assert_eq!(statuses(&proxy, 6), [200; 6]);
    assert!(
        ill.requests()
            .iter()
            .all(|asked| asked.head.start.contains("/up"))
    );
    assert_eq!(value(&proxy, "addresses_left_out{upstream=\"old\"}"), 1.0);
}

#[test]
fn with_no_address_that_passes_its_checks_all_are_called() {
    let only = Upstream::serving(|request| {
        let is_check = request.head.start.contains("/wrong");
        if is_check { GONE.into() } else { OK.into() }
    });
    let health = "health = { path = \"/wrong\", every = \"1s\", down_after = 1 }";
    let proxy = before(&[&only], health);
    proxy.log_line(&["endpoint failed its health checks"]);
    assert_eq!(statuses(&proxy, 3), [200; 3]);
}

/// The ways to break off an upload.
#[derive(Debug, Clone, Copy)]
enum Breaks {
    Reset,
    Close,
    HalfClose,
    Chunk,
}

const BREAKS: [Breaks; 4] = [
    Breaks::Reset,
    Breaks::Close,
    Breaks::HalfClose,
    Breaks::Chunk,
];

impl Breaks {
    /// Half an upload.
    fn begin(self, proxy: &Proxy) -> Wire {
        let mut client = proxy.connect();
        client.send(match self {
            Breaks::Chunk => {
                "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"
            }
            Breaks::Reset | Breaks::Close | Breaks::HalfClose => {
                "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf"
            }
        });
        client
    }

    /// No more of it; waits until the call is over, which is one of so many.
    fn end(self, proxy: &Proxy, mut client: Wire, calls: usize) {
        match self {
            Breaks::Reset => client.reset(),
            Breaks::Close => drop(client),
            Breaks::HalfClose => {
                client.finish_sending();
                assert_eq!(client.read_answer().status(), 400);
            }
            Breaks::Chunk => {
                client.send("zz\r\n");
                assert_eq!(client.read_answer().status(), 400);
            }
        }
        let over = || (proxy.log().matches("path=/x ").count() == calls).then_some(());
        eventually("the end of the call", over);
    }
}

const SOON_OPEN: &str = "breaker = { failures = 3, pause = \"1h\" }\n\
                         eject = { failures = 1, pause = \"1h\" }\n";

/// Nothing was held against the server.
fn is_blameless(proxy: &Proxy) {
    assert_eq!(
        value(proxy, "breaker_openings_total{upstream=\"old\"}"),
        0.0
    );
    assert_eq!(value(proxy, "ejections_total{upstream=\"old\"}"), 0.0);
}

#[test]
fn clients_that_break_off_their_uploads_are_no_failures_of_the_server() {
    let servers = [Upstream::start(), Upstream::start()];
    let proxy = before(&[&servers[0], &servers[1]], SOON_OPEN);
    for (count, breaks) in BREAKS.into_iter().cycle().take(12).enumerate() {
        let client = breaks.begin(&proxy);
        let mut reached = servers[count % 2].accept();
        reached.read_head();
        reached.read_until("half");
        breaks.end(&proxy, client, count + 1);
        reached.read_rest();
    }
    is_blameless(&proxy);
    let mut client = proxy.connect();
    client.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut reached = servers[0].accept();
    reached.read_request();
    reached.send(OK);
    assert_eq!(client.read_answer().status(), 200);
}

#[test]
fn neither_are_they_where_the_server_speaks_http2() {
    let [one, two] =
        [0, 1].map(|_| Multiplex::serving(|_, _| Act::Answer(Response::new(b"ok".to_vec()))));
    let proxy = Proxy::start(&format!(
        "[listen]\nworkers = 1\n[upstream.old]\nside = \"rest\"\nhttp2 = true\n\
         urls = [\"http://{}\", \"http://{}\"]\n{SOON_OPEN}",
        one.address(),
        two.address()
    ));
    for (count, breaks) in BREAKS.into_iter().cycle().take(12).enumerate() {
        let client = breaks.begin(&proxy);
        breaks.end(&proxy, client, count + 1);
    }
    is_blameless(&proxy);
    assert_eq!(statuses(&proxy, 2), [200; 2]);
}
