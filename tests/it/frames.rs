//! Frames of legacy sockets: clients that speak in them, servers that do, and both before one another.

mod clients;
mod compared;
mod explained;
mod ios;
mod local;
mod lost;
mod order;
mod passing;
mod room;
mod servers;
mod storm;

use serde_json::{Value, json};

use crate::support::{Proxy, Upstream};
use crate::websocket::ends::End;

/// Failures of commands, and a command that is answered by id.
pub(crate) const FILE: &str = r#"
[[outcomes.failed]]
lossy = "it has no id"
frame = { event = "error", payload = { message = "{message}" }, request_id = "{>id}" }
rpc = { error = { code = [-32603, -32602, -32601, -32000, -32001, "-310xx"], message = "{message}" } }

[[route]]
name = "file"
frame = { command = "get_file", request_id = "{id?}", payload = { path = "{path}" } }
rpc = "file/get"
params = { path = "{path}" }
extra = "drop"
effect = "safe"
outcomes = "failed"
[[route.outcome]]
frame = { event = "file", payload = "{file:object}", request_id = "{>id}" }
rpc = { result = "{file}" }
"#;

/// An answer by session, one that is silence; events of one side and of both.
const MORE: &str = r#"
[[route]]
name = "watch"
frame = { command = "watch", request_id = "{id?}", payload = { session = "{session}" } }
rpc = "session/watch"
params = { session = "{session}" }
extra = "drop"
outcomes = "failed"
[[route.outcome]]
lossy = "it has no id"
frame = { event = "watched", payload = { session = "{>session}" } }
rpc = { result = { watching = true } }

[[route]]
name = "run"
frame = { command = "run", request_id = "{id?}" }
rpc = "agent/run"
silence = "200ms"
outcomes = "failed"
[[route.outcome]]
rpc = { result = { status = "started" } }

[[event]]
rpc = { method = "event/{type:enum(log|note)}", params = "{payload:object}" }
frame = { event = "{type}", payload = "{payload}" }
[[event]]
frame = { event = "watched" }
[[event]]
frame = { event = "warning" }
"#;

/// A server that speaks in frames, for a configuration.
fn of_frames(server: &Upstream, keys: &str) -> String {
    let address = server.address();
    format!("[upstream.frames]\nside = \"rest\"\nurl = \"ws://{address}/legacy\"\n{keys}\n")
}

/// A server that speaks JSON-RPC over a WebSocket for each client.
fn of_rpc(server: &Upstream) -> String {
    let address = server.address();
    format!(
        "[upstream.live]\nside = \"rpc\"\nurl = \"ws://{address}/live\"\nsharing = \"client\"\n"
    )
}

pub(crate) fn start(upstreams: &str) -> Proxy {
    Proxy::start(&format!("[listen]\nworkers = 1\n{upstreams}{FILE}{MORE}"))
}

/// The same with a flags file.
fn start_with_flags(upstreams: &str, flags: &str) -> Proxy {
    let config = format!("[listen]\nworkers = 1\n{upstreams}{FILE}{MORE}");
    Proxy::start_with_flags(&config, flags)
}

/// Asks for a file in frames.
pub(crate) fn get_file(client: &mut End, id: &str, path: &str) {
    client.say(
        json!({"command": "get_file", "request_id": id, "payload": {"path": path}}).to_string(),
    );
}

/// Asks for something over JSON-RPC.
fn ask(client: &mut End, id: u64, (method, params): (&str, Value)) {
    let call = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    client.say(call.to_string());
}

fn strays(proxy: &Proxy, kind: &str) -> f64 {
    let series = format!(r#"dualgauge_socket_strays_total{{kind="{kind}"}}"#);
    proxy.metrics().value(&series)
}
