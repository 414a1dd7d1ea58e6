//! Seeded simulations of callers, a connection and a server, and the laws that hold in all of them. In every other
//! simulation the client also writes frames, with its own ids; some of them are the ids that the machine would assign
//! next. In half of them, frames take time to be written.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::outcome::TranslatedReply;
use crate::pending::Ticket;

mod messages;
mod outputs;

use messages::{command, error, file, unwatched, watched};

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
    machine: FrameMachine,
    next: u64,
    /// The pending requests, and those that were cancelled or answered.
    open: BTreeMap<u64, Caller>,
    past: Vec<Caller>,
    /// The frame that is being written.
    writing: Option<u64>,
    /// The last frame whose writing began.
    last_written: u64,
    /// Frames that must not be written any more.
    withdrawn: BTreeSet<u64>,
    /// Frames of the client that are not observed and not written.
    unobserved: BTreeSet<u64>,
    /// Ids that the client used although the machine could assign them: a late answer with one of them is ambiguous.
    taken: Vec<String>,
    passed: u64,
    /// True once the client has written a frame itself.
    has_forwarded: bool,
}

impl World {
    fn new(seed: u64) -> World {
        World {
            taken: Vec::new(),
            passed: 0,
            has_forwarded: false,
            seed,
            dice: Dice(seed),
            now: Duration::ZERO,
            machine: FrameMachine::new(MOST, 1),
            next: 1,
            open: BTreeMap::new(),
            past: Vec::new(),
            writing: None,
            last_written: 0,
            withdrawn: BTreeSet::new(),
            unobserved: BTreeSet::new(),
        }
    }

    fn step(&mut self, table: &RouteTable) {
        match self.dice.below(12 + 4 * (self.seed % 2)) {
            0..=3 => self.ask(table),
            4..=6 => self.answer(table),
            7 => self.cancel(),
            8 => self.foreign(table),
            9 => {
                for _ in 0..self.dice.below(4) {
                    self.complete_write(table);
                }
            }
            12..=14 => self.pass(table),
            10 if self.dice.below(10) == 0 => self.lose(),
            _ => {
                self.now += Duration::from_millis(self.dice.below(400));
                self.machine.tick(context(table, self.now));
            }
        }
        self.settle(table);
    }

    /// Returns true if frames are written as soon as they can be.
    fn is_prompt(&self) -> bool {
        self.seed % 4 < 2
    }

    fn complete_write(&mut self, table: &RouteTable) {
        if let Some(ticket) = self.writing.take() {
            self.machine.written(context(table, self.now));
            let delivered = self.settle_outputs(table);
            assert!(delivered.is_empty(), "seed {}: {delivered:?}", self.seed);
            let is_sent = !self.unobserved.contains(&ticket);
            assert!(is_sent, "seed {}: {ticket} got no reply", self.seed);
        }
    }

    fn lose(&mut self) {
        self.machine.connection_lost();
        self.writing = None;
        self.unobserved.clear();
        self.withdrawn.extend(self.last_written + 1..self.next);
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
            call: MethodCall::new(method, Some(&params)),
            deadline,
        };
        self.machine.call(context(table, self.now), command);
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
        let text = command(kind, &id, subject);
        let all = self.open.values();
        let of_client = |caller: &&Caller| caller.speaks == Speaks::Frames;
        let mut own = all
            .filter(of_client)
            .chain(self.past.iter().filter(of_client));
        if own.any(|caller| caller.id.as_ref() == Some(&id)) {
            // Even this client uses an id for one command only.
            return;
        }
        let deadline = self.now + Duration::from_millis(1 + self.dice.below(1500));
        let caller = Caller {
            kind,
            subject,
            deadline,
            id: Some(id.clone()),
            serial: ticket,
            speaks: Speaks::Frames,
        };
        let pending = self.machine.pending();
        let Some(outputs) = self.forward(table, &caller, text) else {
            return;
        };
        self.has_forwarded = true;
        if !id.starts_with("own") {
            self.taken.push(id);
        }
        if self.machine.pending() > pending {
            self.open.insert(ticket, caller);
        } else {
            self.past.push(caller);
            self.unobserved.insert(ticket);
        }
        let mut delivered = Vec::new();
        for output in outputs {
            self.take(table, output, &mut delivered);
        }
        assert!(delivered.is_empty(), "seed {}: {delivered:?}", self.seed);
    }

    /// Forwards a frame. Returns `None` if it is refused, which it must be if its id was assigned to a pending call.
    fn forward(
        &mut self,
        table: &RouteTable,
        of: &Caller,
        text: String,
    ) -> Option<Vec<FrameOutput>> {
        let seed = self.seed;
        let of_rpc = |caller: &&Caller| caller.speaks == Speaks::Rpc;
        let mut given = self.open.values().filter(of_rpc);
        let waits = given.any(|caller| caller.id == of.id);
        // The id of a call is seen once its frame is written.
        let mut given = self.open.values().filter(of_rpc);
        let may_wait = waits || given.any(|caller| caller.id.is_none());
        let sent = ClientFrame {
            ticket: Ticket(of.serial),
            frame: json(&text),
            text: Bytes::from(text),
            deadline: of.deadline,
        };
        self.machine.forward(context(table, self.now), sent);
        let outputs: Vec<FrameOutput> = std::iter::from_fn(|| self.machine.output()).collect();
        let clashes = match &outputs[..] {
            [FrameOutput::Failed(ticket, FrameCallError::Busy)] => ticket.0 == of.serial,
            _ => false,
        };
        assert!(!waits || clashes, "seed {seed}: {of:?}");
        assert!(may_wait || !clashes, "seed {seed}: {of:?}");
        let is_exact = !self.is_prompt() || waits == clashes;
        assert!(is_exact, "seed {seed}: {of:?}");
        if clashes {
            self.withdrawn.insert(of.serial);
            return None;
        }
        Some(outputs)
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
        let message = Bytes::copy_from_slice(frame.as_bytes());
        self.machine.receive(context(table, self.now), message);
        let delivered = self.settle_outputs(table);
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
        let whose = match !frame.has("request_id") || self.has_forwarded {
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
        self.machine.cancel(Ticket(ticket));
        self.withdraw(ticket);
        self.past.extend(self.open.remove(&ticket));
    }

    fn settle(&mut self, table: &RouteTable) {
        let delivered = self.settle_outputs(table);
        assert!(delivered.is_empty(), "seed {}: {delivered:?}", self.seed);
        let over = |caller: &Caller| caller.deadline < self.now;
        // Requests that are over get their output in the next step.
        self.machine.tick(context(table, self.now));
        assert!(
            self.machine.pending() <= MOST,
            "seed {}: unbounded",
            self.seed
        );
        let late = self.open.values().filter(|caller| over(caller)).count();
        let outputs: Vec<FrameOutput> = std::iter::from_fn(|| self.machine.output()).collect();
        assert!(
            late <= outputs.len(),
            "seed {}: somebody waits past his deadline",
            self.seed
        );
        for output in outputs {
            match output {
                FrameOutput::Answer(Ticket(ticket), answer, _) => self.answered(ticket, answer),
                FrameOutput::Failed(Ticket(ticket), _) => {
                    self.withdraw(ticket);
                    self.end(ticket);
                }
                FrameOutput::Write(..)
                | FrameOutput::Sent(_)
                | FrameOutput::Notification(_)
                | FrameOutput::Passed(_)
                | FrameOutput::Undelivered(_) => {
                    panic!("time alone says nothing")
                }
            }
        }
        assert_eq!(
            self.machine.pending(),
            self.open.len(),
            "seed {}",
            self.seed
        );
        let writes = self.writing.is_some() || self.machine.queued() == 0;
        assert!(writes, "seed {}: a frame waits for nothing", self.seed);
    }
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
        while world.writing.is_some() {
            world.complete_write(&table);
        }
        world.now += Duration::from_secs(60);
        world.machine.tick(context(&table, world.now));
        world.settle(&table);
        assert!(
            world.machine.is_idle() && world.open.is_empty() && world.unobserved.is_empty(),
            "seed {seed}"
        );
        assert_eq!(world.machine.alarm(), None, "seed {seed}");
        let counts = world.machine.counts();
        answered += counts.answered + counts.silent;
        passed += world.passed;
    }
    assert!(answered > WORLDS * 3, "{answered}");
    assert!(passed > WORLDS, "{passed}");
}
