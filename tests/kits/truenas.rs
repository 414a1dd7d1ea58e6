//! TrueNAS: clients of REST v2.0 before a server that has only JSON-RPC over a WebSocket. The servers are imitations with
//! the same records.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{
    Process, assert_equal_results, client, installed, proxy, started, translated_routes,
    uncalled_routes, written_kit,
};

fn python(script: &str) -> Command {
    let mut command = Command::new(installed("kits-python").join("bin/python"));
    command.arg(format!("tests/kits/{script}"));
    command
}

/// Starts a server with one of the APIs over TLS, and returns its address.
fn server(api: &str, folder: &Path) -> (Process, String) {
    let mut command = python("truenas_server.py");
    command.arg(api).arg(folder.join("cert.pem"));
    started(command.arg(folder.join("key.pem")), "serving ")
}

/// Writes a certificate for this address, and its key.
fn write_certificate(folder: &Path) {
    let issued = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    fs::write(folder.join("cert.pem"), issued.cert.pem()).unwrap();
    fs::write(folder.join("key.pem"), issued.signing_key.serialize_pem()).unwrap();
}

#[test]
#[ignore = "needs .ci/install-kits"]
fn clients_of_rest_get_its_results_from_json_rpc() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write_certificate(folder);
    let (_rest, url) = server("rest", folder);
    let direct = client(python("truenas.py").arg(&url));

    let (_rpc, url) = server("rpc", folder);
    let certificate = folder.join("cert.pem");
    let key = folder.join("key.pem");
    let replaced = |line: &str| {
        if line == "[listen]" {
            let tls = format!("tls = {{ certificate = {certificate:?}, key = {key:?} }}");
            return Some(format!("{line}\n{tls}"));
        }
        if line.starts_with("# tls = ") {
            return Some(format!("tls = {{ ca = {certificate:?} }}"));
        }
        line.starts_with("url = ")
            .then(|| format!("url = \"{url}\""))
    };
    let main = written_kit("truenas", folder, replaced);
    let (proxy, url) = proxy(&main);
    assert_equal_results(&direct, &client(python("truenas.py").arg(&url)));
    let none: [&str; 0] = [];
    assert_eq!(
        uncalled_routes("truenas", &translated_routes(proxy, &main)),
        none
    );
}
