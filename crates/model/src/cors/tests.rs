use http::header::ORIGIN;

use super::*;

const APP: &str = "https://app.example";

fn headers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
    let fields = fields.iter();
    fields
        .map(|(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        })
        .collect()
}

/// The fields by name; those with the same name on one line.
fn shown(headers: &HeaderMap) -> Vec<String> {
    let mut lines: Vec<String> = headers
        .iter()
        .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
        .collect();
    lines.sort();
    lines
}

fn listed() -> Cors {
    Cors {
        origins: Origins::Listed(vec![WebOrigin::parse(APP).unwrap()]),
        headers: RequestHeaders::Mirrored,
        expose: vec![HeaderName::from_static("x-total")],
        allows_credentials: true,
        max_age: Some(Duration::from_millis(600_900)),
    }
}

fn any() -> Cors {
    Cors {
        origins: Origins::Any,
        headers: RequestHeaders::Listed(vec![HeaderName::from_static("x-tenant")]),
        expose: Vec::new(),
        allows_credentials: false,
        max_age: None,
    }
}

fn marked(cors: &Cors, origin: Option<&'static str>) -> Vec<String> {
    let mut answer = HeaderMap::new();
    let origin = origin.map(HeaderValue::from_static);
    cors.mark(origin.as_ref(), &mut answer);
    shown(&answer)
}

#[test]
fn an_origin_is_a_scheme_a_host_and_a_port() {
    for text in [
        APP,
        "http://localhost:3000",
        "http://[::1]:8080",
        "https://app.example:80",
        "capacitor://localhost",
        "chrome-extension://abc",
    ] {
        assert_eq!(
            WebOrigin::parse(text).as_ref().map(WebOrigin::as_str),
            Ok(text),
            "{text}"
        );
    }
    for text in [
        "",
        "null",
        "app.example",
        "//app.example",
        "https://",
        "https://app.example/",
        "https://app.example?x",
        "https://me@app.example",
        "https://*.example",
        "https://app.example:",
        "https://app.example:99999",
        "1x://app.example",
        "https://app example",
    ] {
        assert_eq!(WebOrigin::parse(text), Err(OriginError::Shape), "{text}");
    }
}

#[test]
fn an_origin_has_one_spelling() {
    for (text, spelled) in [
        ("HTTPS://App.Example", APP),
        ("https://app.example:443", APP),
        ("http://app.example:80", "http://app.example"),
        ("https://app.example:0443", APP),
    ] {
        let wrong = OriginError::Spelling(spelled.to_owned());
        assert_eq!(WebOrigin::parse(text), Err(wrong), "{text}");
    }
}

#[test]
fn a_listed_origin_is_named_with_the_headers_its_page_may_read() {
    assert_eq!(
        marked(&listed(), Some(APP)),
        [
            "access-control-allow-credentials: true",
            "access-control-allow-origin: https://app.example",
            "access-control-expose-headers: x-total",
            "vary: origin",
        ]
    );
}

#[test]
fn other_origins_get_only_vary() {
    for origin in [
        None,
        Some("https://evil.example"),
        Some("http://app.example"),
        Some("https://app.example:444"),
        Some("https://APP.example"),
        Some("https://app.example.evil.example"),
        Some("null"),
        Some("*"),
        Some(""),
    ] {
        assert_eq!(marked(&listed(), origin), ["vary: origin"], "{origin:?}");
    }
}

#[test]
fn where_every_origin_is_admitted_answers_are_the_same_for_all() {
    for origin in [None, Some(APP), Some("null")] {
        let lines = marked(&any(), origin);
        assert_eq!(lines, ["access-control-allow-origin: *"], "{origin:?}");
    }
}

#[test]
fn a_response_has_one_origin_and_keeps_its_vary() {
    let mut answer = headers(&[
        ("access-control-allow-origin", "https://other.example"),
        ("vary", "accept-language"),
    ]);
    let origin = HeaderValue::from_static(APP);
    listed().mark(Some(&origin), &mut answer);
    let named = answer.get_all(ACCESS_CONTROL_ALLOW_ORIGIN).iter();
    assert_eq!(named.collect::<Vec<_>>(), [APP]);
    let vary = answer.get_all(VARY).iter();
    assert_eq!(vary.collect::<Vec<_>>(), ["accept-language", "origin"]);
}

const VARY_ASKED: &str =
    "vary: origin, access-control-request-method, access-control-request-headers";

#[test]
fn a_preflight_response_has_the_requested_methods_and_headers() {
    let mut requested = headers(&[
        ("origin", APP),
        ("access-control-request-headers", "content-type, X-Tenant,,"),
    ]);
    requested.append(
        ACCESS_CONTROL_REQUEST_HEADERS,
        HeaderValue::from_static("x-b,no token"),
    );
    let answer = listed().preflight(&requested, &[Method::DELETE, Method::PUT]);
    assert_eq!(
        shown(&answer),
        [
            "access-control-allow-credentials: true",
            "access-control-allow-headers: content-type, x-tenant, x-b",
            "access-control-allow-methods: DELETE, PUT",
            "access-control-allow-origin: https://app.example",
            "access-control-max-age: 600",
            VARY_ASKED,
        ]
    );
}

#[test]
fn a_preflight_response_has_the_listed_headers() {
    let requested = headers(&[("origin", APP), ("access-control-request-headers", "x-b")]);
    assert_eq!(
        shown(&any().preflight(&requested, &[Method::PUT])),
        [
            "access-control-allow-headers: x-tenant",
            "access-control-allow-methods: PUT",
            "access-control-allow-origin: *",
            VARY_ASKED,
        ]
    );
}

#[test]
fn a_preflight_of_another_origin_gets_only_vary() {
    for requested in [headers(&[("origin", "https://evil.example")]), headers(&[])] {
        let answer = listed().preflight(&requested, &[Method::PUT]);
        assert_eq!(shown(&answer), [VARY_ASKED], "{requested:?}");
    }
}

#[test]
fn a_preflight_has_an_origin_and_the_method_of_its_call() {
    let whole = [("origin", APP), ("access-control-request-method", "PUT")];
    let requested = |method: &Method, fields| requested_method(method, &headers(fields));
    assert_eq!(requested(&Method::OPTIONS, &whole), Some(Method::PUT));
    assert_eq!(requested(&Method::GET, &whole), None);
    assert_eq!(requested(&Method::OPTIONS, &whole[..1]), None);
    assert_eq!(requested(&Method::OPTIONS, &whole[1..]), None);
    let odd = [("origin", APP), ("access-control-request-method", "P UT")];
    assert_eq!(requested(&Method::OPTIONS, &odd), None);
}

#[test]
fn two_origins_count_as_none() {
    let mut twice = headers(&[("origin", APP), ("host", "app.example")]);
    twice.append(ORIGIN, HeaderValue::from_static(APP));
    assert_eq!(origin(&twice), None);
}
