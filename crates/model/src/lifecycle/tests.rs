use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, header::LINK};

use super::*;
use crate::hosts::Reach;
use crate::local_reply::LocalReplies;
use crate::plan::{Limits, Plan, RpcFace, Unrouted, Upstreams};
use crate::rollout::{
    Client, Clients, Defaults, Glob, Kill, Matcher, Percent, Rollout, Stage, Way,
};
use crate::route::{Route, RouteSource, RouteTable, parse_route};
use crate::shadow_limits::ShadowLimits;
use crate::time::Timestamp;
use dualgauge_patterns::side::Side;

mod clock;
mod eras;
mod laws;

const DAY: u64 = 86_400;
const NOW: i64 = 1_800_000_000;

fn now() -> Timestamp {
    Timestamp::from_unix(NOW)
}

fn ago(seconds: u64) -> Timestamp {
    now().before(seconds)
}

fn announcement(side: Side) -> Announcement {
    Announcement {
        side,
        since: Timestamp::parse("2023-06-30T23:59:59Z").unwrap(),
        sunset: Timestamp::parse("2023-12-31T23:59:59Z").ok(),
        link: Some("https://developer.example.com/deprecation".to_owned()),
        successor: Some("/rpc".to_owned()),
        brownouts: Vec::new(),
    }
}

fn announced(deprecated: &Deprecated, mut headers: HeaderMap) -> Vec<String> {
    deprecated.announce(&mut headers);
    let fields = headers.iter();
    fields
        .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
        .collect()
}

const LIMITS: Limits = Limits {
    body: 1,
    answer: 1,
    head: 1,
    target: 1,
    batch: 1,
    depth: 9,
    error_text: 1,
    in_flight: 1,
    connections: 1,
    memory: 1,
    header_timeout: Duration::ZERO,
    idle_timeout: Duration::ZERO,
    body_timeout: Duration::ZERO,
    body_rate: None,
    total_timeout: None,
    write_timeout: Duration::ZERO,
    drain: Duration::ZERO,
};

const CANDIDATES: ShadowLimits = ShadowLimits {
    concurrency: 1,
    memory: 1,
    timeout: Duration::from_secs(1),
    sample: Percent::ALL,
    per_request: 1,
    noise: Percent::NONE,
};

/// Routes `items.read`, deprecated on a side, and `all`, whose path begins with a hole.
fn known() -> Client {
    Client {
        name: "known".into(),
        matcher: Matcher::Headers(Vec::new()),
        key: None,
    }
}

fn route(name: &str, rest: &str) -> Route {
    let source = RouteSource {
        name: name.into(),
        rest: rest.into(),
        rpc: name.into(),
        ..RouteSource::default()
    };
    parse_route(source).unwrap()
}

fn plan(side: Side) -> Plan {
    let routes = vec![
        route("items.read", "GET /api/items/{id}"),
        route("all", "GET /{tenant}/all"),
        route("tree", "GET /api/items/tree/leaves"),
    ];
    let prefixes = Prefixes::new(&routes);
    Plan {
        ready: Vec::new(),
        redaction: std::sync::Arc::default(),
        tls: None,
        proxy_protocol: dualgauge_transport::proxy_protocol::ProxyProtocolUse::Off,
        forwarding: Default::default(),
        identity_headers: Default::default(),
        record: None,
        trace: None,
        series: Default::default(),
        streams: Default::default(),
        events: Default::default(),
        routes: RouteTable::build(routes).unwrap(),
        locals: LocalReplies::build(Vec::new()).unwrap(),
        cors: None,
        hosts: Vec::new(),
        public_url: None,
        reach: Reach::Network,
        rollout: Rollout {
            clients: Clients::new(vec![known()], HeaderName::from_static("x-key")),
            flags: Vec::new().into(),
            defaults: Defaults {
                rest: Stage::Passthrough,
                rpc: Stage::Passthrough,
            },
            kill: Kill::Off,
            decision_header: None,
            session_grace: Duration::from_secs(900),
            brownouts: Brownouts::default(),
        },
        upstreams: Upstreams::default(),
        face: RpcFace {
            paths: vec!["/rpc".into()],
            notification_status: None,
            ..RpcFace::default()
        },
        unrouted: Unrouted::Passthrough,
        irregular: None,
        candidates: CANDIDATES,
        comparing: Vec::new(),
        lifecycle: Lifecycle {
            routes: vec![Some(Deprecated::new(announcement(side))), None, None],
            prefixes,
        },
        limits: LIMITS,
    }
}

/// A usage that was watched for so many seconds until now, on two replicas.
fn watched(plan: &Plan, seconds: u64) -> Usage {
    let mut usage = Usage::default();
    usage.note_routes(plan.routes.routes(), ago(seconds));
    usage.note_observed("one", ago(seconds), now());
    usage.note_observed("two", ago(seconds), now());
    usage
}

fn seen(way: Option<Way>, at: Timestamp) -> ClientUsage {
    let mut seen = ClientUsage::default();
    seen.add(way, at);
    seen
}

/// The verdict and the reasons of `items.read`.
fn judged(plan: &Plan, usage: &Usage) -> (DeletionVerdict, Vec<String>) {
    let question = ReportQuery {
        route: Glob::new("items.*"),
        idle: 30 * DAY,
        at: now(),
    };
    let mut report = report(plan, usage, &question);
    assert_eq!(report.routes.len(), 1);
    let route = report.routes.remove(0);
    (route.verdict, route.reasons)
}

/// The header of RFC 9745 §2.1 and the date format of RFC 8594 §3.
#[test]
fn an_announcement_has_the_headers_of_the_standards() {
    let deprecated = Deprecated::new(announcement(Side::Rest));
    assert_eq!(
        announced(&deprecated, HeaderMap::new()),
        [
            "deprecation: @1688169599",
            "sunset: Sun, 31 Dec 2023 23:59:59 GMT",
            "link: <https://developer.example.com/deprecation>; rel=\"deprecation\"",
            "link: <https://developer.example.com/deprecation>; rel=\"sunset\"",
            "link: </rpc>; rel=\"successor-version\"",
        ]
    );
    let bare = Deprecated::new(Announcement {
        sunset: None,
        link: None,
        successor: Some("not an \"address\"".to_owned()),
        ..announcement(Side::Rest)
    });
    assert_eq!(
        announced(&bare, HeaderMap::new()),
        ["deprecation: @1688169599"]
    );
}

#[test]
fn the_headers_of_a_server_are_kept_and_links_are_added() {
    let deprecated = Deprecated::new(announcement(Side::Rest));
    let mut headers = HeaderMap::new();
    headers.insert("deprecation", HeaderValue::from_static("@1"));
    headers.insert(LINK, HeaderValue::from_static("</2>; rel=\"next\""));
    headers.append(
        LINK,
        HeaderValue::from_static("</rpc>; rel=\"successor-version\""),
    );
    assert_eq!(
        announced(&deprecated, headers),
        [
            "deprecation: @1",
            "link: </2>; rel=\"next\"",
            "link: </rpc>; rel=\"successor-version\"",
            "link: <https://developer.example.com/deprecation>; rel=\"deprecation\"",
            "link: <https://developer.example.com/deprecation>; rel=\"sunset\"",
            "sunset: Sun, 31 Dec 2023 23:59:59 GMT",
        ]
    );
}

#[test]
fn only_callers_of_the_deprecated_side_get_the_headers() {
    let plan = plan(Side::Rpc);
    for (route, side, count) in [
        (Some(0), Side::Rpc, 5),
        (Some(0), Side::Rest, 0),
        (Some(1), Side::Rpc, 0),
        (Some(9), Side::Rpc, 0),
        (None, Side::Rpc, 0),
    ] {
        let mut headers = HeaderMap::new();
        plan.lifecycle.announce(route, side, &mut headers);
        assert_eq!(headers.len(), count, "{route:?} {side}");
    }
}

#[test]
fn a_window_holds_from_its_first_second_to_the_one_before_its_end() {
    let window = |from: u64, until: u64| Window {
        from: ago(from),
        until: ago(until),
    };
    let deprecated = Deprecated::new(Announcement {
        brownouts: vec![window(100, 90), window(90, 80), window(10, 5)],
        ..announcement(Side::Rest)
    });
    for (at, expected) in [
        (101, None),
        (100, Some(90)),
        (91, Some(90)),
        (90, Some(80)),
        (81, Some(80)),
        (80, None),
        (10, Some(5)),
        (5, None),
        (0, None),
    ] {
        let until = deprecated.browned_out(ago(at)).map(|window| window.until);
        assert_eq!(until, expected.map(ago), "{at}");
    }
    let off = Brownouts::OffFor(["a".to_owned()].into());
    assert!(
        Brownouts::On.hold("a") && !off.hold("a") && off.hold("b") && !Brownouts::Off.hold("b")
    );
}

#[test]
fn a_path_of_no_route_is_counted_under_the_longest_prefix() {
    let plan = plan(Side::Rest);
    let prefixes = &plan.lifecycle.prefixes;
    assert_eq!(
        prefixes.all(),
        ["/api/items", "/", "/api/items/tree/leaves"]
    );
    for (path, prefix) in [
        ("/api/items", "/api/items"),
        ("/api/items/", "/api/items"),
        ("/api/items/7/x", "/api/items"),
        ("/api/%69tems/7", "/api/items"),
        ("/api/items/tree/leaves/x", "/api/items/tree/leaves"),
        ("/api/itemsx", "/"),
        ("/api", "/"),
        ("/", "/"),
        ("*", "/"),
        ("/ä/%", "/"),
    ] {
        let found = prefixes
            .find(path)
            .map(|index| prefixes.all()[index].as_str());
        assert_eq!(found, Some(prefix), "{path}");
    }
    assert_eq!(Prefixes::default().find("/"), None);
}

#[test]
fn a_route_that_was_counted_and_not_called_is_safe_to_delete() {
    let plan = plan(Side::Rest);
    let mut usage = watched(&plan, 31 * DAY);
    assert_eq!(judged(&plan, &usage), (DeletionVerdict::Safe, Vec::new()));
    // Calls long ago, untranslated calls on the other side, and calls of other routes do not matter.
    usage.note(
        "items.read",
        "known",
        Side::Rest,
        &seen(Some(Way::Old), ago(30 * DAY + 1)),
    );
    usage.note(
        "items.read",
        "known",
        Side::Rpc,
        &seen(Some(Way::Old), now()),
    );
    usage.note(
        "items.reads",
        "known",
        Side::Rest,
        &seen(Some(Way::Old), now()),
    );
    usage.note_unrouted("/", &seen(None, now()).all());
    assert_eq!(judged(&plan, &usage), (DeletionVerdict::Safe, Vec::new()));
}

#[test]
fn each_remaining_caller_is_a_reason() {
    let plan = plan(Side::Rest);
    let day = ago(2 * DAY);
    for (side, way, announced) in [
        (
            Side::Rest,
            Some(Way::Old),
            "`known` called the rest side, last 2 days ago",
        ),
        (Side::Rest, Some(Way::New), "`known` called the rest side"),
        (Side::Rest, None, "`known` called the rest side"),
        (
            Side::Rpc,
            Some(Way::New),
            "calls of `known` on the rpc side were translated",
        ),
    ] {
        let mut usage = watched(&plan, 31 * DAY);
        usage.note("items.read", "known", side, &seen(way, day));
        let (verdict, reasons) = judged(&plan, &usage);
        assert_eq!(verdict, DeletionVerdict::NotYet);
        assert!(reasons[0].starts_with(announced), "{reasons:?}");
    }
    for prefix in ["/api/items", "/api/items/tree/leaves"] {
        let mut usage = watched(&plan, 31 * DAY);
        usage.note_unrouted(prefix, &seen(None, day).all());
        let (verdict, reasons) = judged(&plan, &usage);
        assert_eq!(verdict, DeletionVerdict::NotYet);
        assert!(reasons[0].contains("under `/api/items`"), "{reasons:?}");
    }
}

#[test]
fn a_route_that_was_not_counted_is_unknown() {
    let plan = plan(Side::Rest);
    let unknown = |usage: &Usage| {
        let (verdict, reasons) = judged(&plan, usage);
        assert_eq!(verdict, DeletionVerdict::Unknown);
        reasons.join("; ")
    };
    assert_eq!(unknown(&Usage::default()), "no replica counts its calls");
    assert_eq!(
        unknown(&watched(&plan, 3 * DAY)),
        "its calls have been counted without a gap for 3 days only, not for 30 days"
    );
    // A route that was added, or changed, is counted from then on only.
    let mut changed = Usage::default();
    changed.note_routes(plan.routes.routes(), ago(DAY));
    changed.note_observed("one", ago(40 * DAY), now());
    assert!(unknown(&changed).contains("for 1 day only"));
    // At least one replica counted all the time, but another one had a gap.
    let mut gap = watched(&plan, 31 * DAY);
    gap.note_observed("three", ago(20 * DAY), ago(10 * DAY));
    assert_eq!(judged(&plan, &gap).0, DeletionVerdict::Safe);
    gap.note_observed("three", ago(9 * DAY), now());
    assert!(unknown(&gap).starts_with("there is a gap in the counts: replica `three` from "));
    // No replica counts now.
    let mut ended = Usage::default();
    ended.note_routes(plan.routes.routes(), ago(40 * DAY));
    ended.note_observed("one", ago(40 * DAY), ago(DAY));
    assert_eq!(unknown(&ended), "no replica counts its calls");
}

#[test]
fn short_pauses_are_no_gaps_and_long_ones_are() {
    let mut watching = Observation::default();
    for (from, until) in [(1_000, 800), (739, 600), (500, 0)] {
        watching.note(
            "one",
            Interval {
                from: ago(from),
                until: ago(until),
            },
        );
    }
    assert_eq!(watching.unbroken_since(now()), Some(ago(500)));
    let gaps = watching.gaps_since(ago(10_000));
    assert_eq!(gaps.len(), 2);
    assert_eq!(
        gaps[0].1,
        Interval {
            from: ago(800),
            until: ago(739)
        }
    );
    assert!(watching.gaps_since(ago(500)).is_empty());
    // Another replica was there meanwhile.
    watching.note(
        "two",
        Interval {
            from: ago(900),
            until: ago(450),
        },
    );
    assert_eq!(watching.unbroken_since(now()), Some(ago(1_000)));
}

#[test]
fn a_forgotten_interval_never_counts_as_observed() {
    let mut watching = Observation::default();
    for index in 0..300_u64 {
        let from = ago(100_000 - index * 200);
        let until = ago(100_000 - index * 200 - 50);
        watching.note("one", Interval { from, until });
    }
    let (_, one) = watching.replicas().next().unwrap();
    assert_eq!(one.intervals().len(), 100);
    // The retained intervals, and the one before the first of them.
    assert_eq!(watching.gaps_since(ago(200_000)).len(), 100);
    for replica in 0..300 {
        let until = ago(300 - replica);
        watching.note(
            &format!("pod-{replica}"),
            Interval {
                from: ago(1_000),
                until,
            },
        );
    }
    assert_eq!(watching.replicas().count(), 200);
    assert!(watching.replicas().any(|(name, _)| name == "pod-299"));
}

#[test]
fn a_name_that_the_plan_forgets_is_not_forgotten_with_its_calls() {
    let plan = plan(Side::Rest);
    let mut usage = watched(&plan, 31 * DAY);
    usage.note(
        "items.read",
        "gone",
        Side::Rest,
        &seen(Some(Way::Old), ago(1)),
    );
    usage.note(
        "no.more",
        "known",
        Side::Rest,
        &seen(Some(Way::Old), ago(1)),
    );
    usage.note_unrouted("/api/items/old", &seen(None, ago(1)).all());
    usage.keep(&plan);
    let callers: Vec<_> = usage.callers("items.read").map(|(who, ..)| who).collect();
    assert_eq!(callers, ["other"]);
    assert_eq!(usage.callers("no.more").count(), 0);
    assert_eq!(usage.under("/api/items").calls, 1);
    assert_eq!(usage.under("/").calls, 1);
    assert_eq!(judged(&plan, &usage).0, DeletionVerdict::NotYet);
}
