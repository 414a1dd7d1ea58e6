//! Cancellations, arrays of messages, and messages in response streams.

use super::*;

#[test]
fn a_cancelled_call_is_reported_to_the_server_without_a_handshake() {
    let mut link = Driven::ready(AnswerOrder::Pipelined(2));
    link.ask(1);
    assert_eq!(link.take(LinkInput::Cancel(Ticket(1))), []);
    link.ask(2);
    assert!(link.pending.has_sent_all());
    let cancelled = link.take(LinkInput::ClientCancel(Ticket(2)));
    let wanted = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#;
    assert_eq!(cancelled, [write(wanted)]);
    assert!(link.pending.is_idle() && !link.pending.has_sent_all());
    assert_eq!(link.take(LinkInput::Written), []);
    assert!(link.pending.has_sent_all());
    // A queued request is removed without a message.
    let asked = link.take(LinkInput::Ask(request(3, call(3))));
    assert_eq!(asked.len(), 1);
    assert_eq!(link.take(LinkInput::Ask(request(4, call(4)))), []);
    assert_eq!(link.take(LinkInput::ClientCancel(Ticket(4))), []);
}

#[test]
fn messages_of_an_array_are_handled_one_by_one() {
    let mut link = Driven::ready(AnswerOrder::Pipelined(3));
    (1..4).for_each(|ticket| link.ask(ticket));
    let [one, two] = [r#"{"id":3,"result":1.0}"#, r#"{"id":1,"result":[]}"#];
    let notification = r#"{"jsonrpc":"2.0","method":"notifications/message"}"#;
    let output = link.reply(&format!("[{one}, {notification},{two},7]"));
    assert_eq!(output.len(), 3, "{output:?}");
    assert_eq!(
        (&output[0], &output[2]),
        (&answer(3, 3, one), &answer(1, 1, two))
    );
    let counts = link.pending.counts();
    assert_eq!((counts.notified, counts.skipped), (1, 1));
}

#[test]
fn a_log_message_on_a_link_without_response_streams_belongs_to_the_only_call() {
    let log = r#"{"jsonrpc":"2.0","method":"notifications/message"}"#;
    let recipients = |link: &mut Driven| match &link.reply(log)[..] {
        [LinkOutput::Notified { recipients, .. }] => *recipients,
        other => panic!("{other:?}"),
    };
    for order in [AnswerOrder::Serial, AnswerOrder::Pipelined(3)] {
        let mut link = Driven::open(LinkSettings {
            log_messages: LogMessages::OnlyCaller,
            ..settings(order)
        });
        link.take(LinkInput::Opened);
        assert_eq!(recipients(&mut link), Recipients::NoClient);
        link.ask(1);
        assert_eq!(recipients(&mut link), Recipients::Caller(Ticket(1)));
        if order == AnswerOrder::Serial {
            continue;
        }
        link.ask(2);
        assert_eq!(recipients(&mut link), Recipients::NoClient);
        // The server may still work on the call that its caller has given up.
        link.take(LinkInput::Cancel(Ticket(1)));
        assert_eq!(recipients(&mut link), Recipients::NoClient);
    }
}

#[test]
fn a_message_in_the_response_stream_of_a_call_reaches_its_caller() {
    let mut link = Driven::ready(AnswerOrder::Pipelined(3));
    (1..4).for_each(|ticket| link.ask(ticket));
    let notification = r#"{"jsonrpc":"2.0","method":"notifications/message"}"#;
    let recipients_for = |link: &mut Driven, id| {
        let notification = Bytes::from(notification);
        match &link.take(LinkInput::InResponseStream(id, notification))[..] {
            [LinkOutput::Notified { recipients, .. }] => *recipients,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(recipients_for(&mut link, 2), Recipients::Caller(Ticket(2)));
    assert_eq!(recipients_for(&mut link, 3), Recipients::Caller(Ticket(3)));
    // No caller waits for it any more.
    link.take(LinkInput::Cancel(Ticket(3)));
    assert_eq!(recipients_for(&mut link, 3), Recipients::NoClient);
    // The same applies to a notification after the answer in one array.
    let answer = r#"{"id":2,"result":1}"#;
    let both = link.take(LinkInput::InResponseStream(
        2,
        format!("[{answer},{notification}]").into(),
    ));
    let [
        LinkOutput::Answer { .. },
        LinkOutput::Notified { recipients, .. },
    ] = &both[..]
    else {
        panic!("{both:?}");
    };
    assert_eq!(*recipients, Recipients::Caller(Ticket(2)));
    assert_eq!(recipients_for(&mut link, 2), Recipients::NoClient);
}

#[test]
fn without_a_next_link_queued_requests_fail_by_whether_they_were_written() {
    let mut link = Driven::ready(AnswerOrder::Serial);
    let repeatable = Request {
        repeat: RetryRule::Once,
        ..request(1, call(1))
    };
    link.take(LinkInput::Ask(repeatable));
    link.take(LinkInput::Ask(request(2, call(2))));
    assert_eq!(link.take(LinkInput::Lost { jitter: 0 }), []);
    let over = [
        LinkOutput::Failed(Ticket(1), RequestError::Cut),
        LinkOutput::Failed(Ticket(2), RequestError::Unreachable),
    ];
    assert_eq!(link.take(LinkInput::Over), over);
    assert!(link.pending.is_idle());
}
