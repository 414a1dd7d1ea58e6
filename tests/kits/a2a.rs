//! Clients of both versions and both bindings of A2A, before agents of the other version or the other binding.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::processes::{Process, installed, started};
use super::{
    assert_equal_results, at_free_address, client, dualgauge, proxy_at, translated_routes,
    uncalled_routes, uncalled_routes_of, written_kit, written_main_file,
};

/// A virtual environment with a2a-sdk.
#[derive(Clone, Copy)]
enum Sdk {
    /// a2a-sdk 0.3
    Former,
    /// a2a-sdk 1.3
    Current,
}

impl Sdk {
    /// Returns the command that runs a script.
    fn script(self, name: &str) -> Command {
        let environment = match self {
            Sdk::Former => "peers-a2a-03",
            Sdk::Current => "peers-a2a",
        };
        let mut command = Command::new(installed(environment).join("bin/python"));
        command.arg(Path::new("tests/kits").join(name));
        command
    }

    /// Starts an agent and returns its address.
    fn agent(self, arguments: &[&str]) -> (Process, String) {
        let mut command = match self {
            Sdk::Former => self.script("a2a_v03_server.py"),
            Sdk::Current => self.script("a2a_server.py"),
        };
        started(command.args(arguments), "serving ")
    }

    /// Returns the results of a client.
    fn client(self, url: &str, arguments: &[&str]) -> String {
        let mut command = match self {
            Sdk::Former => self.script("a2a_v03_client.py"),
            Sdk::Current => self.script("a2a_client.py"),
        };
        client(command.arg(url).args(arguments))
    }
}

/// The stages of `rollout.default` before an agent of the HTTP+JSON binding.
const BEFORE_REST: &str = r#"{ rest = "passthrough", rpc = "translate" }"#;

/// The stages before an agent of the JSON-RPC binding.
const BEFORE_RPC: &str = r#"{ rest = "translate", rpc = "passthrough" }"#;

/// Returns the replacements of lines for an agent with these URLs.
fn before(rpc: &str, rest: &str, stages: &str) -> impl Fn(&str) -> Option<String> {
    move |line: &str| match line.split(' ').next()? {
        "default" => Some(format!("default = {stages}")),
        "public_url" => Some("public_url = \"http://PROXY\"".to_owned()),
        "url" if line.contains("# the endpoint of") => Some(format!("url = \"{rpc}\"")),
        "url" => Some(format!("url = \"{rest}\"")),
        _ => None,
    }
}

/// Starts a proxy at the address that its agent card names, and returns its URL.
fn named_proxy(main: &Path) -> (Process, String) {
    let text = fs::read_to_string(main).unwrap();
    // The card names the address of the proxy, so it is known before its start.
    at_free_address(|listen| {
        let listen = listen.to_string();
        fs::write(main, text.replace("PROXY", &listen)).unwrap();
        proxy_at(main, &listen)
    })
}

/// Fails if a route of the main file, of those with this prefix, was not called through the proxy, which ends.
fn assert_all_called(proxy: Process, main: &Path, prefix: &str) {
    let mut uncalled = uncalled_routes_of(main, &translated_routes(proxy, main));
    // a2a-sdk subscribes by `POST`.
    uncalled.retain(|route| route.starts_with(prefix) && !route.ends_with("task.subscribe-get"));
    assert_eq!(uncalled, Vec::<String>::new());
}

/// Compares the results of a client with an agent of its own binding, and with one of the other binding through the kit.
fn assert_a2a(binding: &str, other: &str, stages: &str) {
    let (_own, url) = Sdk::Current.agent(&[binding]);
    let direct = Sdk::Current.client(&url, &[binding]);
    let (_other, url) = Sdk::Current.agent(&[other]);
    let folder = tempfile::tempdir().unwrap();
    let main = written_kit("a2a", folder.path(), before(&url, &url, stages));
    let (proxy, url) = named_proxy(&main);
    assert_equal_results(&direct, &Sdk::Current.client(&url, &[binding]));
    let mut uncalled = uncalled_routes("a2a", &translated_routes(proxy, &main));
    uncalled.retain(|route| !route.ends_with("task.subscribe-get") && !route.starts_with("v03"));
    assert_eq!(uncalled, Vec::<String>::new());
}

#[test]
#[ignore = "needs .ci/install-kits"]
fn rest_clients_of_a2a_get_the_results_of_a_json_rpc_agent() {
    assert_a2a("HTTP+JSON", "JSONRPC", BEFORE_RPC);
}

#[test]
#[ignore = "needs .ci/install-kits"]
fn json_rpc_clients_of_a2a_get_the_results_of_a_rest_agent() {
    assert_a2a("JSONRPC", "HTTP+JSON", BEFORE_REST);
}

/// Compares the results of a client of A2A 0.3 with an agent that knows its version, and with one of A2A 1.0 through the kit.
/// The names of the routes for the client begin with `routes`.
fn assert_a2a_v03(binding: &str, routes: &str) {
    let (_own, url) = Sdk::Current.agent(&[binding, "0.3"]);
    let direct = Sdk::Former.client(&url, &[binding]);
    let (_agent, url) = Sdk::Current.agent(&["JSONRPC"]);
    let folder = tempfile::tempdir().unwrap();
    let main = written_kit("a2a", folder.path(), before(&url, &url, BEFORE_RPC));
    let (proxy, url) = named_proxy(&main);
    assert_equal_results(&direct, &Sdk::Former.client(&url, &[binding]));
    assert_all_called(proxy, &main, routes);
}

#[test]
#[ignore = "needs .ci/install-kits"]
fn json_rpc_clients_of_a2a_0_3_get_the_results_of_an_agent_that_knows_their_version() {
    assert_a2a_v03("JSONRPC", "v03.");
}

#[test]
#[ignore = "needs .ci/install-kits"]
fn rest_clients_of_a2a_0_3_get_the_results_of_an_agent_that_knows_their_version() {
    assert_a2a_v03("HTTP+JSON", "v03-rest.");
}

/// Compares the results of a client of A2A 0.3 with an agent that knows its version, and with one of A2A 1.0 that speaks
/// HTTP+JSON only, through two proxies with the kit: the first one before JSON-RPC, the second one before HTTP+JSON.
fn assert_a2a_v03_before_rest(binding: &str, routes: &str) {
    let (_own, url) = Sdk::Current.agent(&[binding, "0.3"]);
    let direct = Sdk::Former.client(&url, &[binding]);
    let (_agent, agent) = Sdk::Current.agent(&["HTTP+JSON"]);
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [first, second] = folders.each_ref().map(|folder| folder.path());
    let second = written_kit("a2a", second, before(&agent, &agent, BEFORE_REST));
    let (_second, rpc) = named_proxy(&second);
    let first = written_kit("a2a", first, before(&rpc, &agent, BEFORE_RPC));
    let (proxy, url) = named_proxy(&first);
    assert_equal_results(&direct, &Sdk::Former.client(&url, &[binding]));
    assert_all_called(proxy, &first, routes);
}

#[test]
#[ignore = "needs .ci/install-kits"]
fn json_rpc_clients_of_a2a_0_3_get_the_results_of_a_rest_agent() {
    assert_a2a_v03_before_rest("JSONRPC", "v03.");
}

#[test]
#[ignore = "needs .ci/install-kits"]
fn rest_clients_of_a2a_0_3_get_the_results_of_a_rest_agent() {
    assert_a2a_v03_before_rest("HTTP+JSON", "v03-rest.");
}

/// Writes the kit for an agent of A2A 0.3 and returns its main file.
fn written_for_v03_agent(folder: &Path, agent: &str) -> PathBuf {
    written_main_file(
        "a2a",
        "agent-v03.toml",
        folder,
        before(agent, agent, BEFORE_RPC),
    )
}

/// Compares the results of a client of A2A 1.0 with an agent of A2A 0.3, which a2a-sdk 1.3 calls by itself over JSON-RPC, and
/// those that it gets as a client of A2A 1.0 through the kit.
fn assert_a2a_to_v03(binding: &str, routes: &str) {
    let (_agent, agent) = Sdk::Former.agent(&["JSONRPC"]);
    let direct = Sdk::Current.client(&agent, &["JSONRPC", "0.3"]);
    let folder = tempfile::tempdir().unwrap();
    let main = written_for_v03_agent(folder.path(), &agent);
    let (proxy, url) = named_proxy(&main);
    assert_equal_results(&direct, &Sdk::Current.client(&url, &[binding, "0.3"]));
    assert_all_called(proxy, &main, routes);
}

#[test]
#[ignore = "needs .ci/install-kits"]
fn json_rpc_clients_of_a2a_1_0_get_the_results_of_an_agent_of_a2a_0_3() {
    assert_a2a_to_v03("JSONRPC", "to-v03.");
}

#[test]
#[ignore = "needs .ci/install-kits"]
fn rest_clients_of_a2a_1_0_get_the_results_of_an_agent_of_a2a_0_3() {
    assert_a2a_to_v03("HTTP+JSON", "to-v03-rest.");
}

#[test]
#[ignore = "needs .ci/install-kits"]
fn clients_of_a2a_0_3_get_the_same_results_through_the_kit() {
    let (_agent, agent) = Sdk::Former.agent(&["JSONRPC"]);
    let direct = Sdk::Former.client(&agent, &["JSONRPC", "0.3"]);
    let folder = tempfile::tempdir().unwrap();
    let main = written_for_v03_agent(folder.path(), &agent);
    let (_proxy, url) = named_proxy(&main);
    assert_equal_results(&direct, &Sdk::Former.client(&url, &["JSONRPC", "0.3"]));
}

/// Takes the comment signs from the tables that a file has as comments.
fn with_examples(file: &Path) {
    let text = fs::read_to_string(file).unwrap();
    let mut is_table = false;
    let lines = text.lines().map(|line| {
        let example = line.strip_prefix("#     ");
        is_table = example.is_some_and(|example| is_table || example.starts_with('['));
        example.filter(|_| is_table).unwrap_or(line)
    });
    let lines: Vec<&str> = lines.collect();
    fs::write(file, lines.join("\n")).unwrap();
}

#[test]
fn the_canary_of_a2a_takes_its_comments_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let main = written_kit("a2a", folder.path(), |_| None);
    let flags = main.with_file_name("flags.toml");
    with_examples(&main);
    with_examples(&flags);
    let checked = client(dualgauge().args(["check", "--config"]).arg(&main));
    assert!(checked.contains("1 flag, 1 client"), "{checked}");
    // All callers, to see which calls are taken.
    let text = fs::read_to_string(&flags).unwrap();
    fs::write(&flags, text.replace("percent = 5", "percent = 100")).unwrap();
    for (params, is_taken) in [
        (r#"{"id":"7"}"#, true),
        (r#"{"tenant":"acme","id":"7"}"#, true),
        (r#"{"tenant":"acme","message":{}}"#, false),
    ] {
        let method = if is_taken { "GetTask" } else { "SendMessage" };
        let call = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        let mut command = dualgauge();
        command.args(["explain", "--config"]).arg(&main);
        let explained = client(command.args(["--from", "127.0.0.1", "-d", &call, "/"]));
        let found = explained.contains("canary");
        assert_eq!(found, is_taken, "{explained}");
    }
}
