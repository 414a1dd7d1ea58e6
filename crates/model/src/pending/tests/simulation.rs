//! A seeded simulation of callers, a link and a server, with the laws that hold at each step.

use std::collections::{BTreeMap, BTreeSet};

use super::dice::Dice;
use super::*;

/// The number of simulated worlds.
const WORLDS: u64 = 1500;
/// The number of events in each.
const STEPS: usize = 250;

/// The expected state of a caller.
#[derive(Debug)]
struct Caller {
    deadline: Duration,
    repeat: RetryRule,
    /// The links that its request was written to.
    written: Vec<u64>,
    ending: Ending,
    /// The acknowledgement of its subscription, if it has one.
    subscribes: Option<Acknowledged>,
    /// True if it answers requests of the server.
    answers: bool,
    /// The requests that it has not answered, and the time that its call had left before them.
    asked: Option<(usize, Duration)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Acknowledged {
    No,
    Yes,
}

#[derive(Debug, PartialEq, Eq)]
enum Ending {
    Waiting,
    Cancelled,
    Settled,
}

/// Something that the server has read.
#[derive(Debug)]
struct Read {
    /// `None` for a message without an id.
    id: Option<u64>,
    /// The caller; `None` for a message of the link itself.
    ticket: Option<u64>,
}

/// The link, from its other end.
#[derive(Debug, PartialEq, Eq)]
enum Link {
    None,
    Opening,
    Open,
    Closing,
}

/// Checks a law; a failure names the seed.
macro_rules! check {
    ($world:expr, $holds:expr, $what:expr $(,)?) => {
        assert!(
            $holds,
            "seed {}: {} at {:?}",
            $world.seed, $what, $world.now
        )
    };
}

mod failures;
mod message;
mod notifications;
mod requests;

use message::read;
use notifications::subscription;
use requests::input;

struct World {
    seed: u64,
    dice: Dice,
    pending: LinkMachine,
    order: AnswerOrder,
    now: Duration,
    link: Link,
    /// The number of links so far.
    links: u64,
    /// The message that is being written.
    writing: Option<Bytes>,
    /// Messages that the server has read and not handled.
    read: Vec<Read>,
    /// The answered ids.
    answered: Vec<u64>,
    callers: BTreeMap<u64, Caller>,
    ids: BTreeSet<u64>,
    settled: usize,
    /// The failures that the link reported.
    failed: BTreeSet<(u64, String)>,
    /// Requests that the server refused because it had forgotten the session.
    refused: BTreeSet<u64>,
}

impl World {
    fn new(seed: u64) -> World {
        let mut dice = Dice(seed);
        let order = if dice.one_in(2) {
            AnswerOrder::Serial
        } else {
            AnswerOrder::Pipelined(1 + dice.below(4) as usize)
        };
        let heartbeat = dice.one_in(3).then_some(Heartbeat {
            every: seconds(3),
            within: seconds(2),
        });
        let settings = LinkSettings {
            initialize_params: if dice.one_in(2) {
                initialize_params()
            } else {
                None
            },
            login: dice.one_in(3).then(login),
            max_consecutive_timeouts: dice.below(4) as usize,
            pause: Duration::from_millis(dice.below(2) * 50),
            heartbeat,
            ..settings(order)
        };
        World {
            seed,
            dice,
            pending: LinkMachine::new(settings),
            order,
            now: Duration::ZERO,
            link: Link::None,
            links: 0,
            writing: None,
            read: Vec::new(),
            answered: Vec::new(),
            callers: BTreeMap::new(),
            ids: BTreeSet::new(),
            settled: 0,
            failed: BTreeSet::new(),
            refused: BTreeSet::new(),
        }
    }

    fn take(&mut self, input: LinkInput) {
        self.pending.take(self.now, input);
        while let Some(output) = self.pending.output() {
            self.execute(output);
        }
        let ids_in_flight = self.pending.in_flight();
        check!(
            self,
            ids_in_flight <= self.order.in_flight(),
            "too many in flight"
        );
        let most = 8 + self.order.in_flight();
        check!(self, self.pending.queued() <= most, "too many wait");
        check!(
            self,
            self.pending.remaining() <= 1024 + 64,
            "too many entries remain"
        );
    }

    fn execute(&mut self, output: LinkOutput) {
        match output {
            LinkOutput::Open => {
                check!(self, self.link == Link::None, "two links");
                self.link = Link::Opening;
                self.links += 1;
            }
            LinkOutput::Close(_) => {
                let known = matches!(self.link, Link::Opening | Link::Open);
                check!(self, known, "nothing to close");
                self.link = Link::Closing;
            }
            LinkOutput::Write(message) => self.written(message),
            LinkOutput::Ping | LinkOutput::Ready => {
                check!(self, self.link == Link::Open, "nothing is open");
            }
            LinkOutput::Notified {
                message,
                recipients,
                ..
            } => {
                check!(self, self.link == Link::Open, "nothing is open");
                self.recipients_for(recipients, &message);
            }
            LinkOutput::Answer {
                ticket,
                id,
                message,
            } => {
                let text = String::from_utf8(message.to_vec()).unwrap();
                let has_id =
                    text.contains(&format!("\"id\":{id},")) || text.contains("\"id\":null");
                check!(self, has_id, "another id");
                let is_own = text.contains(&format!("\"for\":{}}}", ticket.0));
                check!(
                    self,
                    is_own || text.contains("greeted"),
                    format!("{ticket:?} got {text}"),
                );
                self.settle(ticket);
            }
            LinkOutput::ServerRequest { ticket, .. } => self.is_asked(ticket),
            LinkOutput::Subscribed { ticket, .. } | LinkOutput::SubscriptionLost(ticket) => {
                panic!("{ticket:?} opened no such subscription")
            }
            LinkOutput::NoticeSent(ticket) => self.settle(ticket),
            LinkOutput::Ended(ticket) => self.ends(ticket),
            LinkOutput::Failed(ticket, why) => self.fails(ticket, why),
        }
    }

    fn settle(&mut self, ticket: Ticket) {
        let now = self.now;
        let caller = self.callers.get_mut(&ticket.0).unwrap();
        let (ending, deadline) = (&caller.ending, caller.deadline);
        let (twice, late) = (*ending == Ending::Settled, deadline < now);
        if *ending == Ending::Waiting {
            caller.ending = Ending::Settled;
            self.settled += 1;
        }
        check!(self, !twice, "settled twice");
        check!(self, !late, format!("settled after {deadline:?}"));
    }

    fn written(&mut self, message: Bytes) {
        check!(self, self.link == Link::Open, "written to nothing");
        check!(self, self.writing.is_none(), "written into another message");
        let sent: Read = read(&message);
        if let Some(id) = sent.id {
            let fresh = self.ids.insert(id);
            check!(self, fresh, "an id twice");
        }
        if let Some(caller) = sent.ticket.and_then(|ticket| self.callers.get_mut(&ticket)) {
            let before = caller.written.len();
            let ticket = sent.ticket.unwrap_or(u64::MAX);
            let refused = self.refused.contains(&ticket);
            let again =
                before == 0 || ((caller.repeat == RetryRule::Once || refused) && before == 1);
            let cut = format!("{:?}", RequestError::Cut);
            let elsewhere =
                !caller.written.contains(&self.links) || self.failed.contains(&(ticket, cut));
            let is_over = caller.ending != Ending::Waiting;
            caller.written.push(self.links);
            check!(self, again && elsewhere && !is_over, "written again");
        }
        self.writing = Some(message);
    }

    fn sends_request(&mut self) {
        let ticket = self.callers.len() as u64;
        let start_by = self.now + Duration::from_millis(1 + self.dice.below(3000));
        let deadline = start_by + Duration::from_millis(self.dice.below(4000));
        let message = match self.dice.below(8) {
            0 => Outbound::Notice(Bytes::from(format!(
                "{{\"method\":\"n\",\"params\":[{ticket}]}}"
            ))),
            1 if self.pending.settings.initialize_params.is_some() => Outbound::Greeting,
            2 => subscription(ticket),
            _ => call(ticket),
        };
        let subscribes = matches!(message, Outbound::Subscription(..)).then_some(Acknowledged::No);
        // A notice is never sent twice.
        let repeat = match message {
            Outbound::Call(_) if self.dice.one_in(2) => RetryRule::Once,
            Outbound::Call(_)
            | Outbound::Subscription(..)
            | Outbound::IdSubscription(..)
            | Outbound::Notice(_)
            | Outbound::Greeting => RetryRule::Never,
        };
        let rank = if self.dice.one_in(4) {
            Priority::Candidate
        } else {
            Priority::Client
        };
        let answers = self.dice.one_in(2);
        self.callers.insert(
            ticket,
            Caller {
                deadline,
                repeat,
                written: Vec::new(),
                ending: Ending::Waiting,
                subscribes,
                answers,
                asked: None,
            },
        );
        self.take(LinkInput::Ask(Request {
            ticket: Ticket(ticket),
            message,
            start_by,
            deadline,
            repeat,
            rank,
            input: input(answers),
        }));
    }

    fn cancel_request(&mut self) {
        let queued = self.callers.iter_mut();
        let mut queued = queued.filter(|(_, caller)| caller.ending == Ending::Waiting);
        let (count, pick) = (4, self.dice.below(4));
        if let Some((ticket, caller)) = queued.by_ref().take(count).nth(pick as usize) {
            caller.ending = Ending::Cancelled;
            let ticket = Ticket(*ticket);
            let away = [LinkInput::Cancel, LinkInput::ClientCancel][self.dice.below(2) as usize];
            self.take(away(ticket));
        }
    }

    /// The server handles a message that it has read: a serial server the first one, another server any.
    fn serve(&mut self) {
        if self.read.is_empty() {
            return;
        }
        // A message without a response is handled when it is read.
        let notice = self.read.iter().position(|read| read.id.is_none());
        let index = match (self.order, notice) {
            (AnswerOrder::Serial, _) => 0,
            (AnswerOrder::Pipelined(_), Some(first)) => first,
            (AnswerOrder::Pipelined(_), None) => self.dice.below(self.read.len() as u64) as usize,
        };
        let Read { id, ticket } = self.read.remove(index);
        let whose = ticket.map_or("-1".to_owned(), |ticket| ticket.to_string());
        let null = format!(
            r#"{{"jsonrpc":"2.0","id":null,"error":{{"code":-32603,"message":"","data":{{"for":{whose}}}}}}}"#
        );
        let Some(id) = id else {
            if self.dice.one_in(4) {
                self.server_sends(null);
            }
            return;
        };
        let result = match ticket {
            Some(_) => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"for":{whose}}}}}"#),
            None => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"greeted"}}"#),
        };
        if self.server_notifies(id, ticket) {
            return;
        }
        match self.dice.below(16) {
            12 => self.fail_request(id, ticket),
            13 => self.forget_session(id, ticket),
            0 => {}
            1 => self.server_sends(null),
            2 => {
                self.server_sends(result.clone());
                self.server_sends(result);
            }
            3 if ticket.is_some() => self.link_receives(LinkInput::Overlong),
            4 | 5 => self.server_asks(id, ticket),
            _ => {
                self.server_sends(result);
                self.answered.push(id);
            }
        }
    }

    fn server_sends(&mut self, text: String) {
        self.link_receives(LinkInput::Message(text.into()));
    }

    /// The link receives an event, if it is open.
    fn link_receives(&mut self, input: LinkInput) {
        if self.link == Link::Open {
            self.take(input);
        }
    }

    fn lose_link(&mut self) {
        if self.link == Link::None {
            return;
        }
        self.link = Link::None;
        self.writing = None;
        self.read.clear();
        let jitter = self.dice.below(1 << 16) as u16;
        self.take(LinkInput::Lost { jitter });
        check!(self, self.pending.remaining() == 0, "entries are left");
    }

    /// Advances the time without missing an alarm.
    fn advance_time(&mut self) {
        let mut until = self.now + Duration::from_millis(self.dice.below(800));
        while let Some(alarm) = self.pending.alarm().filter(|alarm| *alarm <= until) {
            // The machine must not ask for the same past time repeatedly.
            until = until.max(alarm);
            self.now = self.now.max(alarm);
            self.take(LinkInput::Tick);
            let next = self.pending.alarm();
            check!(
                self,
                next.is_none_or(|next| next > self.now),
                "a useless alarm"
            );
        }
        self.now = until;
        self.take(LinkInput::Tick);
    }

    fn step(&mut self) {
        match self.dice.below(20) {
            0..=4 => self.sends_request(),
            5 => self.cancel_request(),
            6 => self.server_sends_other(),
            7..=9 => self.advance_time(),
            10 if self.dice.one_in(6) || self.link == Link::Closing => self.lose_link(),
            11 | 12 if self.link == Link::Opening => {
                self.link = Link::Open;
                self.take(LinkInput::Opened);
            }
            13 if self.link == Link::Open => self.take(LinkInput::Sign),
            17 => {
                self.answer_server();
            }
            18 if self.dice.one_in(4) => self.drop_notice(),
            14..=16 => {
                if let Some(message) = self.writing.take().filter(|_| self.link == Link::Open) {
                    self.read.push(read(&message));
                    self.take(LinkInput::Written);
                }
            }
            _ => self.serve(),
        }
    }

    fn run(mut self) -> usize {
        self.take(LinkInput::Tick);
        for _ in 0..STEPS {
            self.step();
        }
        while self.answer_server() {}
        // All deadlines pass.
        for _ in 0..40 {
            self.advance_time();
        }
        self.now += seconds(10);
        self.take(LinkInput::Tick);
        self.take(LinkInput::Unsubscribe);
        let waiting = self.callers.values();
        let waiting = waiting
            .filter(|caller| caller.ending == Ending::Waiting)
            .count();
        check!(self, waiting == 0, "a caller still waits");
        check!(
            self,
            self.pending.in_flight() == 0,
            "something is in flight"
        );
        check!(self, self.pending.queued() == 0, "something is queued");
        self.lose_link();
        check!(
            self,
            self.pending.remaining() == 0,
            "something is left over"
        );
        self.settled
    }
}

#[test]
fn each_caller_gets_its_own_answer_in_time() {
    let settled: usize = (0..WORLDS).map(|seed| World::new(seed).run()).sum();
    assert!(
        settled > 20 * WORLDS as usize,
        "only {settled} requests were settled"
    );
}
