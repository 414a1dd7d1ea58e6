//! Responses that are unreadable, or whose ids the link did not issue.

use super::*;

#[test]
fn a_response_with_an_id_of_another_type_fails_its_call_at_once() {
    let failed = |ticket| {
        [LinkOutput::Failed(
            Ticket(ticket),
            RequestError::Misnumbered,
        )]
    };
    let mut link = Driven::ready(AnswerOrder::Pipelined(2));
    link.ask(1);
    link.ask(2);
    // It may belong to either request.
    assert_eq!(link.reply(r#"{"id":"a","result":1}"#), []);
    assert_eq!(link.reply(r#"{"id":"2","result":1}"#), failed(2));
    assert_eq!(link.reply(r#"{"id":"2","result":1}"#), [], "it is over");
    assert_eq!(link.reply(r#"{"id":1.0,"error":{"code":1}}"#), failed(1));
    assert_eq!(link.pending.counts().foreign, 2);
    for id in [r#""id":"a","#, r#""id":[1],"#, r#""id":null,"#, ""] {
        let mut link = Driven::ready(AnswerOrder::Serial);
        link.ask(1);
        assert_eq!(link.reply(&format!(r#"{{{id}"result":1}}"#)), failed(1));
        link.ask(2);
        let text = r#"{"id":2,"result":1}"#;
        assert_eq!(link.reply(text), [answer(2, 2, text)]);
    }
}

#[test]
fn a_response_that_is_nested_too_deeply_ends_its_call() {
    let deep = format!(
        r#"{{"id":1,"result":{}{}}}"#,
        "[".repeat(70_000),
        "]".repeat(70_000)
    );
    let mut link = Driven::ready(AnswerOrder::Serial);
    link.ask(1);
    assert_eq!(link.reply(&deep), [answer(1, 1, &deep)]);
    let mut link = Driven::ready(AnswerOrder::Serial);
    link.ask(1);
    assert_eq!(link.reply(&format!("[{deep}]")), [answer(1, 1, &deep)]);
}

#[test]
fn an_error_without_an_id_belongs_to_the_only_possible_request() {
    let mut link = Driven::ready(AnswerOrder::Serial);
    link.ask(1);
    assert_eq!(link.reply(NULL), [answer(1, 1, NULL)]);
    assert_eq!(link.reply(NULL), [], "no request is pending");

    let mut link = Driven::ready(AnswerOrder::Pipelined(2));
    link.ask(1);
    link.ask(2);
    assert_eq!(link.reply(NULL), [], "either request is possible");
    let text = r#"{"id":1,"result":1}"#;
    assert_eq!(link.reply(text), [answer(1, 1, text)]);
    assert_eq!(link.reply(NULL), [answer(2, 2, NULL)]);
}
