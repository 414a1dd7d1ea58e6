//! A client that calls as it should, or breaks off at any place, and notes what it must have been counted for.

use std::net::{SocketAddr, TcpStream};

use super::ends::{Got, Last, Loose};
use super::server::{ALL, Fault};
use crate::random::dice::Dice;

/// One way of a call through the proxy: the client's language, and whether it is the server's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    RestPassed,
    RpcPassed,
    RpcRenumbered,
    RestTranslated,
    RpcTranslated,
}

const WAYS: [Way; 5] = [
    Way::RestPassed,
    Way::RpcPassed,
    Way::RpcRenumbered,
    Way::RestTranslated,
    Way::RpcTranslated,
];

impl Way {
    fn streams(self) -> bool {
        matches!(self, Way::RestPassed | Way::RpcPassed)
    }
}

/// How a client behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Whole,
    Slow,
    Pipelined,
    ResetInHead,
    ResetInBody,
    EndsInHead,
    EndsInBody,
    EndsBehind,
    Garbage,
    LeavesBeforeAnswer,
    LeavesInAnswer,
}

const MANNERS: [Manner; 13] = [
    Manner::Whole,
    Manner::Whole,
    Manner::Whole,
    Manner::Slow,
    Manner::Pipelined,
    Manner::ResetInHead,
    Manner::ResetInBody,
    Manner::EndsInHead,
    Manner::EndsInBody,
    Manner::EndsBehind,
    Manner::Garbage,
    Manner::LeavesBeforeAnswer,
    Manner::LeavesInAnswer,
];

/// One call.
#[derive(Debug, Clone)]
struct Call {
    number: u64,
    way: Way,
    fault: Fault,
    head: String,
    body: String,
}

/// What clients have done, and what they saw that must not be.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Calls whose head was sent, in their turn.
    pub(super) calls: usize,
    /// Answers of the server that clients have read.
    pub(super) served: usize,
    /// Calls that were left before their answer was read.
    pub(super) left: usize,
    /// Answers behind which the server closed without a word.
    pub(super) closes: usize,
    /// Calls that met such an end.
    pub(super) unlucky: usize,
    /// Calls that a breaker has refused.
    pub(super) resting: usize,
    /// Calls of which nothing is wrong but that their time as a whole was over.
    pub(super) late: usize,
    pub(super) faults: Vec<String>,
}

impl Tally {
    pub(super) fn add(&mut self, other: Tally) {
        self.calls += other.calls;
        self.served += other.served;
        self.left += other.left;
        self.closes += other.closes;
        self.unlucky += other.unlucky;
        self.resting += other.resting;
        self.late += other.late;
        self.faults.extend(other.faults);
    }
}

impl Call {
    fn any(dice: &mut Dice, number: u64) -> Call {
        let way = dice.pick(&WAYS);
        let place = dice.below(ALL.len());
        let (target, name) = match way {
            Way::RestPassed => ("/p/do", ""),
            Way::RestTranslated => ("/t/do", ""),
            Way::RpcPassed | Way::RpcRenumbered => ("/rpc", "p.do"),
            Way::RpcTranslated => ("/rpc", "t.do"),
        };
        let size = dice.pick(&[0, 10, 100_000]);
        let params = format!(r#"{{"pad":"{}"}}"#, "x".repeat(size));
        let id = match way {
            Way::RpcRenumbered => format!("{number}.50"),
            Way::RestPassed | Way::RestTranslated | Way::RpcPassed | Way::RpcTranslated => {
                number.to_string()
            }
        };
        let body = match name {
            "" => params,
            name => {
                format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{name}","params":{params}}}"#)
            }
        };
        let length = body.len();
        let head = format!(
            "POST {target} HTTP/1.1\r\nHost: a.example\r\nUser-Agent: {number}-{place}\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        );
        let fault = ALL[place];
        Call {
            number,
            way,
            fault,
            head,
            body,
        }
    }

    fn bytes(&self) -> Vec<u8> {
        [self.head.as_bytes(), self.body.as_bytes()].concat()
    }

    /// Notes what came, where the client has done all that it should.
    fn judge(&self, got: &Got, tally: &mut Tally) {
        if self.fault == Fault::EarlyClose {
            tally.closes += 1;
        }
        let own = format!(r#""n":{}}}"#, self.number);
        let complaint = match got {
            Got::Whole(200, body, _) if body.contains(&own) => {
                tally.served += 1;
                return;
            }
            Got::Whole(_, body, _) if body.contains(r#""n":"#) => {
                let is_cut_short = self.way.streams() && self.fault == Fault::Long;
                if is_cut_short {
                    return;
                }
                "another's answer"
            }
            Got::Whole(_, body, _) if body.contains("upstream_resting") => {
                tally.resting += 1;
                return;
            }
            Got::Whole(..) if !self.fault.is_borne() => return,
            Got::Whole(_, body, _)
                if body.contains("upstream_timeout") || body.contains("request_timeout") =>
            {
                tally.late += 1;
                return;
            }
            Got::Whole(_, body, _) if body.contains("upstream_cut") => {
                tally.unlucky += 1;
                return;
            }
            Got::Whole(..) => "a failure without a reason",
            Got::Cut if self.way.streams() && self.fault.breaks_off() => return,
            // The time of the call was over behind the head.
            Got::Cut if self.way.streams() => {
                tally.late += 1;
                return;
            }
            Got::Cut | Got::Nothing => "no definite answer",
            Got::Late => "neither an answer nor an end",
        };
        let Call { way, fault, .. } = self;
        let number = self.number;
        let fault = format!("{complaint}: call {number}, {way:?}, {fault:?}: {got:?}");
        tally.faults.push(fault);
    }
}

/// What one client does, by its seed; its calls have numbers from `first` on.
pub(super) fn client(proxy: SocketAddr, seed: u64, (first, turns): (u64, u64)) -> Tally {
    let mut dice = Dice::of(seed);
    let mut tally = Tally::default();
    for turn in 0..turns {
        let number = first + turn * 4;
        let stream = TcpStream::connect(proxy).unwrap();
        let manner = dice.pick(&MANNERS);
        visit(Loose::over(stream), manner, (&mut dice, number), &mut tally);
    }
    tally
}

fn visit(mut end: Loose, manner: Manner, (dice, number): (&mut Dice, u64), tally: &mut Tally) {
    let call = Call::any(dice, number);
    let bytes = call.bytes();
    let head = call.head.len();
    match manner {
        Manner::Whole => {
            let _ = end.send(&bytes);
            whole(&mut end, &call, tally);
        }
        Manner::Slow => {
            // The first of a long body will do.
            let (slow, rest) = bytes.split_at(bytes.len().min(1000));
            let _ = end.dribble(slow).and_then(|()| end.send(rest));
            whole(&mut end, &call, tally);
        }
        Manner::Pipelined => {
            let calls = [1, 2, 3].map(|more| Call::any(dice, number + more));
            let all: Vec<u8> = calls.iter().flat_map(Call::bytes).collect();
            let _ = end.send(&all);
            pipelined(&mut end, &calls, tally);
        }
        Manner::ResetInHead => {
            let _ = end.send(&bytes[..dice.below(head)]);
            end.reset();
        }
        Manner::EndsInHead => {
            half_a_head(&mut end, (&call, &bytes[..dice.below(head)]), tally);
        }
        Manner::ResetInBody => {
            let _ = end.send(&bytes[..head + dice.below(call.body.len())]);
            end.reset();
            tally.calls += 1;
            tally.left += 1;
        }
        Manner::EndsInBody => {
            let _ = end.send(&bytes[..head + dice.below(call.body.len())]);
            end.finish();
            tally.calls += 1;
            half_a_request(&mut end, &call, tally);
        }
        Manner::EndsBehind => {
            let _ = end.send(&bytes);
            end.finish();
            gone(tally);
            expect_end(&mut end, manner, &call, tally);
        }
        Manner::Garbage => {
            tally.calls += 1;
            garbage(&mut end, dice, tally);
        }
        Manner::LeavesBeforeAnswer => {
            let _ = end.send(&bytes);
            gone(tally);
        }
        Manner::LeavesInAnswer => {
            let _ = end.send(&bytes);
            end.head();
            gone(tally);
        }
    }
}

/// Bytes that are no request get an answer that says so.
fn garbage(end: &mut Loose, dice: &mut Dice, tally: &mut Tally) {
    let bytes = (0..100).map(|_| u8::try_from(dice.below(256)).unwrap());
    let bytes: Vec<u8> = b"\x01".iter().copied().chain(bytes).collect();
    let _ = end.send(&[&bytes[..], b"\r\n\r\n"].concat());
    let got = end.answer();
    if !matches!(got, Got::Whole(400, _, Last::Yes)) {
        tally.faults.push(format!("garbage {bytes:?} gets {got:?}"));
    }
}

fn gone(tally: &mut Tally) {
    tally.calls += 1;
    tally.left += 1;
}

fn whole(end: &mut Loose, call: &Call, tally: &mut Tally) {
    tally.calls += 1;
    call.judge(&end.answer(), tally);
}

/// Calls behind each other: those behind an answer that is the last of its connection were never heard.
fn pipelined(end: &mut Loose, calls: &[Call], tally: &mut Tally) {
    for call in calls {
        tally.calls += 1;
        let got = end.answer();
        call.judge(&got, tally);
        if !matches!(got, Got::Whole(_, _, Last::No)) {
            return;
        }
    }
}

/// A client that sends no more is not waited for, nor kept waiting.
fn expect_end(end: &mut Loose, manner: Manner, call: &Call, tally: &mut Tally) {
    if !end.ends() {
        let (way, fault) = (call.way, call.fault);
        let said = format!("kept waiting: {manner:?}, {way:?}, {fault:?}");
        tally.faults.push(said);
    }
}

/// Half a head is a call, and the client's mistake; nothing is none.
fn half_a_head(end: &mut Loose, (call, part): (&Call, &[u8]), tally: &mut Tally) {
    let _ = end.send(part);
    end.finish();
    if part.is_empty() {
        return expect_end(end, Manner::EndsInHead, call, tally);
    }
    tally.calls += 1;
    let got = end.answer();
    let is_refused = match &got {
        Got::Whole(_, body, Last::Yes) => body.contains("malformed_http"),
        Got::Whole(..) | Got::Cut | Got::Nothing | Got::Late => false,
    };
    if !is_refused {
        let faults = &mut tally.faults;
        faults.push(format!("half a head: {:?} gets {got:?}", call.way));
    }
}

/// Half a request is the client's mistake, unless the server has answered the half that it saw.
fn half_a_request(end: &mut Loose, call: &Call, tally: &mut Tally) {
    let got = end.answer();
    let is_refused = match &got {
        Got::Whole(_, body, _) if body.contains("body_cut") => true,
        // The server has answered, or failed, before the client did.
        Got::Whole(..) | Got::Cut => call.way == Way::RestPassed,
        Got::Nothing | Got::Late => false,
    };
    tally.left += 1;
    if !is_refused {
        let said = format!(
            "half a request: {:?}, {:?} gets {got:?}",
            call.way, call.fault
        );
        tally.faults.push(said);
    }
}
