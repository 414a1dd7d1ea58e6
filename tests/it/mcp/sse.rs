//! HTTP with SSE (MCP 2024-11-05): servers behind the proxy, and clients of it.

use std::collections::HashMap;
use std::io::Write;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use super::peers::{installed, script};
use super::scripted::{asking_on_one_stream, response, result, stateless, stream, with_sessions};
use super::{ROUTE, ask};
use crate::links::telling::{begins, event, json_of, progress, token};
use crate::scene::{answer, body_of, call};
use crate::support::{Message, Proxy, Upstream, Wire, becomes, program, run_to_end};

/// A server of 2024-11-05: an event stream for each session, and POSTs.
pub(super) struct SseServer {
    address: SocketAddr,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// The streams, by the id of their session.
    streams: Mutex<HashMap<String, TcpStream>>,
    requests: Mutex<Vec<Message>>,
    /// True if the calls of the server ask for input.
    asks: bool,
}

impl SseServer {
    /// A server that names this endpoint, where `{}` is the id of the session.
    fn naming(endpoint: &'static str) -> SseServer {
        SseServer::with(State::default(), endpoint)
    }

    fn with(state: State, endpoint: &'static str) -> SseServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(state);
        let shared = state.clone();
        thread::spawn(move || {
            for socket in listener.incoming() {
                let (socket, state) = (socket.unwrap(), shared.clone());
                thread::spawn(move || state.serve(socket, endpoint));
            }
        });
        SseServer { address, state }
    }

    fn start() -> SseServer {
        SseServer::naming("/messages/?session={}")
    }

    /// A server whose calls ask for input.
    pub(super) fn asking() -> SseServer {
        let state = State {
            asks: true,
            ..State::default()
        };
        SseServer::with(state, "/messages/?session={}")
    }

    pub(super) fn before(&self, keys: &str) -> Proxy {
        let address = self.address;
        Proxy::start(&format!(
            "[listen]\nworkers = 2\n[upstream.m]\nside = \"rpc\"\nurl = \"http://{address}/sse\"\nprotocol = \"mcp\"\n\
             transport = \"sse\"\nheaders = {{ x-key = \"k\" }}\n{keys}"
        ))
    }

    fn requests(&self, method: &str) -> Vec<Message> {
        let requests = self.state.requests.lock().unwrap();
        let own = requests.iter();
        own.filter(|request| request.head.start.starts_with(method))
            .cloned()
            .collect()
    }

    /// Ends all streams.
    fn cut(&self) {
        for (_, stream) in self.state.streams.lock().unwrap().drain() {
            stream.shutdown(Shutdown::Both).unwrap();
        }
    }
}

impl State {
    fn replies(&self, called: &Value) -> Vec<Value> {
        let asked = asking_on_one_stream(called).filter(|_| self.asks);
        asked.unwrap_or_else(|| reply(called).into_iter().collect())
    }

    fn serve(&self, socket: TcpStream, endpoint: &str) {
        let mut writer = socket.try_clone().unwrap();
        let mut wire = Wire::over(socket);
        while let Some(request) = wire.next_request() {
            let start = request.head.start.clone();
            let sessions = {
                let mut requests = self.requests.lock().unwrap();
                requests.push(request.clone());
                requests
                    .iter()
                    .filter(|one| one.head.start.starts_with("GET"))
                    .count()
            };
            if start.starts_with("GET") {
                let id = sessions.to_string();
                let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
                let endpoint = endpoint.replace("{}", &id);
                self.streams
                    .lock()
                    .unwrap()
                    .insert(id, writer.try_clone().unwrap());
                let first = format!("{head}: hello\n\nevent: endpoint\ndata: {endpoint}\n\n");
                writer.write_all(first.as_bytes()).unwrap();
                continue;
            }
            let Some(session) = start.split("session=").nth(1) else {
                wire.send(answer("405 Method Not Allowed", &[], "no session"));
                continue;
            };
            let session = session.split(' ').next().unwrap();
            let Some(mut stream) = self
                .streams
                .lock()
                .unwrap()
                .get(session)
                .map(|stream| stream.try_clone().unwrap())
            else {
                wire.send(answer("404 Not Found", &[], "no session"));
                continue;
            };
            if request.json()["method"] == "notifications/unanswered" {
                // Until the proxy closes the connection.
                assert!(wire.next_request().is_none());
                return;
            }
            wire.send(answer("202 Accepted", &[], "Accepted"));
            for said in self.replies(&request.json()) {
                stream
                    .write_all(format!("event: message\ndata: {said}\n\n").as_bytes())
                    .unwrap();
            }
        }
    }
}

fn reply(called: &Value) -> Option<Value> {
    let id = called.get("id").filter(|id| !id.is_null())?;
    let result = match called["method"].as_str()? {
        "initialize" => json!({ "protocolVersion": "2024-11-05", "capabilities": { "tools": {} },
            "serverInfo": { "name": "old", "version": "1" } }),
        "tools/call" => json!({ "content": [{ "type": "text", "text": "seven" }] }),
        "tools/list" => {
            json!({ "tools": [{ "name": "count", "inputSchema": { "type": "object" } }] })
        }
        _ => json!({ "method": called["method"] }),
    };
    Some(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}

#[test]
fn calls_are_posted_and_answered_on_the_stream() {
    let server = SseServer::start();
    let proxy = server.before(ROUTE);
    for id in ["7", "\"a\"", "1.50"] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"prompts/list"}}"#);
        let said = body_of(&proxy.rpc(body), 200).to_owned();
        assert!(
            said.contains(&format!(r#""id":{id},"#)) && said.contains("prompts/list"),
            "{said}"
        );
    }
    assert_eq!(
        body_of(&proxy.rest("GET", "/sum/7", &[], ""), 200),
        r#"{"said":"seven"}"#
    );
    let greeting = proxy.rpc(call("initialize", "{}")).json();
    assert_eq!(greeting["result"]["serverInfo"]["name"], "old");
    let opened = server.requests("GET");
    assert_eq!(opened.len(), 1);
    assert_eq!(opened[0].head.one("accept"), Some("text/event-stream"));
    let posted = server.requests("POST");
    for request in &posted {
        assert_eq!(request.head.start, "POST /messages/?session=1 HTTP/1.1");
        assert_eq!(request.head.one("x-key"), Some("k"));
        assert_eq!(request.head.one("content-type"), Some("application/json"));
    }
    let methods = posted
        .iter()
        .map(|request| request.json()["method"].clone());
    let methods: Vec<_> = methods.take(3).collect();
    assert_eq!(
        methods,
        ["initialize", "notifications/initialized", "prompts/list"]
    );
    assert_eq!(posted[0].json()["params"]["protocolVersion"], "2025-11-25");
    assert!(proxy.stop().status.success());
}

#[test]
fn a_client_without_sessions_calls_a_server_of_2024() {
    let server = SseServer::start();
    let proxy = server.before("");
    let headers = [
        ("Content-Type", "application/json"),
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/list"),
    ];
    let meta = json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {} } });
    let body = call("tools/list", &meta.to_string());
    let said = proxy.rest("POST", "/rpc", &headers, body).json();
    assert_eq!(said["result"]["resultType"], "complete", "{said}");
}

#[test]
fn a_stream_that_ends_is_opened_again() {
    let server = SseServer::start();
    let proxy = server.before("");
    assert_eq!(ask(&proxy, "one")["result"]["method"], "one");
    server.cut();
    becomes(|| server.requests("GET").len(), &2);
    assert_eq!(ask(&proxy, "two")["result"]["method"], "two");
    let last = server.requests("POST").pop().unwrap();
    assert_eq!(last.head.start, "POST /messages/?session=2 HTTP/1.1");
}

#[test]
fn a_message_that_the_server_does_not_accept_in_time_holds_up_no_other() {
    let server = SseServer::start();
    let proxy = server.before("timeout = \"300ms\"");
    assert_eq!(ask(&proxy, "one")["result"]["method"], "one");
    let notification = r#"{"jsonrpc":"2.0","method":"notifications/unanswered"}"#;
    proxy.rpc(notification);
    proxy.log_line(&["notifications/unanswered", "reason=upstream_timeout"]);
    assert_eq!(ask(&proxy, "two")["result"]["method"], "two");
}

#[test]
fn an_endpoint_of_another_origin_is_refused() {
    let server = SseServer::naming("http://127.0.0.2:1/messages?session={}");
    let proxy = server.before("connect_timeout = \"300ms\"");
    assert_eq!(proxy.rpc(call("one", "{}")).json()["error"]["code"], -31021);
    proxy.log_line(&["the link is lost", "it is on another origin"]);
    assert!(server.requests("POST").is_empty());
}

#[test]
fn import_and_rest_find_a_server_that_speaks_it() {
    let server = SseServer::start();
    let url = format!("http://{}/sse", server.address);
    let mut command = program(&["import", "--from", &url]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let ended = run_to_end(command);
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    assert!(ended.output.contains("count"), "{}", ended.output);
    let folder = tempfile::tempdir().unwrap();
    let loopback = ["--listen", "127.0.0.1:0"];
    let mut command = program(&[&["rest", "--mcp", &url], &loopback[..]].concat());
    command.env("TMPDIR", folder.path());
    let proxy = Proxy::launch(command, folder);
    proxy.printed("Stop with Ctrl-C.");
    let said = proxy.rest(
        "POST",
        "/count",
        &[("Content-Type", "application/json")],
        "{}",
    );
    assert!(said.text().contains("seven"), "{}", said.text());
}

#[test]
fn a_revision_without_sessions_does_not_fit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dualgauge.toml");
    let config = "[upstream.m]\nside = \"rpc\"\nurl = \"http://127.0.0.1:1/sse\"\nprotocol = \"mcp\"\ntransport = \"sse\"\n\
        revision = \"2026-07-28\"\n[rpc]\nsse_path = \"/mcp/\"\n";
    std::fs::write(&path, config).unwrap();
    let mut command = program(&["check", "--config"]);
    command
        .arg(&path)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let ended = run_to_end(command);
    let said = format!("{}{}", ended.output, ended.errors);
    assert!(said.contains("HTTP with SSE has sessions"), "{said}");
    assert!(said.contains("`/mcp/` is one of `paths` already"), "{said}");
}

/// A client over HTTP with SSE: its stream, and the endpoint for its messages.
struct SseClient<'p> {
    proxy: &'p Proxy,
    stream: Wire,
    endpoint: String,
}

impl SseClient<'_> {
    fn connect(proxy: &Proxy) -> SseClient<'_> {
        let mut stream = proxy.connect();
        stream.send("GET /sse HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n");
        begins(&mut stream);
        let first = String::from_utf8(stream.read_chunk().unwrap()).unwrap();
        let endpoint = first.strip_prefix("event: endpoint\ndata: ").unwrap();
        SseClient {
            proxy,
            stream,
            endpoint: endpoint.trim_end().to_owned(),
        }
    }

    fn post(&self, body: &str) -> Message {
        let json = [("Content-Type", "application/json")];
        self.proxy.rest("POST", &self.endpoint, &json, body)
    }

    fn ask(&mut self, method: &str) -> Value {
        assert_eq!(self.post(&call(method, "{}")).status(), 202);
        json_of(&mut self.stream)
    }
}

fn serving(server: &Upstream, keys: &str) -> Proxy {
    super::before(server, &format!("{keys}\n[rpc]\nsse_path = \"/sse\"\n"))
}

fn sessions(proxy: &Proxy, result: &str) -> f64 {
    let series = format!(r#"dualgauge_mcp_sse_sessions_total{{result="{result}"}}"#);
    proxy.metrics().value(&series)
}

#[test]
fn a_client_posts_and_reads_its_stream() {
    for server in [
        with_sessions(|_, called| result(called, r#"{"tools":[]}"#)),
        stateless(|_, called| result(called, r#"{"resultType":"complete","tools":[]}"#)),
    ] {
        let proxy = serving(&server, "");
        proxy.printed(&format!("http://{}/sse (HTTP with SSE)", proxy.address()));
        let (mut one, mut two) = (SseClient::connect(&proxy), SseClient::connect(&proxy));
        assert!(one.endpoint.starts_with("/sse?session_id=") && one.endpoint != two.endpoint);
        assert!(one.ask("initialize")["result"]["serverInfo"]["name"].is_string());
        let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        assert_eq!(one.post(initialized).status(), 202);
        assert_eq!(two.ask("tools/list")["result"]["tools"], json!([]));
        assert_eq!(one.ask("tools/list")["result"]["tools"], json!([]));
        proxy.log_line(&["rpc_method=tools/list", "outcome=success"]);
        assert_eq!(sessions(&proxy, "opened"), 2.0);
    }
}

#[test]
fn a_client_hears_how_far_its_call_is() {
    let server = with_sessions(|request, called| {
        let first = progress(&token(&request.json()), "1");
        let last = response(called, "{}");
        stream(&format!("data: {first}\n\ndata: {last}\n\n"))
    });
    let proxy = serving(&server, "");
    let mut client = SseClient::connect(&proxy);
    client.post(&call(
        "tools/call",
        r#"{"name":"a","_meta":{"progressToken":7}}"#,
    ));
    assert_eq!(event(&mut client.stream), progress(&json!(7), "1"));
    assert_eq!(json_of(&mut client.stream)["id"], 1);
}

#[test]
fn a_request_of_the_server_comes_on_the_stream() {
    let proxy = serving(&super::server_requests::asking(), "");
    let mut client = SseClient::connect(&proxy);
    let params = json!({ "protocolVersion": "2024-11-05", "capabilities": { "elicitation": {} },
        "clientInfo": { "name": "c", "version": "1" } });
    client.post(&call("initialize", &params.to_string()));
    assert!(json_of(&mut client.stream)["result"].is_object());
    client.post(&call("tools/call", r#"{"name":"t"}"#));
    let asked = json_of(&mut client.stream);
    assert_eq!(asked["method"], "elicitation/create");
    let given = json!({ "action": "decline" });
    let response = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": given });
    assert_eq!(client.post(&response.to_string()).status(), 202);
    assert_eq!(json_of(&mut client.stream)["result"]["got"], given);
}

#[test]
fn a_session_lasts_as_long_as_its_stream() {
    let server = with_sessions(|_, called| result(called, "{}"));
    let proxy = serving(&server, "");
    let client = SseClient::connect(&proxy);
    let endpoint = client.endpoint.clone();
    drop(client);
    becomes(|| sessions(&proxy, "ended"), &1.0);
    for endpoint in [&*endpoint, "/sse?session_id=", "/sse"] {
        let refused = proxy.rest("POST", endpoint, &[], call("a", "{}"));
        assert_eq!(refused.status(), 404, "{endpoint}");
    }
    // A stream of a client ends when the program does.
    let mut client = SseClient::connect(&proxy);
    proxy.signal("TERM");
    assert_eq!(client.stream.read_chunk(), None);
    assert!(proxy.wait().status.success());
}

#[test]
fn a_message_that_is_no_json_is_answered_on_the_stream() {
    let server = with_sessions(|_, called| result(called, "{}"));
    let proxy = serving(&server, "");
    let mut client = SseClient::connect(&proxy);
    assert_eq!(client.post("{").status(), 202);
    assert_eq!(json_of(&mut client.stream)["error"]["code"], -32700);
    let evil = [("Origin", "https://evil.example")];
    assert_eq!(proxy.rest("GET", "/sse", &evil, "").status(), 403);
    assert_eq!(
        proxy.rest("POST", &client.endpoint, &evil, "{}").status(),
        403
    );
}

fn run_client(library: &str, proxy: &Proxy) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/mcp/over_sse.py");
    let mut command = std::process::Command::new(installed(&format!("{library}/bin/python")));
    command
        .arg(script)
        .arg(format!("http://{}/sse", proxy.address()))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let ended = run_to_end(command);
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", proxy.log());
    serde_json::from_str(&ended.output).unwrap()
}

#[test]
#[ignore = "needs the peers of .ci/install-peers"]
fn the_official_libraries_serve_and_call_over_sse() {
    for server in ["peers", "peers-2"] {
        let peer = script(server, "tests/it/mcp/server.py", &["sse", "0"]);
        let address = peer.address;
        let proxy = Proxy::start(&format!(
            "[upstream.m]\nside = \"rpc\"\nurl = \"http://{address}/sse\"\nprotocol = \"mcp\"\ntransport = \"sse\"\n\
             [rpc]\nsse_path = \"/sse\"\n"
        ));
        for client in ["peers", "peers-2"] {
            let said = run_client(client, &proxy);
            let tools = ["add", "tell", "größe", "fail"];
            let wanted = json!(["peer", tools, "the sum is 3", "it", [[1.0, 2.0]]]);
            assert_eq!(said, wanted, "{client} before {server}");
        }
    }
}
