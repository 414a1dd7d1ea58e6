//! Text beside holes in a path segment.

use std::sync::LazyLock;

use proptest::string::{RegexGeneratorStrategy, string_regex};

use super::*;
use crate::route::path_order::{PathOrder, path_order};
use dualgauge_patterns::pattern::arbitrary::{Dice, thrown};

#[test]
fn values_beside_text_are_read_and_written() {
    for (rest, url, members) in [
        ("GET /b/{x}.json", "/b/00ff.json", r#""x":"00ff""#),
        ("GET /b/{x}.json", "/b/a%2Fb%2ejson", r#""x":"a/b""#),
        ("GET /c/{x}...{y}", "/c/v1...v2.0", r#""x":"v1","y":"v2.0""#),
        (
            "GET /o/{x:enum(0|1)}-{y:integer}.json",
            "/o/0-7.json",
            r#""x":"0","y":7"#,
        ),
        ("GET /p/{x}@{y}/z", "/p/a%40b@c/z", r#""x":"a@b","y":"c""#),
        ("GET /p/v{x}:stop", "/p/v7:stop", r#""x":"7""#),
        ("GET /p/{x}:{y}", "/p/a%3Ab:c", r#""x":"a:b","y":"c""#),
        ("GET /p/{x}-/", "/p/a-/", r#""x":"a""#),
    ] {
        let found = read(rest, url);
        assert_eq!(found, Ok(members.to_owned()), "{rest} {url}");
    }
}

#[test]
fn other_text_and_values_of_another_type_are_no_match() {
    for (rest, url, words) in [
        (
            "GET /b/{x:integer}.json",
            "/b/q.json",
            "`x`: `q` is not an integer",
        ),
        ("GET /b/{x}.json", "/b/..json", "refused in a path"),
        ("GET /b/{x}.json", "/b/a%5C.json", "refused in a path"),
        ("GET /b/{x}.json", "/b/%FF.json", "not valid UTF-8"),
        (
            "GET /b/{x}-{x}",
            "/b/a-b",
            "differs from another value of `x`",
        ),
    ] {
        let error = read(rest, url).unwrap_err();
        assert!(error.contains(words), "{rest} {url}: {error}");
    }
}

#[test]
fn a_value_that_would_be_read_as_another_is_not_written() {
    let table = table(&[
        ("GET /c/{base}...{head}", "compare"),
        ("GET /b/{hash}.json", "block"),
    ])
    .unwrap();
    let write = |method: &str, params: &'static str| {
        let params = Json::literal(params);
        let call = MethodCall::new(method, Some(&params));
        let route = table.select_rpc(method, Some(&params)).unwrap();
        let written = table.write_rest(route, call, TERMS);
        written
            .map(|written| written.target)
            .map_err(|error| error.to_string())
    };
    assert_eq!(
        write("compare", r#"{"base":"a/b","head":"c...d"}"#).unwrap(),
        "/c/a%2Fb...c...d"
    );
    let error = write("compare", r#"{"base":"v1.","head":"x"}"#).unwrap_err();
    assert_eq!(
        error,
        "params/base: it contains `...`, the text that ends it here"
    );
    let error = write("compare", r#"{"base":"","head":"x"}"#).unwrap_err();
    assert_eq!(error, "params/base: it must not be empty");
    write("block", r#"{"hash":"a.json"}"#).unwrap_err();
}

const TERMS: TranslateContext = TranslateContext {
    depth: 128,
    now: String::new,
};

#[test]
fn a_literal_precedes_text_with_holes_which_precedes_a_hole() {
    let table = table(&[
        ("GET /b/{x}", "m0"),
        ("GET /b/{x}.json", "m1"),
        ("GET /b/info.json", "m2"),
        ("GET /b/tx-{x}.json", "m3"),
        ("GET /b/{x}.json/{y}", "m4"),
        ("GET /b/{x=**}", "m5"),
        ("GET /b/{x}.json:go", "m6"),
    ])
    .unwrap();
    for (request, route) in [
        ("GET /b/info.json", "r2"),
        ("GET /b/inf%6f.json", "r2"),
        ("GET /b/a.json", "r1"),
        ("HEAD /b/a%2ejson", "r1"),
        ("GET /b/tx-1.json", "r3"),
        ("GET /b/.json", "r0"),
        ("GET /b/a.json.json", "r0"),
        ("GET /b/a.json/c", "r4"),
        ("GET /b/a/c", "r5"),
        ("GET /b/a.json:go", "r6"),
        ("GET /b/a.json:no", "r0"),
    ] {
        assert_eq!(selected(&table, request), route, "{request}");
    }
}

#[test]
fn texts_that_overlap_in_part_are_refused() {
    let errors = table(&[("GET /b/{x}.json", "m"), ("GET /b/tx{x}", "n")]).unwrap_err();
    assert_eq!(
        errors,
        [
            "shares paths such as `/b/tx.json` with the route `r0`, and neither is more specific: order them by `after`, change the text beside a hole, set `from = \"rest\"` or `from = \"rpc\"` on one of them, or remove one"
        ]
    );
    // Another segment, method or side tells them apart.
    table(&[("GET /b/{x}.json/c", "m"), ("GET /b/tx{x}/d", "n")]).unwrap();
    table(&[("GET /b/{x}.json", "m"), ("PUT /b/tx{x}", "n")]).unwrap();
    table(&[("GET /b/{x}.json", "m"), ("GET /b/{x}.hex", "n")]).unwrap();
}

fn path(dice: &mut Dice) -> String {
    let mut path = String::new();
    for at in 0..1 + dice.below(3) {
        path.push('/');
        let name = ["x", "y", "z"][at];
        match dice.below(7) {
            0 => path.push_str(dice.pick(&["a", "b"])),
            1 | 2 => path.push_str(&format!("{{{name}}}")),
            3 => path.push_str(&format!("{{{name}}}b")),
            4 => path.push_str(&format!("a{{{name}}}")),
            5 => path.push_str(&format!("a{{{name}}}b")),
            _ => {
                path.push_str(&format!("{{{name}=**}}"));
                break;
            }
        }
    }
    match path.ends_with('}') && path.contains("**") {
        true => path,
        false => path + dice.pick(&["", "", "", ":v"]),
    }
}

/// Returns paths of requests. The expression is parsed once, which takes longer than the rest of a case.
fn paths() -> impl Strategy<Value = Vec<String>> {
    static PATH: LazyLock<RegexGeneratorStrategy<String>> =
        LazyLock::new(|| string_regex("(/(a|b|ab|aab|abb|cb|ac)){1,4}(:v)?").unwrap());
    proptest::collection::vec(&*PATH, 12)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn the_order_of_two_paths_is_that_of_the_lookup(
        mut dice in thrown(20..60),
        paths in paths(),
    ) {
        let spelled = [path(&mut dice), path(&mut dice)];
        let routes: Vec<Route> = spelled.iter().enumerate().map(|(index, path)| {
            let rpc = format!("m{index}");
            parse_route(source(&format!("r{index}"), &format!("GET {path}"), &rpc)).unwrap()
        }).collect();
        let templates = [&routes[0].rest_call.path.clone(), &routes[1].rest_call.path.clone()];
        let order = path_order(templates[0], templates[1]);
        let reversed = path_order(templates[1], templates[0]);
        let expected = match order {
            PathOrder::First => PathOrder::Second,
            PathOrder::Second => PathOrder::First,
            PathOrder::Apart | PathOrder::Same | PathOrder::Undecided => order,
        };
        prop_assert_eq!(reversed, expected);
        let Ok(table) = RouteTable::build(routes) else {
            prop_assert!(matches!(order, PathOrder::Same | PathOrder::Undecided), "{:?} {:?}", spelled, order);
            return Ok(());
        };
        for path in paths {
            let segments = Segments::split(&path);
            // A hole of several segments is never empty.
            let is_short = |template: &Template| {
                template.segments.last() == Some(&SegmentPattern::Rest)
                    && segments.iter().count() < template.segments.len()
            };
            if templates.iter().any(|template| is_short(template)) {
                continue;
            }
            let fits = templates.map(|template| template.fits(&segments));
            let found = selected(&table, &format!("GET {path}"));
            match (fits, order) {
                ([true, true], PathOrder::First) => prop_assert_eq!(found, "r0", "{} {:?}", path, spelled),
                ([true, true], PathOrder::Second) => prop_assert_eq!(found, "r1", "{} {:?}", path, spelled),
                ([true, true], order) => prop_assert_eq!(order, PathOrder::Same, "{} {:?}", path, spelled),
                ([true, false], _) => prop_assert_eq!(found, "r0", "{} {:?}", path, spelled),
                ([false, true], _) => prop_assert_eq!(found, "r1", "{} {:?}", path, spelled),
                ([false, false], _) => prop_assert!(!found.starts_with('r'), "{} {:?}", path, spelled),
            }
        }
    }
}
