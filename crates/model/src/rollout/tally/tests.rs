use std::time::Duration;

use proptest::prelude::*;

use super::*;

fn calls() -> impl Strategy<Value = Vec<(Way, CallEnd, u64)>> {
    let arm = prop_oneof![Just(Way::New), Just(Way::Old)];
    let outcome = prop_oneof![
        Just(CallEnd::Served),
        Just(CallEnd::Refused),
        Just(CallEnd::Failed),
        Just(CallEnd::ToolError),
        Just(CallEnd::ToolUnknown),
    ];
    prop::collection::vec((arm, outcome, 0u64..100_000), 0..60)
}

fn tally(calls: &[(Way, CallEnd, u64)]) -> Tally {
    let mut tally = Tally::default();
    for (arm, outcome, millis) in calls {
        tally.count(*arm, *outcome, Duration::from_millis(*millis));
    }
    tally
}

#[test]
fn the_text_of_a_tally_is_a_format_between_replicas() {
    let mut tally = tally(&[
        (Way::New, CallEnd::Served, 12),
        (Way::New, CallEnd::Failed, 30_000),
        (Way::Old, CallEnd::Refused, 1),
    ]);
    tally.count_match();
    tally.count_mismatch();
    assert_eq!(
        serde_json::to_string(&tally).unwrap(),
        r#"{"new":{"calls":2,"refused":0,"failed":1,"tool_known":2,"latency":[[18,1]]},"old":{"calls":1,"refused":1,"failed":0,"tool_known":1,"latency":[]},"compared":2,"mismatched":1}"#
    );
}

#[test]
fn a_bucket_that_there_is_not_is_refused() {
    let text = r#"{"calls":1,"refused":0,"failed":0,"latency":[[200,1]]}"#;
    let error = serde_json::from_str::<WayTally>(text).unwrap_err();
    assert!(error.to_string().starts_with("there is no bucket 200"));
}

proptest! {
    #[test]
    fn it_does_not_matter_which_worker_counted(calls in calls(), split in 0usize..60) {
        let (first, second) = calls.split_at(split.min(calls.len()));
        let mut sum = tally(second);
        sum.add(&tally(first));
        prop_assert_eq!(sum, tally(&calls));
    }

    #[test]
    fn the_difference_of_two_tallies_is_what_was_counted_between(before in calls(), after in calls()) {
        let earlier = tally(&before);
        let mut later = earlier.clone();
        later.add(&tally(&after));
        prop_assert_eq!(later.since(&earlier), tally(&after));
        prop_assert!(!later.fell_below(&earlier));
        prop_assert_eq!(earlier.since(&later), Tally::default());
    }
}
