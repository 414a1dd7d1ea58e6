//! Explaining a call is a read, by GET and by POST.

use http_body_util::Full;
use serde_json::json;

use super::{LOOPBACK, ask, empty, read, request};

#[tokio::test]
async fn a_call_is_explained_by_a_body_or_by_a_query() {
    let posted = |content_type: &str, body: &'static str| {
        let request = request("POST", "/api/v1/explain").header("content-type", content_type);
        ask(LOOPBACK, request.body(Full::from(body)).unwrap())
    };
    let body = r#"{"method":"DELETE","target":"/items/7"}"#;
    let (status, explained) = read(posted("application/json", body).await).await;
    assert_eq!(status, 200);
    let request_of =
        |explained: &serde_json::Value| explained[0]["explanations"][0]["request"].clone();
    assert_eq!(request_of(&explained), json!("DELETE Some(/items/7)"));
    assert_eq!(explained[0]["name"], json!(null));
    let (status, problem) = read(posted("application/json", "{}").await).await;
    assert_eq!(
        (status, &problem["problems"][0]["place"]),
        (400, &json!("target"))
    );
    assert_eq!(posted("text/plain", body).await.status(), 415);

    let asked = empty(request("GET", "/api/v1/explain?call=GET%20/items/7"));
    let (status, explained) = read(ask(LOOPBACK, asked).await).await;
    assert_eq!(
        (status, request_of(&explained)),
        (200, json!("GET Some(/items/7)"))
    );
    let put = ask(LOOPBACK, empty(request("PUT", "/api/v1/explain"))).await;
    assert_eq!(
        (put.status().as_u16(), &put.headers()["allow"]),
        (405, &"GET, HEAD, POST".parse().unwrap())
    );
}
