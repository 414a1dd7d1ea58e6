//! The fault campaign: clients and servers that misbehave in every way at once, by a seed, and the laws that hold behind
//! each seed.
//!
//! - Every call ends with a definite answer, or with a closed connection where its answer was streaming.
//! - What came in and what went out agree with the metrics to the last call.
//! - Nothing is left: calls, connections, file descriptors, threads, memory.
//!
//! `DUALGAUGE_CAMPAIGN=N` runs N seeds in place of a few, `DUALGAUGE_SEED=N` begins with another one.

mod client;
mod ends;
mod guarded;
mod kinds;
mod mortal;
mod multiplexed;
mod server;
mod streams;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use client::{Tally, client};
use kinds::{Figures, Town};
pub(crate) use mortal::{Leaver, listen};
use server::Server;

use crate::soak::Held;
use crate::support::{Proxy, becomes};

/// Clients at a time, and how often each of them connects.
const CLIENTS: u64 = 8;
const TURNS: u64 = 12;
/// The seeds of an ordinary run, behind the first one.
const SEEDS: u64 = 3;
/// What is lost grows with each; what an allocator keeps for the next ones does not.
const ROUNDS: usize = 4;

/// Calls that are all good have numbers from here on. They are GETs.
const GOOD: u64 = 1 << 40;

/// Servers that misbehave, and the proxy before them.
struct Scene {
    rest: Server,
    rpc: Server,
    /// Of both sides, at further addresses.
    more: Vec<Server>,
    proxy: Proxy,
}

/// What has happened since the beginning.
#[derive(Debug, Default)]
struct Sums {
    tally: Tally,
    next: u64,
}

impl Scene {
    fn start() -> Scene {
        Scene::before([Server::start(), Server::start()], Vec::new(), ("", ""))
    }

    /// Two servers, each of which may have others beside it in turns, and what their upstreams and the limits have besides.
    fn before([rest, rpc]: [Server; 2], more: Vec<Server>, (keys, limits): (&str, &str)) -> Scene {
        let upstream = |name: &str, side: &str, (place, path): (usize, &str)| {
            let beside = more.iter().skip(place).step_by(2);
            let first = [&rest, &rpc][place];
            let urls = std::iter::once(first).chain(beside);
            let urls: Vec<String> = urls
                .map(|server| format!("\"http://{}{path}\"", server.address))
                .collect();
            format!(
                "[upstream.{name}]\nside = \"{side}\"\nurls = [{}]\ntimeout = \"2s\"\n\
                 idle_timeout = \"1s\"\nkeep_alive = \"300ms\"\n{keys}",
                urls.join(", ")
            )
        };
        let config = format!(
            "[listen]\nworkers = 2\n{}{}[limits]\nheader_timeout = \"5s\"\nbody_timeout = \"5s\"\n{limits}\
             [[route]]\nname = \"t.do\"\nrest = \"POST /t/do\"\nrpc = \"t.do\"\n",
            upstream("old", "rest", (0, "")),
            upstream("new", "rpc", (1, "/rpc")),
        );
        let flags = "[[flag]]\nname = \"t\"\nroute = \"t.*\"\nstage = \"translate\"\n";
        let proxy = Proxy::start_with_flags(&config, flags);
        Scene {
            rest,
            rpc,
            more,
            proxy,
        }
    }

    fn run(&self, seed: u64, sums: &mut Sums) {
        let (proxy, first) = (self.proxy.address(), sums.next);
        let turns = TURNS * 4;
        let tallies: Vec<Tally> = std::thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENTS)
                .map(|place| {
                    let span = (first + place * turns, TURNS);
                    scope.spawn(move || client(proxy, seed * CLIENTS + place, span))
                })
                .collect();
            clients
                .into_iter()
                .map(|client| client.join().unwrap())
                .collect()
        });
        sums.next += CLIENTS * turns;
        for tally in tallies {
            sums.tally.add(tally);
        }
    }

    /// Waits until nobody waits for anything: open connections are those that wait for their next call.
    fn calms_down(&self) {
        let busy = || {
            let metrics = self.proxy.metrics();
            let level = |name: &'static str| (name.to_owned(), metrics.value(name));
            let mut levels = vec![
                level("dualgauge_calls_in_flight"),
                level("dualgauge_client_connections"),
            ];
            levels.extend(metrics.table("dualgauge_upstream_connections", &["side"]));
            levels.retain(|(_, level)| *level != 0.0);
            levels
        };
        becomes(busy, &Vec::new());
    }

    /// What does not hold.
    fn faults(&self, sums: &Sums) -> Vec<String> {
        let mut faults = sums.tally.faults.clone();
        let mut law = |holds: bool, said: String| {
            if !holds {
                faults.push(said);
            }
        };
        let (all, twice) = self.heard();
        law(twice.is_none(), twice.unwrap_or_default());
        let metrics = self.proxy.metrics();
        let labels = ["route", "client", "side", "stage", "outcome"];
        let calls = metrics.table(
            "dualgauge_calls_total",
            &["route", "client", "side", "stage", "outcome", "blame"],
        );
        let counted = count(calls.values().sum());
        let sent = sums.tally.calls;
        law(
            counted == sent,
            format!("{sent} calls, {counted} counted: {calls:#?}"),
        );
        let reached = metrics.table("dualgauge_upstream_duration_seconds_count", &labels);
        let reached = count(reached.values().sum());
        let served = calls
            .iter()
            .filter(|(labels, _)| labels.contains(" success "));
        let served = count(served.map(|(_, calls)| calls).sum());
        let (seen, left) = (sums.tally.served, sums.tally.left);
        law(
            (seen..=seen + left + sums.tally.closes).contains(&served),
            format!("{seen} answers were read and {left} left, {served} counted"),
        );
        // Of a call that is left at once, the server may have heard nothing.
        let late = sums.tally.late;
        law(
            (all..=all + left + late).contains(&reached),
            format!("{all} calls were heard, {left} left and {late} late, {reached} told"),
        );
        let (unlucky, closes) = (sums.tally.unlucky, sums.tally.closes + left);
        law(
            unlucky <= closes,
            format!("{unlucky} calls met one of {closes} ends"),
        );
        faults.extend(self.reasons_that_do_not_agree(sums));
        faults
    }

    /// How many calls servers have heard, and which of them more often than the proxy says that it has sent them.
    fn heard(&self) -> (usize, Option<String>) {
        let servers = [&self.rest, &self.rpc].into_iter().chain(&self.more);
        let mut heard: BTreeMap<u64, usize> = BTreeMap::new();
        for number in servers.flat_map(Server::heard) {
            *heard.entry(number).or_default() += 1;
        }
        let labels = ["upstream", "result"];
        let metrics = self.proxy.metrics();
        let repeats = metrics.table("dualgauge_upstream_repeats_total", &labels);
        let sent = repeats.iter();
        let sent = sent.filter(|(labels, _)| labels.ends_with("sent"));
        let sent = count(sent.map(|(_, calls)| calls).sum());
        // A GET goes out once more where a kept connection breaks under it.
        let twice = heard.iter().filter(|(_, times)| **times > 1);
        let (good, other): (Vec<_>, Vec<_>) =
            twice.partition(|(number, times)| **number >= GOOD && **times == 2);
        let holds = other.is_empty() && good.len() <= sent;
        let said =
            || format!("calls were sent twice: {other:?}, {good:?}; {sent} were sent once more");
        (heard.len(), (!holds).then(said))
    }

    /// Where the reasons that clients were told are not those that were counted.
    fn reasons_that_do_not_agree(&self, sums: &Sums) -> Vec<String> {
        let labels = ["reason", "blame", "side"];
        let failures = self
            .proxy
            .metrics()
            .table("dualgauge_failures_total", &labels);
        let failed = |reasons: &[&str]| {
            let told = failures.iter().filter(|(labels, _)| {
                let reason = labels.split(' ').next().unwrap_or_default();
                reasons.contains(&reason)
            });
            count(told.map(|(_, calls)| calls).sum())
        };
        let Tally {
            resting,
            late,
            left,
            ..
        } = sums.tally;
        let mut faults = Vec::new();
        let told = failed(&["upstream_resting"]);
        if !(resting..=resting + left).contains(&told) {
            let said =
                format!("{resting} answers of a breaker were read and {left} left, {told} told");
            faults.push(said);
        }
        let told = failed(&["upstream_timeout", "request_timeout"]);
        if late > told {
            faults.push(format!("{late} calls ended with their time, {told} told"));
        }
        faults
    }
}

fn count(sum: f64) -> usize {
    format!("{sum:.0}").parse().unwrap()
}

/// A number that whoever runs the tests gives.
fn wanted(name: &str, usual: u64) -> u64 {
    #[expect(
        clippy::disallowed_methods,
        reason = "how long a campaign is, no configuration of the program"
    )]
    let said = std::env::var(name);
    said.map_or(usual, |said| said.parse().unwrap())
}

#[test]
fn every_call_ends_and_nothing_is_left_whatever_both_ends_do() {
    let sums = holds(&Scene::start());
    let odd = sums.tally.resting + sums.tally.late;
    assert_eq!(odd, 0, "nothing rests here, and no call has a time");
}

/// All laws, by seed and seed.
fn holds(scene: &Scene) -> Sums {
    let first = wanted("DUALGAUGE_SEED", 1);
    let seeds = first..=first + wanted("DUALGAUGE_CAMPAIGN", SEEDS);
    let mut sums = Sums::default();
    leaves_no_more(&scene.proxy, || {
        for seed in seeds.clone() {
            eprintln!("DUALGAUGE_SEED={seed}");
            scene.run(seed, &mut sums);
            scene.calms_down();
            let faults = scene.faults(&sums);
            assert!(faults.is_empty(), "seed {seed}:\n{}", faults.join("\n"));
        }
        let Tally { calls, served, .. } = sums.tally;
        eprintln!("{calls} calls, {served} served");
    });
    sums
}

/// Runs equal rounds, until one leaves no more behind than the one before: an allocator has what it keeps only after some.
fn leaves_no_more(proxy: &Proxy, mut round: impl FnMut()) {
    let mut before = None;
    for _ in 0..ROUNDS {
        round();
        let held = Held::least(proxy);
        eprintln!("{held:?}");
        if before.is_some_and(|before| held.is_back_at(&before)) {
            return;
        }
        before = Some(held);
    }
    panic!("each of {ROUNDS} equal rounds leaves more behind than the one before");
}

/// The soak on demand: `DUALGAUGE_SOAK=600 cargo test --release --test it soak_on_demand -- --nocapture` runs ten
/// minutes of good calls beside the campaign, and of calls of every kind before a proxy of their own, and prints what came
/// of it.
#[test]
fn soak_on_demand() {
    let seconds = wanted("DUALGAUGE_SOAK", 0);
    if seconds == 0 {
        return;
    }
    let (scene, town) = (Scene::start(), Town::start());
    let (figures, first) = (Figures::default(), Held::by(&town.proxy));
    let until = now() + Duration::from_secs(seconds);
    let (mut sums, mut held, mut seed) = (Sums::default(), Vec::new(), 0);
    let (mut times, of_town) = std::thread::scope(|scope| {
        let proxy = &scene.proxy;
        let good = scope.spawn(move || good_calls(proxy, until));
        let town = scope.spawn(|| town.lives(until, &figures));
        while now() < until {
            scene.run(seed, &mut sums);
            held.push(Held::by(proxy));
            seed += 1;
        }
        (good.join().unwrap(), town.join().unwrap())
    });
    scene.calms_down();
    sums.tally.calls += times.len();
    sums.tally.served += times.len();
    let faults = scene.faults(&sums);
    times.sort_unstable();
    let at = |part: usize| times[times.len() * part / 100];
    println!(
        "{seconds} s, {seed} seeds, {} calls, {} served, {} laws broken; good calls {}, p50 {:?}, p99 {:?}; \
         {}, then {:?}",
        sums.tally.calls,
        sums.tally.served,
        faults.len(),
        times.len(),
        at(50),
        at(99),
        extremes(&held),
        Held::by(&scene.proxy),
    );
    let (told, failed) = figures.told();
    let last = Held::by(&town.proxy);
    println!(
        "{told}{first:?} at first, {}, then {last:?}",
        extremes(&of_town)
    );
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert_eq!(failed, 0, "{told}");
}

/// The least and the most memory that was held, with what else was held then.
fn extremes(held: &[Held]) -> String {
    let least = held.iter().min_by_key(|held| held.resident_kib);
    let most = held.iter().max_by_key(|held| held.resident_kib);
    format!("least {least:?}, most {most:?}")
}

/// Calls that are answered well, one behind the other: how long each took.
fn good_calls(proxy: &Proxy, until: Instant) -> Vec<Duration> {
    let mut times = Vec::new();
    let mut wire = proxy.connect();
    while now() < until {
        let began = now();
        let number = GOOD + times.len() as u64;
        wire.send(format!(
            "GET /p/do HTTP/1.1\r\nHost: a\r\nUser-Agent: {number}-0\r\n\r\n"
        ));
        assert_eq!(wire.read_answer().status(), 200);
        times.push(now() - began);
    }
    times
}

#[expect(
    clippy::disallowed_methods,
    reason = "a soak has its length, and tells how long calls take"
)]
fn now() -> Instant {
    Instant::now()
}

#[test]
fn a_law_that_is_broken_is_seen() {
    let scene = Scene::start();
    let mut sums = Sums::default();
    scene.run(0, &mut sums);
    scene.calms_down();
    assert_eq!(scene.faults(&sums), Vec::<String>::new());
    // A call that nobody has noted.
    let answer = scene
        .proxy
        .rest("POST", "/p/do", &[("User-Agent", "999999-0")], "{}");
    assert_eq!(answer.status(), 200);
    becomes(|| scene.faults(&sums).len(), &1);
    assert!(scene.faults(&sums)[0].contains("counted"));
    sums.tally.calls += 1;
    sums.tally.served += 1;
    assert_eq!(scene.faults(&sums), Vec::<String>::new());
    // One that was sent twice.
    let mut own = crate::support::Wire::connect(scene.rest.address);
    own.send("POST /p/do HTTP/1.1\r\nUser-Agent: 999999-0\r\nContent-Length: 0\r\n\r\n");
    own.read_answer();
    let faults = scene.faults(&sums);
    assert!(faults.iter().any(|fault| fault.contains("sent twice")));
}
