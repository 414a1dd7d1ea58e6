//! Who gets which stage: flags by client, route, side and percentage, retired routes, and calls without a route.

use std::collections::BTreeSet;

use dualgauge_model::rollout::bucket;

use crate::scene::{before_rest, before_rpc, body_of, call, json, problem, rpc_failure, saying};
use crate::support::{Message, Proxy, Upstream, both, rest_only, rpc_only, sha256};

const ROUTES: &str = r#"
[[route]]
name = "agent.get"
rest = "GET /agents/{id}"
rpc = "agents/get"
[[route]]
name = "agent.put"
rest = "PUT /agents/{id}"
rpc = "agents/put"
[[route]]
name = "tools.call"
rest = "POST /tools"
rpc = "tools/call"
"#;

pub(crate) const CLIENTS: &str = r#"
[[client]]
name = "ios-app"
match = { header = { x-client-id = "ios-*" } }
key = { header = "x-device-id" }
[[client]]
name = "android-app"
match = { header = { x-client-id = "android-*", x-beta = "*" } }
"#;

/// Both servers, each of which says who it is, and a proxy with flags before them.
pub(crate) struct Scene {
    rest: Upstream,
    rpc: Upstream,
    pub(crate) proxy: Proxy,
}

impl Scene {
    pub(crate) fn of(clients: &str, flags: &str) -> Scene {
        let rest = Upstream::answering(json(r#""rest""#));
        let rpc = saying(r#""result":"rpc""#);
        let config = format!("{}{ROUTES}{clients}", both(&rest, &rpc));
        let proxy = Proxy::start_with_flags(&config, flags);
        Scene { rest, rpc, proxy }
    }

    /// Which server answers a REST call with these headers.
    pub(crate) fn served(&self, method: &str, target: &str, headers: &[(&str, &str)]) -> String {
        let answer = self.proxy.rest(method, target, headers, "");
        body_of(&answer, 200).trim_matches('"').to_owned()
    }

    /// Which server answers an RPC call.
    fn served_rpc(&self, method: &str, headers: &[(&str, &str)]) -> String {
        let params = r#"{"id":"7"}"#;
        let answer = self
            .proxy
            .rest("POST", "/rpc", headers, call(method, params));
        answer.json()["result"].as_str().unwrap().to_owned()
    }
}

pub(crate) fn flag(name: &str, keys: &str) -> String {
    format!("[[flag]]\nname = \"{name}\"\n{keys}\n")
}

#[test]
fn a_client_is_known_by_its_headers() {
    let flags = flag("mobile", "client = \"*-app\"\nstage = \"translate\"");
    let scene = Scene::of(CLIENTS, &flags);
    let rows: [(&[(&str, &str)], &str); 8] = [
        (&[("X-Client-Id", "ios-17")], "rpc"),
        (&[("X-CLIENT-ID", "ios-")], "rpc"),
        (&[("X-Client-Id", "ipad-ios-17")], "rest"),
        (&[("X-Client-Id", "IOS-17")], "rest"),
        (&[("X-Client-Id", "android-9"), ("X-Beta", "1")], "rpc"),
        (&[("X-Client-Id", "android-9")], "rest"),
        (&[("X-Client", "ios-17")], "rest"),
        (&[], "rest"),
    ];
    for (headers, server) in rows {
        assert_eq!(
            scene.served("GET", "/agents/7", headers),
            server,
            "{headers:?}"
        );
    }
    let line = scene.proxy.log_line(&["client=ios-app"]);
    assert!(line.contains("stage=translate"), "{line}");
    assert!(line.contains("flag mobile"), "{line}");
    let line = scene.proxy.log_line(&["client=other"]);
    assert!(line.contains("stage=passthrough"), "{line}");
    assert!(line.contains("decision=default"), "{line}");
}

#[test]
fn a_client_is_known_by_its_api_key() {
    let hash = sha256("top-secret");
    let client =
        format!("[[client]]\nname = \"batch\"\nmatch = {{ api_key = \"sha256:{hash}\" }}\n");
    let flags = flag("batch", "client = \"batch\"\nstage = \"translate\"");
    let scene = Scene::of(&client, &flags);
    for (key, server) in [
        ("top-secret", "rpc"),
        ("top-secre", "rest"),
        (hash.as_str(), "rest"),
    ] {
        assert_eq!(
            scene.served("GET", "/agents/7", &[("X-Api-Key", key)]),
            server
        );
    }
    let log = scene.proxy.stop().log;
    assert!(!log.contains("top-secret"), "{log}");
}

#[test]
fn everyone_whom_no_rule_names_is_other() {
    let flags = flag("rest-of-us", "client = \"other\"\nstage = \"translate\"");
    let scene = Scene::of(CLIENTS, &flags);
    assert_eq!(scene.served("GET", "/agents/7", &[]), "rpc");
    assert_eq!(
        scene.served("GET", "/agents/7", &[("X-Client-Id", "ios-1")]),
        "rest"
    );
}

#[test]
fn a_flag_takes_the_routes_of_its_glob_on_its_side() {
    let flags = flag(
        "agents",
        "route = \"agent.*\"\nside = \"rest\"\nstage = \"translate\"",
    );
    let scene = Scene::of("", &flags);
    assert_eq!(scene.served("GET", "/agents/7", &[]), "rpc");
    assert_eq!(scene.served("PUT", "/agents/7", &[]), "rpc");
    assert_eq!(scene.served("POST", "/tools", &[]), "rest");
    assert_eq!(scene.served("GET", "/elsewhere", &[]), "rest");
    assert_eq!(scene.served_rpc("agents/get", &[]), "rpc");

    let flags = flag(
        "agents",
        "route = \"agent.get\"\nside = \"rpc\"\nstage = \"translate\"",
    );
    let scene = Scene::of("", &flags);
    assert_eq!(scene.served_rpc("agents/get", &[]), "rest");
    assert_eq!(scene.served_rpc("agents/put", &[]), "rpc");
    assert_eq!(scene.served("GET", "/agents/7", &[]), "rest");

    let scene = Scene::of("", &flag("all", "stage = \"translate\""));
    assert_eq!(scene.served_rpc("agents/get", &[]), "rest");
    assert_eq!(scene.served("GET", "/agents/7", &[]), "rpc");
    assert_eq!(scene.served_rpc("unrouted", &[]), "rpc");
}

#[test]
fn the_first_flag_that_takes_the_caller_decides() {
    let ios = "client = \"ios-app\"\nstage =";
    let flags = [
        flag("never", &format!("{ios} \"retired\"\npercent = 0")),
        flag(
            "stay",
            &format!("{ios} \"passthrough\"\nroute = \"agent.get\""),
        ),
        flag("move", "stage = \"translate\""),
        flag("close", "stage = \"retired\""),
    ];
    let scene = Scene::of(CLIENTS, &flags.concat());
    let ios = [("X-Client-Id", "ios-1"), ("X-Device-Id", "d")];
    assert_eq!(scene.served("GET", "/agents/7", &ios), "rest");
    assert_eq!(scene.served("PUT", "/agents/7", &ios), "rpc");
    assert_eq!(scene.served("GET", "/agents/7", &[]), "rpc");
    for pieces in [
        ["stage=passthrough", "flag stay"],
        ["stage=translate", "flag move"],
    ] {
        scene.proxy.log_line(&pieces);
    }
}

/// Which of many devices a percentage moves to the RPC server.
fn moved(percent: &str) -> BTreeSet<String> {
    let keys = format!("client = \"ios-app\"\nstage = \"translate\"\npercent = {percent}");
    let scene = Scene::of(CLIENTS, &flag("spread", &keys));
    let devices = (0..200).map(|number| format!("device-{number}"));
    let moved = |device: &String| {
        let ios = [("X-Client-Id", "ios-1"), ("X-Device-Id", device.as_str())];
        let first = scene.served("GET", "/agents/7", &ios);
        assert_eq!(scene.served("GET", "/agents/8", &ios), first, "not sticky");
        first == "rpc"
    };
    devices.filter(moved).collect()
}

#[test]
fn a_percentage_is_sticky_and_never_moves_a_caller_out_when_it_is_raised() {
    let steps = ["0", "0.5", "10", "50", "99.999", "100"];
    let mut before = BTreeSet::new();
    for step in steps {
        let now = moved(step);
        assert!(before.is_subset(&now), "{step}: {:?}", &before - &now);
        let thousandths = (step.parse::<f64>().unwrap() * 1000.0).round() as u32;
        let expected: BTreeSet<String> = (0..200)
            .map(|number| format!("device-{number}"))
            .filter(|device| bucket("spread", device).get() < thousandths)
            .collect();
        assert_eq!(now, expected, "{step} %");
        before = now;
    }
    assert_eq!(before.len(), 200);
}

#[test]
fn a_caller_without_a_key_is_out_or_in_and_never_a_coin() {
    for (word, server) in [("out", "rest"), ("in", "rpc")] {
        let keys = format!(
            "client = \"ios-app\"\nstage = \"translate\"\npercent = 50\nwithout_key = \"{word}\""
        );
        let scene = Scene::of(CLIENTS, &flag("half", &keys));
        for headers in [
            &[("X-Client-Id", "ios-1")][..],
            &[("X-Client-Id", "ios-1"), ("X-Device-Id", "")],
        ] {
            for _ in 0..10 {
                assert_eq!(scene.served("GET", "/agents/7", headers), server);
            }
        }
    }
}

#[test]
fn keys_are_never_logged() {
    let keys = "client = \"ios-app\"\nstage = \"translate\"\npercent = 100";
    let half = "client = \"ios-app\"\nstage = \"translate\"\npercent = 99.999";
    for keys in [keys, half] {
        let scene = Scene::of(CLIENTS, &flag("f", keys));
        scene.served(
            "GET",
            "/agents/7",
            &[("X-Client-Id", "ios-1"), ("X-Device-Id", "private-device")],
        );
        let log = scene.proxy.stop().log;
        assert!(log.contains("client=ios-app"), "{log}");
        assert!(!log.contains("private-device"), "{log}");
    }
}

/// A REST answer that a route is gone.
fn expect_gone(answer: &Message, link: &str, words: &str) {
    assert_eq!(answer.status(), 410, "{answer:?}");
    let link = format!("<{link}>; rel=\"successor-version\"");
    assert_eq!(answer.head.one("link"), Some(link.as_str()));
    let (reason, detail) = problem(answer);
    assert_eq!(reason, "retired");
    assert!(detail.contains(words), "{detail}");
}

#[test]
fn a_retired_route_names_its_successor_and_asks_nobody() {
    let flags = flag("closed", "stage = \"retired\"");
    let scene = Scene::of("", &flags);
    let answer = scene.proxy.rest("GET", "/agents/7", &[], "");
    expect_gone(&answer, "/", "the JSON-RPC method `agents/get`");
    let answer = scene.proxy.rpc(call("agents/get", r#"{"id":"7"}"#));
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.json()["id"], 1);
    assert_eq!(rpc_failure(&answer.json()), (-31011, "retired"));
    let message = answer.json()["error"]["message"].to_string();
    assert!(
        message.contains("`GET /agents/{id}` over REST") && message.contains("agent.get"),
        "{message}"
    );
    let successor = &answer.json()["error"]["data"]["successor"];
    assert_eq!(successor, "GET /agents/{id}");
    assert_eq!(scene.rest.requests().len() + scene.rpc.requests().len(), 0);
    // What belongs to no route has no stage.
    assert_eq!(scene.served("GET", "/elsewhere", &[]), "rest");
    let line = scene.proxy.log_line(&["stage=retired", "side=rest"]);
    assert!(
        line.contains("reason=retired") && line.contains("blame=client"),
        "{line}"
    );

    let mut client = scene.proxy.connect();
    client.send("HEAD /agents/7 HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.read_answer_to("HEAD").status(), 410);
    let answer = scene
        .proxy
        .rpc(r#"{"jsonrpc":"2.0","method":"agents/get"}"#);
    assert_eq!((answer.status(), answer.text()), (204, ""));
}

#[test]
fn a_route_may_name_its_successor_itself() {
    let rest = Upstream::start();
    let successor = "https://api.example/v2/agents";
    let route = format!(
        "[[route]]\nname = \"a\"\nrest = \"GET /a\"\nrpc = \"a\"\nsuccessor = \"{successor}\"\n"
    );
    let config = format!("{}{route}", rest_only(&rest));
    let proxy = Proxy::start_with_flags(&config, &flag("closed", "stage = \"retired\""));
    expect_gone(&proxy.rest("GET", "/a", &[], ""), successor, successor);
    let answer = proxy.rpc(call("a", "{}"));
    assert_eq!(answer.json()["error"]["data"]["successor"], successor);
    assert!(
        answer.json()["error"]["message"]
            .as_str()
            .unwrap()
            .contains(successor)
    );
    rest.expect_no_connection();
}

#[test]
fn a_side_passes_by_default_where_it_has_an_upstream_and_is_translated_where_not() {
    let rest = Upstream::answering(json(r#""rest""#));
    let proxy = before_rest(&rest, ROUTES);
    proxy.rest("PUT", "/agents/7?x=1", &[], "");
    assert_eq!(rest.requests()[0].head.start, "PUT /agents/7?x=1 HTTP/1.1");
    assert_eq!(
        proxy.rpc(call("agents/get", r#"{"id":"7"}"#)).json()["result"],
        "rest"
    );
    proxy.log_line(&["side=rest", "stage=passthrough", "decision=default"]);
    proxy.log_line(&["side=rpc", "stage=translate", "decision=default"]);

    let rpc = saying(r#""result":"rpc""#);
    let proxy = before_rpc(&rpc, ROUTES);
    assert_eq!(proxy.rest("GET", "/agents/7", &[], "").text(), r#""rpc""#);
    assert_eq!(proxy.rpc(call("agents/get", "[1]")).json()["result"], "rpc");
    assert_eq!(rpc.requests()[1].text(), call("agents/get", "[1]"));
    proxy.log_line(&["side=rest", "stage=translate", "decision=default"]);
    proxy.log_line(&["side=rpc", "stage=passthrough", "decision=default"]);
}

#[test]
fn the_default_of_a_side_can_be_said() {
    let (rest, rpc) = (Upstream::answering(json("1")), saying(r#""result":2"#));
    let default = "[rollout]\ndefault = { rest = \"translate\", rpc = \"retired\" }\n";
    let proxy = Proxy::start(&format!("{}{ROUTES}{default}", both(&rest, &rpc)));
    assert_eq!(proxy.rest("GET", "/agents/7", &[], "").text(), "2");
    assert_eq!(
        rpc_failure(&proxy.rpc(call("agents/get", "{}")).json()),
        (-31011, "retired")
    );
}

#[test]
fn what_has_no_route_can_be_rejected() {
    let rest = Upstream::answering(json("1"));
    let config = format!("unrouted = \"reject\"\n{}{ROUTES}", rest_only(&rest));
    let proxy = Proxy::start(&config);
    let answer = proxy.rest("GET", "/elsewhere", &[], "");
    assert_eq!(answer.status(), 404);
    assert_eq!(problem(&answer).0, "route_not_found");
    assert_eq!(answer.head.one("allow"), None);
    for method in ["DELETE", "POST", "OPTIONS"] {
        let answer = proxy.rest(method, "/agents/7", &[], "");
        assert_eq!(answer.status(), 405, "{method}");
        assert_eq!(problem(&answer).0, "method_not_allowed");
        let allowed: Vec<&str> = answer.head.one("allow").unwrap().split(", ").collect();
        assert!(
            allowed.contains(&"GET") && allowed.contains(&"PUT"),
            "{allowed:?}"
        );
        assert!(!allowed.contains(&method));
    }
    assert_eq!(rest.requests().len(), 0);
    body_of(&proxy.rest("GET", "/agents/7", &[], ""), 200);
    let mut client = proxy.connect();
    client.send("HEAD /agents/7 HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(rest.requests().len(), 1);
    assert_eq!(client.read_answer_to("HEAD").status(), 200);
    assert_eq!(rest.requests()[1].head.start, "HEAD /agents/7 HTTP/1.1");
}

#[test]
fn what_has_no_route_passes_to_the_server_of_its_side() {
    let scene = Scene::of("", &flag("all", "stage = \"translate\""));
    assert_eq!(scene.served("DELETE", "/agents/7", &[]), "rest");
    assert_eq!(scene.served("GET", "/a//b/../c%zz", &[]), "rest");
    let starts: Vec<String> = scene
        .rest
        .requests()
        .into_iter()
        .map(|seen| seen.head.start)
        .collect();
    assert_eq!(
        starts,
        ["DELETE /agents/7 HTTP/1.1", "GET /a//b/../c%zz HTTP/1.1"]
    );
}

#[test]
fn a_path_that_is_a_route_only_after_tidying_is_refused_where_the_route_is_moved() {
    for stage in ["passthrough", "translate", "retired"] {
        let scene = Scene::of("", &flag("all", &format!("stage = \"{stage}\"")));
        for target in [
            "//agents/7",
            "/agents//7",
            "/agents/7/",
            "/x/../agents/7",
            "/./agents/7",
            "/%2e/agents/7",
            "/agents/x/%2E%2e/7",
        ] {
            let answer = scene.proxy.rest("GET", target, &[], "");
            if stage == "passthrough" {
                let came = scene.rest.requests().pop().unwrap();
                assert_eq!(answer.status(), 200, "{target}");
                assert_eq!(came.head.start, format!("GET {target} HTTP/1.1"));
                continue;
            }
            assert_eq!(answer.status(), 400, "{target}");
            let (reason, detail) = problem(&answer);
            assert_eq!(reason, "malformed_target");
            assert!(detail.contains("`agent.get`"), "{detail}");
        }
        let passed = if stage == "passthrough" { 7 } else { 0 };
        assert_eq!(scene.rest.requests().len(), passed, "{stage}");
        assert_eq!(scene.rpc.requests().len(), 0, "{stage}");
    }
}

#[test]
fn a_rest_route_may_have_the_path_of_the_rpc_face() {
    let rpc = saying(r#""result":"rpc""#);
    let route = "[[route]]\nname = \"status\"\nrest = \"GET /rpc\"\nrpc = \"status\"\n";
    let proxy = Proxy::start(&format!("{}{route}", rpc_only(&rpc)));
    assert_eq!(proxy.rest("GET", "/rpc", &[], "").text(), r#""rpc""#);
    assert_eq!(rpc.request().json()["method"], "status");

    // DELETE there is the RPC server's, as it came.
    let rpc = Upstream::answering(json("{}"));
    let proxy = Proxy::start(&format!("{}{route}", rpc_only(&rpc)));
    proxy.rest("DELETE", "/rpc?session=1", &[], "");
    let start = rpc.request().head.start;
    assert_eq!(start, "DELETE /rpc?session=1 HTTP/1.1");
}

#[test]
fn an_answer_tells_its_decision_where_the_configuration_asks_for_it() {
    let flags = "[[flag]]\nname = \"ios\"\nclient = \"ios-app\"\nstage = \"translate\"\n";
    let rest = Upstream::answering(json(r#""rest""#));
    let rpc = saying(r#""result":"rpc""#);
    let told = "[rollout]\nflags = \"flags.toml\"\ndecision_header = \"x-decision\"\n";
    let config = format!("{}{ROUTES}{CLIENTS}{told}", both(&rest, &rpc));
    let proxy = Proxy::start_with(&config, &[("flags.toml", flags)]);
    let decision = |method: &str, target: &str, client: &str| {
        let answer = proxy.rest(method, target, &[("x-client-id", client)], "");
        answer.head.one("x-decision").map(str::to_owned)
    };
    let of = |text: &str| Some(text.to_owned());
    assert_eq!(
        decision("GET", "/agents/7", "ios-7"),
        of("translate; flag ios")
    );
    assert_eq!(
        decision("GET", "/agents/7", "web"),
        of("passthrough; default")
    );
    assert_eq!(
        decision("GET", "/elsewhere", "web"),
        of("passthrough; unrouted")
    );
    let rpc = proxy.rpc(call("agents/get", r#"{"id":"7"}"#));
    assert_eq!(rpc.head.one("x-decision"), Some("passthrough; default"));
    let silent = Scene::of(CLIENTS, flags);
    let answer = silent.proxy.rest("GET", "/agents/7", &[], "");
    assert_eq!(answer.head.one("x-decision"), None);
}
