//! A server that does to each call what the call tells it to, and remembers which calls it has heard.
//!
//! The order stands in `User-Agent`, which every way of a call carries on, as `NUMBER-FAULT`. A server that has closed
//! its side reads on, so that no call is sent to it unheard.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;

use super::ends::{Loose, field};
use crate::random::dice::Dice;

/// What a server does instead of answering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    None,
    Slow,
    Interims,
    UntilClose,
    EarlyClose,
    Twice,
    Close,
    Reset,
    CutHead,
    ResetHead,
    Short,
    ResetBody,
    Long,
    HugeHead,
    ManyFields,
    Garbage,
    OpenChunks,
    BadChunk,
    Silent,
    SilentBody,
    EndlessInterims,
    BeforeBody,
}

use Fault::{
    BadChunk, BeforeBody, Close, CutHead, EarlyClose, EndlessInterims, Garbage, HugeHead, Interims,
    Long, ManyFields, None as Well, OpenChunks, Reset, ResetBody, ResetHead, Short, Silent,
    SilentBody, Slow, Twice, UntilClose,
};

pub(super) const ALL: [Fault; 22] = [
    Well,
    Slow,
    Interims,
    UntilClose,
    EarlyClose,
    Twice,
    Close,
    Reset,
    CutHead,
    ResetHead,
    Short,
    ResetBody,
    Long,
    HugeHead,
    ManyFields,
    Garbage,
    OpenChunks,
    BadChunk,
    Silent,
    SilentBody,
    EndlessInterims,
    BeforeBody,
];

impl Fault {
    /// Whether the caller gets the answer all the same.
    pub(super) fn is_borne(self) -> bool {
        matches!(
            self,
            Well | Slow | Interims | UntilClose | EarlyClose | Twice
        )
    }

    /// Whether an answer that streams may break off.
    pub(super) fn breaks_off(self) -> bool {
        matches!(
            self,
            Short | ResetBody | OpenChunks | BadChunk | SilentBody | BeforeBody
        )
    }
}

/// What becomes of the connection behind the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    Keep,
    Close,
    Reset,
    Wait,
}

/// A server of its own threads.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) address: SocketAddr,
    heard: Arc<Mutex<Vec<u64>>>,
}

impl Server {
    pub(super) fn start() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let heard = Arc::<Mutex<Vec<u64>>>::default();
        let all = heard.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let heard = all.clone();
                thread::spawn(move || serve(stream.unwrap(), &heard));
            }
        });
        Server { address, heard }
    }

    /// The numbers of the calls that came in, as often as they came.
    pub(super) fn heard(&self) -> Vec<u64> {
        self.heard.lock().unwrap().clone()
    }
}

fn serve(stream: TcpStream, heard: &Mutex<Vec<u64>>) {
    let mut end = Loose::over(stream);
    while let Some((head, number, fault)) = next(&mut end, heard) {
        let body = if fault == BeforeBody {
            Vec::new()
        } else {
            match end.body(&head) {
                Some(body) => body,
                None => return,
            }
        };
        let (bytes, then) = script(fault, number, &content(&head, number, &body));
        let sent = if fault == Slow {
            end.dribble(&bytes)
        } else if fault == EndlessInterims {
            loop {
                if let Err(error) = end.send(&bytes) {
                    break Err(error);
                }
            }
        } else {
            end.send(&bytes)
        };
        match then {
            Then::Keep if sent.is_ok() && fault == BeforeBody => {
                if end.body(&head).is_none() {
                    return;
                }
            }
            Then::Keep if sent.is_ok() => {}
            Then::Reset => return end.reset(),
            Then::Keep | Then::Close => {
                end.finish();
                while next(&mut end, heard).is_some_and(|(head, ..)| end.body(&head).is_some()) {}
                return;
            }
            Then::Wait => {
                end.ends();
                return;
            }
        }
    }
}

/// The next head, and what it says.
fn next(end: &mut Loose, heard: &Mutex<Vec<u64>>) -> Option<(String, u64, Fault)> {
    let head = end.head()?;
    let (number, fault) = field(&head, "user-agent")?.split_once('-')?;
    let number = number.parse().ok()?;
    heard.lock().unwrap().push(number);
    let place: usize = fault.parse().ok()?;
    let fault = *ALL.get(place)?;
    Some((head, number, fault))
}

/// What the call of a number is answered with, in the language that it came in.
fn content(head: &str, number: u64, body: &[u8]) -> String {
    let own = format!(r#"{{"n":{number}}}"#);
    if !head.starts_with("POST /rpc") {
        return own;
    }
    let message: Value = serde_json::from_slice(body).unwrap_or_default();
    let id = &message["id"];
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{own}}}"#)
}

fn script(fault: Fault, number: u64, content: &str) -> (Vec<u8>, Then) {
    const JSON: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
    let length = content.len();
    let good = format!("{JSON}Content-Length: {length}\r\n\r\n{content}");
    let half = &content[..length / 2];
    let chunked = format!("{JSON}Transfer-Encoding: chunked\r\n\r\n");
    let chunk = format!("{chunked}{length:x}\r\n{content}\r\n");
    let shorter = length - 1;
    let longer = length + 100;
    let fields = |count: usize, size: usize| -> String {
        let value = "x".repeat(size);
        let fields: String = (0..count).map(|n| format!("X-{n}: {value}\r\n")).collect();
        good.replacen("\r\n", &format!("\r\n{fields}"), 1)
    };
    let (text, then) = match fault {
        Well | Slow | BeforeBody => (good, Then::Keep),
        Interims => {
            let early = "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n".repeat(500);
            (format!("{early}{good}"), Then::Keep)
        }
        UntilClose => (format!("{JSON}\r\n{content}"), Then::Close),
        EarlyClose => (good, Then::Close),
        Twice => (format!("{good}{good}"), Then::Keep),
        Close => (String::new(), Then::Close),
        Reset => (String::new(), Then::Reset),
        CutHead => (JSON.to_owned(), Then::Close),
        ResetHead => (JSON.to_owned(), Then::Reset),
        Short => (
            format!("{JSON}Content-Length: {longer}\r\n\r\n{content}"),
            Then::Close,
        ),
        ResetBody => (
            format!("{JSON}Content-Length: {length}\r\n\r\n{half}"),
            Then::Reset,
        ),
        Long => (
            format!("{JSON}Content-Length: {shorter}\r\n\r\n{content}"),
            Then::Keep,
        ),
        HugeHead => (fields(1, 1 << 20), Then::Close),
        ManyFields => (fields(2000, 10), Then::Close),
        Garbage => {
            let mut dice = Dice::of(number);
            let bytes = (0..200).map(|_| u8::try_from(dice.below(256)).unwrap());
            return (bytes.collect(), Then::Close);
        }
        OpenChunks => (chunk, Then::Close),
        BadChunk => (format!("{chunk}xyz\r\n"), Then::Close),
        Silent => (String::new(), Then::Wait),
        SilentBody => (chunk, Then::Wait),
        EndlessInterims => ("HTTP/1.1 100 Continue\r\n\r\n".repeat(100), Then::Close),
    };
    (text.into_bytes(), then)
}
