use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::prelude::*;

use super::bucket::murmur3;
use super::*;
use crate::lifecycle::Brownouts;
use dualgauge_patterns::side::Side;

mod identity;
mod past;
mod subject;
mod vectors;

pub(crate) fn flag(name: &str, stage: Stage) -> Flag {
    Flag {
        name: name.into(),
        client: Glob::new("*"),
        route: Glob::new("*"),
        side: None,
        stage,
        percent: Percent::ALL,
        without_key: WithoutKey::Out,
        headers: Vec::new(),
        holdback: Percent::NONE,
        guard: None,
        ramp: None,
        arming: Arming::Armed,
    }
}

fn rollout(flags: Vec<Flag>) -> Rollout {
    let rule = (HeaderName::from_static("x-client-id"), Glob::new("ios-*"));
    let clients = vec![
        Client {
            name: "ios-app".into(),
            matcher: Matcher::Headers(vec![rule]),
            key: Some(KeySource::Header(HeaderName::from_static("x-device-id"))),
        },
        Client {
            name: "batch".into(),
            matcher: Matcher::ApiKey(vec![[7; 32]]),
            key: Some(KeySource::ApiKey),
        },
    ];
    Rollout {
        clients: Clients::new(clients, HeaderName::from_static("x-api-key")),
        flags: flags.into(),
        defaults: Defaults {
            rest: Stage::Passthrough,
            rpc: Stage::Translate,
        },
        kill: Kill::Off,
        decision_header: None,
        session_grace: Duration::from_secs(900),
        brownouts: Brownouts::default(),
    }
}

fn headers(rows: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in rows {
        headers.append(*name, HeaderValue::from_str(value).unwrap());
    }
    headers
}

pub(super) fn caller<'a>(name: &'a str, key: Option<&'a str>) -> Caller<'a> {
    Caller {
        client: None,
        name,
        key,
        proof: Proof::None,
    }
}

fn decide(rollout: &Rollout, caller: Caller<'_>, route: &str, side: Side) -> Decision {
    rollout.decide(&CallFacts {
        caller,
        route,
        side,
        headers: &HeaderMap::new(),
        session: None,
    })
}

#[test]
fn murmur3_has_its_published_values() {
    for (text, hash) in [
        ("", 0),
        ("a", 0x3c25_69b2),
        ("abc", 0xb3dd_93fa),
        ("Hello, world!", 0xc036_3e43),
        ("The quick brown fox jumps over the lazy dog", 0x2e4f_f723),
    ] {
        assert_eq!(murmur3(text.as_bytes()), hash, "{text}");
    }
}

#[test]
fn clients_are_named_by_header_or_api_key_and_everyone_else_is_other() {
    let rollout = rollout(vec![]);
    let digest: fn(&[u8]) -> Digest = |key| if key == b"secret" { [7; 32] } else { [0; 32] };
    for (rows, name, key) in [
        (
            vec![("x-client-id", "ios-7"), ("x-device-id", "d1")],
            "ios-app",
            Some("d1"),
        ),
        (vec![("x-client-id", "ios-7")], "ios-app", None),
        (
            vec![("x-client-id", "ios-7"), ("x-device-id", "")],
            "ios-app",
            None,
        ),
        (vec![("x-client-id", "android")], OTHER, None),
        (vec![("x-api-key", "secret")], "batch", Some("secret")),
        (vec![("x-api-key", "guess")], OTHER, None),
        (vec![], OTHER, None),
    ] {
        let headers = headers(&rows);
        let identity = rollout.clients.identify(ClientEvidence {
            mcp_client: None,
            headers: &headers,
            peer: None,
            subject: None,
            digest,
            claims: &|_, _| None,
        });
        let caller = identity.caller(&rollout.clients);
        assert_eq!((caller.name, caller.key), (name, key), "{rows:?}");
        assert_eq!(rollout.clients.name(caller.client), name);
    }
}

#[test]
fn the_first_flag_that_matches_decides() {
    let mut only_rpc = flag("only-rpc", Stage::Retired);
    only_rpc.side = Some(Side::Rpc);
    let mut ios = flag("ios", Stage::Translate);
    ios.client = Glob::new("ios-*");
    ios.route = Glob::new("tools.*");
    let rollout = rollout(vec![only_rpc, ios, flag("rest", Stage::Retired)]);
    let decide = |name, route, side| {
        let decision = decide(&rollout, caller(name, None), route, side);
        (decision.stage, rollout.describe(decision.why))
    };
    assert_eq!(
        decide("ios-app", "tools.call", Side::Rpc),
        (Stage::Retired, "flag only-rpc".into())
    );
    assert_eq!(
        decide("ios-app", "tools.call", Side::Rest),
        (Stage::Translate, "flag ios".into())
    );
    assert_eq!(
        decide("ios-app", "health", Side::Rest),
        (Stage::Retired, "flag rest".into())
    );
}

#[test]
fn without_a_matching_flag_the_default_of_the_side_decides() {
    let rollout = rollout(vec![]);
    let decision = decide(&rollout, caller("other", None), "r", Side::Rpc);
    assert_eq!(
        decision,
        Decision::plain(Stage::Translate, DecisionReason::Default)
    );
    assert_eq!(
        decide(&rollout, caller("other", None), "r", Side::Rest).stage,
        Stage::Passthrough
    );
}

#[test]
fn a_caller_without_a_key_is_out_unless_the_flag_says_otherwise() {
    let mut share = flag("share", Stage::Translate);
    share.percent = Percent::from_thousandths(50_000).unwrap();
    let out = decide(
        &rollout(vec![share.clone()]),
        caller("other", None),
        "r",
        Side::Rest,
    );
    assert_eq!(out.why, DecisionReason::Default);
    share.without_key = WithoutKey::In;
    let decision = decide(
        &rollout(vec![share]),
        caller("other", None),
        "r",
        Side::Rest,
    );
    assert_eq!(
        (decision.stage, decision.why),
        (Stage::Translate, DecisionReason::Keyless(0))
    );
}

#[test]
fn a_tripped_flag_is_skipped_and_the_next_one_decides() {
    let mut first = flag("first", Stage::Translate);
    first.arming = Arming::Tripped;
    let rollout = rollout(vec![first, flag("second", Stage::Retired)]);
    let decision = decide(&rollout, caller("other", None), "r", Side::Rest);
    assert_eq!(
        decision,
        Decision::plain(Stage::Retired, DecisionReason::Flag(1))
    );
}

#[test]
fn a_decision_names_the_guarded_flags_that_spared_the_caller() {
    let share = |name: &str| {
        let mut share = flag(name, Stage::Translate);
        share.percent = Percent::from_thousandths(1).unwrap();
        share.guard = Some(Guard::default());
        share
    };
    let mut unguarded = share("unguarded");
    unguarded.guard = None;
    let mut elsewhere = share("elsewhere");
    elsewhere.route = Glob::new("other.*");
    let rollout = rollout(vec![
        share("a"),
        elsewhere,
        unguarded,
        share("b"),
        flag("c", Stage::Shadow),
    ]);
    let excluded_by = |key| {
        let decision = decide(&rollout, caller("other", key), "r", Side::Rest);
        (decision.why, decision.excluded_by)
    };
    assert_eq!(
        excluded_by(Some("k")),
        (DecisionReason::Flag(4), vec![0, 3])
    );
    // No percentage can be applied to a caller without a key, which is counted for every flag that has one.
    assert_eq!(excluded_by(None), (DecisionReason::Flag(4), vec![0, 2, 3]));
}

#[test]
fn a_flag_with_headers_takes_the_calls_that_have_all_of_them() {
    let mut picky = flag("picky", Stage::Translate);
    picky.headers = vec![
        (HeaderName::from_static("x-beta"), Glob::new("*")),
        (HeaderName::from_static("x-tenant"), Glob::new("acme-*")),
    ];
    let rollout = rollout(vec![picky]);
    for (rows, taken) in [
        (vec![("x-beta", ""), ("x-tenant", "acme-eu")], true),
        (
            vec![
                ("x-beta", "1"),
                ("x-tenant", "zeta"),
                ("x-tenant", "acme-us"),
            ],
            true,
        ),
        (vec![("x-beta", "1"), ("x-tenant", "zeta")], false),
        (vec![("x-tenant", "acme-eu")], false),
        (vec![], false),
    ] {
        let headers = headers(&rows);
        let decision = rollout.decide(&CallFacts {
            caller: caller("other", None),
            route: "r",
            side: Side::Rest,
            headers: &headers,
            session: None,
        });
        assert_eq!(decision.stage == Stage::Translate, taken, "{rows:?}");
        assert!(
            decision.excluded_by.is_empty(),
            "a call that a flag does not cover is no business of its guard"
        );
    }
}

#[test]
fn those_who_are_held_back_stay_out_at_any_percentage() {
    let mut most = flag("most", Stage::Translate);
    most.guard = Some(Guard::default());
    most.holdback = Percent::from_thousandths(10_000).unwrap();
    assert_eq!(most.share().to_string(), "90");
    most.percent = Percent::from_thousandths(5_000).unwrap();
    assert_eq!(most.share().to_string(), "5");
    most.percent = Percent::ALL;
    let rollout = rollout(vec![most]);
    let out = (0..1000).filter(|key| {
        let key = key.to_string();
        let decision = decide(&rollout, caller("other", Some(&key)), "r", Side::Rest);
        decision.excluded_by == [0]
    });
    // Five standard deviations of a binomial of 1,000.
    assert!((53..=147).contains(&out.count()));
}

#[test]
fn a_stage_says_which_way_answers_and_which_is_compared() {
    use Way::{New, Old};
    for (stage, control, candidate, needs) in [
        (Stage::Passthrough, Some(Old), None, vec![Side::Rest]),
        (
            Stage::Shadow,
            Some(Old),
            Some(New),
            vec![Side::Rest, Side::Rpc],
        ),
        (
            Stage::Verify,
            Some(New),
            Some(Old),
            vec![Side::Rpc, Side::Rest],
        ),
        (Stage::Translate, Some(New), None, vec![Side::Rpc]),
        (Stage::Retired, None, None, vec![]),
    ] {
        assert_eq!(stage.control(), control, "{stage:?}");
        assert_eq!(stage.candidate(), candidate, "{stage:?}");
        assert_eq!(
            stage.needs(Side::Rest).collect::<Vec<_>>(),
            needs,
            "{stage:?}"
        );
        assert_eq!(Stage::parse(stage.as_str()), Some(stage));
    }
}

#[test]
fn a_percentage_prints_as_it_is_written() {
    for (thousandths, text) in [
        (0, "0"),
        (1, "0.001"),
        (25_000, "25"),
        (33_330, "33.33"),
        (100_000, "100"),
    ] {
        assert_eq!(
            Percent::from_thousandths(thousandths).unwrap().to_string(),
            text
        );
    }
    assert!(Percent::from_thousandths(100_001).is_none());
}

#[test]
fn a_star_in_a_glob_matches_any_text() {
    for (glob, yes, no) in [
        ("*", vec!["", "x"], vec![]),
        ("ios-*", vec!["ios-", "ios-app"], vec!["ios", "an-ios-"]),
        ("*.read", vec![".read", "a.read"], vec!["a.reads"]),
        ("a*b*c", vec!["abc", "a.b.b.c"], vec!["acb", "ab"]),
        ("abcab*ab", vec!["abcabab"], vec!["abcab"]),
        ("exact", vec!["exact"], vec!["exact2", ""]),
    ] {
        for text in yes {
            assert!(Glob::new(glob).fits(text), "{glob} {text}");
        }
        for text in no {
            assert!(!Glob::new(glob).fits(text), "{glob} {text}");
        }
    }
}

proptest! {
    #[test]
    fn raising_a_percentage_never_moves_a_caller_out(name in "[a-z-]{1,9}", key in any::<String>(), low in 0_u32..=100_000, more in 0_u32..=100_000) {
        let bucket = bucket(&name, &key);
        prop_assert!(bucket.get() < Bucket::COUNT);
        let high = low.max(more);
        let takes = |thousandths: u32| Percent::from_thousandths(thousandths).unwrap().takes(bucket);
        prop_assert!(!takes(low) || takes(high));
        prop_assert!(takes(100_000) && !takes(0));
    }

    #[test]
    fn a_share_is_about_as_large_as_it_says(name in "[a-z]{4,9}", thousandths in 10_000_u32..90_000) {
        let percent = Percent::from_thousandths(thousandths).unwrap();
        let taken = (0..4000).filter(|key| percent.takes(bucket(&name, &key.to_string()))).count();
        let expected = 4000.0 * f64::from(thousandths) / 100_000.0;
        // Five standard deviations of a binomial of 4,000.
        prop_assert!((f64::from(u32::try_from(taken).unwrap()) - expected).abs() < 160.0, "{taken} of {expected}");
    }
}
