//! The kits: unmodified clients get the same results from a server directly and through two proxies, of which the first
//! translates each call from JSON-RPC to REST, and the second one, the kit, back to JSON-RPC. Clients of A2A speak both
//! protocols: through one proxy they get the results of an agent that speaks the other one.
//!
//! Applications evaluate the flags of a proxy with OpenFeature.
//!
//! `.ci/install-kits` installs the servers and clients; the tests are ignored unless they are asked for.

#![expect(
    clippy::unwrap_used,
    reason = "a server that does not do as the test says fails the test"
)]

#[path = "kits/a2a.rs"]
mod a2a;
#[path = "kits/bitcoin.rs"]
mod bitcoin;
#[path = "kits/imitations.rs"]
mod imitations;
#[path = "kits/odoo.rs"]
mod odoo;
#[path = "kits/ofrep.rs"]
mod ofrep;
#[path = "peers/processes.rs"]
mod processes;
#[path = "kits/transmission.rs"]
mod transmission;
#[path = "kits/truenas.rs"]
mod truenas;
#[path = "kits/zabbix.rs"]
mod zabbix;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use processes::{Process, installed, started, try_started};

/// Asks a process to end, and waits for its end.
fn end(mut process: Process) {
    let id = process.0.id().to_string();
    assert!(Command::new("kill").arg(id).status().unwrap().success());
    process.0.wait().unwrap();
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

/// Starts a process at an address that it cannot choose by itself. Another process may take a free address before it does,
/// so several are tried.
fn at_free_address(start: impl Fn(SocketAddr) -> Option<(Process, String)>) -> (Process, String) {
    let mut attempts = (0..5).filter_map(|_| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        start(address)
    });
    attempts.next().unwrap()
}

/// Returns the log of the proxy that has this main file.
fn log_of(config: &Path) -> PathBuf {
    config.with_extension("log")
}

/// Starts a proxy and returns its address.
fn proxy(config: &Path) -> (Process, String) {
    proxy_at(config, "127.0.0.1:0").unwrap()
}

/// Starts a proxy at this address and returns its URL; `None` if it does not start.
fn proxy_at(config: &Path, listen: &str) -> Option<(Process, String)> {
    let mut command = dualgauge();
    command.args([
        "run",
        "--listen",
        listen,
        "--admin",
        "127.0.0.1:0",
        "--config",
    ]);
    command.stderr(File::create(log_of(config)).unwrap());
    let (process, rest) = try_started(command.arg(config), "serving ")?;
    Some((process, rest.split(',').next().unwrap().to_owned()))
}

/// Returns what `explain` prints of a call with a kit.
fn explained(kit: &str, arguments: &[&str]) -> String {
    let mut command = dualgauge();
    command.args(["explain", "--config"]).arg(main_file(kit));
    client(command.args(arguments))
}

/// Returns the main file of a kit.
fn main_file(kit: &str) -> PathBuf {
    let kits = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/kits");
    kits.join(kit).join("dualgauge.toml")
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
        let main = written_kit(self.kit, folder.path(), |line| {
            let url = || format!("url = \"{address}{}\"", self.path);
            // The WebSockets of a server are at the same address.
            let socket = || url().replace("http://", "ws://");
            match line.starts_with("url = \"ws://") {
                true => Some(socket()),
                false => line.starts_with("url = ").then(url),
            }
        });
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
        (results, translated_routes(second, &main))
    }

    fn run(&self) {
        let direct = self.direct();
        let (translated, called) = self.translated();
        assert_equal_results(&direct, &translated);
        assert_eq!(uncalled_routes(self.kit, &called), self.uncalled);
    }
}

/// Writes a kit into a folder, with some lines replaced in its main file, and returns the path of that file.
fn written_kit(kit: &str, folder: &Path, replaced: impl Fn(&str) -> Option<String>) -> PathBuf {
    written_main_file(kit, "dualgauge.toml", folder, replaced)
}

/// Writes a kit into a folder, with some lines replaced in one of its main files, and returns the path of that file.
fn written_main_file(
    kit: &str,
    main_file: &str,
    folder: &Path,
    replaced: impl Fn(&str) -> Option<String>,
) -> PathBuf {
    let folder = folder.join("kit");
    let written = dualgauge()
        .args(["kit", kit, "--write"])
        .arg(&folder)
        .status();
    assert!(written.unwrap().success());
    let main = folder.join(main_file);
    let text = fs::read_to_string(&main).unwrap();
    let set = |line: &str| replaced(line).unwrap_or_else(|| line.to_owned());
    let lines: Vec<String> = text.lines().map(set).collect();
    fs::write(&main, lines.join("\n")).unwrap();
    main
}

/// Keeps one of the two upstreams of a kit, at the server with this URL, and uses the flag for it, as the README says.
fn keep_upstream(main: &Path, kept: &str, url: &str) {
    let change = |path: &Path, changed: &dyn Fn(&str) -> Option<String>| {
        let text = fs::read_to_string(path).unwrap();
        let blocks = text.split("\n\n").filter_map(changed);
        fs::write(path, blocks.collect::<Vec<_>>().join("\n\n")).unwrap();
    };
    change(main, &|block| {
        if !block.starts_with("[upstream.") {
            return Some(block.to_owned());
        }
        let (before, old) = block.split_once("http://")?;
        let path = old.find(['/', '"'])?;
        let is_kept = block.starts_with(&format!("[upstream.{kept}]"));
        is_kept.then(|| format!("{before}{url}{}", &old[path..]))
    });
    change(&main.with_file_name("flags.toml"), &|block| {
        let is_for = block.contains(&format!("for `[upstream.{kept}]`"));
        is_for.then(|| {
            block
                .replace("\n# ", "\n")
                .trim_start_matches("# ")
                .to_owned()
        })
    });
}

/// Ends the proxy of a main file and returns the routes whose calls it translated.
fn translated_routes(proxy: Process, config: &Path) -> BTreeSet<String> {
    end(proxy);
    let log = fs::read_to_string(log_of(config)).unwrap();
    let routes = log
        .lines()
        .filter(|line| line.contains(" stage=translate "));
    let routes = routes.filter_map(|line| line.split_once(" route="));
    let routes = routes.map(|(_, rest)| rest.split(' ').next().unwrap().to_owned());
    routes.collect()
}

/// Returns the routes of a kit that are not among those called.
fn uncalled_routes(kit: &str, called: &BTreeSet<String>) -> Vec<String> {
    uncalled_routes_of(&main_file(kit), called)
}

/// Returns the routes of a main file that are not among those called.
fn uncalled_routes_of(main_file: &Path, called: &BTreeSet<String>) -> Vec<String> {
    let mut table = dualgauge();
    table.args(["routes", "--format", "json", "--config"]);
    let table = client(table.arg(main_file));
    let table: serde_json::Value = serde_json::from_str(&table).unwrap();
    let names = table.as_array().unwrap().iter();
    let names: BTreeSet<String> = names
        .map(|route| route["name"].as_str().unwrap().to_owned())
        .collect();
    names.difference(called).cloned().collect()
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
        // Another test calls them.
        uncalled: &[
            "subscriptions.heads",
            "subscriptions.logs",
            "subscriptions.pending",
        ],
        server: anvil,
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

/// Starts an Ethereum node and returns its address. Runs the native program: the end of its npm wrapper would
/// leave it running.
fn anvil() -> (Process, String) {
    let machine = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let program = format!("kits-npm/node_modules/@foundry-rs/anvil-linux-{machine}/bin/anvil");
    let mut command = Command::new(installed(&program));
    let (process, address) = started(command.args(["--port", "0"]), "Listening on ");
    (process, format!("http://{}", address.trim()))
}

#[test]
#[ignore = "needs .ci/install-kits"]
fn rest_clients_get_the_events_of_a_direct_websocket_through_the_ethereum_kit() {
    let (_node, address) = anvil();
    let folder = tempfile::tempdir().unwrap();
    let socket = address.replace("http://", "ws://");
    let main = written_kit("ethereum", folder.path(), |line| {
        let url = match line.starts_with("url = \"ws://") {
            true => &socket,
            false => &address,
        };
        line.starts_with("url = ")
            .then(|| format!("url = \"{url}/\""))
    });
    let (proxy, url) = proxy(&main);
    let mut command = Command::new("node");
    command.arg("tests/kits/ethereum_events.mjs");
    let results = client(command.args([&url, &socket]).arg(installed("kits-npm")));
    let results: serde_json::Value = serde_json::from_str(&results).unwrap();
    for kind in ["heads", "logs", "pending"] {
        let (direct, translated) = (&results["direct"][kind], &results["translated"][kind]);
        assert!(!direct.as_array().unwrap().is_empty(), "{kind}");
        assert_eq!(direct, translated, "{kind}");
    }
    let called = translated_routes(proxy, &main);
    let uncalled = uncalled_routes("ethereum", &called);
    let is_subscription = |route: &&String| route.starts_with("subscriptions.");
    assert_eq!(uncalled.iter().find(is_subscription), None);
}

#[test]
#[ignore = "needs .ci/install-kits"]
fn aria2p_gets_the_same_results_through_the_kit() {
    Case {
        kit: "aria2",
        path: "/jsonrpc",
        uncalled: &[],
        server: || {
            at_free_address(|address| {
                let mut command = Command::new("aria2c");
                command.args([
                    "--no-conf",
                    "--enable-rpc",
                    "--rpc-secret=secret",
                    "--enable-dht=false",
                    "--listen-port=1024-65535",
                    "--rpc-save-upload-metadata=false",
                ]);
                command.arg(format!("--rpc-listen-port={}", address.port()));
                let (process, _) = try_started(&mut command, "listening on TCP port ")?;
                Some((process, format!("http://{address}")))
            })
        },
        client: |url| {
            let mut command = Command::new(installed("kits-python").join("bin/python"));
            command.arg("tests/kits/aria2.py").arg(url);
            command
        },
    }
    .run();
}
