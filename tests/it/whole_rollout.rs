//! The operator's day, whole: three clients move from the old way to the new one and lose nothing, though the new
//! server breaks on the way.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::scene::{self, Called};
use crate::support::{Message, Proxy, Upstream, Wire, both, eventually};

const CONFIG: &str = r#"
[[client]]
name = "ios"
match = { header = { x-client-id = "ios" } }
key = { header = "x-device-id" }
[[client]]
name = "android"
match = { header = { x-client-id = "android" } }
key = { header = "x-device-id" }
[[client]]
name = "batch"
match = { header = { x-client-id = "batch" } }
key = { header = "x-device-id" }
[[route]]
name = "item.get"
rest = "GET /items/{id}"
rpc = "item/get"
successor = "the method `item/get`"
"#;

const FLAGS: &str = r#"
[[flag]]
name = "mover"
route = "item.*"
side = "rest"
stage = "passthrough"
guard = { window = "10s", min_calls = 10 }
"#;

const CLIENTS: [&str; 3] = ["ios", "android", "batch"];
/// Devices of each client.
const DEVICES: usize = 16;
/// What both servers say of an item, in these bytes.
const ITEM: &str = r#"{"id":"7", "price":1.10,"big":123456789012345678901234567890}"#;

/// Both servers and the proxy before them.
struct Day {
    proxy: Proxy,
    broken: Arc<AtomicBool>,
    /// What the old server says to a caller without the proxy, to the last byte.
    old_says: Message,
    _servers: [Upstream; 2],
}

/// What the callers of one round have met.
#[derive(Debug, Default, PartialEq, Eq)]
struct Round {
    old: usize,
    new: usize,
    /// By client.
    failures: [usize; 3],
}

impl Day {
    fn begin() -> Day {
        let broken = Arc::new(AtomicBool::new(false));
        let old = Upstream::serving(|_| {
            scene::answer(
                "200 OK",
                &[
                    ("content-type", "application/json"),
                    ("x-by", "old"),
                    ("date", "Sat, 21 Nov 2026 08:00:00 GMT"),
                ],
                ITEM,
            )
        });
        let is_broken = broken.clone();
        let new = Upstream::serving(move |request| {
            if is_broken.load(Ordering::SeqCst) {
                return scene::answer("503 Service Unavailable", &[], "out of order");
            }
            let id = Called::of(request).id().to_owned();
            scene::json(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{ITEM}}}"#))
        });
        let proxy = Proxy::start_with_flags(&format!("{}{CONFIG}", both(&old, &new)), FLAGS);
        let mut wire = Wire::connect(old.address());
        wire.send("GET /items/7 HTTP/1.1\r\nHost: server.example\r\n\r\n");
        Day {
            proxy,
            broken,
            old_says: wire.read_answer_to("GET"),
            _servers: [old, new],
        }
    }

    fn call(&self, client: &str, device: usize) -> Message {
        let device = device.to_string();
        let headers = [("x-client-id", client), ("x-device-id", &*device)];
        self.proxy.rest("GET", "/items/7", &headers, "")
    }

    /// One call of every device. Whatever is no failure has the bytes that both servers send.
    fn round(&self) -> Round {
        let mut round = Round::default();
        for (place, client) in CLIENTS.iter().enumerate() {
            for device in 0..DEVICES {
                let answer = self.call(client, device);
                if answer.status() >= 500 {
                    round.failures[place] += 1;
                    continue;
                }
                assert_eq!((answer.status(), answer.text()), (200, ITEM));
                assert_eq!(answer.head.one("content-type"), Some("application/json"));
                match answer.head.one("x-by") {
                    Some("old") => {
                        assert_eq!(answer, self.old_says);
                        round.old += 1;
                    }
                    by => {
                        assert_eq!(by, None);
                        round.new += 1;
                    }
                }
            }
        }
        round
    }

    fn set(&self, stage: &str, percent: f64) {
        let body = json!({ "stage": stage, "percent": percent, "who": "anna" });
        let answer = self
            .proxy
            .ask("PUT", "/api/v1/flags/mover", &body.to_string());
        assert_eq!(answer.status(), 200, "{answer:?}");
    }

    /// Waits for such a verdict on a call in the shadow.
    fn sees(&self, verdict: &str) {
        let labels = ["route", "client", "side", "stage", "verdict"];
        let row = format!("item.get batch rest shadow {verdict}");
        eventually(&row, || {
            let verdicts = self.proxy.metrics();
            let verdicts = verdicts.table("dualgauge_verdicts_total", &labels);
            (*verdicts.get(&row)? >= 1.0).then_some(())
        });
    }

    fn flag(&self) -> Value {
        self.proxy.ask("GET", "/api/v1/flags/mover", "").json()
    }
}

/// A device of each client that is on a way now.
fn on(day: &Day, by: Option<&str>) -> [usize; 3] {
    CLIENTS.map(|client| {
        let is_on = |device: &usize| day.call(client, *device).head.one("x-by") == by;
        (0..DEVICES).find(is_on).unwrap()
    })
}

/// The new server breaks while every client goes on calling on both ways. Until the guard has seen enough, callers on
/// the new way fail; those on the old way never do; and after the trip nobody does.
fn break_and_go_back(day: &Day) {
    let all = CLIENTS.len() * DEVICES;
    let (old, new) = (on(day, Some("old")), on(day, None));
    day.broken.store(true, Ordering::SeqCst);
    let mut failures = [0; 3];
    let trip = eventually("the guard takes the flag back", || {
        for (place, client) in CLIENTS.into_iter().enumerate() {
            assert_eq!(day.call(client, old[place]), day.old_says);
            let answer = day.call(client, new[place]);
            if answer.status() >= 500 {
                failures[place] += 1;
            } else {
                assert_eq!(answer, day.old_says, "the trip has just acted");
            }
        }
        let flag = day.flag();
        flag["tripped"]["reason"].as_str().map(str::to_owned)
    });
    assert!(failures.iter().all(|count| *count > 0), "{failures:?}");
    let untouched = Round {
        old: all,
        ..Round::default()
    };
    assert_eq!(day.round(), untouched, "back on the old way: {trip}");
    day.proxy
        .log_line(&["the guard of a flag tripped", "flag=mover"]);
    let history = day.proxy.ask("GET", "/api/v1/history", "").json();
    assert_eq!(history[0]["what"], "trip");
    assert_eq!(history[0]["by"]["who"], "guard");
    day.broken.store(false, Ordering::SeqCst);
}

/// The new server answers in the shadow of the old one; nobody notices.
fn shadow(day: &Day, untouched: &Round) {
    day.set("shadow", 100.0);
    assert_eq!(day.round(), *untouched, "a shadow changes nothing");
    day.sees("match");
    let mismatches = day.proxy.ask("GET", "/api/v1/mismatches", "").json();
    assert_eq!(mismatches["routes"], json!([]), "{mismatches}");
}

#[test]
fn a_candidate_that_fails_changes_nothing_for_those_who_call() {
    let day = Day::begin();
    day.set("shadow", 100.0);
    day.broken.store(true, Ordering::SeqCst);
    let untouched = Round {
        old: CLIENTS.len() * DEVICES,
        ..Round::default()
    };
    assert_eq!(day.round(), untouched);
    day.sees("candidate-failed");
    // Nor when the guard has seen enough of them, and takes the flag back.
    assert_eq!(day.round(), untouched);
}

#[test]
fn three_clients_move_and_no_one_sees_more_than_the_few_failures_of_a_trip() {
    let day = Day::begin();
    let all = CLIENTS.len() * DEVICES;
    let untouched = Round {
        old: all,
        ..Round::default()
    };

    assert_eq!(day.round(), untouched, "passthrough");

    shadow(&day, &untouched);

    day.set("translate", 5.0);
    let few = day.round();
    assert_eq!(few.failures, [0; 3]);
    assert!(few.new < few.old, "{few:?}");
    assert_eq!(day.round(), few, "who is in stays in");

    day.set("translate", 50.0);
    let half = day.round();
    assert_eq!(half.failures, [0; 3]);
    assert!(half.new > few.new && half.old > 0, "{half:?}");

    break_and_go_back(&day);

    // Mended, and armed again by a person.
    let armed = day.proxy.ask("POST", "/api/v1/flags/mover/rearm", "");
    assert_eq!(armed.status(), 200, "{armed:?}");
    day.set("translate", 100.0);
    let everyone = Round {
        new: all,
        ..Round::default()
    };
    assert_eq!(day.round(), everyone, "everyone is on the new way");

    day.set("retired", 100.0);
    for client in CLIENTS {
        let answer = day.call(client, 0);
        assert_eq!(answer.status(), 410);
        assert!(answer.text().contains("item/get"), "{answer:?}");
    }

    let killed = day.proxy.ask("PUT", "/api/v1/kill", r#"{"who":"anna"}"#);
    assert_eq!(killed.status(), 200, "{killed:?}");
    assert_eq!(
        day.round(),
        untouched,
        "the kill switch is over retired routes, too"
    );
    day.proxy.ask("DELETE", "/api/v1/kill", "");
    assert_eq!(day.call("ios", 0).status(), 410);
    let undone = day.proxy.ask("POST", "/api/v1/flags/mover/undo", "");
    assert_eq!(undone.json()["stage"], "translate", "{undone:?}");
    assert_eq!(day.round(), everyone);
}

#[test]
fn a_trip_survives_a_restart() {
    let day = Day::begin();
    day.set("translate", 50.0);
    let half = day.round();
    assert!(half.new >= 10 && half.old >= 10, "{half:?}");
    day.broken.store(true, Ordering::SeqCst);
    day.round();
    eventually("the guard takes the flag back", || {
        day.flag()["tripped"]["reason"].as_str().map(drop)
    });
    let day = Day {
        proxy: day.proxy.restart(),
        ..day
    };
    let flag = day.flag();
    assert!(flag["tripped"]["reason"].is_string(), "{flag}");
    assert_eq!(day.round().failures, [0; 3]);
}
