//! Polls of a server that is written from the OpenAPI document of OFREP.

use std::path::PathBuf;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use crate::config::problem::{SourceLocation, Spanned};
use crate::config::raw::{RawFile, Secret};

fn spanned<T>(value: T) -> Spanned<T> {
    Spanned {
        value,
        place: SourceLocation::Default,
        key: String::new(),
    }
}

fn settings(address: &str, timeout: Duration) -> SourceSettings {
    SourceSettings::new(&RawSource {
        url: spanned(format!("http://{address}/flags/").parse().unwrap()),
        token_file: Some(RawFile {
            path: spanned(PathBuf::from("token")),
            content: Secret(b"opensesame\n".to_vec()),
        }),
        tls: None,
        prefix: spanned("flag:".to_owned()),
        interval: spanned(Duration::from_secs(5)),
        timeout: spanned(timeout),
    })
}

const LONG: Duration = Duration::from_secs(30);

/// Polls a server that gives one response; returns the request and the result.
async fn polled_with(
    response: Vec<u8>,
    tag: Option<&HeaderValue>,
) -> (String, Result<PolledFlags, PollError>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let settings = settings(&listener.local_addr().unwrap().to_string(), LONG);
    let serve = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(REQUEST.as_bytes()) {
            assert!(stream.read_buf(&mut request).await.unwrap() > 0);
        }
        // The proxy may close the connection before it has read everything.
        let _ = stream.write_all(&response).await;
        String::from_utf8(request).unwrap()
    };
    future::join(serve, settings.poll(tag)).await
}

async fn polled(head: &str, body: &str) -> Result<PolledFlags, PollError> {
    let length = body.len();
    let response = format!("HTTP/1.1 {head}\r\nContent-Length: {length}\r\n\r\n{body}");
    polled_with(response.into_bytes(), None).await.1
}

#[tokio::test]
async fn a_poll_asks_for_all_flags_and_reads_those_with_the_prefix() {
    let body = r#"{"flags":[{"key":"flag:a","value":{"stage":"translate","percent":5},"reason":"STATIC","variant":"on","metadata":{"x":1}},{"key":"other","value":true},{"key":"flag:b","errorCode":"FLAG_NOT_FOUND"},{"key":"flag:c","value":true}]}"#;
    let response = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nETag: \"7\"\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let (request, found) = polled_with(response.into_bytes(), None).await;
    let request = request.to_ascii_lowercase();
    assert!(
        request.starts_with("post /flags/ofrep/v1/evaluate/flags http/1.1\r\n"),
        "{request}"
    );
    for line in [
        "content-type: application/json\r\n",
        "authorization: bearer opensesame\r\n",
    ] {
        assert!(request.contains(line), "{request}");
    }
    assert!(!request.contains("if-none-match"), "{request}");
    let PolledFlags::Values { values, tag } = found.unwrap() else {
        panic!("these are values");
    };
    assert_eq!(tag.unwrap(), "\"7\"");
    let names: Vec<_> = values.keys().map(String::as_str).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(values["b"], Ok(None));
    assert_eq!(
        values["a"].clone().unwrap().unwrap().to_string(),
        "translate 5 %"
    );
    assert!(values["c"].is_err());
}

#[tokio::test]
async fn a_tag_is_sent_again_and_304_means_no_change() {
    let tag = HeaderValue::from_static("\"7\"");
    let unchanged = b"HTTP/1.1 304 Not Modified\r\nETag: \"7\"\r\n\r\n".to_vec();
    let (request, found) = polled_with(unchanged.clone(), Some(&tag)).await;
    assert!(request.contains("if-none-match: \"7\"\r\n"), "{request}");
    assert_eq!(found.unwrap(), PolledFlags::Unchanged);
    // Without a tag, there is nothing that it could mean.
    let (_, found) = polled_with(unchanged, None).await;
    assert!(matches!(
        found,
        Err(PollError::Status(StatusCode::NOT_MODIFIED))
    ));
}

#[tokio::test]
async fn an_error_has_its_kind() {
    for status in ["401 Unauthorized", "403 Forbidden"] {
        let found = polled(status, "").await;
        assert!(
            matches!(found, Err(PollError::Unauthorized(_))),
            "{found:?}"
        );
    }
    for (status, pause) in [
        ("429 Too Many Requests\r\nRetry-After: 7", Some(7)),
        (
            "429 Too Many Requests\r\nRetry-Later: 1970-01-01T00:00:00Z",
            Some(0),
        ),
        ("503 Service Unavailable\r\nRetry-After: soon", None),
    ] {
        let found = polled(status, "").await.unwrap_err();
        assert!(matches!(found, PollError::Busy { .. }), "{found:?}");
        assert_eq!(found.retry_after(), pause.map(Duration::from_secs));
    }
    for status in [
        "500 Internal Server Error",
        "404 Not Found",
        "302 Found\r\nLocation: http://127.0.0.1:1/",
        "204 No Content",
    ] {
        let found = polled(status, "{\"errorDetails\":\"x\"}").await;
        assert!(matches!(found, Err(PollError::Status(_))), "{found:?}");
    }
    for body in ["", "{", "{\"flags\":[{\"key\":1}]}"] {
        let found = polled("200 OK", body).await;
        assert!(matches!(found, Err(PollError::Invalid(_))), "{found:?}");
    }
    let found = polled_with(b"gibberish\r\n\r\n".to_vec(), None).await.1;
    assert!(matches!(found, Err(PollError::Broken(_))), "{found:?}");
    let cut = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}".to_vec();
    let found = polled_with(cut, None).await.1;
    assert!(matches!(found, Err(PollError::Broken(_))), "{found:?}");
}

#[tokio::test]
async fn a_long_response_is_not_read_to_its_end() {
    let mut response = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n".to_vec();
    response.resize(LONGEST_RESPONSE + 1000, b' ');
    let found = polled_with(response, None).await.1;
    assert!(matches!(found, Err(PollError::TooLong)), "{found:?}");
}

#[tokio::test]
async fn a_slow_server_and_a_missing_one_end_the_poll() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let short = settings(&address, Duration::from_millis(50));
    let found = short.poll(None).await;
    assert!(matches!(found, Err(PollError::Late(_))), "{found:?}");
    drop(listener);
    let found = settings(&address, LONG).poll(None).await;
    assert!(matches!(found, Err(PollError::Unreachable(_))), "{found:?}");
}

#[test]
fn the_token_is_never_shown() {
    let settings = settings("127.0.0.1:1", LONG);
    assert!(!format!("{settings:?}").contains("opensesame"));
    assert_eq!(settings.identity(), "http://127.0.0.1:1/flags/ flag:");
}
