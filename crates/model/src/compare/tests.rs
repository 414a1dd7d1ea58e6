//! Results of comparing two responses, case by case; the laws are in `laws`.

use bytes::Bytes;

use super::*;
use dualgauge_patterns::json::{Json, JsonIndex};

mod laws;
mod parts;
mod spelled;

const TERMS: Terms = Terms {
    depth: 128,
    salt: Salt([3; 16]),
};

fn json(text: &str) -> Json {
    Json::parse(Bytes::copy_from_slice(text.as_bytes()), 512).unwrap()
}

/// Rules, one a line: `ignore /body/a`, `unordered /body/b`, `near /body/c 0.1`, `header x`, `show`.
fn rules(lines: &[&str]) -> Rules {
    let mut source = RuleSource::default();
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        let path = || Path::parse(words[1]).unwrap();
        match words[0] {
            "ignore" => source.ignore.push(path()),
            "unordered" => source.unordered.push(path()),
            "near" => source
                .tolerance
                .push((path(), Tolerance::parse(words[2]).unwrap())),
            "header" => source.headers.push(words[1].parse().unwrap()),
            "show" => source.show = Show::Values,
            other => panic!("{other}"),
        }
    }
    Rules::compile(source)
}

fn results(control: &str, candidate: &str, lines: &[&str]) -> Comparison {
    let (control, candidate) = (json(control), json(candidate));
    compare(
        &ComparedResponse::Result(&control),
        &ComparedResponse::Result(&candidate),
        &rules(lines),
        &TERMS,
    )
}

/// Renders the differences as `kind pointer`, followed by the other counts.
fn rendered(found: &Comparison) -> Vec<String> {
    let differences = found.differences.iter();
    let mut lines: Vec<_> = differences
        .map(|one| format!("{} {}", one.kind.as_str(), one.pointer))
        .collect();
    for (count, what) in [
        (found.more, "more"),
        (found.ignored, "ignored"),
        (found.fallen_back, "fallen back"),
    ] {
        if count > 0 {
            lines.push(format!("{count} {what}"));
        }
    }
    lines
}

/// Renders the differences of two results as one line.
fn differ(control: &str, candidate: &str, lines: &[&str]) -> String {
    rendered(&results(control, candidate, lines)).join(", ")
}

#[test]
fn spelling_makes_no_difference() {
    for (one, other) in [
        (
            "{\"a\":1,\"b\":[true,null]}",
            " { \"b\" : [ true , null ],\n\"a\" : 1.0 } ",
        ),
        ("\"K\\u00e4se\\/\"", "\"Käse/\""),
        ("[1e2,-0,0.10]", "[100,0,1e-1]"),
        (
            "123456789012345678901234567890",
            "123456789012345678901234567890.0",
        ),
        ("{\"\\u0061\":1,\"a\":2}", "{\"a\":1,\"a\":2}"),
    ] {
        assert_eq!(differ(one, other, &[]), "", "{one} {other}");
    }
}

#[test]
fn each_difference_has_a_kind_and_a_pointer() {
    for (one, other, expected) in [
        ("1", "2", "value /result"),
        (
            "123456789012345678901234567890",
            "123456789012345678901234567891",
            "value /result",
        ),
        ("{\"a\":1}", "{}", "missing /result/a"),
        ("{}", "{\"a\":null}", "extra /result/a"),
        (
            "{\"a\":{\"b\":1}}",
            "{\"a\":{\"b\":\"1\"}}",
            "type /result/a/b",
        ),
        ("{\"a\":true}", "{\"a\":false}", "value /result/a"),
        ("{\"a\":null}", "{\"a\":{}}", "type /result/a"),
        ("[[1],2]", "[[3],2]", "value /result/0/0"),
        ("[1,2,3]", "[1,2]", "length /result"),
        ("[1,2,3]", "[3,1,2]", "order /result"),
        ("[1,2,3]", "[3,1,4]", "value /result/0"),
        (
            "{\"a/b\":{\"~\":1}}",
            "{\"a/b\":{\"~\":2}}",
            "value /result/a~1b/~0",
        ),
        ("{\"a\":1,\"a\":2}", "{\"a\":2,\"a\":1}", "value /result/a"),
        ("{\"a\":1,\"a\":2}", "{\"a\":1}", "missing /result/a"),
        ("\"\\ud800\"", "\"\\ud801\"", "value /result"),
        ("1e400", "1e401", "value /result"),
    ] {
        assert_eq!(differ(one, other, &[]), expected, "{one} {other}");
    }
}

#[test]
fn a_field_is_reported_once_with_its_count() {
    let list = |from: usize| {
        let items: Vec<_> = (from..from + 100)
            .map(|n| format!("{{\"at\":{n},\"x\":1}}"))
            .collect();
        format!("[{}]", items.join(","))
    };
    let found = results(&list(0), &list(1000), &[]);
    assert_eq!(rendered(&found), ["value /result/0/at"]);
    assert_eq!(found.differences[0].field, "/result/*/at");
    assert_eq!(found.differences[0].times, 100);
    let object = |value: usize| {
        let members: Vec<_> = (0..100).map(|n| format!("\"m{n:03}\":{value}")).collect();
        format!("{{{}}}", members.join(","))
    };
    let found = results(&object(1), &object(2), &[]);
    assert_eq!(found.differences.len(), DIFFERENCES);
    assert_eq!(found.more, 100 - DIFFERENCES);
    assert!(!found.is_match());
}

#[test]
fn ignored_differences_are_counted() {
    let (one, other) = (
        "{\"a\":{\"x\":1},\"b\":[{\"t\":1,\"v\":1}]}",
        "{\"a\":{\"x\":2},\"b\":[{\"t\":2,\"v\":1}]}",
    );
    assert_eq!(
        differ(one, other, &[]),
        "value /result/a/x, value /result/b/0/t"
    );
    let lines = &["ignore /result/a", "ignore /result/b/*/t"];
    assert_eq!(differ(one, other, lines), "2 ignored");
    assert_eq!(differ(one, one, lines), "");
    assert_eq!(
        differ(one, other, &["ignore /*/*/x", "ignore /result/b/0"]),
        "2 ignored"
    );
    assert_eq!(differ(one, other, &["ignore "]), "2 ignored");
    assert_eq!(
        differ("{\"a\":1.0}", "{\"a\":1}", &["ignore /result/a"]),
        ""
    );
    assert_eq!(
        differ("{\"a\":1}", "{}", &["ignore /result/a"]),
        "1 ignored"
    );
    assert_eq!(
        differ(
            "{\"*\":1,\"a\":1}",
            "{\"*\":2,\"a\":2}",
            &["ignore /result/~2"]
        ),
        "value /result/a, 1 ignored"
    );
}

#[test]
fn numbers_may_differ_by_a_tolerance() {
    let near = &["near /result/*/score 0.001"];
    let of = |score: &str| format!("[{{\"score\":{score}}}]");
    assert_eq!(differ(&of("0.3"), &of("0.301"), near), "1 ignored");
    assert_eq!(
        differ(&of("0.3"), &of("0.3011"), near),
        "value /result/0/score"
    );
    assert_eq!(
        differ(&of("0.3"), &of("\"0.3\""), near),
        "type /result/0/score"
    );
    assert_eq!(differ(&of("3e-1"), &of("0.30"), near), "");
    let two = &["near /result 1", "near /* 5"];
    assert_eq!(differ("1", "5", two), "1 ignored", "the widest holds");
}

#[test]
fn a_list_may_come_in_any_order() {
    let any = &["unordered /result"];
    assert_eq!(differ("[1,2,2,3]", "[3,2,1,2.0]", any), "");
    assert_eq!(
        differ("[1,2,2]", "[1,1,2]", any),
        "value /result/2",
        "how often counts"
    );
    assert_eq!(differ("[1,2]", "[2,1,1]", any), "length /result");
    assert_eq!(
        differ(
            "[{\"id\":1,\"v\":1},{\"id\":2,\"v\":1}]",
            "[{\"v\":2,\"id\":2},{\"v\":1,\"id\":1}]",
            any
        ),
        "value /result/1/v"
    );
    assert_eq!(
        differ("[{\"a\":1}]", "[{\"b\":1}]", any),
        "missing /result/0/a, extra /result/0/b"
    );
    let nested = &[
        "unordered /result",
        "unordered /result/*",
        "ignore /result/*/*/t",
    ];
    let one = "[[{\"n\":1,\"t\":1},{\"n\":2,\"t\":2}],[{\"n\":3,\"t\":3}]]";
    let other = "[[{\"n\":3,\"t\":9}],[{\"n\":2,\"t\":8},{\"t\":7,\"n\":1}]]";
    assert_eq!(differ(one, other, nested), "3 ignored");
    assert_eq!(
        differ(one, other, &["unordered /result"]),
        "value /result/0/0/n, value /result/0/0/t"
    );
}

#[test]
fn a_tolerance_holds_within_a_list_of_any_order() {
    let lines = &["unordered /result", "near /result/*/s 0.1"];
    let one = "[{\"id\":1,\"s\":0.5},{\"id\":1,\"s\":0.9},{\"id\":2,\"s\":1}]";
    let other = "[{\"id\":2,\"s\":1.05},{\"id\":1,\"s\":0.95},{\"id\":1,\"s\":0.45}]";
    assert_eq!(differ(one, other, lines), "3 ignored");
    let far = "[{\"id\":2,\"s\":1.5},{\"id\":1,\"s\":0.95},{\"id\":1,\"s\":0.45}]";
    assert_eq!(differ(one, far, lines), "value /result/2/s, 2 ignored");
}

#[test]
fn a_list_too_large_for_sorting_is_compared_in_order() {
    let deep = 64;
    let of = |last: u32| {
        let tail = format!("{}{last}{}", "[0,".repeat(deep), "]".repeat(deep));
        format!("[\"{}\",{tail}]", "x".repeat(40_000))
    };
    let stars: Vec<String> = (0..deep)
        .map(|n| format!("unordered /result{}", "/*".repeat(n)))
        .collect();
    let lines: Vec<&str> = stars.iter().map(String::as_str).collect();
    let found = results(&of(1), &of(2), &lines);
    assert_eq!(found.differences.len(), 1);
    let wide = |last: u32| {
        format!(
            "{}{last}{}",
            format!("[\"{}\",", "x".repeat(2_000)).repeat(deep),
            "]".repeat(deep)
        )
    };
    let found = results(&wide(1), &wide(2), &lines);
    assert!(found.fallen_back > 0, "{:?}", rendered(&found));
    assert_eq!(found.differences[0].kind, Kind::Value);
}

#[test]
fn a_redacted_value_shows_only_type_and_length() {
    let one =
        "{\"name\":\"Alice Example\",\"login\":{\"password\":\"hunter2\",\"pin\":1234},\"n\":1}";
    let other =
        "{\"name\":\"Bob Example\",\"login\":{\"password\":\"hunter3\",\"pin\":4321},\"n\":2}";
    for lines in [&[][..], &["show"]] {
        let found = results(one, other, lines);
        let text = format!("{found:?}");
        for secret in ["hunter2", "hunter3", "1234", "4321"] {
            assert!(!text.contains(secret), "{text}");
        }
        assert_eq!(text.contains("Alice Example"), lines == ["show"]);
        let shown: Vec<_> = found
            .differences
            .iter()
            .map(|one| (one.control.as_str(), one.candidate.as_str()))
            .collect();
        assert!(shown.contains(&("1", "2")));
        assert!(shown.contains(&("string (hidden)", "string (hidden)")));
    }
}

#[test]
fn a_pointer_that_is_too_long_ends_at_an_ancestor() {
    let name = "n".repeat(150);
    let of = |value: u32| format!("{{\"{name}\":{{\"{name}\":{value}}}}}");
    let found = results(&of(1), &of(2), &[]);
    assert_eq!(rendered(&found), [format!("value /result/{name}")]);
    assert_eq!(
        differ(
            &of(1),
            &of(2),
            &[&format!("ignore {}", found.differences[0].field)]
        ),
        "1 ignored"
    );
}

#[test]
fn the_deepest_nesting_is_walked() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("[0,", "]")] {
        let of = |value: u32| format!("{}{value}{}", open.repeat(511), close.repeat(511));
        assert_eq!(results(&of(1), &of(2), &[]).differences.len(), 1);
        assert_eq!(
            differ(&of(1), &of(2), &["unordered /result", "ignore /result/a/b"])
                .matches("value")
                .count(),
            1
        );
    }
}

/// Returns the value at a pointer in a result.
fn leads(text: &str, pointer: &str) -> bool {
    let rest = pointer.strip_prefix("/result").unwrap();
    let tokens = rest
        .split('/')
        .skip(1)
        .map(|token| token.replace("~1", "/").replace("~0", "~"));
    let tree = JsonIndex::read(text.as_bytes());
    let mut at = tree.root();
    for token in tokens {
        let found = if at.value().starts_with(b"[") {
            token
                .parse()
                .ok()
                .and_then(|index| at.children().nth(index))
        } else {
            let mut members = at.sorted().into_iter();
            let member = members.find(|(name, _)| name.shown() == token);
            member.map(|(_, value)| value)
        };
        match found {
            Some(found) => at = found,
            None => return false,
        }
    }
    true
}
