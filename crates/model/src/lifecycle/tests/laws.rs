//! What holds of any counts.

use proptest::prelude::*;

use super::*;
use crate::mcp::{CallEra, ClientInfo};

prop_compose! {
    fn any_usage()(
        calls in prop::collection::vec((0..3_usize, 0..3_usize, 0..2_usize, 0..3_usize, 0..40 * DAY), 0..6),
        unrouted in prop::collection::vec((0..3_usize, 0..40 * DAY), 0..3),
        watches in prop::collection::vec((0..3_usize, 0..60 * DAY, 0..60 * DAY), 0..5),
        eras in prop::collection::vec((0..3_usize, 0..2_usize, 0..3_usize, 0..40 * DAY), 0..6),
        since in 0..60 * DAY,
    ) -> Usage {
        let mut usage = Usage::default();
        for (route, client, side, way, at) in calls {
            let way = [Some(Way::Old), Some(Way::New), None][way];
            let name = ["items.read", "all", "tree"][route];
            usage.note(name, ["known", "other", "new"][client], Side::ALL[side], &seen(way, ago(at)));
        }
        for (client, era, program, at) in eras {
            let client = ["known", "other", "new"][client];
            let words = [("handshake", "unnamed"), ("stateless", "2026-07-28")][era];
            let era = CallEra::from_words(words.0, words.1).unwrap();
            usage.eras_mut().note(client, era, &seen(None, ago(at)).all());
            let info = ClientInfo::new(["a", "b", "c"][program], "1").unwrap();
            usage.eras_mut().note_name(client, era, &info, ago(at));
        }
        for (prefix, at) in unrouted {
            usage.note_unrouted(["/", "/api/items", "/x"][prefix], &seen(None, ago(at)).all());
        }
        for (replica, from, until) in watches {
            usage.note_observed(["one", "two", "three"][replica], ago(from.max(until)), ago(from.min(until)));
        }
        usage.note_routes(plan(Side::Rest).routes.routes(), ago(since));
        usage
    }
}

fn merged(one: &Usage, other: &Usage) -> Usage {
    let mut sum = one.clone();
    sum.merge(other);
    sum
}

proptest! {
    #[test]
    fn counts_merge_in_any_order(one in any_usage(), two in any_usage(), three in any_usage()) {
        prop_assert_eq!(merged(&one, &two), merged(&two, &one));
        prop_assert_eq!(merged(&merged(&one, &two), &three), merged(&one, &merged(&two, &three)));
        prop_assert_eq!(merged(&one, &Usage::default()), one);
    }

    #[test]
    fn merging_a_record_with_itself_keeps_its_times(one in any_usage()) {
        let twice = merged(&one, &one);
        prop_assert_eq!(twice.observation(), one.observation());
        for (of_twice, of_one) in twice.callers("items.read").zip(one.callers("items.read")) {
            prop_assert_eq!(of_twice.2.all().last, of_one.2.all().last);
            prop_assert_eq!(of_twice.2.all().calls, of_one.2.all().calls * 2);
        }
    }

    #[test]
    fn a_written_record_is_read_back(one in any_usage()) {
        prop_assert_eq!(Usage::from_json(&one.to_json()).unwrap(), one);
    }

    #[test]
    fn a_route_with_calls_or_without_counts_is_never_safe(
        one in any_usage(),
        side in prop::sample::select(Side::ALL.to_vec()),
    ) {
        let plan = plan(side);
        let (verdict, _) = judged(&plan, &one);
        let horizon = ago(30 * DAY);
        let called = one.callers("items.read").any(|(_, of, seen)| {
            let counts = if of == side { seen.all() } else { seen.new };
            counts.last.is_some_and(|last| last >= horizon)
        });
        let strayed = side == Side::Rest && one.under("/api/items").last.is_some_and(|last| last >= horizon);
        let unwatched = one.observation().unbroken_since(now()).is_none_or(|since| since > horizon);
        let gap = !one.observation().gaps_since(horizon).is_empty();
        if called || strayed || unwatched || gap {
            prop_assert_ne!(verdict, DeletionVerdict::Safe);
        }
    }

    #[test]
    fn one_call_more_makes_no_route_safer(one in any_usage(), at in 0..40 * DAY) {
        let plan = plan(Side::Rest);
        let before = judged(&plan, &one).0;
        let mut more = one;
        more.note("items.read", "known", Side::Rest, &seen(Some(Way::Old), ago(at)));
        let after = judged(&plan, &more).0;
        prop_assert!(before == after || after == DeletionVerdict::NotYet);
    }
}
