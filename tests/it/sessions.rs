//! Open sessions keep the decision that they began with.

use crate::scene::{body_of, call, json, saying};
use crate::support::{Message, Proxy, Upstream, becomes, both};

const ROUTES: &str = r#"
[[route]]
name = "chat.say"
rest = "GET /chats/{chat}/say?text={text}"
rpc = "chat/say"
affinity = "chat"
[[route]]
name = "tools.call"
rest = "POST /tools"
rpc = "tools/call"
"#;

const FLAG: &str = "[[flag]]\nname = \"move\"\nstage = \"translate\"\npercent = 0\n";

struct Scene {
    _rest: Upstream,
    _rpc: Upstream,
    proxy: Proxy,
}

impl Scene {
    fn of(rollout: &str) -> Scene {
        let rest = Upstream::answering(json(r#""rest""#));
        let rpc = saying(r#""result":"rpc""#);
        let clients = "[[client]]\nname = \"app\"\nmatch = { header = { x-app = \"*\" } }\nkey = { header = \"x-app\" }\n";
        let config = format!(
            "{}{ROUTES}{clients}\n[rollout]\nflags = \"flags.toml\"\n{rollout}",
            both(&rest, &rpc)
        );
        let flags = FLAG.replace("stage", "client = \"app\"\nstage");
        let proxy = Proxy::start_with(&config, &[("flags.toml", &flags)]);
        Scene {
            _rest: rest,
            _rpc: rpc,
            proxy,
        }
    }

    /// Which server hears what is said in a chat, over REST.
    fn heard(&self, chat: &str) -> String {
        let target = format!("/chats/{chat}/say?text=hello");
        let answer = self.proxy.rest("GET", &target, &[("X-App", "1")], "");
        body_of(&answer, 200).trim_matches('"').to_owned()
    }

    /// The same over RPC.
    fn heard_rpc(&self, chat: &str) -> String {
        let params = format!(r#"{{"text":"hello","chat":"{chat}"}}"#);
        self.rpc("chat/say", &params, &[])
    }

    /// Which server a tool of a session of MCP is called on.
    fn called(&self, session: &str) -> String {
        self.rpc(
            "tools/call",
            r#"{"name":"a"}"#,
            &[("Mcp-Session-Id", session)],
        )
    }

    fn rpc(&self, method: &str, params: &str, more: &[(&str, &str)]) -> String {
        let headers = [&[("X-App", "1")], more].concat();
        let answer = self
            .proxy
            .rest("POST", "/rpc", &headers, call(method, params));
        answer.json()["result"].as_str().unwrap().to_owned()
    }

    fn flip(&self, percent: u8) -> Message {
        let body = format!(r#"{{"stage":"translate","percent":{percent}}}"#);
        let answer = self.proxy.ask("PUT", "/api/v1/flags/move", &body);
        assert_eq!(answer.status(), 200, "{answer:?}");
        answer
    }
}

#[test]
fn a_session_of_mcp_keeps_its_way_and_new_ones_take_the_new_way() {
    let scene = Scene::of("");
    assert_eq!(scene.called("old"), "rpc");
    scene.flip(100);
    assert_eq!(scene.called("old"), "rpc");
    assert_eq!(scene.called("new"), "rest");
    scene.flip(0);
    assert_eq!(scene.called("new"), "rest");
    let line = scene.proxy.log_line(&["flag move as the session began"]);
    assert!(line.contains("stage=translate"), "{line}");
    let decided = scene.proxy.metrics().table(
        "dualgauge_decisions_total",
        &["client", "side", "reason", "flag"],
    );
    assert_eq!(decided["app rpc session move"], 1.0);
}

#[test]
fn a_route_names_the_hole_that_tells_its_sessions_apart() {
    let scene = Scene::of("");
    assert_eq!(scene.heard("7"), "rest");
    scene.flip(100);
    assert_eq!(scene.heard("7"), "rest");
    assert_eq!(scene.heard("8"), "rpc");
    // The same chat is the same session, whichever language is spoken.
    assert_eq!(scene.heard_rpc("7"), "rpc");
    assert_eq!(scene.heard_rpc("9"), "rest");
}

#[test]
fn a_session_begins_with_the_plan_that_serves_its_first_call() {
    let scene = Scene::of("");
    let body = call("tools/call", r#"{"name":"a"}"#);
    let (first, rest) = body.split_at(10);
    let mut wire = scene.proxy.connect();
    let head =
        "Host: proxy.example\r\nContent-Type: application/json\r\nX-App: 1\r\nMcp-Session-Id: slow";
    let length = body.len();
    wire.send(format!(
        "POST /rpc HTTP/1.1\r\n{head}\r\nContent-Length: {length}\r\n\r\n{first}"
    ));
    // The call is in progress, so the flip comes after it has its plan.
    let busy = || scene.proxy.metrics().value("dualgauge_calls_in_flight");
    becomes(busy, &1.0);
    scene.flip(100);
    wire.send(rest);
    assert_eq!(wire.read_answer_to("POST").json()["result"], "rpc");
    assert_eq!(scene.called("slow"), "rpc");
    assert_eq!(scene.called("new"), "rest");
}

#[test]
fn nobody_else_can_begin_the_session_of_a_caller() {
    let scene = Scene::of("");
    let other = [("X-App", "2"), ("Mcp-Session-Id", "victim")];
    scene.proxy.rest(
        "POST",
        "/rpc",
        &other,
        call("tools/call", r#"{"name":"a"}"#),
    );
    scene.flip(100);
    assert_eq!(scene.called("victim"), "rest");
}

#[test]
fn calls_of_no_session_follow_every_flip() {
    let scene = Scene::of("");
    let call = || scene.rpc("tools/call", r#"{"name":"a"}"#, &[]);
    assert_eq!(call(), "rpc");
    scene.flip(100);
    assert_eq!(call(), "rest");
}

#[test]
fn the_kill_switch_acts_on_open_sessions() {
    let scene = Scene::of("");
    scene.flip(100);
    assert_eq!(scene.called("new"), "rest");
    let killed = scene.proxy.ask("PUT", "/api/v1/kill", "{}");
    assert_eq!(killed.status(), 200, "{killed:?}");
    assert_eq!(scene.called("new"), "rpc");
}

#[test]
fn without_a_grace_open_sessions_follow_at_once() {
    let scene = Scene::of("session_grace = \"0s\"\n");
    assert_eq!(scene.called("old"), "rpc");
    scene.flip(100);
    assert_eq!(scene.called("old"), "rest");
}
