//! Single scenarios of a link.

use super::*;

mod failed;
mod id_subscriptions;
mod listeners;
mod login;
mod misread;
mod mixed_messages;
mod server_requests;
mod subscriptions;

/// A link whose events the test supplies.
struct Driven {
    pending: LinkMachine,
    now: Duration,
}

impl Driven {
    fn open(settings: LinkSettings) -> Driven {
        let mut driven = Driven {
            pending: LinkMachine::new(settings),
            now: Duration::ZERO,
        };
        assert_eq!(driven.take(LinkInput::Tick), [LinkOutput::Open]);
        driven
    }

    fn ready(order: AnswerOrder) -> Driven {
        let mut driven = Driven::open(settings(order));
        assert_eq!(driven.take(LinkInput::Opened), [LinkOutput::Ready]);
        driven
    }

    fn take(&mut self, input: LinkInput) -> Vec<LinkOutput> {
        self.pending.take(self.now, input);
        std::iter::from_fn(|| self.pending.output()).collect()
    }

    fn reply(&mut self, text: &str) -> Vec<LinkOutput> {
        self.take(LinkInput::Message(Bytes::copy_from_slice(text.as_bytes())))
    }

    /// Sends a request and completes its write.
    fn ask(&mut self, ticket: u64) {
        let written = self.take(LinkInput::Ask(request(ticket, call(ticket))));
        assert!(
            matches!(&written[..], [LinkOutput::Write(_)]),
            "{written:?}"
        );
        assert_eq!(self.take(LinkInput::Written), []);
    }

    fn at(&mut self, at: u64) -> Vec<LinkOutput> {
        self.now = seconds(at);
        self.take(LinkInput::Tick)
    }
}

fn write(text: &str) -> LinkOutput {
    LinkOutput::Write(Bytes::copy_from_slice(text.as_bytes()))
}

fn answer(ticket: u64, id: u64, text: &str) -> LinkOutput {
    LinkOutput::Answer {
        ticket: Ticket(ticket),
        id,
        message: Bytes::copy_from_slice(text.as_bytes()),
    }
}

const NULL: &str = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}"#;

#[test]
fn a_serial_link_asks_one_after_the_other() {
    let mut link = Driven::ready(AnswerOrder::Serial);
    let asked = link.take(LinkInput::Ask(request(7, call(7))));
    let wanted = r#"{"jsonrpc":"2.0","id":1,"method":"do","params":[7]}"#;
    assert_eq!(asked, [write(wanted)]);
    assert_eq!(link.take(LinkInput::Ask(request(8, call(8)))), []);
    assert_eq!(link.take(LinkInput::Written), []);
    let text = r#"{"jsonrpc":"2.0","id":1,"result":1.0}"#;
    let next = write(r#"{"jsonrpc":"2.0","id":2,"method":"do","params":[8]}"#);
    assert_eq!(link.reply(text), [answer(7, 1, text), next]);
}

#[test]
fn a_pipelined_link_asks_at_once_and_answers_in_any_order() {
    let mut link = Driven::ready(AnswerOrder::Pipelined(2));
    link.ask(1);
    link.ask(2);
    assert_eq!(
        link.take(LinkInput::Ask(request(3, call(3)))),
        [],
        "two at a time"
    );
    let text = r#"{"id":2,"error":{"code":1}}"#;
    let output = link.reply(text);
    assert_eq!(output[0], answer(2, 2, text));
    assert_eq!(link.take(LinkInput::Written), []);
    let text = r#"{"id":1,"result":null}"#;
    assert_eq!(link.reply(text), [answer(1, 1, text)]);
}

#[test]
fn a_late_call_frees_its_slot_and_its_answer_is_dropped() {
    let mut link = Driven::ready(AnswerOrder::Serial);
    link.ask(1);
    let late = link.at(10);
    assert_eq!(late, [LinkOutput::Failed(Ticket(1), RequestError::Late)]);
    link.now = Duration::ZERO;
    link.ask(2);
    assert_eq!(link.reply(NULL), [], "it may be about the first");
    assert_eq!(link.reply(r#"{"id":1,"result":"old"}"#), []);
    let counts = link.pending.counts();
    assert_eq!((counts.late, counts.foreign), (1, 1));
    let text = r#"{"id":2,"result":"new"}"#;
    assert_eq!(link.reply(text), [answer(2, 2, text)]);
    assert_eq!(link.pending.remaining(), 0);
}

#[test]
fn an_error_without_an_id_may_be_about_a_notice() {
    let mut link = Driven::ready(AnswerOrder::Serial);
    let notice = Outbound::Notice(Bytes::from_static(b"{\"method\":\"n\"}"));
    let written = link.take(LinkInput::Ask(request(1, notice)));
    assert_eq!(written, [write(r#"{"method":"n"}"#)]);
    assert_eq!(
        link.take(LinkInput::Written),
        [LinkOutput::NoticeSent(Ticket(1))]
    );
    link.ask(2);
    assert_eq!(link.reply(NULL), []);
    let text = r#"{"id":2,"result":1}"#;
    assert_eq!(link.reply(text), [answer(2, 2, text)]);
    link.ask(3);
    assert_eq!(link.reply(NULL), [answer(3, 3, NULL)], "that is long past");
}

#[test]
fn an_overlong_message_fails_the_only_possible_request() {
    let mut link = Driven::ready(AnswerOrder::Serial);
    link.ask(1);
    let large = [LinkOutput::Failed(Ticket(1), RequestError::TooLarge(0))];
    assert_eq!(link.take(LinkInput::Overlong), large);
    assert_eq!(link.take(LinkInput::Overlong), []);
    assert_eq!(link.pending.counts().skipped, 1);
}

#[test]
fn requests_of_the_server_are_declined_and_pings_answered() {
    let mut link = Driven::ready(AnswerOrder::Serial);
    let pong = link.reply(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#);
    assert_eq!(pong, [write(r#"{"jsonrpc":"2.0","id":"p","result":{}}"#)]);
    assert_eq!(link.take(LinkInput::Written), []);
    let declined = link.reply(r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#);
    let wanted = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"the proxy cannot tell to which client's call this request belongs"}}"#;
    assert_eq!(declined, [write(wanted)]);
    assert_eq!(link.pending.counts().declined, 1);
}

#[test]
fn notifications_are_handed_out_and_noise_is_skipped() {
    let mut link = Driven::ready(AnswerOrder::Serial);
    link.ask(1);
    let text = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#;
    let output = link.reply(text);
    assert!(
        matches!(&output[..], [LinkOutput::Notified { method, .. }] if method.ends_with("message"))
    );
    for noise in [
        "",
        "hello",
        "5",
        "{}",
        "[]",
        r#"{"id":1,"id":1,"result":1}"#,
    ] {
        assert_eq!(link.reply(noise), [], "{noise}");
    }
    assert_eq!(link.reply(r#"{"id":9,"result":1}"#), [], "no id of ours");
    let counts = link.pending.counts();
    assert_eq!((counts.skipped, counts.foreign), (6, 1));
}

#[test]
fn an_answer_with_neither_result_nor_error_ends_the_wait() {
    let mut link = Driven::ready(AnswerOrder::Serial);
    link.ask(1);
    for noise in [
        r#"{"id":1}"#,
        r#"{"jsonrpc":"2.0"}"#,
        r#"{"jsonrpc":"2.0","id":null}"#,
        r#"{"jsonrpc":"2.0","id":1,"params":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
    ] {
        assert_eq!(link.reply(noise), [], "{noise}");
    }
    let output = link.reply(r#"{"jsonrpc":"2.0","id":1}"#);
    assert!(
        matches!(&output[..], [LinkOutput::Answer { id: 1, .. }]),
        "{output:?}"
    );
}

#[test]
fn a_link_begins_with_a_greeting_where_it_is_to() {
    let mut link = Driven::open(LinkSettings {
        initialize_params: initialize_params(),
        ..settings(AnswerOrder::Serial)
    });
    let hello = write(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"v":1}}"#);
    assert_eq!(link.take(LinkInput::Opened), [hello]);
    assert_eq!(link.take(LinkInput::Written), []);
    assert_eq!(link.take(LinkInput::Ask(request(1, call(1)))), []);
    assert_eq!(
        link.take(LinkInput::Ask(request(2, Outbound::Greeting))),
        []
    );
    let text = r#"{"id":1,"result":{"protocolVersion":"x"}}"#;
    let initialized =
        write(r#"{"jsonrpc":"2.0","method":"notifications/initialized","params":{}}"#);
    assert_eq!(link.reply(text), [LinkOutput::Ready, initialized]);
    let first = write(r#"{"jsonrpc":"2.0","id":3,"method":"do","params":[1]}"#);
    assert_eq!(link.take(LinkInput::Written), [first]);
    assert_eq!(link.take(LinkInput::Written), [answer(2, 1, text)]);
    let cancelled = link.take(LinkInput::Cancel(Ticket(1)));
    let wanted = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}"#;
    assert_eq!(cancelled, [write(wanted)]);
}

#[test]
fn a_refused_greeting_gives_the_link_up() {
    let other_type = "its response has an id of another type";
    for (refusal, why) in [
        (
            r#"{"id":null,"error":{"code":-32600,"message":"no"}}"#,
            "it answered `initialize` with the error -32600: no",
        ),
        (
            r#"{"id":1,"error":{"code":-32022,"message":"other protocol"}}"#,
            "it answered `initialize` with the error -32022: other protocol",
        ),
        (r#"{"id":"1","result":{}}"#, other_type),
        (r#"{"id":true,"result":{}}"#, other_type),
    ] {
        let mut link = Driven::open(LinkSettings {
            initialize_params: initialize_params(),
            ..settings(AnswerOrder::Serial)
        });
        link.take(LinkInput::Opened);
        let refused = LinkFault::Refused(why.to_owned());
        assert_eq!(link.reply(refusal), [LinkOutput::Close(refused)]);
        assert_eq!(link.take(LinkInput::Lost { jitter: 0 }), []);
        assert_eq!(link.pending.alarm(), Some(Duration::from_millis(100)));
    }
}

#[test]
fn an_unsupported_revision_closes_the_link_with_a_reason() {
    let mut link = Driven::open(LinkSettings {
        initialize_params: initialize_params(),
        revisions: vec!["a".to_owned(), "b".to_owned()],
        ..settings(AnswerOrder::Serial)
    });
    link.take(LinkInput::Opened);
    let output = link.reply(r#"{"id":1,"result":{"protocolVersion":"c"}}"#);
    let why = "it offers the revision `c`; supported revisions are a, b";
    assert_eq!(
        output,
        [LinkOutput::Close(LinkFault::Foreign(why.to_owned()))]
    );
}

#[test]
fn a_link_that_is_not_ready_in_time_is_given_up() {
    let mut link = Driven::open(settings(AnswerOrder::Serial));
    assert_eq!(link.pending.alarm(), Some(seconds(5)));
    assert_eq!(link.at(5), [LinkOutput::Close(LinkFault::Slow)]);
    assert_eq!(link.take(LinkInput::Opened), [], "too late");
}

#[test]
fn a_broken_link_cuts_written_requests_and_queued_ones_go_to_the_next() {
    let mut link = Driven::ready(AnswerOrder::Serial);
    link.ask(1);
    assert_eq!(link.take(LinkInput::Ask(request(2, call(2)))), []);
    let lost = link.take(LinkInput::Lost { jitter: 0 });
    assert_eq!(lost, [LinkOutput::Failed(Ticket(1), RequestError::Cut)]);
    assert_eq!(link.at(1), [LinkOutput::Open]);
    let opened = link.take(LinkInput::Opened);
    let second = write(r#"{"jsonrpc":"2.0","id":2,"method":"do","params":[2]}"#);
    assert_eq!(opened, [LinkOutput::Ready, second]);
}

#[test]
fn a_repeatable_request_is_sent_again_once() {
    let mut link = Driven::ready(AnswerOrder::Serial);
    let repeatable = Request {
        repeat: RetryRule::Once,
        ..request(1, call(1))
    };
    link.take(LinkInput::Ask(repeatable));
    assert_eq!(link.take(LinkInput::Lost { jitter: 0 }), []);
    assert_eq!(
        link.at(6),
        [LinkOutput::Open],
        "its start is no longer awaited"
    );
    assert_eq!(link.take(LinkInput::Opened).len(), 2);
    let lost = link.take(LinkInput::Lost { jitter: 0 });
    assert_eq!(lost, [LinkOutput::Failed(Ticket(1), RequestError::Cut)]);
}

#[test]
fn waits_double_and_a_steady_link_begins_them_anew() {
    let mut link = Driven::ready(AnswerOrder::Serial);
    let mut waits = Vec::new();
    for _ in 0..3 {
        link.take(LinkInput::Lost { jitter: u16::MAX });
        let at = link.pending.alarm().unwrap();
        waits.push((at - link.now).as_millis());
        link.now = at;
        assert_eq!(link.take(LinkInput::Tick), [LinkOutput::Open]);
        assert_eq!(link.take(LinkInput::Opened), [LinkOutput::Ready]);
    }
    assert_eq!(waits, [50, 100, 200]);
    link.now += seconds(10);
    link.take(LinkInput::Lost { jitter: 0 });
    let wait = link.pending.alarm().unwrap() - link.now;
    assert_eq!(wait.as_millis(), 100);
    let backoff = settings(AnswerOrder::Serial).backoff;
    assert_eq!(backoff.wait(u32::MAX, 0), seconds(30));
    assert_eq!(backoff.wait(9, u16::MAX), seconds(15));
}

#[test]
fn where_the_next_link_is_far_away_a_call_fails_at_once() {
    let mut link = Driven::open(settings(AnswerOrder::Serial));
    for _ in 0..8 {
        link.take(LinkInput::Lost { jitter: 0 });
        link.now = link.pending.alarm().unwrap();
        link.take(LinkInput::Tick);
    }
    link.take(LinkInput::Lost { jitter: 0 });
    let waits = Request {
        start_by: link.now + seconds(5),
        deadline: link.now + seconds(10),
        ..request(1, call(1))
    };
    let failed = link.take(LinkInput::Ask(waits));
    assert_eq!(
        failed,
        [LinkOutput::Failed(Ticket(1), RequestError::Unreachable)]
    );
}

#[test]
fn requests_that_wait_too_long_or_exceed_the_queue_fail() {
    let mut link = Driven::ready(AnswerOrder::Serial);
    link.ask(0);
    for ticket in 1..=4 {
        let candidate = Request {
            rank: Priority::Candidate,
            ..request(ticket, call(ticket))
        };
        assert_eq!(link.take(LinkInput::Ask(candidate)), []);
    }
    let candidate = Request {
        rank: Priority::Candidate,
        ..request(5, call(5))
    };
    let busy = |ticket| LinkOutput::Failed(Ticket(ticket), RequestError::Busy);
    assert_eq!(link.take(LinkInput::Ask(candidate)), [busy(5)]);
    for ticket in 6..=9 {
        assert_eq!(link.take(LinkInput::Ask(request(ticket, call(ticket)))), []);
    }
    assert_eq!(link.take(LinkInput::Ask(request(10, call(10)))), [busy(10)]);
    let output = link.reply(r#"{"id":1,"result":1}"#);
    let next = write(r#"{"jsonrpc":"2.0","id":2,"method":"do","params":[6]}"#);
    assert_eq!(output[1], next, "clients come first");
    let over = link.at(5);
    let wanted = [7, 8, 9, 1, 2, 3, 4].map(busy);
    assert_eq!(over, wanted);
}

#[test]
fn a_link_on_which_nothing_is_answered_is_given_up() {
    let mut link = Driven::open(LinkSettings {
        max_consecutive_timeouts: 2,
        ..settings(AnswerOrder::Serial)
    });
    link.take(LinkInput::Opened);
    link.ask(1);
    assert_eq!(link.at(10).len(), 1);
    link.now = Duration::ZERO;
    link.ask(2);
    let late = LinkOutput::Failed(Ticket(2), RequestError::Late);
    assert_eq!(link.at(10), [late, LinkOutput::Close(LinkFault::Stalled)]);
}

#[test]
fn a_silent_link_is_asked_for_a_sign_and_given_up_without() {
    let mut link = Driven::open(LinkSettings {
        heartbeat: Some(Heartbeat {
            every: seconds(20),
            within: seconds(5),
        }),
        ..settings(AnswerOrder::Serial)
    });
    link.take(LinkInput::Opened);
    assert_eq!(link.pending.alarm(), Some(seconds(20)));
    assert_eq!(link.at(20), [LinkOutput::Ping]);
    link.now = seconds(22);
    assert_eq!(link.take(LinkInput::Sign), []);
    assert_eq!(link.at(42), [LinkOutput::Ping]);
    assert_eq!(link.at(47), [LinkOutput::Close(LinkFault::Silent)]);
}

#[test]
fn a_pause_follows_a_message_without_a_reply() {
    let mut link = Driven::open(LinkSettings {
        pause: seconds(1),
        ..settings(AnswerOrder::Serial)
    });
    link.take(LinkInput::Opened);
    let notice = Outbound::Notice(Bytes::from_static(b"{}"));
    assert_eq!(link.take(LinkInput::Ask(request(1, notice))).len(), 1);
    assert_eq!(link.take(LinkInput::Ask(request(2, call(2)))), []);
    assert_eq!(
        link.take(LinkInput::Written),
        [LinkOutput::NoticeSent(Ticket(1))]
    );
    assert_eq!(link.pending.alarm(), Some(seconds(1)));
    let next = write(r#"{"jsonrpc":"2.0","id":2,"method":"do","params":[2]}"#);
    assert_eq!(link.at(1), [next]);
}

/// Two calls on a link with a handshake, after the server refused the first.
fn two_on_a_session() -> Driven {
    let mut driven = Driven::open(LinkSettings {
        initialize_params: initialize_params(),
        ..settings(AnswerOrder::Pipelined(4))
    });
    driven.take(LinkInput::Opened);
    driven.take(LinkInput::Written);
    driven.reply(r#"{"id":1,"result":{}}"#);
    driven.take(LinkInput::Written);
    driven.ask(1);
    driven.ask(2);
    driven
}

#[test]
fn requests_that_a_server_refused_after_a_lost_session_go_to_the_next_link() {
    let mut driven = two_on_a_session();
    assert_eq!(driven.take(LinkInput::Forgotten(Some(3))), []);
    // The server may have accepted the other call, so its response is awaited.
    let late = r#"{"id":4,"result":2}"#;
    let output = driven.reply(late);
    assert_eq!(
        output,
        [answer(2, 4, late), LinkOutput::Close(LinkFault::Forgotten)]
    );
    assert_eq!(driven.take(LinkInput::Lost { jitter: 0 }), []);
    assert_eq!(driven.at(1), [LinkOutput::Open]);
    driven.take(LinkInput::Opened);
    driven.take(LinkInput::Written);
    let ready = driven.reply(r#"{"id":5,"result":{}}"#);
    assert!(ready.contains(&LinkOutput::Ready), "{ready:?}");
    let again = driven.take(LinkInput::Written);
    assert!(matches!(&again[..], [LinkOutput::Write(_)]), "{again:?}");
    driven.take(LinkInput::Written);
    // It is sent again only once.
    let refused = driven.take(LinkInput::Forgotten(Some(7)));
    assert_eq!(
        refused,
        [
            LinkOutput::Failed(Ticket(1), RequestError::Cut),
            LinkOutput::Close(LinkFault::Forgotten)
        ]
    );
}

#[test]
fn a_link_that_the_server_forgot_ends_though_an_answer_is_missing() {
    let mut driven = two_on_a_session();
    driven.take(LinkInput::Forgotten(None));
    let closed = driven.at(1);
    assert_eq!(
        closed.last(),
        Some(&LinkOutput::Close(LinkFault::Forgotten))
    );
    let cut = |ticket| LinkOutput::Failed(Ticket(ticket), RequestError::Cut);
    assert!(
        closed.contains(&cut(1)) && closed.contains(&cut(2)),
        "{closed:?}"
    );
}
