//! Seeded simulations of callers and a server, and the laws that hold in all of them. In every other simulation the
//! client also writes frames, with its own ids; some of them are the ids that the correlator would assign next.

use std::collections::BTreeMap;

use super::*;
use crate::outcome::TranslatedReply;
use crate::pending::Ticket;

/// The number of simulations.
const WORLDS: u64 = 2000;
/// The number of steps of each.
const STEPS: usize = 40;
/// The limit of pending calls.
const MOST: usize = 6;

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }
}

/// The request of one caller.
#[derive(Debug, Clone)]
struct Caller {
    kind: u64,
    /// The path or the session.
    subject: u64,
    deadline: Duration,
    /// The id in its frame.
    id: Option<String>,
    /// The content that the server answers to this command only.
    serial: u64,
    speaks: Speaks,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speaks {
    Rpc,
    Frames,
}

struct World {
    seed: u64,
    dice: Dice,
    now: Duration,
    waiting: FrameCorrelator,
    next: u64,
    /// The pending requests, and those that were cancelled or answered.
    open: BTreeMap<u64, Caller>,
    past: Vec<Caller>,
    to_send: Vec<u64>,
    /// Ids that the client used although the correlator could assign them: a late answer with one of them is ambiguous.
    taken: Vec<String>,
    passed: u64,
}

impl World {
    fn new(seed: u64) -> World {
        World {
            taken: Vec::new(),
            passed: 0,
            seed,
            dice: Dice(seed),
            now: Duration::ZERO,
            waiting: FrameCorrelator::new(MOST),
            next: 1,
            open: BTreeMap::new(),
            past: Vec::new(),
            to_send: Vec::new(),
        }
    }

    fn step(&mut self, table: &RouteTable) {
        match self.dice.below(12 + 4 * (self.seed % 2)) {
            0..=3 => self.ask(table),
            4..=6 => self.answer(table),
            7 => self.cancel(),
            8 => self.foreign(table),
            9 => {
                for ticket in std::mem::take(&mut self.to_send) {
                    self.waiting.sent(table, (self.now, Ticket(ticket)));
                }
            }
            12..=14 => self.pass(table),
            10 if self.dice.below(10) == 0 => self.waiting.connection_lost(),
            _ => {
                self.now += Duration::from_millis(self.dice.below(400));
                self.waiting.tick(table, self.now, TERMS);
            }
        }
        self.settle(table);
    }

    fn ask(&mut self, table: &RouteTable) {
        let (kind, subject) = (self.dice.below(4), self.dice.below(3));
        let (method, params) = match kind {
            0 => ("file/get", format!(r#"{{"path":"s{subject}"}}"#)),
            1 => ("watch", format!(r#"{{"session_id":"s{subject}"}}"#)),
            2 => ("unwatch", "{}".to_owned()),
            _ => (
                "run",
                format!(r#"{{"prompt":"s{subject}","mode":"m{subject}"}}"#),
            ),
        };
        let params = json(&params);
        let deadline = self.now + Duration::from_millis(self.dice.below(1500));
        let ticket = self.next;
        self.next += 1;
        let caller = Caller {
            kind,
            subject,
            deadline,
            id: None,
            serial: ticket,
            speaks: Speaks::Rpc,
        };
        self.open.insert(ticket, caller);
        let command = FrameCommand {
            ticket: Ticket(ticket),
            route: usize::try_from(kind).unwrap(),
            call: MethodCall::new(method, Some(&params)),
            deadline,
        };
        self.waiting.ask(table, (self.now, command), TERMS);
    }

    /// The client itself writes a frame.
    fn pass(&mut self, table: &RouteTable) {
        let (kind, subject) = (self.dice.below(4), self.dice.below(3));
        let ticket = self.next;
        self.next += 1;
        let id = match self.dice.below(2) {
            0 => format!("own-{ticket}"),
            _ => self.dice.below(ticket).to_string(),
        };
        let frame = json(&command(kind, &id, subject));
        let all = self.open.values();
        let of_client = |caller: &&Caller| caller.speaks == Speaks::Frames;
        let mut own = all
            .filter(of_client)
            .chain(self.past.iter().filter(of_client));
        if own.any(|caller| caller.id.as_ref() == Some(&id)) {
            // Even this client uses an id for one command only.
            return;
        }
        let route = table.select_frame(&frame).unwrap();
        let call = command_to_rpc(table.route(route), frame, TERMS).unwrap();
        let deadline = self.now + Duration::from_millis(1 + self.dice.below(1500));
        let overheard = ObservedRequest {
            ticket: Ticket(ticket),
            route,
            call: call.bindings,
            deadline,
        };
        let mut given = self.open.values().filter(|caller| !of_client(caller));
        let waits = given.any(|caller| caller.id.as_ref() == Some(&id));
        let clashes = self.waiting.clashes(table, &overheard);
        assert_eq!(clashes, waits, "seed {}: {id}", self.seed);
        if clashes {
            return;
        }
        if !id.starts_with("own") {
            self.taken.push(id.clone());
        }
        let caller = Caller {
            kind,
            subject,
            deadline,
            id: Some(id),
            serial: ticket,
            speaks: Speaks::Frames,
        };
        if self.waiting.observe(table, overheard) {
            self.open.insert(ticket, caller);
        } else {
            self.past.push(caller);
        }
        self.to_send.push(ticket);
    }

    /// Whether the server may answer: if two requests used an id in turn, it answers only the pending one.
    fn is_answerable(&self, caller: &Caller) -> bool {
        let Some(id) = &caller.id else {
            return false;
        };
        !self.taken.contains(id) || self.open.contains_key(&caller.serial)
    }

    /// The server answers or fails a pending or earlier request.
    fn answer(&mut self, table: &RouteTable) {
        let all = self.open.values().chain(&self.past);
        let written: Vec<Caller> = all
            .filter(|caller| self.is_answerable(caller))
            .cloned()
            .collect();
        if written.is_empty() {
            return;
        }
        let place = self.dice.below(written.len() as u64);
        let caller = written[usize::try_from(place).unwrap()].clone();
        let id = caller.id.clone().unwrap();
        let frame = if self.dice.below(4) == 0 {
            error(&id, caller.serial)
        } else {
            match caller.kind {
                0 => file(&id, caller.subject, caller.serial),
                1 => watched(caller.subject),
                2 => unwatched(),
                _ => return,
            }
        };
        let frame = json(&frame);
        let whose = match frame.has("request_id") {
            true => caller.speaks,
            // It may also be a notification.
            false => Speaks::Frames,
        };
        self.hear(table, &frame, whose);
    }

    /// The server sends a frame: the client gets it once if it answers the client, else never.
    fn hear(&mut self, table: &RouteTable, frame: &Json, whose: Speaks) {
        self.waiting
            .receive(table, (self.now, frame.clone()), TERMS);
        let delivered = self.settle_outputs();
        let expected: Vec<Json> = match whose {
            Speaks::Rpc => Vec::new(),
            Speaks::Frames => vec![frame.clone()],
        };
        assert_eq!(delivered, expected, "seed {}", self.seed);
    }

    fn foreign(&mut self, table: &RouteTable) {
        let subject = self.dice.below(4);
        let frame = match self.dice.below(5) {
            0 => error("nobody's", 0),
            1 => file("nobody's", subject, 0),
            2 => watched(subject + 3),
            3 => r#"{"event":"log","payload":{"request_id":"1"}}"#.to_owned(),
            _ => r#"{"event":"error","payload":{"message":"m"}}"#.to_owned(),
        };
        let frame = json(&frame);
        // If the client writes frames, an answer to no pending call belongs to the client.
        let whose = match !frame.has("request_id") || self.waiting.has_passed() {
            true => Speaks::Frames,
            false => Speaks::Rpc,
        };
        self.hear(table, &frame, whose);
    }

    fn cancel(&mut self) {
        let tickets: Vec<u64> = self.open.keys().copied().collect();
        if tickets.is_empty() {
            return;
        }
        let place = self.dice.below(tickets.len() as u64);
        let ticket = tickets[usize::try_from(place).unwrap()];
        self.waiting.cancel(Ticket(ticket));
        self.past.extend(self.open.remove(&ticket));
    }

    /// Handles all outputs; returns the frames that the client gets.
    fn settle_outputs(&mut self) -> Vec<Json> {
        let mut delivered = Vec::new();
        while let Some(output) = self.waiting.output() {
            match output {
                CorrelatorOutput::Write(Ticket(ticket), frame) => {
                    let frame = json(&text(frame));
                    let id = frame.member("request_id").unwrap().text().unwrap().unwrap();
                    let mut others = self.open.values();
                    let is_known = others.any(|caller| caller.id.as_ref() == Some(&id));
                    assert!(!is_known, "seed {}: {id} is given twice", self.seed);
                    self.open.get_mut(&ticket).unwrap().id = Some(id);
                    self.to_send.push(ticket);
                }
                CorrelatorOutput::Answer(Ticket(ticket), answer) => self.answered(ticket, answer),
                CorrelatorOutput::Failed(Ticket(ticket), why) => {
                    let caller = self.end(ticket);
                    let in_time =
                        !matches!(why, FrameCallError::Late) || caller.deadline <= self.now;
                    assert!(in_time, "seed {}: given up too early", self.seed);
                }
                CorrelatorOutput::Passed(frame) => {
                    assert!(self.waiting.has_passed(), "seed {}", self.seed);
                    self.passed += 1;
                    delivered.push(frame);
                }
                CorrelatorOutput::Done(ticket) => panic!("seed {}: {ticket:?}", self.seed),
                CorrelatorOutput::Notification(frame) => {
                    let bears = frame.has("request_id");
                    assert!(!bears, "seed {}: an answer became news", self.seed);
                    delivered.push(frame);
                }
            }
        }
        delivered
    }

    fn settle(&mut self, table: &RouteTable) {
        let delivered = self.settle_outputs();
        assert!(delivered.is_empty(), "seed {}: {delivered:?}", self.seed);
        let over = |caller: &Caller| caller.deadline < self.now;
        // Requests that are over get their output in the next step.
        self.waiting.tick(table, self.now, TERMS);
        assert!(self.waiting.len() <= MOST, "seed {}: unbounded", self.seed);
        let late = self.open.values().filter(|caller| over(caller)).count();
        let mut delivered = 0;
        let mut outputs = Vec::new();
        while let Some(output) = self.waiting.output() {
            delivered += 1;
            outputs.push(output);
        }
        assert!(
            late <= delivered,
            "seed {}: somebody waits past his deadline",
            self.seed
        );
        for output in outputs {
            match output {
                CorrelatorOutput::Answer(Ticket(ticket), answer) => self.answered(ticket, answer),
                CorrelatorOutput::Failed(Ticket(ticket), _) => {
                    self.end(ticket);
                }
                CorrelatorOutput::Write(..)
                | CorrelatorOutput::Notification(_)
                | CorrelatorOutput::Passed(_)
                | CorrelatorOutput::Done(_) => {
                    panic!("time alone says nothing")
                }
            }
        }
        assert_eq!(self.waiting.len(), self.open.len(), "seed {}", self.seed);
    }

    fn end(&mut self, ticket: u64) -> Caller {
        let caller = self.open.remove(&ticket);
        let caller = caller.unwrap_or_else(|| panic!("seed {}: {ticket} is told twice", self.seed));
        self.past.push(caller.clone());
        caller
    }

    /// Checks that the answer belongs to the command of the caller.
    fn answered(&mut self, ticket: u64, answered: TranslatedReply<RpcAnswer>) {
        let caller = self.end(ticket);
        let seed = self.seed;
        match answered.answer {
            RpcAnswer::Error(error) => {
                let own = format!("\"of {}\"", caller.serial);
                assert_eq!(error.message.as_bytes(), own.as_bytes(), "seed {seed}");
            }
            RpcAnswer::Result(result) => {
                let subject = caller.subject;
                let expected = match caller.kind {
                    0 => {
                        let serial = caller.serial;
                        format!(r#"{{"path":"s{subject}","content":"of {serial}"}}"#)
                    }
                    1 => r#"{"status":"watching"}"#.to_owned(),
                    2 => r#"{"session":"s"}"#.to_owned(),
                    _ => format!(r#"{{"status":"started","mode":"m{subject}"}}"#),
                };
                assert_eq!(text(result), expected, "seed {seed}");
            }
        }
    }
}

/// A frame that a client writes.
fn command(kind: u64, id: &str, subject: u64) -> String {
    match kind {
        0 => format!(
            r#"{{"command":"get_file","request_id":"{id}","payload":{{"path":"s{subject}"}}}}"#
        ),
        1 => format!(
            r#"{{"command":"watch","request_id":"{id}","payload":{{"session_id":"s{subject}"}}}}"#
        ),
        2 => format!(r#"{{"command":"unwatch","request_id":"{id}"}}"#),
        _ => format!(
            r#"{{"command":"run","request_id":"{id}","payload":{{"prompt":"s{subject}","mode":"m{subject}"}}}}"#
        ),
    }
}

fn error(id: &str, serial: u64) -> String {
    format!(
        r#"{{"event":"error","request_id":"{id}","payload":{{"code":"X","message":"of {serial}","request_id":"{id}"}}}}"#
    )
}

fn file(id: &str, subject: u64, serial: u64) -> String {
    format!(
        r#"{{"event":"file","request_id":"{id}","payload":{{"path":"s{subject}","content":"of {serial}"}}}}"#
    )
}

fn watched(subject: u64) -> String {
    format!(r#"{{"event":"watched","payload":{{"session_id":"s{subject}","watching":true}}}}"#)
}

fn unwatched() -> String {
    r#"{"event":"unwatched","payload":{"session_id":"s"}}"#.to_owned()
}

#[test]
fn every_caller_gets_one_output_of_its_own_and_nothing_is_left_over() {
    let table = table();
    let (mut answered, mut passed) = (0, 0);
    for seed in 0..WORLDS {
        let mut world = World::new(seed);
        for _ in 0..STEPS {
            world.step(&table);
        }
        world.now += Duration::from_secs(60);
        world.waiting.tick(&table, world.now, TERMS);
        world.settle(&table);
        assert!(
            world.waiting.is_empty() && world.open.is_empty(),
            "seed {seed}"
        );
        assert_eq!(world.waiting.alarm(), None, "seed {seed}");
        let counts = world.waiting.counts();
        answered += counts.answered + counts.silent;
        passed += world.passed;
    }
    assert!(answered > WORLDS * 3, "{answered}");
    assert!(passed > WORLDS, "{passed}");
}
