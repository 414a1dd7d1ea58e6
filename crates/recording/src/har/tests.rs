use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::recording::{
    Headers, RecordedBody, RecordedCall, RecordedRequest, RecordedResponse, RecordedTime, Responder,
};
use dualgauge_patterns::side::Side;

/// Entries as Chromium, Firefox and other programs write them.
fn file(entries: &str) -> String {
    format!(
        r#"{{"log":{{"version":"1.2","creator":{{"name":"t","version":"1"}},"entries":[{entries}]}}}}"#
    )
}

fn only(entry: &str) -> Result<HarCall, EntryFault> {
    let mut calls = read(file(entry).as_bytes()).unwrap();
    assert_eq!(calls.len(), 1);
    calls.remove(0)
}

#[test]
fn an_entry_of_a_browser_is_a_call() {
    let found = only(
        r#"{
        "_initiator": {"type": "script"}, "_priority": "High", "pageref": "page_1", "connection": "443",
        "startedDateTime": "2026-06-30T14:00:00.250+02:00", "time": 52.5,
        "request": {"method": "POST", "url": "https://api.example:8443/a/1?q=x%20y#top", "httpVersion": "h2",
          "headers": [{"name": ":authority", "value": "api.example"}, {"name": "Content-Type", "value": "application/json"}],
          "queryString": [], "cookies": [], "headersSize": -1, "bodySize": 9,
          "postData": {"mimeType": "application/json", "text": "{ \"a\": 1.0 }"}},
        "response": {"status": 200, "statusText": "", "httpVersion": "h2",
          "headers": [{"name": "content-encoding", "value": "br"}, {"name": "ETag", "value": "\"1\""}], "cookies": [],
          "content": {"size": 4, "mimeType": "image/png", "text": "AAEC\r\n/w==", "encoding": "base64", "compression": 0},
          "redirectURL": "", "headersSize": -1, "bodySize": 4, "_transferSize": 40, "_error": null},
        "cache": {}, "serverIPAddress": "192.0.2.1",
        "timings": {"blocked": 1.5, "dns": -1, "connect": 20, "send": 0.1, "wait": 30.25, "receive": 1.0, "ssl": 12}}"#,
    );
    let found = found.unwrap();
    assert!(found.has_all_headers);
    let HarCall { origin, call, .. } = found;
    assert_eq!(origin, "https://api.example:8443");
    assert_eq!(call.time.to_string(), "2026-06-30T12:00:00.250Z");
    assert_eq!((call.side, call.complete), (Side::Rest, true));
    let request = &call.request;
    assert_eq!(
        (request.method.as_str(), request.target.as_str()),
        ("POST", "/a/1?q=x%20y")
    );
    let json = [("content-type".to_owned(), "application/json".to_owned())];
    assert_eq!(request.headers, json);
    assert_eq!(request.body.content().unwrap(), r#"{"a":1.0}"#);
    let response = call.response.unwrap();
    assert_eq!(response.headers, [("etag".to_owned(), "\"1\"".to_owned())]);
    assert_eq!(
        response.body,
        RecordedBody::Bytes(Bytes::from_static(&[0, 1, 2, 255]))
    );
    assert_eq!(
        response.latency_us, 31_250,
        "without the time of connecting"
    );
}

/// The shortest entry, with other members of its request and of its response.
fn entry(request: &str, response: &str) -> String {
    format!(
        r#"{{"request":{{"method":"GET","url":"http://a/b"{request}}},"response":{{"status":200{response}}}}}"#
    )
}

#[test]
fn a_body_that_is_not_there_is_told_from_an_empty_one() {
    let of = |response: &str| {
        let call = only(&entry("", response)).unwrap().call;
        (call.response.unwrap().body, call.complete)
    };
    assert_eq!(of(""), (RecordedBody::Empty, true));
    assert_eq!(of(r#","content":{"size":0}"#), (RecordedBody::Empty, true));
    assert_eq!(
        of(r#","content":{"size":7}"#),
        (RecordedBody::Omitted(7), false)
    );
    assert_eq!(
        of(r#","content":{"size":-1}"#),
        (RecordedBody::Omitted(0), false)
    );
    let (body, is_whole) = of(r#","content":{"size":3,"text":"ab"}"#);
    assert_eq!(
        (body, is_whole),
        (RecordedBody::Text("ab".into()), false),
        "cut by the browser"
    );
    assert!(
        of(r#","content":{"size":1,"text":"ab"}"#).1,
        "its compressed size"
    );
    let of = |request: &str| {
        let call = only(&entry(request, "")).unwrap().call;
        (call.request.body, call.complete)
    };
    let upload = r#","headers":[{"name":"Content-Length","value":"200"}],"bodySize":0"#;
    assert_eq!(of(upload), (RecordedBody::Omitted(200), false), "Chromium");
    let empty = r#","headers":[{"name":"Content-Length","value":"0"}],"bodySize":0"#;
    assert_eq!(of(empty), (RecordedBody::Empty, true));
    assert_eq!(
        of(r#","bodySize":3,"postData":{"text":""}"#).0,
        RecordedBody::Omitted(3)
    );
    let head = r#"{"request":{"method":"HEAD","url":"http://a/b"},"response":{"status":200,"content":{"size":9}}}"#;
    let call = only(head).unwrap().call;
    assert_eq!(call.response.unwrap().body, RecordedBody::Empty);
}

#[test]
fn forms_and_messages_are_read_from_post_data() {
    let body = |data: &str| {
        let call = only(&entry(&format!(r#","postData":{data}"#), ""))
            .unwrap()
            .call;
        (call.request.body, call.side)
    };
    let text = |text: &str| RecordedBody::Text(text.into());
    let form = r#"{"mimeType":"application/x-www-form-urlencoded; charset=utf-8","params":[{"name":"a b","value":"1&2"},{"name":"c"}]}"#;
    assert_eq!(body(form), (text("a%20b=1%262&c="), Side::Rest));
    let file = r#"{"mimeType":"multipart/form-data","params":[{"name":"a","fileName":"b.png"}]}"#;
    assert_eq!(body(file).0, RecordedBody::Omitted(0));
    let coded = r#"{"mimeType":"text/plain","text":"aGk=","encoding":"base64"}"#;
    assert_eq!(body(coded).0, text("hi"));
    let message = r#"{"mimeType":"application/json","text":"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}"}"#;
    assert_eq!(body(message).1, Side::Rpc);
    let batch =
        r#"{"mimeType":"application/json","text":"[{\"jsonrpc\":\"2.0\",\"method\":\"m\"}]"}"#;
    assert_eq!(body(batch).1, Side::Rpc);
    let list = r#"{"mimeType":"application/json","text":"[1]"}"#;
    assert_eq!(body(list).1, Side::Rest);
}

#[test]
fn an_entry_that_is_no_call_does_not_hide_the_others() {
    let entries = [
        r#"{"request":{"method":"GET","url":"data:image/png;base64,AA"},"response":{"status":200}}"#,
        r#"{"request":{"method":"GET","url":"wss://a/socket"},"response":{"status":101}}"#,
        r#"{"request":{"method":"GET"},"response":{"status":200}}"#,
        r#"{"request":{"method":"GET","url":"http://a/"},"response":{"status":200,"content":{"text":"*","encoding":"base64"}}}"#,
        r#"7"#,
        r#"{"request":{"method":"GET","url":"http://a"},"response":{"status":0}}"#,
    ];
    let found = read(file(&entries.join(",")).as_bytes()).unwrap();
    let faults: Vec<_> = found
        .iter()
        .map(|one| {
            one.as_ref()
                .err()
                .map(ToString::to_string)
                .unwrap_or_default()
        })
        .collect();
    assert_eq!(
        faults,
        [
            "its URL is not one of HTTP",
            "its URL is not one of HTTP",
            "missing field `url`",
            "its response body is not valid base64",
            "invalid type: integer `7`, expected an object with `request` and `response`",
            "",
        ]
    );
    let cancelled = found.into_iter().next_back().unwrap().unwrap().call;
    assert_eq!(
        (cancelled.request.target.as_str(), cancelled.response),
        ("/", None)
    );
}

#[test]
fn truncated_and_foreign_files_have_clear_faults() {
    let fault = |text: &[u8]| read(text).unwrap_err().to_string();
    let whole = file(&entry("", ""));
    for end in 0..whole.len() {
        let cut = fault(&whole.as_bytes()[..end]);
        assert!(cut.contains("it was truncated"), "{end}: {cut}");
    }
    let foreign = fault(br#"{"openapi":"3.1.0"}"#);
    assert!(
        foreign.starts_with("this is no HAR file: missing field `log`"),
        "{foreign}"
    );
    assert!(fault(b"GET / HTTP/1.1").starts_with("the file is not JSON: "));
    let number = fault(b"127.0.0.1 - - [x]");
    assert!(number.contains("expected an object with `log`"), "{number}");
    assert!(fault(br#"{"log":{"entries":{}}}"#).starts_with("this is no HAR file: "));
    assert!(fault(&[0xff, 0xfe]).starts_with("the file is not JSON: "));
    let marked = [b"\xef\xbb\xbf", whole.as_bytes()].concat();
    assert_eq!(read(&marked).unwrap().len(), 1);
    let many = vec!["0"; MAX_ENTRIES + 1].join(",");
    assert_eq!(read(file(&many).as_bytes()).unwrap_err(), HarError::TooMany);
}

fn headers() -> impl Strategy<Value = Headers> {
    let names = prop::sample::select(vec!["content-type", "etag", "x-a", "location"]);
    let pair = (names, "[ -~]{0,8}").prop_map(|(name, value)| (name.to_owned(), value));
    prop::collection::vec(pair, 0..3)
}

fn body() -> impl Strategy<Value = RecordedBody> {
    prop_oneof![
        (1..1_000_u64).prop_map(RecordedBody::Omitted),
        prop::collection::vec(any::<u8>(), 0..12)
            .prop_map(|bytes| RecordedBody::new(&Bytes::from(bytes))),
        Just(RecordedBody::new(&Bytes::from_static(
            b"{\"a\":[1.50,\"\\u00e9\"]}"
        ))),
        "[a-zé\\n\"]{0,9}".prop_map(|text| RecordedBody::new(&Bytes::from(text))),
    ]
}

prop_compose! {
    fn any_call()(
        method in prop::sample::select(vec!["GET", "POST"]),
        target in "/[a-z/]{0,5}(\\?[a-z=&%]{0,5})?",
        (sent, received) in (headers(), headers()),
        (asked, answered) in (body(), body()),
        status in prop::option::of(prop_oneof![200..204_u16, 400..600_u16]),
        (time, latency_us) in (0..4_000_000_000_000_i64, 0..100_000_000_u64),
        redacted in prop::collection::vec("[a-z./]{1,9}", 0..2),
        complete in any::<bool>(),
    ) -> RecordedCall {
        RecordedCall {
            time: RecordedTime::from_unix_ms(time),
            side: Side::Rpc,
            route: Some("r".into()),
            client: None,
            stage: Some("shadow".into()),
            reason: "default".into(),
            request: RecordedRequest { method: method.into(), target, headers: sent, body: asked },
            response: status.map(|status| RecordedResponse {
                status,
                from: Responder::Proxy,
                failure: Some("upstream_timeout".into()),
                headers: received,
                body: answered,
                latency_us,
            }),
            redacted,
            complete,
        }
    }
}

proptest! {
    #[test]
    fn calls_are_read_as_they_were_written(calls in prop::collection::vec(any_call(), 0..4)) {
        let (mut writer, mut written) = Writer::begin("http://a:1", "test", "0");
        for call in &calls {
            written.extend(writer.entry(call));
        }
        written.extend(writer.end());
        let read = read(&written).unwrap();
        let read: Vec<_> = read.into_iter().map(|one| one.unwrap()).collect();
        prop_assert!(read.iter().all(|one| one.origin == "http://a:1" && !one.has_all_headers));
        let read: Vec<_> = read.into_iter().map(|one| one.call).collect();
        prop_assert_eq!(read, calls);
        check_any_file(&written);
    }
}
