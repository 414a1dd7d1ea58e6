use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;

use super::*;
use crate::recording::MAX_DEPTH;

/// Rules for tests: names that contain `secret` or `token`, and `secret=…` in texts.
struct Rules;

impl Sensitive for Rules {
    fn hides(&self, name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        name == "pin" || name.contains("secret") || name.contains("token")
    }

    fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match text.split_once("secret=") {
            Some((before, _)) => Cow::Owned(format!("{before}secret=***")),
            None => Cow::Borrowed(text),
        }
    }

    fn path<'p>(&self, path: &'p str) -> Cow<'p, str> {
        match path.split_once("/reset/") {
            Some((before, _)) => Cow::Owned(format!("{before}/reset/***")),
            None => Cow::Borrowed(path),
        }
    }
}

fn redacted(nameless: Nameless, body: &str) -> (String, Vec<String>) {
    let mut redactor = Redactor::new(&Rules, nameless);
    let json = Json::parse(Bytes::copy_from_slice(body.as_bytes()), MAX_DEPTH).unwrap();
    let shown = redactor.json("body", &json);
    let shown = String::from_utf8(shown.as_bytes().to_vec()).unwrap();
    // The result is JSON.
    Json::parse(shown.clone().into(), MAX_DEPTH).unwrap();
    (shown, redactor.into_places())
}

#[test]
fn placeholders_keep_the_type() {
    let (shown, places) = redacted(
        Nameless::Kept,
        r#"{"a":1.50,"Secret":"x","tokens":[1,"x",true,null,{"a":1}],"b":{"user.pin":7,"\u0070in":2},"secret~/x":{"a":1}}"#,
    );
    assert_eq!(
        shown,
        r#"{"a":1.50,"Secret":"***","tokens":[0,"***",false,null,{}],"b":{"user.pin":0,"\u0070in":0},"secret~/x":{}}"#
    );
    assert_eq!(
        places,
        [
            "body/Secret",
            "body/tokens/0",
            "body/tokens/1",
            "body/tokens/2",
            "body/tokens/4",
            "body/b/user.pin",
            "body/b/pin",
            "body/secret~0~1x"
        ]
    );
}

#[test]
fn json_inside_strings_is_searched() {
    let cases = [
        (
            r#"{"a":"{\"secret\": \"x\", \"b\":1}"}"#,
            r#"{"a":"{\"secret\":\"***\",\"b\":1}"}"#,
        ),
        // In a string in a string.
        (r#"["\"{\\\"pin\\\":9}\""]"#, r#"["\"{\\\"pin\\\":0}\""]"#),
        // `{"token":"abc"}` in base64.
        (r#"["eyJ0b2tlbiI6ImFiYyJ9"]"#, r#"["eyJ0b2tlbiI6IioqKiJ9"]"#),
        (r#"["see secret=abc"]"#, r#"["see secret=***"]"#),
        (r#"["Bearer abcdefgh"]"#, r#"["***"]"#),
        (r#"["eyJhbGciOiJub25lIn0.e30."]"#, r#"["***"]"#),
        (
            r#"{"name":"token","value":"x","id":1}"#,
            r#"{"name":"token","value":"***","id":1}"#,
        ),
        (
            r#"{"n\u0061me":"token","value":"x"}"#,
            r#"{"n\u0061me":"token","value":"***"}"#,
        ),
        // `Basic dXNlcjpwYXNz` and `see secret=abc` in base64.
        (r#"["QmFzaWMgZFhObGNqcHdZWE56"]"#, r#"["***"]"#),
        (r#"["c2VlIHNlY3JldD1hYmM="]"#, r#"["***"]"#),
        (
            r#"["send Bearer a1b2c3d4 or 'eyJhIjoxfQ.eyJiIjoyfQ.c_-', please"]"#,
            r#"["send Bearer *** or '***', please"]"#,
        ),
        (
            r#"["https://user:pass@host/reset/abc?a=1&%70in=2#token=x"]"#,
            r#"["https://***@host/reset/***?a=1&%70in=***#token=***"]"#,
        ),
        (r#"["//user@host"]"#, r#"["//***@host"]"#),
        (
            r#"["at https://host/reset/abc?a=1 now"]"#,
            r#"["at https://host/reset/***?a=1 now"]"#,
        ),
        (r#"["/reset/abc"]"#, r#"["/reset/***"]"#),
        (
            r#"["/a?next=%2Freset%2Fabc"]"#,
            r#"["/a?next=%2Freset%2F%2A%2A%2A"]"#,
        ),
        // No Unicode text, so it cannot be searched.
        (r#"["\ud800 secret=abc"]"#, r#"["***"]"#),
    ];
    for (body, expected) in cases {
        let (shown, places) = redacted(Nameless::Kept, body);
        assert_eq!(shown, expected);
        assert_eq!(places.len(), 1, "{body}");
    }
    let unchanged = r#"{"a":"{\"b\" : 1}","c":"[]","d":"eyJhIjoxfQ==","e":"Basic training is long","f":"aGVsbG8gd29ybGQ=","g":"eyes... of https://a.b/c?d=e&f#g","h":"/a/b?c","i":"a < b"}"#;
    assert_eq!(
        redacted(Nameless::Kept, unchanged),
        (unchanged.to_owned(), vec![])
    );
}

#[test]
fn credentials_and_urls_within_texts_are_found() {
    let base64 = |text: &str| STANDARD.encode(text);
    let hidden = [
        (
            "https://a/x,eyJh.eyJi.c?token=1",
            "https://a/x,***?token=***",
        ),
        (
            "eyJh.eyJi.c,https://a/x?token=1",
            "***,https://a/x?token=***",
        ),
        (
            "see [reset](https://h/reset/abc)",
            "see [reset](https://h/reset/***)",
        ),
        ("0; url=https://h/reset/abc", "0; url=https://h/reset/***"),
        ("url:https://h/reset/abc", "url:https://h/reset/***"),
        ("x?u=https://h/reset/abc", "x?u=https://h/reset/***"),
        (
            "/x?u=https://u@h&pin=1",
            "/x?u=https%3A%2F%2F%2A%2A%2A%40h&pin=***",
        ),
        (
            "https://h/x,https://h/reset/abc",
            "https://h/x,https://h/reset/***",
        ),
        (
            "https://h/x,https://u@h/?pin=1",
            "https://h/x,https://***@h/?pin=***",
        ),
        ("/x,https://u@h", "/x,https://***@h"),
        (
            "see https://h/reset/a,b(c) now",
            "see https://h/reset/***) now",
        ),
        (
            "refused: Bearer correct-horse-battery",
            "refused: Bearer ***",
        ),
        ("refused (Bearer sk-live-1234)", "refused (Bearer ***"),
        ("with auth:Bearer: abcdefgh=", "with auth:Bearer: ***"),
        (&base64("/reset/abc"), "***"),
        (&base64("refused Bearer a1b2c3d4 now"), "***"),
        (&base64(&base64("refused Bearer a1b2c3d4 now")), "***"),
        (&base64("https://a/?f={\"pin\":1}"), "***"),
    ];
    for (text, expected) in hidden {
        let mut redactor = Redactor::new(&Rules, Nameless::Kept);
        assert_eq!(redactor.header("request.headers", "x", text), expected);
        assert_eq!(redactor.into_places(), ["request.headers.x"], "{text}");
    }
}

#[test]
fn ordinary_texts_beside_schemes_and_urls_are_kept() {
    let base64 = |text: &str| STANDARD.encode(text);
    let kept = [
        "Keep it basic. Re-establish the connection",
        "the Basic training, and the Basic Training",
        "Basic training; token ungültig!",
        "see (https://h/a,b), [x](https://h/c) and a://b",
        "https://h/x,https://h/y",
        "://h 1://h /a://b",
        &base64("see (https://h/a,b), a text"),
        &base64(&base64("a text of words")),
    ];
    for text in kept {
        let mut redactor = Redactor::new(&Rules, Nameless::Kept);
        assert_eq!(redactor.header("request.headers", "x", text), text);
        assert_eq!(redactor.into_places(), [""; 0]);
    }
}

#[test]
fn path_parameters_are_searched() {
    let cases = [
        ("/a/eyJh.eyJi.c_-;v=1/b", "/a/***;v=1/b"),
        ("/a;v=eyJh.eyJi.c_-", "/a;v=***"),
        ("/a;%74oken=x;100%=y", "/a;%74oken=***;100%=y"),
    ];
    for (path, expected) in cases {
        let mut redactor = Redactor::new(&Rules, Nameless::Kept);
        assert_eq!(redactor.target(path, None), expected);
    }
}

#[test]
fn values_without_a_name_are_replaced_for_sensitive_calls() {
    let message =
        r#"{"jsonrpc":"2.0","method":"getnewtoken","params":["a",1],"result":"x","id":1}"#;
    let expected =
        r#"{"jsonrpc":"2.0","method":"getnewtoken","params":["***",0],"result":"***","id":1}"#;
    assert_eq!(redacted(Nameless::Replaced, message).0, expected);
    assert_eq!(redacted(Nameless::Kept, message).0, message);
    let error = r#"{"jsonrpc":"2.0","error":{"code":-1,"message":"no x","data":"x"},"id":1}"#;
    let shown = r#"{"jsonrpc":"2.0","error":{"code":-1,"message":"***","data":"***"},"id":1}"#;
    assert_eq!(redacted(Nameless::Replaced, error).0, shown);
    assert_eq!(redacted(Nameless::Replaced, "\"x\"").0, "\"***\"");
    assert_eq!(redacted(Nameless::Replaced, r#"["x"]"#).0, r#"["***"]"#);
    let batch = format!("[{message}]");
    assert_eq!(
        redacted(Nameless::Replaced, &batch).0,
        format!("[{expected}]")
    );
}

#[test]
fn a_call_whose_route_reads_a_sensitive_value_keeps_only_its_shape() {
    let message = r#"{"jsonrpc":"2.0","method":"tools/x","params":{"a":"x","b":{"c":1}},"id":1}"#;
    let expected = r#"{"jsonrpc":"2.0","method":"***","params":{"a":"***","b":{}},"id":1}"#;
    assert_eq!(redacted(Nameless::AllReplaced, message).0, expected);
    let error = r#"{"jsonrpc":"2.0","error":{"code":-1,"message":"no x","data":{"a":"x"}},"id":1}"#;
    let expected = r#"{"jsonrpc":"2.0","error":{"code":-1,"message":"***","data":{}},"id":1}"#;
    assert_eq!(redacted(Nameless::AllReplaced, error).0, expected);
    let body = r#"{"a":"x","b":[1,{"c":2}]}"#;
    let (shown, places) = redacted(Nameless::AllReplaced, body);
    assert_eq!(shown, r#"{"a":"***","b":[0,{}]}"#);
    assert_eq!(places, ["body/a", "body/b/0", "body/b/1"]);
    let mut redactor = Redactor::new(&Rules, Nameless::AllReplaced);
    assert_eq!(redactor.target("/a", Some("q=x&r=&x")), "/a?q=***&r=&***");
    let form = Bytes::from_static(b"x");
    let kind = Some("application/x-www-form-urlencoded");
    for nameless in [Nameless::Replaced, Nameless::AllReplaced] {
        let body = Redactor::new(&Rules, nameless).body("body", kind, &form);
        assert_eq!(body, RecordedBody::Text("***".into()));
    }
}

#[test]
fn queries_forms_and_headers_are_searched() {
    let mut redactor = Redactor::new(&Rules, Nameless::Kept);
    assert_eq!(
        redactor.target(
            "/a;token=x;v=1/eyJh.eyJi.c_-/b",
            Some("q=1&%74oken=x&f=%7B%22pin%22%3A1%7D&user[pin]=2&secret=&v=100%")
        ),
        "/a;token=***;v=1/***/b?q=1&%74oken=***&f=%7B%22pin%22%3A0%7D&user[pin]=***&secret=&v=100%"
    );
    assert_eq!(redactor.header("request.headers", "x-token", "x"), "***");
    assert_eq!(
        redactor.header("request.headers", "referer", "http://a/?secret=x"),
        "http://a/?secret=***"
    );
    assert_eq!(
        redactor.header("response.headers", "location", "/reset/abc?x=1"),
        "/reset/***?x=1"
    );
    assert_eq!(
        redactor.header("response.headers", "link", "</reset/abc>; rel=next, </a>"),
        "</reset/***>; rel=next, </a>"
    );
    let form = Bytes::from_static(b"a=1&pin=2");
    let body = redactor.body(
        "request.body",
        Some("application/x-www-form-urlencoded; a=b"),
        &form,
    );
    assert_eq!(body, RecordedBody::Text("a=1&pin=***".into()));
    assert_eq!(
        redactor.body("request.body", Some("text/plain"), &form),
        RecordedBody::Omitted(9)
    );
    assert_eq!(
        redactor.into_places(),
        [
            "request.path",
            "request.query.token",
            "request.query.f",
            "request.query.user[pin]",
            "request.headers.x-token",
            "request.headers.referer",
            "response.headers.location",
            "response.headers.link",
            "request.body.pin"
        ]
    );
}

fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::json!("PLANTED")),
        Just(serde_json::json!({"a": "b"})),
        any::<i32>().prop_map(serde_json::Value::from),
        "[a-z\"\\\\é]{0,5}".prop_map(serde_json::Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inside| {
        let name = prop::sample::select(&["a", "secret", "my_token", "é", "x/y"][..]);
        prop_oneof![
            prop::collection::vec(inside.clone(), 0..4).prop_map(serde_json::Value::from),
            prop::collection::vec((name, inside.clone()), 0..4).prop_map(|members| {
                let members = members.into_iter();
                members
                    .map(|(name, value)| (name.to_owned(), value))
                    .collect()
            }),
            inside.prop_map(|value| serde_json::Value::from(value.to_string())),
        ]
    })
}

/// Returns true if the planted text is below a sensitive name, also inside of strings.
fn is_exposed(value: &serde_json::Value, is_below: bool) -> bool {
    match value {
        serde_json::Value::String(text) => match serde_json::from_str(text) {
            Ok(
                inside @ (serde_json::Value::Object(_)
                | serde_json::Value::Array(_)
                | serde_json::Value::String(_)),
            ) => is_exposed(&inside, is_below),
            Ok(_) | Err(_) => is_below && text == "PLANTED",
        },
        serde_json::Value::Array(items) => items.iter().any(|item| is_exposed(item, is_below)),
        serde_json::Value::Object(members) => members
            .iter()
            .any(|(name, value)| is_exposed(value, is_below || Rules.hides(name))),
        serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_) => {
            false
        }
    }
}

proptest! {
    #[test]
    fn no_planted_value_below_a_sensitive_name_remains(value in any_json()) {
        let (shown, places) = redacted(Nameless::Kept, &value.to_string());
        let read: serde_json::Value = serde_json::from_str(&shown).unwrap();
        prop_assert!(!is_exposed(&read, false), "{shown}");
        prop_assert_eq!(places.is_empty(), read == value);
        let again = redacted(Nameless::Kept, &shown).0;
        prop_assert_eq!(again, shown);
    }
}

#[test]
fn json_that_is_too_deep_to_search_is_not_recorded() {
    let deep = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    let recorded = |text: String| {
        let mut redactor = Redactor::new(&Rules, Nameless::Kept);
        redactor.body("body", Some("application/json"), &Bytes::from(text))
    };
    let levels = usize::from(SEARCHED_DEPTH);
    assert!(matches!(recorded(deep(levels)), RecordedBody::Json(_)));
    assert!(matches!(
        recorded(deep(levels + 1)),
        RecordedBody::Omitted(_)
    ));
    let (shown, _) = redacted(Nameless::Kept, &format!(r#"["{}"]"#, deep(levels + 1)));
    assert_eq!(shown, r#"["***"]"#);
}
