//! The cost of comparing large patterns.

use super::*;

#[test]
fn large_patterns_cost_no_more_than_their_size() {
    let members: Vec<String> = (0..30)
        .map(|index| format!(r#""m{index}": "a{{x{index}}}b{{y{index}?}}""#))
        .collect();
    let wide = spelled(&format!(
        "{{{}}}",
        members.join(",").replace("b{", "b {").replace("?}", "}")
    ));
    assert!(
        within(&wide, &wide, MemberPolicy::Closed)
            && intersection(&wide, &wide, MemberPolicy::Open).is_some()
    );
    let parts: Vec<String> = (0..20)
        .map(|index| format!("aaaaaaaab{{x{index}}}"))
        .collect();
    let text = spelled(&format!("\"{}\"", parts.concat()));
    let other = spelled(&format!("\"{}\"", parts.concat().replace("b{", "bb{")));
    for policy in WORLDS {
        assert!(within(&text, &text, policy) && !within(&text, &other, policy));
        assert!(within(&other, &text, policy) && intersection(&text, &other, policy).is_some());
    }
    // Many holes, each of them twice, none of which can be equal in both places.
    let holes = |range: std::ops::Range<usize>, name: &str| {
        let members = range.map(|index| format!(r#""{name}{index}": "{{x{index}}}""#));
        members.collect::<Vec<_>>().join(",")
    };
    let twice = spelled(&format!("{{{},{}}}", holes(0..15, "p"), holes(0..15, "q")));
    let numbers = |name: &str, add: usize| {
        let members = (0..15).map(|index| format!(r#""{name}{index}": {}"#, index + add));
        members.collect::<Vec<_>>().join(",")
    };
    let apart = spelled(&format!("{{{},{}}}", numbers("p", 0), numbers("q", 1)));
    let equal = spelled(&format!("{{{},{}}}", numbers("p", 0), numbers("q", 0)));
    assert_eq!(intersection(&twice, &apart, MemberPolicy::Open), None);
    assert!(intersection(&twice, &equal, MemberPolicy::Open).is_some());
    assert!(
        within(&equal, &twice, MemberPolicy::Open) && !within(&apart, &twice, MemberPolicy::Open)
    );
}

/// Returns sets of alternatives as members: each alternative is `item` with the number of the set in place of `@`, and
/// its own in place of `#`.
fn sets(sets: std::ops::Range<usize>, alternatives: usize, item: &str) -> String {
    let members = sets.map(|set| {
        let items = (0..alternatives).map(|at| item.replace('#', &at.to_string()));
        let items = items.collect::<Vec<_>>().join(",");
        format!(
            r#""m{set}": ["{{|}}", {}]"#,
            items.replace('@', &set.to_string())
        )
    });
    members.collect::<Vec<_>>().join(",")
}

#[test]
fn many_alternatives_cost_no_more_than_their_size() {
    // A literal distinguishes the patterns, however many alternatives are beside it.
    let same = sets(0..4, 8, r#"{"k": "c#", "v": "{v@}"}"#);
    let one = spelled(&format!(
        "{{{same},{}}}",
        sets(4..5, 8, r#"{"k": "p#", "v": "{v@}"}"#)
    ));
    let other = spelled(&format!(
        "{{{same},{}}}",
        sets(4..5, 8, r#"{"k": "q#", "v": "{v@}"}"#)
    ));
    for policy in WORLDS {
        assert!(!may_intersect(&one, &other, policy));
        assert!(may_intersect(&one, &one, policy) && within(&one, &one, policy));
    }
    // Only values of repeated holes distinguish these, and there are too many to try them all.
    let twice = sets(
        0..4,
        8,
        r#"{"k": "c#", "a": "{v@}", "b": "{v@}", "h": "{h@}"}"#,
    );
    let apart = sets(0..4, 8, r#"{"k": "c#", "a": 1, "b": 2, "h": "{h@}"}"#);
    let (twice, apart) = (
        spelled(&format!("{{{twice}}}")),
        spelled(&format!("{{{apart}}}")),
    );
    assert_eq!(intersection(&twice, &apart, MemberPolicy::Open), None);
    assert!(may_intersect(&twice, &apart, MemberPolicy::Open));
}
