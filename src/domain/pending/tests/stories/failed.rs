//! Requests that fail while their link goes on.

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
    assert_eq!(driven.says(good), [answer(2, 4, good)]);
}

#[test]
fn a_notice_that_reaches_nobody_is_told_as_that() {
    let mut driven = Driven::ready(AnswerOrder::Serial);
    let notice = Outbound::Notice(Bytes::from_static(b"{}"));
    driven.take(LinkInput::Ask(ask(1, notice)));
    let told = driven.take(LinkInput::Unwritten(RequestError::Unreachable));
    assert_eq!(
        told,
        [LinkOutput::Failed(Ticket(1), RequestError::Unreachable)]
    );
    driven.asks(2);
}
