//! `deprecated`, global and of a route.

use super::{OLD, ROUTE, plan, problems};
use dualgauge_model::lifecycle::{Announcement, Window};
use dualgauge_model::time::Timestamp;
use dualgauge_patterns::side::Side;

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

/// Returns the announcement of each route.
fn announcements(main: &str) -> Vec<Option<Announcement>> {
    let routes = plan(&format!("{main}{OLD}")).lifecycle.routes;
    let announcements = routes.into_iter();
    announcements
        .map(|route| route.map(|deprecated| deprecated.announcement().clone()))
        .collect()
}

#[test]
fn the_end_of_a_route_is_read_as_it_is_written() {
    let announcements = announcements(&format!(
        "{ROUTE}successor = '/v2/a'
deprecated = {{
  since = 2026-01-01,
  sunset = 2026-06-30T12:00:00+02:00,
  link = 'https://api.example/end',
  brownouts = [
    {{ from = '2026-05-01T00:00:00Z', until = 2026-05-01T00:10:00Z }},
    {{ from = 2026-05-01T00:10:00Z, until = 2026-06-01 }},
  ],
}}
"
    ));
    let window = |from: &str, until: &str| Window {
        from: at(from),
        until: at(until),
    };
    let expected = Announcement {
        side: Side::Rest,
        since: at("2026-01-01"),
        sunset: Some(at("2026-06-30T10:00:00Z")),
        link: Some("https://api.example/end".to_owned()),
        successor: Some("/v2/a".to_owned()),
        brownouts: vec![
            window("2026-05-01", "2026-05-01T00:10:00Z"),
            window("2026-05-01T00:10:00Z", "2026-06-01"),
        ],
    };
    assert_eq!(announcements, [Some(expected)]);
}

#[test]
fn the_default_is_for_routes_that_say_nothing_and_have_that_side() {
    let route = |name: &str, more: &str| {
        format!("[[route]]\nname = '{name}'\nrest = 'GET /{name}'\nrpc = '{name}'\n{more}\n")
    };
    let routes = [
        route("a", ""),
        route("b", "deprecated = false"),
        route("c", "deprecated = { side = 'rpc', since = 2027-01-01 }"),
        route("d", "from = 'rpc'"),
    ];
    let main = format!("[deprecated]\nsince = 2026-01-01\n{}", routes.concat());
    let since: Vec<_> = announcements(&main)
        .into_iter()
        .map(|announced| announced.map(|announced| (announced.side, announced.since)))
        .collect();
    let expected = [
        Some((Side::Rest, at("2026-01-01"))),
        None,
        Some((Side::Rpc, at("2027-01-01"))),
        None,
    ];
    assert_eq!(since, expected);
}

#[test]
fn every_fault_of_a_deprecation_is_reported_with_its_location() {
    let main = format!(
        "[deprecated]
since = 2026-01-01T00:00:00
side = 'rst'
until = 1
{ROUTE}deprecated = true
[[route]]
name = 'b'
rest = 'GET /b'
rpc = 'b'
deprecated = {{ since = '2026-02-30', sunset = 1, link = '/here', brownouts = [ {{ from = 'soon' }} ] }}
{OLD}"
    );
    assert_eq!(
        problems(&main),
        "\
2: deprecated.since: `2026-01-01T00:00:00` is not a date or time: the offset from UTC is missing; write it after the time, such as `Z` or `+02:00`
3: deprecated.side: `rst` is not allowed here; write `rest` or `rpc`
  hint: did you mean `rest`?
4: deprecated.until: unknown key
9: route[0].deprecated: the boolean `true` is not a table
  hint: write `{ since = \"2026-06-30\" }`, or `false` to leave the route out of `[deprecated]`
14: route[1].deprecated.brownouts[0]: `until` is missing
14: route[1].deprecated.brownouts[0].from: `soon` is not a date or time: write a date such as `2026-06-30`, or a time such as `2026-06-30T12:00:00Z`
14: route[1].deprecated.link: `/here` is not an absolute URL; write one such as `https://api.example/changes`
14: route[1].deprecated.since: `2026-02-30` is not a date or time: there is no such day or time in the years 1970 to 9999
14: route[1].deprecated.sunset: the number `1` is not a date
"
        .trim_end()
    );
}

#[test]
fn a_sunset_before_its_deprecation_and_unsorted_brownouts_are_reported() {
    let main = format!(
        "{ROUTE}from = 'rpc'
[route.deprecated]
since = 2026-06-01
sunset = 2026-05-31
[[route.deprecated.brownouts]]
from = 2026-05-02
until = 2026-05-02
[[route.deprecated.brownouts]]
from = 2026-05-03
until = 2026-05-05
[[route.deprecated.brownouts]]
from = 2026-05-04
until = 2026-05-06
{OLD}"
    );
    assert_eq!(
        problems(&main),
        "\
6: route[0].deprecated.side: no rest client calls this route, so no client would receive the notice
  hint: write `side = \"rpc\"`
8: route[0].deprecated.sunset: `2026-05-31T00:00:00Z` is before `since`, which is 2026-06-01T00:00:00Z; a sunset cannot precede its deprecation (RFC 9745 §4)
11: route[0].deprecated.brownouts[0].until: `2026-05-02T00:00:00Z` is not after `from`, which is 2026-05-02T00:00:00Z
16: route[0].deprecated.brownouts[2].from: `2026-05-04T00:00:00Z` is before 2026-05-05T00:00:00Z, the end of the previous brownout; write brownouts in order, without overlaps
"
        .trim_end()
    );
    let many = "{ from = 2026-01-01, until = 2026-01-02 }, ".repeat(101);
    let main =
        format!("{ROUTE}deprecated = {{ since = 2026-01-01, brownouts = [ {many} ] }}\n{OLD}");
    let reported = problems(&main);
    assert!(
        reported
            .contains("route[0].deprecated: 101 brownouts are too many; at most 100 are allowed"),
        "{reported}"
    );
}
