//! Thousands of worlds: callers, a link and a server that do what a seed says, and the laws that hold in all of them.

use std::collections::{BTreeMap, BTreeSet};

use super::dice::Dice;
use super::*;

/// How many worlds there are.
const WORLDS: u64 = 1500;
/// How many things happen in each.
const STEPS: usize = 250;

/// What is known of a caller.
#[derive(Debug)]
struct Caller {
    deadline: Duration,
    repeat: RetryRule,
    /// The links that its question was written to.
    written: Vec<u64>,
    ending: Ending,
    /// Whether the server has acknowledged its subscription, if it is one.
    subscribes: Option<Acknowledged>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Acknowledged {
    No,
    Yes,
}

#[derive(Debug, PartialEq, Eq)]
enum Ending {
    Waits,
    Gone,
    Told,
}

/// Something that the server has read.
#[derive(Debug)]
struct Read {
    /// None for what bears none.
    id: Option<u64>,
    /// Whose it is; none for what the link says by itself.
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

/// A law, which names the seed where it does not hold.
macro_rules! check {
    ($world:expr, $holds:expr, $what:expr $(,)?) => {
        assert!(
            $holds,
            "seed {}: {} at {:?}",
            $world.seed, $what, $world.now
        )
    };
}

mod message;
mod told;

use message::read;
use told::subscription;

struct World {
    seed: u64,
    dice: Dice,
    pending: LinkMachine,
    order: AnswerOrder,
    now: Duration,
    link: Link,
    /// How many links there were.
    links: u64,
    /// What is on its way to the server.
    writing: Option<Bytes>,
    /// What the server has read and not dealt with.
    read: Vec<Read>,
    /// Ids that were answered.
    answered: Vec<u64>,
    callers: BTreeMap<u64, Caller>,
    ids: BTreeSet<u64>,
    told: usize,
    /// What the link itself has said of questions.
    failed: BTreeSet<(u64, String)>,
    /// Questions that the server has not taken, because it had forgotten the link.
    untaken: BTreeSet<u64>,
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
            greeting: if dice.one_in(2) { greeting() } else { None },
            unanswered: dice.below(4) as usize,
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
            told: 0,
            failed: BTreeSet::new(),
            untaken: BTreeSet::new(),
        }
    }

    fn take(&mut self, input: LinkInput) {
        self.pending.take(self.now, input);
        while let Some(output) = self.pending.output() {
            self.obey(output);
        }
        let flights = self.pending.in_flight();
        check!(
            self,
            flights <= self.order.in_flight(),
            "too many in flight"
        );
        let most = 8 + self.order.in_flight();
        check!(self, self.pending.queued() <= most, "too many wait");
        check!(
            self,
            self.pending.remaining() <= 1024 + 64,
            "too much is kept"
        );
    }

    fn obey(&mut self, output: LinkOutput) {
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
                message, hearers, ..
            } => {
                check!(self, self.link == Link::Open, "nothing is open");
                self.hears(hearers, &message);
            }
            LinkOutput::Answer {
                ticket,
                id,
                message,
            } => {
                let text = String::from_utf8(message.to_vec()).unwrap();
                let bears = text.contains(&format!("\"id\":{id},")) || text.contains("\"id\":null");
                check!(self, bears, "another id");
                let own = text.contains(&format!("\"for\":{}}}", ticket.0));
                check!(
                    self,
                    own || text.contains("greeted"),
                    format!("{ticket:?} got {text}"),
                );
                self.settle(ticket);
            }
            LinkOutput::Told(ticket) => self.settle(ticket),
            LinkOutput::Ended(ticket) => self.ends(ticket),
            LinkOutput::Failed(ticket, why) => {
                let writes = self.callers[&ticket.0].written.len();
                let agrees = match why {
                    RequestError::Busy | RequestError::Unreachable => writes == 0,
                    RequestError::Cut
                    | RequestError::Late
                    | RequestError::TooLarge(_)
                    | RequestError::NoRoom
                    | RequestError::CodedStream
                    | RequestError::Misnumbered
                    | RequestError::Unusable(_) => writes > 0,
                };
                let agrees = agrees || self.failed.contains(&(ticket.0, format!("{why:?}")));
                check!(self, agrees, format!("{why:?} after {writes} writes"));
                self.settle(ticket);
            }
        }
    }

    fn settle(&mut self, ticket: Ticket) {
        let now = self.now;
        let caller = self.callers.get_mut(&ticket.0).unwrap();
        let (ending, deadline) = (&caller.ending, caller.deadline);
        let (twice, late) = (*ending == Ending::Told, deadline < now);
        if *ending == Ending::Waits {
            caller.ending = Ending::Told;
            self.told += 1;
        }
        check!(self, !twice, "told twice");
        check!(self, !late, format!("told after {deadline:?}"));
    }

    fn written(&mut self, message: Bytes) {
        check!(self, self.link == Link::Open, "written to nothing");
        check!(self, self.writing.is_none(), "written into another message");
        let said: Read = read(&message);
        if let Some(id) = said.id {
            let fresh = self.ids.insert(id);
            check!(self, fresh, "an id twice");
        }
        if let Some(caller) = said.ticket.and_then(|ticket| self.callers.get_mut(&ticket)) {
            let before = caller.written.len();
            let ticket = said.ticket.unwrap_or(u64::MAX);
            let untaken = self.untaken.contains(&ticket);
            let again =
                before == 0 || ((caller.repeat == RetryRule::Once || untaken) && before == 1);
            let cut = format!("{:?}", RequestError::Cut);
            let elsewhere =
                !caller.written.contains(&self.links) || self.failed.contains(&(ticket, cut));
            let gone = caller.ending != Ending::Waits;
            caller.written.push(self.links);
            check!(self, again && elsewhere && !gone, "written again");
        }
        self.writing = Some(message);
    }

    fn asks(&mut self) {
        let ticket = self.callers.len() as u64;
        let start_by = self.now + Duration::from_millis(1 + self.dice.below(3000));
        let deadline = start_by + Duration::from_millis(self.dice.below(4000));
        let say = match self.dice.below(8) {
            0 => Outbound::Notice(Bytes::from(format!(
                "{{\"method\":\"n\",\"params\":[{ticket}]}}"
            ))),
            1 if self.pending.settings.greeting.is_some() => Outbound::Greeting,
            2 => subscription(ticket),
            _ => call(ticket),
        };
        let subscribes = matches!(say, Outbound::Subscription(..)).then_some(Acknowledged::No);
        // A notice is never said twice.
        let repeat = match say {
            Outbound::Call(_) if self.dice.one_in(2) => RetryRule::Once,
            Outbound::Call(_)
            | Outbound::Subscription(..)
            | Outbound::Notice(_)
            | Outbound::Greeting => RetryRule::Never,
        };
        let rank = if self.dice.one_in(4) {
            Priority::Candidate
        } else {
            Priority::Client
        };
        self.callers.insert(
            ticket,
            Caller {
                deadline,
                repeat,
                written: Vec::new(),
                ending: Ending::Waits,
                subscribes,
            },
        );
        self.take(LinkInput::Ask(Request {
            ticket: Ticket(ticket),
            say,
            start_by,
            deadline,
            repeat,
            rank,
        }));
    }

    fn cancels(&mut self) {
        let waiting = self.callers.iter_mut();
        let mut waiting = waiting.filter(|(_, caller)| caller.ending == Ending::Waits);
        let (count, pick) = (4, self.dice.below(4));
        if let Some((ticket, caller)) = waiting.by_ref().take(count).nth(pick as usize) {
            caller.ending = Ending::Gone;
            let ticket = Ticket(*ticket);
            let away = [LinkInput::Cancel, LinkInput::Recall][self.dice.below(2) as usize];
            self.take(away(ticket));
        }
    }

    /// The server deals with something that it has read: the first where it is serial, any where it is not.
    fn serves(&mut self) {
        if self.read.is_empty() {
            return;
        }
        // What needs no answer is dealt with when it is read.
        let notice = self.read.iter().position(|read| read.id.is_none());
        let place = match (self.order, notice) {
            (AnswerOrder::Serial, _) => 0,
            (AnswerOrder::Pipelined(_), Some(first)) => first,
            (AnswerOrder::Pipelined(_), None) => self.dice.below(self.read.len() as u64) as usize,
        };
        let Read { id, ticket } = self.read.remove(place);
        let whose = ticket.map_or("-1".to_owned(), |ticket| ticket.to_string());
        let null = format!(
            r#"{{"jsonrpc":"2.0","id":null,"error":{{"code":-32603,"message":"","data":{{"for":{whose}}}}}}}"#
        );
        let Some(id) = id else {
            if self.dice.one_in(4) {
                self.says(null);
            }
            return;
        };
        let result = match ticket {
            Some(_) => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"for":{whose}}}}}"#),
            None => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"greeted"}}"#),
        };
        if self.tells(id, ticket) {
            return;
        }
        match self.dice.below(16) {
            12 => self.fails(id, ticket),
            13 => self.forgets(id, ticket),
            0 => {}
            1 => self.says(null),
            2 => {
                self.says(result.clone());
                self.says(result);
            }
            3 if ticket.is_some() => self.link_takes(LinkInput::Overlong),
            _ => {
                self.says(result);
                self.answered.push(id);
            }
        }
    }

    /// The link itself says that a question gets no answer.
    fn fails(&mut self, id: u64, ticket: Option<u64>) {
        let why = self.why();
        if let Some(ticket) = ticket {
            self.failed.insert((ticket, format!("{why:?}")));
        }
        self.link_takes(LinkInput::Failed(id, why));
    }

    /// The server knows the link no longer, and has not taken a question, or has said so to nobody.
    fn forgets(&mut self, id: u64, ticket: Option<u64>) {
        let to = if self.dice.one_in(3) { None } else { Some(id) };
        self.untaken.extend(ticket.filter(|_| to.is_some()));
        self.link_takes(LinkInput::Forgotten(to));
    }

    /// What is being written reaches nobody. Only of a notice can a link say so.
    fn drops(&mut self) {
        let bears_id = |message: &Bytes| read(message).id.is_some();
        if self.link != Link::Open || self.writing.as_ref().is_none_or(bears_id) {
            return;
        }
        let why = self.why();
        let message = self.writing.take();
        if let Some(ticket) = message.and_then(|message| read(&message).ticket) {
            self.failed.insert((ticket, format!("{why:?}")));
        }
        self.take(LinkInput::Unwritten(why));
    }

    fn says(&mut self, text: String) {
        self.link_takes(LinkInput::Message(text.into()));
    }

    /// Something comes over the link, if there is one still.
    fn link_takes(&mut self, input: LinkInput) {
        if self.link == Link::Open {
            self.take(input);
        }
    }

    fn loses(&mut self) {
        if self.link == Link::None {
            return;
        }
        self.link = Link::None;
        self.writing = None;
        self.read.clear();
        let luck = self.dice.below(1 << 16) as u16;
        self.take(LinkInput::Lost { luck });
        check!(self, self.pending.remaining() == 0, "left over");
    }

    /// Time passes, and no alarm is missed.
    fn waits(&mut self) {
        let mut until = self.now + Duration::from_millis(self.dice.below(800));
        while let Some(alarm) = self.pending.alarm().filter(|alarm| *alarm <= until) {
            // Nothing may ask for a time that is past again and again.
            until = until.max(alarm);
            self.now = self.now.max(alarm);
            self.take(LinkInput::Tick);
            let next = self.pending.alarm();
            check!(
                self,
                next.is_none_or(|next| next > self.now),
                "an alarm in vain"
            );
        }
        self.now = until;
        self.take(LinkInput::Tick);
    }

    fn step(&mut self) {
        match self.dice.below(20) {
            0..=4 => self.asks(),
            5 => self.cancels(),
            6 => self.chatters(),
            7..=9 => self.waits(),
            10 if self.dice.one_in(6) || self.link == Link::Closing => self.loses(),
            11 | 12 if self.link == Link::Opening => {
                self.link = Link::Open;
                self.take(LinkInput::Opened);
            }
            13 if self.link == Link::Open => self.take(LinkInput::Sign),
            18 if self.dice.one_in(4) => self.drops(),
            14..=16 => {
                if let Some(message) = self.writing.take().filter(|_| self.link == Link::Open) {
                    self.read.push(read(&message));
                    self.take(LinkInput::Written);
                }
            }
            _ => self.serves(),
        }
    }

    fn run(mut self) -> usize {
        self.take(LinkInput::Tick);
        for _ in 0..STEPS {
            self.step();
        }
        // All deadlines pass.
        for _ in 0..40 {
            self.waits();
        }
        self.now += seconds(10);
        self.take(LinkInput::Tick);
        self.take(LinkInput::Unsubscribe);
        let waits = self.callers.values();
        let waits = waits
            .filter(|caller| caller.ending == Ending::Waits)
            .count();
        check!(self, waits == 0, "somebody still waits");
        check!(
            self,
            self.pending.in_flight() == 0,
            "something is in flight"
        );
        check!(self, self.pending.queued() == 0, "something is queued");
        self.loses();
        check!(
            self,
            self.pending.remaining() == 0,
            "something is left over"
        );
        self.told
    }
}

#[test]
fn no_answer_reaches_another_caller_and_nobody_waits_for_ever() {
    let told: usize = (0..WORLDS).map(|seed| World::new(seed).run()).sum();
    assert!(
        told > 20 * WORLDS as usize,
        "only {told} were told anything"
    );
}
