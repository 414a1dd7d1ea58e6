//! TrueNAS: clients of REST v2.0 before a server that has only JSON-RPC over a WebSocket.

use std::fs;
use std::path::Path;

use super::imitations::Migration;

/// Writes a certificate for this address, and its key.
fn write_certificate(certificate: &Path, key: &Path) {
    let issued = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    fs::write(certificate, issued.cert.pem()).unwrap();
    fs::write(key, issued.signing_key.serialize_pem()).unwrap();
}

#[test]
#[ignore = "needs .ci/install-kits"]
fn clients_of_rest_get_its_results_from_json_rpc() {
    let folder = tempfile::tempdir().unwrap();
    let [certificate, key] = ["cert.pem", "key.pem"].map(|name| folder.path().join(name));
    write_certificate(&certificate, &key);
    let replaced = |line: &str, url: &str| match line {
        "[listen]" => Some(format!(
            "{line}\ntls = {{ certificate = {certificate:?}, key = {key:?} }}"
        )),
        _ if line.starts_with("# tls = ") => Some(format!("tls = {{ ca = {certificate:?} }}")),
        _ if line.starts_with("url = ") => Some(format!("url = \"{url}\"")),
        _ => None,
    };
    Migration {
        kit: "truenas",
        client: "truenas.py",
        server: "truenas_server.py",
        arguments: &[certificate.clone().into(), key.clone().into()],
        own: "rest",
        other: "rpc",
        replaced: &replaced,
        uncalled: &[],
    }
    .run();
}
