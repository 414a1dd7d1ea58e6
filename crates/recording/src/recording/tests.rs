use bytes::Bytes;
use proptest::prelude::*;

use super::law::read;
use super::*;
use dualgauge_patterns::side::Side;

fn call(body: &'static str) -> RecordedCall {
    RecordedCall {
        time: RecordedTime::parse("2026-06-30T12:00:00.250Z").unwrap(),
        side: Side::Rest,
        route: Some("get_order".into()),
        client: Some("ios-app".into()),
        stage: Some("shadow".into()),
        reason: "flag `ios`".into(),
        request: RecordedRequest {
            method: "POST".into(),
            target: "/orders/1?q=a".into(),
            headers: vec![("content-type".into(), "application/json".into())],
            body: RecordedBody::new(&Bytes::from_static(body.as_bytes())),
        },
        response: Some(RecordedResponse {
            status: 200,
            from: Responder::Old,
            failure: None,
            headers: Vec::new(),
            body: RecordedBody::Omitted(12),
            latency_us: 1500,
        }),
        redacted: vec!["request.body/token".into()],
        complete: true,
    }
}

fn file(calls: &[RecordedCall]) -> Vec<u8> {
    let mut file = header_line(RecordedTime::default(), "dualgauge 0.1.0");
    for call in calls {
        file.extend(write_call(call).unwrap());
    }
    file
}

/// The faults of a file.
fn faults(file: &[u8]) -> Vec<String> {
    let found = read(file, 5).into_iter();
    found
        .filter_map(Result::err)
        .map(|fault| fault.to_string())
        .collect()
}

#[test]
fn a_call_is_one_line() {
    let line = write_call(&call(" { \"b\" : 1.50, \"a\": \"x\\u0041\\n\" } ")).unwrap();
    assert_eq!(
        String::from_utf8(line).unwrap(),
        concat!(
            r#"{"time":"2026-06-30T12:00:00.250Z","side":"rest","route":"get_order","client":"ios-app","#,
            r#""stage":"shadow","reason":"flag `ios`","request":{"method":"POST","target":"/orders/1?q=a","#,
            r#""headers":[["content-type","application/json"]],"body":{"json":{"b":1.50,"a":"x\u0041\n"}}},"#,
            r#""response":{"status":200,"from":"old","body":{"omitted":12},"latency_us":1500},"#,
            r#""redacted":["request.body/token"],"complete":true}"#,
            "\n"
        )
    );
}

#[test]
fn files_may_be_concatenated_and_have_blank_lines() {
    let one = file(&[call("{}")]);
    let both = [&one[..], b"\r\n\n", &one[..]].concat();
    let calls: Result<Vec<_>, _> = read(&both, 3).into_iter().collect();
    assert_eq!(calls, Ok(vec![call("{}"), call("{}")]));
}

#[test]
fn unknown_members_are_ignored() {
    let text = String::from_utf8(file(&[call("{}")])).unwrap();
    let text = text.replace("\"complete\":true", "\"complete\":true,\"later\":[{}]");
    assert_eq!(read(text.as_bytes(), 9), [Ok(call("{}"))]);
}

#[test]
fn a_body_is_json_or_text_or_bytes() {
    let body = |text: &'static [u8]| RecordedBody::new(&Bytes::from_static(text));
    assert_eq!(body(b""), RecordedBody::Empty);
    assert!(matches!(body(b" [1] "), RecordedBody::Json(json) if json.as_bytes() == b"[1]"));
    assert_eq!(body(b"a=1"), RecordedBody::Text("a=1".into()));
    assert_eq!(
        body(b"\xff"),
        RecordedBody::Bytes(Bytes::from_static(b"\xff"))
    );
    let deep = Bytes::from("[".repeat(600) + &"]".repeat(600));
    assert!(matches!(RecordedBody::new(&deep), RecordedBody::Text(_)));
}

#[test]
fn every_fault_has_its_line() {
    let whole = file(&[call("{}"), call("{}")]);
    let cut = &whole[..whole.len() - 9];
    let newer = b"{\"format\":\"dualgauge-recording\",\"version\":2}\n{}\n";
    let wrong = [&whole[..], b"{\"time\":\"now\"}\n", &whole[..]].concat();
    assert_eq!(
        faults(cut),
        ["line 3: the file ends inside this line; the calls before it are whole"]
    );
    assert_eq!(read(cut, 64).len(), 2, "one call, and the fault");
    assert_eq!(
        faults(newer),
        [
            "line 1: the recording has version 2, and this program reads versions up to 1; use a newer dualgauge"
        ]
    );
    assert_eq!(
        faults(b""),
        [
            "line 1: the file is empty; a recording begins with a line that has `\"format\":\"dualgauge-recording\"`"
        ]
    );
    let foreign =
        "line 1: this is no recording: the first line has no `\"format\":\"dualgauge-recording\"`";
    assert_eq!(
        faults(b"{\"log\": {\"version\":\"1.2\"}}"),
        [format!("{foreign}; it looks like a HAR file")]
    );
    assert_eq!(
        faults(b"{\n  \"log\": {\n"),
        [format!("{foreign}; it looks like a HAR file")]
    );
    assert_eq!(faults(b"127.0.0.1 - - [x]\nmore"), [foreign]);
    assert_eq!(faults(b"\x1f\x8b\x08\n"), [foreign]);
    assert_eq!(
        faults(&wrong),
        [
            "line 4: this is no recorded call: column 14: a time such as `2026-06-30T12:00:00.000Z` was expected"
        ]
    );
    assert_eq!(read(&wrong, 64).len(), 5, "the lines after it are read");
}

#[test]
fn a_long_line_ends_the_file() {
    let mut long = file(&[call("{}")]);
    long.resize(long.len() + MAX_LINE + 1, b'x');
    long.extend(b"\n{}\n");
    let found = read(&long, 1 << 20);
    assert_eq!(found.len(), 2);
    assert_eq!(
        found[1].as_ref().unwrap_err().to_string(),
        "line 3: the line is longer than 16777216 bytes"
    );
    let mut large = call("{}");
    large.request.body = RecordedBody::Text("x".repeat(MAX_LINE));
    assert_eq!(write_call(&large), None);
}

#[test]
fn times_are_rfc_3339_in_utc() {
    let parsed = |text| RecordedTime::parse(text).map(|time| time.to_string());
    assert_eq!(
        parsed("2026-06-30T14:00:00.1239+02:00").as_deref(),
        Some("2026-06-30T12:00:00.123Z")
    );
    assert_eq!(parsed("1969-12-31T23:59:59Z"), None);
    assert_eq!(parsed("yesterday"), None);
    assert_eq!(
        RecordedTime::from_unix_ms(i64::MAX).to_string(),
        "9999-12-31T23:59:59.999Z"
    );
}

fn any_body() -> impl Strategy<Value = RecordedBody> {
    prop_oneof![
        Just(RecordedBody::Empty),
        any::<u64>().prop_map(RecordedBody::Omitted),
        prop::collection::vec(any::<u8>(), 1..40)
            .prop_map(|content| RecordedBody::new(&content.into())),
        "[\\[{]( \"k\" : [0-9]{1,40}e-2 ,)?\"\\\\ud800\"[\\]}:]*"
            .prop_map(|text| RecordedBody::new(&text.into())),
        "(\\[ )*\"[a-z\\\\n\u{2028}]{0,8}\"( \\])*"
            .prop_map(|text| RecordedBody::new(&text.into())),
    ]
}

prop_compose! {
    fn any_message()(
        text in ".{0,12}",
        headers in prop::collection::vec(("[a-z-]{1,9}", ".{0,12}"), 0..4),
        body in any_body(),
    ) -> (String, Headers, RecordedBody) {
        (text, headers, body)
    }
}

prop_compose! {
    fn any_call()(
        time in any::<i64>().prop_map(RecordedTime::from_unix_ms),
        side in prop::sample::select(&Side::ALL[..]),
        names in prop::collection::vec(prop::option::of(".{0,9}"), 4),
        request in any_message(),
        response in prop::option::of((any_message(), any::<u16>(), any::<u64>())),
        from in prop::sample::select(&[Responder::Old, Responder::New, Responder::Proxy][..]),
        redacted in prop::collection::vec(".{0,9}", 0..3),
        complete in any::<bool>(),
    ) -> RecordedCall {
        let (target, headers, body) = request;
        RecordedCall {
            time,
            side,
            route: names[0].clone(),
            client: names[1].clone(),
            stage: names[2].clone(),
            reason: target.clone(),
            request: RecordedRequest { method: "GET".into(), target, headers, body },
            response: response.map(|((_, headers, body), status, latency_us)| RecordedResponse {
                status,
                from,
                failure: names[3].clone(),
                headers,
                body,
                latency_us,
            }),
            redacted,
            complete,
        }
    }
}

proptest! {
    #[test]
    fn written_calls_are_read(calls in prop::collection::vec(any_call(), 0..4), chunk in 1..90_usize) {
        let found: Result<Vec<_>, _> = read(&file(&calls), chunk).into_iter().collect();
        prop_assert_eq!(found, Ok(calls));
    }

    #[test]
    fn any_bytes_are_read_alike_in_any_chunks(
        calls in prop::collection::vec(any_call(), 0..2),
        noise in prop::collection::vec(any::<u8>(), 0..60),
        at in any::<prop::sample::Index>(),
    ) {
        let mut data = file(&calls);
        let at = at.index(data.len() + 1);
        data.splice(at..at, noise);
        check_any_cut(&data);
    }
}
