//! Odoo: clients of its JSON-RPC services before a server that has only JSON-2, and clients of JSON-2 before a server that
//! has only these services. The servers are imitations with the same records.

use std::process::Command;

use super::{
    Process, assert_equal_results, client, installed, proxy, started, translated_routes,
    uncalled_routes, written_kit,
};

/// Routes that only JSON-RPC clients call: other spellings of the calls of other routes.
const ALIASES: [&str; 4] = ["access", "create.one", "login", "name_search.domain"];

fn python(script: &str) -> Command {
    let mut command = Command::new(installed("kits-python").join("bin/python"));
    command.arg(format!("tests/kits/{script}"));
    command
}

/// Starts a server with one of the APIs, and returns its address.
fn server(api: &str) -> (Process, String) {
    started(python("odoo_server.py").arg(api), "serving ")
}

/// A client before a server with its own API, and through the kit before one with the other API.
struct Case<'c> {
    script: &'c str,
    own: &'c str,
    other: &'c str,
    /// The line in place of that for the file of flags.
    rollout: Option<&'c str>,
    /// The routes that the client does not call.
    uncalled: &'c [&'c str],
}

impl Case<'_> {
    /// Compares the results of both.
    fn run(&self) {
        let (_own, url) = server(self.own);
        let direct = client(python(self.script).arg(&url));
        let (_other, url) = server(self.other);
        let folder = tempfile::tempdir().unwrap();
        let replaced = |line: &str| match line.split_once(" = ") {
            Some(("url", value)) => {
                let path = if value.contains("/jsonrpc") {
                    "/jsonrpc"
                } else {
                    ""
                };
                Some(format!("url = \"{url}{path}\""))
            }
            Some(("flags", _)) => self.rollout.map(str::to_owned),
            _ => None,
        };
        let main = written_kit("odoo", folder.path(), replaced);
        let (proxy, url) = proxy(&main);
        assert_equal_results(&direct, &client(python(self.script).arg(&url)));
        assert_eq!(
            uncalled_routes("odoo", &translated_routes(proxy, &main)),
            self.uncalled
        );
    }
}

#[test]
#[ignore = "needs .ci/install-kits"]
fn odoorpc_gets_the_results_of_json_rpc_from_json_2() {
    Case {
        script: "odoo.py",
        own: "jsonrpc",
        other: "json2",
        rollout: None,
        uncalled: &[],
    }
    .run();
}

#[test]
#[ignore = "needs .ci/install-kits"]
fn clients_of_json_2_get_its_results_from_json_rpc() {
    Case {
        script: "odoo_json2.py",
        own: "json2",
        other: "jsonrpc",
        rollout: Some(r#"default = { rest = "translate", rpc = "passthrough" }"#),
        uncalled: &ALIASES,
    }
    .run();
}
