//! Ids of calls: byte for byte those of the client, whatever kind they are and whatever the server makes of them.

use crate::rpc_refused::closed;
use crate::scene::{
    ANSWERED_HERE, Called, HERE, answer, before_rest, before_rpc, call, code_of, json, json_with,
    problem, rpc_failure, saying,
};
use crate::support::{Message, Proxy, Upstream};

/// Ids that every server gives back unharmed; they go as they are where a call is alone.
const TRAVELLING: [&str; 11] = [
    r#""x""#,
    r#""""#,
    r#""\u0041""#,
    r#""\/ \" \\ 𝄞 \ud834\udd1e""#,
    r#""lone \ud800""#,
    "0",
    "-0",
    "-1",
    "9007199254740991",
    "9007199254740992",
    "-9007199254740992",
];

/// Ids that real servers lose, change or confuse.
const STAYING: [&str; 9] = [
    "9007199254740993",
    "-9007199254740993",
    "123456789012345678901234567890",
    "1.5",
    "1.0",
    "1e3",
    "-1E+400",
    "0.10",
    "null",
];

fn message(id: &str) -> String {
    format!(r#"{{ "jsonrpc":"2.0", "id" : {id} , "method":"m","params":{{"id":7}} }}"#)
}

fn answered(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"id":9}}}}"#)
}

#[test]
fn an_id_that_travels_goes_and_returns_in_the_same_bytes() {
    let upstream = saying(r#""result":{"id":9}"#);
    let proxy = before_rpc(&upstream, "");
    for id in TRAVELLING {
        assert_eq!(proxy.rpc(message(id)).text(), answered(id));
        assert_eq!(upstream.requests().last().unwrap().text(), message(id));
    }
}

#[test]
fn an_id_that_does_not_travel_is_replaced_in_its_place_and_put_back() {
    let upstream = saying(r#""result":{"id":9}"#);
    let proxy = before_rpc(&upstream, "");
    for id in STAYING {
        assert_eq!(proxy.rpc(message(id)).text(), answered(id));
        let sent = upstream.requests().last().unwrap().clone();
        let own = Called::of(&sent).own_id().to_string();
        assert_eq!(sent.text(), message(&own), "in the place of {id}");
    }
}

#[test]
fn every_id_of_a_batch_that_is_split_is_replaced_in_its_place_and_put_back() {
    let upstream = saying(r#""result":{"id":9}"#);
    let proxy = before_rpc(&upstream, ANSWERED_HERE);
    let all: Vec<&str> = TRAVELLING.into_iter().chain(STAYING).collect();
    let messages: Vec<String> = all.iter().map(|id| message(id)).collect();
    let answers: Vec<String> = all.iter().map(|id| answered(id)).collect();
    let batch = format!("[{},{HERE}]", messages.join(" , "));
    assert_eq!(proxy.rpc(batch).text(), format!("[{}]", answers.join(",")));

    let requests = upstream.requests();
    let mut own: Vec<u32> = requests
        .iter()
        .map(|sent| Called::of(sent).own_id())
        .collect();
    for (sent, own) in requests.iter().zip(&own) {
        assert_eq!(sent.text(), message(&own.to_string()));
    }
    own.sort_unstable();
    own.dedup();
    assert_eq!(own.len(), all.len(), "an id twice: {own:?}");
}

#[test]
fn every_id_comes_back_from_a_translated_call() {
    let upstream = Upstream::answering(json("[1]"));
    let route = "[[route]]\nname = \"m\"\nrest = \"POST /m\"\nrpc = \"m\"\n";
    let proxy = before_rest(&upstream, route);
    let all: Vec<&str> = TRAVELLING.into_iter().chain(STAYING).collect();
    let answered = |id: &&str| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":[1]}}"#);
    for id in &all {
        assert_eq!(proxy.rpc(message(id)).text(), answered(id));
    }
    let messages: Vec<String> = all.iter().map(|id| message(id)).collect();
    let answers: Vec<String> = all.iter().map(answered).collect();
    let batch = format!("[{}]", messages.join(","));
    assert_eq!(proxy.rpc(batch).text(), format!("[{}]", answers.join(",")));
    for sent in upstream.requests() {
        assert_eq!(sent.text(), r#"{"id":7}"#);
    }
}

#[test]
fn an_absent_id_stays_absent() {
    let upstream = saying(r#""result":1"#);
    let proxy = before_rpc(&upstream, ANSWERED_HERE);
    let notification = r#"{"jsonrpc":"2.0","method":"m","params":{"id":7}}"#;
    let answer = proxy.rpc(notification);
    assert_eq!((answer.status(), answer.text()), (204, ""));
    let answer = proxy.rpc(format!("[{notification},{HERE}]"));
    assert_eq!((answer.status(), answer.text()), (204, ""));
    for sent in upstream.requests() {
        assert_eq!(sent.text(), notification);
    }
}

#[test]
fn what_can_be_no_id_is_refused_with_a_null_id() {
    let upstream = Upstream::start();
    let proxy = closed(&upstream);
    for id in ["true", "false", "{}", "[]", r#"{"a":1}"#, "[1]"] {
        for body in [message(id), format!("[{}]", message(id))] {
            let answer = proxy.rpc(&body).json();
            let answer = answer.get(0).unwrap_or(&answer);
            assert_eq!(answer["id"], serde_json::Value::Null, "{body}");
            assert_eq!(rpc_failure(answer), (-32600, "invalid_request"));
            assert!(
                answer["error"]["message"]
                    .as_str()
                    .unwrap()
                    .contains("`id`"),
                "{answer}"
            );
        }
    }
    upstream.expect_no_connection();
}

#[test]
fn an_id_given_twice_or_in_another_case_cannot_be_trusted() {
    let upstream = Upstream::start();
    let proxy = closed(&upstream);
    for ids in [
        r#""id":1,"id":2"#,
        r#""id":1,"ID":1"#,
        r#""\u0069d":1,"id":1"#,
    ] {
        let answer = proxy.rpc(format!(r#"{{"jsonrpc":"2.0",{ids},"method":"m"}}"#));
        let answer = answer.json();
        assert_eq!(answer["id"], serde_json::Value::Null, "{ids}");
        assert_eq!(rpc_failure(&answer), (-32600, "invalid_request"), "{ids}");
    }
    upstream.expect_no_connection();
}

/// What servers say with 200 in place of a response to the one call of an exchange: the text, in which `$id` is
/// the id that was asked with, and the reason that the caller reads.
const NO_RESPONSES: [(&str, &str, &str); 11] = [
    (
        "another id",
        r#"{"jsonrpc":"2.0","id":"other","result":1}"#,
        "upstream_wrong_id",
    ),
    (
        "no id",
        r#"{"jsonrpc":"2.0","result":1}"#,
        "upstream_wrong_id",
    ),
    (
        "the id as a string",
        r#"{"jsonrpc":"2.0","id":"$id","result":1}"#,
        "upstream_wrong_id",
    ),
    (
        "the id as a float",
        r#"{"jsonrpc":"2.0","id":$id.0,"result":1}"#,
        "upstream_wrong_id",
    ),
    (
        "a null id",
        r#"{"jsonrpc":"2.0","id":null,"result":1}"#,
        "upstream_wrong_id",
    ),
    (
        "an error for another",
        r#"{"jsonrpc":"2.0","id":0,"error":{"code":1,"message":""}}"#,
        "upstream_wrong_id",
    ),
    (
        "two answers",
        r#"[{"jsonrpc":"2.0","id":$id,"result":1},{"jsonrpc":"2.0","id":$id,"result":2}]"#,
        "upstream_not_protocol",
    ),
    (
        "neither result nor error",
        r#"{"jsonrpc":"2.0","id":$id}"#,
        "upstream_not_protocol",
    ),
    (
        "result and error",
        r#"{"jsonrpc":"2.0","id":$id,"result":1,"error":{"code":1,"message":""}}"#,
        "upstream_not_protocol",
    ),
    (
        "a result twice",
        r#"{"jsonrpc":"2.0","id":$id,"result":1,"result":2}"#,
        "upstream_not_protocol",
    ),
    (
        "a request",
        r#"{"jsonrpc":"2.0","id":$id,"method":"ping"}"#,
        "upstream_not_protocol",
    ),
];

/// What servers say in place of a response: [`NO_RESPONSES`], and what has another form.
fn no_responses() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let html = [("Content-Type", "text/html")];
    let text = [("Content-Type", "text/plain")];
    let mut all: Vec<_> = NO_RESPONSES
        .into_iter()
        .map(|(what, said, reason)| (what, json(said), reason))
        .collect();
    all.extend([
        (
            "a 422 of a framework",
            json_with("422 Unprocessable Entity", r#"{"detail":"no"}"#),
            "upstream_not_protocol",
        ),
        (
            "a 500 of a framework",
            json_with("500 Internal Server Error", r#"{"error":"boom"}"#),
            "upstream_not_protocol",
        ),
        (
            "an HTML 404",
            answer("404 Not Found", &html, "<h1>404</h1>"),
            "upstream_not_json",
        ),
        (
            "a text 400",
            answer("400 Bad Request", &text, "Parse error"),
            "upstream_not_json",
        ),
        (
            "JSON and more",
            json(r#"{"jsonrpc":"2.0","id":$id,"result":1}{}"#),
            "upstream_not_json",
        ),
        (
            "Infinity",
            json(r#"{"jsonrpc":"2.0","id":$id,"result":Infinity}"#),
            "upstream_not_json",
        ),
        ("nothing", json(""), "upstream_empty"),
        (
            "nothing, 202",
            answer("202 Accepted", &[], ""),
            "upstream_empty",
        ),
    ]);
    all
}

/// An upstream that says this, with the id of the call for `$id`.
fn putting_the_id(scripted: Vec<u8>) -> Upstream {
    Upstream::serving(move |request| {
        let called = Called::of(request);
        let text = String::from_utf8(scripted.clone()).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let body = body.replace("$id", called.id());
        let (head, _) = head.rsplit_once("\r\n").unwrap();
        format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
    })
}

#[test]
fn what_is_no_response_becomes_a_failure_that_bears_the_callers_id() {
    for (what, scripted, reason) in no_responses() {
        let upstream = putting_the_id(scripted);
        let proxy = before_rpc(&upstream, ANSWERED_HERE);
        let id = "12345678901234567890.0";
        for (body, opening) in [
            (message(id), "{"),
            (format!("[{},{HERE}]", message(id)), "[{"),
        ] {
            let answer = proxy.rpc(body);
            let expected = format!(r#"{opening}"jsonrpc":"2.0","id":{id},"error":{{"#);
            assert!(answer.text().starts_with(&expected), "{what}: {answer:?}");
            let answer = answer.json();
            let answer = answer.get(0).unwrap_or(&answer);
            assert_eq!(
                rpc_failure(answer),
                (code_of(reason), reason),
                "{what}: {answer}"
            );
            assert_eq!(answer["error"]["data"]["blame"], "upstream");
        }
        let line = proxy.log_line(&["outcome=failed", "blame=upstream"]);
        assert!(line.contains(&format!("reason={reason}")), "{line}");
    }
}

#[test]
fn what_is_no_response_becomes_a_bad_gateway_for_a_rest_client() {
    let route = "[[route]]\nname = \"m\"\nrest = \"POST /m\"\nrpc = \"m\"\n";
    for (what, scripted, reason) in no_responses() {
        let upstream = putting_the_id(scripted);
        let proxy = before_rpc(&upstream, route);
        let answer = proxy.rest("POST", "/m", &[], "{}");
        assert_eq!(answer.status(), 502, "{what}: {answer:?}");
        assert_eq!(problem(&answer).0, reason, "{what}: {answer:?}");
        assert_eq!(answer.json()["rpc"]["code"], code_of(reason));
        assert_eq!(upstream.requests().len(), 1);
    }
}

#[test]
fn what_an_upstream_said_in_place_of_a_response_is_kept_for_the_caller() {
    let html = [("Content-Type", "text/html")];
    let upstream = Upstream::answering(answer("404 Not Found", &html, "<h1>404</h1>"));
    let proxy = before_rpc(&upstream, "");
    let answer: Message = proxy.rpc(message("null"));
    let kept = &answer.json()["error"]["data"]["upstream"];
    let expected = r#"{"status":404,"type":"text/html","body":"<h1>404</h1>"}"#;
    assert_eq!(kept.to_string(), sorted(expected), "{answer:?}");
}

fn sorted(json: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(json).unwrap();
    value.to_string()
}

#[test]
fn an_error_whose_sender_could_not_read_the_id_belongs_to_the_one_call() {
    for id in [r#""id":null,"#, ""] {
        let reply = format!(r#"{{"jsonrpc":"2.0",{id}"error":{{"code":-32700,"message":"no"}}}}"#);
        let upstream = Upstream::answering(json(reply));
        let proxy = before_rpc(&upstream, "");
        let answer = proxy.rpc(message("1.5")).json();
        assert_eq!(answer["id"], 1.5);
        assert_eq!(answer["error"]["code"], -32700);
    }
}

#[test]
fn an_answer_to_a_call_alone_streams_as_it_is() {
    let proxies = |scripted: &[u8]| -> Proxy { before_rpc(&Upstream::answering(scripted), "") };
    for (what, scripted, _) in no_responses() {
        let answer = proxies(&scripted).rpc(call("m", "[]"));
        let expected = scripted
            .windows(4)
            .position(|at| at == b"\r\n\r\n")
            .unwrap()
            + 4;
        assert_eq!(answer.body, &scripted[expected..], "{what}");
    }
}
