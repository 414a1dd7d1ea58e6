//! The limits of the process with several workers, filled to the last place: as many as may be get in, and nobody else.

use crate::scene::json;
use crate::support::{Proxy, Upstream, Wire, becomes, rest_only};

const GET: &str = "GET /x HTTP/1.1\r\nHost: a.example\r\n\r\n";
/// An answer that does not end.
const BEGUN: &str = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhi";
const WORKERS: usize = 3;
/// Of which no worker may take the same share as all others.
const PLACES: usize = 7;
/// The kernel chooses the worker of a connection: behind so many, each has had more than enough.
const MANY: usize = 400;
/// What comes when all is full.
const MORE: usize = 40;

fn proxy(upstream: &Upstream, limit: &str) -> Proxy {
    let workers = format!("workers = {WORKERS}");
    let config = rest_only(upstream).replace("workers = 1", &workers);
    Proxy::start(&format!("{config}[limits]\n{limit} = {PLACES}\n"))
}

/// Lets clients come until all places are taken, and some more: who got in, and how many did not.
fn fill(mut comes: impl FnMut() -> Option<Wire>) -> (Vec<Wire>, usize) {
    let (mut inside, mut refused) = (Vec::new(), 0);
    let mut left = MANY;
    while left > 0 {
        match comes() {
            Some(wire) => inside.push(wire),
            None => refused += 1,
        }
        left -= 1;
        if inside.len() == PLACES {
            left = left.min(MORE);
        }
    }
    (inside, refused)
}

fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap())
}

#[test]
fn as_many_calls_as_may_be_in_flight_get_in_and_the_rest_is_told_to_come_back() {
    let upstream = Upstream::serving(|_| BEGUN.as_bytes().to_vec());
    let proxy = proxy(&upstream, "in_flight");
    let comes = || {
        let mut wire = proxy.connect();
        wire.send(GET);
        let head = wire.read_head();
        if head.start == "HTTP/1.1 200 OK" {
            return Some(wire);
        }
        assert!(head.start.starts_with("HTTP/1.1 503 "), "{head:?}");
        let seconds: u32 = head.one("retry-after").unwrap().parse().unwrap();
        assert!(seconds > 0);
        None
    };
    let (inside, refused) = fill(comes);
    assert_eq!(inside.len(), PLACES);
    let value = |series: &str| proxy.metrics().value(series);
    assert_eq!(value("dualgauge_calls_in_flight"), number(PLACES));
    assert_eq!(value("dualgauge_calls_in_flight_limit"), number(PLACES));
    let told = "dualgauge_failures_total{reason=\"overloaded\",blame=\"proxy\",side=\"rest\"}";
    becomes(|| value(told), &number(refused));
    drop(inside);
    becomes(|| value("dualgauge_calls_in_flight"), &0.0);
    // Each place is free again.
    assert_eq!(fill(comes).0.len(), PLACES);
}

#[test]
fn as_many_connections_as_may_be_open_get_in_and_the_rest_is_closed() {
    let upstream = Upstream::serving(|_| json("1"));
    let proxy = proxy(&upstream, "connections");
    let comes = || {
        let mut wire = proxy.connect();
        // Who is not let in is closed, and may be so before anything was sent.
        wire.try_send(GET).ok()?;
        assert_eq!(wire.next_answer()?.status(), 200);
        Some(wire)
    };
    let (inside, refused) = fill(comes);
    assert_eq!(inside.len(), PLACES);
    let value = |series: &str| proxy.metrics().value(series);
    assert_eq!(value("dualgauge_client_connections"), number(PLACES));
    let limit = "dualgauge_client_connections_limit";
    assert_eq!(value(limit), number(PLACES));
    let told = "dualgauge_refused_connections_total";
    becomes(|| value(told), &number(refused));
    drop(inside);
    becomes(|| value("dualgauge_client_connections"), &0.0);
    assert_eq!(fill(comes).0.len(), PLACES);
}
