//! A proxy with everything that it can count: both sides, a child, a stream, every stage, guards that trip, reloads.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::scene::{Called, answer, call, json};
use crate::stdio::child;
use crate::support::{Message, Proxy, Upstream, becomes, chunked, eventually};

const TABLES: &str = r#"
[limits]
in_flight = 2
[[client]]
name = "ios"
match = { header = { x-client-id = "ios" } }
key = { header = "x-device-id" }
[[client]]
name = "android"
match = { header = { x-client-id = "android" } }
key = { header = "x-device-id" }
[[client]]
name = "asker"
match = { header = { x-client-id = "asker" } }
key = { header = "x-device-id" }
[[client]]
name = "mover"
match = { header = { x-client-id = "mover" } }
[[client]]
name = "tester"
match = { header = { x-client-id = "tester" } }
[[client]]
name = "verifier"
match = { header = { x-client-id = "verifier" } }
[[client]]
name = "late"
match = { header = { x-client-id = "late" } }

[[route]]
name = "item.get"
rest = "GET /items/{id}"
rpc = "item/get"
[[route]]
name = "item.make"
rest = "POST /items"
rpc = "item/make"
[[route]]
name = "list.get"
rest = "GET /lists/{id}"
rpc = "list/get"
deprecated = { since = 2023-06-30, sunset = 2038-01-01 }
[[route]]
name = "held"
rest = "GET /held"
rpc = "held"
upstream = "slow"
[[route]]
name = "ask"
rest = "POST /ask/{what}"
rpc = "ask"
params = { what = "{what}" }
upstream = "child"

[[route]]
name = "session.get"
old = { path = "/old/rpc", body = { method = "session-get", arguments = { fields = "{fields:array?}" }, tag = "{id:integer?}" } }
rpc = "session/get"
params = { fields = "{fields}" }
[[route.outcome]]
old = { body = { result = "success", arguments = "{result:object}", tag = "{>id}" } }
rpc = { result = "{result}" }

[[stream]]
name = "events"
rest = "GET /mcp/v1/sse"
rpc = "GET /sse"
[[event]]
rpc = { method = "notifications/said", params = { text = "{text}" } }
sse = { event = "said", text = "{text}" }
"#;

const FLAGS: &str = r#"
[[flag]]
name = "mover"
client = "ios"
route = "item.get"
stage = "translate"
percent = 50
guard = { window = "10s", min_calls = 10 }
[[flag]]
name = "tried"
client = "android"
route = "item.get"
stage = "translate"
percent = 50
guard = { window = "10s", min_calls = 10, dry_run = true }
[[flag]]
name = "asked"
client = "asker"
stage = "translate"
percent = 50
without_key = "in"
[[flag]]
name = "moved"
client = "mover"
stage = "translate"
[[flag]]
name = "compared"
client = "tester"
stage = "shadow"
[[flag]]
name = "verified"
client = "verifier"
route = "*.get"
stage = "verify"
[[flag]]
name = "closed"
client = "late"
stage = "retired"
"#;

const MORE: &str = "[[flag]]\nname = \"more\"\nclient = \"late\"\nstage = \"passthrough\"\n";

const DEVICES: usize = 8;
const ITEM: &str = r#"{"id":"7"}"#;

/// The proxy and what stands behind it.
pub(super) struct Town {
    pub(super) proxy: Proxy,
    broken: Arc<AtomicBool>,
    slow: Upstream,
    _servers: [Upstream; 3],
}

impl Town {
    pub(super) fn found() -> Town {
        let broken = Arc::new(AtomicBool::new(false));
        let is_broken = broken.clone();
        let old = Upstream::serving(|request| match request.head.start.contains("/lists/") {
            true => json(r#"{"of":"old"}"#),
            false => json(ITEM),
        });
        let new = Upstream::serving(move |request| new_server(request, &is_broken));
        let slow = Upstream::start();
        let source = Upstream::answering(json(r#"{"flags":[]}"#));
        let (old_at, new_at, slow_at) = (old.address(), new.address(), slow.address());
        let source_at = source.address();
        let child = child::command();
        let config = format!(
            "[listen]\nworkers = 1\n\
             [upstream.old]\nside = \"rest\"\nurl = \"http://{old_at}\"\ndefault = true\n\
             [upstream.slow]\nside = \"rest\"\nurl = \"http://{slow_at}\"\n\
             [upstream.new]\nside = \"rpc\"\nurl = \"http://{new_at}/rpc\"\ndefault = true\n\
             [upstream.child]\nside = \"rpc\"\n{child}\
             [rollout.source]\nurl = \"http://{source_at}\"\n{TABLES}"
        );
        Town {
            proxy: Proxy::start_with_flags(&config, FLAGS),
            broken,
            slow,
            _servers: [old, new, source],
        }
    }

    /// What happens once: too many calls, a reload that is refused and one that is not, a server that breaks, and
    /// guards that see it.
    pub(super) fn begin(&self) {
        self.fill();
        self.reload();
        self.round();
        self.broken.store(true, Ordering::SeqCst);
        eventually("both guards have seen it", || {
            self.round();
            let metrics = self.proxy.metrics();
            let trips = metrics.table("dualgauge_guard_trips_total", &["flag", "limit", "mode"]);
            let seen = |mode: &str| trips.keys().any(|row| row.ends_with(mode));
            (seen(" act") && seen(" dry_run")).then_some(())
        });
    }

    /// Two calls that are held, and one too many.
    fn fill(&self) {
        let mut held = Vec::new();
        for _ in 0..2 {
            let mut client = self.proxy.connect();
            client.send("GET /held HTTP/1.1\r\nHost: a\r\n\r\n");
            let mut server = self.slow.accept();
            server.read_request();
            held.push((client, server));
        }
        assert_eq!(self.get("/items/7", "other", "1").status(), 503);
        for (mut client, mut server) in held {
            server.send(json("{}"));
            assert_eq!(client.read_answer().status(), 200);
        }
    }

    fn reload(&self) {
        let file = self.proxy.folder().join("flags.toml");
        let reloads = |result: &str| {
            let series = format!("dualgauge_plan_reloads_total{{result=\"{result}\"}}");
            self.proxy.metrics().value(&series)
        };
        for (text, result) in [("[[flag", "failed"), (&*format!("{FLAGS}{MORE}"), "ok")] {
            let before = reloads(result);
            fs::write(&file, text).unwrap();
            self.proxy.signal("HUP");
            becomes(|| reloads(result) > before, &true);
        }
    }

    fn get(&self, path: &str, client: &str, device: &str) -> Message {
        let headers = [("x-client-id", client), ("x-device-id", device)];
        self.proxy.rest("GET", path, &headers, "")
    }

    /// A call of each kind.
    pub(super) fn round(&self) {
        for device in 0..DEVICES {
            let device = device.to_string();
            self.get("/items/7", "ios", &device);
            self.get("/items/7", "android", &device);
        }
        let headers = |client| {
            [
                ("x-client-id", client),
                ("content-type", "application/json"),
            ]
        };
        let post = |path, client, body: &str| self.proxy.rest("POST", path, &headers(client), body);
        for client in ["tester", "verifier"] {
            self.get("/items/7", client, "1");
            self.get("/lists/7", client, "1");
            post("/rpc", client, &call("list/get", r#"{"id":"7"}"#));
        }
        post("/items", "tester", "{}");
        // The route does not know the name, so that the candidate fails.
        self.get("/lists/7?more=1", "tester", "1");
        // Without a key.
        assert_eq!(post("/ask/now", "asker", "").status(), 200);
        assert_eq!(self.get("/items/7/more", "other", "1").status(), 200);
        assert_eq!(self.get("/lists/7?utm_a=1", "mover", "1").status(), 200);
        assert_eq!(
            post("/rpc", "mover", &call("item/get", r#"{"id":"7"}"#)).status(),
            200
        );
        // A client of MCP, with the revision of a handshake.
        let [client, content_type] = headers("mover");
        let of_mcp = [client, content_type, ("mcp-protocol-version", "2025-11-25")];
        let call = call("item/get", r#"{"id":"7"}"#);
        assert_eq!(
            self.proxy.rest("POST", "/rpc", &of_mcp, &call).status(),
            200
        );
        let old = r#"{"method":"session-get","arguments":{},"tag":7}"#;
        assert_eq!(post("/old/rpc", "other", old).status(), 200);
        assert_eq!(post("/items", "mover", "{").status(), 400);
        assert_eq!(self.get("/items/7", "late", "1").status(), 410);
        let evaluated = self.proxy.ask("POST", "/ofrep/v1/evaluate/flags", "{}");
        assert_eq!(evaluated.status(), 200, "{evaluated:?}");
        let events = self.get("/mcp/v1/sse", "mover", "1");
        assert!(events.text().contains("event: said"), "{events:?}");
    }
}

fn new_server(request: &Message, broken: &AtomicBool) -> Vec<u8> {
    if request.head.start.starts_with("GET /sse") {
        let note = r#"{"jsonrpc":"2.0","method":"notifications/said","params":{"text":"a"}}"#;
        let event = format!("event: message\r\ndata: {note}\r\n\r\n");
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
        return [head.as_bytes(), &chunked(&[event.as_bytes()])].concat();
    }
    let called = Called::of(request);
    if called.method() == "item/get" && broken.load(Ordering::SeqCst) {
        return answer("503 Service Unavailable", &[], "out of order");
    }
    let result = match called.method() {
        "list/get" => r#"{"of":"new"}"#,
        _ => ITEM,
    };
    let id = called.id();
    json(format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#
    ))
}
