//! TrueNAS: clients of REST v2.0 before a server that has only JSON-RPC over a WebSocket.

use std::fs;
use std::path::Path;

use super::explained;
use super::imitations::{Migration, PYTHON};

/// Writes a certificate for this address, and its key.
fn write_certificate(certificate: &Path, key: &Path) {
    let issued = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    fs::write(certificate, issued.cert.pem()).unwrap();
    fs::write(key, issued.signing_key.serialize_pem()).unwrap();
}

/// Returns the line of the main file that has the certificates.
fn with_tls(line: &str, certificate: &Path, key: &Path) -> Option<String> {
    match line {
        "[listen]" => Some(format!(
            "{line}\ntls = {{ certificate = {certificate:?}, key = {key:?} }}"
        )),
        _ if line.starts_with("# tls = ") => Some(format!("tls = {{ ca = {certificate:?} }}")),
        _ => None,
    }
}

/// Returns a line of the main file for JSON-RPC clients before REST, as the README says.
fn way_back(line: &str) -> Option<String> {
    let (key, _) = line.split_once(" = ")?;
    let changed = match key {
        "side" => r#"side = "rest""#,
        "websocket" => "websocket = true\npaths = [\"/api/current\"]",
        "flags" => r#"default = { rest = "passthrough", rpc = "translate" }"#,
        "sharing" | "login" | "withhold" | "in_flight" => "",
        _ => return None,
    };
    Some(changed.to_owned())
}

/// Runs a client with certificates for its servers and the kit.
fn run(client: &str, apis: [&str; 2], changed: fn(&str) -> Option<String>, uncalled: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let [certificate, key] = ["cert.pem", "key.pem"].map(|name| folder.path().join(name));
    write_certificate(&certificate, &key);
    let replaced = |line: &str, url: &str| {
        let is_url = line.starts_with("url = ");
        let set = is_url.then(|| format!("url = \"{url}\""));
        let set = set.or_else(|| with_tls(line, &certificate, &key));
        set.or_else(|| changed(line))
    };
    Migration {
        kit: "truenas",
        environment: PYTHON,
        client,
        server: "truenas_server.py",
        arguments: &[certificate.clone().into(), key.clone().into()],
        own: apis[0],
        other: apis[1],
        replaced: &replaced,
        upstream: None,
        uncalled,
    }
    .run();
}

#[test]
#[ignore = "needs .ci/install-kits"]
fn clients_of_rest_get_its_results_from_json_rpc() {
    run("truenas.py", ["rest", "rpc"], |_| None, &["login"]);
}

#[test]
#[ignore = "needs .ci/install-kits"]
fn truenaspy_gets_the_results_of_json_rpc_from_rest() {
    // Only REST clients have other names for the options.
    let uncalled = ["dataset.lock.old", "dataset.unlock.old"];
    run("truenas_socket.py", ["rpc", "rest"], way_back, &uncalled);
}

#[test]
fn an_unknown_name_of_a_query_is_refused_by_a_route_of_the_service() {
    for (path, route) in [
        ("/api/v2.0/pool?name__contains=a", "records.query"),
        ("/api/v2.0/nfs?name__contains=a", "config"),
    ] {
        let found = explained("truenas", &[path]);
        assert!(found.contains(&format!("  route      {route} ")), "{found}");
        assert!(found.contains("HTTP 400, code -32602"), "{found}");
        assert!(
            found.contains("query parameter `name__contains`"),
            "{found}"
        );
    }
}
