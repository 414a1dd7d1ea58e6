use proptest::prelude::*;

use super::*;
use crate::json::Json;
use crate::side::Side;

/// The slot of a hole in a query, whose other side declares only its name.
fn slot(inside: &str) -> Result<Slot, PatternError> {
    let mention = parse_mention(inside)?;
    let mut resolver = HoleResolver::default();
    resolver.mention(Side::Rest, &mention, HolePosition::Words, 0)?;
    let twin = mention_named(&mention.name, HoleUse::Both, None);
    resolver.mention(Side::Rpc, &twin, HolePosition::Json, 0)?;
    let facts = resolver.finish(&HoleFacts::default())?;
    facts.slot(Side::Rest, &mention, HolePosition::Words, 0)
}

fn read(inside: &str, texts: &[&str]) -> Result<Option<String>, String> {
    let bound = slot(inside).unwrap().read_texts(texts, 128)?;
    Ok(match &bound {
        BoundValue::Value(value) => Some(String::from_utf8(value.as_bytes().to_vec()).unwrap()),
        BoundValue::Absent => None,
        BoundValue::Unbound | BoundValue::Members(_) | BoundValue::Each(_) => panic!("{bound:?}"),
    })
}

/// As JSON on the RPC side, then as texts on the REST side.
fn write(inside: &str, value: Option<&str>) -> Result<Vec<String>, String> {
    let slot = slot(inside).unwrap();
    let value = value.map(|value| Json::parse(value.to_owned().into(), 128).unwrap());
    let bound = slot.read_json(value.as_ref(), 128)?;
    let texts = slot.write_texts(&bound)?;
    Ok(texts
        .into_iter()
        .map(std::borrow::Cow::into_owned)
        .collect())
}

#[test]
fn an_integer_beyond_64_bits_is_read_in_digits_only() {
    let digits = "123456789012345678901234567890";
    let list = format!("[1,{digits}]");
    for (hole, value, texts) in [
        ("x:integer", digits, vec![digits]),
        ("x:integer[]", &*list, vec!["1", digits]),
        ("x:integer[,]", &*list, vec![&list[1..list.len() - 1]]),
    ] {
        assert_eq!(write(hole, Some(value)).unwrap(), texts, "{hole}");
        assert_eq!(
            read(hole, &texts).unwrap().as_deref(),
            Some(value),
            "{hole}"
        );
    }
    for other in ["1e30", "1E+30", "-1e30", "1e20", "18446744073709551616.0"] {
        for (hole, value) in [
            ("x:integer", other.to_owned()),
            ("x:integer?", other.to_owned()),
            ("x:integer[]", format!("[1,{other}]")),
            ("x:integer[,]", format!("[1,{other}]")),
        ] {
            assert!(write(hole, Some(&value)).is_err(), "{hole} {other}");
            assert!(read(hole, &[other]).is_err(), "{hole} {other}");
        }
        assert!(slot(&format!("x:integer={other}")).is_err(), "{other}");
    }
}

#[test]
fn a_text_becomes_the_value_of_its_declared_type() {
    let rows: &[(&str, &[&str], Option<&str>)] = &[
        ("x", &["123"], Some("\"123\"")),
        (
            "x:integer",
            &["123456789012345678901234567890"],
            Some("123456789012345678901234567890"),
        ),
        ("x:number", &["1.10"], Some("1.10")),
        ("x:boolean", &["true"], Some("true")),
        ("x:enum(asc|desc)", &["asc"], Some("\"asc\"")),
        ("x:string[]", &["a", "b,c"], Some("[\"a\",\"b,c\"]")),
        ("x:integer[,]", &["1,2"], Some("[1,2]")),
        ("x:string[,]?", &[""], Some("[]")),
        ("x:string[|]", &["a|b,c"], Some("[\"a\",\"b,c\"]")),
        ("x:integer[ ]", &["1 2"], Some("[1,2]")),
        ("x?", &[], None),
        ("x?", &[""], Some("\"\"")),
        ("x=50", &[], Some("\"50\"")),
        ("x:integer=50", &[], Some("50")),
        ("x:integer?=50", &[], Some("50")),
        ("x:integer?=50", &["50"], Some("50")),
        ("x:integer?=50", &["51"], Some("51")),
        ("x=", &[], Some("\"\"")),
        ("x:string[,]=[\"a\"]", &[], Some("[\"a\"]")),
    ];
    for (inside, texts, value) in rows {
        assert_eq!(
            read(inside, texts).unwrap().as_deref(),
            *value,
            "{inside} {texts:?}"
        );
    }
}

#[test]
fn a_text_of_another_type_is_refused_with_the_allowed_values() {
    let rows: &[(&str, &[&str], &str)] = &[
        ("x:integer", &["1.0"], "`1.0` is not an integer"),
        ("x:integer", &["007"], "`007` is not an integer"),
        ("x:boolean", &["1"], "`1` is not `true` or `false`"),
        (
            "x:enum(asc|desc)",
            &["up"],
            "`up` is not one of `asc`, `desc`",
        ),
        ("x", &[""], "it must not be empty"),
        ("x:integer?", &[""], "it must not be empty"),
        ("x", &[], "it is required"),
        ("x", &["a", "b"], "it is given more than once"),
        ("x:string[,]", &["a", "b"], "it is given more than once"),
        ("x:string[,]", &[""], "it must not be empty"),
    ];
    for (inside, texts, words) in rows {
        assert_eq!(
            read(inside, texts).unwrap_err(),
            *words,
            "{inside} {texts:?}"
        );
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn a_value_becomes_its_text_or_is_refused() {
    let yes: &[(&str, Option<&str>, &[&str])] = &[
        ("x", Some(r#""a\u00e9/""#), &["aé/"]),
        (
            "x:integer",
            Some("123456789012345678901234567890"),
            &["123456789012345678901234567890"],
        ),
        ("x:integer?=50", Some("50"), &[]),
        ("x:integer=50", None, &["50"]),
        ("x:string[]", Some(r#"["a,b",""]"#), &["a,b", ""]),
        ("x:string[,]", Some(r#"["a","b"]"#), &["a,b"]),
        ("x:string[|]", Some(r#"["a,b","c"]"#), &["a,b|c"]),
        ("x:integer[ ]?", Some("[1,2]"), &["1 2"]),
        ("x:string[]?", Some("[]"), &[]),
        ("x?", Some("null"), &[]),
        ("x:integer=50", Some("null"), &["50"]),
    ];
    for (inside, value, texts) in yes {
        assert_eq!(write(inside, *value).unwrap(), *texts, "{inside} {value:?}");
    }
    let no: &[(&str, Option<&str>, &str)] = &[
        ("x", Some("7"), "it must be a string, not a number"),
        (
            "x:integer",
            Some("\"7\""),
            "it must be an integer, not a string",
        ),
        ("x:integer", Some("1.5"), "`1.5` is not an integer"),
        ("x", Some("\"\""), "it must not be empty"),
        ("x", Some("null"), "it must be a string, not null"),
        ("x", None, "it is required"),
        (
            "x",
            Some(r#""\ud800""#),
            "a lone surrogate escape is not Unicode text",
        ),
        (
            "x:string[]",
            Some("[1]"),
            "element 0: it must be a string, not a number",
        ),
        (
            "x:string[]",
            Some("{}"),
            "it must be an array, not an object",
        ),
        (
            "x:string[,]",
            Some(r#"["a,b"]"#),
            "element 0: it contains a comma, which separates the elements of this list",
        ),
        (
            "x:string[|]",
            Some(r#"["a","b|c"]"#),
            "element 1: it contains a `|`, which separates the elements of this list",
        ),
        (
            "x:string[ ]",
            Some(r#"["a b"]"#),
            "element 0: it contains a space, which separates the elements of this list",
        ),
        (
            "x:string[,]",
            Some(r#"[""]"#),
            "element 0: one empty element is indistinguishable from an empty list",
        ),
    ];
    for (inside, value, words) in no {
        assert_eq!(
            write(inside, *value).unwrap_err(),
            *words,
            "{inside} {value:?}"
        );
    }
}

#[test]
fn an_invalid_hole_is_refused_with_its_spelling() {
    for (inside, words) in [
        ("", "a hole name has letters"),
        ("7x", "a hole name has letters"),
        ("x y", "a type begins with `:`"),
        ("x:int", "`int` is not a type"),
        ("x:enum()", "is not a type"),
        ("x:integer=abc", "the default `abc`"),
        (">_", "has no value to write"),
        (">x", "on the rpc side only"),
        (">x:integer", "has the type and the absence"),
        ("_:string", "`_` has no type but `null`"),
        ("now", "write-only"),
        ("x:object", "write `{x:json}` there"),
    ] {
        let error = slot(inside).unwrap_err().to_string();
        assert!(error.contains(words), "{inside}: {error}");
    }
}

#[test]
fn a_pattern_text_is_cut_at_its_holes() {
    let cut = tokens("a{{b}}/{x:integer={\"a\":1}}z").unwrap();
    let expected = [
        Token::Text("a{b}/".into()),
        Token::Hole("x:integer={\"a\":1}".into()),
        Token::Text("z".into()),
    ];
    assert_eq!(cut, expected);
    assert!(tokens("{x").is_err() && tokens("x}").is_err());
}

fn text_of(scalar: &'static str) -> BoxedStrategy<String> {
    match scalar {
        "integer" => "-?(0|[1-9][0-9]{0,40})".boxed(),
        "number" => "-?(0|[1-9][0-9]{0,9})(\\.[0-9]{1,4})?([eE][+-]?[0-9]{1,3})?".boxed(),
        "boolean" => "true|false".boxed(),
        _ => "[^,]{1,12}".boxed(),
    }
}

fn typed_texts() -> impl Strategy<Value = (&'static str, Vec<String>)> {
    proptest::sample::select(vec!["string", "integer", "number", "boolean"]).prop_flat_map(
        |scalar| {
            (
                Just(scalar),
                proptest::collection::vec(text_of(scalar), 1..4),
            )
        },
    )
}

proptest! {
    #[test]
    fn a_value_that_was_read_is_written_back((scalar, texts) in typed_texts()) {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let one = format!("x:{scalar}");
        let value = read(&one, &texts[..1]).unwrap().unwrap();
        prop_assert_eq!(write(&one, Some(&value)).unwrap(), &texts[..1]);
        let repeated = format!("x:{scalar}[]");
        let value = read(&repeated, &texts).unwrap().unwrap();
        prop_assert_eq!(write(&repeated, Some(&value)).unwrap(), texts.clone());
        let separated = format!("x:{scalar}[,]");
        let joined = texts.join(",");
        let value = read(&separated, &[&joined]).unwrap().unwrap();
        prop_assert_eq!(write(&separated, Some(&value)).unwrap(), vec![joined]);
    }

    #[test]
    fn no_pattern_makes_it_panic(text in "[{}a-z:?=|,\\[\\]()_>\"é]{0,24}") {
        let _ = tokens(&text);
        let _ = slot(&text);
    }
}
