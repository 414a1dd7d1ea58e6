//! Requests that the server sends during calls.

use super::*;
use crate::jsonrpc::RequestId;

const ELICIT: &str =
    r#"{"jsonrpc":"2.0","id":"s1","method":"elicitation/create","params":{"message":"who?"}}"#;
const CANCELLED: &str =
    r#"{"jsonrpc":"2.0","id":1,"error":{"code":0,"message":"Request cancelled"}}"#;
const DONE: &str = r#"{"jsonrpc":"2.0","id":1,"result":1}"#;

/// The capabilities of a client that fills in forms.
fn forms() -> InputCapabilities {
    let params = Json::literal(r#"{"capabilities":{"elicitation":{}}}"#);
    InputCapabilities::of_initialize(Some(&params))
}

impl Driven {
    /// Sends a call whose caller fills in forms, and completes its write.
    fn calls(&mut self, ticket: u64) {
        let able = Request {
            input: forms(),
            ..request(ticket, call(ticket))
        };
        let written = self.take(LinkInput::Ask(able));
        assert!(
            matches!(&written[..], [LinkOutput::Write(_)]),
            "{written:?}"
        );
        assert_eq!(self.take(LinkInput::Written), []);
    }

    /// Starts the call 2 at this second; the server then sends a request outside of streams.
    fn asked_at(&mut self, second: u64) -> Vec<LinkOutput> {
        self.at(second);
        let limit = seconds(second + 100);
        self.take(LinkInput::Ask(Request {
            input: forms(),
            start_by: limit,
            deadline: limit,
            ..request(2, call(2))
        }));
        self.take(LinkInput::Written);
        self.reply(ELICIT)
    }

    fn in_stream(&mut self, id: u64, text: &str) -> Vec<LinkOutput> {
        let message = Bytes::copy_from_slice(text.as_bytes());
        self.take(LinkInput::InResponseStream(id, message))
    }
}

fn asks(ticket: u64) -> Vec<LinkOutput> {
    vec![LinkOutput::ServerRequest {
        ticket: Ticket(ticket),
        id: RequestId::new(Json::literal("\"s1\"")).unwrap(),
        message: ELICIT.into(),
    }]
}

fn response() -> Vec<Bytes> {
    vec![Bytes::from_static(
        br#"{"jsonrpc":"2.0","id":"s1","result":{}}"#,
    )]
}

/// The code of the error that a request of the server gets.
fn declined(output: &[LinkOutput]) -> i64 {
    let [LinkOutput::Write(message)] = output else {
        panic!("{output:?}");
    };
    let message: serde_json::Value = serde_json::from_slice(message).unwrap();
    message["error"]["code"].as_i64().unwrap()
}

#[test]
fn a_request_reaches_the_caller_in_whose_stream_it_came() {
    let mut link = Driven::ready(AnswerOrder::Pipelined(4));
    link.calls(1);
    link.calls(2);
    assert_eq!(link.in_stream(2, ELICIT), asks(2));
    let responses = link.take(LinkInput::Respond(Ticket(2), response()));
    assert_eq!(responses, [LinkOutput::Write(response().remove(0))]);
    // Outside a stream, it may belong to either call.
    let mut link = Driven::ready(AnswerOrder::Pipelined(4));
    link.calls(1);
    link.calls(2);
    assert_eq!(declined(&link.reply(ELICIT)), -32601);
    assert_eq!(link.pending.counts().declined, 1);
}

#[test]
fn without_streams_it_reaches_the_only_call() {
    let mut link = Driven::ready(AnswerOrder::Serial);
    link.calls(1);
    assert_eq!(link.reply(ELICIT), asks(1));
    // A server may still ask about a call that its caller has given up.
    let mut link = Driven::ready(AnswerOrder::Pipelined(4));
    link.calls(1);
    link.take(LinkInput::Cancel(Ticket(1)));
    link.calls(2);
    assert_eq!(declined(&link.reply(ELICIT)), -32601);
}

/// A call, which its client cancels; the server is told of that.
fn cancelled(clients: LinkClients) -> Driven {
    let mut link = Driven::open(LinkSettings {
        clients,
        ..settings(AnswerOrder::Pipelined(4))
    });
    link.take(LinkInput::Opened);
    link.calls(1);
    let told = link.take(LinkInput::ClientCancel(Ticket(1)));
    assert!(matches!(&told[..], [LinkOutput::Write(_)]), "{told:?}");
    link.take(LinkInput::Written);
    link
}

#[test]
fn on_a_link_of_one_client_a_cancelled_call_is_in_doubt_for_a_minute() {
    let mut link = cancelled(LinkClients::One);
    assert_eq!(declined(&link.asked_at(59)), -32601);
    let mut link = cancelled(LinkClients::One);
    assert_eq!(link.asked_at(60), asks(2));
    // Its response to the cancelled call tells earlier that it has stopped.
    let mut link = cancelled(LinkClients::One);
    link.reply(CANCELLED);
    assert_eq!(link.asked_at(0), asks(2));
}

#[test]
fn on_a_shared_link_a_cancelled_call_is_in_doubt_until_it_has_ended() {
    let mut link = cancelled(LinkClients::Several);
    assert_eq!(declined(&link.asked_at(24 * 3600)), -32601);
    let mut link = cancelled(LinkClients::Several);
    link.reply(CANCELLED);
    assert_eq!(link.asked_at(0), asks(2));
    // The server has ended the response stream of the call.
    let mut link = cancelled(LinkClients::Several);
    assert_eq!(link.take(LinkInput::Ended(1)), []);
    assert_eq!(link.asked_at(0), asks(2));
    // A failure, such as a broken connection, is no sign that the server has stopped.
    let mut link = cancelled(LinkClients::Several);
    link.take(LinkInput::Failed(1, RequestError::Cut));
    assert_eq!(declined(&link.asked_at(0)), -32601);
    let mut link = cancelled(LinkClients::Several);
    link.take(LinkInput::Lost { jitter: 0 });
    link.at(1);
    link.take(LinkInput::Opened);
    assert_eq!(link.asked_at(1), asks(2));
}

#[test]
fn a_call_whose_response_stream_ends_without_a_response_fails() {
    let mut link = Driven::ready(AnswerOrder::Pipelined(4));
    link.calls(1);
    let failed = [LinkOutput::Failed(Ticket(1), RequestError::Cut)];
    assert_eq!(link.take(LinkInput::Ended(1)), failed);
    link.calls(2);
    assert_eq!(link.reply(ELICIT), asks(2));
}

#[test]
fn a_caller_that_did_not_declare_the_capability_is_not_asked() {
    let mut link = Driven::ready(AnswerOrder::Serial);
    link.ask(1);
    assert_eq!(declined(&link.reply(ELICIT)), -32601);
    let mut link = Driven::ready(AnswerOrder::Serial);
    link.calls(1);
    for other in [
        r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"elicitation/create","params":{"mode":"url"}}"#,
    ] {
        assert_eq!(declined(&link.reply(other)), -32601);
        assert_eq!(link.take(LinkInput::Written), []);
    }
    let mut link = Driven::open(LinkSettings {
        server_requests: ServerRequests::Decline,
        ..settings(AnswerOrder::Serial)
    });
    link.take(LinkInput::Opened);
    link.calls(1);
    assert_eq!(declined(&link.reply(ELICIT)), -32601);
}

#[test]
fn the_time_limit_of_a_call_does_not_run_while_its_client_is_asked() {
    let mut link = Driven::ready(AnswerOrder::Serial);
    link.calls(1);
    link.at(8);
    assert_eq!(link.reply(ELICIT), asks(1));
    assert_eq!(link.at(300), []);
    link.take(LinkInput::Respond(Ticket(1), response()));
    link.take(LinkInput::Written);
    // Two of its ten seconds are left.
    assert_eq!(link.at(301), []);
    let late = link.at(302);
    assert_eq!(late, [LinkOutput::Failed(Ticket(1), RequestError::Late)]);
}

#[test]
fn a_client_that_does_not_answer_ends_its_call_and_is_no_sign_of_a_dead_server() {
    let mut link = Driven::open(LinkSettings {
        max_consecutive_timeouts: 1,
        initialize_params: initialize_params(),
        ..settings(AnswerOrder::Serial)
    });
    link.take(LinkInput::Opened);
    link.take(LinkInput::Written);
    link.reply(r#"{"id":1,"result":{}}"#);
    link.take(LinkInput::Written);
    link.calls(1);
    assert_eq!(link.reply(ELICIT), asks(1));
    let output = link.at(INPUT_TIMEOUT.as_secs());
    let [
        LinkOutput::Failed(Ticket(1), RequestError::Late),
        LinkOutput::Write(cancelled),
    ] = &output[..]
    else {
        panic!("{output:?}");
    };
    let cancelled = String::from_utf8(cancelled.to_vec()).unwrap();
    assert!(cancelled.contains("notifications/cancelled"), "{cancelled}");
    assert!(link.pending.is_ready());
    // An answer that comes too late is dropped.
    link.take(LinkInput::Written);
    assert_eq!(link.take(LinkInput::Respond(Ticket(1), response())), []);
}

#[test]
fn the_server_may_ask_again_and_end_the_call_without_the_answers() {
    let mut link = Driven::ready(AnswerOrder::Serial);
    link.calls(1);
    for _ in 0..16 {
        assert_eq!(link.reply(ELICIT), asks(1));
    }
    assert_eq!(declined(&link.reply(ELICIT)), -32603);
    link.take(LinkInput::Written);
    assert_eq!(link.reply(DONE), [answer(1, 1, DONE)]);
    assert_eq!(link.take(LinkInput::Respond(Ticket(1), response())), []);
    assert!(link.pending.is_idle());
}

#[test]
fn suspended_calls_leave_half_of_the_slots_to_others() {
    let mut link = Driven::ready(AnswerOrder::Pipelined(4));
    for ticket in 1..=3 {
        link.calls(ticket);
    }
    assert_eq!(link.in_stream(1, ELICIT), asks(1));
    assert_eq!(link.in_stream(2, ELICIT), asks(2));
    assert_eq!(declined(&link.in_stream(3, ELICIT)), -32603);
}

#[test]
fn a_request_during_no_call_is_declined() {
    let mut link = Driven::ready(AnswerOrder::Serial);
    assert_eq!(declined(&link.reply(ELICIT)), -32601);
}
