use std::fmt::Write;

use bytes::Bytes;
use http::HeaderMap;
use http::header::{CONTENT_TYPE, LOCATION};
use proptest::prelude::*;

use super::builtin::{EmptySuccess, rest_to_rpc};
use super::*;
use crate::failure::{Failure, FailureCodes, Reason};
use crate::jsonrpc::{ErrorObject, ResponseReply};
use crate::mcp::ResultType;
use dualgauge_patterns::json::Json;

const LIMITS: ReplyLimits = ReplyLimits {
    depth: 128,
    error_text: 16,
};

fn rest(status: u16, content_type: &str, body: &str) -> RestReply {
    let mut headers = HeaderMap::new();
    if !content_type.is_empty() {
        headers.insert(CONTENT_TYPE, content_type.parse().unwrap());
    }
    RestReply {
        status,
        headers,
        body: Bytes::copy_from_slice(body.as_bytes()),
    }
}

/// Returns a received answer in the form in which a client would forward it.
fn sent(answer: RestAnswer) -> RestReply {
    let mut headers = HeaderMap::from_iter(answer.headers);
    if let Some(kind) = answer.content_type {
        headers.insert(CONTENT_TYPE, kind.parse().unwrap());
    }
    RestReply {
        status: answer.status,
        headers,
        body: answer.body.into_bytes(),
    }
}

fn built_in(reply: &RestReply) -> Result<RpcAnswer, Failure> {
    Ok(rest_to_rpc(reply, LIMITS, EmptySuccess::Fault)?.0)
}

#[test]
fn the_member_result_type_of_an_answer_is_never_overlooked() {
    for (body, expected) in [
        (r#"{"resultType":"input_required"}"#, ResultType::Possible),
        (r#"{"a":1, "resultType" : 1}"#, ResultType::Possible),
        (
            r#"{"result\u0054ype":"input_required"}"#,
            ResultType::Possible,
        ),
        (r#"{"a\n":1}"#, ResultType::Possible),
        (
            r#"{"a":{"resultType":"input_required"}}"#,
            ResultType::Absent,
        ),
        (r#"{"a":"resultType \u0054"}"#, ResultType::Absent),
        (r#"[{"resultType":"input_required"}]"#, ResultType::Absent),
        ("{}", ResultType::Absent),
    ] {
        let reply = rest(200, "application/json", body);
        let (_, result_type) = rest_to_rpc(&reply, LIMITS, EmptySuccess::Fault).unwrap();
        assert_eq!(result_type, expected, "{body}");
    }
}

fn rpc(status: u16, content_type: &str, body: &str) -> String {
    match built_in(&rest(status, content_type, body)) {
        Ok(RpcAnswer::Result(result)) => {
            format!("result {}", String::from_utf8_lossy(&result.into_bytes()))
        }
        Ok(RpcAnswer::Error(error)) => shown(&error),
        Err(failure) => failure.to_string(),
    }
}

fn shown(error: &ErrorObject) -> String {
    let data = error.data.as_ref().map_or("-".into(), |data| {
        String::from_utf8_lossy(data.as_bytes()).into_owned()
    });
    format!(
        "error {} {} {data}",
        error.code,
        String::from_utf8_lossy(error.message.as_bytes())
    )
}

fn error(code: i64, message: &'static str, data: Option<&'static str>) -> ErrorObject {
    ErrorObject {
        code,
        message: Json::literal(message),
        data: data.map(Json::literal),
    }
}

fn answer(reply: ResponseReply) -> String {
    let answer = rpc_to_rest(reply);
    format!(
        "{} {} {}",
        answer.status,
        answer.content_type.unwrap_or_default(),
        String::from_utf8_lossy(&answer.body.into_bytes())
    )
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn rest_answers_have_their_built_in_form_for_rpc_clients() {
    for (status, kind, body, expected) in [
        (
            200,
            "application/json",
            " {\"a\": 1.10} ",
            "result {\"a\": 1.10}",
        ),
        (201, "application/json", "{}", "result {}"),
        (204, "", "", "result null"),
        (201, "", "", "result null"),
        (
            200,
            "",
            "",
            "upstream_empty: the server answered 200 without the required content",
        ),
        (
            400,
            "application/json",
            r#"{"detail":"x"}"#,
            r#"error -32602 "Bad Request" {"status":400,"type":"application/json","body":{"detail":"x"}}"#,
        ),
        (
            422,
            "",
            "",
            r#"error -32602 "Unprocessable Entity" {"status":422,"type":null,"body":null}"#,
        ),
        (
            404,
            "text/html",
            "<h1>Not Found</h1>",
            r#"error -31404 "Not Found" {"status":404,"type":"text/html","body":"<h1>Not Found</h","truncated":true}"#,
        ),
        (
            405,
            "text/plain",
            "no",
            r#"error -32601 "Method Not Allowed" {"status":405,"type":"text/plain","body":"no"}"#,
        ),
        (
            409,
            "text/plain",
            "no",
            r#"error -31400 "Conflict" {"status":409,"type":"text/plain","body":"no"}"#,
        ),
        (
            500,
            "application/json",
            "nope",
            r#"error -32603 "Internal Server Error" {"status":500,"type":"application/json","body":"nope"}"#,
        ),
        (
            599,
            "",
            "",
            r#"error -32603 "HTTP status 599" {"status":599,"type":null,"body":null}"#,
        ),
    ] {
        assert_eq!(rpc(status, kind, body), expected);
    }
    assert!(
        rpc(200, "text/html", "<html>")
            .starts_with("upstream_not_json: the server answered 200 with `text/html`")
    );
    assert!(rpc(206, "application/json", "{}").starts_with("upstream_not_protocol"));
}

#[test]
fn a_redirect_is_a_failure_with_its_location_in_data() {
    let mut reply = rest(307, "", "");
    reply
        .headers
        .insert(LOCATION, "http://host/\"x\"".parse().unwrap());
    let failure = built_in(&reply).unwrap_err();
    let expected = r#"error -31031 "the server answered 307, a redirect; the proxy follows none" {"reason":"upstream_redirect","blame":"upstream","upstream":{"status":307,"location":"http://host/\"x\""}}"#;
    let codes = FailureCodes::default();
    assert_eq!(shown(&error_object(&failure, &codes)), expected);
}

#[test]
fn rpc_answers_have_their_built_in_form_for_rest_clients() {
    assert_eq!(
        answer(ResponseReply::Result(Json::literal("[1.10]"))),
        "200 application/json [1.10]"
    );
    assert_eq!(
        answer(ResponseReply::Result(Json::literal("null"))),
        "204  "
    );
    for (code, status, title) in [
        (-32700, 400, "Bad Request"),
        (-32600, 400, "Bad Request"),
        (-32602, 400, "Bad Request"),
        (-32601, 404, "Not Found"),
        (-32603, 500, "Internal Server Error"),
        (-32001, 500, "Internal Server Error"),
        (7, 500, "Internal Server Error"),
    ] {
        let expected = format!(
            r#"{status} application/problem+json {{"type":"about:blank","title":"{title}","status":{status},"detail":"m","rpc":{{"code":{code},"message":"m","data":[1.0]}}}}"#
        );
        assert_eq!(
            answer(ResponseReply::Error(error(code, "\"m\"", Some("[1.0]")))),
            expected
        );
    }
}

#[test]
fn data_that_only_looks_like_a_rest_answer_is_no_rest_answer() {
    for data in [
        r#"{"status":404,"type":"text/plain","body":"x"}"#,
        r#"{"status":200,"type":"text/plain","body":"x"}"#,
        r#"{"status":500,"type":"text/plain","body":{}}"#,
        r#"{"status":500,"type":"text/plain","body":"x","more":1}"#,
        r#"{"status":5e2,"type":"text/plain","body":"x"}"#,
    ] {
        assert!(
            answer(ResponseReply::Error(error(-32603, "\"m\"", Some(data))))
                .contains("problem+json"),
            "{data}"
        );
    }
}

#[test]
fn the_whole_table_of_failures() {
    let mut table = String::new();
    for reason in Reason::ALL {
        let row = reason.row();
        let (blame, face) = (row.blame.as_str(), reason.rpc_face_status());
        writeln!(
            table,
            "{:24} {blame:9} {} {:6} {face} {:?}",
            row.label, row.status, row.code, row.retry
        )
        .unwrap();
    }
    insta::assert_snapshot!(table);
}

#[test]
fn labels_and_codes_are_distinct_and_codes_avoid_reserved_ranges() {
    let labels: std::collections::HashSet<_> = Reason::ALL
        .iter()
        .map(|reason| reason.row().label)
        .collect();
    assert_eq!(labels.len(), Reason::ALL.len());
    let mut codes = std::collections::HashSet::new();
    for reason in Reason::ALL {
        let code = reason.row().code;
        // MCP defines these.
        let of_mcp = [
            (Reason::HeaderMismatch, -32020),
            (Reason::MissingCapability, -32021),
            (Reason::UnsupportedVersion, -32022),
        ];
        let is_of_mcp = of_mcp.contains(&(reason, code));
        let is_own = (-31099..=-31000).contains(&code);
        assert!(
            is_of_mcp || is_own || [-32700, -32600, -32601, -32602, -32603].contains(&code),
            "{reason:?}"
        );
        assert!(
            !is_own || codes.insert(code),
            "{reason:?} has a code of another reason"
        );
    }
}

fn any_reason() -> impl Strategy<Value = Reason> {
    proptest::sample::select(Reason::ALL.to_vec())
}

#[test]
fn json_is_recognised_by_its_content_type() {
    for yes in [
        "application/json",
        "Application/JSON; charset=utf-8",
        "application/problem+json",
        "a/b+Json ;x",
    ] {
        assert!(is_json(yes), "{yes}");
    }
    for no in [
        "",
        "json",
        "+json",
        "text/plain",
        "application/jsonp",
        "application/\u{e9}1234",
        "\u{20ac}/\u{20ac}",
    ] {
        assert!(!is_json(no), "{no}");
    }
}

proptest! {
    #[test]
    fn no_content_type_makes_it_panic(text in any::<String>(), tail in "[a-z+;/\u{e9}]{0,8}") {
        let _ = is_json(&format!("{text}{tail}"));
    }

    #[test]
    fn a_rest_error_survives_the_round_trip(
        status in 400_u16..600,
        body in prop_oneof![Just(r#"{"detail":[{"a":1.10}]}"#), Just("\"x\""), Just("[]")],
        text in "[a-zé\"<]{1,8}",
        json in any::<bool>(),
    ) {
        let (kind, body) = if json { ("application/json", body) } else { ("text/plain; charset=utf-8", text.as_str()) };
        let RpcAnswer::Error(error) = built_in(&rest(status, kind, body)).unwrap() else { panic!() };
        let back = rpc_to_rest(ResponseReply::Error(error));
        let status = if status == 407 { 502 } else { status };
        prop_assert_eq!((back.status, back.content_type.as_deref()), (status, Some(kind)));
        prop_assert_eq!(back.body.into_bytes(), body.as_bytes());
    }

    #[test]
    fn an_rpc_error_survives_the_round_trip(code in any::<i64>(), message in any::<String>(), data in proptest::option::of(0..3_usize)) {
        let data = data.map(|index| [r#"{"a":1.10}"#, "null", r#"{"status":404}"#][index]);
        let error = ErrorObject { code, message: Json::string(&message), data: data.map(Json::literal) };
        let there = rpc_to_rest(ResponseReply::Error(error.clone()));
        let reply = sent(there);
        prop_assert_eq!(built_in(&reply).unwrap(), RpcAnswer::Error(error));
    }

    #[test]
    fn a_failure_of_the_proxy_is_the_same_on_both_sides(reason in any_reason(), message in any::<String>()) {
        let failure = Failure::new(reason, message);
        let codes = FailureCodes::default();
        let there = problem(&failure, &codes);
        prop_assert_eq!(there.status, reason.row().status);
        let reply = sent(there);
        if reply.status >= 400 {
            prop_assert_eq!(built_in(&reply).unwrap(), RpcAnswer::Error(error_object(&failure, &codes)));
        }
    }

    #[test]
    fn a_result_keeps_its_bytes_in_a_round_trip(text in prop_oneof![Just("1.10"), Just("[ 1 ]"), Just("\"\\u0041\""), Just("null"), Just("{\"a\":1,\"a\":2}")]) {
        let there = rpc_to_rest(ResponseReply::Result(Json::literal(text)));
        let reply = sent(there);
        let RpcAnswer::Result(result) = built_in(&reply).unwrap() else { panic!() };
        prop_assert_eq!(result.into_bytes(), text.as_bytes());
    }
}

#[test]
fn the_docs_have_every_failure_as_it_is() {
    let docs = include_str!("../../../../docs/reference/failures.md");
    for reason in Reason::ALL {
        let row = reason.row();
        let (blame, face) = (row.blame.as_str(), reason.rpc_face_status());
        let line = format!(
            "| `{}` | {blame} | {} | {} | {face} | ",
            row.label, row.status, row.code
        );
        assert!(
            docs.contains(&line),
            "docs/reference/failures.md lacks the line `{line}…`"
        );
    }
}

mod laws;
mod order;
mod replies;

#[test]
fn a_failed_tool_matches_no_success_row() {
    use super::{Outcomes, ToolResult};
    use crate::translate::TranslateContext;
    use dualgauge_patterns::pattern::{Bindings, HoleFacts};
    let context = TranslateContext {
        depth: 128,
        now: String::new,
    };
    let result = r#"{"isError":true,"content":[{"type":"text","text":"no such table"}]}"#;
    let answer = |tool: ToolResult| {
        let outcomes = Outcomes::build(Vec::new(), &HoleFacts::default(), tool).unwrap();
        let reply = ResponseReply::Result(Json::literal(result));
        outcomes
            .rpc_to_rest(reply, &Bindings::default(), context)
            .answer
    };
    assert_eq!(answer(ToolResult::Any).status, 200, "no tool");
    let failed = answer(ToolResult::Succeeded);
    assert_eq!(failed.status, 422);
    let document = String::from_utf8(failed.body.into_bytes().to_vec()).unwrap();
    assert!(
        document.contains(r#""detail":"no such table""#),
        "{document}"
    );
    assert!(
        document.contains(&format!(r#""data":{result}"#)),
        "{document}"
    );
}

#[test]
fn the_empty_result_of_a_tool_is_not_null() {
    use super::{Outcomes, ToolResult};
    use crate::translate::TranslateContext;
    use dualgauge_patterns::pattern::{Bindings, HoleFacts};
    let context = TranslateContext {
        depth: 128,
        now: String::new,
    };
    let answered = |(status, body): (u16, &'static str), tool: ToolResult| {
        let mut outcomes = Outcomes::build(Vec::new(), &HoleFacts::default(), tool).unwrap();
        outcomes.take_empty_success();
        let reply = rest(status, "application/json", body);
        let answered = outcomes.rest_to_rpc(&reply, &Bindings::default(), LIMITS, context);
        match outcomes.completed(answered.unwrap().answer) {
            RpcAnswer::Result(result) => String::from_utf8(result.into_bytes().to_vec()).unwrap(),
            RpcAnswer::Error(error) => panic!("{error:?}"),
        }
    };
    for reply in [
        (200, ""),
        (200, " \r\n"),
        (201, ""),
        (202, ""),
        (203, ""),
        (204, ""),
        (205, ""),
        (200, "null"),
        (200, " null\n"),
    ] {
        assert_eq!(answered(reply, ToolResult::Succeeded), r#"{"content":[]}"#);
        assert_eq!(answered(reply, ToolResult::Any).trim(), "null");
    }
    assert_eq!(answered((200, "[null]"), ToolResult::Succeeded), "[null]");
}

#[test]
fn only_the_member_of_a_result_reports_failure() {
    use super::row::reports_failure;
    let reports = |result: &'static str| reports_failure(&Json::literal(result));
    assert!(reports(r#"{"isError":true}"#));
    assert!(reports(r#"{"content":[],"isError":true}"#));
    assert!(reports(r#"{"content":[{"isError":false}],"isError":true}"#));
    assert!(reports(
        r#"{"isError":true,"structuredContent":{"a":1,"isError":false}}"#
    ));
    assert!(reports(r#"{"isError":true,",\"isError":false}"#));
    assert!(!reports(r#"{"content":[true],"isError":false}"#));
    assert!(!reports(r#"{"content":[true]}"#));
    // A repeated member is ignored.
    assert!(!reports(r#"{"isError":true,"isError":false}"#));
    assert!(!reports(r#"{"isError":false,"isError":true}"#));
}
