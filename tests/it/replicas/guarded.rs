//! Guards of flags that replicas share: they rule on what all of them have counted, and act on all.

use super::{FLAG, calls, ok, overrides_of, replica_with, revision};
use crate::redis_server::{Memory, Server};
use crate::scene;
use crate::support::{Message, Proxy, Upstream, becomes, both, eventually};

/// Both ways of an item; the new one can be broken.
const ITEMS: &str = r#"
[[client]]
name = "app"
match = { header = { x-client-id = "app" } }
key = { header = "x-device-id" }
[[route]]
name = "item.get"
rest = "GET /items/{id}"
rpc = "item/get"
"#;
const HALF: &str = r#"
[[flag]]
name = "mover"
route = "item.*"
side = "rest"
stage = "translate"
percent = 50
guard = { window = "30s", min_calls = 10 }
"#;
/// Calls of each way on each replica: fewer than a guard rules on, and together more.
const FEW: usize = 7;
/// What a caller is told where the new way answers with something else than JSON.
const BROKEN: u16 = 503;

/// A server of each way, of which the new one is broken, and the configuration of those that stand before them.
fn before_a_broken_one() -> ([Upstream; 2], String) {
    let old = Upstream::serving(|_| scene::json("{}"));
    let new = Upstream::answering(scene::answer(
        "503 Service Unavailable",
        &[],
        "out of order",
    ));
    let config = format!("{}{ITEMS}", both(&old, &new));
    ([old, new], config)
}

fn call_of(proxy: &Proxy, device: &str) -> Message {
    let headers = [("x-client-id", "app"), ("x-device-id", device)];
    proxy.rest("GET", "/items/7", &headers, "")
}

/// Devices on the old way, and devices on the new one.
fn devices(proxy: &Proxy) -> [Vec<String>; 2] {
    let mut found = [Vec::new(), Vec::new()];
    for device in 0..64 {
        let device = device.to_string();
        let answer = call_of(proxy, &device);
        let way = usize::from(answer.status() != 200);
        found[way].push(device);
    }
    for way in &mut found {
        assert!(way.len() >= FEW, "{way:?}");
        way.truncate(FEW);
    }
    found
}

fn calls_fail(proxy: &Proxy, [old, new]: &[Vec<String>; 2]) {
    for (old, new) in old.iter().zip(new) {
        assert_eq!(call_of(proxy, old).status(), 200);
        assert_eq!(call_of(proxy, new).status(), BROKEN);
    }
}

fn tripped(proxy: &Proxy) -> Option<String> {
    let flag = proxy.ask("GET", FLAG, "").json();
    flag["tripped"]["reason"].as_str().map(str::to_owned)
}

#[test]
#[ignore = "needs redis-server"]
fn a_guard_rules_on_what_all_replicas_have_counted_and_acts_on_all() {
    let (_servers, config) = before_a_broken_one();
    // Which devices are on the new way is the same everywhere; the proxy that tells counts for nobody here.
    let unguarded = HALF.lines().filter(|line| !line.starts_with("guard"));
    let unguarded: Vec<&str> = unguarded.collect();
    let devices = devices(&Proxy::start_with_flags(&config, &unguarded.join("\n")));

    let store = Server::start(Memory::Kept);
    let [one, other] = ["one", "other"].map(|name| replica_with(&store, (&config, HALF), name));
    calls_fail(&one, &devices);
    let mut counted = 2 * FEW as u64;
    // Rounds of reports and rulings go by.
    for _ in 0..3 {
        becomes(|| calls(&other), &counted);
        call_of(&other, &devices[0][0]);
        counted += 1;
        becomes(|| calls(&one), &counted);
    }
    assert_eq!((tripped(&one), tripped(&other)), (None, None));

    calls_fail(&other, &devices);
    let reason = eventually("a guard takes the flag back", || tripped(&one));
    becomes(|| tripped(&other), &Some(reason));
    for proxy in [&one, &other] {
        for device in &devices[1] {
            assert_eq!(call_of(proxy, device).status(), 200);
        }
    }
    let history = one.ask("GET", "/api/v1/history", "").json();
    assert_eq!(history.as_array().unwrap().len(), 1, "{history}");
    assert_eq!(revision(&other), 1);

    ok(&other.ask("POST", "/api/v1/flags/mover/rearm", ""));
    becomes(|| tripped(&one), &None);
    assert_eq!(call_of(&one, &devices[1][0]).status(), BROKEN);
}

#[test]
#[ignore = "needs redis-server"]
fn a_guard_that_trips_while_the_store_is_away_is_stored_once_when_it_is_back() {
    let (_servers, config) = before_a_broken_one();
    let mut store = Server::start(Memory::Kept);
    let [one, other] = ["one", "other"].map(|name| replica_with(&store, (&config, HALF), name));
    store.kill();
    let devices = devices(&one);
    let back = || call_of(&one, &devices[1][0]).status();
    becomes(back, &200);
    assert_eq!(call_of(&other, &devices[1][0]).status(), BROKEN);
    assert_eq!(
        one.ask("POST", "/api/v1/flags/mover/rearm", "").status(),
        503
    );

    assert!(store.run_again());
    eventually("the trip is stored", || tripped(&other));
    becomes(|| call_of(&other, &devices[1][0]).status(), &200);
    becomes(|| revision(&one), &1);
    ok(&other.ask("POST", "/api/v1/flags/mover/rearm", ""));
    becomes(|| call_of(&one, &devices[1][0]).status(), &BROKEN);
    assert_eq!(one.log().matches("the guard of a flag tripped").count(), 1);
    becomes(|| overrides_of(&one) == overrides_of(&other), &true);
    assert_eq!(revision(&other), 2);
}
