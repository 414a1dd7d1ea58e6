//! Transmission: a client of the old messages before Debian's daemon, directly and through two proxies, of which the first
//! one translates each message to JSON-RPC, and the second one back.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::processes::line_of;
use super::{
    Process, assert_equal_results, at_free_address, client, installed, keep_upstream, proxy,
    translated_routes, uncalled_routes, written_kit,
};

/// Starts a daemon with its state in this folder, and returns its URL.
fn daemon(folder: &Path) -> (Process, String) {
    let root = installed("kits-transmission").join("usr");
    // The libraries are in a folder for the architecture.
    let libraries = fs::read_dir(root.join("lib")).unwrap();
    let libraries = env::join_paths(libraries.map(|folder| folder.unwrap().path())).unwrap();
    at_free_address(|address| {
        let mut command = Command::new(root.join("bin/transmission-daemon"));
        command.env("LD_LIBRARY_PATH", &libraries);
        command.arg("--foreground").arg("--config-dir").arg(folder);
        command.arg("--download-dir").arg(folder);
        command.args(["--port", &address.port().to_string()]);
        command.args(["--rpc-bind-address", "127.0.0.1"]);
        command.args(["--no-portmap", "--no-dht", "--no-lpd", "--no-utp"]);
        // Only messages for debugging tell that it listens.
        command.arg("--log-debug").stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let log = child.stderr.take().unwrap();
        let process = Process(child);
        let listens = |line: &str| match line {
            _ if line.contains("Started listening on ") => Some(true),
            _ if line.contains("Unable to bind to ") => Some(false),
            _ => None,
        };
        let listens = line_of(log, listens) == Some(true);
        listens.then(|| (process, format!("http://{address}")))
    })
}

/// Starts a proxy with the kit before one upstream, and returns it with its main file and its URL.
fn kit(folder: &Path, upstream: &str, url: &str) -> (Process, PathBuf, String) {
    let main = written_kit("transmission", folder, |_| None);
    keep_upstream(&main, upstream, url);
    let (proxy, url) = proxy(&main);
    (proxy, main, url)
}

/// Runs the client with the URL of a daemon or a proxy.
fn results(url: &str) -> String {
    let mut command = Command::new(installed("kits-python").join("bin/python"));
    command.arg("tests/kits/transmission.py");
    client(command.arg(format!("{url}/transmission/rpc")))
}

#[test]
#[ignore = "needs .ci/install-kits"]
fn transmission_rpc_gets_the_same_results_through_json_rpc() {
    let folders = [(); 4].map(|()| tempfile::tempdir().unwrap());
    let [direct, behind, first, second] = folders.each_ref().map(tempfile::TempDir::path);
    let (_direct, url) = daemon(direct);
    let expected = results(&url);

    let (_behind, url) = daemon(behind);
    let (to_old, to_old_main, url) = kit(second, "old", &url);
    let (to_new, to_new_main, url) = kit(first, "new", &url);
    assert_equal_results(&expected, &results(&url));
    for (proxy, main) in [(to_new, to_new_main), (to_old, to_old_main)] {
        let uncalled = uncalled_routes("transmission", &translated_routes(proxy, &main));
        assert_eq!(uncalled, Vec::<String>::new());
    }
}
