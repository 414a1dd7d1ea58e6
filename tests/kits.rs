//! The kits: unmodified clients get the same results from a server directly and through two proxies, of which the first
//! translates each call from JSON-RPC to REST, and the second one, the kit, back to JSON-RPC.
//!
//! `.ci/install-kits` installs the servers and clients; the tests are ignored unless they are asked for.

#![expect(
    clippy::unwrap_used,
    reason = "a server that does not do as the test says fails the test"
)]

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};

/// A process that ends with the test, and the lines of its output.
struct Process {
    child: Child,
    lines: Option<JoinHandle<Vec<String>>>,
}

impl Process {
    /// Ends the process and returns the lines that followed the first ones.
    fn end(mut self) -> Vec<String> {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.lines.take().unwrap().join().unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a process, and returns what follows `start` on a line of its output.
fn started(command: &mut Command, start: &str) -> (Process, String) {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let found = lines.find_map(|line| {
        line.unwrap()
            .split_once(start)
            .map(|(_, rest)| rest.to_owned())
    });
    let lines = Some(thread::spawn(move || lines.map_while(Result::ok).collect()));
    (Process { child, lines }, found.unwrap())
}

/// Returns a folder of `.ci/install-kits`.
fn installed(name: &str) -> PathBuf {
    let own = Path::new(env!("CARGO_BIN_EXE_dualgauge"));
    let folder = own.ancestors().nth(2).unwrap().join(name);
    assert!(
        folder.exists(),
        "{} is missing; run .ci/install-kits",
        folder.display()
    );
    folder
}

/// Runs a client to its end and returns what it printed.
fn client(command: &mut Command) -> String {
    let output = command.stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

fn dualgauge() -> Command {
    Command::new(env!("CARGO_BIN_EXE_dualgauge"))
}

/// Starts a proxy and returns its address.
fn proxy(config: &Path) -> (Process, String) {
    let mut command = dualgauge();
    command.args([
        "run",
        "--listen",
        "127.0.0.1:0",
        "--admin",
        "127.0.0.1:0",
        "--config",
    ]);
    let (process, rest) = started(command.arg(config), "serving ");
    let address = rest.split(',').next().unwrap().to_owned();
    (process, address)
}

/// A kit with a client for it.
struct Case {
    kit: &'static str,
    /// The path of JSON-RPC.
    path: &'static str,
    /// Routes that the client does not call, because the server has no such method.
    uncalled: &'static [&'static str],
    /// Starts a server and returns its address.
    server: fn() -> (Process, String),
    /// Returns the command of the client, which gets the URL as its next argument.
    client: fn(&str) -> Command,
}

impl Case {
    fn direct(&self) -> String {
        let (_server, address) = (self.server)();
        client(&mut (self.client)(&format!("{address}{}", self.path)))
    }

    /// Returns the results through both proxies, and the routes that the kit translated.
    fn translated(&self) -> (String, BTreeSet<String>) {
        let (_server, address) = (self.server)();
        let folder = tempfile::tempdir().unwrap();
        let kit = folder.path().join("kit");
        let written = dualgauge()
            .args(["kit", self.kit, "--write"])
            .arg(&kit)
            .status()
            .unwrap();
        assert!(written.success());
        let main = kit.join("dualgauge.toml");
        let text = fs::read_to_string(&main).unwrap();
        let set = |line: &str| match line.starts_with("url = ") {
            true => format!("url = \"{address}{}\"", self.path),
            false => line.to_owned(),
        };
        let lines: Vec<String> = text.lines().map(set).collect();
        fs::write(&main, lines.join("\n")).unwrap();
        let (second, rest) = proxy(&main);
        let first = folder.path().join("first.toml");
        let text = format!(
            "include = [\"kit/routes.toml\"]\n[upstream.kit]\nside = \"rest\"\nurl = \"{rest}\"\n[rpc]\npaths = [\"{}\"]\n\
             [rollout]\ndefault = {{ rest = \"passthrough\", rpc = \"translate\" }}\n",
            self.path
        );
        fs::write(&first, text).unwrap();
        let (_first, address) = proxy(&first);
        let results = client(&mut (self.client)(&format!("{address}{}", self.path)));
        let log = second.end();
        let routes = log.iter().filter(|line| line.contains(" stage=translate "));
        let routes = routes.filter_map(|line| line.split_once(" route="));
        let routes = routes.map(|(_, rest)| rest.split(' ').next().unwrap().to_owned());
        (results, routes.collect())
    }

    fn run(&self) {
        let direct = self.direct();
        let (translated, called) = self.translated();
        assert_equal_results(&direct, &translated);
        let mut table = dualgauge();
        table.args(["routes", "--format", "json", "--config"]);
        let config = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("config/kits")
            .join(self.kit);
        let table = client(table.arg(config.join("dualgauge.toml")));
        let table: serde_json::Value = serde_json::from_str(&table).unwrap();
        let names = table.as_array().unwrap().iter();
        let names: BTreeSet<&str> = names.map(|route| route["name"].as_str().unwrap()).collect();
        let called: BTreeSet<&str> = called.iter().map(String::as_str).collect();
        let uncalled: Vec<&str> = names.difference(&called).copied().collect();
        assert_eq!(uncalled, self.uncalled);
    }
}

/// Fails with the lines that differ.
fn assert_equal_results(direct: &str, translated: &str) {
    let differ = direct
        .lines()
        .zip(translated.lines())
        .filter(|(direct, translated)| direct != translated);
    let differ: Vec<_> = differ.collect();
    assert!(
        differ.is_empty(),
        "direct and translated results differ: {differ:#?}"
    );
    assert_eq!(direct, translated);
}

#[test]
#[ignore = "needs .ci/install-kits"]
fn ethers_gets_the_same_results_through_the_kit() {
    Case {
        kit: "ethereum",
        path: "/",
        uncalled: &[],
        server: || {
            let mut command = Command::new(installed("kits-npm").join("node_modules/.bin/anvil"));
            let (process, address) = started(command.args(["--port", "0"]), "Listening on ");
            (process, format!("http://{}", address.trim()))
        },
        client: |url| {
            let mut command = Command::new("node");
            command
                .arg("tests/kits/ethereum.mjs")
                .arg(url)
                .arg(installed("kits-npm"));
            command
        },
    }
    .run();
}

#[test]
#[ignore = "needs .ci/install-kits"]
fn aria2p_gets_the_same_results_through_the_kit() {
    Case {
        kit: "aria2",
        path: "/jsonrpc",
        uncalled: &[],
        server: || {
            // aria2 cannot choose a port by itself.
            let port = TcpListener::bind("127.0.0.1:0")
                .unwrap()
                .local_addr()
                .unwrap()
                .port();
            let mut command = Command::new("aria2c");
            command.args([
                "--no-conf",
                "--enable-rpc",
                "--rpc-secret=secret",
                "--enable-dht=false",
                "--listen-port=0",
            ]);
            let (process, _) = started(
                command.arg(format!("--rpc-listen-port={port}")),
                "listening on TCP port ",
            );
            (process, format!("http://127.0.0.1:{port}"))
        },
        client: |url| {
            let mut command = Command::new(installed("kits-python").join("bin/python"));
            command.arg("tests/kits/aria2.py").arg(url);
            command
        },
    }
    .run();
}
