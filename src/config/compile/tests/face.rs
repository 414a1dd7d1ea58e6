//! Local answers, and CORS.

use http::Method;
use proptest::prelude::*;

use super::{BOTH, ROUTE, plan, problems};
use crate::config::compile::compile;
use crate::config::load::load;
use crate::config::problem::{SourceLocation, Spanned};
use crate::config::raw::{LocalWord, RawAnswer, RawLocal, RawLocalCall, RawReply, RawServerInfo};
use crate::config::tests::Fixture;
use dualgauge_model::cors::{Origins, RequestHeaders};
use dualgauge_model::local_reply::{LocalAnswer, LocalMatch, RestLocalReply};
use dualgauge_model::plan::Plan;
use dualgauge_model::rollout::Glob;
use dualgauge_patterns::json::Json;

fn result<'p>(plan: &'p Plan, method: &str) -> &'p Json {
    match plan.locals.rpc(method) {
        Some(LocalAnswer::Result(json)) => json,
        other => panic!("{other:?}"),
    }
}

fn rest<'p>(plan: &'p Plan, method: &Method, path: &str) -> &'p RestLocalReply {
    match plan.locals.rest(method, path) {
        LocalMatch::Answer(local) => local,
        other @ (LocalMatch::Irregular(_) | LocalMatch::Nothing) => panic!("{other:?}"),
    }
}

#[test]
fn cors_becomes_part_of_the_plan() {
    let listed = plan(&format!(
        "{BOTH}[cors]\norigins = 'https://a.example'\nheaders = ['X-A']\ncredentials = true\n"
    ));
    let cors = listed.cors.unwrap();
    assert!(matches!(cors.origins, Origins::Listed(listed) if listed.len() == 1));
    assert!(matches!(cors.headers, RequestHeaders::Listed(listed) if listed == ["x-a"]));
    assert!(cors.allows_credentials);
    let open = plan(&format!("{BOTH}[cors]\norigins = ['*']\nexpose = ['*']\n"));
    let cors = open.cors.unwrap();
    assert_eq!(cors.origins, Origins::Any);
    assert_eq!(cors.headers, RequestHeaders::Mirrored);
    assert_eq!(cors.expose, ["*"]);
    assert!(plan(BOTH).cors.is_none());
}

#[test]
fn local_answers_become_part_of_the_plan() {
    let plan = plan(&format!(
        "{BOTH}{ROUTE}{}",
        r#"
[[local]]
rpc = "rpc.discover"
answer = "openrpc"
[[local]]
rpc = "notifications/*"
answer = "none"
[[local]]
rest = "GET /%6Fpenapi.json"
answer = "openapi"
[[local]]
rest = "GET /mcp"
answer = { status = 405, body = { a = [] }, headers = { allow = "POST", content-type = "application/problem+json" } }
[[local]]
rest = "GET /robots.txt"
answer = { status = 200, text = "" }
[[local]]
rest = "DELETE /mcp"
answer = { status = 204 }
"#
    ));
    let document: serde_json::Value =
        serde_json::from_slice(result(&plan, "rpc.discover").as_bytes()).unwrap();
    assert_eq!(document["methods"][0]["name"], "a");
    assert_eq!(result(&plan, "notifications/x").as_bytes(), b"null");
    let served = rest(&plan, &Method::GET, "/openapi.json");
    let document: serde_json::Value = serde_json::from_slice(&served.body).unwrap();
    assert!(document["paths"]["/a"]["get"].is_object(), "{document}");
    assert_eq!(served.headers["content-type"], "application/json");
    let refused = rest(&plan, &Method::GET, "/mcp");
    assert_eq!(refused.status, 405);
    assert_eq!(&*refused.body, br#"{"a":[]}"#);
    assert_eq!(refused.headers["content-type"], "application/problem+json");
    assert_eq!(refused.headers["allow"], "POST");
    let text = rest(&plan, &Method::HEAD, "/robots.txt");
    assert_eq!(text.headers["content-type"], "text/plain; charset=utf-8");
    let nothing = rest(&plan, &Method::DELETE, "/mcp");
    assert!(nothing.body.is_empty() && nothing.headers.is_empty());
}

/// Begins at line 7, after [`BOTH`].
const EVERY_FAULT: &str = r#"
[cors]
origins = ["*", "https://a.example"]
credentials = true
headers = ["x-a", "*"]
expose = ["*"]
[[local]]
rpc = "ping"
answer = { status = 200 }
[[local]]
rest = "GET /a"
answer = { result = 1 }
[[local]]
rest = "GET /b"
answer = { error = { code = 1, message = "m" } }
[[local]]
rest = "GET /c"
answer = "none"
[[local]]
rest = "GET /d/"
answer = "openapi"
[[local]]
rest = "POST /rpc"
answer = "openapi"
[[local]]
rest = "GET /e"
answer = { status = 204, text = "" }
[[local]]
rest = "GET /f"
answer = { status = 200, headers = { "Content-Length" = "7" } }
[[local]]
rest = "GET /g"
answer = { status = 200, headers = { "no name" = "7" } }
[[local]]
rest = "GET /h"
answer = { status = 200, headers = { x = "a\nb" } }
[[local]]
rpc = "a/*"
answer = "none"
[[local]]
rpc = "a/*"
answer = "none"
[[local]]
rpc = "*/b"
answer = "none"
[[local]]
rest = "GET /i"
answer = "openapi"
[[local]]
rest = "GET /%69"
answer = "openrpc"
"#;

#[test]
fn every_fault_is_told_at_once() {
    insta::assert_snapshot!(problems(&format!("{BOTH}{EVERY_FAULT}")));
}

#[test]
fn a_local_answer_may_precede_a_route() {
    let before = "[[local]]\nrest = 'GET /a'\nanswer = { status = 200 }\n[[local]]\nrpc = 'a'\nanswer = 'none'\n";
    let plan = plan(&format!("{BOTH}{ROUTE}{before}"));
    assert!(plan.locals.rpc("a").is_some());
}

fn located<T>(value: T) -> Spanned<T> {
    Spanned {
        value,
        place: SourceLocation::Default,
        key: "local[0]".to_owned(),
    }
}

fn any_local() -> impl Strategy<Value = RawLocal> {
    let method = prop::sample::select(vec![Method::GET, Method::HEAD, Method::POST]);
    let call = prop_oneof![
        (method, "/[ab/.%]{0,4}|/rpc").prop_map(|call| RawLocalCall::Rest(located(call))),
        "[ab*/]{0,4}|\\PC{0,6}".prop_map(|glob| RawLocalCall::Rpc(located(Glob::new(glob)))),
    ];
    let reply = |status, text, header: (String, String)| {
        RawAnswer::Reply(RawReply {
            status: located(status),
            body: None,
            text,
            headers: vec![(located(header.0), located(header.1))],
        })
    };
    let word = prop::sample::select(vec![
        LocalWord::OpenApi,
        LocalWord::OpenRpc,
        LocalWord::Nothing,
        LocalWord::Initialize,
        LocalWord::Discover,
        LocalWord::Tools,
    ]);
    let answer = prop_oneof![
        word.prop_map(RawAnswer::Word),
        Just(RawAnswer::Result(Json::literal("1"))),
        (
            any::<u16>(),
            prop::option::of("\\PC{0,3}"),
            ("[a-c]{1,2}|\\PC{0,3}", "\\PC{0,3}|\\n")
        )
            .prop_map(move |(status, text, header)| reply(status, text, header)),
    ];
    (call, answer).prop_map(|(call, answer)| RawLocal {
        call,
        answer: located(answer),
        server_info: RawServerInfo::default(),
        page: None,
        title: None,
    })
}

proptest! {
    #[test]
    fn no_local_answers_make_it_panic_and_what_compiles_is_answered(locals in prop::collection::vec(any_local(), 0..5)) {
        let sources = Fixture::new(&format!("{BOTH}{ROUTE}"));
        let mut raw = load(&sources.sources).unwrap();
        raw.locals.clone_from(&locals);
        let Ok(plan) = compile(&raw, &[]) else { return Ok(()) };
        for local in locals {
            match local.call {
                RawLocalCall::Rpc(glob) => {
                    prop_assert!(plan.locals.rpc(glob.value.as_str()).is_some());
                }
                RawLocalCall::Frame(_) => {}
                RawLocalCall::Rest(call) => {
                    let (method, path) = call.value;
                    let found = plan.locals.rest(&method, &path);
                    prop_assert!(matches!(found, LocalMatch::Answer(_)), "{} {}", method, path);
                }
            }
        }
    }
}

#[test]
fn server_info_has_the_capabilities_of_the_routes_unless_configured() {
    let result = |keys: &str| {
        let tools = "[[route]]\nname = 't'\nrest = 'POST /tools'\nrpc = 'tools/call'\n";
        let local = format!("[[local]]\nrpc = 'initialize'\nanswer = 'initialize'\n{keys}");
        let plan = plan(&format!("{BOTH}{tools}{local}"));
        let params = Json::literal(r#"{"protocolVersion":"2025-06-18"}"#);
        let answer = plan
            .locals
            .rpc("initialize")
            .unwrap()
            .respond(Some(&params));
        serde_json::from_slice::<serde_json::Value>(answer.unwrap().as_bytes()).unwrap()
    };
    let plain = result("");
    assert_eq!(plain["capabilities"], serde_json::json!({ "tools": {} }));
    assert_eq!(plain["serverInfo"]["name"], "dualgauge");
    assert_eq!(plain["protocolVersion"], "2025-06-18");
    let result = result(
        "server = { name = 'items', title = 'Items' }\ncapabilities = {}\ninstructions = 'look first'\nversions = '2024-11-05'\n",
    );
    assert_eq!(result["capabilities"], serde_json::json!({}));
    assert_eq!(result["serverInfo"]["title"], "Items");
    assert_eq!(result["serverInfo"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(result["instructions"], "look first");
    assert_eq!(result["protocolVersion"], "2024-11-05");
}

#[test]
fn server_info_keys_need_an_answer_with_server_info() {
    let local = "[[local]]\nrpc = 'ping'\nanswer = { result = {} }\nserver = { name = 'items' }\n";
    let found = problems(&format!("{BOTH}{ROUTE}{local}"));
    assert!(
        found.contains("local[0].server: `server`, `capabilities`"),
        "{found}"
    );
    let local = "[[local]]\nrest = 'GET /a'\nanswer = 'discover'\n";
    let found = problems(&format!("{BOTH}{ROUTE}{local}"));
    assert!(found.contains("answer RPC calls; write `rpc = "), "{found}");
}
