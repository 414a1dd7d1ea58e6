//! File descriptors: clients that use up what they may leave the rest of the process what it needs.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use tempfile::TempDir;

use crate::scene::call;
use crate::stdio::child;
use crate::support::{Proxy, Track, Upstream, Wire, becomes, rest_only};
use crate::two_servers::{MOVER, Servers};

/// The program behind a command of a shell, such as one that sets a limit.
fn start_behind(command: &str, files: &[(&str, &str)]) -> Proxy {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    launch(command, folder)
}

fn launch(command: &str, folder: TempDir) -> Proxy {
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", &format!("{command} && exec \"$0\" \"$@\"")])
        .arg(env!("CARGO_BIN_EXE_dualgauge"))
        .args(["run", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
        .arg("--config")
        .arg(folder.path().join("dualgauge.toml"))
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    Proxy::launch(shell, folder)
}

#[test]
fn probes_and_the_kill_switch_work_when_clients_have_used_up_their_descriptors() {
    let servers = Servers::start();
    let config = format!("{}\n[rollout]\nflags = \"flags.toml\"\n", servers.config());
    let files = [("dualgauge.toml", &*config), ("flags.toml", MOVER)];
    let proxy = start_behind("ulimit -n 256", &files);
    let warned = proxy.log_line(&["limits.connections", "ulimit -Hn", "LimitNOFILE"]);
    assert!(warned.contains("limit=256"), "{warned}");

    let limit = proxy.metrics().value("dualgauge_client_connections_limit");
    assert!((1.0..256.0).contains(&limit), "{limit}");
    let mut clients: Vec<_> = (0..300).map(|_| proxy.connect()).collect();
    let closed = || proxy.metrics().value("dualgauge_refused_connections_total");
    becomes(|| closed() >= 300.0 - limit, &true);
    // Slow clients of the admin listener as well.
    let slow: Vec<_> = (0..60).map(|_| Wire::connect(proxy.admin())).collect();
    for path in ["/healthz", "/readyz"] {
        assert_eq!(proxy.ask("GET", path, "").status(), 200, "{path}");
    }
    // Each client that has a place gets a connection to its server, and the kill switch acts.
    let asks = "GET /things/7 HTTP/1.1\r\nHost: proxy.example\r\nX-Client-Id: mover\r\n\r\n";
    let mut answered_by = |server: &str| {
        for client in &mut clients[..30] {
            client.send(asks);
        }
        for client in &mut clients[..30] {
            assert_eq!(client.read_answer().json()["by"], server);
        }
    };
    answered_by("rpc");
    assert_eq!(proxy.ask("PUT", "/api/v1/kill", "").status(), 200);
    answered_by("rest");
    let open = proxy.metrics().value("process_open_fds");
    assert!(open < 256.0, "{open}");
    drop((clients, slow));
    let log = proxy.stop().log;
    assert!(!log.contains("cannot accept connections"), "{log}");
}

/// The soft limit of open files of a process.
fn soft_limit(process: u64) -> Option<u64> {
    let limits = fs::read_to_string(Path::new("/proc").join(format!("{process}/limits"))).ok()?;
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[test]
fn the_soft_limit_is_raised_and_children_keep_the_former_one() {
    let config = format!(
        "[listen]\nworkers = 1\n[upstream.child]\nside = \"rpc\"\n{}",
        child::command()
    );
    let files = [("dualgauge.toml", &*config)];
    let mut proxy = start_behind("ulimit -Sn 300", &files);
    let hard = getrlimit(Resource::Nofile).maximum;
    let child = |proxy: &Proxy| {
        let answer = proxy.rpc(call("echo", "{}")).json();
        answer["result"]["pid"].as_u64()
    };
    let first = child(&proxy).unwrap();
    assert_eq!(soft_limit(proxy.process().into()), hard);
    becomes(|| soft_limit(first), &Some(300));
    // The process that follows has the limit of this one, and knows the former one.
    proxy.replace();
    let next = || child(&proxy).filter(|next| *next != first);
    becomes(|| next().is_some(), &true);
    assert_eq!(soft_limit(proxy.process().into()), hard);
    becomes(|| next().and_then(soft_limit), &Some(300));
}

/// Sets the soft limit of a process that runs.
fn set_limit(proxy: &Proxy, current: Option<u64>) {
    let process = Pid::from_raw(i32::try_from(proxy.process()).unwrap());
    let maximum = getrlimit(Resource::Nofile).maximum;
    let limits = Rlimit { current, maximum };
    prlimit(process, Resource::Nofile, limits).unwrap();
}

#[test]
fn connections_wait_where_no_descriptor_is_left_and_are_served_later() {
    let upstream = Upstream::start();
    let proxy = Proxy::start(&rest_only(&upstream));
    let track = Track { proxy, upstream };
    let get = "GET /x HTTP/1.1\r\nHost: a.example\r\n\r\n";
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
    let mut before = track.open(get);
    before.server.send(answer);
    assert_eq!(before.client.read_answer().status(), 200);

    set_limit(&track.proxy, Some(3));
    let mut waits = track.proxy.connect();
    waits.send(get);
    let mut probe = Wire::connect(track.proxy.admin());
    probe.send("GET /healthz HTTP/1.0\r\n\r\n");
    for listener in ["listener=calls", "listener=admin"] {
        track
            .proxy
            .log_line(&["cannot accept connections", listener]);
    }
    // Connections that are there go on.
    before.client.send(get);
    before.server.read_request();
    before.server.send(answer);
    assert_eq!(before.client.read_answer().status(), 200);

    set_limit(&track.proxy, getrlimit(Resource::Nofile).maximum);
    assert_eq!(probe.read_answer().status(), 200);
    // The connection to the server is used again.
    before.server.read_request();
    before.server.send(answer);
    assert_eq!(waits.read_answer().status(), 200);
    let log = track.proxy.stop().log;
    assert!(log.matches("listener=calls").count() <= 2, "{log}");
}
