//! The matrix of eras: clients of the official libraries, of fastmcp and of the MCP Inspector, with servers of one era
//! each, directly and through a proxy.
//!
//! A feature that a client uses with some server, and that a server has for some client, works between them through the
//! proxy, unless the file of differences says why it cannot.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::{Command, Stdio};
use std::thread;

use crate::installed::{Linked, node, own};
use crate::processes::{Process, installed, started};
use serde_json::Value;

/// The scripts of clients and servers.
const SCRIPTS: &str = "tests/data/eras";
/// The values of the features, by name.
const EXPECTED: &str = "tests/data/eras/expected.json";
/// What does not work: `CLIENT none FEATURE: reason` if a client does not have a feature, `CLIENT SERVER FEATURE: reason`
/// if only the proxy prevents it.
const DIFFERENCES: &str = "tests/data/eras/differences.txt";
/// The packages from npm.
const PACKAGES: &str = "peers-eras";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Era {
    /// Sessions: up to 2025-11-25.
    First,
    /// 2026-07-28.
    Second,
}

/// A server: its name, its script, the Python that runs it unless it is a script for Node.js, and its era.
struct Server {
    name: &'static str,
    script: &'static str,
    python: Option<&'static str>,
    era: Era,
}

const SERVERS: [Server; 4] = [
    Server {
        name: "python-1",
        script: "server_first.py",
        python: Some("peers"),
        era: Era::First,
    },
    Server {
        name: "python-2",
        script: "server_second.py",
        python: Some("peers-2"),
        era: Era::Second,
    },
    Server {
        name: "typescript-1",
        script: "server_first.mjs",
        python: None,
        era: Era::First,
    },
    Server {
        name: "typescript-2",
        script: "server_second.mjs",
        python: None,
        era: Era::Second,
    },
];

/// A client: its name, its script, the Python that runs it unless it is a script for Node.js, its mode, and its eras.
struct Client {
    name: &'static str,
    script: &'static str,
    python: Option<&'static str>,
    mode: Option<&'static str>,
    eras: &'static [Era],
}

const FIRST: &[Era] = &[Era::First];
const SECOND: &[Era] = &[Era::Second];
const BOTH: &[Era] = &[Era::First, Era::Second];

const fn client(
    name: &'static str,
    script: &'static str,
    python: Option<&'static str>,
    mode: Option<&'static str>,
    eras: &'static [Era],
) -> Client {
    Client {
        name,
        script,
        python,
        mode,
        eras,
    }
}

const MODERN: Option<&str> = Some("2026-07-28");
const LEGACY: Option<&str> = Some("legacy");
const AUTO: Option<&str> = Some("auto");
const PYTHON_2: Option<&str> = Some("peers-2");
const FASTMCP: Option<&str> = Some("peers-fastmcp");

const CLIENTS: [Client; 13] = [
    client("python-1", "client_first.py", Some("peers"), None, FIRST),
    client(
        "python-2-legacy",
        "client_second.py",
        PYTHON_2,
        LEGACY,
        FIRST,
    ),
    client("python-2-auto", "client_second.py", PYTHON_2, AUTO, BOTH),
    client(
        "python-2-modern",
        "client_second.py",
        PYTHON_2,
        MODERN,
        SECOND,
    ),
    client(
        "fastmcp-legacy",
        "client_fastmcp.py",
        FASTMCP,
        LEGACY,
        FIRST,
    ),
    client("fastmcp-auto", "client_fastmcp.py", FASTMCP, AUTO, BOTH),
    client(
        "fastmcp-modern",
        "client_fastmcp.py",
        FASTMCP,
        MODERN,
        SECOND,
    ),
    client("typescript-1", "client_first.mjs", None, None, FIRST),
    client(
        "typescript-2-legacy",
        "client_second.mjs",
        None,
        LEGACY,
        FIRST,
    ),
    client("typescript-2-auto", "client_second.mjs", None, AUTO, BOTH),
    client(
        "typescript-2-modern",
        "client_second.mjs",
        None,
        MODERN,
        SECOND,
    ),
    client(
        "inspector-legacy",
        "client_inspector.mjs",
        None,
        LEGACY,
        FIRST,
    ),
    client(
        "inspector-modern",
        "client_inspector.mjs",
        None,
        Some("modern"),
        SECOND,
    ),
];

/// Returns the command of a script.
fn command(script: &str, python: Option<&str>) -> Command {
    let script = own(SCRIPTS).join(script);
    let mut command = match python {
        Some(folder) => Command::new(installed(&format!("{folder}/bin/python"))),
        None => Command::new(node(&installed(PACKAGES))),
    };
    command.arg(script).stderr(Stdio::null());
    if python.is_none() {
        command.arg(installed(PACKAGES).join("package.json"));
    }
    command
}

/// The values of the features that a client used.
type Used = BTreeMap<String, Value>;

/// Runs a client; a feature that failed has the text of the failure.
fn used(client: &Client, url: &str) -> Used {
    let mut command = command(client.script, client.python);
    command.arg(url).args(client.mode);
    let output = command.output().unwrap().stdout;
    let lines = String::from_utf8(output).unwrap();
    let lines = lines.lines().filter_map(|line| {
        let line: Value = serde_json::from_str(line).ok()?;
        let value = line.get("value").unwrap_or(&line["failed"]).clone();
        Some((line["feature"].as_str()?.to_owned(), value))
    });
    lines.collect()
}

/// The features that the clients used of one server.
struct Served {
    server: &'static Server,
    direct: BTreeMap<&'static str, Used>,
    linked: BTreeMap<&'static str, Used>,
}

/// Returns true if a client meets a server. The Inspector, which starts a process for each feature, meets one of each era.
fn meets(client: &Client, server: &Server) -> bool {
    client.script != "client_inspector.mjs" || server.python.is_none()
}

/// Starts a server and a proxy before it, and runs the clients with both.
fn serve(server: &'static Server) -> Served {
    let (_process, port) = started(&mut command(server.script, server.python), "");
    let direct = format!("http://127.0.0.1:{}/mcp", port.trim());
    let linked = Linked::before(&direct);
    let clients = CLIENTS.iter().filter(|client| meets(client, server));
    let speaking = clients
        .clone()
        .filter(|client| client.eras.contains(&server.era));
    Served {
        server,
        direct: speaking
            .map(|client| (client.name, used(client, &direct)))
            .collect(),
        linked: clients
            .map(|client| (client.name, used(client, &linked.url)))
            .collect(),
    }
}

/// Returns the names of the features whose values are the expected ones.
fn works(used: &Used, expected: &Used) -> BTreeSet<String> {
    let works = used
        .iter()
        .filter(|(name, value)| expected.get(*name) == Some(value));
    works.map(|(name, _)| name.clone()).collect()
}

/// Returns the features of a client: those that it uses with a server itself, or, of another era, with any.
fn has(client: &Client, server: &Served, all: &[Served], expected: &Used) -> BTreeSet<String> {
    if let Some(used) = server.direct.get(client.name) {
        return works(used, expected);
    }
    let runs = all.iter().filter_map(|one| one.direct.get(client.name));
    runs.flat_map(|used| works(used, expected)).collect()
}

/// Differences, with what the client got instead.
type Differences = BTreeMap<String, String>;

/// Returns the features that a client loses by the proxy.
fn lost(client: &Client, server: &Served, all: &[Served], expected: &Used) -> Differences {
    let Some(linked) = server.linked.get(client.name) else {
        return Differences::new();
    };
    let served = server.direct.values();
    let served: BTreeSet<String> = served.flat_map(|used| works(used, expected)).collect();
    let works = works(linked, expected);
    let has = has(client, server, all, expected);
    let lost = has.iter();
    let lost = lost.filter(|one| served.contains(*one) && !works.contains(*one));
    let lost = lost.map(|feature| {
        let name = format!("{} {} {feature}", client.name, server.server.name);
        (name, format!("{:?}", linked.get(feature)))
    });
    lost.collect()
}

/// Returns the features that each client does not have, and those that only the proxy prevents.
fn compare(all: &[Served], expected: &Used) -> Differences {
    let mut differences = Differences::new();
    for client in &CLIENTS {
        let mut seen = BTreeSet::new();
        for server in all {
            seen.extend(has(client, server, all, expected));
            differences.extend(lost(client, server, all, expected));
        }
        let none = expected.keys().filter(|feature| !seen.contains(*feature));
        let none = none.map(|feature| format!("{} none {feature}", client.name));
        differences.extend(none.map(|name| (name, String::new())));
    }
    differences
}

#[test]
#[ignore = "needs the peers of .ci/install-peers"]
fn clients_of_both_eras_use_servers_of_both_eras() {
    // Two at a time: a server of each era.
    let (first, second): (Vec<_>, Vec<_>) =
        SERVERS.iter().partition(|server| server.python.is_some());
    let all: Vec<Served> = thread::scope(|scope| {
        let halves = [first, second]
            .map(|half| scope.spawn(move || half.into_iter().map(serve).collect::<Vec<_>>()));
        halves
            .into_iter()
            .flat_map(|half| half.join().unwrap())
            .collect()
    });
    let expected = fs::read_to_string(own(EXPECTED)).unwrap();
    let expected: Used = serde_json::from_str(&expected).unwrap();
    let known = fs::read_to_string(own(DIFFERENCES)).unwrap();
    let known = known.lines().filter(|line| !line.starts_with('#'));
    let known = known.filter_map(|line| line.split_once(": "));
    let known: BTreeSet<String> = known.map(|(name, _)| name.to_owned()).collect();
    let found = compare(&all, &expected);
    for (name, got) in found.iter().filter(|(name, _)| !known.contains(*name)) {
        eprintln!("{name}: {got}");
    }
    let found: BTreeSet<String> = found.into_keys().collect();
    assert_eq!(found, known, "{DIFFERENCES}");
}

/// Servers of the era with a handshake whose messages come on one stream: the name, and the keys of the upstream.
fn on_one_stream() -> Vec<(&'static str, Option<Process>, String)> {
    let child = |script, python, mode: &str| {
        let command = command(script, python);
        let words: Vec<String> = [command.get_program()]
            .into_iter()
            .chain(command.get_args())
            .chain(["stdio".as_ref()])
            .map(|word| format!("{:?}", word.to_str().unwrap()))
            .collect();
        format!("command = [{}]\nmode = \"{mode}\"\n", words.join(", "))
    };
    let (python, node) = ("server_first.py", "server_first.mjs");
    let mut sse = command(python, Some("peers"));
    sse.arg("sse");
    let (process, port) = started(&mut sse, "");
    let port = port.trim();
    let sse =
        format!("url = \"http://127.0.0.1:{port}/sse\"\nprotocol = \"mcp\"\ntransport = \"sse\"\n");
    vec![
        (
            "python child",
            None,
            child(python, Some("peers"), "pipelined"),
        ),
        ("typescript child", None, child(node, None, "pipelined")),
        ("sse", Some(process), sse),
    ]
}

#[test]
#[ignore = "needs the peers of .ci/install-peers"]
fn clients_with_a_handshake_use_servers_without_response_streams() {
    let expected = fs::read_to_string(own(EXPECTED)).unwrap();
    let expected: Used = serde_json::from_str(&expected).unwrap();
    let known = fs::read_to_string(own(DIFFERENCES)).unwrap();
    let mut lost = Vec::new();
    for (name, _process, keys) in on_one_stream() {
        let clients = CLIENTS.iter().filter(|client| client.eras == FIRST);
        for client in clients.filter(|client| client.script != "client_inspector.mjs") {
            let linked = Linked::with(&keys);
            let used = used(client, &linked.url);
            let works = works(&used, &expected);
            let none = |feature: &str| format!("{} none {feature}:", client.name);
            let all = expected.keys().filter(|one| !works.contains(*one));
            let all = all.filter(|one| !known.contains(&none(one)));
            lost.extend(
                all.map(|one| format!("{} {name} {one}: {:?}", client.name, used.get(one))),
            );
        }
    }
    assert_eq!(lost, Vec::<String>::new());
}
