use std::time::Duration;

use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use proptest::prelude::*;

use super::*;
use crate::cors::{Cors, Origins, RequestHeaders, WebOrigin};
use crate::hosts::Reach;
use crate::lifecycle::{Brownouts, Lifecycle};
use crate::local_reply::{LocalAnswer, LocalReplies, LocalReply, RestLocalReply, RpcLocalReply};
use crate::plan::{
    Authority, Credentials, Limits, RpcFace, Transport, Unrouted, UpstreamPlan, Upstreams,
};
use crate::rollout::{
    Client, Clients, Defaults, Glob, KeySource, Kill, Matcher, Percent, Rollout, Stage,
};
use crate::route::{RouteSource, RouteTable, parse_route};
use crate::shadow_limits::ShadowLimits;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::SourceTree;
use dualgauge_transport::multiplexing::Multiplexing;

fn upstream(name: &str, side: Side) -> UpstreamPlan {
    UpstreamPlan {
        more: Vec::new(),
        watch: Default::default(),
        name: name.into(),
        side,
        tls: None,
        transport: Transport::Http,
        authority: Authority::new("127.0.0.1:9".to_owned()),
        path: PathAndQuery::from_static("/rpc"),
        timeout: Duration::from_secs(1),
        connect_timeout: Duration::from_secs(1),
        queue_timeout: None,
        keep_alive: Duration::from_secs(1),
        idle_timeout: Duration::from_secs(1),
        http2: Multiplexing::Off,
        max_age: None,
        connections: 1,
        queue: 16,
        credentials: Credentials::Forward,
        forward: Vec::new(),
        envelope: Vec::new(),
    }
}

const LIMITS: Limits = Limits {
    body: 200,
    answer: 1000,
    head: 1000,
    target: 60,
    batch: 3,
    depth: 16,
    error_text: 64,
    in_flight: 1,
    connections: 1,
    memory: 1,
    header_timeout: Duration::from_secs(1),
    idle_timeout: Duration::from_secs(1),
    body_timeout: Duration::from_secs(1),
    body_rate: None,
    total_timeout: None,
    write_timeout: Duration::from_secs(1),
    drain: Duration::from_secs(1),
};

const APP: &str = "https://app.example";

/// To `ping`, and to `GET /here`.
fn own_answers() -> Vec<LocalReply> {
    let here = RestLocalReply {
        method: Method::GET,
        path: "/here".into(),
        status: StatusCode::ACCEPTED,
        headers: HeaderMap::new(),
        body: Bytes::from_static(b"7"),
    };
    let ping = RpcLocalReply {
        method: Glob::new("ping"),
        answer: LocalAnswer::Result(Json::literal("{}")),
    };
    vec![LocalReply::Rest(here), LocalReply::Rpc(ping)]
}

fn cors() -> Cors {
    Cors {
        origins: Origins::Listed(vec![WebOrigin::parse(APP).unwrap()]),
        headers: RequestHeaders::Mirrored,
        expose: Vec::new(),
        allows_credentials: false,
        max_age: None,
    }
}

/// The header `x-key` is the API key.
fn clients() -> Clients {
    let known = Client {
        name: "known".into(),
        matcher: Matcher::ApiKey(vec![[7; 32]]),
        key: Some(KeySource::ApiKey),
    };
    Clients::new(vec![known], HeaderName::from_static("x-key"))
}

fn candidates() -> ShadowLimits {
    ShadowLimits {
        concurrency: 1,
        memory: 1024,
        timeout: Duration::from_secs(1),
        sample: Percent::ALL,
        per_request: 1,
        noise: Percent::NONE,
    }
}

/// Everything is translated.
fn rollout() -> Rollout {
    Rollout {
        clients: clients(),
        flags: Vec::new().into(),
        defaults: Defaults {
            rest: Stage::Translate,
            rpc: Stage::Translate,
        },
        kill: Kill::Off,
        decision_header: None,
        session_grace: Duration::from_secs(900),
        brownouts: Brownouts::default(),
    }
}

fn params(members: &[(&str, &str)]) -> SourceTree {
    let members = members.iter();
    let members =
        members.map(|(name, hole)| ((*name).to_owned(), SourceTree::Text((*hole).to_owned())));
    SourceTree::Table(members.collect())
}

fn short() -> RouteSource {
    RouteSource {
        name: "make".into(),
        rest: "POST /items/{id}".into(),
        rpc: "items/make".into(),
        ..RouteSource::default()
    }
}

pub(crate) fn plan() -> Plan {
    let short = short();
    let full = RouteSource {
        name: "read".into(),
        rest: "GET /items/{id}".into(),
        rpc: "items/read".into(),
        params: Some(params(&[("id", "{id}"), ("token", "{token}")])),
        headers: vec![(
            "authorization".into(),
            SourceTree::Text("Bearer {token}".into()),
        )],
        extra: Some(crate::route::Extra::Drop),
        ..RouteSource::default()
    };
    let routes = [short, full].map(|source| parse_route(source).unwrap());
    Plan {
        ready: Vec::new(),
        redaction: std::sync::Arc::default(),
        tls: None,
        proxy_protocol: dualgauge_transport::proxy_protocol::ProxyProtocolUse::Off,
        forwarding: crate::forwarding::Forwarding::default(),
        identity_headers: Default::default(),
        record: None,
        trace: None,
        series: Default::default(),
        streams: Default::default(),
        events: Default::default(),
        routes: RouteTable::build(routes.into()).unwrap(),
        candidates: candidates(),
        locals: LocalReplies::build(own_answers()).unwrap(),
        cors: Some(cors()),
        hosts: Vec::new(),
        public_url: None,
        reach: Reach::Network,
        comparing: Vec::new(),
        rollout: rollout(),
        upstreams: Upstreams {
            of_streams: Vec::new(),
            all: vec![upstream("old", Side::Rest), upstream("new", Side::Rpc)],
            defaults: [Some(0), Some(1)],
            frames: None,
            pair: None,
            of_routes: Vec::new(),
        },
        face: RpcFace {
            paths: vec!["/rpc".into()],
            notification_status: None,
            failure_codes: crate::failure::FailureCodes::default(),
            error_status: crate::outcome::ErrorStatus::OfServer,
            batch_concurrency: 1,
            ..RpcFace::default()
        },
        unrouted: Unrouted::Reject,
        irregular: None,
        lifecycle: Lifecycle::default(),
        limits: LIMITS,
    }
}

fn explained(
    (method, target): (Method, &str),
    headers: &[(&'static str, &str)],
    body: &str,
) -> Vec<Explanation> {
    let uri: Uri = target.parse().unwrap();
    let headers = headers.iter().map(|(name, value)| {
        (
            HeaderName::from_static(name),
            HeaderValue::from_str(value).unwrap(),
        )
    });
    let request = ExplainRequest {
        head: RequestHead {
            method: &method,
            uri: &uri,
            headers: &headers.collect(),
        },
        peer: None,
        body: &Bytes::copy_from_slice(body.as_bytes()),
        reply: None,
    };
    let environment = ExplainEnvironment {
        digest: |_| [7; 32],
        now: String::new,
        unix_seconds: || 0,
    };
    explain(&plan(), request, environment)
}

fn refused(request: (Method, &str), body: &str) -> String {
    let explanations = explained(request, &[], body);
    let refused = explanations[0].refused.as_ref().unwrap();
    format!("{} {} {}", refused.status, refused.code, refused.message)
}

#[test]
fn invalid_bodies_are_refused_by_the_limits_of_the_plan() {
    let long = format!("\"{}\"", "x".repeat(200));
    let deep = "[".repeat(17);
    let rest = || (Method::POST, "/items/7");
    let rpc = || (Method::POST, "/rpc");
    let id = "x".repeat(60);
    let call =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"items/make","params":{{"id":"{id}"}}}}"#);
    for (request, body, words) in [
        (
            rest(),
            &*long,
            "413 -31005 the body is longer than 200 bytes",
        ),
        (rest(), &deep, "400 -31008 body: "),
        (rpc(), &long, "413 -31005 the body is longer than 200 bytes"),
        (
            rpc(),
            "[1,2,3,4]",
            "200 -31009 the batch has 4 messages; at most 3 are allowed",
        ),
        (
            rpc(),
            &call,
            "200 -32602 the URL built from these params is longer than 60 bytes",
        ),
        (
            (Method::PUT, "/items/7"),
            "",
            "405 -31010 PUT is not allowed for this path; allowed: ",
        ),
        (
            (Method::GET, "/nope"),
            "",
            "404 -32601 no route matches GET `/nope`",
        ),
    ] {
        let refused = refused(request, body);
        assert!(refused.starts_with(words), "{refused}");
    }
}

#[test]
fn dropped_members_are_named_as_often_as_counted() {
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"items/read","params":{"id":"7","token":"t","x":1,"y":{},"_meta":{}}}"#;
    let explanations = explained((Method::POST, "/rpc"), &[], call);
    assert_eq!(explanations[0].dropped, ["params/x", "params/y"]);
}

#[test]
fn messages_that_are_not_calls_are_explained_as_such() {
    let batch =
        r#"[{"jsonrpc":"2.0","id":1,"result":1},7,{"jsonrpc":"2.0","method":"items/make"}]"#;
    let explanations = explained((Method::POST, "/rpc"), &[], batch);
    let lines: Vec<(&str, bool)> = explanations
        .iter()
        .map(|one| (one.message.as_deref().unwrap(), one.refused.is_some()))
        .collect();
    assert_eq!(
        lines,
        [
            ("1 of 3: a response from the client", false),
            ("2 of 3: invalid message", true),
            ("3 of 3: items/make, a notification", true),
        ]
    );
    // A failed notification gets no answer.
    let silent = explanations[2].refused.as_ref().unwrap();
    assert_eq!((silent.status, silent.document.as_str()), (204, ""));
}

proptest! {
    #[test]
    fn no_credential_is_in_an_explanation(
        secret in "[A-Z\"\\\\%/+é]{0,3}Q[A-Z0-9]{8,12}",
        place in 0..5_usize,
    ) {
        let bearer = format!("Bearer {secret}");
        let cookie = format!("a=1; sid={secret}");
        let headers: &[(&'static str, &str)] = match place {
            0 | 3 => &[("authorization", &bearer)],
            1 => &[("cookie", &cookie)],
            2 => &[("x-key", &secret)],
            _ => &[],
        };
        let quoted = Json::string(&secret);
        let quoted = String::from_utf8_lossy(quoted.as_bytes());
        let explanations = match place {
            0..3 => explained((Method::POST, "/items/7"), headers, &format!("{{\"s\":{quoted}}}")),
            3 => explained((Method::GET, "/items/7"), headers, ""),
            _ => {
                let params = format!(r#"{{"id":"7","token":{quoted}}}"#);
                let call = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"items/read","params":{params}}}"#);
                explained((Method::POST, "/rpc"), headers, &call)
            }
        };
        let text = serde_json::to_string(&explanations).unwrap();
        let core: String = secret.chars().skip_while(|letter| *letter != 'Q').collect();
        prop_assert!(!text.contains(&core), "{}", text);
    }

    #[test]
    fn no_request_panics(
        target in "/[a-z/%.]{0,9}(\\?[a-z=&%]{0,9})?",
        body in "[\\[{]?[a-z\":,0-9\\[\\]{}]{0,20}",
        post in any::<bool>(),
    ) {
        let method = if post { Method::POST } else { Method::GET };
        if target.parse::<Uri>().is_ok() {
            let explanations = explained((method, &target), &[], &body);
            prop_assert!(!explanations.is_empty());
        }
    }
}

/// The decision, the status, and the body or the header names of a reply by the proxy.
fn own(explanation: &Explanation) -> String {
    let decision = explanation.decision.as_ref().unwrap();
    assert!(explanation.route.is_none() && explanation.sends.is_none());
    let said = match (&explanation.answer, &explanation.refused) {
        (Some(answer), None) => {
            let headers = answer.headers.iter().map(|(name, _)| name.as_str());
            let body = serde_json::to_string(&answer.body).unwrap();
            let headers: Vec<&str> = headers.collect();
            format!("{} {body} {}", answer.status, headers.join(" "))
        }
        (None, Some(refused)) => format!("{} {}", refused.status, refused.reason),
        (answer, _) => format!("{answer:?}"),
    };
    format!("{} {}: {}", decision.stage, decision.why, said.trim_end())
}

#[test]
fn replies_of_the_proxy_are_explained() {
    let ping = r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#;
    let silent = r#"{"jsonrpc":"2.0","method":"ping"}"#;
    let evil = [("origin", "https://evil.example")];
    let preflight = [("origin", APP), ("access-control-request-method", "GET")];
    let here = || (Method::GET, "/here");
    let rpc = || (Method::POST, "/rpc");
    for (request, headers, body, words) in [
        (here(), &[][..], "", "none local: 202 7"),
        (here(), &evil, "", "none local: 403 origin_refused"),
        (
            (Method::GET, "//here"),
            &[],
            "",
            "none local: 400 malformed_target",
        ),
        (
            rpc(),
            &[],
            ping,
            r#"none local: 200 {"jsonrpc":"2.0","id":"a","result":{}}"#,
        ),
        (rpc(), &evil, ping, "none local: 403 origin_refused"),
        (rpc(), &[], silent, "none local: None"),
        (
            (Method::OPTIONS, "/items/7"),
            &preflight,
            "",
            "none preflight: 204 null vary access-control-allow-origin access-control-allow-methods",
        ),
    ] {
        let explanations = explained(request.clone(), headers, body);
        assert_eq!(own(&explanations[0]), words, "{request:?}");
    }
}
