//! Batches whose clients leave before the answer: nobody has got the answers to the calls that had ended by then.

use std::future::poll_fn;

use bytes::Bytes;
use http::Method;

use crate::http2::{Client, begin, request, run};
use crate::scene::{Called, json};
use crate::support::{Proxy, Upstream, Wire, becomes, rpc_only};
use crate::websocket::ends;

/// One call of it runs at a time, so that whoever is asked for the second has ended the first.
/// The proxy answers one method itself, so that the batch is split.
const ONE_BY_ONE: &str =
    "[rpc]\nbatch_concurrency = 1\n[[local]]\nrpc = 'here'\nanswer = { result = {} }\n";
const BATCH: &str = r#"[{"jsonrpc":"2.0","id":1,"method":"done"},{"jsonrpc":"2.0","id":2,"method":"fails"},{"jsonrpc":"2.0","id":3,"method":"slow"},{"jsonrpc":"2.0","method":"here"}]"#;

/// Serves a batch up to its last call, and gives the connection that this waits on.
fn served(upstream: &Upstream) -> Wire {
    let mut server = upstream.accept();
    let asked = server.read_request();
    let id = Called::of(&asked).id().to_owned();
    server.send(json(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":1}}"#)));
    server.read_request();
    // No JSON-RPC: a failure stays one, whoever would have read of it.
    server.send(json("none"));
    let mut server = match server.next_request() {
        Some(_) => return server,
        None => upstream.accept(),
    };
    server.read_request();
    server
}

/// How the calls have ended: what was answered is cancelled, by the client, and what had failed has failed.
fn expect_cancelled(proxy: &Proxy) {
    const LABELS: [&str; 6] = ["route", "client", "side", "stage", "outcome", "blame"];
    let ended = || {
        let rows = proxy.metrics().table("dualgauge_calls_total", &LABELS);
        let ways = ["cancelled client", "success none", "failed upstream"];
        ways.map(|way| {
            let ended = rows.iter().filter(|(row, _)| row.ends_with(way));
            ended.map(|(_, count)| count).sum::<f64>()
        })
    };
    becomes(ended, &[2.0, 0.0, 1.0]);
    proxy.log_line(&["outcome=cancelled", "blame=client", "rpc_method=done"]);
    becomes(|| proxy.metrics().value("dualgauge_calls_in_flight"), &0.0);
}

#[test]
fn over_http_1() {
    let upstream = Upstream::start();
    let proxy = Proxy::start(&format!("{}{ONE_BY_ONE}", rpc_only(&upstream)));
    let mut client = proxy.connect();
    let length = BATCH.len();
    client.send(format!(
        "POST /rpc HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{BATCH}"
    ));
    let _server = served(&upstream);
    client.reset();
    expect_cancelled(&proxy);
}

#[test]
fn over_http_2() {
    let upstream = Upstream::start();
    let config = format!("{}[limits]\n{ONE_BY_ONE}", rpc_only(&upstream));
    let (ours, proxy) = begin(&config);
    run(async {
        let mut client = Client::connect(&proxy, &ours, None).await;
        poll_fn(|cx| client.send.poll_ready(cx)).await.unwrap();
        let posted = request(
            Method::POST,
            "/rpc",
            &[("content-type", "application/json")],
        );
        let (answer, mut sent) = client.send.send_request(posted, false).unwrap();
        sent.send_data(Bytes::from_static(BATCH.as_bytes()), true)
            .unwrap();
        client.settle().await;
        let _server = served(&upstream);
        drop((answer, sent));
        client.settle().await;
        expect_cancelled(&proxy);
    });
}

#[test]
fn over_a_websocket() {
    let upstream = Upstream::start();
    let proxy = Proxy::start(&format!(
        "{}{}",
        rpc_only(&upstream),
        ONE_BY_ONE.replacen("[rpc]\n", "[rpc]\nwebsocket = true\n", 1)
    ));
    let mut client = ends::connect(&proxy);
    client.say(BATCH);
    let _server = served(&upstream);
    drop(client);
    expect_cancelled(&proxy);
}
