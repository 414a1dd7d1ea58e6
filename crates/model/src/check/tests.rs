//! The corpus, with each rule removed in turn, and random tables.

use proptest::prelude::*;

use super::arbitrary::{Dice, dice};
use super::check;
use super::corpus::{corpus, route, verdict_lines};
use super::message::Message;
use super::mutation::{Mutation, MutationTarget, RawMutation};
use super::report::{Direction, Finding, FindingKind, LossVerdict, RefusalCause};
use super::rules::{CheckRule, RULES};
use super::subject::CheckSubject;
use super::verify::check_by;
use crate::outcome::{RestReplySource, RowSource};
use crate::route::test_syntax::{route_source, row};
use crate::route::{
    Example, ExampleReply, ExampleWay, OldSource, RouteSource, RouteTable, Wire, parse_route,
};
use dualgauge_patterns::json::Json;
use dualgauge_patterns::side::Side;

#[test]
fn every_verdict_of_the_corpus_is_the_expected_one() {
    let cases = corpus();
    assert!(cases.len() >= 60, "{} cases", cases.len());
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|case| {
            let found = verdict_lines(&check_by(&case.table, RULES)[0]);
            (found != case.expected).then(|| {
                format!(
                    "{}:\n  expected {:#?}\n  found    {found:#?}",
                    case.name, case.expected
                )
            })
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_witness_of_the_corpus_differs_from_what_comes_back() {
    for case in corpus() {
        for report in check_by(&case.table, RULES) {
            for direction in &report.directions {
                for finding in direction.losses.iter().chain(&direction.norms) {
                    let witness = &finding.witness;
                    let survives = witness
                        .back
                        .as_ref()
                        .is_ok_and(|back| back.same(&witness.sent));
                    assert!(!survives, "{}: {}", case.name, witness.sent);
                }
            }
        }
    }
}

#[test]
fn the_corpus_needs_every_rule() {
    let cases = corpus();
    for missing in 0..RULES.len() {
        let mut rules = RULES.to_vec();
        rules.remove(missing);
        let notices = cases
            .iter()
            .any(|case| verdict_lines(&check_by(&case.table, &rules)[0]) != case.expected);
        assert!(notices, "rule {missing} can be taken away");
    }
}

#[test]
fn a_route_after_another_has_a_witness_that_is_refused() {
    let front = "rest = 'POST /partners/read'\nrpc = 'partners/read'\n\
        body = { ids = '{ids:integer[]}' }\nparams = { ids = '{ids}' }";
    let behind = "after = 'front'\nrest = 'POST /partners/{method}'\nrpc = 'call'\n\
        body = { '...' = '{more}' }\nparams = { method = '{method}', '...' = '{more}' }";
    let routes = [("front", front), ("behind", behind)];
    let routes = routes.map(|(name, text)| route(&text.parse().unwrap(), name));
    let table = RouteTable::build(routes.into()).unwrap();
    let mut refused = Vec::new();
    for report in check(&table) {
        for direction in report.directions {
            let (index, from) = (report.route, direction.from);
            refused.extend(direction.refusals.into_iter().map(|one| (index, from, one)));
        }
    }
    let [(1, Side::Rpc, refused)] = &refused[..] else {
        panic!("{refused:?}");
    };
    assert_eq!(
        refused.cause,
        RefusalCause::RouteInFront("front".to_owned())
    );
    assert_eq!(refused.cause.describe(), "`front` comes first");
    let sent = r#"call {"method":"read","ids":[7]}"#;
    assert_eq!(refused.sent.to_string(), sent);
    let why = "params: these values select the route `front`";
    assert_eq!(refused.why, why);
    // The code that serves calls refuses the witness, and accepts a call that differs in `method` only.
    let calls = CheckSubject::calls(&table, 1, Side::Rpc);
    assert_eq!(calls.refusal(&refused.sent).as_deref(), Some(why));
    let Message::RpcCall {
        method, headers, ..
    } = &refused.sent
    else {
        panic!("{}", refused.sent);
    };
    let beside = Message::RpcCall {
        method: method.clone(),
        params: Some(Json::literal(r#"{"method":"write","ids":[7]}"#)),
        headers: headers.clone(),
    };
    assert_eq!(calls.refusal(&beside), None);
}

/// A table of the routes that can be loaded.
fn table(dice: &mut Dice, routes: usize) -> RouteTable {
    let sources: Vec<RouteSource> = (0..routes).map(|index| dice.route(index)).collect();
    let routes = sources
        .into_iter()
        .filter_map(|source| parse_route(source).ok());
    // Routes that overlap are left out one by one.
    let mut kept = Vec::new();
    for route in routes {
        let mut more = kept.clone();
        more.push(route);
        if RouteTable::build(more.clone()).is_ok() {
            kept = more;
        }
    }
    RouteTable::build(kept).unwrap_or_default()
}

fn shown(finding: &Finding) -> String {
    let witness = &finding.witness;
    let back = match &witness.back {
        Ok(back) => back.to_string(),
        Err(what) => format!("refused: {what}"),
    };
    format!(
        "{} {}\n  {}\n  -> {}\n  -> {back}",
        finding.rule.as_str(),
        finding.at,
        witness.sent,
        witness.there
    )
}

/// A message with any values in some of its holes, and any value at one of its locations.
fn any_message(subject: &CheckSubject<'_>, dice: &mut Dice) -> Option<Message> {
    let mut chosen = Vec::new();
    for _ in 0..dice.below(4) {
        let hole = dice.below(subject.samples.len().max(1));
        let value = (dice.below(4) > 0).then(|| dice.json());
        if chosen.iter().all(|(known, _)| *known != hole) {
            chosen.push((hole, value));
        }
    }
    let raw = match dice.below(4) {
        0 => RawMutation::Absent,
        _ => RawMutation::Value(dice.json()),
    };
    let index = dice.below(2 * (subject.here.holes.len() + subject.here.objects.len()) + 1);
    let slot = subject
        .here
        .holes
        .get(index)
        .map(|held| MutationTarget::Slot(held.slot));
    let object = subject
        .here
        .objects
        .get(index.wrapping_sub(subject.here.holes.len()));
    let target = slot.or_else(|| object.map(|(object, _)| MutationTarget::Object(object)));
    let mutation = target.map(|target| Mutation { target, raw });
    subject.sized(mutation.as_ref(), &chosen, dice.below(3))
}

/// Sends any messages: none may refute the verdict.
fn challenge(
    subject: &CheckSubject<'_>,
    direction: &Direction,
    dice: &mut Dice,
) -> Result<usize, TestCaseError> {
    let mut passed = 0;
    for _ in 0..24 {
        let Some(sent) = any_message(subject, dice) else {
            continue;
        };
        let Some(trip) = subject.round_trip(&sent) else {
            continue;
        };
        passed += 1;
        let back = trip.back.as_ref();
        let survives = back.is_ok_and(|back| back.same(&sent));
        let route = (&subject.route.rest, &subject.here, subject.pair());
        match direction.verdict() {
            LossVerdict::Lossless => {
                prop_assert!(
                    survives,
                    "{route:?}\n{sent}\n-> {}\n-> {back:?}",
                    trip.there
                );
            }
            LossVerdict::NormalForm if !survives => {
                let back = back.map_err(|what| {
                    TestCaseError::fail(format!("{route:?}\n{sent}\n-> {}\n-> {what}", trip.there))
                })?;
                let again = subject.round_trip(back).and_then(|trip| trip.back.ok());
                let other = direction
                    .norms
                    .iter()
                    .any(|norm| norm.rule == CheckRule::AnotherRoute);
                let stable = again.as_ref().is_some_and(|again| again.same(back));
                prop_assert!(
                    other || stable,
                    "{route:?}\n{sent}\n-> {}\n-> {back}\n-> {again:?}",
                    trip.there
                );
            }
            LossVerdict::NormalForm | LossVerdict::Lossy | LossVerdict::Never => {}
        }
    }
    Ok(passed)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(160))]

    #[test]
    fn no_generated_message_refutes_a_verdict_on_a_random_table(mut dice in dice()) {
        let table = table(&mut dice, 3);
        for report in check(&table) {
            let route = table.route(report.route);
            for direction in &report.directions {
                for finding in &direction.losses {
                    prop_assert!(finding.rule != CheckRule::Unexplained, "{} {:?}\n{}", route.rest, direction.kind, shown(finding));
                    let witness = &finding.witness;
                    prop_assert!(!witness.back.as_ref().is_ok_and(|back| back.same(&witness.sent)));
                }
                let calls = CheckSubject::calls(&table, report.route, direction.from);
                match direction.kind {
                    FindingKind::Request => challenge(&calls, direction, &mut dice)?,
                    FindingKind::Outcome(row) => {
                        let calls = CheckSubject::calls(&table, report.route, Side::Rest);
                        challenge(&CheckSubject::replies(&calls, row, direction.from), direction, &mut dice)?
                    }
                    FindingKind::BuiltIn => 0,
                };
            }
        }
    }
}

#[test]
fn random_tables_have_every_verdict() {
    let mut seen = std::collections::BTreeMap::new();
    let (mut routes, mut tried) = (0, 0);
    for seed in 0..150_u64 {
        let mut state = seed;
        let throws = (0..160).map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as u8
        });
        let mut dice = Dice::new(throws.collect());
        for report in check(&table(&mut dice, 3)) {
            routes += 1;
            for direction in report.directions {
                tried += direction.tried;
                for refusal in &direction.refusals {
                    if let RefusalCause::Value { rule, .. } = &refusal.cause {
                        *seen.entry(rule.as_str()).or_insert(0) += 1;
                    }
                }
                let rules = direction
                    .losses
                    .iter()
                    .chain(&direction.norms)
                    .map(|finding| finding.rule.as_str());
                for rule in rules.chain([direction.verdict().as_str()]) {
                    *seen.entry(rule).or_insert(0) += 1;
                }
            }
        }
    }
    assert!(routes > 200 && tried > 10_000, "{routes} {tried}");
    for verdict in [
        LossVerdict::Lossless,
        LossVerdict::NormalForm,
        LossVerdict::Lossy,
        LossVerdict::Never,
    ] {
        assert!(
            seen.get(verdict.as_str()).is_some_and(|seen| *seen > 5),
            "{verdict:?}: {seen:?}"
        );
    }
    let keys = seen.get(CheckRule::KeyStyle.as_str());
    assert!(keys.is_some_and(|seen| *seen > 5), "{seen:?}");
}

/// Round trips grow linearly with the routes: routes with the same method and path are distinguished by a literal.
#[test]
fn the_cost_of_checking_grows_linearly_with_the_routes() {
    let mut sources = Vec::new();
    for index in 0..200 {
        let text = format!(
            "rest = 'GET /items/k{index}/{{id}}?limit={{limit:integer=50}}'\nrpc = 'tools/call'\n\
             params = {{ name = 'tool{index}', arguments = {{ id = '{{id}}', limit = '{{limit}}' }} }}"
        );
        sources.push(text);
        sources.push(format!(
            "rest = 'PUT /things/{{id}}/t{index}'\nrpc = 'things/{index}'"
        ));
    }
    let read =
        |(index, text): (usize, &String)| route(&text.parse().unwrap(), &format!("r{index}"));
    let tried = |routes: usize| {
        let table = RouteTable::build(sources[..routes].iter().enumerate().map(read).collect());
        let reports = check(&table.unwrap());
        assert_eq!(reports.len(), routes);
        let directions = reports.iter().flat_map(|report| &report.directions);
        directions.map(|direction| direction.tried).sum::<usize>()
    };
    let (half, whole) = (tried(200), tried(400));
    assert!(whole <= half * 21 / 10, "{half} {whole}");
}

#[test]
fn the_docs_have_every_rule() {
    let docs = include_str!("../../../../docs/reference/check.md");
    for rule in CheckRule::ALL {
        let line = format!("| `{}` | ", rule.as_str());
        assert!(
            docs.contains(&line),
            "docs/reference/check.md lacks the line `{line}…`"
        );
    }
}

#[test]
fn an_example_of_an_old_dialect_has_no_result_that_the_gateway_refuses() {
    let more = r#"{"body": { "method": "get", "tag": "{id}" }, "params": {}}"#;
    let old = row(
        0,
        r#"{"status": 200, "body": { "result": "{result:string}", "tag": "{>id}" }}"#,
        r#"{"result": "{result}"}"#,
    );
    let old = RowSource {
        rest: RestReplySource {
            rest_protocol: Wire::Old,
            ..old.rest
        },
        ..old
    };
    let example = Example {
        key: "example[0]".to_owned(),
        way: ExampleWay::From(Side::Rest),
        call: "POST /old".to_owned(),
        headers: Vec::new(),
        body: Some(Json::literal(r#"{"method":"get","tag":7}"#)),
        method: "get".to_owned(),
        params: None,
        rpc_headers: Vec::new(),
        reply: Some(ExampleReply {
            status: 200,
            headers: Vec::new(),
            body: Some(Json::literal("[1]")),
            text: None,
            rpc: Ok(Json::literal("[1]")),
        }),
    };
    let source = RouteSource {
        old: Some(OldSource::default()),
        rows: vec![old],
        examples: vec![example],
        ..route_source("POST /old", "get", more)
    };
    let route = parse_route(source).unwrap();
    let report = check(&RouteTable::build(vec![route]).unwrap()).remove(0);
    let fault = &report.examples.failed[0].what;
    assert!(
        fault.contains("no outcome of the route maps the server's answer"),
        "{fault}"
    );
}
