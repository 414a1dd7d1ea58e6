//! Subscriptions beside calls.

use super::*;
use crate::domain::jsonrpc::RequestId;

const KEY: &str = "io.modelcontextprotocol/subscriptionId";

/// A subscription that its client calls `"own"`.
fn listen(ticket: u64) -> LinkInput {
    let params = Rope::from(Bytes::from_static(b"{}"));
    let call = RequestTemplate::new("subscriptions/listen", params, &[]);
    let own = RequestId::new(Json::literal("\"own\"")).unwrap();
    LinkInput::Ask(ask(ticket, Outbound::Subscription(call, own)))
}

impl Driven {
    /// Subscribes under the next id, and takes it that it is written.
    fn listens(&mut self, ticket: u64) {
        let written = self.take(listen(ticket));
        assert!(
            matches!(&written[..], [LinkOutput::Write(_)]),
            "{written:?}"
        );
        assert_eq!(self.take(LinkInput::Written), []);
    }
}

fn told(method: &str, id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"_meta":{{"{KEY}":{id}}}}}}}"#)
}

fn notified(method: &str, message: String, hearers: Recipients) -> Vec<LinkOutput> {
    vec![LinkOutput::Notified {
        method: method.to_owned(),
        message: message.into(),
        hearers,
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
        link.asks(2);
        assert_eq!(link.pending.in_flight(), 1);
        let text = r#"{"id":2,"result":1}"#;
        assert_eq!(link.says(text), [answer(2, 2, text)]);
        assert!(!link.pending.is_idle());
    }
}

#[test]
fn a_subscription_waits_for_no_slot_and_for_what_a_serial_server_does() {
    let mut link = Driven::ready(AnswerOrder::Pipelined(1));
    link.asks(1);
    assert_eq!(link.take(LinkInput::Ask(ask(2, call(2)))), []);
    link.listens(3);
    let mut link = Driven::ready(AnswerOrder::Serial);
    link.asks(1);
    assert_eq!(link.take(listen(2)), []);
    let heard = link.says(r#"{"id":1,"result":1}"#);
    assert!(matches!(
        &heard[..],
        [LinkOutput::Answer { .. }, LinkOutput::Write(_)]
    ));
}

#[test]
fn what_is_told_of_a_subscription_reaches_its_client_with_its_own_id() {
    let mut link = Driven::ready(AnswerOrder::Pipelined(4));
    link.asks(1);
    link.listens(2);
    for method in [ACKNOWLEDGED, CHANGED, "notifications/resources/updated"] {
        let wanted = notified(
            method,
            told(method, "\"own\""),
            Recipients::Caller(Ticket(2)),
        );
        assert_eq!(link.says(&told(method, "2")), wanted);
        // One that is over, or a call, has none.
        for other in ["1", "7"] {
            let nobody = notified(method, told(method, other), Recipients::Nobody);
            assert_eq!(link.says(&told(method, other)), nobody);
        }
    }
    // In its own response stream all is its client's, whether or not it says so.
    let plain = format!(r#"{{"jsonrpc":"2.0","method":"{CHANGED}"}}"#);
    let beside = link.take(LinkInput::Beside(2, plain.clone().into()));
    let wanted = notified(CHANGED, plain.clone(), Recipients::Caller(Ticket(2)));
    assert_eq!(beside, wanted);
    assert_eq!(
        link.says(&plain),
        notified(CHANGED, plain.clone(), Recipients::All)
    );
}

#[test]
fn a_subscription_has_a_deadline_until_it_is_acknowledged() {
    let mut link = Driven::ready(AnswerOrder::Serial);
    link.listens(1);
    link.listens(2);
    link.says(&told(ACKNOWLEDGED, "1"));
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
    let nobody = notified(CHANGED, told(CHANGED, "1"), Recipients::Nobody);
    assert_eq!(link.says(&told(CHANGED, "1")), nobody);
}

#[test]
fn a_server_ends_a_subscription_by_its_response_or_otherwise() {
    let mut link = Driven::ready(AnswerOrder::Pipelined(8));
    (1..6).for_each(|ticket| link.listens(ticket));
    let result = |id: &str| format!(r#"{{"id":1,"result":{{"_meta":{{"{KEY}":{id}}}}}}}"#);
    let own = answer(1, 1, &result("\"own\""));
    assert_eq!(link.says(&result("1")), [own]);
    let cancelled =
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#;
    assert_eq!(link.says(cancelled), [LinkOutput::Ended(Ticket(2))]);
    link.says(&told(ACKNOWLEDGED, "3"));
    let ended = link.take(LinkInput::Failed(3, RequestError::Cut));
    assert_eq!(ended, [LinkOutput::Ended(Ticket(3))]);
    let failed = link.take(LinkInput::Failed(4, RequestError::Cut));
    assert_eq!(failed, [LinkOutput::Failed(Ticket(4), RequestError::Cut)]);
    let lost = link.take(LinkInput::Lost { luck: 0 });
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
