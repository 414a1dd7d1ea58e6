//! Addresses of a server of HTTP/2 that fail: left out, left alone, and passed over, as those of HTTP/1.1.

use std::sync::atomic::{AtomicUsize, Ordering};

use h2::Reason;
use http::Response;

use super::text;
use crate::support::{Act, Multiplex, Proxy, eventually};

fn gone() -> Act {
    let gone = Response::builder().status(503).body(b"gone".to_vec());
    Act::Answer(gone.unwrap())
}

fn before(addresses: &[&Multiplex], more: &str) -> Proxy {
    let urls = addresses
        .iter()
        .map(|one| format!("\"http://{}\"", one.address()));
    let urls: Vec<String> = urls.collect();
    Proxy::start(&format!(
        "[listen]\nworkers = 1\n[upstream.old]\nside = \"rest\"\nhttp2 = true\nurls = [{}]\n{more}\n",
        urls.join(", ")
    ))
}

fn statuses(proxy: &Proxy, calls: usize) -> Vec<u16> {
    (0..calls)
        .map(|_| proxy.rest("GET", "/a", &[], "").status())
        .collect()
}

fn value(proxy: &Proxy, name: &str) -> f64 {
    let series = format!("dualgauge_upstream_{name}{{upstream=\"old\"}}");
    proxy.metrics().value(&series)
}

#[test]
fn an_address_that_fails_is_left_out_and_the_others_serve() {
    let here = Multiplex::serving(|_, _| text("ok"));
    let fails: [fn() -> Act; 2] = [gone, || Act::Reset(Reason::INTERNAL_ERROR)];
    for fail in fails {
        let ill = Multiplex::serving(move |_, _| fail());
        let proxy = before(&[&ill, &here], "eject = { failures = 2, pause = \"1h\" }");
        let statuses = statuses(&proxy, 12);
        assert_eq!(statuses.iter().filter(|status| **status != 200).count(), 2);
        assert_eq!(ill.calls().len(), 2);
        assert_eq!(value(&proxy, "ejections_total"), 1.0);
        assert_eq!(value(&proxy, "addresses_left_out"), 1.0);
    }
}

#[test]
fn a_breaker_opens_refuses_at_once_and_closes_with_the_first_answer() {
    let asked = AtomicUsize::new(0);
    let server = Multiplex::serving(move |_, _| match asked.fetch_add(1, Ordering::Relaxed) {
        0 => gone(),
        1 | 2 => Act::Reset(Reason::INTERNAL_ERROR),
        _ => text("ok"),
    });
    let proxy = before(&[&server], "breaker = { failures = 3, pause = \"1s\" }");
    assert_eq!(statuses(&proxy, 3), [503, 502, 502]);
    let refused = proxy.rest("GET", "/a", &[], "");
    assert_eq!(refused.json()["reason"], "upstream_resting");
    assert!(refused.head.one("retry-after").is_some());
    assert_eq!(server.calls().len(), 3);
    assert_eq!(value(&proxy, "breaker_openings_total"), 1.0);
    let answered = || {
        let answer = proxy.rest("GET", "/a", &[], "");
        (answer.status() == 200).then_some(())
    };
    eventually("a call that is let through", answered);
    assert_eq!(value(&proxy, "breaker_open"), 0.0);
}
