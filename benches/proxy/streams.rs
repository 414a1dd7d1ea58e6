//! Responses that stream: how much later the first event comes than from the upstream itself, and how much memory the
//! program holds while one stream carries a million events.
//!
//! A REST call becomes a JSON-RPC call whose response streams, and each event is translated.

use std::fs;
use std::io::{self, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::peers::{self, Message};
use crate::running::{Memory, Running};

/// Calls whose first event is timed, directly and through the proxy in turn.
const PAIRS: u32 = 200;
/// Calls before them, which open connections.
const FIRST_CALLS: u32 = 20;
/// The median delay that the first event may have.
const MOST_ADDED: Duration = Duration::from_millis(2);
/// The pause between two writes of a stream with a rate.
const TICK: Duration = Duration::from_millis(3);
/// The share of a stream's time after which its memory stays the same.
const SETTLED: u32 = 5;
/// The change of memory after that time, in percent.
const MOST_CHANGE: f64 = 5.0;
/// The end of a response whose length is not given.
const END: &[u8] = b"0\r\n\r\n";

/// The events of a response.
#[derive(Debug, Clone, Copy)]
struct Events {
    count: u64,
    /// The time from the first to the last.
    over: Duration,
}

impl Events {
    /// How many are due after this time.
    fn due(self, after: Duration) -> u64 {
        if after >= self.over {
            return self.count;
        }
        let due = self.count as f64 * after.as_secs_f64() / self.over.as_secs_f64();
        (due as u64).min(self.count)
    }
}

/// Starts a server whose responses stream; it ends with the process.
fn upstream(events: Events) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming() {
            // A connection that breaks is seen at the other end.
            thread::spawn(move || stream.and_then(|stream| serve(stream, events)));
        }
    });
    Ok(address)
}

fn serve(mut stream: TcpStream, events: Events) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    while let Some(call) = Message::read(&mut reader)? {
        let call = String::from_utf8_lossy(&call.body).into_owned();
        let id = call.split_once("\"id\":").map_or("null", |(_, rest)| rest);
        let id = id.split([',', '}']).next().unwrap_or("null");
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
        stream.write_all(head.as_bytes())?;
        let (since, mut sent, mut text) = (peers::now(), 0, String::new());
        while sent < events.count {
            text.clear();
            let due = events.due(since.elapsed());
            for number in sent..due {
                let event = format!(
                    "data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"number\":{number},\"text\":\"the next part of a long answer\"}}}}\n\n"
                );
                text.push_str(&format!("{:x}\r\n{event}\r\n", event.len()));
            }
            sent = due;
            stream.write_all(text.as_bytes())?;
            if sent < events.count {
                thread::sleep(TICK);
            }
        }
        stream.write_all(END)?;
    }
    Ok(())
}

/// A client with one connection.
struct Client {
    stream: TcpStream,
    request: String,
}

impl Client {
    fn connect(address: SocketAddr, path: &str, body: &str) -> io::Result<Client> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json, text/event-stream\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        Ok(Client { stream, request })
    }

    /// A client of the server.
    fn direct(address: SocketAddr) -> io::Result<Client> {
        let call = r#"{"jsonrpc":"2.0","id":7,"method":"tell","params":{"topic":"trains"}}"#;
        Client::connect(address, "/rpc", call)
    }

    /// A client of the proxy.
    fn through(address: SocketAddr) -> io::Result<Client> {
        Client::connect(address, "/tell", r#"{"topic":"trains"}"#)
    }

    /// Calls, counts the events until the end of the response, and returns the delay of the first.
    fn call(&mut self, counter: &AtomicU64) -> io::Result<Duration> {
        let since = peers::now();
        self.stream.write_all(self.request.as_bytes())?;
        let (mut first, mut kept, mut bytes) = (None, Vec::new(), vec![0; 64 * 1024]);
        loop {
            let read = self.stream.read(&mut bytes)?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            kept.extend_from_slice(bytes.get(..read).unwrap_or_default());
            let events = kept.windows(2).filter(|two| two == b"\n\n").count();
            if events > 0 {
                first.get_or_insert_with(|| since.elapsed());
                counter.fetch_add(events as u64, Ordering::Relaxed);
            }
            if kept.ends_with(END) {
                let text = String::from_utf8_lossy(&kept);
                let failed = || io::Error::other(format!("no event came: {text}"));
                return first.ok_or_else(failed);
            }
            // The end of an event, or of the response, may come in two reads.
            let whole = kept.windows(2).rposition(|two| two == b"\n\n");
            kept.drain(..whole.map_or(kept.len().saturating_sub(END.len()), |at| at + 2));
        }
    }
}

/// Starts the proxy in front of a server.
fn proxy(program: &Path, folder: &Path, upstream: SocketAddr) -> io::Result<Running> {
    let config = config(folder, upstream)?;
    let mut command = Command::new(program);
    command.args(["run", "--config"]).arg(&config);
    Running::start(&mut command, &folder.join("log"))
}

fn config(folder: &Path, upstream: SocketAddr) -> io::Result<PathBuf> {
    let path = folder.join("streams.toml");
    let text = format!(
        "[listen]\naddress = \"127.0.0.1:0\"\nworkers = 1\n\n[admin]\naddress = \"127.0.0.1:0\"\n\n\
         [upstream.new]\nside = \"rpc\"\nurl = \"http://{upstream}/rpc\"\n\n\
         [[route]]\nname = \"tell\"\nrest = \"POST /tell\"\nrpc = \"tell\"\nstream = \"sse\"\n"
    );
    fs::write(&path, text)?;
    Ok(path)
}

/// Times first events, directly and through the proxy, and prints the delays. False if the proxy adds too much.
pub(crate) fn first_events(program: &Path) -> io::Result<bool> {
    let upstream = upstream(Events {
        count: 1,
        over: Duration::ZERO,
    })?;
    let folder = tempfile::tempdir()?;
    let mut proxy = proxy(program, folder.path(), upstream)?;
    let mut through = Client::through(proxy.address()?)?;
    let mut direct = Client::direct(upstream)?;
    let counter = AtomicU64::new(0);
    let mut pair = || Ok::<_, io::Error>((direct.call(&counter)?, through.call(&counter)?));
    (0..FIRST_CALLS).try_for_each(|_| pair().map(drop))?;
    let pairs = (0..PAIRS).map(|_| pair());
    let pairs: Vec<_> = pairs.collect::<io::Result<_>>()?;
    proxy.end()?;
    let added = pairs
        .iter()
        .map(|(direct, through)| through.as_secs_f64() - direct.as_secs_f64());
    println!("{PAIRS} pairs, us {:>10} {:>10}", "median", "p95");
    let median = row("added", added.collect());
    row(
        "direct",
        pairs.iter().map(|(took, _)| took.as_secs_f64()).collect(),
    );
    row(
        "proxy",
        pairs.iter().map(|(_, took)| took.as_secs_f64()).collect(),
    );
    Ok(median <= MOST_ADDED.as_secs_f64())
}

/// Prints the median and the 95th percentile of times in seconds, and returns the median.
fn row(name: &str, mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    let at = |percent: usize| times.get(times.len() * percent / 100).copied();
    let [median, p95] = [50, 95].map(|percent| at(percent).unwrap_or(f64::NAN));
    println!("{name:<13} {:>10.0} {:>10.0}", median * 1e6, p95 * 1e6);
    median
}

/// Sends events over one stream, and prints the resident memory of the proxy. False if it changes too much once a fifth
/// of the time has passed, or if an event is missing.
pub(crate) fn memory(program: &Path, count: u64, over: Duration) -> io::Result<bool> {
    let upstream = upstream(Events { count, over })?;
    let folder = tempfile::tempdir()?;
    let mut proxy = proxy(program, folder.path(), upstream)?;
    let mut client = Client::through(proxy.address()?)?;
    let counter = AtomicU64::new(0);
    println!("{:>8} {:>10} {:>10}", "second", "events", "RSS KiB");
    let samples = thread::scope(|scope| {
        let call = scope.spawn(|| client.call(&counter));
        let mut samples = Vec::new();
        let since = peers::now();
        while !call.is_finished() {
            thread::sleep(over / 60);
            // A sample after the call would include code that only the end of a call loads.
            if call.is_finished() {
                break;
            }
            let (after, held) = (since.elapsed(), proxy.kib(Memory::Resident)?);
            let events = counter.load(Ordering::Relaxed);
            println!("{:>8.0} {events:>10} {held:>10}", after.as_secs_f64());
            samples.push((after, held));
        }
        let called = call.join();
        called.unwrap_or_else(|_| Err(io::Error::other("the client panicked")))?;
        Ok::<_, io::Error>(samples)
    })?;
    proxy.end()?;
    let settled = samples.iter().filter(|(after, _)| *after >= over / SETTLED);
    let held: Vec<_> = settled.map(|(_, held)| *held as f64).collect();
    let first = held.first().copied().unwrap_or(f64::NAN);
    let most = held
        .iter()
        .map(|held| (held / first - 1.0).abs() * 100.0)
        .fold(0.0, f64::max);
    let events = counter.load(Ordering::Relaxed);
    println!(
        "{events} events of {count}; RSS changed by at most {most:.2} % of {first} KiB after {:.0} s",
        (over / SETTLED).as_secs_f64()
    );
    Ok(events == count && most <= MOST_CHANGE)
}
