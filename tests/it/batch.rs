//! Batches that are split: a map over the single call, in order and within bounds.

use serde_json::{Value, json};

use crate::scene::{
    ANSWERED_HERE, Called, HERE, before_rest, before_rpc, call, json, rpc_failure, saying,
};
use crate::support::{Message, Proxy, Upstream, Wire, becomes, both};

fn numbered(id: usize) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m","params":[{id}]}}"#)
}

fn batch(ids: impl IntoIterator<Item = usize>) -> String {
    let messages: Vec<String> = ids.into_iter().map(numbered).collect();
    format!("[{}]", messages.join(","))
}

/// The same calls in a batch that is split, and one item more, which is not answered.
fn split(ids: impl IntoIterator<Item = usize>) -> String {
    let calls = batch(ids);
    let calls = calls.strip_suffix(']').unwrap();
    format!("{calls},{HERE}]")
}

/// Sends a batch and leaves its answer to be read.
fn send(proxy: &Proxy, body: &str) -> Wire {
    let mut client = proxy.connect();
    let length = body.len();
    client.send(format!(
        "POST /rpc HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{body}"
    ));
    client
}

/// Answers the call that a server has read: its first parameter is the result.
fn reply(server: &mut Wire, request: &Message) {
    let called = Called::of(request);
    let (id, params) = (called.id(), called.params());
    server.send(json(format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{params}}}"#
    )));
}

/// What the answers of [`batch`] are.
fn answers(ids: impl IntoIterator<Item = usize>) -> Value {
    ids.into_iter()
        .map(|id| json!({"jsonrpc": "2.0", "id": id, "result": [id]}))
        .collect()
}

/// The number of a call that [`numbered`] has written.
fn number(request: &Message) -> u64 {
    request.json()["params"][0].as_u64().unwrap()
}

#[test]
fn answers_keep_the_order_of_the_calls_whatever_the_order_of_the_servers_answers() {
    let upstream = Upstream::start();
    let proxy = before_rpc(&upstream, ANSWERED_HERE);
    let mut client = send(&proxy, &split(0..4));
    let mut waiting: Vec<(Wire, Message)> = (0..4)
        .map(|_| {
            let mut server = upstream.accept();
            let request = server.read_request();
            (server, request)
        })
        .collect();
    waiting.sort_by_key(|(_, request)| number(request));
    for (server, request) in waiting.iter_mut().rev() {
        reply(server, request);
    }
    assert_eq!(client.read_answer().json(), answers(0..4));
}

#[test]
fn no_more_calls_of_a_batch_run_at_a_time_than_configured() {
    let upstream = Upstream::start();
    let proxy = before_rpc(
        &upstream,
        &format!("[rpc]\nbatch_concurrency = 2\n{ANSWERED_HERE}"),
    );
    let mut client = send(&proxy, &split(0..5));
    let mut servers = [upstream.accept(), upstream.accept()];
    let mut waiting = servers.each_mut().map(|server| server.read_request());
    if number(&waiting[0]) == 1 {
        servers.swap(0, 1);
        waiting.swap(0, 1);
    }
    let [first, second] = &mut servers;
    assert_eq!(waiting.each_ref().map(number), [0, 1]);
    // Each further call waits for the one before the last, and takes its connection.
    reply(first, &waiting[0]);
    let third = first.read_request();
    reply(second, &waiting[1]);
    let fourth = second.read_request();
    assert_eq!([number(&third), number(&fourth)], [2, 3]);
    reply(first, &third);
    let fifth = first.read_request();
    reply(second, &fourth);
    reply(first, &fifth);
    assert_eq!(client.read_answer().json(), answers(0..5));
    upstream.expect_no_connection();
}

#[test]
fn a_batch_beyond_its_limit_is_refused_whole() {
    let upstream = saying(r#""result":1"#);
    let proxy = before_rpc(&upstream, &format!("[limits]\nbatch = 3\n{ANSWERED_HERE}"));
    let answer = proxy.rpc(batch(0..4)).json();
    assert_eq!(rpc_failure(&answer), (-31009, "batch_too_large"));
    assert_eq!(answer["id"], Value::Null);
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains('4') && message.contains('3'), "{message}");
    // What is no message counts as well.
    let answer = proxy.rpc("[1,2,3,4]").json();
    assert_eq!(rpc_failure(&answer), (-31009, "batch_too_large"));
    assert_eq!(upstream.requests().len(), 0);
    assert_eq!(proxy.rpc(split(0..2)).json().as_array().unwrap().len(), 2);
    assert_eq!(upstream.requests().len(), 2);
}

const ROUTES: &str = r#"
[[route]]
name = "passed"
rest = "POST /passed"
rpc = "passed"
[[route]]
name = "translated"
rest = "GET /translated/{id:integer}"
rpc = "translated"
[[route]]
name = "gone"
rest = "POST /gone"
rpc = "gone"
"#;

const FLAGS: &str = r#"
[[flag]]
name = "moved"
route = "translated"
stage = "translate"
side = "rpc"
[[flag]]
name = "closed"
route = "gone"
stage = "retired"
side = "rpc"
"#;

const MESSAGES: [&str; 8] = [
    r#"{"jsonrpc":"2.0","id":"a","method":"passed"}"#,
    r#"{"jsonrpc":"2.0","id":"b","method":"translated","params":{"id":1}}"#,
    r#"{"jsonrpc":"2.0","id":"c","method":"gone"}"#,
    r#"{"jsonrpc":"2.0","id":"d","method":"unknown"}"#,
    r#"{"jsonrpc":"2.0","method":"translated","params":{"id":2}}"#,
    r#"{"jsonrpc":"2.0","id":"e"}"#,
    r#"{"jsonrpc":"2.0","id":"f","method":"translated","params":{"id":"x"}}"#,
    "[]",
];

#[test]
fn each_message_of_a_batch_has_its_own_route_flag_and_stage() {
    let rest = Upstream::answering(json(r#"{"from":"rest"}"#));
    let rpc = Upstream::serving(|request| {
        let called = Called::of(request);
        let id = called.id();
        json(match called.method() {
            "passed" => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"from":"rpc"}}}}"#),
            _ => format!(
                r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"none"}}}}"#
            ),
        })
    });
    let proxy = Proxy::start_with_flags(&format!("{}{ROUTES}", both(&rest, &rpc)), FLAGS);
    let answer = proxy.rpc(format!("[{}]", MESSAGES.join(",")));
    let answer = answer.json();
    let ids: Vec<&Value> = (0..7).map(|place| &answer[place]["id"]).collect();
    assert_eq!(
        json!(ids),
        json!(["a", "b", "c", "d", "e", "f", null]),
        "{answer}"
    );
    assert_eq!(answer.as_array().unwrap().len(), 7);
    assert_eq!(answer[0]["result"], json!({"from": "rpc"}));
    assert_eq!(answer[1]["result"], json!({"from": "rest"}));
    assert_eq!(rpc_failure(&answer[2]), (-31011, "retired"));
    assert_eq!(
        answer[3]["error"],
        json!({"code": -32601, "message": "none"})
    );
    assert_eq!(rpc_failure(&answer[4]), (-32600, "invalid_request"));
    assert_eq!(rpc_failure(&answer[5]), (-32602, "invalid_params"));
    assert_eq!(rpc_failure(&answer[6]), (-32600, "invalid_request"));

    let mut targets: Vec<String> = rest
        .requests()
        .into_iter()
        .map(|seen| seen.head.start)
        .collect();
    targets.sort();
    assert_eq!(
        targets,
        ["GET /translated/1 HTTP/1.1", "GET /translated/2 HTTP/1.1"]
    );
    assert_eq!(rpc.requests().len(), 2);
    for pieces in [
        ["route=passed", "stage=passthrough", "outcome=success"],
        ["route=translated", "stage=translate", "outcome=success"],
        ["route=gone", "stage=retired", "reason=retired"],
        ["rpc_method=unknown", "decision=unrouted", "code=-32601"],
        ["route=translated", "reason=invalid_params", "blame=client"],
    ] {
        proxy.log_line(&pieces);
    }
}

#[test]
fn calls_of_a_batch_that_share_an_id_get_each_its_own_answer() {
    let upstream = Upstream::serving(|request| {
        let called = Called::of(request);
        let (id, params) = (called.own_id(), called.params());
        json(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{params}}}"#
        ))
    });
    let proxy = before_rpc(&upstream, ANSWERED_HERE);
    let answer = proxy.rpc(format!(
        "[{},{},{},{{\"jsonrpc\":\"2.0\",\"method\":\"here\"}}]",
        call("m", "[1]"),
        call("m", "[2]"),
        call("m", "[3]")
    ));
    let expected: Value = (1..4)
        .map(|number| json!({"jsonrpc": "2.0", "id": 1, "result": [number]}))
        .collect();
    assert_eq!(answer.json(), expected);
}

#[test]
fn a_call_that_fails_leaves_the_others_of_its_batch_alone() {
    let upstream = Upstream::serving(|request| {
        let called = Called::of(request);
        match called.method() {
            "cut" => Vec::new(),
            _ => json(format!(
                r#"{{"jsonrpc":"2.0","id":{},"result":1}}"#,
                called.id()
            )),
        }
    });
    let proxy = before_rpc(&upstream, ANSWERED_HERE);
    let messages = [
        call("m", "[]"),
        call("cut", "[]"),
        call("m", "[]"),
        call("here", "{}"),
    ];
    let answer = proxy.rpc(format!("[{}]", messages.join(","))).json();
    assert_eq!(
        (&answer[0]["result"], &answer[2]["result"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(rpc_failure(&answer[1]), (-31023, "upstream_cut"));
    assert_eq!(answer[1]["id"], 1);
    assert_eq!(upstream.requests().len(), 3, "nothing was sent twice");
}

#[test]
fn the_answers_of_a_batch_are_limited_together() {
    let upstream = Upstream::serving(|request| {
        let id = Called::of(request).own_id();
        let text = "x".repeat(900);
        json(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":"{text}"}}"#
        ))
    });
    let proxy = before_rpc(
        &upstream,
        &format!("[limits]\nanswer = 2000\n{ANSWERED_HERE}"),
    );
    assert_eq!(proxy.rpc(split(0..2)).json().as_array().unwrap().len(), 2);
    // Two answers find room; the call whose answer does not says so under its own id, in its place.
    let answer = proxy.rpc(split(0..3)).json();
    let answers = answer.as_array().unwrap();
    let ids: Vec<_> = answers.iter().map(|answer| answer["id"].as_u64()).collect();
    assert_eq!(ids, [Some(0), Some(1), Some(2)]);
    let refused: Vec<_> = answers
        .iter()
        .filter(|answer| answer["error"].is_object())
        .collect();
    assert_eq!(refused.len(), 1, "{answer}");
    assert_eq!(rpc_failure(refused[0]), (-31009, "batch_too_large"));
    assert!(
        refused[0]["error"]["message"]
            .as_str()
            .unwrap()
            .contains("2000")
    );
}

#[test]
fn each_call_of_a_batch_counts_against_the_limit_of_calls_in_progress() {
    let upstream = Upstream::start();
    let proxy = before_rpc(
        &upstream,
        &format!("[limits]\nin_flight = 2\n{ANSWERED_HERE}"),
    );
    let mut client = send(&proxy, &split(0..3));
    let mut servers = [upstream.accept(), upstream.accept()];
    for server in &mut servers {
        let request = server.read_request();
        reply(server, &request);
    }
    let answer = client.read_answer();
    assert_eq!(answer.status(), 200);
    let answer = answer.json();
    assert_eq!(answer[0], answers(0..1)[0]);
    assert_eq!(answer[1], answers(1..2)[0]);
    assert_eq!(rpc_failure(&answer[2]), (-31042, "overloaded"));
    assert_eq!(answer[2]["error"]["data"]["blame"], "proxy");
    upstream.expect_no_connection();
}

#[test]
fn an_answered_call_of_a_batch_takes_no_place_of_one_that_is_not() {
    let upstream = Upstream::serving(|asked| {
        let called = Called::of(asked);
        let (id, params) = (called.id(), called.params());
        json(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{params}}}"#
        ))
    });
    let limits = "[rpc]\nbatch_concurrency = 2\n[limits]\nin_flight = 2\n";
    let proxy = before_rpc(&upstream, &format!("{limits}{ANSWERED_HERE}"));
    assert_eq!(proxy.rpc(split(0..5)).json(), answers(0..5));
    let in_flight = || proxy.metrics().value("dualgauge_calls_in_flight");
    becomes(in_flight, &0.0);
}

#[test]
fn a_call_of_a_batch_lasts_until_it_is_answered_itself() {
    let upstream = Upstream::start();
    let proxy = before_rpc(&upstream, &format!("timeout = \"2s\"\n{ANSWERED_HERE}"));
    let mut client = send(&proxy, &split(0..2));
    let mut servers = [upstream.accept(), upstream.accept()];
    let requests = servers.each_mut().map(Wire::read_request);
    reply(&mut servers[0], &requests[0]);
    let answered = client.read_answer().json();
    let failed = answered
        .as_array()
        .unwrap()
        .iter()
        .filter(|answer| answer["error"].is_object());
    assert_eq!(failed.count(), 1);
    let lasted = |outcome: &str| -> f64 {
        let line = proxy.log_line(&[outcome, "rpc_method=m"]);
        let (_, duration) = line.split_once("duration_ms=").unwrap();
        duration.split(' ').next().unwrap().parse().unwrap()
    };
    assert!(lasted("outcome=success") < lasted("reason=upstream_timeout") / 2.0);
}

#[test]
fn a_client_that_goes_away_cancels_every_call_of_its_batch() {
    let upstream = Upstream::start();
    let proxy = before_rpc(&upstream, ANSWERED_HERE);
    let client = send(&proxy, &split(0..3));
    let mut servers = [upstream.accept(), upstream.accept(), upstream.accept()];
    for server in &mut servers {
        server.read_request();
    }
    client.reset();
    for server in &mut servers {
        server.expect_gone();
    }
    proxy.log_line(&["outcome=cancelled", "blame=client", "rpc_method=m"]);
}

#[test]
fn responses_of_a_client_go_to_the_server_and_are_not_answered() {
    let upstream = Upstream::answering("HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n");
    let proxy = before_rpc(&upstream, ANSWERED_HERE);
    let response = r#"{"jsonrpc":"2.0","id":"s-1","result":{"roots":[]}}"#;
    let here = r#"{"jsonrpc":"2.0","method":"here"}"#;
    let answer = proxy.rpc(format!("[{response},{response},{here}]"));
    assert_eq!((answer.status(), answer.text()), (204, ""));
    let requests = upstream.requests();
    assert_eq!(requests.len(), 2);
    assert!(requests.iter().all(|seen| seen.text() == response));
    let answer = proxy.rpc(response);
    assert_eq!((answer.status(), answer.text()), (202, ""));

    let rest = Upstream::start();
    let proxy = before_rest(&rest, "");
    let answer = proxy.rpc(response).json();
    assert_eq!(rpc_failure(&answer), (-32600, "invalid_request"));
    assert_eq!(answer["id"], Value::Null);
    rest.expect_no_connection();
}

#[test]
fn white_space_around_the_messages_of_a_batch_means_nothing() {
    let proxy = before_rpc(&saying(r#""result":1"#), ANSWERED_HERE);
    let answer = proxy.rpc(format!(
        "\r\n\t [ {}\n,\t{}, {{\"jsonrpc\":\"2.0\",\"method\":\"here\"}} ] \r\n",
        numbered(1),
        numbered(2)
    ));
    assert_eq!(answer.json().as_array().unwrap().len(), 2);
    let proxy = crate::rpc_refused::closed(&Upstream::start());
    for body in ["[1,]", "[,]", "[", "[1]]", "[1] x", ""] {
        let answer = proxy.rpc(body).json();
        assert_eq!(rpc_failure(&answer), (-32700, "malformed_json"), "{body}");
    }
}
