//! Subscriptions and calls on one link.

use super::*;
use crate::jsonrpc::RequestId;

const KEY: &str = "io.modelcontextprotocol/subscriptionId";

/// A subscription whose client chose the id `"own"`.
fn listen(ticket: u64) -> LinkInput {
    let params = Rope::from(Bytes::from_static(b"{}"));
    let call = RequestTemplate::new("subscriptions/listen", params, &[]);
    let client_id = RequestId::new(Json::literal("\"own\"")).unwrap();
    LinkInput::Ask(request(ticket, Outbound::Subscription(call, client_id)))
}

impl Driven {
    /// Subscribes with the next id and completes the write.
    fn listens(&mut self, ticket: u64) {
        let written = self.take(listen(ticket));
        assert!(
            matches!(&written[..], [LinkOutput::Write(_)]),
            "{written:?}"
        );
        assert_eq!(self.take(LinkInput::Written), []);
    }
}

fn notification(method: &str, id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"_meta":{{"{KEY}":{id}}}}}}}"#)
}

fn notified(method: &str, message: String, recipients: Recipients) -> Vec<LinkOutput> {
    vec![LinkOutput::Notified {
        method: method.to_owned(),
        message: message.into(),
        recipients,
    }]
}

fn cancelled(id: u64) -> LinkOutput {
    write(&format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
    ))
}

const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
const CHANGED: &str = "notifications/tools/list_changed";

#[test]
fn a_subscription_takes_no_slot_and_blocks_no_call() {
    for order in [AnswerOrder::Serial, AnswerOrder::Pipelined(1)] {
        let mut link = Driven::ready(order);
        link.listens(1);
        link.ask(2);
        assert_eq!(link.pending.in_flight(), 1);
        let text = r#"{"id":2,"result":1}"#;
        assert_eq!(link.reply(text), [answer(2, 2, text)]);
        assert!(!link.pending.is_idle());
    }
}

#[test]
fn a_subscription_needs_no_slot_but_waits_for_a_serial_server() {
    let mut link = Driven::ready(AnswerOrder::Pipelined(1));
    link.ask(1);
    assert_eq!(link.take(LinkInput::Ask(request(2, call(2)))), []);
    link.listens(3);
    let mut link = Driven::ready(AnswerOrder::Serial);
    link.ask(1);
    assert_eq!(link.take(listen(2)), []);
    let output = link.reply(r#"{"id":1,"result":1}"#);
    assert!(matches!(
        &output[..],
        [LinkOutput::Answer { .. }, LinkOutput::Write(_)]
    ));
}

#[test]
fn a_notification_of_a_subscription_reaches_its_client_with_its_id() {
    let mut link = Driven::ready(AnswerOrder::Pipelined(4));
    link.ask(1);
    link.listens(2);
    for method in [ACKNOWLEDGED, CHANGED, "notifications/resources/updated"] {
        let wanted = notified(
            method,
            notification(method, "\"own\""),
            Recipients::Caller(Ticket(2)),
        );
        assert_eq!(link.reply(&notification(method, "2")), wanted);
        // An ended subscription, or a call, has no recipient.
        for other in ["1", "7"] {
            let to_none = notified(method, notification(method, other), Recipients::NoClient);
            assert_eq!(link.reply(&notification(method, other)), to_none);
        }
    }
    // All messages in the response stream of a subscription belong to its client, with or without an id.
    let plain = format!(r#"{{"jsonrpc":"2.0","method":"{CHANGED}"}}"#);
    let in_stream = link.take(LinkInput::InResponseStream(2, plain.clone().into()));
    let wanted = notified(CHANGED, plain.clone(), Recipients::Caller(Ticket(2)));
    assert_eq!(in_stream, wanted);
    assert_eq!(
        link.reply(&plain),
        notified(CHANGED, plain.clone(), Recipients::All)
    );
}

#[test]
fn a_subscription_has_a_deadline_until_it_is_acknowledged() {
    let mut link = Driven::ready(AnswerOrder::Serial);
    link.listens(1);
    link.listens(2);
    link.reply(&notification(ACKNOWLEDGED, "1"));
    assert_eq!(link.pending.alarm(), Some(seconds(10)));
    let late = link.at(10);
    let wanted = [
        LinkOutput::Failed(Ticket(2), RequestError::Late),
        cancelled(2),
    ];
    assert_eq!(late, wanted);
    assert_eq!(link.take(LinkInput::Written), []);
    assert_eq!(link.at(100_000), []);
    assert!(!link.pending.is_idle());
}

#[test]
fn a_server_hears_that_a_client_has_closed_its_subscription() {
    let mut link = Driven::ready(AnswerOrder::Serial);
    link.listens(1);
    assert_eq!(link.take(LinkInput::Cancel(Ticket(1))), [cancelled(1)]);
    assert!(link.pending.is_idle());
    let to_none = notified(CHANGED, notification(CHANGED, "1"), Recipients::NoClient);
    assert_eq!(link.reply(&notification(CHANGED, "1")), to_none);
}

#[test]
fn a_server_ends_a_subscription_by_its_response_or_otherwise() {
    let mut link = Driven::ready(AnswerOrder::Pipelined(8));
    (1..6).for_each(|ticket| link.listens(ticket));
    let result = |id: &str| format!(r#"{{"id":1,"result":{{"_meta":{{"{KEY}":{id}}}}}}}"#);
    let client_id = answer(1, 1, &result("\"own\""));
    assert_eq!(link.reply(&result("1")), [client_id]);
    let cancelled =
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#;
    assert_eq!(link.reply(cancelled), [LinkOutput::Ended(Ticket(2))]);
    link.reply(&notification(ACKNOWLEDGED, "3"));
    let ended = link.take(LinkInput::Failed(3, RequestError::Cut));
    assert_eq!(ended, [LinkOutput::Ended(Ticket(3))]);
    let failed = link.take(LinkInput::Failed(4, RequestError::Cut));
    assert_eq!(failed, [LinkOutput::Failed(Ticket(4), RequestError::Cut)]);
    let lost = link.take(LinkInput::Lost { jitter: 0 });
    assert_eq!(lost, [LinkOutput::Failed(Ticket(5), RequestError::Cut)]);
    assert!(link.pending.is_idle());
}

#[test]
fn subscriptions_end_where_nothing_more_is_asked_and_are_bounded() {
    let mut link = Driven::ready(AnswerOrder::Serial);
    link.listens(1);
    let ended = link.take(LinkInput::Unsubscribe);
    assert_eq!(ended, [LinkOutput::Ended(Ticket(1)), cancelled(1)]);
    let mut link = Driven::ready(AnswerOrder::Serial);
    let most = SUBSCRIPTIONS as u64;
    (0..most).for_each(|ticket| link.listens(ticket));
    let busy = LinkOutput::Failed(Ticket(most), RequestError::Busy);
    assert_eq!(link.take(listen(most)), [busy]);
}
