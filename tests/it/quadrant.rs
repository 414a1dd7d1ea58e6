//! The ways that a call can take: each client before each upstream.

use crate::scene::{Called, json, problem, rpc_failure};
use crate::support::{Message, Proxy, Upstream, Wire, rest_only, rpc_only};

/// One way of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quadrant {
    /// REST as it came.
    RestPassed,
    /// RPC as it came.
    RpcPassed,
    /// RPC with an id of the proxy's own.
    RpcRenumbered,
    /// REST as RPC.
    RestTranslated,
    /// RPC as REST.
    RpcTranslated,
}

pub(crate) use Quadrant::{RestPassed, RestTranslated, RpcPassed, RpcRenumbered, RpcTranslated};

pub(crate) const ALL: [Quadrant; 5] = [
    RestPassed,
    RpcPassed,
    RpcRenumbered,
    RestTranslated,
    RpcTranslated,
];

/// Those whose answer is read whole before the client hears of it.
pub(crate) const WHOLE: [Quadrant; 3] = [RpcRenumbered, RestTranslated, RpcTranslated];

/// Those whose answer streams.
pub(crate) const STREAMED: [Quadrant; 2] = [RestPassed, RpcPassed];

const ROUTES: &str = r#"
[[route]]
name = "do"
rest = "POST /do"
rpc = "do"
[[route]]
name = "look"
rest = "GET /look"
rpc = "look"
[[route]]
name = "put"
rest = "PUT /put"
rpc = "put"
"#;

impl Quadrant {
    /// A proxy with this way only; `more` are keys of its upstream.
    pub(crate) fn start(self, upstream: &Upstream, more: &str) -> Proxy {
        Proxy::start(&match self {
            RestPassed => format!("{}{more}", rest_only(upstream)),
            RpcPassed | RpcRenumbered => format!("{}{more}", rpc_only(upstream)),
            RestTranslated => format!("{}{more}{ROUTES}", rpc_only(upstream)),
            RpcTranslated => format!("{}{more}{ROUTES}", rest_only(upstream)),
        })
    }

    /// Whether the client speaks JSON-RPC.
    fn is_rpc(self) -> bool {
        matches!(self, RpcPassed | RpcRenumbered | RpcTranslated)
    }

    /// The id of the client's calls.
    fn id(self) -> &'static str {
        match self {
            RpcRenumbered => "1.50",
            RestPassed | RpcPassed | RestTranslated | RpcTranslated => r#""c""#,
        }
    }

    /// Calls what the server may not be asked to do twice.
    pub(crate) fn send(self, client: &mut Wire) {
        self.send_to("POST", "do", client);
    }

    /// Calls the operation of this name; as REST by this method.
    pub(crate) fn send_to(self, method: &str, name: &str, client: &mut Wire) {
        if self.is_rpc() {
            let id = self.id();
            let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{name}"}}"#);
            let length = body.len();
            client.send(format!(
                "POST /rpc HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{body}"
            ));
        } else {
            client.send(format!("{method} /{name} HTTP/1.1\r\nHost: a\r\n\r\n"));
        }
    }

    /// Answers a request of a call well.
    pub(crate) fn answer(self, request: &Message) -> Vec<u8> {
        match self {
            RestPassed | RpcTranslated => json("[7]"),
            RpcPassed | RpcRenumbered | RestTranslated => {
                let called = Called::of(request);
                json(format!(
                    r#"{{"jsonrpc":"2.0","id":{},"result":[7]}}"#,
                    called.id()
                ))
            }
        }
    }

    /// Checks what [`Quadrant::answer`] becomes.
    pub(crate) fn expect_answer(self, answer: &Message) {
        assert_eq!(answer.status(), 200, "{self:?}: {answer:?}");
        let expected = if self.is_rpc() {
            format!(r#"{{"jsonrpc":"2.0","id":{},"result":[7]}}"#, self.id())
        } else {
            "[7]".to_owned()
        };
        assert_eq!(answer.text(), expected, "{self:?}");
    }

    /// Checks a failure: as REST by its status, as RPC by its code and the caller's own id.
    pub(crate) fn expect_failure(self, answer: &Message, wanted: (u16, i64, &str)) {
        let (status, code, reason) = wanted;
        if self.is_rpc() {
            assert_eq!(answer.status(), 200, "{self:?}: {answer:?}");
            let opening = format!(r#"{{"jsonrpc":"2.0","id":{},"error":{{"#, self.id());
            assert!(answer.text().starts_with(&opening), "{self:?}: {answer:?}");
            let document = answer.json();
            assert_eq!(rpc_failure(&document), (code, reason), "{self:?}");
            assert_eq!(document["error"]["data"]["blame"], "upstream");
        } else {
            assert_eq!(answer.status(), status, "{self:?}: {answer:?}");
            assert_eq!(problem(answer).0, reason, "{self:?}");
            assert_eq!(answer.json()["rpc"]["code"], code);
            assert_eq!(answer.json()["blame"], "upstream");
        }
        assert!(!answer.text().contains("127.0.0.1"), "{answer:?}");
    }
}
