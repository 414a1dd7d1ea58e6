//! Two servers with every kind of answer, and a call of each kind.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

use crate::support::{Message, Proxy, Upstream, WITHIN, both};
use crate::two_servers::json;

const PLAN: &str = r#"
[[client]]
name = "mover"
match = { header = { x-client-id = "mover" } }

[[client]]
name = "late"
match = { header = { x-client-id = "late" } }

[[route]]
name = "things.read"
rest = "GET /things/{id}"
rpc = "things/read"

[[route]]
name = "things.make"
rest = "POST /things"
rpc = "things/make"
"#;

pub(crate) const FLAGS: &str = r#"
[[flag]]
name = "moved"
client = "mover"
stage = "translate"

[[flag]]
name = "closed"
client = "late"
stage = "retired"
"#;

const MOVER: [(&str, &str); 2] = [
    ("x-client-id", "mover"),
    ("content-type", "application/json"),
];

/// Two servers with every kind of answer, and calls that wait until the test lets them go.
pub(crate) struct Scene {
    pub(crate) proxy: Proxy,
    _rest: Upstream,
    _rpc: Upstream,
    arrived: Receiver<()>,
    let_go: Sender<()>,
}

impl Scene {
    pub(crate) fn start(tables: &str) -> Scene {
        let (arrives, arrived) = channel();
        let (let_go, gate) = channel();
        let (arrives, gate) = (Mutex::new(arrives), Mutex::new(gate));
        let rest = Upstream::serving(move |request| {
            if request.head.start.contains("/things/held") {
                // Both ends are gone when the test is over.
                let _ = arrives.lock().unwrap().send(());
                let _ = gate.lock().unwrap().recv();
            }
            rest_answer(request)
        });
        let rpc = Upstream::serving(rpc_answer);
        let limits = "[limits]\nin_flight = 4\n";
        let config = format!("{}{limits}{PLAN}{tables}", both(&rest, &rpc));
        Scene {
            proxy: Proxy::start_with_flags(&config, FLAGS),
            _rest: rest,
            _rpc: rpc,
            arrived,
            let_go,
        }
    }

    /// Makes one call of each kind; tells how many there were.
    pub(crate) fn play(&self) -> usize {
        self.rest_calls() + self.rpc_calls() + self.held_calls()
    }

    pub(crate) fn rest_calls(&self) -> usize {
        let proxy = &self.proxy;
        let get = |path, client| {
            proxy
                .rest("GET", path, &[("x-client-id", client)], "")
                .status()
        };
        assert_eq!(get("/things/7", "somebody"), 200);
        assert_eq!(get("/elsewhere", "somebody"), 200);
        assert_eq!(get("/things/none", "somebody"), 404);
        assert_eq!(get("/things/broken", "somebody"), 500);
        assert_eq!(get("/things/dropped", "somebody"), 502);
        assert_eq!(get("/things/7", "mover"), 200);
        assert_eq!(get("/things/none", "mover"), 500);
        assert_eq!(get("/things/page", "mover"), 502);
        assert_eq!(get("/things/7", "late"), 410);
        assert_eq!(proxy.rest("POST", "/things", &MOVER, "{").status(), 400);

        let mut cut = proxy.connect();
        cut.send("GET /things/cut HTTP/1.1\r\nHost: a\r\n\r\n");
        cut.read_head();
        assert_eq!(cut.read_chunk().unwrap(), b"begun");
        cut.expect_gone();

        let mut smuggler = proxy.connect();
        smuggler.send(
            "POST /things HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        );
        assert_eq!(smuggler.read_answer().status(), 400);
        12
    }

    pub(crate) fn rpc_calls(&self) -> usize {
        let proxy = &self.proxy;
        let read = |id: &str| {
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"things/read","params":{{"id":"{id}"}}}}"#)
        };
        let make = r#"{"jsonrpc":"2.0","method":"things/make","params":{}}"#;
        let unknown = r#"{"jsonrpc":"2.0","id":3,"method":"nosuch"}"#;
        let made = make.replace("\"method\"", "\"id\":2,\"method\"");
        let moved = |body: &str| proxy.rest("POST", "/rpc", &MOVER, body).json();

        assert_eq!(proxy.rpc(read("7")).json()["result"]["by"], "rpc");
        assert_eq!(proxy.rpc(make).status(), 204);
        let batch = proxy.rpc(format!("[{},{made},{unknown}]", read("7")));
        assert_eq!(batch.json()[2]["error"]["code"], -32601);
        let other_version = r#"{"jsonrpc":"1.0","id":1,"method":"things/read"}"#;
        assert_eq!(moved(other_version)["error"]["code"], -32600);
        assert_eq!(moved(&read("7"))["result"]["by"], "rest");
        assert_eq!(moved(&read("none"))["error"]["code"], -31404);
        8
    }

    /// Four calls fill the proxy, a fifth is one too many, and one of the four goes away.
    fn held_calls(&self) -> usize {
        let mut clients: Vec<_> = (0..4).map(|_| self.proxy.connect()).collect();
        for client in &mut clients {
            client.send("GET /things/held HTTP/1.1\r\nHost: a\r\n\r\n");
        }
        for _ in 0..4 {
            self.arrived.recv_timeout(WITHIN).unwrap();
        }
        let more = self.proxy.rest("GET", "/things/7", &MOVER[..1], "");
        assert_eq!(more.status(), 503, "{more:?}");
        clients.pop().unwrap().reset();
        self.proxy.log_line(&["outcome=cancelled"]);
        for _ in 0..4 {
            self.let_go.send(()).unwrap();
        }
        for client in &mut clients {
            assert_eq!(client.read_answer().status(), 200);
        }
        5
    }
}

fn rest_answer(request: &Message) -> Vec<u8> {
    let target = request.head.start.split(' ').nth(1).unwrap();
    match target.split('?').next().unwrap() {
        "/things/none" => b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec(),
        "/things/broken" => {
            b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n".to_vec()
        }
        "/things/dropped" => Vec::new(),
        "/things/cut" => {
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbegun\r\nno size\r\n"
                .to_vec()
        }
        _ => json(r#"{"by":"rest"}"#),
    }
}

fn rpc_answer(request: &Message) -> Vec<u8> {
    let call = request.json();
    if call["params"]["id"] == "page" {
        let page = "<p>secret-page</p>";
        let length = page.len();
        return format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {length}\r\n\r\n{page}"
        )
        .into_bytes();
    }
    if let Some(calls) = call.as_array() {
        let said: Vec<String> = calls.iter().filter_map(rpc_reply).collect();
        return json(&format!("[{}]", said.join(",")));
    }
    match rpc_reply(&call) {
        Some(said) => json(&said),
        None => b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(),
    }
}

fn rpc_reply(call: &serde_json::Value) -> Option<String> {
    let id = call.get("id")?;
    let said = match (call["method"].as_str(), call["params"]["id"].as_str()) {
        (Some("nosuch"), _) => r#""error":{"code":-32601,"message":"no such method"}"#,
        (_, Some("none")) => r#""error":{"code":-32001,"message":"none"}"#,
        _ => r#""result":{"by":"rpc"}"#,
    };
    Some(format!(r#"{{"jsonrpc":"2.0","id":{id},{said}}}"#))
}
