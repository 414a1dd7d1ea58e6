//! The patterns of a route, as the admin API shows them.

use serde_json::{Value, json};

use crate::support::Proxy;
use crate::two_servers::{MOVER, Servers};

/// Routes of each left form, with parts of each kind.
const PATTERNS: &str = r#"
[upstream.frames]
side = "rest"
url  = "ws://127.0.0.1:9/legacy"

[[outcomes.common]]
name = "other"
rest = { status = "{status:integer}", body = { error = "{e}" } }
rpc  = { error = { code = -32000, data = { error = "{e}", status = "{status}" } } }

[[outcomes.common]]
name  = "refused"
after = ["other"]
rest  = { status = [400, "4xx"], text = "no: {m}" }
rpc   = { error = { code = -32602, message = "{m}", data = { big = 9007199254740993 } } }
lossy = "why"

[[route]]
name        = "things.write"
rest        = "PUT /things/{id:integer}?dry={dry:boolean=false}"
query       = { "..." = "{others}" }
headers     = { x-tenant = "{tenant}", "x-meta-..." = "{meta}" }
body        = { title = "{title}", kind = "{_=\"a\"}", "..." = "{rest}" }
rpc         = "things/write"
rpc_headers = { x-mode = "fast", authorization = "Bearer s3cret" }
params      = { id = "{id}", dry = "{dry}", others = "{others}", tenant = "{tenant}", meta = "{meta}", title = "{title}", "..." = "{rest}" }
outcomes    = ["common"]

[[route.outcome]]
rest = { status = 404, headers = { x-cause = "{cause}" } }
rpc  = { error = { code = -32001, data = { cause = "{cause}" } } }

[[route]]
name = "old.get"
old  = { path = "/jsonrpc", body = { method = "get-it", arguments = { n = "{n}" }, tag = "{id:integer?}" } }
rpc  = "get_it"
params = { n = "{n}" }

[[route.outcome]]
old = { body = { result = "success", arguments = "{r}", tag = "{>id}" } }
rpc = { result = "{r}" }

[[route]]
name  = "frame.file"
frame = { command = "get_file", request_id = "{id?}", path = "{path}" }
rpc   = "file/get"
params = { path = "{path}" }

[[route.outcome]]
frame = { event = "file", payload = "{file:object}", request_id = "{>id}" }
rpc   = { result = "{file}" }
"#;

/// The parts of a side: `name pattern`.
fn parts(side: &Value) -> Vec<String> {
    let text = |part: &Value, member: &str| part[member].as_str().unwrap().to_owned();
    let parts = side.as_array().unwrap().iter();
    parts
        .map(|part| format!("{} {}", text(part, "name"), text(part, "pattern")))
        .collect()
}

/// Returns the patterns of a route.
fn patterns(name: &str) -> Value {
    let servers = Servers::start();
    let config = format!("{}{PATTERNS}", servers.config());
    let proxy = Proxy::start_with_flags(&config, MOVER);
    let answer = proxy.ask("GET", &format!("/api/v1/routes/{name}"), "");
    assert_eq!(answer.status(), 200, "{name}: {answer:?}");
    answer.json()["patterns"].clone()
}

#[test]
fn a_route_shows_all_patterns_of_both_sides() {
    let short = patterns("things.read");
    assert_eq!(parts(&short["rest"]), ["rest GET /things/{id}"]);
    assert_eq!(
        parts(&short["rpc"]),
        ["rpc things/read", r#"params {"id":"{id}"}"#],
        "the params that a short form implies"
    );
    assert_eq!(short["holes"], json!(["id:string"]));
    assert_eq!(short["outcomes"], json!([]));

    let full = patterns("things.write");
    assert_eq!(
        parts(&full["rest"]),
        [
            "rest PUT /things/{id:integer}?dry={dry:boolean=false}",
            "query.dry {dry}",
            "query.\"...\" {others}",
            "headers.x-tenant {tenant}",
            "headers.\"x-meta-...\" {meta}",
            r#"body {"title":"{title}","kind":"{_=\"a\"}","...":"{rest}"}"#,
        ]
    );
    assert_eq!(
        parts(&full["rpc"])[..3],
        [
            "rpc things/write",
            "rpc_headers.x-mode fast",
            "rpc_headers.authorization ***"
        ]
    );
}

#[test]
fn a_route_shows_its_outcomes_and_those_of_its_sets() {
    let full = patterns("things.write");
    let [missing, other, refused] = &full["outcomes"].as_array().unwrap()[..] else {
        panic!("{full}");
    };
    assert_eq!(
        [missing, other, refused].map(|row| (&row["name"], &row["lossy"])),
        [
            (&Value::Null, &Value::Null),
            (&"other".into(), &Value::Null),
            (&"refused".into(), &"why".into())
        ]
    );
    assert_eq!(missing["key"], "route[1].outcome[0]");
    assert_eq!(refused["after"], json!(["other"]));
    assert_eq!(other["holes"], json!(["status:integer", "e:any"]));
    assert_eq!(
        parts(&missing["rest"]),
        ["status 404", "headers.x-cause {cause}"]
    );
    assert_eq!(
        parts(&missing["rpc"]),
        ["error.code -32001", r#"error.data {"cause":"{cause}"}"#]
    );
    assert_eq!(
        parts(&other["rest"]),
        ["status {status}", r#"body {"error":"{e}"}"#]
    );
    assert_eq!(parts(&refused["rest"]), ["status 400|4xx", "text no: {m}"]);
    assert_eq!(
        parts(&refused["rpc"])[1..],
        [
            r#"error.message "{m}""#,
            r#"error.data {"big":9007199254740993}"#
        ]
    );
}

#[test]
fn old_messages_and_frames_are_shown_by_their_keys() {
    let old = patterns("old.get");
    assert_eq!(
        parts(&old["rest"]),
        [
            "old.path POST /jsonrpc",
            r#"old.body {"method":"get-it","arguments":{"n":"{n}"},"tag":"{id}"}"#
        ]
    );
    assert_eq!(
        parts(&old["outcomes"][0]["rest"]),
        [
            "old.status 200",
            r#"old.body {"result":"success","arguments":"{r}","tag":"{>id}"}"#
        ]
    );
    let frame = patterns("frame.file");
    assert_eq!(
        parts(&frame["rest"]),
        [r#"frame {"command":"get_file","request_id":"{id}","path":"{path}"}"#]
    );
    assert_eq!(
        parts(&frame["outcomes"][0]["rest"]),
        [r#"frame {"event":"file","payload":"{file}","request_id":"{>id}"}"#]
    );
}
