//! Compiled configurations, and the text of every problem that compilation finds.

use std::time::Duration;

use http::{Method, StatusCode};

use crate::config::configuration::Configuration;
use crate::config::problem::Problems;
use crate::config::tests::Fixture;
use dualgauge_model::compare::Skip;
use dualgauge_model::plan::{Credentials, Plan, Unrouted, UpstreamPlan};
use dualgauge_model::rollout::{KeySource, Matcher, Percent, Stage, WithoutKey};
use dualgauge_model::route::{Effect, RestSelection, Segments};
use dualgauge_patterns::side::Side;

mod any_words;
mod compare;
mod face;
mod flags;
mod frames;
mod identity;
mod lifecycle;
mod old;
mod routes;
mod same_routes;
mod source;
mod streams;

/// One upstream for each side.
const BOTH: &str = "\
[upstream.old]
side = 'rest'
url = 'http://127.0.0.1:9001'
[upstream.new]
side = 'rpc'
url = 'http://127.0.0.1:9002/rpc'
";
const OLD: &str = "[upstream.old]\nside = 'rest'\nurl = 'http://127.0.0.1:9001'\n";
const NEW: &str = "[upstream.new]\nside = 'rpc'\nurl = 'http://127.0.0.1:9002/rpc'\n";
const ROUTE: &str = "[[route]]\nname = 'a'\nrest = 'GET /a'\nrpc = 'a'\n";

fn read(fixture: &Fixture) -> Result<Configuration, Problems> {
    Configuration::read(&fixture.sources)
}

fn plan(main: &str) -> Plan {
    let read = read(&Fixture::new(main));
    read.unwrap_or_else(|problems| panic!("{problems}")).plan
}

/// Returns the problems of a fixture, with file names relative to its folder.
fn problems_of(fixture: &Fixture) -> String {
    let problems = read(fixture).unwrap_err();
    let prefix = format!("{}", fixture.path("").display());
    problems.to_string().replace(&prefix, "")
}

fn problems(main: &str) -> String {
    problems_of(&Fixture::new(main)).replace("dualgauge.toml:", "")
}

const RICH: &str = r#"
unrouted = "reject"
[listen]
workers = 3
[upstream.old]
side = "rest"
url = "http://old.example"
timeout = "7s"
credentials = "drop"
forward = ["X-Tenant"]
[upstream.new]
side = "rpc"
url = "http://[::1]:9002/v1/rpc"
connections = 5
[rpc]
notification_status = 202
[limits]
in_flight = 10
connections = 2
[rollout]
flags = "flags.toml"
default = { rpc = "retired" }
[[client]]
name = "ios-app"
match = { header = { x-client-id = "ios-*" } }
key = { header = "x-device-id" }
[[client]]
name = "batch"
match = { api_key = "sha256:2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b" }
key = "api_key"
[[route]]
name = "items.read"
rest = "GET /items/{id}"
rpc = "items/read"
timeout = "1s"
successor = "v2"
[[route]]
name = "items.touch"
rest = "POST /items/{id}:touch"
rpc = "items/touch"
effect = "idempotent"
"#;

const RICH_FLAGS: &str = r#"
[[flag]]
name = "ios-first"
client = "ios-*"
route = "items.*"
side = "rest"
stage = "translate"
percent = 12.5
without_key = "in"
"#;

#[test]
fn a_whole_configuration_becomes_a_plan() {
    let fixture = Fixture::new(RICH).file("flags.toml", RICH_FLAGS);
    let plan = read(&fixture).unwrap().plan;

    let (rest, rpc) = (
        plan.upstream(Side::Rest).unwrap(),
        plan.upstream(Side::Rpc).unwrap(),
    );
    assert_eq!((rest.name.as_str(), rest.path.as_str()), ("old", "/"));
    assert_eq!(
        (rest.authority.as_str(), rest.address().as_str()),
        ("old.example", "old.example:80")
    );
    assert_eq!(rest.timeout, Duration::from_secs(7));
    assert_eq!(rest.credentials, Credentials::Drop);
    assert_eq!(rest.forward, ["x-tenant"]);
    assert_eq!(
        (rpc.authority.as_str(), rpc.path.as_str()),
        ("[::1]:9002", "/v1/rpc")
    );
    assert_eq!(rpc.connections, 5);

    assert_eq!(plan.face.notification_status, Some(StatusCode::ACCEPTED));
    assert_eq!(plan.unrouted, Unrouted::Reject);
    assert_eq!((plan.limits.in_flight, plan.limits.connections), (10, 2));
    assert_eq!(plan.limits.depth, 128);

    let defaults = plan.rollout.defaults;
    assert_eq!(
        (defaults.rest, defaults.rpc),
        (Stage::Passthrough, Stage::Retired)
    );
    let [ios, batch] = plan.rollout.clients.all() else {
        panic!("two clients");
    };
    assert!(matches!(&ios.matcher, Matcher::Headers(rules) if rules[0].1.fits("ios-7")));
    assert!(matches!(&batch.matcher, Matcher::ApiKey(digests) if digests[0][0] == 0x2b));
    assert_eq!(batch.key, Some(KeySource::ApiKey));

    let [flag] = &plan.rollout.flags[..] else {
        panic!("one flag");
    };
    assert!(flag.client.fits("ios-app") && flag.route.fits("items.read"));
    assert_eq!(flag.side, Some(Side::Rest));
    assert_eq!(flag.percent, Percent::from_thousandths(12_500).unwrap());
    assert_eq!(flag.without_key, WithoutKey::In);

    let [read, touch] = plan.routes.routes() else {
        panic!("two routes");
    };
    assert_eq!(
        (read.effect, touch.effect),
        (Effect::Safe, Effect::Idempotent)
    );
    assert_eq!(read.timeout, Some(Duration::from_secs(1)));
    assert_eq!(read.successor.as_deref(), Some("v2"));
    let selected = plan.routes.select_rest(
        &Method::GET,
        &Segments::split("/items/7"),
        None,
        &http::HeaderMap::new(),
    );
    assert!(matches!(selected, RestSelection::Route(0)));
}

#[test]
fn a_side_without_an_upstream_translates_unless_it_says_otherwise() {
    let stages = |main: &str| {
        let defaults = plan(main).rollout.defaults;
        (defaults.rest, defaults.rpc)
    };
    assert_eq!(
        stages(&format!("{OLD}{ROUTE}")),
        (Stage::Passthrough, Stage::Translate)
    );
    assert_eq!(
        stages(&format!("{NEW}{ROUTE}")),
        (Stage::Translate, Stage::Passthrough)
    );
    assert_eq!(stages(BOTH), (Stage::Passthrough, Stage::Passthrough));
    assert_eq!(
        stages(&format!("rollout.default.rest = 'translate'\n{OLD}")),
        (Stage::Translate, Stage::Translate),
        "without routes nothing is ever translated"
    );
}

#[test]
fn a_route_that_always_passes_needs_an_upstream_of_its_side() {
    let route = "[[route]]\nname = 'a'\nrest = 'GET /always'\nrpc = 'a'\nstage = 'passthrough'\n";
    assert!(
        plan(&format!("{BOTH}{route}"))
            .routes
            .routes()
            .iter()
            .any(|route| route.always_passes)
    );
    let found = problems(&format!("{OLD}{route}"));
    assert!(
        found.contains("no upstream is on the `rpc` side, so its calls cannot pass"),
        "{found}"
    );
    assert!(found.contains("remove `stage`"), "{found}");
    plan(&format!("{OLD}{route}from = 'rest'\n"));
}

#[test]
fn a_subscription_needs_a_link_and_rest_clients() {
    let route = "[[route]]\nname = 'a'\nrest = 'GET /a'\nrpc = 'a'\nparams = []\n\
        subscription.notification = { method = 'n', params = { s = '{id}', r = '{event}' } }\n\
        subscription.unsubscribe = { method = 'u' }\n";
    let link = "[upstream.live]\nside = 'rpc'\nurl = 'ws://127.0.0.1:9/'\n";
    let plan = plan(&format!("{link}{route}"));
    let read = plan.routes.route(0);
    assert!(read.subscription.is_some());
    assert_eq!(read.from, Some(Side::Rest));
    assert_eq!(
        dualgauge_model::shadow_limits::never(read),
        Some(Skip::Stream)
    );
    let over_http = problems(&format!("{BOTH}{route}"));
    assert!(
        over_http.contains("over a WebSocket or from a child"),
        "{over_http}"
    );
    for (key, wanted) in [
        ("from = 'rpc'", "events for REST clients"),
        ("stream = 'ndjson'", "server-sent events"),
        ("stream = false", "server-sent events"),
        ("result = 'tool'", "opens no subscription"),
        ("notify = true", "subscription"),
        (
            "subscription.result = 'id'",
            "only tables, lists, `{id}` and `{event}` are allowed",
        ),
    ] {
        let found = problems(&format!("{link}{route}{key}\n"));
        assert!(found.contains(wanted), "{key}: {found}");
    }
}

#[test]
fn a_default_needs_its_upstream() {
    let main = "rollout.default = { rest = 'translate', rpc = 'passthrough' }\n";
    let no_rpc = "but none is configured\n  hint: add `[upstream.NAME]` with `side = \"rpc\"`, or choose another stage";
    assert_eq!(
        problems(&format!("{main}{OLD}{ROUTE}")),
        format!(
            "1: rollout.default.rest: `translate` sends calls of the `rest` side to an upstream of the `rpc` side, {no_rpc}\n\
             1: rollout.default.rpc: `passthrough` sends calls of the `rpc` side to an upstream of the `rpc` side, {no_rpc}"
        )
    );
    assert_eq!(
        problems(&format!("{main}{OLD}")),
        format!(
            "1: rollout.default.rpc: `passthrough` sends calls of the `rpc` side to an upstream of the `rpc` side, {no_rpc}"
        )
    );
}

#[test]
fn without_any_upstream_only_that_is_reported() {
    let main = format!("rollout.default.rest = 'translate'\n{ROUTE}");
    assert_eq!(
        problems_of(&Fixture::new(&main)),
        "dualgauge.toml: upstream: there is no upstream to send calls to\n  \
         hint: add `[upstream.NAME]` with `side` and `url`"
    );
}

#[test]
fn of_several_upstreams_of_a_side_one_says_that_it_takes_what_no_route_sends_elsewhere() {
    let more = "[upstream.a]\nside = 'rpc'\nurl = 'http://h/'\n";
    assert_eq!(
        problems_of(&Fixture::new(&format!("{BOTH}{more}"))),
        "dualgauge.toml:4: upstream.new: the `rpc` side has several upstreams, and none is the default \
         for routes that name no upstream\n  hint: write `default = true` in one of them"
    );
    let wrong = "[[route]]\nname = 'r'\nrest = 'GET /r'\nrpc = 'r'\nupstream = { rest = 'a', rpc = 'ab' }\n";
    assert_eq!(
        problems_of(&Fixture::new(&format!(
            "{BOTH}{more}default = true\n{wrong}"
        ))),
        "dualgauge.toml:15: route[0].upstream.rest: the upstream `a` is on the `rpc` side\n\
         dualgauge.toml:15: route[0].upstream.rpc: there is no upstream `ab`"
    );
}

#[test]
fn an_upstream_is_a_host_a_port_and_a_path() {
    let rest = |url: &str| problems(&format!("[upstream.a]\nside = 'rest'\nurl = '{url}'\n"));
    let rpc = |url: &str| problems(&format!("[upstream.a]\nside = 'rpc'\nurl = '{url}'\n"));
    let query = "3: upstream.a.url: a server address cannot have a query; remove `?` and everything after it";
    assert_eq!(rest("http://h?a=1"), query);
    assert_eq!(rpc("http://h/rpc?a=1"), query);
    let port = "3: upstream.a.url: the port is not a number from 1 to 65535";
    for url in [
        "http://h:0/",
        "http://h:/",
        "http://h:65536/",
        "http://[::1]:0",
    ] {
        assert_eq!(rpc(url), port, "{url}");
    }
    for url in ["http://h#a", "http://u@h/", "ftp://h/", "http:///rpc"] {
        assert!(rpc(url).starts_with("3: upstream.a.url: "), "{url}");
    }
    let of = |url: &str| {
        let plan = plan(&format!("[upstream.a]\nside = 'rpc'\nurl = '{url}'\n"));
        let upstream = plan.upstream(Side::Rpc).unwrap();
        format!(
            "{} at {} {}",
            upstream.authority.as_str(),
            upstream.address(),
            upstream.path
        )
    };
    assert_eq!(of("http://h"), "h at h:80 /");
    assert_eq!(of("http://[::1]/a/b/"), "[::1] at [::1]:80 /a/b/");
    assert_eq!(of("http://h:80/"), "h at h:80 /");
    assert_eq!(of("http://[::1]:9"), "[::1]:9 at [::1]:9 /");
}

#[test]
fn headers_of_a_connection_or_a_body_are_never_forwarded() {
    let main = "[upstream.a]\nside = 'rest'\nurl = 'http://h'\nforward = [\n'X-Ok', 'Host',\n'proxy-authorization', 'content-length', 'te', 'trailer']\n";
    let problem = |line: usize, index: usize, name: &str| {
        format!(
            "{line}: upstream.a.forward[{index}]: `{name}` applies to one connection or body and is never forwarded; remove it"
        )
    };
    let expected = [
        problem(5, 1, "host"),
        problem(6, 2, "proxy-authorization"),
        problem(6, 3, "content-length"),
        problem(6, 4, "te"),
        problem(6, 5, "trailer"),
    ];
    assert_eq!(problems(main), expected.join("\n"));
}

#[test]
fn the_admin_listener_needs_another_address() {
    let with = |text: &str| problems(&format!("{text}\n{BOTH}"));
    assert_eq!(
        with("listen.address = '127.0.0.1:7000'\nadmin.address = '127.0.0.1:7000'"),
        "2: admin.address: `127.0.0.1:7000` conflicts with `127.0.0.1:7000` of listen.address; write another port"
    );
    assert_eq!(
        with("listen.address = '0.0.0.0:9090'"),
        "1: listen.address: `0.0.0.0:9090` conflicts with `127.0.0.1:9090` of admin.address; write another port"
    );
    for free in [
        "listen.address = '127.0.0.1:0'\nadmin.address = '127.0.0.1:0'",
        "listen.address = '127.0.0.2:7000'\nadmin.address = '127.0.0.1:7000'",
    ] {
        plan(&format!("{free}\n{BOTH}"));
    }
}

#[test]
fn an_rpc_path_is_listed_once_and_is_no_route() {
    assert_eq!(
        problems(&format!("rpc.paths = ['/', '/rpc', '/%72pc']\n{OLD}")),
        "1: rpc.paths[2]: the path `/%72pc` is given twice; see rpc.paths[1]"
    );
    let route = |rest: &str| format!("{NEW}[[route]]\nname = 'a'\nrest = '{rest}'\nrpc = 'a'\n");
    assert_eq!(
        problems(&route("POST /%6dcp?x={x}")),
        "6: route[0].rest: `POST /mcp` is matched by rpc.paths[3], so the route is never called\n  \
         hint: remove `/mcp` from `rpc.paths`, or change the route"
    );
    assert_eq!(
        problems(&route("POST /")).lines().next().unwrap(),
        "6: route[0].rest: `POST /` is matched by rpc.paths[0], so the route is never called"
    );
    for free in ["GET /mcp", "POST /mcp:go", "POST /{x}", "POST /face/v1"] {
        plan(&route(free));
    }
}

#[test]
fn routes_that_cannot_be_read_hide_no_overlaps_of_the_others() {
    let main = format!(
        "{OLD}
[[route]]
name = 'bad'
rest = 'get /bad'
rpc = 'bad'
[[route]]
name = 'a'
rest = 'GET /items/{{a}}'
rpc = 'x'
[[route]]
name = 'b'
rest = 'GET /items/{{b}}'
rpc = 'x{{y}}'
[[route]]
name = 'c'
rest = 'GET /items/{{c}}'
rpc = 'c'
[[route]]
name = 'd'
rest = 'items'
rpc = 'd'
"
    );
    assert_eq!(
        problems(&main),
        "7: route[0].rest: `get` is not an HTTP method; methods are case-sensitive, such as `GET` or `POST`\n\
         16: route[2].rpc: the hole `y` is on the rpc side only; name it on the rest side as well, write `{_}` to ignore it, `{<y}` in a call to keep it for the response on its side, or `{>y}` if the call has it\n\
         19: route[3].rest: shares calls with the route `a`, and neither is more specific: name a query parameter or a literal that distinguishes them, set `from = \"rest\"` or `from = \"rpc\"` on one of them, or remove one\n\
         23: route[4].rest: write an HTTP method, one space and a path, such as `GET /items/{id}`"
    );
}

#[test]
fn a_client_cannot_be_everyone_else() {
    let main = format!("{OLD}[[client]]\nname = 'other'\nmatch = {{ header = {{ x = '*' }} }}\n");
    assert_eq!(
        problems(&main),
        "5: client[0].name: `other` is reserved for callers that match no client; write another name"
    );
}

#[test]
fn an_envelope_says_no_header_of_the_connection_and_none_twice() {
    let main = format!(
        "{BOTH}[rpc.envelope]\na = {{ header = 'content-length', value = '{{x}}' }}\n\
         b = {{ header = 'x-b', value = '{{x}}' }}\nc = {{ header = 'X-B', value = '{{y}}' }}\n\
         id = {{ header = 'x-d', value = '{{x}}' }}\n"
    );
    assert_eq!(
        problems_of(&Fixture::new(&main)),
        "dualgauge.toml:8: rpc.envelope.a.header: `content-length` applies to one connection or body, \
         so a member of a message cannot set it\n\
         dualgauge.toml:10: rpc.envelope.c.header: `x-b` is already the header of `b`\n\
         dualgauge.toml:11: rpc.envelope.id: `id` is a member of JSON-RPC itself"
    );
}

#[test]
fn candidates_are_bounded_for_the_process_and_split_among_workers() {
    let plan = plan(&format!(
        "{OLD}[listen]\nworkers = 3\n[rollout.candidates]\nconcurrency = 4\nmemory = '3KiB'\ntimeout = '1s'\n\
         sample = 12.5\nper_request = 0\nnoise = 0\n"
    ));
    let bounds = plan.candidates;
    assert_eq!((bounds.concurrency, bounds.memory), (2, 1024));
    assert_eq!(bounds.timeout, Duration::from_secs(1));
    assert_eq!(bounds.per_request, 0);
    assert_eq!(bounds.sample.to_string(), "12.5");
    assert_eq!(bounds.noise, Percent::NONE);
}

#[test]
fn queue_timeout_bounds_the_wait_for_a_connection_or_the_queue() {
    let second = Duration::from_secs(1);
    let upstream = |keys: &str| {
        let plan = plan(&format!("{OLD}connect_timeout = '5s'\n{keys}"));
        plan.upstreams.all.into_iter().next().unwrap()
    };
    // Without the key a call waits within its own time for a place, within `connect_timeout` for a turn.
    let plain = upstream("");
    assert_eq!(plain.slot_wait(30 * second), 30 * second);
    assert_eq!(plain.queue_wait(30 * second), 5 * second);
    let bounded = upstream("queue_timeout = '7s'\n");
    for wait in [UpstreamPlan::slot_wait, UpstreamPlan::queue_wait] {
        assert_eq!(wait(&bounded, 30 * second), 7 * second);
        assert_eq!(wait(&bounded, 2 * second), 2 * second);
    }
}
