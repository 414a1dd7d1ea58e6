//! Configurations to begin with; a test puts top-level keys before them and tables behind them.

use sha2::{Digest, Sha256};

use super::Upstream;

/// One worker, so that which connections are kept and reused is certain.
const ONE_WORKER: &str = "[listen]\nworkers = 1\n";

/// The SHA-256 digest of a text, in hexadecimal digits.
pub(crate) fn sha256(text: &str) -> String {
    let digest = Sha256::digest(text);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A REST upstream alone.
pub(crate) fn rest_only(rest: &Upstream) -> String {
    format!("{ONE_WORKER}{}", rest_upstream(rest))
}

/// An RPC upstream alone, at `/rpc`.
pub(crate) fn rpc_only(rpc: &Upstream) -> String {
    format!("{ONE_WORKER}{}", rpc_upstream(rpc))
}

/// A REST upstream and an RPC upstream.
pub(crate) fn both(rest: &Upstream, rpc: &Upstream) -> String {
    format!("{ONE_WORKER}{}{}", rest_upstream(rest), rpc_upstream(rpc))
}

fn rest_upstream(rest: &Upstream) -> String {
    format!(
        "[upstream.old]\nside = \"rest\"\nurl = \"http://{}\"\n",
        rest.address()
    )
}

fn rpc_upstream(rpc: &Upstream) -> String {
    format!(
        "[upstream.new]\nside = \"rpc\"\nurl = \"http://{}/rpc\"\n",
        rpc.address()
    )
}
