//! The program under a service manager: sockets that it is given, and what it says of itself.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixDatagram;

use command_fds::{CommandFdExt, FdMapping};
use tempfile::TempDir;

use crate::support::{Proxy, Upstream, WITHIN, Wire, program, rest_only};

const ANSWER: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

fn folder(upstream: &Upstream) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("dualgauge.toml"), rest_only(upstream)).unwrap();
    folder
}

fn command(folder: &TempDir, listen: &str) -> std::process::Command {
    let mut command = program(&["run", "--listen", listen, "--admin", "127.0.0.1:0"]);
    command
        .arg("--config")
        .arg(folder.path().join("dualgauge.toml"));
    command
}

/// What is said, up to the first message that begins like this.
fn told(socket: &UnixDatagram, wanted: &str) -> (Vec<String>, String) {
    let mut before = Vec::new();
    loop {
        let mut space = [0; 1024];
        let length = socket.recv(&mut space).unwrap();
        let message = String::from_utf8(space[..length].to_vec()).unwrap();
        if message.starts_with(wanted) {
            return (before, message);
        }
        before.push(message);
    }
}

#[test]
fn a_service_manager_is_told_of_every_turn_and_that_the_process_lives() {
    let upstream = Upstream::answering(ANSWER);
    let folder = folder(&upstream);
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(WITHIN)).unwrap();
    let mut command = command(&folder, "127.0.0.1:0");
    command
        .env("NOTIFY_SOCKET", &path)
        .env("WATCHDOG_USEC", "300000");
    let mut proxy = Proxy::launch(command, folder);
    let (_, ready) = told(&socket, "READY=1");
    let status = format!("STATUS=serving http://{}", proxy.address());
    assert!(ready.contains(&status), "{ready}");
    // Again and again.
    told(&socket, "WATCHDOG=1");
    told(&socket, "WATCHDOG=1");
    proxy.signal("HUP");
    let (_, reloading) = told(&socket, "RELOADING=1");
    let since = reloading.split_once("MONOTONIC_USEC=").unwrap().1;
    let since: u64 = since.lines().next().unwrap().parse().unwrap();
    assert!(since > 0);
    told(&socket, "READY=1");
    proxy.replace();
    let (before, replaced) = told(&socket, "READY=1\nMAINPID=");
    // The next process says for itself that it serves, a moment before or after.
    if !before.iter().any(|said| said.contains(&status)) {
        told(&socket, &format!("READY=1\n{status}"));
    }
    assert!(
        replaced.ends_with(&format!("={}", proxy.process())),
        "{replaced}"
    );
    told(&socket, "WATCHDOG=1");
    proxy.signal("TERM");
    let (before, _) = told(&socket, "STOPPING=1");
    // Nobody has said that the service ends because one process did.
    assert!(
        !before.iter().any(|said| said.contains("STOPPING")),
        "{before:?}"
    );
    let stopped = proxy.wait();
    assert!(stopped.status.success(), "{stopped:?}");
}

#[test]
fn sockets_that_are_given_are_used_with_the_connections_that_wait_in_them() {
    let upstream = Upstream::answering(ANSWER);
    let listeners = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let [first, second, admin]: [SocketAddr; 3] =
        listeners.each_ref().map(|own| own.local_addr().unwrap());
    // They come before the program is there.
    let mut early = [first, second].map(Wire::connect);
    for wire in &mut early {
        wire.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    let folder = folder(&upstream);
    let mut command = command(&folder, &first.to_string());
    let mappings = (3..).zip(listeners).map(|(child_fd, listener)| FdMapping {
        parent_fd: listener.into(),
        child_fd,
    });
    command.fd_mappings(mappings.collect()).unwrap();
    command
        .env("LISTEN_FDS", "3")
        .env("LISTEN_FDNAMES", "listen:other.socket:admin");
    let proxy = Proxy::launch(command, folder);
    assert_eq!((proxy.address(), proxy.admin()), (first, admin));
    for mut wire in early {
        assert_eq!(wire.read_answer().text(), "hi");
    }
    assert_eq!(proxy.ask("GET", "/readyz", "").status(), 200);
    let line = proxy
        .log_line(&["the inherited socket listens on an address other than the configured one"]);
    assert!(line.contains(&format!("given={second}")), "{line}");
    assert!(!proxy.log().contains(&format!("given={first}")));
}
