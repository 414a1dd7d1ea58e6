//! Transmission: a client of the old messages before Debian's daemon, directly and through two proxies, of which the first
//! one translates each message to JSON-RPC, and the second one back.

use std::cell::RefCell;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{
    Process, assert_equal_results, client, installed, proxy, translated_routes, uncalled_routes,
    written_kit,
};

/// The upstream that speaks the old messages.
const TO_OLD: &str = "[upstream.old]";
/// The upstream that speaks JSON-RPC.
const TO_NEW: &str = "[upstream.new]";

/// Starts a daemon with its state in this folder, and returns its port. The daemon cannot choose one by itself.
fn daemon(folder: &Path) -> (Process, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let root = installed("kits-transmission").join("usr");
    let mut command = Command::new(root.join("bin/transmission-daemon"));
    command.env("LD_LIBRARY_PATH", root.join("lib/x86_64-linux-gnu"));
    command.arg("--foreground").arg("--config-dir").arg(folder);
    command.arg("--download-dir").arg(folder);
    command.args(["--port", &address.port().to_string()]);
    command.args(["--rpc-bind-address", "127.0.0.1"]);
    command.args(["--no-portmap", "--no-dht", "--no-lpd", "--no-utp"]);
    command.args(["--log-error", "--logfile"]);
    let process = Process(command.arg(folder.join("log")).spawn().unwrap());
    (process, address.port())
}

/// Starts a proxy with the kit before one upstream, and returns it with its main file and its URL.
fn kit(folder: &Path, upstream: &str, url: &str) -> (Process, PathBuf, String) {
    let section = RefCell::new(String::new());
    let replaced = |line: &str| {
        if line.starts_with('[') {
            line.clone_into(&mut section.borrow_mut());
        }
        if line.starts_with("flags = ") && upstream == TO_OLD {
            return Some(r#"default = { rest = "passthrough", rpc = "translate" }"#.to_owned());
        }
        let is_url = line.starts_with("url = ") && *section.borrow() == upstream;
        is_url.then(|| format!("url = \"{url}\""))
    };
    let main = written_kit("transmission", folder, replaced);
    let (proxy, url) = proxy(&main);
    (proxy, main, url)
}

/// Runs the client with the URL of a daemon or a proxy, and the port of the daemon.
fn results(url: &str, port: u16) -> String {
    let mut command = Command::new(installed("kits-python").join("bin/python"));
    command.arg("tests/kits/transmission.py");
    command.arg(format!("{url}/transmission/rpc"));
    client(command.arg(port.to_string()))
}

#[test]
#[ignore = "needs .ci/install-kits"]
fn transmission_rpc_gets_the_same_results_through_json_rpc() {
    let folders = [(); 4].map(|()| tempfile::tempdir().unwrap());
    let [direct, behind, first, second] = folders.each_ref().map(tempfile::TempDir::path);
    let (_direct, port) = daemon(direct);
    let expected = results(&format!("http://127.0.0.1:{port}"), port);

    let (_behind, port) = daemon(behind);
    let (to_old, to_old_main, url) = kit(second, TO_OLD, &format!("http://127.0.0.1:{port}"));
    let url = format!("{url}/transmission/rpc");
    let (to_new, to_new_main, url) = kit(first, TO_NEW, &url);
    assert_equal_results(&expected, &results(&url, port));
    for (proxy, main) in [(to_new, to_new_main), (to_old, to_old_main)] {
        let uncalled = uncalled_routes("transmission", &translated_routes(proxy, &main));
        assert_eq!(uncalled, Vec::<String>::new());
    }
}
