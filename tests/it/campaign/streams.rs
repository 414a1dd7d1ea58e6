//! The part of clients over HTTP/2: some call as they should, others reset, send half, take nothing, flood or go away.
//!
//! A call is certain to be counted when its client has waited until all that it sent was read; one that was reset at once
//! may never have been one.

use std::time::Duration;

use bytes::Bytes;
use h2::Reason;
use h2::client::Builder;
use http::{Method, Request};
use tokio::time::timeout;

use super::server::{ALL, Fault, Server};
use super::{SEEDS, count, leaves_no_more, wanted};
use crate::http2::{Client, begin, request, run, text};
use crate::random::dice::Dice;
use crate::support::certificates::Authority;
use crate::support::{Proxy, WITHIN, becomes};

const CLIENTS: u64 = 6;
const TURNS: u64 = 10;
/// More than a client may reset beyond what is answered.
const FLOOD: u64 = 300;

/// How a client behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Whole,
    Together,
    Resets,
    SendsHalf,
    TakesNothing,
    Floods,
    GoesAway,
}

const MANNERS: [Manner; 9] = [
    Manner::Whole,
    Manner::Whole,
    Manner::Together,
    Manner::Together,
    Manner::Resets,
    Manner::SendsHalf,
    Manner::TakesNothing,
    Manner::Floods,
    Manner::GoesAway,
];

/// What clients have done, and what they saw that must not be.
#[derive(Debug, Default)]
struct Counts {
    sent: usize,
    /// Those that the proxy has certainly seen.
    seen: usize,
    served: usize,
    faults: Vec<String>,
}

impl Counts {
    fn add(&mut self, more: Counts) {
        self.sent += more.sent;
        self.seen += more.seen;
        self.served += more.served;
        self.faults.extend(more.faults);
    }
}

struct Visit<'a> {
    client: Client,
    dice: &'a mut Dice,
    next: u64,
    counts: &'a mut Counts,
}

impl Visit<'_> {
    /// A call, with its number and what its server does.
    fn call(&mut self) -> (Request<()>, u64, Fault) {
        let (number, place) = (self.next, self.dice.below(ALL.len()));
        self.next += 1;
        self.counts.sent += 1;
        let agent = format!("{number}-{place}");
        let fields = [
            ("user-agent", &*agent),
            ("content-type", "application/json"),
        ];
        (request(Method::POST, "/p/do", &fields), number, ALL[place])
    }

    /// Notes what must not be, which is no success.
    fn fault(&mut self, said: String) -> bool {
        self.counts.faults.push(said);
        false
    }

    async fn ready(&mut self) -> bool {
        std::future::poll_fn(|cx| self.client.send.poll_ready(cx))
            .await
            .is_ok()
    }

    async fn goes(mut self, manner: Manner) {
        match manner {
            Manner::Whole => self.together(1).await,
            Manner::Together => self.together(8).await,
            Manner::Resets | Manner::GoesAway | Manner::SendsHalf => self.leaves(manner).await,
            Manner::TakesNothing => self.takes_nothing().await,
            Manner::Floods => self.floods().await,
        }
    }

    /// Calls at a time on the same connection, each of which ends with a definite answer, or is reset behind its head.
    async fn together(&mut self, calls: usize) {
        let mut asked = Vec::new();
        for _ in 0..calls {
            let (request, number, fault) = self.call();
            if !self.ready().await {
                self.fault(format!("no place for call {number}"));
                return;
            }
            let (answer, mut body) = self.client.send.send_request(request, false).unwrap();
            body.send_data(Bytes::from_static(b"{}"), true).unwrap();
            asked.push((answer, number, fault));
        }
        for (answer, number, fault) in asked {
            self.counts.seen += 1;
            let Ok(Ok(answer)) = timeout(WITHIN, answer).await else {
                self.fault(format!("no answer: call {number}, {fault:?}"));
                continue;
            };
            let status = answer.status();
            let mut body = answer.into_body();
            let mut read = Vec::new();
            let is_whole = loop {
                match timeout(WITHIN, body.data()).await {
                    Ok(Some(Ok(piece))) => {
                        body.flow_control().release_capacity(piece.len()).unwrap();
                        read.extend_from_slice(&piece);
                    }
                    Ok(Some(Err(_))) => break false,
                    Ok(None) => break true,
                    Err(_) => break self.fault(format!("no end: call {number}, {fault:?}")),
                }
            };
            let read = String::from_utf8_lossy(&read);
            if is_whole && status == 200 && read.contains(&format!(r#""n":{number}}}"#)) {
                self.counts.served += 1;
            } else if fault.is_borne() && !read.contains("upstream_cut") {
                self.fault(format!("call {number}, {fault:?}: {status} {read:?}"));
            }
        }
    }

    /// A call whose client goes before its answer: by itself, or with its connection.
    async fn leaves(&mut self, manner: Manner) {
        let (request, _, _) = self.call();
        if !self.ready().await {
            return;
        }
        let (_answer, mut body) = self.client.send.send_request(request, false).unwrap();
        if manner == Manner::SendsHalf {
            body.send_data(Bytes::from_static(b"{"), false).unwrap();
        }
        self.client.settle().await;
        self.counts.seen += 1;
        if manner != Manner::GoesAway {
            body.send_reset(Reason::CANCEL);
            self.client.settle().await;
        }
    }

    /// The window is too small for any answer, and is never opened; who goes away is not waited for.
    async fn takes_nothing(&mut self) {
        let (request, _, _) = self.call();
        if !self.ready().await {
            return;
        }
        let (answer, mut body) = self.client.send.send_request(request, false).unwrap();
        let _ = body.send_data(Bytes::from_static(b"{}"), true);
        self.client.settle().await;
        self.counts.seen += 1;
        let _ = timeout(WITHIN, answer).await;
    }

    /// Calls that are reset as soon as they are sent, until the proxy has had enough.
    async fn floods(&mut self) {
        for _ in 0..FLOOD {
            let (request, _, _) = self.call();
            if !self.ready().await {
                return;
            }
            let Ok((_, mut body)) = self.client.send.send_request(request, true) else {
                return;
            };
            tokio::task::yield_now().await;
            body.send_reset(Reason::CANCEL);
        }
    }
}

async fn client(proxy: &Proxy, ours: &Authority, (seed, first): (u64, u64)) -> Counts {
    let (mut dice, mut counts) = (Dice::of(seed), Counts::default());
    for turn in 0..TURNS {
        let manner = dice.pick(&MANNERS);
        let mut builder = Builder::new();
        if manner == Manner::TakesNothing {
            builder.initial_window_size(1);
        }
        let client = Client::connect_by(proxy, (ours, None), &builder).await;
        let next = first + turn * (FLOOD + 10);
        let visit = Visit {
            client,
            dice: &mut dice,
            next,
            counts: &mut counts,
        };
        visit.goes(manner).await;
    }
    counts
}

/// What does not hold.
fn faults(proxy: &Proxy, rest: &Server, all: &Counts) -> Vec<String> {
    let mut faults = all.faults.clone();
    let mut heard = rest.heard();
    let times = heard.len();
    heard.sort_unstable();
    heard.dedup();
    let labels = ["route", "client", "side", "stage", "outcome", "blame"];
    let calls = proxy.metrics().table("dualgauge_calls_total", &labels);
    let counted = count(calls.values().sum());
    let served = calls
        .iter()
        .filter(|(labels, _)| labels.contains(" success "));
    let served = count(served.map(|(_, calls)| calls).sum());
    let Counts { sent, seen, .. } = all;
    let laws = [
        (times == heard.len(), "calls were sent twice".to_owned()),
        (
            (*seen..=*sent).contains(&counted),
            format!("{sent} calls, {seen} seen, {counted} counted"),
        ),
        (
            served >= all.served && served <= counted,
            format!("{} answers were read, {served} counted", all.served),
        ),
        (
            times <= counted,
            format!("{times} calls were heard, {counted} counted"),
        ),
    ];
    faults.extend(
        laws.into_iter()
            .filter(|(holds, _)| !holds)
            .map(|(_, said)| said),
    );
    faults
}

fn calms_down(proxy: &Proxy) {
    let idle = || {
        let metrics = proxy.metrics();
        let open = metrics.table("dualgauge_upstream_connections", &["side"]);
        metrics.value("dualgauge_calls_in_flight") == 0.0
            && metrics.value("dualgauge_client_connections") == 0.0
            && open.values().all(|open| *open == 0.0)
    };
    becomes(idle, &true);
}

/// What the clients of one seed do, from this number of a call on.
fn crowd((proxy, ours): (&Proxy, &Authority), (seed, next): (u64, u64)) -> Vec<Counts> {
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|place| {
                let begins = (seed * CLIENTS + place, next + place * TURNS * (FLOOD + 10));
                scope.spawn(move || {
                    let mut counts = Counts::default();
                    run(async { counts = client(proxy, ours, begins).await });
                    counts
                })
            })
            .collect();
        clients.into_iter().map(|one| one.join().unwrap()).collect()
    })
}

#[test]
fn clients_over_http_2_leave_nothing_and_are_counted_whatever_they_do() {
    let rest = Server::start();
    let (ours, proxy) = begin(&format!(
        "[listen]\nworkers = 2\n[upstream.old]\nside = \"rest\"\nurl = \"http://{}\"\ntimeout = \"2s\"\n\
         idle_timeout = \"1s\"\nkeep_alive = \"300ms\"\n[limits]\nwrite_timeout = \"2s\"\n",
        rest.address
    ));
    let first = wanted("DUALGAUGE_SEED", 1);
    let seeds = first..=first + wanted("DUALGAUGE_CAMPAIGN", SEEDS);
    let (mut all, mut next) = (Counts::default(), 0);
    leaves_no_more(&proxy, || {
        for seed in seeds.clone() {
            eprintln!("DUALGAUGE_SEED={seed}");
            for counts in crowd((&proxy, &ours), (seed, next)) {
                all.add(counts);
            }
            next += CLIENTS * TURNS * (FLOOD + 10);
            calms_down(&proxy);
            let faults = faults(&proxy, &rest, &all);
            assert!(faults.is_empty(), "seed {seed}:\n{}", faults.join("\n"));
        }
    });
    run(async {
        let mut client = Client::connect(&proxy, &ours, None).await;
        let fields = [("user-agent", "999999999-0")];
        let asked = client.ask(request(Method::POST, "/p/do", &fields), "{}");
        let answer = timeout(Duration::from_secs(10), asked).await.unwrap();
        assert!(text(answer).await.contains("999999999"));
    });
}
