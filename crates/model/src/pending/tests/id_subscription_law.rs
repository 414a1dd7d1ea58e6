//! Subscriptions with ids of the server, whatever clients and server do, and in any order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::subscription::{SubscriptionRule, SubscriptionSource};
use dualgauge_patterns::pattern::SourceTree;

/// The most calls that wait for their responses.
const MOST_PENDING: usize = 32;

/// Something that happens. The numbers select a call, a subscription or a client.
#[derive(Debug, Clone)]
enum Step {
    Subscribe,
    Answer(usize),
    Notify(usize),
    Leave(usize),
    LoseLink,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Subscribe),
        4 => any::<usize>().prop_map(Step::Answer),
        8 => any::<usize>().prop_map(Step::Notify),
        2 => any::<usize>().prop_map(Step::Leave),
        1 => Just(Step::LoseLink),
    ]
}

fn rule() -> Arc<SubscriptionRule> {
    let text = |text: &str| SourceTree::Text(text.to_owned());
    let source = SubscriptionSource {
        method: "told".to_owned(),
        params: Some(SourceTree::List(vec![text("{id}"), text("{event}")])),
        unsubscribe: "unsub".to_owned(),
        ..SubscriptionSource::default()
    };
    Arc::new(SubscriptionRule::new(&source).unwrap())
}

/// A subscription, as the server knows it.
#[derive(Debug, Clone, Copy)]
struct Served {
    /// The id of the call, until it is answered.
    call: Option<u64>,
    ticket: u64,
}

struct World {
    link: LinkMachine,
    rule: Arc<SubscriptionRule>,
    now: Duration,
    clients: BTreeSet<u64>,
    tickets: u64,
    /// By the ids of the subscriptions, which count on over all links.
    served: BTreeMap<u64, Served>,
    ids: u64,
    events: u64,
    /// The events of each client, as the server sent them and as they came.
    sent: BTreeMap<u64, Vec<u64>>,
    came: BTreeMap<u64, Vec<u64>>,
}

impl World {
    fn new() -> World {
        let order = AnswerOrder::Pipelined(2 * MOST_PENDING);
        let mut world = World {
            link: LinkMachine::new(settings(order)),
            rule: rule(),
            now: Duration::ZERO,
            clients: BTreeSet::new(),
            tickets: 0,
            served: BTreeMap::new(),
            ids: 0,
            events: 0,
            sent: BTreeMap::new(),
            came: BTreeMap::new(),
        };
        world.take(LinkInput::Tick);
        world.take(LinkInput::Opened);
        world
    }

    fn take(&mut self, input: LinkInput) {
        self.link.take(self.now, input);
        while let Some(output) = self.link.output() {
            match output.clone() {
                LinkOutput::Write(message) => {
                    self.serve(&message);
                    self.link.take(self.now, LinkInput::Written);
                }
                LinkOutput::Notified {
                    message,
                    recipients,
                    ..
                } => self.deliver(&message, recipients),
                LinkOutput::SubscriptionLost(Ticket(ticket))
                | LinkOutput::Failed(Ticket(ticket), RequestError::Cut) => {
                    assert!(self.clients.remove(&ticket), "{ticket} has left");
                }
                LinkOutput::Subscribed { ticket, .. } => {
                    assert!(self.clients.contains(&ticket.0), "{ticket:?} has left");
                }
                LinkOutput::Open | LinkOutput::Ready => {}
                LinkOutput::Close(_)
                | LinkOutput::Ping
                | LinkOutput::Answer { .. }
                | LinkOutput::ServerRequest { .. }
                | LinkOutput::NoticeSent(_)
                | LinkOutput::Ended(_)
                | LinkOutput::Failed(..) => panic!("{output:?}"),
            }
        }
    }

    /// The server reads a message.
    fn serve(&mut self, message: &[u8]) {
        let call: Value = serde_json::from_slice(message).unwrap();
        let number = |value: &Value| value.as_u64().unwrap();
        if call["method"] == "sub" {
            let (call, ticket) = (Some(number(&call["id"])), number(&call["params"][0]));
            self.ids += 1;
            self.served.insert(self.ids, Served { call, ticket });
            return;
        }
        assert_eq!(call["method"], "unsub");
        let ended = self.served.remove(&number(&call["params"][0])).unwrap();
        assert_eq!(ended.call, None, "it is open");
        assert!(!self.clients.contains(&ended.ticket), "its client has left");
    }

    fn deliver(&mut self, message: &[u8], recipients: Recipients) {
        let told: Value = serde_json::from_slice(message).unwrap();
        let id = told["params"][0].as_u64().unwrap();
        let owner = self.served.get(&id).map(|served| served.ticket);
        match recipients {
            Recipients::Subscriber(Ticket(ticket)) => {
                assert_eq!(owner, Some(ticket), "its own subscription");
                let event = told["params"][1].as_u64().unwrap();
                self.came.entry(ticket).or_default().push(event);
            }
            Recipients::Token | Recipients::Caller(_) | Recipients::All => {
                panic!("{recipients:?}")
            }
            Recipients::NoClient => {
                let has_left = owner.is_none_or(|owner| !self.clients.contains(&owner));
                assert!(has_left, "a client misses an event");
            }
        }
    }

    fn pick<T: Copy>(index: usize, all: impl IntoIterator<Item = T>) -> Option<T> {
        let all: Vec<T> = all.into_iter().collect();
        (!all.is_empty()).then(|| all[index % all.len()])
    }

    fn pending(&self) -> Vec<(u64, u64)> {
        let served = self.served.iter();
        let pending = served.filter_map(|(id, served)| Some((*id, served.call?)));
        pending.collect()
    }

    fn answer(&mut self, id: u64, call: u64) {
        if let Some(served) = self.served.get_mut(&id) {
            served.call = None;
        }
        let response = format!(r#"{{"jsonrpc":"2.0","id":{call},"result":{id}}}"#);
        self.take(LinkInput::Message(response.into()));
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Subscribe if self.pending().len() >= MOST_PENDING => {}
            Step::Subscribe => {
                self.tickets += 1;
                self.clients.insert(self.tickets);
                let params = Rope::from(Bytes::from(format!("[{}]", self.tickets)));
                let call = RequestTemplate::new("sub", params, &[]);
                let subscribe = Outbound::IdSubscription(call, self.rule.clone());
                self.take(LinkInput::Ask(Request {
                    start_by: self.now + seconds(1000),
                    deadline: self.now + seconds(1000),
                    ..request(self.tickets, subscribe)
                }));
            }
            Step::Answer(index) => {
                if let Some((id, call)) = World::pick(index, self.pending()) {
                    self.answer(id, call);
                }
            }
            Step::Notify(index) => {
                let Some(id) = World::pick(index, self.served.keys().copied()) else {
                    return;
                };
                self.events += 1;
                let ticket = self.served[&id].ticket;
                self.sent.entry(ticket).or_default().push(self.events);
                let (event, method) = (self.events, "told");
                let text =
                    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":[{id},{event}]}}"#);
                self.take(LinkInput::Message(text.into()));
            }
            Step::Leave(index) => {
                if let Some(ticket) = World::pick(index, self.clients.iter().copied()) {
                    self.clients.remove(&ticket);
                    self.take(LinkInput::Cancel(Ticket(ticket)));
                }
            }
            Step::LoseLink => {
                self.served.clear();
                self.take(LinkInput::Lost { jitter: 0 });
                self.now += seconds(60);
                self.take(LinkInput::Tick);
                self.take(LinkInput::Opened);
            }
        }
    }

    /// Answers the remaining calls, and checks what is left.
    fn finish(mut self) {
        for (id, call) in self.pending() {
            self.answer(id, call);
        }
        let served: BTreeSet<u64> = self.served.values().map(|served| served.ticket).collect();
        assert_eq!(
            served, self.clients,
            "the server serves the clients that are there"
        );
        assert_eq!(self.link.open_id_subscriptions(), self.clients.len());
        for client in &self.clients {
            assert_eq!(
                self.came.get(client),
                self.sent.get(client),
                "all events, in order"
            );
        }
        let counts = self.link.counts().subscriptions;
        assert_eq!((counts.unusable, counts.slow), (0, 0));
    }
}

proptest! {
    /// Each client gets the events of its own subscription, from the first to the last, and no other; the server is told of
    /// each subscription whose client has left.
    #[test]
    fn clients_get_their_own_events_and_leave_nothing_behind(steps in prop::collection::vec(step(), 0..200)) {
        let mut world = World::new();
        for step in &steps {
            world.step(step);
        }
        world.finish();
    }
}
