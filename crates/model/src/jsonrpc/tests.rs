use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use dualgauge_patterns::json::Json;

const LIMITS: MessageLimits = MessageLimits {
    depth: 128,
    batch: 100,
};

fn read(text: &str) -> Result<Incoming, MessageError> {
    parse(&Bytes::copy_from_slice(text.as_bytes()), LIMITS)
}

fn call(text: &str) -> Call {
    match read(text) {
        Ok(Incoming::Single(MessageItem::Call(call))) => call,
        other => panic!("{text}: {other:?}"),
    }
}

fn invalid(text: &str) -> (String, String) {
    match read(text) {
        Ok(Incoming::Single(MessageItem::Invalid(invalid))) => (
            String::from_utf8(invalid.id.as_bytes().to_vec()).unwrap(),
            invalid.why.into_owned(),
        ),
        other => panic!("{text}: {other:?}"),
    }
}

fn response(text: &str) -> Result<Response, String> {
    parse_response(&Bytes::copy_from_slice(text.as_bytes()), 128).map_err(|fault| fault.to_string())
}

#[test]
fn a_call_keeps_the_bytes_of_its_id_and_params() {
    let call = call(
        r#" {"params" : [1.10, {"a" :1e400}] ,"id": 123456789012345678901234567890,"jsonrpc":"2.0","method":"a\/b"} "#,
    );
    assert_eq!(&*call.method, "a/b");
    assert_eq!(
        call.id.unwrap().as_bytes(),
        b"123456789012345678901234567890"
    );
    assert_eq!(call.params.unwrap().as_bytes(), br#"[1.10, {"a" :1e400}]"#);
    assert_eq!(call.text.as_bytes()[0], b'{');
}

#[test]
fn an_absent_id_and_a_null_id_are_distinguished() {
    assert!(call(r#"{"jsonrpc":"2.0","method":"m"}"#).id.is_none());
    assert_eq!(
        call(r#"{"jsonrpc":"2.0","method":"m","id":null}"#)
            .id
            .unwrap()
            .as_bytes(),
        b"null"
    );
}

#[test]
fn only_the_id_is_replaced() {
    let text = r#" {"a":{"id":1.5}, "id" : 1.5 ,"jsonrpc":"2.0","method":"m","b":"\u0000"}"#;
    let replaced = call(text).with_id(7);
    assert_eq!(
        replaced,
        r#"{"a":{"id":1.5}, "id" : 7 ,"jsonrpc":"2.0","method":"m","b":"\u0000"}"#
    );
}

#[test]
fn ids_that_real_servers_damage_do_not_travel() {
    let is_portable =
        |text: &'static str| RequestId::new(Json::literal(text)).unwrap().is_portable();
    for safe in [
        "\"x\"",
        "\"\"",
        "0",
        "-1",
        "9007199254740992",
        "-9007199254740992",
    ] {
        assert!(is_portable(safe), "{safe}");
    }
    for unsafe_id in [
        "null",
        "1.5",
        "1e3",
        "1.0",
        "9007199254740993",
        "123456789012345678901234567890",
    ] {
        assert!(!is_portable(unsafe_id), "{unsafe_id}");
    }
    for no_id in ["true", "[]", "{}"] {
        assert!(RequestId::new(Json::literal(no_id)).is_none(), "{no_id}");
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn an_invalid_message_is_refused_with_a_reason_and_its_readable_id() {
    let rows = [
        (
            r#"{"jsonrpc":"2.0","id":1,"method":1}"#,
            "1",
            "`method` must be a string",
        ),
        (r#"{"jsonrpc":"2.0","id":1}"#, "1", "`method` is missing"),
        (
            r#"{"id":"a","method":"m"}"#,
            "\"a\"",
            "`jsonrpc` is missing; it must be \"2.0\"",
        ),
        (
            r#"{"jsonrpc":"1.0","id":2,"method":"m"}"#,
            "2",
            "`jsonrpc` must be the string \"2.0\"",
        ),
        (
            r#"{"jsonrpc":2.0,"id":2,"method":"m"}"#,
            "2",
            "`jsonrpc` must be the string \"2.0\"",
        ),
        (
            r#"{"jsonrpc":"2.0","id":true,"method":"m"}"#,
            "null",
            "`id` must be a string, a number or null",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}"#,
            "null",
            "the member `id` is given twice",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","Method":"n"}"#,
            "null",
            "the member `Method` differs from `method` only in letter case",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","param\u017f":{}}"#,
            "null",
            "the member `paramſ` differs from `params` only in letter case",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","\u006dethod":"n"}"#,
            "null",
            "the member `method` is given twice",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","result":1}"#,
            "1",
            "a message with `method` must not have `result` or `error`",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":null}"#,
            "1",
            "`params` must be an object or an array, not null; leave it out where there are none",
        ),
        ("5", "null", "a message must be an object, not a number"),
    ];
    for (text, id, why) in rows {
        assert_eq!(invalid(text), (id.to_owned(), why.to_owned()), "{text}");
    }
}

#[test]
fn members_that_the_specification_does_not_name_are_no_fault() {
    let call =
        call(r#"{"jsonrpc":"2.0","method":"m","auth":"x","auth":"y","metadata":{},"Params2":1}"#);
    assert!(call.params.is_none());
}

#[test]
fn a_batch_is_read_item_by_item() {
    let Ok(Incoming::Batch(items)) =
        read(r#"[1, {"jsonrpc":"2.0","method":"m"}, {"jsonrpc":"2.0","id":3,"result":1}]"#)
    else {
        panic!("no batch");
    };
    assert!(
        matches!(
            &items[..],
            [
                MessageItem::Invalid(_),
                MessageItem::Call(_),
                MessageItem::Response(_)
            ]
        ),
        "{items:?}"
    );
}

#[test]
fn a_batch_beyond_its_limits_is_refused_whole() {
    assert_eq!(read("[]").unwrap_err(), MessageError::EmptyBatch);
    let many = format!("[{}]", vec!["1"; 101].join(","));
    assert_eq!(
        read(&many).unwrap_err(),
        MessageError::BatchTooLarge {
            found: 101,
            limit: 100
        }
    );
    assert!(matches!(read("[1,").unwrap_err(), MessageError::Json(_)));
    assert!(matches!(
        read(&"[".repeat(500)).unwrap_err(),
        MessageError::TooDeep(_)
    ));
}

#[test]
fn a_response_may_leave_out_a_result_that_is_null() {
    let read = |text: &'static str| parse_response_with(&text.into(), 32, NoResult::Null);
    let response = read(r#"{"jsonrpc":"2.0","id":1}"#).unwrap();
    assert_eq!(response.reply, ResponseReply::Result(Json::literal("null")));
    for text in [
        r#"{"id":1}"#,
        r#"{"jsonrpc":"2.0"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#,
    ] {
        assert!(read(text).is_err(), "{text}");
    }
}

#[test]
fn responses_are_read_and_other_messages_are_rejected() {
    assert_eq!(
        response(r#"{"id":1,"jsonrpc":"2.0","result":1.10}"#)
            .unwrap()
            .reply,
        ResponseReply::Result(Json::literal("1.10"))
    );
    assert_eq!(
        response(r#"{"id":1,"result":null}"#).unwrap().reply,
        ResponseReply::Result(Json::literal("null"))
    );
    assert!(matches!(
        response(r#"{"id":1,"result":2,"error":null}"#)
            .unwrap()
            .reply,
        ResponseReply::Result(_)
    ));
    let rows = [
        (
            r#"{"jsonrpc":"2.0","id":1}"#,
            "it has neither `result` nor `error`",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":""}}"#,
            "it has both `result` and `error`",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"error":"x"}"#,
            "`error` is a string, not an object",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":1.5}}"#,
            "`error.code` is not an integer",
        ),
        (
            r#"{"jsonrpc":"2.0","method":"m"}"#,
            "it is a request or a notification of the server",
        ),
        (
            r#"[{"jsonrpc":"2.0","id":1,"result":1}]"#,
            "it is an array, not one object",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":1,"result":2}"#,
            "the member `result` is given twice",
        ),
    ];
    for (text, why) in rows {
        let words = response(text).unwrap_err();
        assert_eq!(
            words,
            format!("the answer is not a JSON-RPC 2.0 response: {why}"),
            "{text}"
        );
    }
    assert!(
        response("<html>")
            .unwrap_err()
            .starts_with("the answer is not JSON")
    );
}

fn any_id() -> impl Strategy<Value = String> {
    prop_oneof![
        "-?(0|[1-9][0-9]{0,30})",
        "\"[a-z\u{e9} ]{0,9}\"",
        Just("null".to_owned()),
        "[1-9]\\.[0-9]{1,3}"
    ]
}

proptest! {
    #[test]
    fn a_written_message_is_read_back_unchanged(id in any_id(), method in any::<String>(), value in "[1-9][0-9]{0,40}") {
        let mut method_json = Vec::new();
        dualgauge_patterns::json::encode(&method, &mut method_json);
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{},"params":[{value}]}}"#, String::from_utf8(method_json).unwrap());
        let read = call(&text);
        prop_assert_eq!(&*read.method, &method);
        let id = read.id.clone().unwrap();
        let answer = result(&id, read.params.clone().unwrap().into_bytes().into()).into_bytes();
        let response = parse_response(&answer, 8).unwrap();
        let answered = response.id.unwrap();
        prop_assert_eq!(answered.as_bytes(), id.as_bytes());
        prop_assert_eq!(response.reply, ResponseReply::Result(read.params.clone().unwrap()));
        let sent = request(9, &read.method, read.params.unwrap().into_bytes().into(), &[]).into_bytes();
        prop_assert_eq!(&*call(std::str::from_utf8(&sent).unwrap()).method, method);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
        let bytes = Bytes::from(bytes);
        let _ = parse(&bytes, LIMITS);
        let _ = parse_response(&bytes, 128);
    }
}

#[test]
fn a_cancellation_is_renamed_and_nothing_else() {
    for (message, expected) in [
        (
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"reason":"\u0061","requestId" : 1.50 ,"_meta":{"requestId":1.50}}}"#,
            Some(
                r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"reason":"\u0061","requestId" : 7 ,"_meta":{"requestId":1.50}}}"#,
            ),
        ),
        (
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}"#,
            None,
        ),
        (
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":[1]}"#,
            None,
        ),
    ] {
        let renamed = with_cancelled_id(&message.into(), 7, 8);
        assert_eq!(renamed.as_deref(), expected.map(str::as_bytes), "{message}");
    }
}
