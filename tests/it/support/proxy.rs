//! The program, in a process of its own.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use tempfile::TempDir;

use super::{Message, WITHIN, Wire};

/// A proxy that runs; it is killed when the value is dropped. One that panicked or ended by itself fails its test.
#[derive(Debug)]
pub(crate) struct Proxy {
    address: SocketAddr,
    admin: SocketAddr,
    folder: Arc<TempDir>,
    child: Child,
    /// The processes that have followed it, the last of which serves.
    heirs: Vec<u32>,
    output: Lines,
    log: Lines,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    Stopped,
}

/// What a stopped proxy left behind.
#[derive(Debug)]
pub(crate) struct Stopped {
    pub(crate) status: ExitStatus,
    pub(crate) log: String,
}

impl Proxy {
    /// Runs the program with this configuration.
    pub(crate) fn start(config: &str) -> Proxy {
        Proxy::start_with(config, &[])
    }

    /// Runs the program with a flags file as well.
    pub(crate) fn start_with_flags(config: &str, flags: &str) -> Proxy {
        let config = format!("{config}\n[rollout]\nflags = \"flags.toml\"\n");
        Proxy::start_with(&config, &[("flags.toml", flags)])
    }

    /// Runs the program with further files beside its configuration.
    pub(crate) fn start_with(config: &str, files: &[(&str, &str)]) -> Proxy {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files.iter().chain([&("dualgauge.toml", config)]) {
            fs::write(folder.path().join(name), text).unwrap();
        }
        Proxy::run(folder)
    }

    /// Runs the program with this configuration and these flags, and with the hosts that the configuration names, if any.
    pub(crate) fn start_with_own_hosts(config: &str, flags: &str) -> Proxy {
        let folder = tempfile::tempdir().unwrap();
        let config = format!("{config}\n[rollout]\nflags = \"flags.toml\"\n");
        for (name, text) in [("flags.toml", flags), ("dualgauge.toml", &config)] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        Proxy::launch_with_own_hosts(run_in(folder.path()), folder)
    }

    /// Runs the program with the files that are in a folder. Where these name no hosts, those of the tests are allowed.
    pub(crate) fn run(folder: impl Into<Arc<TempDir>>) -> Proxy {
        let folder = folder.into();
        let command = run_in(folder.path());
        let config = fs::read_to_string(folder.path().join("dualgauge.toml")).unwrap();
        match config.contains("hosts =") {
            true => Proxy::launch_with_own_hosts(command, folder),
            false => Proxy::launch(command, folder),
        }
    }

    /// Runs a command of the program that serves, and allows the hosts of the tests.
    pub(crate) fn launch(mut command: Command, folder: impl Into<Arc<TempDir>>) -> Proxy {
        command.env("DUALGAUGE_LISTEN__HOSTS", HOSTS);
        Proxy::launch_with_own_hosts(command, folder)
    }

    fn launch_with_own_hosts(mut command: Command, folder: impl Into<Arc<TempDir>>) -> Proxy {
        let mut child = command.spawn().unwrap();
        let output = Lines::of(child.stdout.take().unwrap());
        let log = Lines::of(child.stderr.take().unwrap());
        let (address, admin) = match output.wait(|line| line.starts_with("serving ")) {
            Some(line) => addresses(&line),
            None => panic!("the proxy did not start:\n{}\n{command:?}", log.all()),
        };
        Proxy {
            address,
            admin,
            folder: folder.into(),
            child,
            heirs: Vec::new(),
            output,
            log,
            state: State::Running,
        }
    }

    /// Stops the program and runs it again in the same folder.
    pub(crate) fn restart(self) -> Proxy {
        let folder = self.folder.clone();
        let stopped = self.stop();
        assert!(stopped.status.success(), "{stopped:?}");
        Proxy::run(folder)
    }

    /// Waits until the program, which drains, has ended, and runs it again in the same folder.
    pub(crate) fn run_again(self) -> Proxy {
        let folder = self.folder.clone();
        let stopped = self.wait();
        assert!(stopped.status.success(), "{stopped:?}");
        Proxy::run(folder)
    }

    /// Lets the program start its successor, and waits until that has taken over.
    pub(crate) fn replace(&mut self) {
        self.signal("USR2");
        let heirs = self.heirs.clone();
        let process = |line: &str| -> Option<u32> {
            let rest = line.split_once("the new process serves")?.1;
            rest.split_once("process=")?.1.trim().parse().ok()
        };
        let is_new = |line: &str| process(line).is_some_and(|heir| !heirs.contains(&heir));
        let line = self.log.wait(is_new);
        let line = line.unwrap_or_else(|| panic!("no successor:\n{}", self.log.all()));
        self.heirs.extend(process(&line));
    }

    /// Where calls come in.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where the admin listener is.
    pub(crate) fn admin(&self) -> SocketAddr {
        self.admin
    }

    /// The id of its process.
    pub(crate) fn process(&self) -> u32 {
        self.heirs.last().copied().unwrap_or(self.child.id())
    }

    /// Where its files are.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A client's connection.
    pub(crate) fn connect(&self) -> Wire {
        Wire::connect(self.address)
    }

    /// One REST call on a connection of its own. `Host` is added, and `Content-Length` where there is a body.
    pub(crate) fn rest(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: impl AsRef<[u8]>,
    ) -> Message {
        let body = body.as_ref();
        let mut request = format!("{method} {target} HTTP/1.1\r\nHost: proxy.example\r\n");
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() {
            request.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        request.push_str("\r\n");
        let mut wire = self.connect();
        wire.send([request.as_bytes(), body].concat());
        wire.read_answer_to(method)
    }

    /// One JSON-RPC message, or a batch, on a connection of its own.
    pub(crate) fn rpc(&self, body: impl AsRef<[u8]>) -> Message {
        let json = [("Content-Type", "application/json")];
        self.rest("POST", "/rpc", &json, body)
    }

    /// The first line of the log that has all these pieces; waits for it.
    pub(crate) fn log_line(&self, pieces: &[&str]) -> String {
        let found = self
            .log
            .wait(|line| pieces.iter().all(|piece| line.contains(piece)));
        found.unwrap_or_else(|| panic!("no line with {pieces:?} in the log:\n{}", self.log.all()))
    }

    /// What it has printed, up to a line with this text.
    pub(crate) fn printed(&self, last: &str) -> String {
        let found = self.output.wait(|line| line.contains(last));
        assert!(found.is_some(), "no {last:?} in {}", self.output.all());
        self.output.all()
    }

    /// The log so far.
    pub(crate) fn log(&self) -> String {
        self.log.all()
    }

    /// Sends a signal, by its name: `TERM`, `HUP`.
    pub(crate) fn signal(&self, name: &str) {
        assert!(self.send_signal(name).success());
    }

    fn send_signal(&self, name: &str) -> ExitStatus {
        let pid = self.process().to_string();
        let sent = Command::new("kill").args(["-s", name, &pid]).status();
        sent.unwrap()
    }

    /// Sends SIGTERM and waits for the end.
    pub(crate) fn stop(self) -> Stopped {
        self.signal("TERM");
        self.wait()
    }

    /// Waits for the end, which somebody has asked for.
    pub(crate) fn wait(mut self) -> Stopped {
        assert!(self.output.end(), "the proxy did not end:\n{}", self.log());
        let status = self.child.wait().unwrap();
        assert!(self.log.end());
        self.state = State::Stopped;
        Stopped {
            status,
            log: self.log(),
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let ended = self.child.try_wait().unwrap();
        let _ = self.child.kill();
        let _ = self.child.wait();
        if self.state == State::Running && !self.heirs.is_empty() {
            // The successor may have ended.
            let _ = self.send_signal("KILL");
        }
        let log_ended = self.log.end();
        if thread::panicking() {
            eprintln!("the log of the proxy:\n{}", self.log.all());
            return;
        }
        let log = self.log.all();
        assert!(log_ended, "the log is still open:\n{log}");
        assert!(!log.contains("panicked at"), "the proxy panicked:\n{log}");
        if self.state == State::Running && self.heirs.is_empty() {
            assert_eq!(ended, None, "the proxy ended by itself:\n{log}");
        }
    }
}

/// The hosts that tests ask for.
const HOSTS: &str =
    r#"["proxy.example", "a.example", "a", "b", "server.example", "localhost", "127.0.0.1"]"#;

/// The program with the configuration in a folder, on ports of its own.
fn run_in(folder: &Path) -> Command {
    let mut command = program(&["run", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
    command.arg("--config").arg(folder.join("dualgauge.toml"));
    command
}

/// The program with arguments, and with nothing in its environment.
pub(crate) fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dualgauge"));
    command
        .args(arguments)
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// What a command that serves nothing left behind.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) output: String,
    pub(crate) errors: String,
}

/// Runs a command that ends by itself.
pub(crate) fn run_to_end(mut command: Command) -> Ended {
    let mut child = command.spawn().unwrap();
    let output = Lines::of(child.stdout.take().unwrap());
    let errors = Lines::of(child.stderr.take().unwrap());
    let ended = output.end();
    if !ended {
        let _ = child.kill();
    }
    let code = child.wait().unwrap().code();
    assert!(errors.end());
    assert!(ended, "{command:?} did not end:\n{}", output.all());
    Ended {
        code,
        output: output.all(),
        errors: errors.all(),
    }
}

/// `serving http://ADDRESS, admin http://ADDRESS`, or `https` where calls come behind TLS.
fn addresses(line: &str) -> (SocketAddr, SocketAddr) {
    let words = line.split([' ', ',']);
    let mut found = words.filter_map(|word| word.split_once("://")?.1.parse().ok());
    (found.next().unwrap(), found.next().unwrap())
}

/// Lines that a process prints.
#[derive(Debug)]
struct Lines {
    coming: Mutex<Receiver<String>>,
    came: Mutex<Vec<String>>,
}

impl Lines {
    fn of(pipe: impl Read + Send + 'static) -> Lines {
        let (sender, coming) = channel();
        thread::spawn(move || {
            for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).into_owned();
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Lines {
            coming: Mutex::new(coming),
            came: Mutex::default(),
        }
    }

    fn next(&self) -> Result<String, RecvTimeoutError> {
        let line = self.coming.lock().unwrap().recv_timeout(WITHIN)?;
        self.came.lock().unwrap().push(line.clone());
        Ok(line)
    }

    /// The first line that is wanted, whenever it came.
    fn wait(&self, wanted: impl Fn(&str) -> bool) -> Option<String> {
        let came = self.came.lock().unwrap().clone();
        if let Some(line) = came.into_iter().find(|line| wanted(line)) {
            return Some(line);
        }
        while let Ok(line) = self.next() {
            if wanted(&line) {
                return Some(line);
            }
        }
        None
    }

    /// Reads to the end of the output: whether it came.
    fn end(&self) -> bool {
        loop {
            match self.next() {
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => return true,
                Err(RecvTimeoutError::Timeout) => return false,
            }
        }
    }

    /// Everything that has come.
    fn all(&self) -> String {
        while let Ok(line) = self.coming.lock().unwrap().try_recv() {
            self.came.lock().unwrap().push(line);
        }
        self.came.lock().unwrap().join("\n")
    }
}
