//! The streaming operations of A2A 1.0: the client of a2a-sdk against its server, through the proxy in both directions.
//! `.ci/install-peers` installs the library.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::mcp::peers::{Peer, installed, script};
use crate::support::{Proxy, run_to_end};

const LIBRARY: &str = "peers-a2a";

/// The operations whose responses stream, and the errors that they have.
const ROUTES: &str = r#"
[[route]]
name = "send"
rest = "POST /message:stream"
rpc = "SendStreamingMessage"
stream = "sse"
outcomes = "a2a"
[[route]]
name = "subscribe"
rest = "POST /tasks/{id}:subscribe"
rpc = "SubscribeToTask"
stream = "sse"
outcomes = "a2a"
[[outcomes.a2a]]
rest = { status = 404, body = { error = { code = 404, status = "NOT_FOUND", message = "{m}", details = [{ reason = "TASK_NOT_FOUND", "..." = "{info}" }, "{more...}"] } } }
rpc = { error = { code = -32001, message = "{m}", data = [{ reason = "TASK_NOT_FOUND", "..." = "{info}" }, "{more...}"] } }
[[outcomes.a2a]]
rest = { status = 400, body = { error = { code = 400, status = "FAILED_PRECONDITION", message = "{m}", details = [{ reason = "UNSUPPORTED_OPERATION", "..." = "{info}" }, "{more...}"] } } }
rpc = { error = { code = -32004, message = "{m}", data = [{ reason = "UNSUPPORTED_OPERATION", "..." = "{info}" }, "{more...}"] } }
"#;

/// What the client prints of its operations.
fn client(binding: &str, url: &str) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/response_streams/client.py");
    let mut command = Command::new(installed(&format!("{LIBRARY}/bin/python")));
    command.arg(script).args([binding, url]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let ended = run_to_end(command);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    serde_json::from_str(&ended.output).unwrap()
}

/// A proxy before one binding of the agent.
fn before(agent: &Peer, side: &str) -> Proxy {
    let path = if side == "rpc" { "/rpc" } else { "" };
    Proxy::start(&format!(
        "[upstream.agent]\nside = \"{side}\"\nurl = \"http://{}{path}\"\nforward = [\"a2a-version\"]\n{ROUTES}",
        agent.address
    ))
}

#[test]
#[ignore = "needs the peers of .ci/install-peers"]
fn each_binding_of_a2a_streams_before_the_other() {
    let agent = script(LIBRARY, "tests/it/response_streams/agent.py", &[]);
    let direct = client("rest", &format!("http://{}", agent.address));
    assert_eq!(direct["send"].as_array().map(Vec::len), Some(6), "{direct}");
    assert_eq!(
        direct["fail"][4], "UnsupportedOperationError: cannot go on",
        "{direct}"
    );
    let own = client("rpc", &format!("http://{}/rpc", agent.address));
    assert_eq!(own, direct);

    let proxy = before(&agent, "rpc");
    let through = client("rest", &format!("http://{}", proxy.address()));
    assert_eq!(through, direct, "REST before JSON-RPC");
    let proxy = before(&agent, "rest");
    let through = client("rpc", &format!("http://{}/rpc", proxy.address()));
    assert_eq!(through, own, "JSON-RPC before REST");
}
