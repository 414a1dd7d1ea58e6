use proptest::prelude::*;

use super::*;
use crate::compare::RunEnding;

fn called(at_ms: u64) -> CallInfo {
    CallInfo {
        at_ms,
        client: Arc::from("ios-app"),
        side: Side::Rest,
        stage: Stage::Passthrough,
        call: Arc::from("GET /items/{id}"),
    }
}

fn difference(field: &str) -> Difference {
    Difference {
        pointer: field.replace('*', "0"),
        field: field.to_owned(),
        kind: Kind::Value,
        control: RedactedValue::restore("1"),
        candidate: RedactedValue::restore("2"),
        times: 1,
    }
}

fn failed(at_ms: u64) -> FailedCandidate {
    let cause = "x".repeat(1000);
    FailedCandidate::new(
        called(at_ms),
        RunEnding::Status(404),
        RunEnding::Status(500),
        Some("upstream_timeout"),
        Some(&cause),
    )
}

fn kept(calls: &[(&str, &str, u64)]) -> Mismatches {
    let mut mismatches = Mismatches::default();
    for (route, field, at_ms) in calls {
        mismatches.keep(&Arc::from(*route), &called(*at_ms), [&difference(field)]);
    }
    mismatches
}

fn times(field: &Field) -> Vec<u64> {
    field.samples().map(|sample| sample.called.at_ms).collect()
}

#[test]
fn the_last_samples_of_a_field_are_stored_and_all_are_counted() {
    let calls: Vec<_> = (1..=9).map(|at| ("items", "/body/*/a", at)).collect();
    let mismatches = kept(&calls);
    let (name, field) = mismatches.fields("items").next().unwrap();
    assert_eq!((name, field.tally().count), ("/body/*/a", 9));
    assert_eq!(times(field), [9, 8, 7, 6, 5]);
    assert_eq!(field.samples().next().unwrap().pointer, "/body/0/a");
    assert_eq!(mismatches.routes().collect::<Vec<_>>(), ["items"]);
    assert_eq!(mismatches.fields("others").count(), 0);
}

#[test]
fn the_time_of_the_last_call_is_known_without_its_sample() {
    let mut mismatches = kept(&[("r", "/body", 7), ("r", "/body", 3)]);
    let last = |mismatches: &Mismatches| mismatches.fields("r").next().unwrap().1.tally();
    assert_eq!(
        last(&mismatches),
        Tally {
            count: 2,
            last_ms: 7
        }
    );
    mismatches.merge(&kept(&[("r", "/body", 9)]));
    assert_eq!(
        last(&mismatches),
        Tally {
            count: 3,
            last_ms: 9
        }
    );
    for field in 0..FIELDS {
        let difference = difference(&format!("/body/{field}"));
        mismatches.keep(&Arc::from("r"), &called(11), [&difference]);
    }
    assert_eq!(
        mismatches.more_of("r"),
        Tally {
            count: 1,
            last_ms: 11
        }
    );
}

#[test]
fn a_call_counts_once_for_a_field_that_differs_in_two_ways() {
    let mut mismatches = Mismatches::default();
    let mut other = difference("/body/a");
    other.kind = Kind::Missing;
    mismatches.keep(
        &Arc::from("r"),
        &called(1),
        [&difference("/body/a"), &other],
    );
    let (_, field) = mismatches.fields("r").next().unwrap();
    assert_eq!((field.tally().count, field.samples().count()), (1, 2));
}

#[test]
fn every_direction_has_a_bound() {
    let mut mismatches = Mismatches::default();
    for route in 0..ROUTES + 3 {
        let route: Arc<str> = Arc::from(format!("r{route:05}"));
        let fields = if &*route == "r00000" { FIELDS + 2 } else { 2 };
        for field in 0..fields {
            for at in 0..SAMPLES + 1 {
                let difference = difference(&format!("/body/{field}"));
                mismatches.keep(&route, &called(at as u64), [&difference]);
            }
        }
    }
    assert_eq!(mismatches.routes().count(), ROUTES);
    assert_eq!(mismatches.more().count, 3 * 2 * (SAMPLES as u64 + 1));
    assert_eq!(mismatches.fields("r00000").count(), FIELDS);
    assert_eq!(mismatches.more_of("r00000").count, 2 * (SAMPLES as u64 + 1));
    let all = mismatches
        .routes()
        .flat_map(|route| mismatches.fields(route));
    assert_eq!(
        all.map(|(_, field)| field.samples().count()).sum::<usize>(),
        ALL_SAMPLES
    );
    let last = mismatches.fields("r01023").next().unwrap().1;
    assert_eq!(
        (last.tally().count, last.samples().count()),
        (SAMPLES as u64 + 1, 0),
        "counted all the same"
    );
}

#[test]
fn a_copy_of_the_tallies_has_all_counts_and_no_sample() {
    let mut mismatches = kept(&[
        ("r", "/body/a", 7),
        ("r", "/body/a", 9),
        ("s", "/body/b", 3),
    ]);
    mismatches.keep_failed(&Arc::from("r"), failed(5));
    let tallies = mismatches.copy(MismatchDetail::Tallies);
    assert!(tallies.routes().eq(mismatches.routes()));
    for route in mismatches.routes() {
        let counted = |all: &Mismatches| -> Vec<(String, Tally)> {
            let fields = all.fields(route);
            fields
                .map(|(name, field)| (name.to_owned(), field.tally()))
                .collect()
        };
        assert_eq!(counted(&tallies), counted(&mismatches));
        let failed = |all: &Mismatches| all.failed(route).map(Recent::tally);
        assert_eq!(failed(&tallies), failed(&mismatches));
        assert!(
            tallies
                .fields(route)
                .all(|(_, field)| field.samples().count() == 0)
        );
    }
    assert_eq!(mismatches.copy(MismatchDetail::Samples), mismatches);
    let mut merged = tallies.clone();
    merged.merge(&tallies);
    assert_eq!(merged.fields("r").next().unwrap().1.tally().count, 4);
}

#[test]
fn a_forgotten_route_frees_capacity() {
    let mut mismatches = kept(&[("a", "/body", 1), ("b", "/body", 2)]);
    let forgotten = mismatches.forget(|route| route == "a", 5);
    assert_eq!(forgotten, [Arc::from("a")]);
    let mut left = mismatches.clone();
    left.forgotten.clear();
    assert_eq!(left, kept(&[("b", "/body", 2)]));
    assert!(mismatches.forget(|route| route == "a", 6).is_empty());
}

#[test]
fn a_forgotten_difference_is_counted_over_all_workers() {
    let (mut one, mut other) = (kept(&[("a", "/body", 1)]), kept(&[("a", "/body", 2)]));
    other.keep_failed(&Arc::from("a"), failed(3));
    one.forget(|_| true, 10);
    other.forget(|_| true, 11);
    let mut both = one.clone();
    both.merge(&other);
    let (mut all, tally) = (both.clone(), |count, last_ms| Tally { count, last_ms });
    let forgotten: Vec<_> = both.forgotten().collect();
    let difference = |tally, at_ms| ForgottenDifference { tally, at_ms };
    assert_eq!(
        forgotten,
        [
            ("a", None, difference(tally(1, 3), 11)),
            ("a", Some("/body"), difference(tally(2, 2), 11)),
        ]
    );
    // It does not come back by itself, and the number of them is limited.
    for route in 0..FORGOTTEN {
        let route = format!("r{route}");
        all.merge(&kept(&[(&route, "/body", 1)]));
        all.forget(|_| true, 12);
    }
    assert_eq!(all.forgotten().count(), FORGOTTEN);
    assert!(all.forgotten().all(|(route, _, _)| route != "a"));
}

#[test]
fn the_last_failed_candidates_of_a_route_are_stored_with_short_causes() {
    let (mut one, mut other) = (Mismatches::default(), Mismatches::default());
    let (a, b): (Arc<str>, Arc<str>) = (Arc::from("a"), Arc::from("b"));
    for at in 1..=9 {
        let worker = if at % 2 == 0 { &mut one } else { &mut other };
        worker.keep_failed(&a, failed(at));
    }
    other.keep(&b, &called(1), [&difference("/body")]);
    one.merge(&other);
    let of_a = one.failed("a").unwrap();
    let times: Vec<_> = of_a.samples().map(|one| one.called.at_ms).collect();
    assert_eq!((of_a.tally().count, times), (9, vec![9, 8, 7, 6, 5]));
    assert_eq!(of_a.samples().next().unwrap().cause().unwrap().len(), 300);
    assert!(one.failed("b").is_none());
    assert_eq!(one.fields("a").count(), 0);
    for route in 0..ROUTES {
        one.keep_failed(&Arc::from(format!("r{route}")), failed(1));
    }
    assert_eq!((one.routes().count(), one.more().count), (ROUTES, 2));
    one.forget(|route| route == "a", 1);
    assert!(one.failed("a").is_none());
    one.forget(|_| true, 2);
    one.forgotten.clear();
    assert_eq!(one, Mismatches::default(), "and what had no room");
}

proptest! {
    #[test]
    fn workers_add_up(calls in prop::collection::vec((0_usize..3, 0_usize..2, 0_usize..3, 0_u64..50), 0..60)) {
        let (routes, fields) = (["a", "b"], ["/body/x", "/body/*/y", "/status"]);
        let of = |worker: Option<usize>| {
            let own = calls.iter().filter(|call| worker.is_none_or(|worker| worker == call.0));
            kept(&own.map(|call| (routes[call.1], fields[call.2], call.3)).collect::<Vec<_>>())
        };
        let workers = [of(Some(0)), of(Some(1)), of(Some(2))];
        let (mut there, mut back) = (Mismatches::default(), Mismatches::default());
        workers.iter().for_each(|worker| there.merge(worker));
        workers.iter().rev().for_each(|worker| back.merge(worker));
        prop_assert_eq!(&there, &of(None));
        prop_assert_eq!(&back, &of(None));
    }
}
