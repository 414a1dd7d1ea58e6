//! Outputs of the correlator for short sequences of events.

use super::*;
use crate::pending::Ticket;

const fn at(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// One socket to a server that speaks in frames.
struct Socket {
    table: RouteTable,
    waiting: FrameCorrelator,
}

impl Socket {
    fn new(most: usize) -> Socket {
        Socket {
            table: table(),
            waiting: FrameCorrelator::new(most),
        }
    }

    fn ask(&mut self, (now, ticket): (u64, u64), method: &str, params: &str) -> Vec<String> {
        let params = json(params);
        let call = MethodCall::new(method, Some(&params));
        let rest_protocol = crate::route::Wire::Frame;
        let command = FrameCommand {
            ticket: Ticket(ticket),
            route: self.table.select_rpc_to(rest_protocol, call).unwrap(),
            call,
            deadline: at(now + 10_000),
        };
        self.waiting.ask(&self.table, (at(now), command), TERMS);
        let lines = self.outputs();
        self.waiting.sent(&self.table, (at(now), Ticket(ticket)));
        lines
    }

    fn receive(&mut self, now: u64, frame: &str) -> Vec<String> {
        self.waiting
            .receive(&self.table, (at(now), json(frame)), TERMS);
        self.outputs()
    }

    fn tick(&mut self, now: u64) -> Vec<String> {
        self.waiting.tick(&self.table, at(now), TERMS);
        self.outputs()
    }

    fn outputs(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        while let Some(output) = self.waiting.output() {
            lines.push(match output {
                CorrelatorOutput::Write(Ticket(ticket), frame) => {
                    format!("{ticket} writes {}", text(frame))
                }
                CorrelatorOutput::Answer(Ticket(ticket), answer) => match answer.answer {
                    RpcAnswer::Result(result) => format!("{ticket} has {}", text(result)),
                    RpcAnswer::Error(error) => {
                        format!(
                            "{ticket} fails with {}",
                            error.message.text().unwrap().unwrap()
                        )
                    }
                },
                CorrelatorOutput::Failed(Ticket(ticket), why) => {
                    format!("{ticket} has none: {why:?}")
                }
                CorrelatorOutput::Notification(_) => "news".to_owned(),
                CorrelatorOutput::Passed(_) => "passed".to_owned(),
                CorrelatorOutput::Done(Ticket(ticket)) => format!("{ticket} is over"),
            });
        }
        lines
    }
}

#[test]
fn an_answer_with_an_id_goes_to_the_call_that_has_it() {
    let mut socket = Socket::new(8);
    assert_eq!(
        socket.ask((0, 1), "file/get", r#"{"path":"a"}"#),
        [r#"1 writes {"command":"get_file","request_id":"1","payload":{"path":"a"}}"#]
    );
    socket.ask((0, 2), "file/get", r#"{"path":"a"}"#);
    let answer = r#"{"event":"file","request_id":"2","payload":{"path":"a","content":"c"}}"#;
    assert_eq!(
        socket.receive(1, answer),
        [r#"2 has {"path":"a","content":"c"}"#]
    );
    // A duplicate and an unknown id: neither an answer nor a notification.
    assert_eq!(socket.receive(2, answer), [""; 0]);
    assert_eq!(
        socket.receive(2, &answer.replace("\"2\"", "\"9\"")),
        [""; 0]
    );
    // With another path it answers no call either, because the hole is shared with the call.
    assert_eq!(
        socket.receive(
            2,
            &answer.replace("\"2\"", "\"1\"").replace("\"a\"", "\"b\"")
        ),
        [""; 0]
    );
    assert_eq!(socket.waiting.counts().unmatched, 3);
    let error = r#"{"event":"error","request_id":"1","payload":{"code":"X","message":"no","request_id":"1"}}"#;
    assert_eq!(socket.receive(3, error), ["1 fails with no"]);
    assert!(socket.waiting.is_empty());
}

#[test]
fn an_answer_without_an_id_matches_by_shared_holes_then_by_age() {
    let mut socket = Socket::new(8);
    socket.ask((0, 1), "watch", r#"{"session_id":"s"}"#);
    socket.ask((0, 2), "watch", r#"{"session_id":"t"}"#);
    socket.ask((0, 3), "watch", r#"{"session_id":"s"}"#);
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
}

#[test]
fn a_silence_is_an_answer_once_the_frame_is_written() {
    let mut socket = Socket::new(8);
    socket.ask((0, 1), "run", r#"{"prompt":"p","mode":"new"}"#);
    assert_eq!(socket.waiting.alarm(), Some(at(500)));
    assert_eq!(socket.tick(499), [""; 0]);
    assert_eq!(
        socket.tick(500),
        [r#"1 has {"status":"started","mode":"new"}"#]
    );
    assert_eq!(socket.waiting.alarm(), None);
    socket.ask((600, 2), "run", r#"{"prompt":"p","mode":"new"}"#);
    let error = r#"{"event":"error","request_id":"2","payload":{"code":"X","message":"busy","request_id":"2"}}"#;
    assert_eq!(socket.receive(700, error), ["2 fails with busy"]);
    assert_eq!(socket.tick(2_000), [""; 0]);
}

#[test]
fn waiting_ends_at_the_deadline_the_limit_and_a_lost_socket() {
    let mut socket = Socket::new(2);
    socket.ask((0, 1), "unwatch", "{}");
    socket.ask((5, 2), "unwatch", "{}");
    assert_eq!(socket.ask((6, 3), "unwatch", "{}"), ["3 has none: Busy"]);
    assert_eq!(socket.tick(10_000), ["1 has none: Late"]);
    let late = r#"{"event":"unwatched","payload":{"session_id":"s"}}"#;
    assert_eq!(
        socket.receive(10_001, late),
        [r#"2 has {"session":"s"}"#, "news"]
    );
    socket.ask((11_000, 4), "unwatch", "{}");
    socket.ask((11_000, 5), "unwatch", "{}");
    socket.waiting.cancel(Ticket(4));
    socket.waiting.connection_lost();
    assert_eq!(socket.outputs(), ["5 has none: Cut"]);
    assert!(socket.waiting.is_empty());
}

#[test]
fn frames_that_a_client_wrote_are_observed_and_passed_on() {
    let mut socket = Socket::new(1);
    let stray = r#"{"event":"file","request_id":"mine","payload":{"path":"a","content":"c"}}"#;
    // While the client speaks only JSON-RPC, it answers no call.
    assert_eq!(socket.receive(0, stray), [""; 0]);
    let frame = json(r#"{"command":"get_file","request_id":"mine","payload":{"path":"a"}}"#);
    let route = socket.table.select_frame(&frame).unwrap();
    let call = command_to_rpc(socket.table.route(route), frame, TERMS)
        .unwrap()
        .bindings;
    let overheard = |ticket| ObservedRequest {
        ticket: Ticket(ticket),
        route,
        call: call.clone(),
        deadline: at(1_000),
    };
    assert!(socket.waiting.observe(&socket.table, overheard(1)));
    // A request beyond the limit is not observed; its answer passes as well.
    assert!(!socket.waiting.observe(&socket.table, overheard(2)));
    assert_eq!(
        socket.receive(1, stray),
        ["passed", r#"1 has {"path":"a","content":"c"}"#]
    );
    assert_eq!(socket.receive(2, stray), ["passed"]);
    assert_eq!(socket.waiting.counts().unmatched, 1);
    assert!(socket.waiting.observe(&socket.table, overheard(3)));
    assert_eq!(socket.tick(1_000), ["3 has none: Late"]);
}

#[test]
fn pending_ids_are_unique_and_assigned_ids_are_private() {
    let mut socket = Socket::new(8);
    let pass = |socket: &mut Socket, ticket: u64, id: &str| {
        let frame =
            format!(r#"{{"command":"get_file","request_id":{id},"payload":{{"path":"c"}}}}"#);
        let frame = json(&frame);
        let route = socket.table.select_frame(&frame).unwrap();
        let route_of = socket.table.route(route);
        let call = command_to_rpc(route_of, frame, TERMS).unwrap().bindings;
        let overheard = ObservedRequest {
            ticket: Ticket(ticket),
            route,
            call,
            deadline: at(1_000),
        };
        let clashes = socket.waiting.clashes(&socket.table, &overheard);
        if !clashes {
            socket.waiting.observe(&socket.table, overheard);
        }
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
    let written = socket.ask((0, 3), "file/get", r#"{"path":"c"}"#);
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
    assert_eq!(socket.receive(2, &file("\"3\"", "c")), [""; 0]);
    assert_eq!(socket.waiting.counts().unmatched, 1);
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
    let passes = |socket: &mut Socket, ticket, frame: &str| {
        let frame = json(frame);
        let frame = (Ticket(ticket), &frame);
        socket
            .waiting
            .forward_unread(&socket.table, frame, at(1000))
    };
    assert!(passes(
        &mut socket,
        1,
        r#"{"command":"new","request_id":"a"}"#
    ));
    assert!(passes(
        &mut socket,
        2,
        r#"{"command":"new","request_id":7}"#
    ));
    // Without an id, with one that is not a scalar, and with one that is already pending.
    for frame in [
        r#"{"command":"new"}"#,
        r#"{"command":"new","request_id":null}"#,
        r#"{"command":"new","request_id":"a"}"#,
    ] {
        assert!(!passes(&mut socket, 9, frame), "{frame}");
    }
    assert!(passes(
        &mut socket,
        3,
        r#"{"command":"new","request_id":"c"}"#
    ));
    assert!(!passes(
        &mut socket,
        4,
        r#"{"command":"new","request_id":"d"}"#
    ));
    assert_eq!(socket.waiting.len(), 3);
    // An answer that a route matches, one that no route matches, and no answer.
    let known = r#"{"event":"error","request_id":"a","payload":{"code":"X","message":"no"}}"#;
    assert_eq!(socket.receive(1, known), ["passed", "1 is over"]);
    let strange = r#"{"event":"strange","request_id":"7"}"#;
    assert_eq!(socket.receive(2, strange), ["news", "2 is over"]);
    assert_eq!(socket.receive(3, strange), ["news"]);
    assert_eq!(socket.waiting.alarm(), Some(at(1000)));
    assert_eq!(socket.tick(1000), ["3 is over"]);
    assert!(socket.waiting.is_empty());
    // Cancelled requests, and requests whose socket is lost.
    passes(&mut socket, 5, r#"{"command":"new","request_id":"a"}"#);
    passes(&mut socket, 6, r#"{"command":"new","request_id":"b"}"#);
    socket.waiting.cancel(Ticket(5));
    socket.waiting.connection_lost();
    assert_eq!(socket.outputs(), ["6 has none: Cut"]);
}
