//! Outputs of the machine for short sequences of events.

use super::*;
use crate::pending::Ticket;

const fn at(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// One socket to a server that speaks in frames.
struct Socket {
    table: RouteTable,
    machine: FrameMachine,
}

impl Socket {
    fn new(most: usize) -> Socket {
        Socket {
            table: table(),
            machine: FrameMachine::new(most, 1),
        }
    }

    /// Sends a call and completes its write.
    fn ask(&mut self, now: u64, ticket: u64, method: &str, params: &str) -> Vec<String> {
        let params = json(params);
        let command = FrameCommand {
            ticket: Ticket(ticket),
            call: MethodCall::new(method, Some(&params)),
            deadline: at(now + 10_000),
        };
        self.machine.call(context(&self.table, at(now)), command);
        let mut lines = self.outputs();
        lines.extend(self.written(now));
        lines
    }

    /// Forwards a frame of the client without completing its write.
    fn forward(&mut self, now: u64, ticket: u64, frame: &str) -> Vec<String> {
        let sent = ClientFrame {
            ticket: Ticket(ticket),
            frame: json(frame),
            text: Bytes::copy_from_slice(frame.as_bytes()),
            deadline: at(1_000),
        };
        self.machine.forward(context(&self.table, at(now)), sent);
        self.outputs()
    }

    /// Forwards a frame and completes its write. Returns true if it is observed.
    fn is_observed(&mut self, ticket: u64, frame: &str) -> bool {
        let pending = self.machine.pending();
        let written = format!("{ticket} writes {frame}");
        assert_eq!(self.forward(0, ticket, frame), [written]);
        let is_observed = self.machine.pending() > pending;
        let sent = match is_observed {
            true => Vec::new(),
            false => vec![format!("{ticket} is sent")],
        };
        assert_eq!(self.written(0), sent);
        is_observed
    }

    fn written(&mut self, now: u64) -> Vec<String> {
        self.machine.written(context(&self.table, at(now)));
        self.outputs()
    }

    fn receive(&mut self, now: u64, message: &str) -> Vec<String> {
        let message = Bytes::copy_from_slice(message.as_bytes());
        self.machine.receive(context(&self.table, at(now)), message);
        self.outputs()
    }

    fn tick(&mut self, now: u64) -> Vec<String> {
        self.machine.tick(context(&self.table, at(now)));
        self.outputs()
    }

    fn outputs(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        while let Some(output) = self.machine.output() {
            lines.push(match output {
                FrameOutput::Write(Ticket(ticket), frame) => {
                    format!(
                        "{ticket} writes {}",
                        String::from_utf8(frame.into()).unwrap()
                    )
                }
                FrameOutput::Answer(Ticket(ticket), answer, _) => match answer.answer {
                    RpcAnswer::Result(result) => format!("{ticket} has {}", text(result)),
                    RpcAnswer::Error(error) => {
                        format!(
                            "{ticket} fails with {}",
                            error.message.text().unwrap().unwrap()
                        )
                    }
                },
                FrameOutput::Failed(Ticket(ticket), why) => {
                    format!("{ticket} has none: {why:?}")
                }
                FrameOutput::Sent(Ticket(ticket)) => format!("{ticket} is sent"),
                FrameOutput::Notification(_) => "news".to_owned(),
                FrameOutput::Passed(_) => "passed".to_owned(),
                FrameOutput::Undelivered(why) => format!("dropped: {}", why.as_str()),
            });
        }
        lines
    }
}

const LATE: [&str; 1] = ["dropped: late"];

#[test]
fn an_answer_with_an_id_goes_to_the_call_that_has_it() {
    let mut socket = Socket::new(8);
    assert_eq!(
        socket.ask(0, 1, "file/get", r#"{"path":"a"}"#),
        [r#"1 writes {"command":"get_file","request_id":"1","payload":{"path":"a"}}"#]
    );
    socket.ask(0, 2, "file/get", r#"{"path":"a"}"#);
    let answer = r#"{"event":"file","request_id":"2","payload":{"path":"a","content":"c"}}"#;
    assert_eq!(
        socket.receive(1, answer),
        [r#"2 has {"path":"a","content":"c"}"#]
    );
    // A duplicate and an unknown id: neither an answer nor a notification.
    assert_eq!(socket.receive(2, answer), LATE);
    assert_eq!(socket.receive(2, &answer.replace("\"2\"", "\"9\"")), LATE);
    // With another path it answers no call either, because the hole is shared with the call.
    assert_eq!(
        socket.receive(
            2,
            &answer.replace("\"2\"", "\"1\"").replace("\"a\"", "\"b\"")
        ),
        LATE
    );
    assert_eq!(socket.machine.counts().unmatched, 3);
    let error = r#"{"event":"error","request_id":"1","payload":{"code":"X","message":"no","request_id":"1"}}"#;
    assert_eq!(socket.receive(3, error), ["1 fails with no"]);
    assert!(socket.machine.is_idle());
}

#[test]
fn an_answer_without_an_id_matches_by_shared_holes_then_by_age() {
    let mut socket = Socket::new(8);
    socket.ask(0, 1, "watch", r#"{"session_id":"s"}"#);
    socket.ask(0, 2, "watch", r#"{"session_id":"t"}"#);
    socket.ask(0, 3, "watch", r#"{"session_id":"s"}"#);
    let watched = |session: &str| {
        format!(r#"{{"event":"watched","payload":{{"session_id":"{session}","watching":true}}}}"#)
    };
    assert_eq!(
        socket.receive(1, &watched("t")),
        [r#"2 has {"status":"watching"}"#, "news"]
    );
    assert_eq!(
        socket.receive(2, &watched("s")),
        [r#"1 has {"status":"watching"}"#, "news"]
    );
    assert_eq!(socket.receive(3, &watched("u")), ["news"]);
    assert_eq!(
        socket.receive(4, &watched("s")),
        [r#"3 has {"status":"watching"}"#, "news"]
    );
    assert_eq!(socket.receive(5, &watched("s")), ["news"]);
    assert_eq!(socket.machine.counts().notified, 5);
}

#[test]
fn a_silence_is_an_answer_once_the_frame_is_written() {
    let mut socket = Socket::new(8);
    socket.ask(0, 1, "run", r#"{"prompt":"p","mode":"new"}"#);
    assert_eq!(socket.machine.alarm(), Some(at(500)));
    assert_eq!(socket.tick(499), [""; 0]);
    assert_eq!(
        socket.tick(500),
        [r#"1 has {"status":"started","mode":"new"}"#]
    );
    assert_eq!(socket.machine.alarm(), None);
    socket.ask(600, 2, "run", r#"{"prompt":"p","mode":"new"}"#);
    let error = r#"{"event":"error","request_id":"2","payload":{"code":"X","message":"busy","request_id":"2"}}"#;
    assert_eq!(socket.receive(700, error), ["2 fails with busy"]);
    assert_eq!(socket.tick(2_000), [""; 0]);
}

#[test]
fn waiting_ends_at_the_deadline_the_limit_and_a_lost_socket() {
    let mut socket = Socket::new(2);
    socket.ask(0, 1, "unwatch", "{}");
    socket.ask(5, 2, "unwatch", "{}");
    assert_eq!(socket.ask(6, 3, "unwatch", "{}"), ["3 has none: Busy"]);
    assert_eq!(socket.tick(10_000), ["1 has none: Late"]);
    let late = r#"{"event":"unwatched","payload":{"session_id":"s"}}"#;
    assert_eq!(
        socket.receive(10_001, late),
        [r#"2 has {"session":"s"}"#, "news"]
    );
    socket.ask(11_000, 4, "unwatch", "{}");
    socket.ask(11_000, 5, "unwatch", "{}");
    socket.machine.cancel(Ticket(4));
    socket.machine.connection_lost();
    assert_eq!(socket.outputs(), ["5 has none: Cut"]);
    assert!(socket.machine.is_idle());
}

#[test]
fn frames_that_a_client_wrote_are_observed_and_passed_on() {
    let mut socket = Socket::new(1);
    let stray = r#"{"event":"file","request_id":"mine","payload":{"path":"a","content":"c"}}"#;
    // While the client speaks only JSON-RPC, it answers no call, and a message of another protocol is noise.
    assert_eq!(socket.receive(0, stray), LATE);
    assert_eq!(socket.receive(0, "hello"), ["dropped: noise"]);
    let frame = r#"{"command":"get_file","request_id":"mine","payload":{"path":"a"}}"#;
    assert!(socket.is_observed(1, frame));
    // A request beyond the limit is not observed; its answer passes as well.
    assert!(!socket.is_observed(2, frame));
    assert_eq!(
        socket.receive(1, stray),
        ["passed", r#"1 has {"path":"a","content":"c"}"#]
    );
    assert_eq!(socket.receive(2, stray), ["passed"]);
    assert_eq!(socket.receive(2, "hello"), ["passed"]);
    let counts = socket.machine.counts();
    assert_eq!((counts.unmatched, counts.skipped), (1, 1));
    assert!(socket.is_observed(3, frame));
    assert_eq!(socket.tick(1_000), ["3 has none: Late"]);
}

#[test]
fn pending_ids_are_unique_and_assigned_ids_are_private() {
    let mut socket = Socket::new(8);
    let pass = |socket: &mut Socket, ticket: u64, id: &str| {
        let frame =
            format!(r#"{{"command":"get_file","request_id":{id},"payload":{{"path":"c"}}}}"#);
        let lines = socket.forward(0, ticket, &frame);
        let clashes = lines == [format!("{ticket} has none: Busy")];
        assert!(
            clashes || lines == [format!("{ticket} writes {frame}")],
            "{lines:?}"
        );
        assert_eq!(socket.written(0), [""; 0]);
        !clashes
    };
    let file = |id: &str, path: &str| {
        format!(
            r#"{{"event":"file","request_id":{id},"payload":{{"path":"{path}","content":"c"}}}}"#
        )
    };
    // Ids of pending requests of the client are not assigned.
    assert!(pass(&mut socket, 1, "\"1\""));
    assert!(pass(&mut socket, 2, "\"2\""));
    let written = socket.ask(0, 3, "file/get", r#"{"path":"c"}"#);
    assert_eq!(
        written,
        [r#"3 writes {"command":"get_file","request_id":"3","payload":{"path":"c"}}"#]
    );
    // An assigned id belongs to the caller until its call is answered.
    assert!(!pass(&mut socket, 4, "\"3\""));
    assert_eq!(
        socket.receive(1, &file("\"3\"", "c")),
        [r#"3 has {"path":"c","content":"c"}"#]
    );
    // A duplicate answer is not passed to the client.
    assert_eq!(socket.receive(2, &file("\"3\"", "c")), LATE);
    assert_eq!(socket.machine.counts().unmatched, 1);
    assert_eq!(
        socket.receive(3, &file("\"1\"", "c")),
        ["passed", r#"1 has {"path":"c","content":"c"}"#]
    );
    assert!(pass(&mut socket, 5, "\"3\""));
    assert_eq!(
        socket.receive(4, &file("\"3\"", "c")),
        ["passed", r#"5 has {"path":"c","content":"c"}"#]
    );
    assert_eq!(socket.receive(5, &file("\"nobody\"", "c")), ["passed"]);
}

#[test]
fn an_unrouted_frame_is_done_with_the_next_frame_that_has_its_id() {
    let mut socket = Socket::new(3);
    assert!(socket.is_observed(1, r#"{"command":"new","request_id":"a"}"#));
    assert!(socket.is_observed(2, r#"{"command":"new","request_id":7}"#));
    // Without an id, with one that is not a scalar, and with one that is already pending.
    for frame in [
        r#"{"command":"new"}"#,
        r#"{"command":"new","request_id":null}"#,
        r#"{"command":"new","request_id":"a"}"#,
    ] {
        assert!(!socket.is_observed(9, frame), "{frame}");
    }
    assert!(socket.is_observed(3, r#"{"command":"new","request_id":"c"}"#));
    assert!(!socket.is_observed(4, r#"{"command":"new","request_id":"d"}"#));
    assert_eq!(socket.machine.pending(), 3);
    // An answer that a route matches, one that no route matches, and no answer.
    let known = r#"{"event":"error","request_id":"a","payload":{"code":"X","message":"no"}}"#;
    assert_eq!(socket.receive(1, known), ["passed", "1 is sent"]);
    let strange = r#"{"event":"strange","request_id":"7"}"#;
    assert_eq!(socket.receive(2, strange), ["news", "2 is sent"]);
    assert_eq!(socket.receive(3, strange), ["news"]);
    assert_eq!(socket.machine.alarm(), Some(at(1000)));
    assert_eq!(socket.tick(1000), ["3 is sent"]);
    assert!(socket.machine.is_idle());
    // Cancelled requests, and requests whose socket is lost.
    assert!(socket.is_observed(5, r#"{"command":"new","request_id":"a"}"#));
    assert!(socket.is_observed(6, r#"{"command":"new","request_id":"b"}"#));
    socket.machine.cancel(Ticket(5));
    socket.machine.connection_lost();
    assert_eq!(socket.outputs(), ["6 has none: Cut"]);
}

#[test]
fn frames_are_written_in_turn_unless_their_calls_end_before() {
    let mut socket = Socket::new(8);
    let frame = |id: u64| format!(r#"{{"command":"new","request_id":"{id}"}}"#);
    let written = |id: u64| format!("{id} writes {}", frame(id));
    assert_eq!(socket.forward(0, 1, &frame(1)), [written(1)]);
    for ticket in 2..=4 {
        assert_eq!(socket.forward(0, ticket, &frame(ticket)), [""; 0]);
    }
    let no_answer = r#"{"command":"new"}"#;
    assert_eq!(socket.forward(0, 5, no_answer), [""; 0]);
    assert_eq!(socket.machine.queued(), 4);
    socket.machine.cancel(Ticket(2));
    assert_eq!(socket.written(1), [written(3)]);
    // The answer to a frame in the queue ends the wait, but the client still wants the frame to be written.
    let known = r#"{"event":"error","request_id":"4","payload":{"code":"X","message":"no"}}"#;
    assert_eq!(socket.receive(2, known), ["passed", "4 is sent"]);
    // The first is written, the third is not.
    let ended = ["1 is sent", "3 has none: Late"];
    assert_eq!(socket.tick(1_000), ended);
    assert_eq!(socket.written(1_001), [written(4)]);
    assert_eq!(socket.written(1_002), [format!("5 writes {no_answer}")]);
    assert_eq!(socket.written(1_003), ["5 is sent"]);
    assert_eq!(socket.written(1_004), [""; 0]);
    assert!(socket.machine.is_idle());
    // A caller that leaves gets nothing, although its frame is completed.
    assert_eq!(socket.forward(2_000, 6, no_answer).len(), 1);
    socket.machine.cancel(Ticket(6));
    assert_eq!(socket.written(2_001), [""; 0]);
}
