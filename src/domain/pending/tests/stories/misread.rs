//! Responses that cannot be read, or whose ids are none of the link's.

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
    link.asks(1);
    link.asks(2);
    // Either may be meant.
    assert_eq!(link.says(r#"{"id":"a","result":1}"#), []);
    assert_eq!(link.says(r#"{"id":"2","result":1}"#), failed(2));
    assert_eq!(link.says(r#"{"id":"2","result":1}"#), [], "it is over");
    assert_eq!(link.says(r#"{"id":1.0,"error":{"code":1}}"#), failed(1));
    assert_eq!(link.pending.counts().foreign, 2);
    for id in [r#""id":"a","#, r#""id":[1],"#, r#""id":null,"#, ""] {
        let mut link = Driven::ready(AnswerOrder::Serial);
        link.asks(1);
        assert_eq!(link.says(&format!(r#"{{{id}"result":1}}"#)), failed(1));
        link.asks(2);
        let text = r#"{"id":2,"result":1}"#;
        assert_eq!(link.says(text), [answer(2, 2, text)]);
    }
}

#[test]
fn a_response_that_is_nested_too_deeply_goes_to_its_call_at_once() {
    let deep = format!(
        r#"{{"id":1,"result":{}{}}}"#,
        "[".repeat(70_000),
        "]".repeat(70_000)
    );
    let mut link = Driven::ready(AnswerOrder::Serial);
    link.asks(1);
    assert_eq!(link.says(&deep), [answer(1, 1, &deep)]);
    let mut link = Driven::ready(AnswerOrder::Serial);
    link.asks(1);
    assert_eq!(link.says(&format!("[{deep}]")), [answer(1, 1, &deep)]);
}
