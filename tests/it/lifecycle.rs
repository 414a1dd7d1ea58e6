//! The beginning of a run: arguments, variables, addresses and workers.

use std::fs;
use std::net::TcpListener;
use std::process::Command;

use tempfile::TempDir;

use crate::http2::begin;
use crate::support::{Proxy, Upstream, Wire, becomes, both, program, rest_only, run_to_end};
use crate::two_servers::{MOVER, Servers};

const ROUTE: &str = "[[route]]\nname = \"a\"\nrest = \"GET /a\"\nrpc = \"a\"\n";

fn folder(config: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("dualgauge.toml"), config).unwrap();
    folder
}

/// `run` with the configuration of a folder, and with what a test adds.
fn run_in(folder: &TempDir, arguments: &[&str]) -> Command {
    let mut command = program(&["run"]);
    command
        .arg("--config")
        .arg(folder.path().join("dualgauge.toml"))
        .args(arguments);
    command
}

#[test]
fn a_run_prints_first_where_it_can_be_reached() {
    let upstream = Upstream::nowhere();
    let proxy = Proxy::start(&rest_only(&upstream));
    let (address, admin) = (proxy.address(), proxy.admin());
    let line = format!("serving http://{address}, admin http://{admin}");
    assert_eq!(proxy.printed("serving").lines().next(), Some(&*line));
}

#[test]
fn a_run_prints_what_it_serves() {
    let (rest, rpc) = (Upstream::nowhere(), Upstream::nowhere());
    let config = format!(
        "{}[rollout]\nflags = \"flags.toml\"\n[[client]]\nname = \"app\"\n\
         match = {{ header = {{ x-client-id = \"app\" }} }}\n\
         [[route]]\nname = \"things.read\"\nrest = \"GET /things/{{id}}\"\nrpc = \"things/read\"\n",
        both(&rest, &rpc)
    );
    let flag = "[[flag]]\nname = \"app\"\nclient = \"app\"\nstage = \"translate\"\n";
    let proxy = Proxy::start_with(&config, &[("flags.toml", flag)]);
    let (address, folder) = (proxy.address(), proxy.folder().display());
    let printed = proxy.printed("  state ");
    let (old, new) = (rest.address(), rpc.address());
    let version = env!("CARGO_PKG_VERSION");
    let summary = format!(
        "  version        {version}
  configuration  {folder}/dualgauge.toml, {folder}/flags.toml
  REST           http://{address}/ (every path; calls of no route pass through)
  RPC            http://{address}/, http://{address}/rpc, http://{address}/jsonrpc, http://{address}/mcp
  upstreams      new (rpc) http://{new}, old (rest) http://{old}
  loaded         1 route, 1 flag, 1 client
  state          {folder}/"
    );
    let (_, below) = printed.split_once('\n').unwrap();
    assert!(below.starts_with(&summary), "{below}\n{summary}");
}

#[test]
fn a_run_behind_tls_says_so() {
    let upstream = Upstream::nowhere();
    let (_, proxy) = begin(&format!("{}[limits]\n", rest_only(&upstream)));
    let (address, admin) = (proxy.address(), proxy.admin());
    let line = format!("serving https://{address}, admin http://{admin}");
    assert_eq!(proxy.printed("serving").lines().next(), Some(&*line));
}

#[test]
fn every_problem_of_a_bad_configuration_is_printed_and_nothing_is_served() {
    let config = r#"
colour = "red"
[upstream.old]
side = "rset"
[[route]]
name = "a"
rest = "GET /a/{"
rpc = "a"
[rollout]
flags = "flags.toml"
"#;
    let folder = folder(config);
    fs::write(folder.path().join("flags.toml"), "[[flag]]\nname = \"x\"\n").unwrap();
    let ended = run_to_end(run_in(&folder, &["--listen", "here"]));
    assert_eq!((ended.code, ended.output.as_str()), (Some(1), ""));
    let printed = [
        "dualgauge.toml:2: colour: ",
        "dualgauge.toml:3: upstream.old: `url` is missing",
        "dualgauge.toml:4: upstream.old.side: ",
        "hint: did you mean `rest`?",
        "--listen: listen.address: ",
    ];
    for text in printed {
        assert!(
            ended.errors.contains(text),
            "no {text:?} in {}",
            ended.errors
        );
    }
}

#[test]
fn the_problems_of_the_flags_file_are_printed_as_well() {
    let upstream = Upstream::nowhere();
    let config = format!(
        "{}[rollout]\nflags = \"flags.toml\"\ndefault = {{ rest = \"translate\" }}\n{ROUTE}",
        rest_only(&upstream)
    );
    let folder = folder(&config);
    fs::write(folder.path().join("flags.toml"), "[[flag]]\nname = \"x\"\n").unwrap();
    let ended = run_to_end(run_in(&folder, &[]));
    assert_eq!((ended.code, ended.output.as_str()), (Some(1), ""));
    for text in [
        "flags.toml:1: flag[0]: `stage` is missing",
        "rollout.default.rest: ",
    ] {
        assert!(
            ended.errors.contains(text),
            "no {text:?} in {}",
            ended.errors
        );
    }
}

#[test]
fn a_variable_is_over_the_file_and_an_argument_over_the_variable() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let upstream = Upstream::answering("HTTP/1.1 204 No Content\r\n\r\n");
    let config = format!("{}[admin]\naddress = \"{taken}\"\n", rest_only(&upstream));
    let config = config.replace("[listen]\n", &format!("[listen]\naddress = \"{taken}\"\n"));

    let places = folder(&config);
    let mut command = run_in(&places, &[]);
    command
        .env("DUALGAUGE_LISTEN__ADDRESS", "127.0.0.1:0")
        .env("DUALGAUGE_ADMIN__ADDRESS", "127.0.0.1:0");
    let proxy = Proxy::launch(command, places);
    assert_eq!(proxy.rest("GET", "/", &[], "").status(), 204);

    let places = folder(&config);
    let mut command = run_in(
        &places,
        &["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"],
    );
    command
        .env("DUALGAUGE_LISTEN__ADDRESS", &taken)
        .env("DUALGAUGE_ADMIN__ADDRESS", &taken);
    let proxy = Proxy::launch(command, places);
    assert_eq!(proxy.rest("GET", "/", &[], "").status(), 204);
}

#[test]
fn an_address_that_is_taken_is_named_with_its_key() {
    let upstream = Upstream::answering("HTTP/1.1 204 No Content\r\n\r\n");
    let first = Proxy::start(&rest_only(&upstream));
    let (listen, admin) = (first.address().to_string(), first.admin().to_string());
    let free = "127.0.0.1:0";
    let cases = [
        ("`--listen` or `listen.address`", &*listen, free, &listen),
        ("`--admin` or `admin.address`", free, &*admin, &admin),
    ];
    for (settings, listen, admin, taken) in cases {
        let folder = folder(&rest_only(&upstream));
        let ended = run_to_end(run_in(&folder, &["--listen", listen, "--admin", admin]));
        assert_eq!((ended.code, ended.output.as_str()), (Some(1), ""));
        let said = format!(
            "cannot listen on {taken}: another process uses this port; set another address with {settings}"
        );
        assert!(ended.errors.contains(&said), "{}", ended.errors);
        assert!(ended.errors.contains("in use"), "{}", ended.errors);
    }
    assert_eq!(first.rest("GET", "/", &[], "").status(), 204);
}

#[test]
fn a_state_folder_has_one_process() {
    let upstream = Upstream::answering("HTTP/1.1 204 No Content\r\n\r\n");
    let first = Proxy::start(&rest_only(&upstream));
    let mut second = program(&["run", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
    second
        .arg("--config")
        .arg(first.folder().join("dualgauge.toml"));
    let ended = run_to_end(second);
    assert_eq!(ended.code, Some(1));
    let said = "error: another dualgauge process uses the state folder `";
    assert!(ended.errors.starts_with(said), "{}", ended.errors);
    let said = "`; stop it, or set a different `rollout.state` for each";
    assert!(ended.errors.ends_with(said), "{}", ended.errors);
}

/// Two workers, and so many connections that each of them has some.
const CONNECTIONS: usize = 40;

fn two_workers(config: &str) -> String {
    config.replace("workers = 1", "workers = 2")
}

#[test]
fn two_workers_both_serve() {
    let servers = Servers::start();
    let proxy = Proxy::start(&two_workers(&servers.config()));
    for _ in 0..CONNECTIONS {
        let answer = proxy.rest("GET", "/things/7", &[], "");
        assert_eq!(answer.status(), 200);
    }
    // Call by call, each worker needs one connection to the upstream, and has its own.
    let open = r#"dualgauge_upstream_connections{side="rest"}"#;
    assert_eq!(proxy.metrics().value(open), 2.0);
    let calls = || proxy.metrics().table("dualgauge_calls_total", &LABELS);
    let row = "things.read other rest passthrough success none".to_owned();
    becomes(calls, &[(row, CONNECTIONS as f64)].into());
}

const LABELS: [&str; 6] = ["route", "client", "side", "stage", "outcome", "blame"];

#[test]
fn a_flip_reaches_every_worker_before_it_is_answered() {
    let servers = Servers::start();
    let proxy = Proxy::start_with_flags(&two_workers(&servers.config()), MOVER);
    let mut clients: Vec<Wire> = (0..CONNECTIONS).map(|_| proxy.connect()).collect();
    let mut all_answered_by = |side: &str| {
        for client in &mut clients {
            client.send("GET /things/7 HTTP/1.1\r\nHost: a\r\nx-client-id: mover\r\n\r\n");
            assert_eq!(client.read_answer().json()["by"], side);
        }
    };
    for (stage, side) in [
        ("passthrough", "rest"),
        ("translate", "rpc"),
        ("passthrough", "rest"),
    ] {
        let flip = format!(r#"{{"stage":"{stage}","percent":100}}"#);
        let answer = proxy.ask("PUT", "/api/v1/flags/mover", &flip);
        assert_eq!(answer.status(), 200, "{answer:?}");
        all_answered_by(side);
    }
}
