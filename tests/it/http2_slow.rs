//! Clients of HTTP/2 that take what the proxy has written for them slowly, or not at all.

use std::time::Duration;

use h2::client::Builder;
use http::{Method, Request, Response};
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::http2::{Client, begin, request, run, text};
use crate::scene::{ANSWERED_HERE, Called, json};
use crate::soak::Held;
use crate::support::certificates::Authority;
use crate::support::{Proxy, Upstream, WITHIN, becomes, both, chunked};

const LENGTH: usize = 600_000;
/// What a slow client takes in a turn.
const AT_ONCE: usize = 16 * 1024;
const FIELDS: [(&str, &str); 1] = [("content-type", "application/json")];
const RENUMBERED: &str = r#"{"jsonrpc":"2.0","id":1.5,"method":"a","params":{}}"#;
const PASSED: &str = r#"{"jsonrpc":"2.0","id":1,"method":"b","params":{}}"#;
const BATCH: &str = r#"[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","id":2,"method":"b"},{"jsonrpc":"2.0","method":"here"}]"#;

/// A proxy before an upstream with long answers.
fn long(limits: &str) -> (Authority, Proxy, [Upstream; 2]) {
    let rest = Upstream::answering(json("1"));
    let rpc = Upstream::serving(|asked| {
        let called = Called::of(asked);
        let result = "x".repeat(LENGTH);
        json(format!(
            r#"{{"jsonrpc":"2.0","id":{},"result":"{result}"}}"#,
            called.id()
        ))
    });
    let more = "[[route]]\nname = \"a\"\nrest = \"POST /a\"\nrpc = \"a\"\n\
        [rollout.default]\nrest = \"translate\"\n";
    let more = format!("{more}{ANSWERED_HERE}");
    let (ours, proxy) = begin(&format!("{}[limits]\n{limits}{more}", both(&rest, &rpc)));
    (ours, proxy, [rest, rpc])
}

/// Calls whose answers are written in one piece: translated, with another id, and a batch.
fn calls() -> [(Request<()>, &'static str); 3] {
    [("/a", "{}"), ("/rpc", RENUMBERED), ("/rpc", BATCH)]
        .map(|(target, body)| (request(Method::POST, target, &FIELDS), body))
}

/// Reads an answer a little at a time, each after a while, and tells how long it is.
async fn slowly(answer: Response<h2::RecvStream>) -> usize {
    let mut body = answer.into_body();
    let mut turns = interval(Duration::from_millis(150));
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut length, mut taken) = (0, 0);
    while let Some(piece) = timeout(WITHIN, body.data()).await.unwrap() {
        let piece = piece.unwrap();
        length += piece.len();
        taken += piece.len();
        if taken >= AT_ONCE {
            turns.tick().await;
            body.flow_control().release_capacity(taken).unwrap();
            taken = 0;
        }
    }
    length
}

#[test]
fn an_answer_in_one_piece_reaches_a_slow_client_whole() {
    let (ours, proxy, _upstreams) = long("header_timeout = \"2s\"\nwrite_timeout = \"10s\"\n");
    let ask = async |(call, body)| {
        let mut client = Client::connect(&proxy, &ours, None).await;
        slowly(client.ask(call, body).await).await
    };
    run(async {
        let [translated, renumbered, batch] = calls();
        let (translated, renumbered, batch) =
            tokio::join!(ask(translated), ask(renumbered), ask(batch));
        assert_eq!(translated, LENGTH + 2);
        let envelope = r#"{"jsonrpc":"2.0","id":1.5,"result":""}"#.len();
        assert_eq!(renumbered, LENGTH + envelope);
        assert!(batch > 2 * LENGTH);
    });
    let stalled = "dualgauge_cut_connections_total{reason=\"stalled\"}";
    assert_eq!(proxy.metrics().value(stalled), 0.0);
}

/// How many calls ended in this way.
fn ended(proxy: &Proxy, outcome: &str, blame: &str) -> f64 {
    const LABELS: [&str; 6] = ["route", "client", "side", "stage", "outcome", "blame"];
    let rows = proxy.metrics().table("dualgauge_calls_total", &LABELS);
    let way = format!(" {outcome} {blame}");
    let ended = rows.iter().filter(|(row, _)| row.ends_with(&way));
    ended.map(|(_, count)| count).sum()
}

/// The last piece is with the framing already, when nobody takes it.
#[test]
fn a_call_whose_answer_is_left_where_it_is_says_so() {
    let (ours, proxy, _upstreams) = long("write_timeout = \"500ms\"\n");
    run(async {
        let mut builder = Builder::new();
        builder.initial_window_size(1000);
        let mut client = Client::connect_by(&proxy, (&ours, None), &builder).await;
        let mut left = Vec::new();
        for (call, body) in calls() {
            left.push(client.ask(call, body).await.into_body());
        }
        let passed = request(Method::POST, "/rpc", &FIELDS);
        left.push(client.ask(passed, PASSED).await.into_body());
        // A batch is two calls.
        becomes(|| ended(&proxy, "cancelled", "client"), &5.0);
        // The proxy has answered the notification in the batch.
        assert_eq!(ended(&proxy, "success", "none"), 1.0);
        let why = "cause=\"the client read nothing for too long\"";
        becomes(|| proxy.log().matches(why).count(), &5);
        // Who resets what it has not taken gives no reason.
        let (call, body) = calls()[0].clone();
        drop(client.ask(call, body).await);
        client.settle().await;
        becomes(|| ended(&proxy, "cancelled", "client"), &6.0);
        assert_eq!(proxy.log().matches(why).count(), 5);
        // What is taken whole is a success.
        let mut client = Client::connect(&proxy, &ours, None).await;
        for (call, body) in calls() {
            text(client.ask(call, body).await).await;
        }
        becomes(|| ended(&proxy, "success", "none"), &6.0);
    });
}

/// So many answers of each call, none of which is taken.
async fn lose(client: &mut Client, times: usize) {
    let mut answers = Vec::new();
    for _ in 0..times {
        for (call, body) in calls() {
            answers.push(client.ask(call, body).await.into_body());
        }
    }
    for mut body in answers {
        let lost = loop {
            match timeout(WITHIN, body.data()).await.unwrap() {
                Some(Ok(_)) => {}
                Some(Err(lost)) => break lost,
                None => panic!("the answer is whole"),
            }
        };
        assert!(lost.is_reset());
    }
}

#[test]
fn an_answer_in_one_piece_is_lost_to_a_client_that_takes_nothing() {
    const TIMES: usize = 20;
    /// The rounds that all is compared with.
    const WARM: usize = 3;
    let (ours, proxy, _upstreams) = long("write_timeout = \"500ms\"\n");
    run(async {
        let mut builder = Builder::new();
        builder.initial_window_size(1000);
        let mut client = Client::connect_by(&proxy, (&ours, None), &builder).await;
        // What the allocator keeps after so many is there for as many more. Of one round it keeps twice as much as of another.
        let mut before = 0;
        for _ in 0..WARM {
            lose(&mut client, TIMES).await;
            before = before.max(Held::by(&proxy).resident_kib);
        }
        let carried = TIMES * 4 * LENGTH / 1024;
        let most = before + carried / 4;
        // What is lost for good is lost in each round.
        let mut rounds = WARM;
        loop {
            rounds += 1;
            lose(&mut client, TIMES).await;
            let held = Held::by(&proxy).resident_kib;
            if held < most {
                break;
            }
            assert!(rounds < 10, "{held} KiB after {before} KiB");
        }
        // The connection goes on.
        let answer = client.ask(request(Method::GET, "/p", &[]), "").await;
        assert_eq!(text(answer).await, "1");
        let stalled = "dualgauge_cut_connections_total{reason=\"stalled\"}";
        let count = f64::from(u32::try_from(rounds * 3 * TIMES).unwrap());
        assert_eq!(proxy.metrics().value(stalled), count);
    });
}

/// A proxy before an upstream whose answers are one piece for HTTP/2, with their length and without it.
fn short(limits: &str) -> (Authority, Proxy, [Upstream; 2]) {
    let rest = Upstream::serving(|asked| match asked.head.start.as_str() {
        "GET /chunked HTTP/1.1" => {
            let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
            [head.as_bytes(), &chunked(&[&[b'x'; 5000]])].concat()
        }
        "GET /short HTTP/1.1" => json("x".repeat(500)),
        _ => json("x".repeat(5000)),
    });
    let rpc = Upstream::serving(|asked| {
        let (id, result) = (Called::of(asked).id().to_owned(), "x".repeat(5000));
        json(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":"{result}"}}"#
        ))
    });
    let more = "[[route]]\nname = \"a\"\nrest = \"POST /a\"\nrpc = \"a\"\n\
        [rollout.default]\nrest = \"translate\"\n";
    let more = format!("{more}{ANSWERED_HERE}");
    let (ours, proxy) = begin(&format!("{}[limits]\n{limits}{more}", both(&rest, &rpc)));
    (ours, proxy, [rest, rpc])
}

/// Calls whose answers are short of nothing but room at their client.
fn ones() -> [(Request<()>, &'static str); 4] {
    let passed = ["/long", "/chunked", "/short"].map(|target| request(Method::GET, target, &[]));
    let [long, chunked, short] = passed;
    let translated = request(Method::POST, "/a", &FIELDS);
    [(long, ""), (chunked, ""), (short, ""), (translated, "{}")]
}

/// A client with room for a part of each of those answers.
async fn narrow(proxy: &Proxy, ours: &Authority) -> Client {
    let mut builder = Builder::new();
    builder.initial_window_size(100);
    Client::connect_by(proxy, (ours, None), &builder).await
}

/// The answers as far as they have come.
async fn begun(client: &mut Client) -> Vec<h2::RecvStream> {
    let mut answers = Vec::new();
    for (call, body) in ones() {
        let mut answer = client.ask(call, body).await.into_body();
        let first = timeout(WITHIN, answer.data()).await.unwrap();
        assert_eq!(first.unwrap().unwrap().len(), 100);
        answers.push(answer);
    }
    answers
}

#[test]
fn a_client_that_leaves_the_last_piece_of_an_answer_has_left_it() {
    let (ours, proxy, _upstreams) = short("");
    run(async {
        let mut client = narrow(&proxy, &ours).await;
        drop(begun(&mut client).await);
        client.settle().await;
        becomes(|| ended(&proxy, "cancelled", "client"), &4.0);
        let answers = begun(&mut client).await;
        client.goes().await;
        drop(answers);
        becomes(|| ended(&proxy, "cancelled", "client"), &8.0);
        assert_eq!(ended(&proxy, "success", "none"), 0.0);
        // One that takes its time takes them whole.
        let mut client = narrow(&proxy, &ours).await;
        for mut answer in begun(&mut client).await {
            answer.flow_control().release_capacity(100).unwrap();
            let rest = Response::new(answer);
            assert!([400, 4900, 4902].contains(&text(rest).await.len()));
        }
        becomes(|| ended(&proxy, "success", "none"), &4.0);
        assert_eq!(ended(&proxy, "cancelled", "client"), 8.0);
    });
}

#[test]
fn the_last_piece_of_an_answer_is_waited_for_no_longer_than_any_other() {
    let (ours, proxy, _upstreams) = short("header_timeout = \"2s\"\nwrite_timeout = \"3s\"\n");
    run(async {
        let mut client = narrow(&proxy, &ours).await;
        let answers = begun(&mut client).await;
        becomes(|| ended(&proxy, "cancelled", "client"), &4.0);
        assert_eq!(ended(&proxy, "success", "none"), 0.0);
        let why = "cause=\"the client read nothing for too long\"";
        // A line is written a moment after its call is counted.
        becomes(|| proxy.log().matches(why).count(), &4);
        let stalled = "dualgauge_cut_connections_total{reason=\"stalled\"}";
        assert_eq!(proxy.metrics().value(stalled), 4.0);
        drop(answers);
    });
}
