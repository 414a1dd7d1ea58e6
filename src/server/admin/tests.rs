//! Requests and their responses, with a scripted task in place of the owner of the state.

mod changes;
mod explain;
mod live;
mod recording;
mod sockets;

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::config::problem::{Problem, Problems, SourceLocation};
use crate::server::admin::{
    AdminApi, AdminBody, AdminCommand, AdminTokens, ChangeRequest, ClientView, DefaultsView,
    FileView, FlagView, FlagsView, LiveStreams, PlanView, Readiness, Refusal, Reloaded, RouteView,
    StaleSubject, StillMissing, UpstreamView,
};
use dualgauge_model::compare::Mismatches;
use dualgauge_model::explain::Explanation;
use dualgauge_model::lifecycle::UsageReport;
use dualgauge_model::rollout::overrides::{Change, ChangeMeta};
use dualgauge_model::rollout::{MatcherSource, Percent, Proof, Stage, WithoutKey};
use dualgauge_model::route::Effect;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::side::Side;

const LOOPBACK: &str = "127.0.0.1:9090";
const ELSEWHERE: &str = "192.0.2.7:9090";

fn percent(text: &str) -> Percent {
    Percent::parse(text).unwrap()
}

fn flag() -> FlagView {
    FlagView {
        name: "ios-first".to_owned(),
        client: "ios-*".to_owned(),
        route: "*".to_owned(),
        side: None,
        stage: Stage::Passthrough,
        percent: Percent::ALL,
        headers: [].into(),
        holdback: None,
        without_key: WithoutKey::Out,
        file: FileView {
            stage: Stage::Passthrough,
            percent: Percent::ALL,
        },
        tag: "3-abc".to_owned(),
        flipped: None,
        tripped: None,
        guard: None,
        ramp: None,
    }
}

fn listed(flag: FlagView) -> FlagsView {
    FlagsView {
        revision: 7,
        kill: None,
        kill_unstored: None,
        still_translated: Vec::new(),
        without_brownouts: Vec::new(),
        called_off: Vec::new(),
        flags: vec![flag],
    }
}

fn plan() -> PlanView {
    PlanView {
        routes: vec![RouteView {
            name: "tools.call".to_owned(),
            rest: "POST /tools/call".to_owned(),
            rpc: "tools/call".to_owned(),
            effect: Effect::Unsafe,
        }],
        clients: vec![ClientView {
            name: "ios-app".to_owned(),
            source: MatcherSource::Header,
            proof: Proof::Declared,
        }],
        upstreams: vec![UpstreamView {
            name: "old".to_owned(),
            side: Side::Rest,
        }],
        defaults: DefaultsView {
            rest: Stage::Passthrough,
            rpc: Stage::Translate,
        },
    }
}

/// Returns the scripted result of a change.
fn changed(asked: &ChangeRequest) -> Result<FlagsView, Refusal> {
    if asked
        .expected
        .as_ref()
        .is_some_and(|tags| !tags.contains(&flag().tag))
    {
        return Err(Refusal::Stale {
            subject: StaleSubject::Flag,
            found: flag().tag,
        });
    }
    let Change::Flip {
        flag: name,
        stage,
        percent,
    } = &asked.change
    else {
        return Ok(listed(flag()));
    };
    match name.as_str() {
        "ios-first" => Ok(listed(FlagView {
            stage: *stage,
            percent: *percent,
            flipped: Some(ChangeMeta {
                who: asked.who.clone(),
                at: "2026-02-03T04:05:06.000Z".to_owned(),
                why: asked.why.clone(),
            }),
            ..flag()
        })),
        "overtaken" => Err(Refusal::Lost),
        "invalid" => Err(Refusal::Invalid(Problems::from(
            Problem::for_file(
                SourceLocation::Flip("invalid".into()),
                "there is no upstream",
            )
            .hint("add one"),
        ))),
        "pending" => Err(Refusal::Pending(StillMissing)),
        _ => Err(Refusal::Unknown {
            nearest: Some("ios-first".to_owned()),
        }),
    }
}

fn obey(command: AdminCommand) {
    match command {
        AdminCommand::Flags(reply) => reply.send(listed(flag())).unwrap(),
        AdminCommand::Flag { name, reply } => {
            let known = name == "ios-first";
            let unknown = Refusal::Unknown {
                nearest: Some("ios-first".to_owned()),
            };
            let answer = if known { Ok(flag()) } else { Err(unknown) };
            reply.send(answer).unwrap();
        }
        AdminCommand::Change { asked, reply } => reply.send(changed(&asked)).unwrap(),
        AdminCommand::Explain { call, reply } => {
            let explanation = Explanation {
                request: format!("{} {:?}", call.method, call.target),
                ..Explanation::default()
            };
            reply.send(vec![explanation]).unwrap();
        }
        AdminCommand::History(reply) => reply.send(Vec::new()).unwrap(),
        AdminCommand::Plan(reply) => reply.send(plan()).unwrap(),
        AdminCommand::Document { side, reply } => {
            reply.send(Json::string(side.as_str())).unwrap();
        }
        AdminCommand::Mismatches(reply) => reply.send(Mismatches::default()).unwrap(),
        AdminCommand::View(command) => live::obey(command),
        AdminCommand::Recording(command) => recording::obey(command),
        // No test here evaluates flags.
        AdminCommand::Ofrep(command) => drop(command),
        AdminCommand::ForgetMismatches {
            attribution, reply, ..
        } => reply.send(vec![attribution.who]).unwrap(),
        AdminCommand::Usage { route, idle, reply } => {
            assert_eq!((route.as_str(), idle), ("*", 30 * 86_400));
            let report = UsageReport {
                at: "1970-01-01T00:00:00Z".to_owned(),
                idle_seconds: idle,
                routes: Vec::new(),
                eras: None,
            };
            reply.send(report).unwrap();
        }
        AdminCommand::Metrics(reply) => reply.send("dualgauge_up 1\n".to_owned()).unwrap(),
        AdminCommand::Ready(reply) => {
            let obstacles = vec!["draining".to_owned()];
            let notes = vec!["look at the log".to_owned()];
            reply.send(Readiness { obstacles, notes }).unwrap();
        }
        AdminCommand::Reload(reply) => reply.send(Reloaded::Unchanged).unwrap(),
        AdminCommand::ReloadForApi { reply, .. } => drop(reply.send(Err(Refusal::Lost))),
        AdminCommand::Drain(reply)
        | AdminCommand::Drained(reply)
        | AdminCommand::HandOver(reply) => reply.send(()).unwrap(),
    }
}

async fn within<F: Future>(future: F) -> F::Output {
    timeout(Duration::from_secs(60), future).await.unwrap()
}

/// Answers a request from the script; no tokens are configured.
async fn ask(address: &str, request: Request<Full<Bytes>>) -> Response<AdminBody> {
    ask_with(address, AdminTokens::default(), request).await
}

async fn ask_with(
    address: &str,
    tokens: AdminTokens,
    request: Request<Full<Bytes>>,
) -> Response<AdminBody> {
    let (control, mut commands) = mpsc::channel(1);
    let (address, streams) = (address.parse().unwrap(), LiveStreams::default());
    let admin = AdminApi::new(address, tokens, control, streams);
    let answer = async {
        let response = admin.answer(request).await;
        drop(admin);
        response
    };
    let script = async {
        while let Some(command) = commands.recv().await {
            obey(command);
        }
    };
    within(async { tokio::join!(answer, script).0 }).await
}

fn request(method: &str, path: &str) -> http::request::Builder {
    let request = Request::builder().method(method).uri(path);
    request.header("host", LOOPBACK)
}

fn empty(request: http::request::Builder) -> Request<Full<Bytes>> {
    request.body(Full::default()).unwrap()
}

fn put(name: &str, body: &str) -> Request<Full<Bytes>> {
    request("PUT", &format!("/api/v1/flags/{name}"))
        .header("content-type", "application/json")
        .body(Full::from(body.to_owned()))
        .unwrap()
}

async fn text(response: Response<AdminBody>) -> String {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Returns the status and the JSON of a response, after a check of the content type for that status.
async fn read(response: Response<AdminBody>) -> (u16, Value) {
    let status = response.status();
    let expected = if status == StatusCode::OK {
        "application/json"
    } else {
        "application/problem+json"
    };
    assert_eq!(response.headers()["content-type"], expected);
    assert_eq!(response.headers()["cache-control"], "no-store");
    assert_eq!(response.headers()["x-content-type-options"], "nosniff");
    (
        status.as_u16(),
        serde_json::from_str(&text(response).await).unwrap(),
    )
}

#[tokio::test]
async fn health_readiness_and_metrics_are_text() {
    let health = ask(LOOPBACK, empty(request("GET", "/healthz"))).await;
    assert_eq!(health.status(), 200);
    assert_eq!(text(health).await, "ok\n");
    let ready = ask(LOOPBACK, empty(request("GET", "/readyz"))).await;
    assert_eq!(ready.status(), 503);
    assert_eq!(
        text(ready).await,
        "not ready\ndraining\nnote: look at the log\n"
    );
    let metrics = ask(LOOPBACK, empty(request("GET", "/metrics"))).await;
    assert_eq!(metrics.status(), 200);
    assert_eq!(
        metrics.headers()["content-type"],
        "text/plain; version=0.0.4; charset=utf-8"
    );
    assert_eq!(text(metrics).await, "dualgauge_up 1\n");
}

#[tokio::test]
async fn flags_are_listed_in_order_with_the_revision() {
    let listed = read(ask(LOOPBACK, empty(request("GET", "/api/v1/flags"))).await).await;
    let flag = json!({
        "name": "ios-first", "client": "ios-*", "route": "*", "side": null,
        "stage": "passthrough", "percent": 100, "without_key": "out",
        "file": {"stage": "passthrough", "percent": 100},
        "tag": "3-abc", "flipped": null, "tripped": null, "guard": null, "ramp": null,
    });
    let expected = json!({
        "revision": 7, "kill": null, "still_translated": [], "called_off": [], "flags": [flag],
    });
    assert_eq!(listed, (200, expected));
    let one = read(ask(LOOPBACK, empty(request("GET", "/api/v1/flags/ios-first"))).await).await;
    assert_eq!(one, (200, flag));
}

#[test]
fn every_percentage_is_written_as_the_decimal_that_it_is() {
    for thousandths in 0..=100_000 {
        let percent = Percent::from_thousandths(thousandths).unwrap();
        let file = FileView {
            stage: Stage::Retired,
            percent,
        };
        let text = serde_json::to_string(&file).unwrap();
        let expected = format!(r#"{{"stage":"retired","percent":{percent}}}"#);
        assert_eq!(text, expected);
    }
    assert_eq!(percent("0.290").to_string(), "0.29");
}

#[tokio::test]
async fn the_plan_names_routes_clients_upstreams_and_defaults() {
    let plan = read(ask(LOOPBACK, empty(request("GET", "/api/v1/plan"))).await).await;
    let expected = json!({
        "routes": [
            {"name": "tools.call", "rest": "POST /tools/call", "rpc": "tools/call", "effect": "unsafe"}
        ],
        "clients": [{"name": "ios-app", "source": "header", "proof": "declared"}],
        "upstreams": [{"name": "old", "side": "rest"}],
        "defaults": {"rest": "passthrough", "rpc": "translate"},
    });
    assert_eq!(plan, (200, expected));
}

#[tokio::test]
async fn the_routes_are_a_document_for_each_side() {
    for (path, side) in [
        ("/api/v1/openapi.json", "rest"),
        ("/api/v1/openrpc.json", "rpc"),
    ] {
        let document = read(ask(LOOPBACK, empty(request("GET", path))).await).await;
        assert_eq!(document, (200, json!(side)), "{path}");
    }
}

#[tokio::test]
async fn an_unknown_flag_is_404_with_the_nearest() {
    let body = r#"{"stage": "translate", "percent": 25}"#;
    let requests = [
        empty(request("GET", "/api/v1/flags/ios-frist")),
        put("ios-frist", body),
    ];
    for request in requests {
        let (status, problem) = read(ask(LOOPBACK, request).await).await;
        assert_eq!(status, 404);
        assert_eq!(problem["title"], "Not Found");
        assert_eq!(problem["hint"], "did you mean `ios-first`?");
    }
}

#[tokio::test]
async fn a_flip_that_no_plan_can_have_is_422_with_all_problems() {
    let body = r#"{"stage": "translate", "percent": 25}"#;
    let (status, problem) = read(ask(LOOPBACK, put("invalid", body)).await).await;
    assert_eq!(status, 422);
    let problems = json!([{
        "place": "flip of `invalid`", "key": "",
        "message": "there is no upstream", "hint": "add one",
    }]);
    assert_eq!(problem["problems"], problems);
    let (status, problem) = read(ask(LOOPBACK, put("pending", body)).await).await;
    assert_eq!(status, 503);
    let detail = problem["detail"].as_str().unwrap();
    assert!(
        detail.starts_with("the change is stored: some workers"),
        "{detail}"
    );
}

#[tokio::test]
async fn a_bad_body_is_400_with_every_problem_and_its_place() {
    let (status, problem) = read(ask(LOOPBACK, put("ios-first", "{\"stag\": 1}")).await).await;
    assert_eq!(status, 400);
    let problems = problem["problems"].as_array().unwrap();
    assert_eq!(problems.len(), 3);
    assert_eq!(problems[0]["place"], "stag");
    assert_eq!(problems[0]["hint"], "did you mean `stage`?");
    let (status, problem) = read(ask(LOOPBACK, put("ios-first", "{\"stage\": x")).await).await;
    assert_eq!(status, 400);
    let message = problem["problems"][0]["message"].as_str().unwrap();
    assert!(message.starts_with("byte 10: "), "{message}");
}

#[tokio::test]
async fn a_write_is_json_and_not_too_large() {
    let typed = |content_type: Option<&str>| {
        let mut request = request("PUT", "/api/v1/flags/ios-first");
        if let Some(content_type) = content_type {
            request = request.header("content-type", content_type);
        }
        let body = r#"{"stage": "retired", "percent": 1}"#;
        request.body(Full::from(body)).unwrap()
    };
    for wrong in [
        None,
        Some("text/plain"),
        Some("application/jsonx"),
        Some(""),
    ] {
        assert_eq!(ask(LOOPBACK, typed(wrong)).await.status(), 415, "{wrong:?}");
    }
    for right in ["application/json", "Application/JSON ; charset=utf-8"] {
        assert_eq!(ask(LOOPBACK, typed(Some(right))).await.status(), 200);
    }
    let mut packed = typed(Some("application/json"));
    let gzip = http::HeaderValue::from_static("gzip");
    packed.headers_mut().insert("content-encoding", gzip);
    assert_eq!(ask(LOOPBACK, packed).await.status(), 415);

    let fits = format!("{{{}", " ".repeat(64 * 1024 - 1));
    assert_eq!(ask(LOOPBACK, put("ios-first", &fits)).await.status(), 400);
    let (status, _) = read(ask(LOOPBACK, put("ios-first", &format!("{fits} "))).await).await;
    assert_eq!(status, 413);
}

#[tokio::test]
async fn other_methods_are_405_with_those_that_are_allowed() {
    let cases = [
        ("POST", "/healthz", "GET, HEAD"),
        ("OPTIONS", "/api/v1/flags", "GET, HEAD"),
        ("POST", "/api/v1/flags/ios-first", "GET, HEAD, PUT, DELETE"),
    ];
    for (method, path, allow) in cases {
        let response = ask(LOOPBACK, empty(request(method, path))).await;
        assert_eq!(response.headers()["allow"], allow);
        assert_eq!(read(response).await.0, 405);
    }
    let nowhere = ask(LOOPBACK, empty(request("POST", "/nowhere"))).await;
    assert_eq!(read(nowhere).await.0, 404);
}

#[tokio::test]
async fn a_page_of_another_site_gets_nothing() {
    for path in ["/", "/healthz", "/metrics", "/api/v1/flags", "/nowhere"] {
        let rebound = Request::builder()
            .uri(path)
            .header("host", "evil.example:9090");
        assert_eq!(read(ask(LOOPBACK, empty(rebound)).await).await.0, 403);
        let cross = request("GET", path).header("origin", "http://evil.example");
        assert_eq!(read(ask(LOOPBACK, empty(cross)).await).await.0, 403);
        let hostless = Request::builder().uri(path);
        assert_eq!(read(ask(LOOPBACK, empty(hostless)).await).await.0, 400);
    }
    let own = request("GET", "/api/v1/flags").header("origin", "http://127.0.0.1:9090");
    assert_eq!(ask(LOOPBACK, empty(own)).await.status(), 200);
}

#[tokio::test]
async fn where_others_can_reach_it_only_health_and_metrics_and_pages_are_open() {
    for path in ["/healthz", "/metrics", "/", "/api/v1/docs"] {
        let open = ask(ELSEWHERE, empty(request("GET", path))).await;
        assert_eq!(open.status(), 200, "{path}");
    }
    for path in [
        "/api",
        "/api/v1/flags",
        "/api/v1/plan",
        "/api/v1/openapi.json",
        "/api/v1/openrpc.json",
        "/api/v1/flags/ios-first",
    ] {
        let (status, problem) = read(ask(ELSEWHERE, empty(request("GET", path))).await).await;
        assert_eq!(status, 403, "{path}");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("`admin.address` to a loopback address"));
    }
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_does_not_answer_is_503() {
    let (control, mut commands) = mpsc::channel(1);
    let address = LOOPBACK.parse().unwrap();
    let (tokens, streams) = (AdminTokens::default(), LiveStreams::default());
    let admin = AdminApi::new(address, tokens, control, streams);
    let slow = within(admin.answer(empty(request("GET", "/api/v1/flags")))).await;
    let (status, problem) = read(slow).await;
    assert_eq!(status, 503);
    assert!(problem["detail"].as_str().unwrap().contains("within 5 s"));
    // The command is still queued; its receiver sees that no caller waits for the reply.
    let Some(AdminCommand::Flags(reply)) = commands.recv().await else {
        panic!("a command");
    };
    assert!(reply.is_closed());

    drop(commands);
    let gone = within(admin.answer(empty(request("GET", "/readyz")))).await;
    assert_eq!(read(gone).await.0, 503);
    let alive = within(admin.answer(empty(request("GET", "/healthz")))).await;
    assert_eq!(alive.status(), 200);
}
