//! The work that is measured: what a client sends, and what the upstream answers.

use std::fmt::Write;

use crate::production::Extent;

/// Which way calls go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// REST calls pass through.
    Pass,
    /// REST calls become JSON-RPC calls.
    RestToRpc,
    /// JSON-RPC calls become REST calls.
    RpcToRest,
    /// JSON-RPC calls of a tool become REST calls, and bodies its values.
    ToolToRest,
}

impl Kind {
    /// All but those of tools, which are JSON-RPC calls.
    pub(crate) const ALL: [Kind; 3] = [Kind::Pass, Kind::RestToRpc, Kind::RpcToRest];

    /// As harnesses call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Pass => "pass",
            Kind::RestToRpc => "rest2rpc",
            Kind::RpcToRest => "rpc2rest",
            Kind::ToolToRest => "tool2rest",
        }
    }

    /// Whether clients speak JSON-RPC.
    pub(crate) fn is_rpc(self) -> bool {
        matches!(self, Kind::RpcToRest | Kind::ToolToRest)
    }
}

/// One kind of call.
#[derive(Debug, Clone)]
pub(crate) struct Work {
    /// In tables and in the file of figures.
    pub(crate) name: &'static str,
    /// Which way it goes.
    pub(crate) kind: Kind,
    /// Whether it has a body.
    pub(crate) method: Method,
    /// Bytes of the answer's body, about.
    pub(crate) size: usize,
    /// Bytes of the call's body that it has besides those of [`CALL`], about.
    pub(crate) sent: usize,
    /// How many calls a request has, where it is a batch.
    pub(crate) batch: Option<usize>,
}

/// How it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    /// Without a body.
    Get,
    /// With one.
    Post,
}

/// The hot ones.
pub(crate) const HOT: [Work; 8] = [
    work("pass_get", Kind::Pass, Method::Get, 200),
    work("pass_post_200", Kind::Pass, Method::Post, 200),
    work("rest2rpc_200", Kind::RestToRpc, Method::Post, 200),
    work("rpc2rest_200", Kind::RpcToRest, Method::Post, 200),
    work("rest2rpc_16k", Kind::RestToRpc, Method::Post, 16_384),
    work("rpc2rest_16k", Kind::RpcToRest, Method::Post, 16_384),
    work("tool2rest_200", Kind::ToolToRest, Method::Post, 200),
    work("tool2rest_16k", Kind::ToolToRest, Method::Post, 16_384),
];

/// What a call of a tool may cost: at most so many times that of the other. A large result is in the response twice, once
/// as an escaped text for models: that takes twice the instructions of the 1.5 times that were aimed at.
/// A call of which one in a hundred is recorded may cost 3 % more, and 6 % more if its bodies are recorded: they are parsed
/// and redacted.
pub(crate) const RATIOS: [(&str, &str, f64); 6] = [
    ("tool2rest_200", "rpc2rest_200", 1.5),
    ("tool2rest_16k", "rpc2rest_16k", 3.1),
    ("pass_get_recorded", "pass_get", 1.03),
    ("rest2rpc_200_recorded", "rest2rpc_200", 1.03),
    ("rpc2rest_200_recorded", "rpc2rest_200", 1.03),
    ("rest2rpc_200_recorded_bodies", "rest2rpc_200", 1.06),
];

/// The works that are also measured while one call in a hundred is recorded: the name of the count, the work, and the
/// extent of the recording.
pub(crate) const RECORDED: [(&str, &str, &Extent); 4] = [
    ("pass_get_recorded", "pass_get", &Extent::RECORDED),
    ("rest2rpc_200_recorded", "rest2rpc_200", &Extent::RECORDED),
    ("rpc2rest_200_recorded", "rpc2rest_200", &Extent::RECORDED),
    (
        "rest2rpc_200_recorded_bodies",
        "rest2rpc_200",
        &Extent::RECORDED_BODIES,
    ),
];

/// Work of a size.
pub(crate) const fn work(name: &'static str, kind: Kind, method: Method, size: usize) -> Work {
    Work {
        name,
        kind,
        method,
        size,
        sent: 0,
        batch: None,
    }
}

/// The params of a call: texts with escapes, and with letters that are none of ASCII's.
pub(crate) const CALL: &str = concat!(
    r#"{"name":"forecast","arguments":{"place":"Gen\u00e8ve","days":3,"#,
    r#""remark":"early trains to Zürich leave from the northern platform while the southern one is swept"}}"#
);

impl Work {
    /// What a client sends, head and body.
    pub(crate) fn request(&self) -> Vec<u8> {
        let (path, body) = match (self.kind, self.method) {
            (_, Method::Get) => return head("GET /ping", None).into_bytes(),
            (Kind::RpcToRest | Kind::ToolToRest, Method::Post) => {
                let params = self.params();
                let call = format!(
                    r#"{{"jsonrpc":"2.0","id":4711,"method":"tools/call","params":{params}}}"#
                );
                let body = self
                    .batch
                    .map(|calls| format!("[{}]", vec![call.as_str(); calls].join(",")));
                ("POST /mcp", body.unwrap_or(call))
            }
            (Kind::Pass | Kind::RestToRpc, Method::Post) => {
                ("POST /mcp/v1/tools/call", self.params())
            }
        };
        let mut request = head(path, Some(body.len())).into_bytes();
        request.extend_from_slice(body.as_bytes());
        request
    }

    /// The params, whose last text is as long as is asked for.
    fn params(&self) -> String {
        const MORE: &str = " and again";
        let (text, end) = CALL.split_at(CALL.len() - "\"}}".len());
        [text, &MORE.repeat(self.sent / MORE.len()), end].concat()
    }

    /// What an answer that came through has in it.
    pub(crate) fn needle(&self) -> &'static str {
        match self.method {
            Method::Get => "pong",
            Method::Post => "platform 1",
        }
    }
}

/// Who calls.
pub(crate) const AGENT: &str = "User-Agent: bench-load/0.1\r\n";

fn head(line: &str, length: Option<usize>) -> String {
    let mut head =
        format!("{line} HTTP/1.1\r\nHost: 127.0.0.1\r\n{AGENT}Accept: application/json\r\n");
    if let Some(length) = length {
        let _ = write!(
            head,
            "Content-Type: application/json\r\nContent-Length: {length}\r\n"
        );
    }
    head.push_str("\r\n");
    head
}

/// The body of the upstream's answer of a REST call: rows of text, as tools send them.
pub(crate) fn result(size: usize) -> String {
    let mut text = r#"{"content":[{"type":"text","text":""#.to_owned();
    let end = r#""}],"isError":false}"#;
    for row in 1.. {
        let _ = write!(
            text,
            "platform {row}: the train of \\\"0{}:15\\\" leaves on time\\n",
            row % 10
        );
        if text.len() + end.len() >= size {
            break;
        }
    }
    text.push_str(end);
    text
}
