//! Evaluations agree with the decisions of live calls.

use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::prelude::*;

use super::*;
use crate::explain::tests::plan;
use crate::plan::Plan;
use crate::rollout::tests::flag;
use crate::rollout::{
    Arming, Client, ClientEvidence, Clients, Defaults, Flag, Glob, KeySource, Kill, Matcher,
    Percent, Requester, Stage, Way, WithoutKey,
};
use crate::routing::decide;
use crate::time::Timestamp;
use dualgauge_patterns::side::Side;

const CLIENT: HeaderName = HeaderName::from_static("x-client-id");
const DEVICE: HeaderName = HeaderName::from_static("x-device-id");
const REGION: HeaderName = HeaderName::from_static("x-region");
const AT: Timestamp = Timestamp::from_unix(1_800_000_000);

/// Clients `ios` and `batch`, of which only the callers of the first have keys.
fn clients() -> Clients {
    let client = |name: &str, key| Client {
        name: name.into(),
        matcher: Matcher::Headers(vec![(CLIENT, Glob::new(name))]),
        key,
    };
    let ios = client("ios", Some(KeySource::Header(DEVICE)));
    Clients::new(
        vec![ios, client("batch", None)],
        HeaderName::from_static("x-key"),
    )
}

fn plan_with(flags: Vec<Flag>) -> Plan {
    let mut plan = plan();
    plan.rollout.clients = clients();
    plan.rollout.flags = flags.into();
    plan.rollout.defaults = Defaults {
        rest: Stage::Passthrough,
        rpc: Stage::Shadow,
    };
    plan
}

fn context(body: &str) -> EvaluationContext {
    EvaluationContext::parse(body.as_bytes()).unwrap()
}

fn ios(key: &str) -> EvaluationContext {
    context(&format!(
        r#"{{"context":{{"client":"ios","targetingKey":"{key}"}}}}"#
    ))
}

/// The value, the variant, the reason and the rule.
fn told(plan: &Plan, key: &str, context: &EvaluationContext) -> (EvaluatedValue, String) {
    let found = evaluate(plan, key, context, AT).unwrap();
    let (variant, reason) = (found.variant, found.reason.as_str());
    (found.value, format!("{variant} {reason} {}", found.rule))
}

#[test]
fn a_route_has_the_stage_and_the_side_of_the_caller() {
    let split = Flag {
        client: Glob::new("ios"),
        percent: Percent::from_thousandths(50_000).unwrap(),
        ..flag("half", Stage::Translate)
    };
    let all = Flag {
        client: Glob::new("batch"),
        ..flag("all", Stage::Verify)
    };
    let plan = plan_with(vec![split, all]);
    let batch = context(r#"{"context":{"client":"batch","targetingKey":"ignored"}}"#);
    assert_eq!(
        told(&plan, "stage:read", &batch),
        (
            EvaluatedValue::Stage(Stage::Verify),
            "verify TARGETING_MATCH flag all".to_owned()
        )
    );
    assert_eq!(
        told(&plan, "new:read", &batch),
        (
            EvaluatedValue::IsNew(true),
            "new TARGETING_MATCH flag all".to_owned()
        )
    );
    let inside = (0..).find(|key| {
        let found = evaluate(&plan, "new:read", &ios(&key.to_string()), AT).unwrap();
        found.value == EvaluatedValue::IsNew(true)
    });
    let (_, text) = told(&plan, "stage:read", &ios(&inside.unwrap().to_string()));
    assert!(
        text.starts_with("translate SPLIT flag half bucket "),
        "{text}"
    );
    let other = EvaluationContext::default();
    assert_eq!(
        told(&plan, "stage:make", &other).1,
        "passthrough DEFAULT default"
    );
    let rpc = context(r#"{"context":{"side":"rpc"}}"#);
    assert_eq!(told(&plan, "stage:make", &rpc).1, "shadow DEFAULT default");
}

#[test]
fn a_flag_has_its_values_in_force_and_none_when_it_is_off() {
    let percent = Percent::from_thousandths(12_500).unwrap();
    let armed = Flag {
        percent,
        ..flag("armed", Stage::Translate)
    };
    let tripped = Flag {
        arming: Arming::Tripped,
        ..flag("tripped", Stage::Verify)
    };
    let held_back = Flag {
        percent: Percent::from_thousandths(100_000).unwrap(),
        holdback: Percent::from_thousandths(10_000).unwrap(),
        ..flag("held", Stage::Translate)
    };
    let mut plan = plan_with(vec![armed, tripped, held_back]);
    let other = EvaluationContext::default();
    let values = |stage, percent| EvaluatedValue::Flag { stage, percent };
    assert_eq!(
        told(&plan, "flag:armed", &other),
        (
            values(Stage::Translate, percent),
            "translate STATIC flag in force".to_owned()
        )
    );
    let share = Percent::from_thousandths(90_000).unwrap();
    assert_eq!(
        told(&plan, "flag:held", &other).0,
        values(Stage::Translate, share)
    );
    let off = values(Stage::Verify, Percent::NONE);
    assert_eq!(
        told(&plan, "flag:tripped", &other),
        (off, "verify DISABLED tripped by its guard".to_owned())
    );
    plan.rollout.kill = Kill::On;
    assert_eq!(
        told(&plan, "flag:armed", &other).1,
        "translate DISABLED kill switch"
    );
    assert_eq!(
        told(&plan, "stage:read", &other).1,
        "passthrough DISABLED kill switch"
    );
}

#[test]
fn errors_repeat_no_value_of_the_body() {
    let fault = EvaluationContext::parse(br#""s3cret""#).unwrap_err();
    assert_eq!(
        fault.to_string(),
        "the body is not a JSON object: line 1, column 8"
    );
}

/// A key, a body, and the code of the error or the reason.
const CODES: &[(&str, &str, &str)] = &[
    ("stage:read", "{", "PARSE_ERROR"),
    ("stage:read", "[]", "PARSE_ERROR"),
    ("stage:read", r#"{"context":7}"#, "INVALID_CONTEXT"),
    (
        "stage:read",
        r#"{"context":{"client":"nobody"}}"#,
        "INVALID_CONTEXT",
    ),
    (
        "flag:half",
        r#"{"context":{"client":"nobody"}}"#,
        "INVALID_CONTEXT",
    ),
    (
        "stage:read",
        r#"{"context":{"targetingKey":7}}"#,
        "INVALID_CONTEXT",
    ),
    (
        "stage:read",
        r#"{"context":{"side":"both"}}"#,
        "INVALID_CONTEXT",
    ),
    (
        "stage:read",
        r#"{"context":{"headers":{"a b":"1"}}}"#,
        "INVALID_CONTEXT",
    ),
    (
        "stage:read",
        r#"{"context":{"headers":{"a":"1\n"}}}"#,
        "INVALID_CONTEXT",
    ),
    (
        "stage:read",
        r#"{"context":{"client":"ios"}}"#,
        "TARGETING_KEY_MISSING",
    ),
    (
        "stage:read",
        r#"{"context":{"client":"ios","targetingKey":""}}"#,
        "DEFAULT",
    ),
    ("stage:read", r#"{"context":{"client":"batch"}}"#, "DEFAULT"),
    ("stage:read", "", "DEFAULT"),
    ("stage:read", r#"{"context":null,"more":1}"#, "DEFAULT"),
    ("stage:read", r#"{"context":{"plan":{"a":[1]}}}"#, "DEFAULT"),
    ("stage:nothing", "", "FLAG_NOT_FOUND"),
    ("new:", "", "FLAG_NOT_FOUND"),
    ("flag:read", "", "FLAG_NOT_FOUND"),
    ("read", "", "FLAG_NOT_FOUND"),
];

#[test]
fn what_cannot_be_evaluated_has_a_code() {
    let half = Flag {
        percent: Percent::from_thousandths(50_000).unwrap(),
        ..flag("half", Stage::Translate)
    };
    let plan = plan_with(vec![half]);
    let code = |key: &str, body: &str| {
        let context = EvaluationContext::parse(body.as_bytes());
        let found = context.and_then(|context| evaluate(&plan, key, &context, AT));
        found.map_or_else(|fault| fault.code(), |found| found.reason.as_str())
    };
    for (key, body, expected) in CODES {
        assert_eq!(code(key, body), *expected, "{key} {body}");
    }
    let many: Vec<String> = (0..65).map(|value| format!("\"{value}\"")).collect();
    let many = format!(
        r#"{{"context":{{"headers":{{"a":[{}]}}}}}}"#,
        many.join(",")
    );
    assert_eq!(code("stage:read", &many), "INVALID_CONTEXT");
}

fn globs(names: &'static [&'static str]) -> impl Strategy<Value = Glob> {
    prop::sample::select(names).prop_map(Glob::new)
}

fn any_flag() -> impl Strategy<Value = Flag> {
    (
        globs(&["*", "ios", "i*", "batch", "other"]),
        globs(&["*", "read", "m*"]),
        prop::option::of(prop::sample::select(&Side::ALL[..])),
        prop::sample::select(&Stage::ALL[..]),
        prop::sample::select(&[0, 30_000, 70_000, 100_000][..]),
        any::<[bool; 4]>(),
    )
        .prop_map(
            |(client, route, side, stage, percent, [is_in, is_regional, is_tripped, holds])| Flag {
                client,
                route,
                side,
                percent: Percent::from_thousandths(percent).unwrap(),
                without_key: match is_in {
                    true => WithoutKey::In,
                    false => WithoutKey::Out,
                },
                headers: match is_regional {
                    true => vec![(REGION, Glob::new("eu-*"))],
                    false => Vec::new(),
                },
                arming: match is_tripped {
                    true => Arming::Tripped,
                    false => Arming::Armed,
                },
                holdback: match holds {
                    true => Percent::from_thousandths(10_000).unwrap(),
                    false => Percent::NONE,
                },
                ..flag("", stage)
            },
        )
}

/// A live call: its headers, with a client, a key and a region.
fn any_headers() -> impl Strategy<Value = HeaderMap> {
    (
        prop::option::of(prop::sample::select(&["ios", "batch", "x"][..])),
        prop::option::of("[a-c]{0,2}"),
        prop::option::of(prop::sample::select(&["eu-1", "us-1"][..])),
    )
        .prop_map(|(client, device, region)| {
            let values = [
                (CLIENT, client.map(str::to_owned)),
                (DEVICE, device),
                (REGION, region.map(str::to_owned)),
            ];
            let values = values.into_iter();
            let values = values.filter_map(|(name, value)| Some((name, value?)));
            values
                .map(|(name, value)| (name, HeaderValue::from_str(&value).unwrap()))
                .collect()
        })
}

proptest! {
    #[test]
    fn an_evaluation_has_the_decision_of_the_live_call(
        mut flags in prop::collection::vec(any_flag(), 0..6),
        headers in any_headers(),
        side in prop::sample::select(&Side::ALL[..]),
        route in 0..2_usize,
        is_killed in prop::bool::weighted(0.1),
        has_upstream in any::<bool>(),
    ) {
        for (index, flag) in flags.iter_mut().enumerate() {
            flag.name = format!("f{index}");
        }
        let mut plan = plan_with(flags);
        if is_killed {
            plan.rollout.kill = Kill::On;
        }
        if !has_upstream {
            plan.upstreams.defaults[0] = None;
        }
        let clients = &plan.rollout.clients;
        let identity = clients.identify(ClientEvidence {
            headers: &headers,
            peer: None,
            subject: None,
            mcp_client: None,
            digest: |_| [0; 32],
            claims: &|_, _| None,
        });
        let caller = identity.caller(clients);
        let live = decide(&plan, Requester::new(caller, &headers), Some(route), side, AT);
        let asked = EvaluationContext {
            client: caller.name.to_owned(),
            targeting_key: Some(caller.key.unwrap_or_default().to_owned()),
            side: Some(side),
            headers: headers.clone(),
        };
        let name = &plan.routes.route(route).name;
        let found = evaluate(&plan, &format!("stage:{name}"), &asked, AT).unwrap();
        prop_assert_eq!(found.value, EvaluatedValue::Stage(live.stage));
        prop_assert_eq!(&found.rule, &*plan.rollout.describe(live.why));
        let is_new = evaluate(&plan, &format!("new:{name}"), &asked, AT).unwrap();
        let new = live.stage.control() == Some(Way::New);
        prop_assert_eq!(is_new.value, EvaluatedValue::IsNew(new));
        // All flags at once have the same values.
        let all = evaluate_all(&plan, &asked, AT).unwrap();
        prop_assert!(all.contains(&Ok(found)) && all.contains(&Ok(is_new)));
        // Without the key, there is the same decision or an error.
        let keyless = EvaluationContext { targeting_key: None, ..asked };
        match evaluate(&plan, &format!("stage:{name}"), &keyless, AT) {
            Ok(found) => prop_assert_eq!(found.value, EvaluatedValue::Stage(live.stage)),
            Err(fault) => prop_assert_eq!(fault, EvaluationFault::TargetingKey),
        }
    }

    #[test]
    fn a_context_is_read_as_it_was_written(body in "\\PC{0,60}") {
        check_any_request(body.as_bytes());
    }
}
