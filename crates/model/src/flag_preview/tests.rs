//! Previews of changes, as people read them.

use std::time::Duration;

use http::HeaderName;

use super::*;
use crate::lifecycle::{Brownouts, ClientUsage};
use crate::rollout::tests::flag;
use crate::rollout::{Client, Clients, Defaults, Glob, Matcher};
use crate::route::{RouteSource, parse_route};
use crate::time::Timestamp;

fn rollout(flags: Vec<Flag>) -> Rollout {
    let client = |name: &str| Client {
        name: name.into(),
        matcher: Matcher::Headers(Vec::new()),
        key: None,
    };
    Rollout {
        clients: Clients::new(
            vec![client("ios"), client("android")],
            HeaderName::from_static("x-key"),
        ),
        flags: flags.into(),
        defaults: Defaults {
            rest: Stage::Passthrough,
            rpc: Stage::Passthrough,
        },
        kill: Kill::Off,
        decision_header: None,
        session_grace: Duration::ZERO,
        brownouts: Brownouts::default(),
    }
}

fn routes() -> Vec<Route> {
    let route = |name: &str| {
        let source = RouteSource {
            name: name.into(),
            rest: format!("GET /{name}"),
            rpc: name.into(),
            ..RouteSource::default()
        };
        parse_route(source).unwrap()
    };
    ["items.get", "items.list", "users.get"].map(route).into()
}

fn used() -> Usage {
    let mut usage = Usage::default();
    for (client, calls) in [("ios", 1), ("android", 3)] {
        let mut seen = ClientUsage::default();
        for _ in 0..calls {
            seen.add(Some(Way::Old), Timestamp::from_unix(1));
        }
        usage.note("items.get", client, Side::Rest, &seen);
    }
    usage
}

fn named(name: &str, client: &str, route: &str, percent: &str) -> Flag {
    Flag {
        client: Glob::new(client),
        route: Glob::new(route),
        percent: Percent::parse(percent).unwrap(),
        ..flag(name, Stage::Translate)
    }
}

fn previewed(rollout: &Rollout, index: usize, stage: Stage, percent: &str) -> FlagPreview {
    let (routes, usage) = (routes(), used());
    let input = PreviewInput {
        rollout,
        routes: &routes,
        usage: &usage,
        upstreams: &Side::ALL,
    };
    let percent = Percent::parse(percent).unwrap();
    preview(input, index, FlagValues { stage, percent }).unwrap()
}

#[test]
fn a_preview_says_which_calls_move_and_on_how_many_routes() {
    let rollout = rollout(vec![named("ios", "ios", "items.*", "10")]);
    let says = |stage, percent| previewed(&rollout, 0, stage, percent).text;
    let seen = "So far, 25 % of all calls match the flag.";
    assert_eq!(
        says(Stage::Translate, "10"),
        format!("Changes nothing: these are the values in force. {seen}")
    );
    assert_eq!(
        says(Stage::Translate, "35.5"),
        format!(
            "Moves about 25.5 % more of client `ios`'s calls to the new side, on 2 routes. {seen}"
        )
    );
    assert_eq!(
        says(Stage::Shadow, "50"),
        format!("Returns about 10 % of client `ios`'s calls to the old side, on 2 routes. {seen}")
    );
    assert_eq!(
        says(Stage::Retired, "100"),
        format!("Refuses about 100 % of client `ios`'s calls, on 2 routes. {seen}")
    );
    assert_eq!(
        says(Stage::Verify, "20"),
        format!(
            "Moves about 10 % more of client `ios`'s calls to the new side, on 2 routes. The old side answers them as \
             well, for comparison. {seen}"
        )
    );
}

#[test]
fn a_preview_names_what_keeps_a_flag_from_deciding() {
    let mut rollout = rollout(vec![
        named("first", "android", "items.get", "100"),
        named("none", "ios", "*", "0"),
        named("other", "ios", "users.*", "100"),
        named("all", "*", "items.*", "0"),
    ]);
    let found = previewed(&rollout, 3, Stage::Translate, "40");
    assert_eq!(found.earlier, ["first"]);
    assert_eq!((found.clients, found.routes, found.calls), (2, 2, [4, 4]));
    assert_eq!(
        found.text,
        "Moves about 40 % of all calls to the new side, on 2 routes. So far, 100 % of all calls match the flag. \
         Earlier flags decide some of them: `first`."
    );
    rollout.kill = Kill::On;
    let killed = previewed(&rollout, 3, Stage::Translate, "40").text;
    assert!(
        killed.ends_with("no flag decides until it is off."),
        "{killed}"
    );
}

#[test]
fn a_preview_has_the_reasons_why_a_change_would_be_refused() {
    let rollout = rollout(vec![named("ios", "ios", "*", "100")]);
    assert!(
        previewed(&rollout, 0, Stage::Shadow, "100")
            .faults
            .is_empty()
    );
    let faults = previewed(&rollout, 0, Stage::Translate, "40").faults;
    assert!(
        matches!(faults[..], [FlagFault::NoKey { .. }]),
        "{faults:?}"
    );
}

#[test]
fn a_comparison_moves_no_call() {
    let rollout = rollout(vec![Flag {
        stage: Stage::Passthrough,
        ..named("ios", "ios", "*", "100")
    }]);
    let found = previewed(&rollout, 0, Stage::Shadow, "5");
    assert_eq!(found.effect, PreviewEffect::Compares);
    assert!(
        found
            .text
            .starts_with("Compares about 5 % of client `ios`'s calls"),
        "{}",
        found.text
    );
    assert_eq!(found.new_side, [Percent::NONE; 2]);
}

#[test]
fn a_holdback_limits_the_effect() {
    let rollout = rollout(vec![Flag {
        holdback: Percent::parse("20").unwrap(),
        ..named("ios", "ios", "*", "100")
    }]);
    let found = previewed(&rollout, 0, Stage::Translate, "90");
    assert_eq!(found.new_side[0], found.new_side[1]);
    assert_eq!(found.effect, PreviewEffect::Compares);
    let text = found.text;
    assert!(
        text.starts_with("Leaves client `ios`'s calls on the same side"),
        "{text}"
    );
    let returned = previewed(&rollout, 0, Stage::Translate, "70");
    assert_eq!(returned.effect, PreviewEffect::Returns);
}
