//! Both ends of the wire: an upstream of either side, and clients that call as fast as they are answered.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::work::{self, AGENT, Work};

/// The time. The library's own clock would link all of it into this program, and optimize it once more for minutes.
#[expect(clippy::disallowed_methods, reason = "nobody chooses the time here")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// An address that nobody has now.
pub(crate) fn free() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

/// Starts a server that answers GETs with text, `/rpc` with a response and all else with its result. It ends with
/// the process.
pub(crate) fn upstream(size: usize) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let result: Arc<str> = work::result(size).into();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let result = result.clone();
            // A connection that breaks is seen at the other end.
            thread::spawn(move || stream.and_then(|stream| answer(stream, &result)));
        }
    });
    Ok(address)
}

fn answer(mut stream: TcpStream, result: &str) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::with_capacity(64 * 1024, stream.try_clone()?);
    while let Some(message) = Message::read(&mut reader)? {
        let body = if message.first.starts_with("GET ") {
            format!("pong {:>195}", "of the upstream")
        } else if message.first.contains(" /rpc ") {
            let body = String::from_utf8_lossy(&message.body);
            let id = body.split_once("\"id\":").map_or("null", |(_, rest)| rest);
            let id = id.split([',', '}']).next().unwrap_or("null");
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
        } else {
            result.to_owned()
        };
        let length = body.len();
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nServer: bench\r\n\r\n"
        );
        if message.is_apart {
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
                 date: Tue, 24 Nov 2026 08:15:00 GMT\r\n\r\n"
            );
            stream.write_all(head.as_bytes())?;
            thread::sleep(PAUSE);
            stream.write_all(body.as_bytes())?;
        } else {
            stream.write_all(&[head.as_bytes(), body.as_bytes()].concat())?;
        }
    }
    Ok(())
}

/// How much later a body is sent than its head, where they are apart: under valgrind, too, the head has been read by then.
const PAUSE: Duration = Duration::from_millis(100);

/// Who sends heads and bodies apart, and is answered so.
const APART: &str = "User-Agent: apart\r\n";

/// Clients as many libraries make them, to a server that is made so, too: one after the other. They send a head and its body
/// apart, with names in lower case, and nobody knows them. Before each, somebody looks whether the port is open.
pub(crate) fn apart(address: SocketAddr, work: &Work, clients: u32) -> io::Result<()> {
    let request = String::from_utf8_lossy(&work.request()).into_owned();
    let whole = request.split_once("\r\n\r\n");
    let (head, body) = whole.ok_or(io::ErrorKind::InvalidData)?;
    let (line, fields) = head.split_once("\r\n").ok_or(io::ErrorKind::InvalidData)?;
    let fields = format!("{fields}\r\n").replace(AGENT, APART);
    let fields = fields.replace("127.0.0.1", &address.to_string());
    let fields = fields.to_ascii_lowercase();
    let head = format!("{line}\r\n{fields}accept-encoding: identity\r\n\r\n");
    (0..clients).try_for_each(|_| {
        drop(TcpStream::connect(address)?);
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.write_all(head.as_bytes())?;
        thread::sleep(PAUSE);
        let mut reader = BufReader::new(stream.try_clone()?);
        ask((&stream, &mut reader), (work, body.as_bytes())).map(drop)
    })
}

/// Calls over some connections at once, `calls` in all, and looks at each answer; gives how long each took.
pub(crate) fn load(
    address: SocketAddr,
    work: &Work,
    calls: u32,
    connections: u32,
) -> io::Result<Vec<Duration>> {
    thread::scope(|scope| {
        let threads: Vec<_> = (0..connections)
            .map(|number| {
                let share = calls / connections + u32::from(number < calls % connections);
                scope.spawn(move || client(address, work, share))
            })
            .collect();
        let mut all = Vec::new();
        for thread in threads {
            let took = thread.join();
            all.extend(took.unwrap_or_else(|_| Err(io::Error::other("a client panicked")))?);
        }
        Ok(all)
    })
}

fn client(address: SocketAddr, work: &Work, calls: u32) -> io::Result<Vec<Duration>> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let mut reader = BufReader::with_capacity(64 * 1024, &stream);
    let request = work.request();
    let calls = (0..calls).map(|_| ask((&stream, &mut reader), (work, &request)));
    calls.collect()
}

/// Clients that leave one after the other: each has an answer that it has not read, and a call that is open.
pub(crate) fn leave(address: SocketAddr, work: &Work, clients: u32) -> io::Result<()> {
    let request = work.request();
    (0..clients).try_for_each(|_| {
        let mut stream = TcpStream::connect(address)?;
        stream.write_all(&request)?;
        stream.peek(&mut [0])?;
        stream.write_all(&request)
    })
}

/// A connection that has called once, and waits.
pub(crate) fn idle(address: SocketAddr, work: &Work) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    ask(
        (&stream, &mut BufReader::new(&stream)),
        (work, &work.request()),
    )?;
    Ok(stream)
}

/// Calls, and looks at the answer; gives how long it took.
fn ask(
    (mut stream, reader): (&TcpStream, &mut impl BufRead),
    (work, request): (&Work, &[u8]),
) -> io::Result<Duration> {
    let since = now();
    stream.write_all(request)?;
    let answer = Message::read(reader)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    let took = since.elapsed();
    let body = String::from_utf8_lossy(&answer.body);
    if !answer.first.starts_with("HTTP/1.1 200") || !body.contains(work.needle()) {
        return Err(io::Error::other(format!("{}: {body}", answer.first)));
    }
    Ok(took)
}

/// A message of HTTP/1.1 that says its length.
pub(crate) struct Message {
    first: String,
    is_apart: bool,
    pub(crate) body: Vec<u8>,
}

impl Message {
    /// The next one, or none where the other end has closed.
    pub(crate) fn read(reader: &mut impl BufRead) -> io::Result<Option<Message>> {
        let mut first = String::new();
        if reader.read_line(&mut first)? == 0 {
            return Ok(None);
        }
        let (mut length, mut is_apart, mut line) = (0, false, String::new());
        loop {
            line.clear();
            if reader.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if line == "\r\n" {
                break;
            }
            is_apart |= line.eq_ignore_ascii_case(APART);
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        Ok(Some(Message {
            first,
            is_apart,
            body,
        }))
    }
}
