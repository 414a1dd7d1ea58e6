//! The keys of `[cors]`, of `[[local]]` and of `listen.hosts`.

use std::time::Duration;

use http::Method;

use super::Fixture;
use crate::config::raw::{LocalWord, RawAnswer, RawLocalCall, RawOrigin};
use dualgauge_model::cors::WebOrigin;
use dualgauge_model::hosts::HostName;
use dualgauge_model::rollout::Glob;
use dualgauge_patterns::json::Json;

fn json_of(text: &str) -> Json {
    Json::parse(text.to_owned().into(), 9).unwrap()
}

#[test]
fn cors_says_who_may_read_what() {
    let text = r#"
[listen]
hosts = ["api.example", "localhost:8080"]
[cors]
origins = ["https://app.example", "http://localhost:3000"]
headers = ["X-Tenant", "content-type"]
expose = ["x-total"]
credentials = true
max_age = "10m"
"#;
    let config = Fixture::new(text).config();
    let hosts: Vec<_> = config.listen.hosts.iter().map(|host| &host.value).collect();
    let known = ["api.example", "localhost:8080"].map(|host| HostName::parse(host).unwrap());
    assert_eq!(hosts, known.iter().collect::<Vec<_>>());
    let cors = config.cors.unwrap();
    let origins: Vec<_> = cors.origins.iter().map(|origin| &origin.value).collect();
    let one = |text: &str| RawOrigin::One(WebOrigin::parse(text).unwrap());
    assert_eq!(
        origins,
        [&one("https://app.example"), &one("http://localhost:3000")]
    );
    let headers = cors.headers.unwrap();
    let headers: Vec<_> = headers.iter().map(|name| name.value.as_str()).collect();
    assert_eq!(headers, ["x-tenant", "content-type"]);
    assert_eq!(cors.expose[0].value, "x-total");
    assert!(cors.credentials.value);
    assert_eq!(cors.max_age.unwrap().value, Duration::from_secs(600));
}

#[test]
fn headers_are_mirrored_if_none_are_configured() {
    let cors = |keys: &str| {
        let config = Fixture::new(&format!("[cors]\n{keys}\n")).config();
        config.cors.unwrap()
    };
    let open = cors("origins = '*'");
    assert_eq!(open.origins[0].value, RawOrigin::Any);
    assert_eq!(open.headers, None);
    assert!(!open.credentials.value);
    assert_eq!(open.max_age, None);
    let closed = cors("origins = ['https://a.example']\nheaders = []");
    assert_eq!(closed.headers, Some(Vec::new()));
    assert_eq!(Fixture::new("").config().cors, None);
}

#[test]
fn a_local_answer_is_a_word_or_written_out() {
    let text = r#"
[[local]]
rpc = "notifications/*"
answer = "none"
[[local]]
rpc = "ping"
answer = { result = { z = 1, a = "{_:null}", "b" = "{{x}}" } }
[[local]]
rpc = "old/*"
answer = { error = { code = -32601, message = "gone", data = [1.0] } }
[[local]]
rest = "GET /openapi.json"
answer = "openapi"
[[local]]
rest = "PUT /x"
answer = { status = 410, text = "gone: {x}", headers = { X-A = "{b}" } }
"#;
    let locals = Fixture::new(text).config().locals;
    let lines: Vec<_> = locals.iter().map(|local| local.call.line()).collect();
    let written: Vec<_> = lines.iter().map(|line| line.value.as_str()).collect();
    assert_eq!(
        written,
        [
            "notifications/*",
            "ping",
            "old/*",
            "GET /openapi.json",
            "PUT /x"
        ]
    );
    assert_eq!(lines[4].key, "local[4].rest");
    let RawLocalCall::Rpc(glob) = &locals[0].call else {
        panic!()
    };
    assert_eq!(glob.value, Glob::new("notifications/*"));
    let RawLocalCall::Rest(call) = &locals[4].call else {
        panic!()
    };
    assert_eq!(call.value, (Method::PUT, "/x".to_owned()));
    let answers = locals.iter().map(|local| &local.answer.value);
    let answers: Vec<_> = answers.collect();
    assert_eq!(answers[0], &RawAnswer::Word(LocalWord::Nothing));
    let result = json_of(r#"{"z":1,"a":null,"b":"{x}"}"#);
    assert_eq!(answers[1], &RawAnswer::Result(result));
    let RawAnswer::Error(error) = answers[2] else {
        panic!()
    };
    assert_eq!(
        (error.code, &error.message, &error.data),
        (-32601, &json_of("\"gone\""), &Some(json_of("[1.0]")))
    );
    assert_eq!(answers[3], &RawAnswer::Word(LocalWord::OpenApi));
    let RawAnswer::Reply(reply) = answers[4] else {
        panic!()
    };
    assert_eq!(reply.status.value, 410);
    assert_eq!(reply.text.as_deref(), Some("gone: {x}"));
    assert_eq!(reply.headers[0].0.value, "X-A");
    assert_eq!(reply.headers[0].1.value, "{b}");
}

#[test]
fn included_files_have_local_answers_as_well() {
    let one = |method: &str| format!("[[local]]\nrpc = '{method}'\nanswer = 'none'\n");
    let main = format!("include = ['r/*.toml']\n{}", one("a"));
    let config = Fixture::new(&main).file("r/b.toml", one("b")).config();
    let places: Vec<_> = config
        .locals
        .iter()
        .map(|local| local.call.line())
        .map(|line| (line.value, line.place.to_string()))
        .collect();
    assert_eq!(places[0].0, "a");
    assert_eq!(places[1].0, "b");
    assert!(places[1].1.ends_with("r/b.toml:2"), "{places:?}");
}

const EVERY_FAULT: &str = r#"[listen]
hosts = ["http://a", "*.example", 7]
[cors]
origins = ["https://app.example/", "https://App.example:443", "null", 1]
headers = "x-tenant"
expose = ["x total"]
credentials = "yes"
max_age = "10"
methods = ["PUT"]
[[local]]
rpc = ""
answer = "nothing"
[[local]]
rpc = "a"
rest = "GET /a"
answer = "initialise"
[[local]]
answer = "discovery"
[[local]]
rest = "/a"
[[local]]
rest = "get /a"
answer = {}
[[local]]
rest = "GET /a/{id}"
answer = { result = 1, error = { code = 1, message = "m" } }
[[local]]
rest = "GET /a?b=1"
answer = { status = 99, body = 1 }
[[local]]
rest = "CONNECT /a"
answer = { body = 1 }
[[local]]
rest = "GET a"
answer = { status = 200, body = 1, text = "t" }
[[local]]
rpc = "b"
answer = { error = { code = 1.5, message = 7, date = 1 } }
[[local]]
rpc = "c"
answer = { result = "{x}", status = 200 }
[[local]]
rpc = "d"
frame = 1
answer = 7
[[local]]
rpc = "e"
answer = { result = 1, reslt = 1 }
[[local]]
rpc = "f"
answer = { status = 200, headers = { a = 1 } }
[[local]]
rpc = "g"
answer = { error = { code = 1, message = 7 } }
"#;

#[test]
fn every_fault_has_its_line_and_key() {
    let problems = Fixture::new(EVERY_FAULT).problems();
    insta::assert_snapshot!(problems);
}

#[test]
fn codes_of_failures_keep_out_of_those_that_have_a_meaning() {
    let problems = |codes: &str| {
        let fixture = Fixture::new(&format!("[rpc]\nfailure_codes = {codes}\n"));
        fixture.load().err().map(|_| fixture.problems())
    };
    for (base, whose) in [
        ("-32700", "JSON-RPC itself"),
        ("-32501", "JSON-RPC itself"),
        ("-32022", "MCP"),
        ("-32000", "MCP"),
        ("-31921", "MCP"),
        ("-31499", "the statuses of REST servers"),
        ("-31400", "the statuses of REST servers"),
        ("-31350", "the statuses of REST servers"),
        ("-31301", "the statuses of REST servers"),
    ] {
        let message = problems(base).unwrap_or_default();
        assert!(
            message.contains(&format!("overlap those of {whose}")),
            "{base}: {message}"
        );
        assert!(message.contains("-31920 to -31500"), "{base}: {message}");
    }
    for free in [
        "-32701", "-32500", "-32023", "-31920", "-31500", "-31300", "-31000", "0",
    ] {
        assert_eq!(problems(free), None, "{free}");
    }
    for (codes, other) in [
        ("{ upstream_timeout = -32601 }", "route_not_found"),
        ("{ upstream_timeout = -32603 }", "internal"),
        ("{ upstream_cut = -31022 }", "upstream_timeout"),
        ("{ too_deep = -32700 }", "body_cut"),
        ("{ upstream_busy = -32020 }", "header_mismatch"),
    ] {
        let message = problems(codes).unwrap_or_default();
        let words = format!("is already the code of `{other}`");
        assert!(message.contains(&words), "{codes}: {message}");
    }
    for codes in [
        "{ upstream_cut = -31022, upstream_timeout = -31023 }",
        "{ overloaded = -32011, memory_full = -32011 }",
        "{ malformed_http = -32600, too_deep = -32600 }",
        "{ upstream_timeout = -31022, invalid_params = -32602 }",
    ] {
        assert_eq!(problems(codes), None, "{codes}");
    }
}
