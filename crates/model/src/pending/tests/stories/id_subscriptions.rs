//! Subscriptions with ids of the server.

use std::sync::Arc;

use super::*;
use crate::subscription::{SubscriptionRule, SubscriptionSource};
use dualgauge_patterns::pattern::SourceTree;

/// The rule of Ethereum nodes.
fn rule() -> Arc<SubscriptionRule> {
    let text = |text: &str| SourceTree::Text(text.to_owned());
    let params = [("subscription", "{id}"), ("result", "{event}")];
    let params = params.map(|(name, hole)| (name.to_owned(), text(hole)));
    let source = SubscriptionSource {
        method: "eth_subscription".to_owned(),
        params: Some(SourceTree::Table(params.into())),
        unsubscribe: "eth_unsubscribe".to_owned(),
        ..SubscriptionSource::default()
    };
    Arc::new(SubscriptionRule::new(&source).unwrap())
}

fn subscribe(ticket: u64) -> LinkInput {
    let params = Rope::from(Bytes::from_static(b"[\"newHeads\"]"));
    let call = RequestTemplate::new("eth_subscribe", params, &[]);
    LinkInput::Ask(request(ticket, Outbound::IdSubscription(call, rule())))
}

fn event(id: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"eth_subscription","params":{{"subscription":{id},"result":7}}}}"#
    )
}

fn delivered(id: &str, recipients: Recipients) -> LinkOutput {
    LinkOutput::Notified {
        method: "eth_subscription".to_owned(),
        message: event(id).into(),
        recipients,
    }
}

fn response(id: u64, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

fn unsubscribe(call: u64, id: &str) -> LinkOutput {
    write(&format!(
        r#"{{"jsonrpc":"2.0","id":{call},"method":"eth_unsubscribe","params":[{id}]}}"#
    ))
}

impl Driven {
    /// Writes the call of a subscription.
    fn asks(&mut self, ticket: u64) {
        let written = self.take(subscribe(ticket));
        assert!(
            matches!(&written[..], [LinkOutput::Write(_)]),
            "{written:?}"
        );
        assert_eq!(self.take(LinkInput::Written), []);
    }

    /// Opens the subscription that the server calls `id`.
    fn subscribes(&mut self, ticket: u64, id: &str) {
        self.asks(ticket);
        let text = response(ticket, id);
        assert_eq!(self.reply(&text), [opened(ticket, &text)]);
    }
}

fn opened(ticket: u64, text: &str) -> LinkOutput {
    LinkOutput::Subscribed {
        ticket: Ticket(ticket),
        id: ticket,
        message: text.to_owned().into(),
    }
}

fn link() -> Driven {
    Driven::ready(AnswerOrder::Pipelined(4))
}

#[test]
fn a_notification_reaches_the_client_whose_subscription_it_names() {
    let mut link = link();
    link.subscribes(1, "\"0x1\"");
    link.subscribes(2, "1");
    assert_eq!(link.pending.open_id_subscriptions(), 2);
    assert!(!link.pending.is_idle());
    for (id, ticket) in [("\"0x1\"", 1), ("1", 2), ("\"\\u0030x1\"", 1)] {
        let recipients = Recipients::Subscriber(Ticket(ticket));
        assert_eq!(link.reply(&event(id)), [delivered(id, recipients)]);
    }
    for id in ["\"1\"", "2", "null", "{}"] {
        assert_eq!(
            link.reply(&event(id)),
            [delivered(id, Recipients::NoClient)]
        );
    }
    assert_eq!(
        link.take(LinkInput::Cancel(Ticket(1))),
        [unsubscribe(3, "\"0x1\"")]
    );
    link.take(LinkInput::Written);
    assert_eq!(link.reply(&response(3, "true")), []);
    assert_eq!(
        link.reply(&event("\"0x1\"")),
        [delivered("\"0x1\"", Recipients::NoClient)]
    );
    assert_eq!(link.take(LinkInput::Slow(Ticket(2))), [unsubscribe(5, "1")]);
    let counts = link.pending.counts().subscriptions;
    assert_eq!((counts.opened, counts.closed, counts.slow), (2, 1, 1));
    assert!(link.pending.is_idle());
}

#[test]
fn notifications_before_the_response_follow_it() {
    let mut link = link();
    link.asks(1);
    link.asks(2);
    for id in ["7", "8", "7", "9"] {
        assert_eq!(link.reply(&event(id)), []);
    }
    let text = response(1, "7");
    let early = delivered("7", Recipients::Subscriber(Ticket(1)));
    assert_eq!(link.reply(&text), [opened(1, &text), early.clone(), early]);
    let text = response(2, "8");
    let early = delivered("8", Recipients::Subscriber(Ticket(2)));
    assert_eq!(link.reply(&text), [opened(2, &text), early]);
    // No response can claim it any more.
    assert_eq!(
        link.reply(&event("9")),
        [delivered("9", Recipients::NoClient)]
    );
}

#[test]
fn a_client_that_leaves_before_the_response_leaves_no_subscription() {
    let mut link = link();
    link.asks(1);
    assert_eq!(link.take(LinkInput::Cancel(Ticket(1))), []);
    assert_eq!(link.reply(&response(1, "7")), [unsubscribe(2, "7")]);
    link.take(LinkInput::Written);
    assert_eq!(link.pending.open_id_subscriptions(), 0);
    // Neither does one whose call is late. The unsubscribing call took two numbers.
    link.asks(4);
    let late = link.at(100);
    assert_eq!(late, [LinkOutput::Failed(Ticket(4), RequestError::Late)]);
    assert_eq!(link.reply(&response(4, "7")), [unsubscribe(5, "7")]);
}

#[test]
fn a_response_without_a_free_id_opens_nothing() {
    let mut link = link();
    link.subscribes(1, "7");
    let refused = r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"no"}}"#.to_owned();
    for (ticket, text) in [(2, refused), (3, response(3, "7")), (4, response(4, "{}"))] {
        link.asks(ticket);
        assert_eq!(link.reply(&text), [answer(ticket, ticket, &text)]);
    }
    assert_eq!(link.pending.counts().subscriptions.unusable, 2);
    let to_first = delivered("7", Recipients::Subscriber(Ticket(1)));
    assert_eq!(link.reply(&event("7")), [to_first]);
}

#[test]
fn subscriptions_end_with_the_link() {
    let mut link = link();
    link.subscribes(1, "7");
    link.subscribes(2, "8");
    let lost = [1, 2].map(|ticket| LinkOutput::SubscriptionLost(Ticket(ticket)));
    assert_eq!(link.take(LinkInput::Lost { jitter: 0 }), lost);
    assert_eq!(link.pending.counts().subscriptions.lost, 2);
    assert!(link.pending.is_idle());
}

#[test]
fn a_link_that_takes_no_more_requests_ends_its_subscriptions_at_the_server() {
    let mut link = link();
    link.subscribes(1, "7");
    let ended = [LinkOutput::SubscriptionLost(Ticket(1)), unsubscribe(2, "7")];
    assert_eq!(link.take(LinkInput::Unsubscribe), ended);
    assert_eq!(link.pending.counts().subscriptions.lost, 1);
}

#[test]
fn early_notifications_are_bounded() {
    let mut link = link();
    link.asks(1);
    for _ in 0..3000 {
        assert_eq!(link.reply(&event("7")), []);
    }
    let text = response(1, "7");
    assert_eq!(link.reply(&text).len(), 1 + 1024);
}

#[test]
fn large_early_notifications_are_bounded_by_their_size() {
    let mut link = link();
    link.asks(1);
    let large = format!(
        r#"{{"jsonrpc":"2.0","method":"eth_subscription","params":{{"subscription":7,"result":"{}"}}}}"#,
        "x".repeat(1024 * 1024)
    );
    for _ in 0..10 {
        assert_eq!(link.reply(&large), []);
    }
    assert_eq!(link.reply(&response(1, "7")).len(), 1 + 3);
}

#[test]
fn subscriptions_of_a_link_are_bounded() {
    let mut link = link();
    for ticket in 1..SUBSCRIPTIONS as u64 {
        link.subscribes(ticket, &ticket.to_string());
    }
    let last = SUBSCRIPTIONS as u64;
    link.asks(last);
    // The call of the last one counts before its response, and no longer once its client has left.
    let busy = [LinkOutput::Failed(Ticket(last + 1), RequestError::Busy)];
    assert_eq!(link.take(subscribe(last + 1)), busy);
    link.take(LinkInput::Cancel(Ticket(last)));
    link.asks(last + 1);
}
