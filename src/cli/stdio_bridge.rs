//! Standard input and output as a client of this process: each line is a message on a WebSocket to the own listener.
//!
//! The calls take the same way as those of all other clients, with their limits and cancellation. Only messages go to
//! standard output. At the end of input, calls in progress are answered, then the process stops.
//!
//! Used by `cli::mcp`.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use http::HeaderValue;
use rustix::process::{Signal, getpid, kill_process};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader, Stdin};
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use crate::cli::drafted_server::KEY_HEADER;

/// The longest line, as for lines of child processes.
const LONGEST_LINE: usize = 16 * 1024 * 1024;
/// The longest wait for the responses after the end of input.
const DRAIN: Duration = Duration::from_secs(30);

/// The reason why the bridge ended early.
#[derive(Debug, thiserror::Error)]
enum BridgeFault {
    /// The system or the standard streams failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The connection to the own listener failed.
    #[error("the connection to the proxy broke")]
    Socket(#[from] Box<tokio_tungstenite::tungstenite::Error>),
    /// A line is too long.
    #[error("a line of standard input is longer than {mib} MiB", mib = LONGEST_LINE / 1024 / 1024)]
    LongLine,
    /// The key cannot be sent.
    #[error("the API key is no header value")]
    Key,
}

impl From<tokio_tungstenite::tungstenite::Error> for BridgeFault {
    fn from(error: tokio_tungstenite::tungstenite::Error) -> BridgeFault {
        BridgeFault::Socket(Box::new(error))
    }
}

/// The thread of the bridge. It stops the process when it ends, and is joined on drop.
pub(super) struct StdioBridge(Option<JoinHandle<()>>);

impl StdioBridge {
    /// Starts the bridge to the RPC path `/mcp` of a listener.
    pub(super) fn start(address: SocketAddr, key: Option<String>) -> io::Result<StdioBridge> {
        let thread = thread::Builder::new().name("stdio".to_owned());
        let thread = thread.spawn(move || {
            let result = run(address, key.as_deref());
            if let Err(fault) = result {
                let _ = writeln!(io::stderr().lock(), "error: {fault}");
            }
            // The process drains and ends as on any other signal.
            let _ = kill_process(getpid(), Signal::TERM);
        })?;
        Ok(StdioBridge(Some(thread)))
    }
}

impl Drop for StdioBridge {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            let _ = thread.join();
        }
    }
}

fn run(address: SocketAddr, key: Option<&str>) -> Result<(), BridgeFault> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(bridge(address, key));
    // A read of standard input cannot be aborted.
    runtime.shutdown_background();
    result
}

type Socket = WebSocketStream<TcpStream>;

async fn bridge(address: SocketAddr, key: Option<&str>) -> Result<(), BridgeFault> {
    let mut socket = connect(address, key).await?;
    let mut input = Lines {
        reader: BufReader::new(tokio::io::stdin()),
        line: Vec::new(),
    };
    let mut waiting: usize = 0;
    loop {
        // Both futures may be dropped: a line that is partly read stays in `input`.
        tokio::select! {
            line = input.next() => match line? {
                Some(line) => {
                    waiting += count(&line, is_request);
                    socket.send(Message::text(line)).await?;
                }
                None => break,
            },
            message = socket.next() => match message {
                Some(message) => waiting = waiting.saturating_sub(print(message?)?),
                None => return Ok(()),
            },
        }
    }
    let answered = async {
        while waiting > 0 {
            match socket.next().await {
                Some(message) => waiting = waiting.saturating_sub(print(message?)?),
                None => return Ok(()),
            }
        }
        socket.close(None).await.map_err(BridgeFault::from)
    };
    timeout(DRAIN, answered).await.unwrap_or(Ok(()))
}

async fn connect(address: SocketAddr, key: Option<&str>) -> Result<Socket, BridgeFault> {
    let mut request = format!("ws://{address}/mcp").into_client_request()?;
    if let Some(key) = key {
        let key = HeaderValue::from_str(key).map_err(|_| BridgeFault::Key)?;
        request.headers_mut().insert(KEY_HEADER, key);
    }
    let stream = TcpStream::connect(address).await?;
    let config = WebSocketConfig::default()
        .max_message_size(None)
        .max_frame_size(None);
    let (socket, _) = client_async_with_config(request, stream, Some(config)).await?;
    Ok(socket)
}

/// The lines of standard input.
struct Lines {
    reader: BufReader<Stdin>,
    line: Vec<u8>,
}

impl Lines {
    /// Returns the next line that is not blank; `None` at the end. Cancel-safe.
    async fn next(&mut self) -> Result<Option<String>, BridgeFault> {
        loop {
            let room = LONGEST_LINE.saturating_sub(self.line.len());
            let room = u64::try_from(room).unwrap_or(u64::MAX);
            let mut bounded = (&mut self.reader).take(room);
            let read = bounded.read_until(b'\n', &mut self.line).await?;
            let is_whole = self.line.ends_with(b"\n");
            if !is_whole && self.line.len() >= LONGEST_LINE {
                return Err(BridgeFault::LongLine);
            }
            if !is_whole && read > 0 {
                continue;
            }
            let line = std::mem::take(&mut self.line);
            if !line.trim_ascii().is_empty() {
                return Ok(Some(
                    String::from_utf8_lossy(line.trim_ascii()).into_owned(),
                ));
            }
            if read == 0 {
                return Ok(None);
            }
        }
    }
}

/// Prints a message as a line; returns the number of responses in it.
fn print(message: Message) -> io::Result<usize> {
    let Message::Text(text) = message else {
        return Ok(0);
    };
    // A line break in JSON is white space between tokens.
    let mut line = text.as_str().replace(['\n', '\r'], " ");
    line.push('\n');
    let mut out = io::stdout().lock();
    out.write_all(line.as_bytes())?;
    out.flush()?;
    Ok(count(&text, is_response))
}

/// Counts the messages of a kind in a message or a batch.
fn count(text: &str, is_kind: fn(&Value) -> bool) -> usize {
    match serde_json::from_str(text) {
        Ok(Value::Array(messages)) => messages.iter().filter(|message| is_kind(message)).count(),
        Ok(message) => usize::from(is_kind(&message)),
        Err(_) => 0,
    }
}

fn has_id(message: &Value) -> bool {
    message.get("id").is_some_and(|id| !id.is_null())
}

fn is_request(message: &Value) -> bool {
    has_id(message) && message.get("method").is_some()
}

fn is_response(message: &Value) -> bool {
    has_id(message) && message.get("method").is_none()
}
