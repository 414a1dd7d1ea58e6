//! Upstreams behind links: how many calls a second they take through the proxy and from a client of their own, and how
//! much later one call is answered.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;
use std::{env, fs, thread};

use tokio_tungstenite::tungstenite::{self, Message, WebSocket};

use crate::peers;
use crate::running::Running;
use crate::work::{self, CALL, Kind, Method};

/// Calls of each measurement.
const CALLS: u32 = 10_000;
/// How many are open at a time where the rate is measured.
const AT_ONCE: u32 = 16;
/// Bytes of an answer, about.
const SIZE: usize = 200;

/// The server that is called, on the other side of the line.
fn answer(call: &str, result: &str) -> Option<String> {
    let id = call.split_once("\"id\":")?.1.split([',', '}']).next()?;
    Some(format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#
    ))
}

/// A server on standard input and output.
pub(crate) fn child() -> io::Result<()> {
    let result = work::result(SIZE);
    let (input, mut output) = (io::stdin().lock(), io::stdout().lock());
    for line in input.lines() {
        if let Some(answer) = answer(&line?, &result) {
            writeln!(output, "{answer}")?;
            output.flush()?;
        }
    }
    Ok(())
}

/// A server on WebSockets; it ends with the process.
fn server() -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming() {
            // A connection that breaks is seen at the other end.
            thread::spawn(move || stream.and_then(serve));
        }
    });
    Ok(address)
}

fn serve(stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let result = work::result(SIZE);
    let mut socket = tungstenite::accept(stream).map_err(io::Error::other)?;
    loop {
        let call = socket.read().map_err(io::Error::other)?;
        let answer = call.to_text().ok().and_then(|call| answer(call, &result));
        if let Some(answer) = answer {
            let sent = socket.send(Message::text(answer));
            sent.map_err(io::Error::other)?;
        }
    }
}

/// A client of the server itself.
enum Direct {
    Socket(WebSocket<TcpStream>),
    Child(Child, ChildStdin, BufReader<ChildStdout>),
}

impl Direct {
    fn socket(address: SocketAddr) -> io::Result<Direct> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let asked = tungstenite::client(format!("ws://{address}/"), stream);
        let (socket, _) = asked.map_err(io::Error::other)?;
        Ok(Direct::Socket(socket))
    }

    fn child(program: &Path) -> io::Result<Direct> {
        let mut command = Command::new(program);
        command.arg("child").stdin(Stdio::piped());
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let output = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Direct::Child(child, input, BufReader::new(output)))
    }

    fn ask(&mut self, id: u32) -> io::Result<()> {
        let call =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{CALL}}}"#);
        match self {
            Direct::Socket(socket) => socket.send(Message::text(call)).map_err(io::Error::other),
            Direct::Child(_, input, _) => writeln!(input, "{call}"),
        }
    }

    fn hear(&mut self) -> io::Result<()> {
        match self {
            Direct::Socket(socket) => socket.read().map(drop).map_err(io::Error::other),
            Direct::Child(_, _, output) => output.read_line(&mut String::new()).map(drop),
        }
    }

    /// All calls, so many of them open at a time; gives how long each took where that is one.
    fn load(&mut self, at_once: u32) -> io::Result<Vec<Duration>> {
        let mut since = peers::now();
        (0..at_once).try_for_each(|id| self.ask(id))?;
        let mut took = Vec::new();
        for next in at_once..CALLS + at_once {
            self.hear()?;
            took.push(since.elapsed());
            since = peers::now();
            if next < CALLS {
                self.ask(next)?;
            }
        }
        Ok(took)
    }
}

impl Drop for Direct {
    fn drop(&mut self) {
        if let Direct::Child(child, ..) = self {
            // It has ended already, or it is of no use.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// What one way measures.
struct Measured {
    rate: f64,
    p50: Duration,
    p99: Duration,
}

fn measured(mut load: impl FnMut(u32) -> io::Result<Vec<Duration>>) -> io::Result<Measured> {
    // What is begun with the first calls is no part of it.
    load(AT_ONCE)?;
    let since = peers::now();
    load(AT_ONCE)?;
    let rate = f64::from(CALLS) / since.elapsed().as_secs_f64();
    let mut took = load(1)?;
    took.sort();
    let at = |part: usize| took.get(took.len() * part / 100).copied();
    Ok(Measured {
        rate,
        p50: at(50).unwrap_or_default(),
        p99: at(99).unwrap_or_default(),
    })
}

/// Prints both ways to each kind of upstream.
pub(crate) fn compare(program: &Path) -> io::Result<()> {
    println!(
        "{:<10} {:<8} {:>10} {:>10} {:>10} {:>10}",
        "upstream", "way", "calls/s", "p50 us", "p99 us", "added us"
    );
    let (own, address) = (env::current_exe()?, server()?);
    let socket = format!("url = \"ws://{address}/\"");
    let child =
        format!("command = [{own:?}, \"child\"]\nhandshake = \"none\"\nmode = \"pipelined\"");
    let mut direct = Direct::socket(address)?;
    row(
        "websocket",
        measured(|at_once| direct.load(at_once))?,
        (program, &socket),
    )?;
    let mut direct = Direct::child(&own)?;
    row(
        "stdio",
        measured(|at_once| direct.load(at_once))?,
        (program, &child),
    )
}

fn row(name: &str, direct: Measured, (program, upstream): (&Path, &str)) -> io::Result<()> {
    let folder = tempfile::tempdir()?;
    let config = config(folder.path(), upstream)?;
    let log = folder.path().join("log");
    let mut command = Command::new(program);
    command.args(["run", "--config"]).arg(&config);
    let mut proxy = Running::start(&mut command, &log)?;
    let address = proxy.address()?;
    let work = work::work("link", Kind::RpcToRest, Method::Post, SIZE);
    let through = measured(|at_once| peers::load(address, &work, CALLS, at_once));
    proxy.end()?;
    let through = through?;
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    for (way, measured, added) in [
        ("direct", &direct, 0.0),
        ("proxy", &through, micros(through.p50) - micros(direct.p50)),
    ] {
        println!(
            "{name:<10} {way:<8} {:>10.0} {:>10.0} {:>10.0} {added:>10.0}",
            measured.rate,
            micros(measured.p50),
            micros(measured.p99),
        );
    }
    Ok(())
}

fn config(folder: &Path, upstream: &str) -> io::Result<PathBuf> {
    let path = folder.join("links.toml");
    let text = format!(
        "[listen]\naddress = \"127.0.0.1:0\"\nworkers = 1\n\n[admin]\naddress = \"127.0.0.1:0\"\n\n\
         [upstream.link]\nside = \"rpc\"\n{upstream}\n"
    );
    fs::write(&path, text)?;
    Ok(path)
}
