//! The campaign before upstreams of several addresses, which are left out or alone when they fail, with a time for each call
//! as a whole: calls are refused by breakers, moved to another address, and end with their time, and the same laws hold.

use super::server::Server;
use super::{Scene, count, holds};

/// So little is borne that most of it happens all the time.
const KEYS: &str = "eject = { failures = 2, pause = \"100ms\", most_percent = 50 }\n\
    breaker = { failures = 3, pause = \"50ms\" }\nretry = { percent = 20, least = 10 }\n";
/// Less than a silent server has, and far more than one that is slow needs.
const LIMITS: &str = "total_timeout = \"1500ms\"\n";

#[test]
fn every_call_ends_and_is_counted_before_addresses_that_are_left_out_and_alone() {
    let own = [Server::start(), Server::start()];
    let more: Vec<Server> = (0..4).map(|_| Server::start()).collect();
    let scene = Scene::before(own, more, (KEYS, LIMITS));
    let sums = holds(&scene);
    let metrics = scene.proxy.metrics();
    for name in ["ejections", "breaker_openings"] {
        let series = metrics.table(&format!("dualgauge_upstream_{name}_total"), &["upstream"]);
        assert!(series.values().all(|count| *count > 0.0), "{series:?}");
    }
    let all = metrics.table("dualgauge_upstream_repeats_total", &["upstream", "result"]);
    assert!(sums.tally.resting > 0, "no breaker has refused a call");
    for server in [&scene.rest, &scene.rpc].into_iter().chain(&scene.more) {
        assert!(
            !server.heard().is_empty(),
            "an address had no call: {all:?}"
        );
    }
    assert!(count(all.values().sum()) < sums.tally.calls);
}
