//! Lists in one text: as a segment of a path and as a parameter of a query.

use super::*;

/// Each form of a list, and its delimiter.
const FORMS: [(&str, &str); 4] = [
    ("GET /a/{x:string[,]}", ","),
    ("GET /a?x={x:string[,]}", ","),
    ("GET /a?x={x:string[|]}", "|"),
    ("GET /a?x={x:string[ ]}", " "),
];

#[test]
fn a_list_has_one_text_both_ways() {
    for (rest, url, list) in [
        ("GET /a/{x:string[,]}", "/a/b,c", r#"["b","c"]"#),
        ("GET /a/{x:integer[,]}/d", "/a/1,2/d", "[1,2]"),
        ("GET /a/{x:enum(b|c)[,]}", "/a/c", r#"["c"]"#),
        ("POST /a/{x:string[,]}:go", "/a/b,c%3A:go", r#"["b","c:"]"#),
        (
            "GET /a/{x:string[,]}",
            "/a/b%20%2F,%C3%A9",
            r#"["b /","é"]"#,
        ),
        ("GET /a/{x:string[,]}", "/a/b,", r#"["b",""]"#),
        ("GET /a?x={x:string[|]}", "/a?x=b%7Cc%2Cd", r#"["b","c,d"]"#),
        ("GET /a?x={x:integer[|]?}", "/a?x=1%7C2", "[1,2]"),
        ("GET /a?x={x:string[ ]}", "/a?x=b%20c%7C", r#"["b","c|"]"#),
    ] {
        let members = format!("\"x\":{list}");
        assert_eq!(read(rest, url), Ok(members), "{rest} {url}");
        assert_eq!(write(rest, &[("x", list)]).as_deref(), Ok(url), "{rest}");
    }
}

#[test]
fn a_delimiter_may_be_encoded_everywhere_or_nowhere() {
    for (rest, url) in [
        ("GET /a/{x:string[,]}", "/a/b%2Cc"),
        ("GET /a/{x:string[,]}", "/a/b%2cc"),
        ("GET /a?x={x:string[,]}", "/a?x=b%2Cc"),
        ("GET /a?x={x:string[|]}", "/a?x=b|c"),
        ("GET /a?x={x:string[ ]}", "/a?x=b+c"),
    ] {
        let list = r#""x":["b","c"]"#.to_owned();
        assert_eq!(read(rest, url), Ok(list), "{rest} {url}");
    }
    for (rest, url) in [
        ("GET /a/{x:string[,]}", "/a/b%2Cc,d"),
        ("GET /a?x={x:string[,]}", "/a?x=b,c%2cd"),
        ("GET /a?x={x:string[|]}", "/a?x=b|c%7Cd"),
    ] {
        let what = read(rest, url).unwrap_err();
        assert!(what.contains("either may separate"), "{rest} {url}: {what}");
    }
}

#[test]
fn a_list_without_a_separate_text_is_refused() {
    for (rest, list, words) in [
        ("GET /a/{x:string[,]}", r#"["b,c"]"#, "it contains a comma"),
        ("GET /a/{x:string[,]}", "[]", "it must not be empty"),
        ("GET /a/{x:string[,]}", r#"[""]"#, "one empty element"),
        ("GET /a/{x:string[,]}", r#"[".."]"#, "refused in a path"),
        ("GET /a?x={x:string[|]}", r#"["b|c"]"#, "it contains a `|`"),
        (
            "GET /a?x={x:string[ ]}",
            r#"["b c"]"#,
            "it contains a space",
        ),
        ("GET /a?x={x:string[ ]?}", r#"[""]"#, "one empty element"),
    ] {
        let what = write(rest, &[("x", list)]).unwrap_err();
        assert!(what.contains(words), "{rest} {list}: {what}");
    }
}

#[test]
fn a_list_in_a_path_is_one_segment_with_commas() {
    for rest in [
        "GET /a/{x:string[]}",
        "GET /a/{x:string[|]}",
        "GET /a/{x:string[ ]}",
        "GET /a/{x:string[,]=**}",
        "GET /a/{x:string[,]=b/*}",
        "GET /a?x=b{x:string[|]}",
    ] {
        assert!(parse_route(source("r", rest, "m")).is_err(), "{rest}");
    }
    let method = parse_route(source("r", "GET /a?x={x:string[,]}", "{x}"));
    assert!(method.is_err(), "a method is no list");
}

#[test]
fn a_list_of_a_path_is_no_call_of_a_sibling() {
    let table = table(&[("GET /a/{x:string[,]}", "m0"), ("GET /a/b", "m1")]).unwrap();
    let context = TranslateContext {
        depth: 8,
        now: String::new,
    };
    let write = |params: &'static str| {
        let params = Json::literal(params);
        let written = table.write_rest(0, MethodCall::new("m0", Some(&params)), context);
        written.map(|call| call.target).ok()
    };
    assert_eq!(selected(&table, "GET /a/b,c"), "r0");
    assert_eq!(write(r#"{"x":["b"]}"#), None);
    assert_eq!(write(r#"{"x":["b","c"]}"#).as_deref(), Some("/a/b,c"));
}

fn pieces(pieces: &'static [&'static str]) -> impl Strategy<Value = String> {
    let piece = prop::sample::select(pieces);
    prop::collection::vec(piece, 0..4).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn what_is_written_of_a_list_is_read_as_the_list(
        elements in prop::collection::vec(pieces(&["a", "b", ",", "|", " ", ".", "/", "%2C", "+", "é"]), 0..4),
        form in 0..FORMS.len(),
    ) {
        let (rest, delimiter) = FORMS[form];
        let list = serde_json::to_string(&elements).unwrap();
        match write(rest, &[("x", &list)]) {
            Ok(url) => prop_assert_eq!(read(rest, &url), Ok(format!("\"x\":{list}")), "{}", url),
            Err(what) => {
                let is_empty = elements.len() < 2 && elements.concat().is_empty();
                let has_delimiter = elements.iter().any(|element| element.contains(delimiter));
                let text = elements.join(delimiter);
                let is_dots = text.split('/').any(|part| part == "." || part == "..");
                prop_assert!(is_empty || has_delimiter || is_dots, "{}: {}", list, what);
            }
        }
    }

    #[test]
    fn what_is_read_as_a_list_is_read_again_as_it_is_written(
        text in pieces(&["a", "b", ",", "%2C", "|", "%7C", "%20", "+", "%2F", "."]),
        form in 0..FORMS.len(),
    ) {
        let (rest, _) = FORMS[form];
        let url = if rest.contains('?') { format!("/a?x={text}") } else { format!("/a/{text}") };
        if let Ok(members) = read(rest, &url) {
            let list = members.trim_start_matches("\"x\":");
            let again = write(rest, &[("x", list)]).unwrap();
            prop_assert_eq!(read(rest, &again), Ok(members.clone()), "{}", again);
        }
    }
}
