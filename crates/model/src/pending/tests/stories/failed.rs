//! Requests that fail while their link continues.

use super::*;

#[test]
fn a_call_fails_alone() {
    let mut driven = two_on_a_session();
    let failed = driven.take(LinkInput::Failed(3, RequestError::Unusable(500)));
    assert_eq!(
        failed,
        [LinkOutput::Failed(Ticket(1), RequestError::Unusable(500))]
    );
    assert_eq!(driven.take(LinkInput::Failed(3, RequestError::Cut)), []);
    let good = r#"{"id":4,"result":2}"#;
    assert_eq!(driven.reply(good), [answer(2, 4, good)]);
}

#[test]
fn an_undelivered_notice_fails() {
    let mut driven = Driven::ready(AnswerOrder::Serial);
    let notice = Outbound::Notice(Bytes::from_static(b"{}"));
    driven.take(LinkInput::Ask(request(1, notice)));
    let output = driven.take(LinkInput::Unwritten(RequestError::Unreachable));
    assert_eq!(
        output,
        [LinkOutput::Failed(Ticket(1), RequestError::Unreachable)]
    );
    driven.ask(2);
}
