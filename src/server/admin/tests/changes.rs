//! Changes of flags: authorization and preconditions.

use http_body_util::Full;
use serde_json::json;

use super::{ELSEWHERE, LOOPBACK, ask, ask_with, empty, put, read, request, text};
use crate::server::admin::AdminTokens;

#[tokio::test]
async fn a_flip_is_reverted() {
    let delete = |content_type: &str| {
        let request = request("DELETE", "/api/v1/flags/ios-first");
        ask(
            LOOPBACK,
            empty(request.header("content-type", content_type)),
        )
    };
    assert_eq!(delete("application/json").await.status(), 200);
    assert_eq!(delete("text/plain").await.status(), 415);
}

#[tokio::test]
async fn a_flip_answers_the_flag_with_the_exact_percentage() {
    let body = r#"{"stage": "translate", "percent": 33.333, "who": "anna"}"#;
    let response = ask(LOOPBACK, put("ios-first", body)).await;
    let raw = text(response).await;
    assert!(raw.contains(r#""percent":33.333,"#), "{raw}");
    let (status, flag) = read(ask(LOOPBACK, put("ios-first", body)).await).await;
    assert_eq!(status, 200);
    assert_eq!(flag["stage"], "translate");
    assert_eq!(flag["file"]["stage"], "passthrough");
    let flipped = json!({"who": "anna", "at": "2026-02-03T04:05:06.000Z"});
    assert_eq!(flag["flipped"], flipped);
}

#[tokio::test]
async fn an_outdated_change_is_412_and_a_lost_race_409() {
    let body = r#"{"stage": "translate", "percent": 25, "why": "ticket 7"}"#;
    let matching = |tag: &str| {
        let mut request = put("ios-first", body);
        let tag = http::HeaderValue::from_str(tag).unwrap();
        request.headers_mut().insert("if-match", tag);
        request
    };
    let known = ask(LOOPBACK, matching("\"2-abc\", \"3-abc\"")).await;
    assert_eq!(known.headers()["etag"], "\"3-abc\"");
    let (status, flag) = read(known).await;
    assert_eq!((status, &flag["flipped"]["why"]), (200, &json!("ticket 7")));
    let outdated = ask(LOOPBACK, matching("\"2-abc\"")).await;
    assert_eq!(outdated.headers()["etag"], "\"3-abc\"");
    let (status, problem) = read(outdated).await;
    assert_eq!(status, 412);
    let (detail, hint) = (&problem["detail"], &problem["hint"]);
    assert_eq!(detail, "the flag has changed; the current tag is `3-abc`");
    assert_eq!(
        hint,
        "send `If-Match: \"3-abc\"` to change the current version"
    );
    let (status, _) = read(ask(LOOPBACK, put("overtaken", body)).await).await;
    assert_eq!(status, 409);
}

#[tokio::test]
async fn with_tokens_the_api_requires_one() {
    let digest = <[u8; 32]>::from(<sha2::Sha256 as sha2::Digest>::digest("secret"));
    let tokens = || AdminTokens::new(vec![("anna".to_owned(), digest)]);
    for address in [LOOPBACK, ELSEWHERE] {
        let asked = |token: Option<&str>| {
            let mut request = put("ios-first", r#"{"stage": "translate", "percent": 25}"#);
            if let Some(token) = token {
                let value = http::HeaderValue::from_str(&format!("Bearer {token}")).unwrap();
                request.headers_mut().insert("authorization", value);
            }
            ask_with(address, tokens(), request)
        };
        for token in [None, Some("guess")] {
            let refused = asked(token).await;
            assert_eq!(refused.headers()["www-authenticate"], "Bearer");
            assert_eq!(read(refused).await.0, 401, "{address} {token:?}");
        }
        let (status, flag) = read(asked(Some("secret")).await).await;
        assert_eq!((status, &flag["flipped"]["who"]), (200, &json!("anna")));
        let open = ask_with(address, tokens(), empty(request("GET", "/metrics"))).await;
        assert_eq!(open.status(), 200, "health and metrics stay open");
    }
}

const WRITES: [(&str, &str); 7] = [
    ("PUT", "/api/v1/kill"),
    ("DELETE", "/api/v1/kill"),
    ("POST", "/api/v1/undo"),
    ("POST", "/api/v1/flags/ios-first/undo"),
    ("POST", "/api/v1/flags/ios-first/rearm"),
    ("DELETE", "/api/v1/flags/ios-first"),
    ("PUT", "/api/v1/called-off/items"),
];

#[tokio::test]
async fn every_write_is_json_and_only_one_with_a_token_and_no_body_may_say_nothing_of_its_type() {
    let digest = <[u8; 32]>::from(<sha2::Sha256 as sha2::Digest>::digest("secret"));
    for (method, path) in WRITES {
        let asked = async |content_type: Option<&str>, body: &'static str, token: bool| {
            let mut request = request(method, path);
            if let Some(content_type) = content_type {
                request = request.header("content-type", content_type);
            }
            let mut tokens = AdminTokens::default();
            if token {
                tokens = AdminTokens::new(vec![("anna".to_owned(), digest)]);
                request = request.header("authorization", "Bearer secret");
            }
            let request = request.body(Full::from(body)).unwrap();
            ask_with(LOOPBACK, tokens, request).await.status()
        };
        // Content types that a page of another site can send without a CORS preflight.
        let simple = [
            Some("text/plain"),
            Some("application/x-www-form-urlencoded"),
            Some("multipart/form-data; boundary=x"),
        ];
        let signed = r#"{"who":"anna"}"#;
        for token in [false, true] {
            for content_type in simple {
                for body in ["", signed] {
                    let status = asked(content_type, body, token).await;
                    assert_eq!(status, 415, "{method} {path} {content_type:?}");
                }
            }
            assert_eq!(asked(None, signed, token).await, 415);
            for body in ["", signed] {
                let status = asked(Some("application/json"), body, token).await;
                assert_ne!(status, 415, "{method} {path}");
            }
        }
        assert_eq!(asked(None, "", false).await, 415, "{method} {path}");
        assert_ne!(asked(None, "", true).await, 415, "{method} {path}");
    }
}

#[tokio::test]
async fn a_page_of_another_site_cannot_write() {
    for (method, path) in WRITES {
        let from = async |site: &str| {
            let request = request(method, path).header("content-type", "application/json");
            let request = request.header("sec-fetch-site", site);
            ask(LOOPBACK, empty(request)).await.status()
        };
        for site in ["cross-site", "same-site"] {
            assert_eq!(from(site).await, 403, "{method} {path} {site}");
        }
        for site in ["same-origin", "none"] {
            assert_ne!(from(site).await, 403, "{method} {path} {site}");
        }
    }
}
