//! Two servers that do the same, one of each side, and who of them answered.

use crate::support::{Proxy, Upstream, both};

/// The servers, each telling its side in its answers.
pub(crate) struct Servers {
    pub(crate) rest: Upstream,
    pub(crate) rpc: Upstream,
}

/// Calls of the client `mover` go to the other side.
pub(crate) const MOVER: &str =
    "[[flag]]\nname = \"mover\"\nclient = \"mover\"\nstage = \"translate\"\n";

/// A route of both sides, and a client that is told by its header.
const ROUTES: &str = r#"
[[client]]
name = "mover"
match = { header = { x-client-id = "mover" } }

[[route]]
name = "things.read"
rest = "GET /things/{id}"
rpc = "things/read"
"#;

impl Servers {
    pub(crate) fn start() -> Servers {
        Servers {
            rest: Upstream::serving(|_| json(r#"{"by":"rest"}"#)),
            rpc: Upstream::serving(|request| {
                let id = &request.json()["id"];
                json(&format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"result":{{"by":"rpc"}}}}"#
                ))
            }),
        }
    }

    /// The configuration of a proxy before them; tables may follow.
    pub(crate) fn config(&self) -> String {
        format!("{}{ROUTES}", both(&self.rest, &self.rpc))
    }
}

/// An answer of 200 with JSON.
pub(crate) fn json(body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// Who answers a REST call of a client.
pub(crate) fn answers(proxy: &Proxy, client: &str) -> String {
    let answer = proxy.rest("GET", "/things/7", &[("x-client-id", client)], "");
    assert_eq!(answer.status(), 200, "{answer:?}");
    answer.json()["by"].as_str().unwrap().to_owned()
}
