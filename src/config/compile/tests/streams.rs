//! Streams and events among routes and flags.

use std::time::Duration;

use http::Method;

use super::{BOTH, Fixture, ROUTE, plan, problems, problems_of};
use dualgauge_patterns::side::Side;

const STREAM: &str = "[[stream]]\nname = 'events'\nrest = 'GET /old/sse'\nrpc = 'GET /sse'\n";

/// Returns the problems of lines after both upstreams, numbered from the first of these lines.
fn wrong(more: &str) -> String {
    let before = BOTH.lines().count();
    let problems = problems(&format!("{BOTH}{more}"));
    let lines = problems.lines().map(|line| {
        let cut = line.split_once(": ");
        let number = cut.and_then(|(number, rest)| Some((number.parse::<usize>().ok()?, rest)));
        match number {
            Some((number, rest)) => format!("{}: {rest}", number - before),
            None => line.to_owned(),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn streams_and_events_become_part_of_the_plan() {
    let plan = plan(&format!(
        "{BOTH}{STREAM}max_age = '1h'\nupstream = {{ rpc = 'new' }}\n[[event]]\nrpc = {{ method = 'a' }}\nsse = {{ event = 'a' }}\n[[event]]\nframe = {{ event = 'x' }}\n"
    ));
    let stream = &plan.streams.all()[0];
    assert_eq!(stream.max_age, Some(Duration::from_secs(3600)));
    let found = plan.streams.find(&Method::GET, "/sse").unwrap();
    assert_eq!((found.stream, found.side), (0, Side::Rpc));
    for (side, name) in [(Side::Rest, "old"), (Side::Rpc, "new")] {
        assert_eq!(plan.upstream_of_stream(0, side).unwrap().name, name);
    }
    assert_eq!(plan.events.all().len(), 2);
}

#[test]
fn problems_of_a_stream_have_its_line_and_key() {
    let cases = [
        (
            STREAM.replace("GET /sse", "POST /sse"),
            "4: stream[0].rpc: a stream is requested with GET, not with POST",
        ),
        (
            STREAM.replace("GET /sse", "GET /a//b"),
            "4: stream[0].rpc: the path `/a//b`: it has an empty segment",
        ),
        (
            STREAM.replace("GET /sse", "/sse"),
            "4: stream[0].rpc: `/sse` is not a call; write a method and a path such as `GET /events/{id}`",
        ),
        (
            STREAM.replace("GET /sse", "GET /sse/{id}"),
            "4: stream[0].rpc: the hole `id` is on this side only",
        ),
        (
            STREAM.replace("GET /sse", "GET /old/%73se"),
            "4: stream[0].rpc: `/old/%73se` matches the same requests as stream[0].rest at ",
        ),
        (
            format!("{STREAM}{}", STREAM.replace("events", "more")),
            "7: stream[1].rest: `/old/sse` matches the same requests as stream[0].rest at ",
        ),
        (
            format!("{ROUTE}{}", STREAM.replace("GET /sse", "GET /a")),
            "8: stream[0].rpc: `GET /a` is already a route",
        ),
        (
            format!("{ROUTE}{}", STREAM.replace("'events'", "'a'")),
            "6: stream[0].name: the name `a` is already used by route[0]",
        ),
        (
            format!("{STREAM}upstream = 'nwe'\n"),
            "5: stream[0].upstream: there is no upstream `nwe`",
        ),
    ];
    for (more, wanted) in cases {
        let found = wrong(&more);
        assert!(found.contains(wanted), "{found}\n{wanted}");
    }
}

#[test]
fn problems_of_an_event_have_its_line_and_key() {
    let cases = [
        (
            "rpc = { method = 'a', params = { x = '{x}' } }\nsse = {}",
            "2: event[0].rpc: the hole `x` is on the rpc side only",
        ),
        (
            "rpc = { method = 'a' }\nsse = { data = 1, text = '1' }",
            "3: event[0].sse: `data` is JSON and `text` is plain text; write only one of them",
        ),
        (
            "sse = {}\nframe = {}",
            "1: event[0]: `frame` and `sse` exclude each other; write two `[[event]]`",
        ),
        (
            "rpc = { mehod = 'a' }",
            "2: event[0].rpc.mehod: unknown key",
        ),
        ("lossy = 'x'", "1: event[0]: it has no side"),
        (
            "sse = { event = 'a' }\n[[event]]\nsse = { event = 'a' }",
            "3: event[1]: the event can never be used: event[0] matches everything that it matches",
        ),
    ];
    for (more, wanted) in cases {
        let found = wrong(&format!("[[event]]\n{more}\n"));
        assert!(found.contains(wanted), "{found}\n{wanted}");
    }
}

#[test]
fn a_flag_that_compares_a_stream_is_refused_and_a_glob_is_not() {
    let flags = |stage: &str, route: &str| {
        let main = format!("rollout.flags = 'flags.toml'\n{BOTH}{STREAM}");
        let flag = format!("[[flag]]\nname = 'f'\nroute = '{route}'\nstage = '{stage}'\n");
        Fixture::new(&main).file("flags.toml", flag)
    };
    for stage in ["shadow", "verify"] {
        let found = problems_of(&flags(stage, "events"));
        let wanted = format!(
            "flags.toml:4: flag[0].stage: streams are not compared, so `events` cannot have the stage `{stage}`\n  hint: write `passthrough`, `translate` or `retired`"
        );
        assert_eq!(found, wanted);
        assert!(super::read(&flags(stage, "ev*")).is_ok());
    }
    assert!(super::read(&flags("translate", "events")).is_ok());
}
