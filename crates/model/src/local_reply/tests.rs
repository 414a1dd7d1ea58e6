use proptest::prelude::*;

use super::*;

fn rpc(method: &str) -> LocalReply {
    LocalReply::Rpc(RpcLocalReply {
        method: Glob::new(method),
        answer: LocalAnswer::Result(Json::string(method)),
    })
}

fn rest(method: Method, path: &str, status: StatusCode) -> LocalReply {
    LocalReply::Rest(RestLocalReply {
        method,
        path: path.to_owned(),
        status,
        headers: HeaderMap::new(),
        body: Bytes::new(),
    })
}

fn build(methods: &[&str]) -> Result<LocalReplies, Vec<Overlap>> {
    LocalReplies::build(methods.iter().map(|method| rpc(method)).collect())
}

/// The glob that answers a method.
fn found(locals: &LocalReplies, method: &str) -> Option<String> {
    let answer = locals.rpc(method)?.respond(None).unwrap();
    answer.text()?.ok()
}

#[test]
fn a_text_beats_a_glob_and_a_narrower_glob_a_wider_one() {
    let orders = [
        ["a/*", "*", "a/b", "a/b*", "a*b*"],
        ["a*b*", "a/b*", "*", "a/b", "a/*"],
    ];
    let rows = [
        ("a/b", "a/b"),
        ("a/bc", "a/b*"),
        ("a/c", "a/*"),
        ("axb", "a*b*"),
        ("z", "*"),
    ];
    for order in orders {
        // `a/*` and `a*b*` share calls, and neither is narrower: one of them is left out.
        let without = |left_out: &str| {
            let others: Vec<&str> = order.into_iter().filter(|glob| *glob != left_out).collect();
            build(&others).unwrap()
        };
        let (narrow, wide) = (without("a*b*"), without("a/*"));
        for (method, glob) in rows {
            let locals = if glob == "a*b*" { &wide } else { &narrow };
            assert_eq!(found(locals, method).as_deref(), Some(glob), "{method}");
        }
    }
}

#[test]
fn a_method_that_nothing_fits_has_no_answer() {
    let locals = build(&["ping", "notifications/*"]).unwrap();
    assert_eq!(
        found(&locals, "notifications/x").as_deref(),
        Some("notifications/*")
    );
    for method in ["", "Ping", "pings", "notifications", "x/notifications/y"] {
        assert_eq!(found(&locals, method), None, "{method}");
    }
}

#[test]
fn two_that_share_calls_without_one_being_narrower_clash() {
    for (one, other) in [
        ("a", "a"),
        ("a*", "a*"),
        ("a*", "a**"),
        ("a*", "*b"),
        ("a*c", "ab*"),
        ("*a*", "*b*"),
        ("a*b*", "a*c*"),
    ] {
        let overlap = Overlap { local: 1, with: 0 };
        assert_eq!(
            build(&[one, other]).unwrap_err(),
            [overlap],
            "{one} {other}"
        );
        assert_eq!(
            build(&[other, one]).unwrap_err(),
            [overlap],
            "{other} {one}"
        );
    }
    for (one, other) in [
        ("a", "b"),
        ("a*", "b*"),
        ("*a", "*b"),
        ("a*", "*"),
        ("ab*", "a*b*"),
        ("a*", "a"),
    ] {
        assert!(build(&[one, other]).is_ok(), "{one} {other}");
    }
}

#[test]
fn each_clash_names_the_first_that_it_clashes_with() {
    let overlaps = build(&["a", "b", "a", "b*c", "*c", "b*"]).unwrap_err();
    assert_eq!(
        overlaps,
        [Overlap { local: 2, with: 0 }, Overlap { local: 5, with: 4 }]
    );
}

#[test]
fn a_rest_call_is_answered_by_its_method_and_path() {
    let locals = LocalReplies::build(vec![
        rest(Method::GET, "/a/b", StatusCode::OK),
        rest(Method::DELETE, "/a/b", StatusCode::GONE),
        rest(Method::GET, "/", StatusCode::ACCEPTED),
    ])
    .unwrap();
    let status = |method: Method, path: &str| match locals.rest(&method, path) {
        LocalMatch::Answer(local) => Some(local.status.as_u16()),
        LocalMatch::Irregular(_) => Some(0),
        LocalMatch::Nothing => None,
    };
    for (method, path, expected) in [
        (Method::GET, "/a/b", Some(200)),
        (Method::HEAD, "/a/b", Some(200)),
        (Method::GET, "/%61/b", Some(200)),
        (Method::DELETE, "/a/b", Some(410)),
        (Method::GET, "/", Some(202)),
        (Method::PUT, "/a/b", None),
        (Method::GET, "/a", None),
        (Method::GET, "/a/B", None),
        (Method::GET, "/a%2Fb", None),
        (Method::GET, "//a/b", Some(0)),
        (Method::GET, "/a/b/", Some(0)),
        (Method::GET, "/a/./b", Some(0)),
        (Method::GET, "/x/%2e%2e/a/b", Some(0)),
        (Method::PUT, "//a/b", None),
        (Method::GET, "/c//d", None),
    ] {
        assert_eq!(status(method.clone(), path), expected, "{method} {path}");
    }
    assert_eq!(locals.methods("/%61/b"), [Method::GET, Method::DELETE]);
    assert!(locals.methods("/c").is_empty());
}

#[test]
fn the_same_rest_call_twice_clashes() {
    let twice = vec![
        rest(Method::GET, "/a", StatusCode::OK),
        rest(Method::PUT, "/a", StatusCode::OK),
        rpc("GET /a"),
        rest(Method::GET, "/a", StatusCode::GONE),
    ];
    let overlaps = LocalReplies::build(twice).unwrap_err();
    assert_eq!(overlaps, [Overlap { local: 3, with: 0 }]);
}

#[test]
fn a_local_reply_blames_no_upstream() {
    let blamed = |code: i64| {
        blame_of(&ErrorObject {
            code,
            message: Json::string("no"),
            data: None,
        })
    };
    assert_eq!(blamed(-32602), Blame::Client);
    assert_eq!(blamed(1), Blame::Proxy);
    for (status, blame) in [
        (StatusCode::OK, None),
        (StatusCode::FOUND, None),
        (StatusCode::NOT_FOUND, Some(Blame::Client)),
        (StatusCode::SERVICE_UNAVAILABLE, Some(Blame::Proxy)),
    ] {
        let LocalReply::Rest(local) = rest(Method::GET, "/", status) else {
            panic!()
        };
        assert_eq!(local.blame(), blame, "{status}");
    }
}

/// Texts up to six characters, one letter of them in no glob: enough for a witness of what short globs share.
fn texts() -> Vec<String> {
    let mut all = vec![String::new()];
    let mut last = all.clone();
    for _ in 0..6 {
        let longer = |text: &String| ["a", "b", "c"].map(|letter| format!("{text}{letter}"));
        last = last.iter().flat_map(longer).collect();
        all.extend(last.clone());
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn globs_meet_and_lie_within_as_their_texts_do(one in "[ab*]{0,3}", other in "[ab*]{0,3}") {
        let (one, other) = (Glob::new(one), Glob::new(other));
        let texts = texts();
        let both = texts.iter().any(|text| one.fits(text) && other.fits(text));
        prop_assert_eq!(one.meets(&other), both);
        let within = texts.iter().all(|text| !one.fits(text) || other.fits(text));
        prop_assert_eq!(one.is_within(&other), within);
    }
}
