//! Kits whose servers are imitations with two APIs over the same records: a client gets the same results from a server that
//! has only the API of the client, and through the kit from a server that has only the other one.

use std::ffi::OsString;
use std::process::Command;

use super::{
    Process, assert_equal_results, client, installed, keep_upstream, proxy, started,
    translated_routes, uncalled_routes, written_kit,
};

/// The environment of the servers and of most clients.
pub(super) const PYTHON: &str = "kits-python";

/// A client before servers with one API each.
pub(super) struct Migration<'m> {
    pub(super) kit: &'m str,
    /// The environment of the client, a folder of `.ci/install-kits`.
    pub(super) environment: &'m str,
    /// The script of the client, which gets the URL as its argument.
    pub(super) client: &'m str,
    /// The script of the server, which gets the API as its first argument.
    pub(super) server: &'m str,
    /// More arguments of the server.
    pub(super) arguments: &'m [OsString],
    /// The API of the client.
    pub(super) own: &'m str,
    /// The API that the kit translates to.
    pub(super) other: &'m str,
    /// Returns another line of the main file, for a server with this URL.
    pub(super) replaced: &'m dyn Fn(&str, &str) -> Option<String>,
    /// The upstream that stays, of a kit with one for each direction.
    pub(super) upstream: Option<&'m str>,
    /// The routes that the client does not call.
    pub(super) uncalled: &'m [&'m str],
}

impl Migration<'_> {
    /// Compares the results, and the routes that the kit translated.
    pub(super) fn run(&self) {
        let (_own, url) = self.start(self.own);
        let direct = client(python(self.environment, self.client).arg(&url));
        let (_other, url) = self.start(self.other);
        let folder = tempfile::tempdir().unwrap();
        let main = written_kit(self.kit, folder.path(), |line| (self.replaced)(line, &url));
        if let Some(upstream) = self.upstream {
            keep_upstream(&main, upstream, &url);
        }
        let (proxy, url) = proxy(&main);
        assert_equal_results(
            &direct,
            &client(python(self.environment, self.client).arg(&url)),
        );
        let called = translated_routes(proxy, &main);
        assert_eq!(uncalled_routes(self.kit, &called), self.uncalled);
    }

    /// Starts a server with this API, and returns its URL.
    fn start(&self, api: &str) -> (Process, String) {
        let mut command = python(PYTHON, self.server);
        started(command.arg(api).args(self.arguments), "serving ")
    }
}

fn python(environment: &str, script: &str) -> Command {
    let mut command = Command::new(installed(environment).join("bin/python"));
    command.arg(format!("tests/kits/{script}"));
    command
}
