//! `[compare]`, and `compare` of a route.

use super::{BOTH, ROUTE, plan, problems};
use dualgauge_model::compare::{Path, Show, Tolerance};

fn paths(texts: &[&str]) -> Vec<Path> {
    texts
        .iter()
        .map(|text| Path::parse(text).unwrap())
        .collect()
}

#[test]
fn a_route_adds_to_what_holds_for_all() {
    let text = format!(
        r#"{BOTH}
[compare]
ignore = ["/*/at"]
tolerance = {{ "/body/score" = 0.5, "/body/n" = 1 }}
headers = ["Location"]
show = true
{ROUTE}compare = {{ ignore = ["/body/items/*/a~1b"], unordered = ["/body/items"], tolerance = {{ "/body/score" = 0.001 }}, headers = ["location", "vary"], show = false }}
[[route]]
name = "b"
rest = "GET /b"
rpc = "b"
"#
    );
    let plan = plan(&text);
    assert_eq!(plan.comparing.len(), 2);
    let own = plan.comparing[0].source();
    assert_eq!(own.ignore, paths(&["/*/at", "/body/items/*/a~1b"]));
    assert_eq!(own.unordered, paths(&["/body/items"]));
    let last = own.tolerance.last().unwrap();
    assert_eq!(last.0, Path::parse("/body/score").unwrap());
    assert_eq!(last.1, Tolerance::parse("1e-3").unwrap());
    let headers: Vec<_> = own.headers.iter().map(|name| name.as_str()).collect();
    assert_eq!(headers, ["location", "vary"]);
    assert_eq!(own.show, Show::Likeness);
    let usual = plan.comparing[1].source();
    assert_eq!(usual.ignore, paths(&["/*/at"]));
    assert_eq!(usual.show, Show::Values);
}

#[test]
fn an_invalid_rule_is_reported_with_its_location() {
    let text = format!(
        r#"{BOTH}[compare]
ignore = ["body/at", "/boddy/at", "/body/~x"]
unordered = ["/headers/vary"]
tolerance = {{ "/body/a" = -1, "/body/b" = "x" }}
ignroe = []
{ROUTE}from = "rest"
compare = {{ ignore = ["/result/at", "/body/at"], headers = ["a b"], show = 1 }}
"#
    );
    let reported = problems(&text);
    for line in [
        "8: compare.ignore[0]: `body/at` is not a path in a response: a path begins with `/`, such as `/body/items/*/updated_at`",
        "8: compare.ignore[1]: `/boddy/at` is not a path in a response: `boddy` is not part of a response; a path begins with",
        "  hint: did you mean `/body/at`?",
        "8: compare.ignore[2]: `/body/~x` is not a path in a response: `~` needs",
        "9: compare.unordered[0]: `/headers/vary` is not in a JSON value; write a path in",
        "10: compare.tolerance.\"/body/a\": the number `-1` is not a tolerance; write the largest allowed difference of two numbers, such as `0.001`",
        "10: compare.tolerance.\"/body/b\": the string `x` is not a tolerance",
        "11: compare.ignroe: unknown key\n  hint: did you mean `ignore`?",
        "17: route[0].compare.headers[0]: `a b` is not an HTTP header name",
        "17: route[0].compare.show: the number `1` is not a boolean; write `true` or `false`",
    ] {
        assert!(reported.contains(line), "{line}\n--- in\n{reported}");
    }
}

#[test]
fn a_tolerance_applies_inside_a_value_only() {
    let text = format!("{BOTH}[compare]\ntolerance = {{ '/status' = 1, 'body' = 2 }}\n");
    let reported = problems(&text);
    let status = "8: compare.tolerance./status: `/status` is not in a JSON value";
    assert!(reported.replace('"', "").contains(status), "{reported}");
    assert!(
        reported.contains("`body` is not a path in a response"),
        "{reported}"
    );
}

#[test]
fn a_path_of_a_side_that_nobody_enters_from_is_a_slip() {
    let text = format!(
        "{BOTH}[compare]\nignore = ['/result/at']\n{ROUTE}from = 'rest'\ncompare = {{ ignore = ['/result/at', '/*/at'] }}\n"
    );
    assert_eq!(
        problems(&text),
        "14: route[0].compare.ignore[0]: only `rest` clients call the route, and their responses have no `/result/at`\n  \
         hint: begin with `/status`, `/headers` or `/body`"
    );
}

#[test]
fn a_table_has_so_many_paths_at_most() {
    let many: Vec<String> = (0..257).map(|n| format!("'/body/{n}'")).collect();
    let text = format!("{BOTH}[compare]\nignore = [{}]\n", many.join(","));
    assert_eq!(
        problems(&text),
        "8: compare.ignore[256]: too many paths; one table can have at most 256"
    );
}
