//! What is said together with other things, or instead of them.

use super::*;

#[test]
fn a_call_that_is_recalled_is_cancelled_where_nobody_was_greeted_and_before_the_end() {
    let mut link = Driven::ready(AnswerOrder::Pipelined(2));
    link.asks(1);
    assert_eq!(link.take(LinkInput::Cancel(Ticket(1))), []);
    link.asks(2);
    assert!(link.pending.has_sent_all());
    let cancelled = link.take(LinkInput::Recall(Ticket(2)));
    let wanted = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#;
    assert_eq!(cancelled, [write(wanted)]);
    assert!(link.pending.is_idle() && !link.pending.has_sent_all());
    assert_eq!(link.take(LinkInput::Written), []);
    assert!(link.pending.has_sent_all());
    // What waits is taken back, and nothing is said of it.
    let asked = link.take(LinkInput::Ask(ask(3, call(3))));
    assert_eq!(asked.len(), 1);
    assert_eq!(link.take(LinkInput::Ask(ask(4, call(4)))), []);
    assert_eq!(link.take(LinkInput::Recall(Ticket(4))), []);
}

#[test]
fn several_messages_in_one_array_are_heard_one_by_one() {
    let mut link = Driven::ready(AnswerOrder::Pipelined(3));
    (1..4).for_each(|ticket| link.asks(ticket));
    let [one, two] = [r#"{"id":3,"result":1.0}"#, r#"{"id":1,"result":[]}"#];
    let told = r#"{"jsonrpc":"2.0","method":"notifications/message"}"#;
    let heard = link.says(&format!("[{one}, {told},{two},7]"));
    assert_eq!(heard.len(), 3, "{heard:?}");
    assert_eq!(
        (&heard[0], &heard[2]),
        (&answer(3, 3, one), &answer(1, 1, two))
    );
    let counts = link.pending.counts();
    assert_eq!((counts.notified, counts.skipped), (1, 1));
}

#[test]
fn what_is_said_in_the_response_stream_of_a_call_is_its_callers() {
    let mut link = Driven::ready(AnswerOrder::Pipelined(3));
    (1..4).for_each(|ticket| link.asks(ticket));
    let told = r#"{"jsonrpc":"2.0","method":"notifications/message"}"#;
    let hears = |link: &mut Driven, id| {
        let told = Bytes::from(told);
        match &link.take(LinkInput::Beside(id, told))[..] {
            [LinkOutput::Notified { hearers, .. }] => *hearers,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(hears(&mut link, 2), Recipients::Caller(Ticket(2)));
    assert_eq!(hears(&mut link, 3), Recipients::Caller(Ticket(3)));
    // Nobody waits for it any more.
    link.take(LinkInput::Cancel(Ticket(3)));
    assert_eq!(hears(&mut link, 3), Recipients::Nobody);
    // Also where it comes in one array with the answer, behind it.
    let answer = r#"{"id":2,"result":1}"#;
    let both = link.take(LinkInput::Beside(2, format!("[{answer},{told}]").into()));
    let [
        LinkOutput::Answer { .. },
        LinkOutput::Notified { hearers, .. },
    ] = &both[..]
    else {
        panic!("{both:?}");
    };
    assert_eq!(*hearers, Recipients::Caller(Ticket(2)));
    assert_eq!(hears(&mut link, 2), Recipients::Nobody);
}

#[test]
fn where_no_link_follows_all_who_wait_are_told_whether_they_were_heard() {
    let mut link = Driven::ready(AnswerOrder::Serial);
    let repeatable = Request {
        repeat: RetryRule::Once,
        ..ask(1, call(1))
    };
    link.take(LinkInput::Ask(repeatable));
    link.take(LinkInput::Ask(ask(2, call(2))));
    assert_eq!(link.take(LinkInput::Lost { luck: 0 }), []);
    let over = [
        LinkOutput::Failed(Ticket(1), RequestError::Cut),
        LinkOutput::Failed(Ticket(2), RequestError::Unreachable),
    ];
    assert_eq!(link.take(LinkInput::Over), over);
    assert!(link.pending.is_idle());
}
