//! OFREP: unmodified providers of OpenFeature for Python and Node.js evaluate the flags of a proxy on its admin listener.
//!
//! `.ci/install-ofrep` installs the providers.

use std::fs::{self, File};
use std::process::Command;

use dualgauge_model::rollout::bucket;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{Process, client, dualgauge, installed, started};

const TOKEN: &str = "opensesame";

const MAIN: &str = include_str!("../data/two-sides.toml");

const ROUTES: &str = r#"
[[route]]
name = "items.read"
rest = "GET /items/{id}"
rpc = "items/read"
"#;

const FLAGS: &str = r#"
[[flag]]
name = "half"
client = "ios-app"
stage = "translate"
percent = 50
[[flag]]
name = "regional"
header = { x-region = "eu-*" }
stage = "verify"
"#;

/// Starts a proxy and returns the URL of its admin listener.
fn proxy(folder: &std::path::Path) -> (Process, String) {
    let digest = Sha256::digest(TOKEN);
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let tokens = format!("{MAIN}[admin.tokens]\nshop = \"sha256:{digest}\"\n");
    for (name, text) in [
        ("dualgauge.toml", &*tokens),
        ("routes.toml", ROUTES),
        ("flags.toml", FLAGS),
    ] {
        fs::write(folder.join(name), text).unwrap();
    }
    let mut command = dualgauge();
    command.args(["run", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
    command.arg("--config").arg(folder.join("dualgauge.toml"));
    command.stderr(File::create(folder.join("log")).unwrap());
    started(&mut command, ", admin ")
}

fn value(value: impl Into<Value>, variant: &str, reason: &str) -> Value {
    json!({"value": value.into(), "variant": variant, "reason": reason, "error": null})
}

/// The results of a provider, with the default where there is no value.
fn expected() -> Value {
    let mut results = json!({
        "flag": value(json!({"stage": "translate", "percent": 50}), "translate", "STATIC"),
        "default": value("passthrough", "passthrough", "DEFAULT"),
        "regional": value(true, "new", "TARGETING_MATCH"),
    });
    for (name, code) in [
        ("missing", "FLAG_NOT_FOUND"),
        ("keyless", "TARGETING_KEY_MISSING"),
        ("unknown", "INVALID_CONTEXT"),
    ] {
        results[name] = json!({"value": true, "variant": null, "reason": "ERROR", "error": code});
    }
    for number in 0..20 {
        let device = format!("device-{number}");
        results[&device] = match bucket("half", &device).get() < 50_000 {
            true => json!([
                value("translate", "translate", "SPLIT"),
                value(true, "new", "SPLIT")
            ]),
            false => json!([
                value("passthrough", "passthrough", "DEFAULT"),
                value(false, "old", "DEFAULT")
            ]),
        };
    }
    results
}

fn assert_results(evaluate: impl Fn(&str) -> Command) {
    let folder = tempfile::tempdir().unwrap();
    let (_proxy, url) = proxy(folder.path());
    let found: Value = serde_json::from_str(&client(&mut evaluate(&url))).unwrap();
    assert_eq!(found, expected());
}

#[test]
#[ignore = "needs .ci/install-ofrep"]
fn the_provider_for_python_gets_the_decisions() {
    assert_results(|url| {
        let mut command = Command::new(installed("ofrep-python").join("bin/python"));
        command.args(["tests/kits/ofrep.py", url, TOKEN]);
        command
    });
}

#[test]
#[ignore = "needs .ci/install-ofrep"]
fn the_provider_for_node_gets_the_decisions() {
    assert_results(|url| {
        let mut command = Command::new("node");
        command.args(["tests/kits/ofrep.mjs", url, TOKEN]);
        command.arg(installed("ofrep-npm"));
        command
    });
}
