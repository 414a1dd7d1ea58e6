//! A `redis-server` of a test's own, in a folder of its own.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use dualgauge::config::raw::StoreUrl;
use dualgauge::store::{RedisSettings, Store, StoreSettings};
use tempfile::TempDir;

/// Long enough for a busy machine; what is to fail fails by it.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(2);
/// On a port it is "Ready to …", on a socket "The server is now ready to …".
const READY: &str = "eady to accept connections";

/// What a server remembers when it is killed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Memory {
    /// Everything that it has confirmed.
    Kept,
    /// Nothing, or what `SAVE` has written.
    Lost,
}

/// Ended when it is dropped.
pub(crate) struct Server {
    folder: TempDir,
    memory: Memory,
    more: Vec<String>,
    /// With its output, which it may still write to.
    running: Option<(Child, BufReader<ChildStdout>)>,
}

impl Server {
    /// On a socket in its folder; no port is open.
    pub(crate) fn start(memory: Memory) -> Self {
        let mut server = Server::new(memory);
        let socket = server.socket();
        server.more = ["--port", "0", "--unixsocket", &socket]
            .map(str::to_owned)
            .to_vec();
        assert!(server.run_again(), "redis-server ends at once");
        server
    }

    /// On a port that was free a moment ago, with a password; tells the port.
    pub(crate) fn start_on_a_port(password: &str) -> (Self, u16) {
        Server::start_with(Memory::Lost, |_, port| {
            let more = ["--port", port, "--requirepass", password];
            more.map(str::to_owned).to_vec()
        })
    }

    /// Behind TLS with a certificate and its key, on a port that was free a moment ago, asking every client for a
    /// certificate of the authority; tells the port.
    pub(crate) fn start_behind_tls(authority: &str, certificate: &str, key: &str) -> (Self, u16) {
        Server::start_with(Memory::Kept, |folder, port| {
            let mut more = [
                "--port",
                "0",
                "--tls-port",
                port,
                "--tls-auth-clients",
                "yes",
            ]
            .map(str::to_owned)
            .to_vec();
            for (name, text) in [("ca-cert", authority), ("cert", certificate), ("key", key)] {
                let path = folder.join(name);
                fs::write(&path, text).unwrap();
                more.extend([format!("--tls-{name}-file"), path.display().to_string()]);
            }
            more
        })
    }

    fn start_with(memory: Memory, arguments: impl Fn(&Path, &str) -> Vec<String>) -> (Self, u16) {
        for _ in 0..20 {
            let free = TcpListener::bind("127.0.0.1:0").unwrap();
            let port = free.local_addr().unwrap().port();
            drop(free);
            let mut server = Server::new(memory);
            server.more = arguments(server.folder.path(), &port.to_string());
            server
                .more
                .extend(["--bind", "127.0.0.1"].map(str::to_owned));
            if server.run_again() {
                return (server, port);
            }
        }
        panic!("no port was free for long enough");
    }

    fn new(memory: Memory) -> Self {
        Server {
            folder: tempfile::tempdir().unwrap(),
            memory,
            more: Vec::new(),
            running: None,
        }
    }

    fn socket(&self) -> String {
        self.folder.path().join("socket").display().to_string()
    }

    /// Kills it where it runs, and starts it (again); tells whether it takes connections.
    pub(crate) fn run_again(&mut self) -> bool {
        self.kill();
        let kept = match self.memory {
            Memory::Kept => "yes",
            Memory::Lost => "no",
        };
        let mut child = Command::new("redis-server")
            .args([
                "--save",
                "",
                "--appendonly",
                kept,
                "--daemonize",
                "no",
                "--dir",
            ])
            .arg(self.folder.path())
            .args(&self.more)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("redis-server is there; .ci/install-redis installs it");
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        let mut ready = false;
        while !ready && output.read_line(&mut line).unwrap() > 0 {
            ready = line.contains(READY);
            line.clear();
        }
        self.running = Some((child, output));
        ready
    }

    /// As by `kill -9`.
    pub(crate) fn kill(&mut self) {
        if let Some((mut child, _)) = self.running.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Stops it where it stands, or lets it go on: `STOP` or `CONT`.
    pub(crate) fn signal(&self, name: &str) {
        let (child, _) = self.running.as_ref().unwrap();
        let pid = child.id().to_string();
        let kill = Command::new("kill")
            .args([&format!("-{name}"), &pid])
            .status();
        assert!(kill.unwrap().success());
    }

    pub(crate) fn url(&self) -> String {
        format!("redis+unix://{}?db=1", self.socket())
    }

    /// A store of its own, as another replica has one.
    pub(crate) async fn store(&self) -> Store {
        open(&self.url(), TIMEOUT).await
    }

    /// Says something to the server that a store never says.
    pub(crate) async fn say(&self, words: &[&str]) {
        let client = redis::Client::open(self.url()).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        let mut command = redis::cmd(words[0]);
        for word in &words[1..] {
            command.arg(*word);
        }
        let said = command.query_async::<redis::Value>(&mut connection);
        said.await.unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

pub(crate) async fn open(url: &str, timeout: Duration) -> Store {
    let settings = RedisSettings {
        server: StoreUrl::parse(url).unwrap().server().clone(),
        tls: None,
        prefix: "test".to_owned(),
        timeout,
    };
    Store::open(&StoreSettings::Shared(settings)).await.unwrap()
}
