//! Two replicas and the store that they share: a real `redis-server` that is killed, emptied and started again.

mod guarded;

use std::thread;
use std::time::Duration;

use dualgauge::telemetry::clock::now;
use serde_json::Value;

use crate::redis_server::{Memory, Server};
use crate::support::{Message, Proxy, becomes, eventually};
use crate::two_servers::{MOVER, Servers, answers};

const FLAG: &str = "/api/v1/flags/mover";
const KILL: &str = "/api/v1/kill";
const PASSTHROUGH: &str = r#"{"stage":"passthrough","percent":100,"who":"anna"}"#;
const TRANSLATE: &str = r#"{"stage":"translate","percent":100,"who":"anna"}"#;

/// Both, before the same servers and with the same files.
struct Replicas {
    store: Server,
    servers: Servers,
    one: Proxy,
    other: Proxy,
}

impl Replicas {
    fn start(memory: Memory) -> Replicas {
        Replicas::start_with(memory, "")
    }

    /// Where a flag can be given a share: each caller has a key.
    fn start_with_keys(memory: Memory) -> Replicas {
        Replicas::start_with(memory, "key = { header = \"x-device-id\" }\n")
    }

    fn start_with(memory: Memory, key: &str) -> Replicas {
        let store = Server::start(memory);
        let servers = Servers::start();
        let config = servers.config();
        let config = config.replace("[[client]]\n", &format!("[[client]]\n{key}"));
        let one = replica(&store, &config, "one");
        let other = replica(&store, &config, "other");
        Replicas {
            store,
            servers,
            one,
            other,
        }
    }

    fn both(&self) -> [&Proxy; 2] {
        [&self.one, &self.other]
    }

    /// Waits until both replicas have the same flags, overrides and history.
    fn agree(&self) {
        becomes(
            || overrides_of(&self.other) == overrides_of(&self.one),
            &true,
        );
    }

    fn become_ready_again(&self) {
        for proxy in self.both() {
            becomes(|| ready(proxy), &(200, "ready\n".to_owned()));
        }
    }
}

fn replica(store: &Server, config: &str, name: &str) -> Proxy {
    replica_with(store, (config, MOVER), name)
}

fn replica_with(store: &Server, (config, flags): (&str, &str), name: &str) -> Proxy {
    let url = store.url();
    let shared =
        format!("[rollout.store]\nurl = \"{url}\"\nreplica = \"{name}\"\ntimeout = \"2s\"\n");
    Proxy::start_with_flags(&format!("{config}{shared}"), flags)
}

fn revision(proxy: &Proxy) -> u64 {
    let flags = proxy.ask("GET", "/api/v1/flags", "").json();
    flags["revision"].as_u64().unwrap()
}

/// Returns the flags with their revision and overrides, and the history of changes.
fn overrides_of(proxy: &Proxy) -> [Value; 2] {
    ["/api/v1/flags", "/api/v1/history"].map(|path| proxy.ask("GET", path, "").json())
}

fn ready(proxy: &Proxy) -> (u16, String) {
    let answer = proxy.ask("GET", "/readyz", "");
    (answer.status(), answer.text().to_owned())
}

fn ok(answer: &Message) {
    assert_eq!(answer.status(), 200, "{answer:?}");
}

fn put_if(proxy: &Proxy, tag: &str, body: &str) -> u16 {
    let (admin, length) = (proxy.admin(), body.len());
    let request = format!(
        "PUT {FLAG} HTTP/1.1\r\nHost: {admin}\r\nContent-Type: application/json\r\nIf-Match: \"{tag}\"\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    proxy.ask_raw(&request).status()
}

fn tag(proxy: &Proxy) -> String {
    let flag = proxy.ask("GET", FLAG, "").json();
    flag["tag"].as_str().unwrap().to_owned()
}

/// From now on.
fn acts_within_a_second(proxy: &Proxy, by: &str) {
    let began = now();
    becomes(|| answers(proxy, "mover"), &by.to_owned());
    let took = now() - began;
    assert!(took < Duration::from_secs(1), "{took:?}");
}

#[test]
#[ignore = "needs redis-server"]
fn a_flip_on_one_replica_acts_on_the_other_within_a_second() {
    let replicas = Replicas::start(Memory::Lost);
    let [one, other] = replicas.both();
    for (from, to) in [(one, other), (other, one)] {
        ok(&from.ask("PUT", FLAG, PASSTHROUGH));
        acts_within_a_second(to, "rest");
        assert_eq!(answers(from, "mover"), "rest");
        ok(&from.ask("PUT", FLAG, TRANSLATE));
        acts_within_a_second(to, "rpc");
        assert_eq!(overrides_of(one), overrides_of(other));
    }
    assert_eq!(revision(one), 4);
    let history = one.ask("GET", "/api/v1/history", "").json();
    assert_eq!(history.as_array().unwrap().len(), 4, "{history}");
}

#[test]
#[ignore = "needs redis-server"]
fn what_one_replica_tells_is_known_to_the_other_at_once() {
    let replicas = Replicas::start_with_keys(Memory::Lost);
    let [one, other] = replicas.both();
    let mut stale = tag(other);
    for body in [PASSTHROUGH, TRANSLATE, PASSTHROUGH] {
        ok(&one.ask("PUT", FLAG, body));
        // No look at the store lies between.
        let percent = body
            .replace("100", "50")
            .replace("passthrough", "translate");
        assert_eq!(put_if(other, &stale, &percent), 412);
        stale = tag(one);
        assert_eq!(put_if(other, &stale, &percent), 200);
    }
    ok(&one.ask("PUT", KILL, r#"{"who":"anna"}"#));
    ok(&other.ask("DELETE", KILL, ""));
    assert_eq!(revision(other), 8);
    replicas.agree();
}

#[test]
#[ignore = "needs redis-server"]
fn of_two_operators_who_race_on_two_replicas_exactly_one_wins() {
    let replicas = Replicas::start_with_keys(Memory::Lost);
    for round in 1..=20 {
        let tag = tag(&replicas.one);
        replicas.agree();
        let body =
            |percent: u32| format!(r#"{{"stage":"translate","percent":{percent},"who":"anna"}}"#);
        let mut statuses = thread::scope(|scope| {
            let racers = [(&replicas.one, 2 * round), (&replicas.other, 2 * round + 1)];
            racers
                .map(|(proxy, percent)| {
                    let (tag, body) = (&tag, body(percent));
                    scope.spawn(move || put_if(proxy, tag, &body))
                })
                .map(|racer| racer.join().unwrap())
        });
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 412], "round {round}");
        replicas.agree();
        assert_eq!(revision(&replicas.one), u64::from(round));
    }
}

#[test]
#[ignore = "needs redis-server"]
fn the_kill_switch_thrown_on_one_replica_acts_on_the_other() {
    let replicas = Replicas::start(Memory::Lost);
    let [one, other] = replicas.both();
    assert_eq!(answers(other, "mover"), "rpc");
    ok(&one.ask("PUT", KILL, r#"{"who":"anna"}"#));
    acts_within_a_second(other, "rest");
    ok(&other.ask("DELETE", KILL, ""));
    acts_within_a_second(one, "rpc");
    replicas.agree();
}

#[test]
#[ignore = "needs redis-server"]
fn while_the_store_is_away_the_last_good_flags_hold_and_nothing_is_lost_or_made_twice() {
    let mut replicas = Replicas::start(Memory::Kept);
    ok(&replicas.one.ask("PUT", FLAG, PASSTHROUGH));
    acts_within_a_second(&replicas.other, "rest");
    replicas.store.kill();
    for proxy in replicas.both() {
        let text = eventually("readiness tells of the store", || {
            let (status, text) = ready(proxy);
            assert_eq!(status, 200, "{text}");
            text.contains("the store is unavailable").then_some(text)
        });
        assert!(text.contains("the last good flags hold"), "{text}");
        assert_eq!(proxy.ask("PUT", FLAG, TRANSLATE).status(), 503);
        assert_eq!(answers(proxy, "mover"), "rest");
        assert_eq!(revision(proxy), 1);
    }
    assert!(replicas.store.run_again());
    replicas.become_ready_again();
    for proxy in replicas.both() {
        assert_eq!(
            (revision(proxy), answers(proxy, "mover")),
            (1, "rest".to_owned())
        );
    }
    ok(&replicas.other.ask("PUT", FLAG, TRANSLATE));
    acts_within_a_second(&replicas.one, "rpc");
    replicas.agree();
    assert_eq!(revision(&replicas.one), 2);
}

#[test]
#[ignore = "needs redis-server"]
fn the_kill_switch_acts_while_the_store_is_away_and_on_all_when_it_is_back() {
    let mut replicas = Replicas::start(Memory::Kept);
    replicas.store.kill();
    assert_eq!(answers(&replicas.one, "mover"), "rpc");
    let killed = replicas.one.ask("PUT", KILL, r#"{"who":"anna"}"#);
    assert_eq!(killed.status(), 202, "{killed:?}");
    assert_eq!(killed.json()["kill"]["who"], "anna");
    assert_eq!(answers(&replicas.one, "mover"), "rest");
    assert_eq!(answers(&replicas.other, "mover"), "rpc");
    assert!(replicas.store.run_again());
    becomes(|| answers(&replicas.other, "mover"), &"rest".to_owned());
    replicas.become_ready_again();
    replicas.agree();
    ok(&replicas.other.ask("DELETE", KILL, ""));
    becomes(|| answers(&replicas.one, "mover"), &"rpc".to_owned());
}

#[test]
#[ignore = "needs redis-server"]
fn changes_go_on_across_restarts_of_the_store_and_each_is_made_once() {
    let mut replicas = Replicas::start_with_keys(Memory::Kept);
    let mut acknowledged = 0;
    for round in 0..10 {
        for (place, proxy) in [&replicas.one, &replicas.other].into_iter().enumerate() {
            let percent = 10 + 2 * round + place;
            let body = format!(r#"{{"stage":"translate","percent":{percent}}}"#);
            eventually("the change is made", || {
                (proxy.ask("PUT", FLAG, &body).status() == 200).then_some(())
            });
            acknowledged += 1;
        }
        assert!(replicas.store.run_again());
    }
    replicas.become_ready_again();
    replicas.agree();
    assert_eq!(revision(&replicas.one), acknowledged);
}

#[test]
#[ignore = "needs redis-server"]
fn a_store_that_comes_back_empty_is_given_the_flags_back() {
    let mut replicas = Replicas::start(Memory::Lost);
    ok(&replicas.one.ask("PUT", FLAG, TRANSLATE));
    ok(&replicas.other.ask("PUT", FLAG, PASSTHROUGH));
    replicas.agree();
    let good = overrides_of(&replicas.one);
    assert!(replicas.store.run_again());
    // Whoever asks before anybody has looked is not told that the store has forgotten.
    let killed = eventually("the kill switch is thrown", || {
        let answer = replicas.one.ask("PUT", KILL, r#"{"who":"anna"}"#);
        (answer.status() == 200).then_some(answer)
    });
    ok(&killed);
    replicas.agree();
    assert_eq!(revision(&replicas.other), 3);
    assert_eq!(good[0]["flags"], overrides_of(&replicas.other)[0]["flags"]);
    let history = replicas.other.ask("GET", "/api/v1/history", "").json();
    assert_eq!(history.as_array().unwrap().len(), 3, "{history}");
    // And who begins now learns all of it.
    let third = replica(&replicas.store, &replicas.servers.config(), "third");
    assert_eq!(overrides_of(&third), overrides_of(&replicas.one));
}

#[test]
#[ignore = "needs redis-server"]
fn who_starts_while_the_store_is_away_serves_as_the_file_says_and_is_not_ready() {
    let mut replicas = Replicas::start(Memory::Kept);
    ok(&replicas.one.ask("PUT", FLAG, PASSTHROUGH));
    replicas.store.kill();
    let late = replica(&replicas.store, &replicas.servers.config(), "late");
    let (status, text) = ready(&late);
    assert_eq!(status, 503, "{text}");
    assert!(text.contains("away since the start"), "{text}");
    assert_eq!(answers(&late, "mover"), "rpc");
    assert_eq!(late.ask("PUT", FLAG, TRANSLATE).status(), 503);
    assert!(replicas.store.run_again());
    becomes(|| ready(&late), &(200, "ready\n".to_owned()));
    assert_eq!(answers(&late, "mover"), "rest");
    assert_eq!(overrides_of(&late), overrides_of(&replicas.one));
}

#[test]
#[ignore = "needs redis-server"]
fn who_starts_again_while_the_store_is_away_begins_with_the_last_good_flags() {
    let Replicas {
        mut store,
        servers: _servers,
        one,
        other,
    } = Replicas::start(Memory::Kept);
    ok(&one.ask("PUT", FLAG, PASSTHROUGH));
    acts_within_a_second(&other, "rest");
    store.kill();
    let other = other.restart();
    let (status, text) = ready(&other);
    assert_eq!(status, 200, "{text}");
    assert!(text.contains("a copy of revision 1 from 2"), "{text}");
    assert!(text.contains("the last good flags hold"), "{text}");
    assert_eq!(answers(&other, "mover"), "rest");
    assert_eq!(overrides_of(&other), overrides_of(&one));
    assert_eq!(other.ask("PUT", FLAG, TRANSLATE).status(), 503);

    // What the store says when it is back holds.
    assert!(store.run_again());
    for proxy in [&one, &other] {
        becomes(|| ready(proxy), &(200, "ready\n".to_owned()));
    }
    ok(&one.ask("PUT", FLAG, TRANSLATE));
    acts_within_a_second(&other, "rpc");
    assert_eq!(overrides_of(&other), overrides_of(&one));
}

#[test]
#[ignore = "needs redis-server"]
fn a_store_that_comes_back_empty_is_given_back_what_was_copied() {
    let Replicas {
        mut store,
        servers: _servers,
        one,
        other,
    } = Replicas::start(Memory::Lost);
    ok(&one.ask("PUT", FLAG, PASSTHROUGH));
    acts_within_a_second(&other, "rest");
    let good = overrides_of(&other);
    drop(one);
    store.kill();
    let other = other.restart();
    assert!(store.run_again());
    becomes(|| ready(&other), &(200, "ready\n".to_owned()));
    assert_eq!(overrides_of(&other), good);
    ok(&other.ask("PUT", FLAG, TRANSLATE));
    assert_eq!(revision(&other), 2);
}

/// How often the client has called, on all replicas, as one of them tells.
fn calls(proxy: &Proxy) -> u64 {
    let usage = proxy.ask("GET", "/api/v1/usage", "").json();
    sum_of_calls(&usage)
}

fn sum_of_calls(value: &Value) -> u64 {
    let Some(members) = value.as_object() else {
        return value
            .as_array()
            .into_iter()
            .flatten()
            .map(sum_of_calls)
            .sum();
    };
    match members.get("calls").and_then(Value::as_u64) {
        Some(calls) => calls,
        None => members.values().map(sum_of_calls).sum(),
    }
}

#[test]
#[ignore = "needs redis-server"]
fn usage_is_of_all_replicas_and_of_those_that_have_ended() {
    let Replicas {
        store: _store,
        servers: _servers,
        one,
        other,
    } = Replicas::start(Memory::Kept);
    for _ in 0..3 {
        answers(&one, "mover");
    }
    for _ in 0..4 {
        answers(&other, "mover");
    }
    for proxy in [&one, &other] {
        becomes(|| calls(proxy), &7);
    }
    answers(&other, "mover");
    let other = other.restart();
    for proxy in [&one, &other] {
        becomes(|| calls(proxy), &8);
    }
    answers(&other, "mover");
    for proxy in [&one, &other] {
        becomes(|| calls(proxy), &9);
    }
}
