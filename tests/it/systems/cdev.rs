//! `config/cdev.toml` between its clients and cdev: each endpoint from both sides, what fails, and what must never
//! be confused.

use serde_json::{Value, json as value};

use super::calls::{ask as ask_with, expect_proven, json_of, play, sent_rest, sent_rpc};
use super::fake_cdev::{Generation, rest, rpc};
use crate::scene::call;
use crate::support::{Message, Proxy, Upstream, both, rest_only, rpc_only};

const TABLE: &str = include_str!("../../../config/cdev.toml");

fn proxy(config: &str, table: &str) -> Proxy {
    let config = format!("include = [\"cdev.toml\"]\n{config}");
    Proxy::start_with(&config, &[("cdev.toml", table)])
}

/// The table as somebody writes it whose server follows the plan.
fn table_of_the_plan() -> String {
    let sets = ["agent", "session", "file", "list", "git", "refusal", "diff"];
    let table = sets.iter().fold(TABLE.to_owned(), |table, set| {
        table.replace(&format!("\"cdev_{set}\""), &format!("\"cdev_plan_{set}\""))
    });
    // The examples hold for the running server's codes.
    let parts = table
        .split("\n[[")
        .filter(|part| !part.starts_with("route.example]]"));
    parts.collect::<Vec<_>>().join("\n[[")
}

fn ask(proxy: &Proxy, call: &str) -> Message {
    ask_with(proxy, &[], call)
}

#[test]
fn rest_clients_are_served_by_the_rpc_server() {
    let upstream = Upstream::serving(rpc(Generation::Running));
    let proxy = proxy(&rpc_only(&upstream), TABLE);
    play(include_str!("calls/cdev_from_rest.txt"), |call| {
        let answer = ask(&proxy, call.said);
        let answer = format!("{} {}", answer.status(), answer.text());
        (sent_rpc(&upstream), answer)
    });
}

/// The result or the error of an answer with the status 200.
fn outcome(answer: &Message) -> Value {
    assert_eq!(answer.status(), 200, "{answer:?}");
    outcome_of(answer)
}

/// The result or the error of an answer.
fn outcome_of(answer: &Message) -> Value {
    let mut answer = answer.json();
    let members = answer.as_object_mut().unwrap();
    assert_eq!(members.remove("jsonrpc"), Some(value!("2.0")));
    assert_eq!(members.remove("id"), Some(value!(1)));
    answer
}

#[test]
fn rpc_clients_are_served_by_the_rest_server() {
    let upstream = Upstream::serving(rest);
    let proxy = proxy(&rest_only(&upstream), TABLE);
    play(include_str!("calls/cdev_from_rpc.txt"), |said| {
        let (method, params) = said.said.split_once(' ').unwrap();
        let answer = proxy.rpc(call(method, params));
        // 401, 403, 429 and 503 of the REST server are the HTTP status of the answer; any other is 200.
        let answer = match answer.status() {
            200 => outcome_of(&answer).to_string(),
            status => format!("{status} {}", outcome_of(&answer)),
        };
        (sent_rest(&upstream), answer)
    });
}

#[test]
fn who_is_not_moved_meets_the_servers_as_they_are() {
    let (old, new) = (
        Upstream::serving(rest),
        Upstream::serving(rpc(Generation::Running)),
    );
    let proxy = proxy(&both(&old, &new), TABLE);
    let rows = [
        (
            "GET /api/file?path=",
            400,
            "{\"error\":\"path query parameter is required\"}\n",
        ),
        (
            "GET /api/claude/sessions?limit=1",
            200,
            "{\"current\":\"\",\"limit\":1,\"offset\":0,\"sessions\":null,\"total\":0}\n",
        ),
        ("GET /api/repository/stats", 405, "Method not allowed\n"),
        ("GET /api/images", 404, "404 page not found\n"),
        ("OPTIONS /api/git/status", 200, ""),
    ];
    for (call, status, body) in rows {
        let answer = ask(&proxy, call);
        assert_eq!((answer.status(), answer.text()), (status, body), "{call}");
        assert_eq!(
            answer.head.one("access-control-allow-origin"),
            Some("*"),
            "{call}"
        );
    }
    let answer = proxy.rpc(call("file/get", "{}"));
    let expected =
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"path is required"}}"#;
    assert_eq!(answer.text(), format!("{expected}\n"));
}

#[test]
fn health_tells_the_time_to_who_calls_rest() {
    let upstream = Upstream::serving(rpc(Generation::Running));
    let proxy = proxy(&rpc_only(&upstream), TABLE);
    let health = ask(&proxy, "GET /health").json();
    assert_eq!(health["status"], "ok");
    let time = health["time"].as_str().unwrap();
    assert!(
        time.len() >= 20 && &time[4..5] == "-" && &time[10..11] == "T",
        "{time}"
    );
    assert_eq!(health.as_object().unwrap().len(), 2, "{health}");
}

#[test]
fn what_no_row_opens_keeps_the_escapes_of_go() {
    let before = |config: &str| proxy(config, TABLE);
    let rpc_server = Upstream::serving(rpc(Generation::Running));
    let diff = ask(
        &before(&rpc_only(&rpc_server)),
        "GET /api/git/diff?path=src%2Fa.ts",
    );
    let escaped = r#"{"diff":"-a \u003cb\u003e\n+a \u0026 c\n","is_new":false,"is_staged":false,"path":"src/a.ts"}"#;
    assert_eq!(diff.text(), escaped);
    let rest_server = Upstream::serving(rest);
    let diff = before(&rest_only(&rest_server)).rpc(call("git/diff", r#"{"path":"src/a.ts"}"#));
    let expected = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{escaped}}}"#);
    assert_eq!(diff.text(), expected);
}

#[test]
fn deleting_all_takes_a_call_without_params() {
    let upstream = Upstream::serving(rest);
    let before_rest = proxy(&rest_only(&upstream), TABLE);
    let answer = before_rest.rpc(r#"{"jsonrpc":"2.0","id":1,"method":"session/delete"}"#);
    let expected = value!({ "result": { "status": "deleted", "deleted": 5 } });
    assert_eq!(outcome(&answer), expected);
    assert_eq!(sent_rest(&upstream), "DELETE /api/claude/sessions");
}

/// Calls that are nearly "delete one" or "delete all", from both sides.
const NO_DELETE: [&str; 4] = [
    "DELETE /api/claude/sessions?session_id=",
    "DELETE /api/claude/sessions?session_id",
    "DELETE /api/claude/sessions?sessionid=X",
    "DELETE /api/claude/sessions?session_id=X&session_id=Y",
];
const NO_DELETE_RPC: [&str; 6] = [
    r#"{"session_id":""}"#,
    r#"{"session_id":null}"#,
    r#"{"session_id":["X"]}"#,
    r#"{"sessionId":"X"}"#,
    r#"{"SESSION_ID":"X"}"#,
    r#"["X"]"#,
];

#[test]
fn deleting_one_session_never_becomes_deleting_all() {
    let upstream = Upstream::serving(rpc(Generation::Running));
    let before_rpc = proxy(&rpc_only(&upstream), TABLE);
    for call in NO_DELETE {
        assert_eq!(ask(&before_rpc, call).status(), 400, "{call}");
    }
    assert_eq!(upstream.requests(), []);
    let upstream = Upstream::serving(rest);
    let before_rest = proxy(&rest_only(&upstream), TABLE);
    for params in NO_DELETE_RPC {
        let answer = outcome(&before_rest.rpc(call("session/delete", params)));
        assert_eq!(answer["error"]["code"], -32602, "{params}: {answer}");
    }
    assert_eq!(upstream.requests(), []);
}

#[test]
fn what_the_other_side_cannot_do_is_refused() {
    let upstream = Upstream::serving(rpc(Generation::Running));
    let before_rpc = proxy(&rpc_only(&upstream), TABLE);
    for call in [
        "GET /api/claude/sessions?offset=20",
        "GET /api/claude/sessions?agent_type=codex",
        "GET /api/claude/sessions/messages?session_id=X&order=sideways",
        "GET /api/repository/search?q=x&limit=many",
        "GET /api/repository/search?q=x&exclude_binaries=1",
        r#"POST /api/git/checkout {"branch":"x","create":true}"#,
        r#"POST /api/git/checkout {}"#,
    ] {
        assert_eq!(ask(&before_rpc, call).status(), 400, "{call}");
    }
    assert_eq!(upstream.requests(), []);
    let upstream = Upstream::serving(rest);
    let before_rest = proxy(&rest_only(&upstream), TABLE);
    for (method, params) in [
        ("session/list", r#"{"agent_type":"codex"}"#),
        ("session/list", r#"{"limit":"20"}"#),
        (
            "session/messages",
            r#"{"session_id":"X","agent_type":"codex"}"#,
        ),
        ("git/checkout", r#"{"branch":"x","create":true}"#),
        ("repository/search", r#"{"query":"x","extensions":"go,js"}"#),
    ] {
        let answer = outcome(&before_rest.rpc(call(method, params)));
        assert_eq!(
            answer["error"]["code"], -32602,
            "{method} {params}: {answer}"
        );
    }
    assert_eq!(upstream.requests(), []);
}

#[test]
fn a_server_of_the_plan_has_codes_of_its_own() {
    let table = table_of_the_plan();
    let upstream = Upstream::serving(rpc(Generation::Plan));
    let before_rpc = proxy(&rpc_only(&upstream), &table);
    let rows = [
        (
            "GET /api/file?path=nope",
            404,
            r#"{"error":"File not found","path":"nope"}"#,
        ),
        (
            "DELETE /api/claude/sessions?session_id=nope",
            404,
            r#"{"error":"session not found: nope","session_id":"nope"}"#,
        ),
        (
            "GET /api/git/status",
            404,
            r#"{"error":"Not a git repository"}"#,
        ),
        (
            r#"POST /api/git/stage {"paths":["nope"]}"#,
            500,
            r#"{"error":"no match","success":false}"#,
        ),
        (
            r#"POST /api/git/commit {"message":"busy"}"#,
            200,
            r#"{"success":false,"error":"a hook refused"}"#,
        ),
    ];
    for (call, status, expected) in rows {
        let answer = ask(&before_rpc, call);
        assert_eq!(
            (answer.status(), answer.json()),
            (status, json_of(expected)),
            "{call}"
        );
    }
    let upstream = Upstream::serving(rest);
    let before_rest = proxy(&rest_only(&upstream), &table);
    let rows = [
        ("file/get", r#"{"path":"nope"}"#, -32010),
        ("session/delete", r#"{"session_id":"nope"}"#, -32012),
        ("git/diff", r#"{"path":"bare"}"#, -32011),
        ("git/diff", r#"{"path":"nope"}"#, -32011),
        ("git/unstage", r#"{"paths":["nope"]}"#, -32011),
        ("git/checkout", r#"{"branch":"nope"}"#, -32011),
        ("git/commit", r#"{"message":"busy"}"#, -32011),
        ("agent/run", r#"{"prompt":"busy"}"#, -32001),
        ("file/list", r#"{"path":"nope"}"#, -32010),
    ];
    for (method, params, code) in rows {
        let answer = outcome(&before_rest.rpc(call(method, params)));
        assert_eq!(answer["error"]["code"], code, "{method} {params}: {answer}");
    }
    // The REST server answers 403, which is the HTTP status of the RPC answer too.
    let outside = before_rest.rpc(call("file/list", r#"{"path":"../x"}"#));
    assert_eq!(outside.status(), 403, "{outside:?}");
    assert_eq!(outcome_of(&outside)["error"]["code"], -32010, "{outside:?}");
}

#[test]
fn a_notification_is_answered_by_nobody() {
    let upstream = Upstream::serving(rpc(Generation::Running));
    let proxy = proxy(&rpc_only(&upstream), TABLE);
    let answer = proxy.rpc(r#"{"jsonrpc":"2.0","method":"agent/stop"}"#);
    assert_eq!((answer.status(), answer.text()), (204, ""));
}

#[test]
fn the_table_is_proven_and_shows_what_it_loses() {
    expect_proven(&[TABLE, &table_of_the_plan()], "");
}
