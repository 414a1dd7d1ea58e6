//! Tool errors, and calls of which it is not known whether they got one.

use super::*;

/// One second of 10 calls of each way, with so many tool errors of the new way and refusals of the old.
fn tool_errors(new: u64, refused: u64) -> Tally {
    let mut arm = arm((10 - new, 0, 0));
    for _ in 0..new {
        arm.count(CallEnd::ToolError, Duration::from_millis(40));
    }
    Tally {
        new: arm,
        ..Second {
            new: (0, 0, 0),
            old: (10, 0, refused),
        }
        .tally()
    }
}

#[test]
fn tool_errors_have_a_separate_limit() {
    for (new, pace) in [(3, Trigger::Slow), (10, Trigger::Fast)] {
        let mut scene = Scene::new(Guard::default());
        scene.run(60, FINE);
        let rulings = (0..300).map(|_| scene.add(&tool_errors(new, 0)));
        let trip = trip(rulings.last().unwrap());
        assert_eq!((trip.breach.limit(), trip.pace), (Limit::ToolErrors, pace));
        let words = trip.to_string();
        assert!(words.contains("tool error rate "), "{words}");
    }
    let off = Limits {
        tool_error_delta: None,
        ..Limits::default()
    };
    let mut scene = Scene::new(Guard {
        limits: off,
        ..Guard::default()
    });
    let rulings = (0..300).map(|_| scene.add(&tool_errors(10, 0)));
    assert_eq!(rulings.last().unwrap(), GuardDecision::Content);
}

#[test]
fn tool_errors_that_the_old_way_reports_as_refusals_trip_nothing() {
    for share in [1, 3, 10] {
        let mut scene = Scene::new(Guard::default());
        let rulings = (0..300).map(|_| scene.add(&tool_errors(share, share)));
        let ruling = rulings.last().unwrap();
        assert!(
            !matches!(ruling, GuardDecision::Trip(_)),
            "{share}: {ruling}"
        );
    }
}

#[test]
fn failures_and_refusals_that_the_old_way_reports_as_tool_errors_trip_nothing() {
    for share in [1, 3, 10] {
        for (failed, refused) in [(share, 0), (0, share)] {
            let mut scene = Scene::new(Guard::default());
            let second = Tally {
                new: arm((10, failed, refused)),
                old: tool_errors(share, 0).new,
                ..Tally::default()
            };
            let rulings = (0..300).map(|_| scene.add(&second));
            let ruling = rulings.last().unwrap();
            assert!(
                !matches!(ruling, GuardDecision::Trip(_)),
                "{share}: {ruling}"
            );
            // Neither does a refusal that the old way tells as a failure.
            let mut scene = Scene::new(Guard::default());
            let second = Tally {
                new: arm((10, 0, share)),
                old: arm((10, share, 0)),
                ..Tally::default()
            };
            let rulings = (0..300).map(|_| scene.add(&second));
            let ruling = rulings.last().unwrap();
            assert!(
                !matches!(ruling, GuardDecision::Trip(_)),
                "{share}: {ruling}"
            );
            // Beside tool errors of both ways they do.
            let mut scene = Scene::new(Guard::default());
            let mut second = tool_errors(2, 0);
            second.old = second.new.clone();
            second.new.add(&arm((share, failed, refused)));
            let rulings = (0..300).map(|_| scene.add(&second));
            let ruling = rulings.last().unwrap();
            assert!(
                matches!(ruling, GuardDecision::Trip(_)),
                "{share}: {ruling}"
            );
        }
    }
}

#[test]
fn a_watch_that_was_written_with_fewer_limits_is_read() {
    let mut scene = Scene::new(Guard::default());
    scene.run(70, FINE);
    let now = serde_json::to_string(&scene.watch).unwrap();
    let before = now.replace(r#""suspicion":[0,0,0,0,0]"#, r#""suspicion":[0,0,0,0]"#);
    let mut before: serde_json::Value = serde_json::from_str(&before).unwrap();
    without_tools(&mut before);
    assert!(!before.to_string().contains("tool_"), "{before}");
    let read: GuardState = serde_json::from_value(before.clone()).unwrap();
    let mut again = serde_json::to_value(&read).unwrap();
    without_tools(&mut again);
    before["suspicion"] = again["suspicion"].clone();
    assert_eq!(again, before);
    // The watch goes on, and takes nothing that it has read for a call without a tool error.
    scene.watch = read;
    scene.sums = Tally::default();
    let rulings = (0..40).map(|_| scene.add(&unknown(10, 3)));
    let ruling = rulings.last().unwrap();
    let few = Inconclusive::FewKnown { calls: 0, of: 100 };
    assert_eq!(ruling, GuardDecision::Inconclusive(few));
}

/// Removes what an earlier version did not write.
fn without_tools(value: &mut serde_json::Value) {
    if let Some(object) = value.as_object_mut() {
        object.retain(|name, _| !name.starts_with("tool_"));
        object.values_mut().for_each(without_tools);
    } else if let Some(array) = value.as_array_mut() {
        array.iter_mut().for_each(without_tools);
    }
}

/// One second of 10 calls of each way, with so many tool errors of the new way. Of so many calls of the old way it is
/// not known whether they got one; the others did, in the same share as on the new way.
fn unknown(unread: u64, failing: u64) -> Tally {
    let mut old = WayTally::default();
    for call in 0..10 {
        let outcome = match call {
            _ if call < unread => CallEnd::ToolUnknown,
            _ if (call - unread) * 10 < failing * (10 - unread) => CallEnd::ToolError,
            _ => CallEnd::Served,
        };
        old.count(outcome, Duration::from_millis(40));
    }
    Tally {
        old,
        ..tool_errors(failing, 0)
    }
}

#[test]
fn calls_whose_tool_errors_are_unknown_are_no_calls_without_one() {
    let last = |unread, failing| {
        let mut scene = Scene::new(Guard::default());
        let rulings = (0..300).map(|_| scene.add(&unknown(unread, failing)));
        rulings.last().unwrap()
    };
    let few = Inconclusive::FewKnown { calls: 0, of: 100 };
    for failing in [3, 5, 10] {
        let ruling = last(10, failing);
        assert_eq!(ruling, GuardDecision::Inconclusive(few), "{failing}");
    }
    // No tool errors of the new way, or enough calls of the old way that tell of theirs.
    assert_eq!(last(10, 0), GuardDecision::Content);
    assert_eq!(last(5, 4), GuardDecision::Content);
    // Without a limit of tool errors it does not matter.
    let mut scene = Scene::new(Guard {
        limits: Limits {
            tool_error_delta: None,
            ..Limits::default()
        },
        ..Guard::default()
    });
    let rulings = (0..300).map(|_| scene.add(&unknown(10, 5)));
    assert_eq!(rulings.last().unwrap(), GuardDecision::Content);
}

#[test]
fn tool_errors_trip_by_the_calls_that_report_them() {
    let mut scene = Scene::new(Guard::default());
    let second = Tally {
        old: unknown(5, 0).old,
        ..unknown(5, 3)
    };
    let rulings = (0..300).map(|_| scene.add(&second));
    let trip = trip(rulings.last().unwrap());
    assert_eq!(trip.breach.limit(), Limit::ToolErrors);
}
