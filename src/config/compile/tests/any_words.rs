//! Law for arbitrary words: no panic.

use std::path::Path;

use proptest::prelude::*;

use crate::config::compile::compile;
use crate::config::load::{Sources, load};
use crate::config::problem::{SourceLocation, Spanned};
use crate::config::raw::{
    RawAddresses, RawClient, RawCompare, RawFlag, RawHeaderGlob, RawMatch, RawRoute, RawSchemas,
    RawServer, RawUpstream,
};
use dualgauge_model::plan::Credentials;
use dualgauge_model::rollout::{Arming, Stage, WithoutKey};
use dualgauge_patterns::side::Side;

fn located<T>(value: T, key: &str) -> Spanned<T> {
    Spanned {
        value,
        place: SourceLocation::file(Path::new("a.toml")),
        key: key.to_owned(),
    }
}

fn any_rest() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "GET ",
        "POST ",
        "/",
        "a",
        "{",
        "}",
        "{x}",
        "{y:integer}",
        "{x=**}",
        "{z=a/*}",
        "*",
        "?",
        "&",
        "=",
        "q={q}",
        "tags={t:string[]}",
        ":",
        ".",
        "%",
        "%2f",
        "ä",
        "mcp",
        " ",
        "{{",
        "{x?=5}",
    ]);
    prop_oneof![
        4 => prop::collection::vec(piece, 0..9).prop_map(|pieces| format!("GET /{}", pieces.concat())),
        2 => prop::collection::vec("[a-c/{}?=&:.%]{0,3}", 0..5).prop_map(|pieces| pieces.concat()),
        1 => "\\PC{0,20}",
    ]
}

fn any_route() -> impl Strategy<Value = RawRoute> {
    let rpc = prop_oneof!["[ab]/[ab]", "\\PC{0,8}"];
    let from = prop::option::of(any_side());
    let name = "[ab]{1,2}|\\PC{0,6}";
    (name, any_rest(), rpc, from).prop_map(|(name, rest, rpc, from)| RawRoute {
        old: None,
        rpc_headers: Vec::new(),
        silence: None,
        place: SourceLocation::Default,
        key: "route[0]".to_owned(),
        is_paired: false,
        name: located(name, "route[0].name"),
        rest: located(rest, "route[0].rest"),
        rpc: located(rpc, "route[0].rpc"),
        params: None,
        body: None,
        body_format: None,
        query: Vec::new(),
        headers: Vec::new(),
        extra: None,
        ignore_query: None,
        after: Vec::new(),
        from: from.map(|from| located(from, "route[0].from")),
        stage: None,
        notify: None,
        effect: None,
        timeout: None,
        stream: None,
        stream_timeout: None,
        subscription: None,
        affinity: None,
        successor: None,
        deprecated: None,
        lossy: None,
        rows: Vec::new(),
        sets: Vec::new(),
        examples: Vec::new(),
        schema: RawSchemas::default(),
        docs: Default::default(),
        result: None,
        compare: RawCompare::default(),
        upstreams: Vec::new(),
    })
}

fn any_side() -> impl Strategy<Value = Side> {
    prop::sample::select(Side::ALL.to_vec())
}

fn any_flag() -> impl Strategy<Value = RawFlag> {
    let glob = || "[ab*.]{0,4}|\\PC{0,6}";
    let stage = prop::sample::select(vec![
        Stage::Passthrough,
        Stage::Shadow,
        Stage::Verify,
        Stage::Translate,
        Stage::Retired,
    ]);
    let without_key = prop::sample::select(vec![WithoutKey::Out, WithoutKey::In]);
    let side = prop::option::of(any_side());
    (glob(), glob(), side, stage, any::<u32>(), without_key).prop_map(
        |(client, route, side, stage, percent, without_key)| RawFlag {
            place: SourceLocation::Default,
            key: "flag[0]".to_owned(),
            name: located("f".to_owned(), "flag[0].name"),
            client: located(client, "flag[0].client"),
            route: located(route, "flag[0].route"),
            side: side.map(|side| located(side, "flag[0].side")),
            stage: located(stage, "flag[0].stage"),
            percent: located(percent, "flag[0].percent"),
            without_key: located(without_key, "flag[0].without_key"),
            headers: Vec::new(),
            holdback: located(0, "flag[0].holdback"),
            guard: None,
            ramp: None,
            arming: Arming::Armed,
            text_hash: String::new(),
        },
    )
}

fn any_upstream() -> impl Strategy<Value = RawUpstream> {
    let url = prop::sample::select(vec![
        "http://h",
        "http://h:1/a?b",
        "http://[::1]:0/",
        "/a",
        "h:1",
        "*",
    ]);
    (any_side(), url).prop_map(|(side, url)| RawUpstream {
        name: located("u".to_owned(), "upstream.u"),
        side: located(side, "upstream.u.side"),
        server: RawServer::Url(located(url.parse().unwrap(), "upstream.u.url")),
        timeout: located(std::time::Duration::ZERO, "upstream.u.timeout"),
        connect_timeout: located(std::time::Duration::ZERO, "upstream.u.connect_timeout"),
        queue_timeout: None,
        keep_alive: located(std::time::Duration::ZERO, "upstream.u.keep_alive"),
        idle_timeout: located(std::time::Duration::ZERO, "upstream.u.idle_timeout"),
        http2: None,
        max_age: None,
        connections: located(1, "upstream.u.connections"),
        queue: None,
        credentials: located(Credentials::Drop, "upstream.u.credentials"),
        forward: Vec::new(),
        envelope: None,
        tls: None,
        addresses: RawAddresses::default(),
        usual: None,
        candidate: None,
    })
}

fn any_client() -> impl Strategy<Value = RawClient> {
    ("[ab]{0,2}|other|\\PC{0,6}", "\\PC{0,6}").prop_map(|(name, glob)| RawClient {
        name: located(name, "client[0].name"),
        matches: RawMatch::Headers(vec![RawHeaderGlob {
            header: located(http::header::HOST, "client[0].match.header"),
            glob: located(glob, "client[0].match.header.host"),
        }]),
        key: None,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_words_make_it_panic(
        upstreams in prop::collection::vec(any_upstream(), 0..3),
        clients in prop::collection::vec(any_client(), 0..3),
        routes in prop::collection::vec(any_route(), 0..6),
        flags in prop::collection::vec(any_flag(), 0..4),
        (workers, status) in (any::<usize>(), any::<u16>()),
    ) {
        let mut raw = load(&Sources::default()).unwrap();
        raw.upstreams = upstreams;
        raw.clients = clients;
        raw.routes = routes;
        raw.listen.workers.value = workers;
        raw.rpc.notification_status = Some(raw.listen.workers.clone().map(|_| status));
        match compile(&raw, &flags) {
            Ok(plan) => {
                prop_assert_eq!(plan.routes.routes().len(), raw.routes.len());
                prop_assert_eq!(plan.rollout.flags.len(), flags.len());
                prop_assert!(!plan.upstreams.all.is_empty());
            }
            Err(problems) => prop_assert!(problems.iter().count() > 0),
        }
    }
}
