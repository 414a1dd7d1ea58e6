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
