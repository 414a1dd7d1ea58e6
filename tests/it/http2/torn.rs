//! Uploads that their client resets, and answers that their server breaks off: half a body goes on as no whole one, whatever
//! is said of the reasons, and what came before it goes on.

use std::future::poll_fn;

use bytes::Bytes;
use h2::Reason;
use http::{Method, StatusCode};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::{Client, begin, request, run};
use crate::scene::{Called, json};
use crate::support::{Upstream, WITHIN, becomes, both};
use crate::upstream_failures::TORN;

const REASONS: [Reason; 2] = [Reason::NO_ERROR, Reason::CANCEL];

/// What a client has sent of a body.
async fn half(client: &mut Client, target: &str, body: &'static str) -> h2::SendStream<Bytes> {
    poll_fn(|cx| client.send.poll_ready(cx)).await.unwrap();
    let json = [("content-type", "application/json")];
    let head = request(Method::POST, target, &json);
    let (_, mut sent) = client.send.send_request(head, false).unwrap();
    sent.send_data(Bytes::from_static(body.as_bytes()), false)
        .unwrap();
    client.settle().await;
    sent
}

/// What blocks, beside the client.
fn beside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> oneshot::Receiver<T> {
    let (tell, told) = oneshot::channel();
    std::thread::spawn(move || tell.send(work()));
    told
}

#[test]
fn an_upload_that_is_reset_never_ends_at_the_server() {
    for reason in REASONS {
        let (rest, rpc) = (Upstream::start(), Upstream::start());
        let (ours, proxy) = begin(&format!("{}[limits]\n", both(&rest, &rpc)));
        run(async {
            let mut client = Client::connect(&proxy, &ours, None).await;
            let mut sent = half(&mut client, "/a", "half").await;
            let begun = beside(move || {
                let mut server = rest.accept();
                server.read_head();
                assert_eq!(server.read_chunk().unwrap(), b"half");
                server
            });
            let mut server = begun.await.unwrap();
            sent.send_reset(reason);
            client.settle().await;
            // Never `0\r\n\r\n`.
            beside(move || server.expect_gone()).await.unwrap();
        });
        proxy.log_line(&["path=/a ", "blame=client"]);
        becomes(|| proxy.metrics().value("dualgauge_calls_in_flight"), &0.0);
    }
}

#[test]
fn a_message_that_is_reset_before_its_end_is_none() {
    for reason in REASONS {
        let (rest, rpc) = (Upstream::start(), Upstream::start());
        let (ours, proxy) = begin(&format!("{}[limits]\n", both(&rest, &rpc)));
        run(async {
            let mut client = Client::connect(&proxy, &ours, None).await;
            let text = r#"{"jsonrpc":"2.0","id":1,"method":"torn"}"#;
            let mut sent = half(&mut client, "/rpc", text).await;
            sent.send_reset(reason);
            client.settle().await;
            let first = beside(move || {
                let mut server = rpc.accept();
                let first = server.read_request();
                server.send(json(r#"{"jsonrpc":"2.0","id":1,"result":1}"#));
                Called::of(&first).method().to_owned()
            });
            let fields = [("content-type", "application/json")];
            let whole = r#"{"jsonrpc":"2.0","id":1,"method":"whole"}"#;
            let head = request(Method::POST, "/rpc", &fields);
            let _ = client.ask(head, whole).await;
            assert_eq!(first.await.unwrap(), "whole");
        });
    }
}

/// The client has the head, however soon the rest breaks off.
#[test]
fn an_answer_that_breaks_off_with_its_head_has_its_head() {
    for answer in TORN {
        let (rest, rpc) = (Upstream::start(), Upstream::start());
        let (ours, proxy) = begin(&format!("{}[limits]\n", both(&rest, &rpc)));
        run(async {
            let mut client = Client::connect(&proxy, &ours, None).await;
            let broken = beside(move || {
                let mut wire = rest.accept();
                wire.next_request().unwrap();
                wire.send(format!("HTTP/1.1 200 OK\r\n{answer}"));
            });
            let head = request(Method::GET, "/a", &[]);
            let asked = timeout(WITHIN, client.ask(head, "")).await;
            let head = asked.unwrap();
            broken.await.unwrap();
            assert_eq!(head.status(), StatusCode::OK);
            let (mut body, mut came) = (head.into_body(), Vec::new());
            let fault = loop {
                match timeout(WITHIN, body.data()).await.unwrap() {
                    Some(Ok(piece)) => came.extend_from_slice(&piece),
                    Some(Err(fault)) => break fault,
                    None => panic!("{answer:?} is no whole answer"),
                }
            };
            assert!(fault.is_reset(), "{fault}");
            assert_eq!(came == b"[7]", answer.contains("[7]"), "{came:?}");
        });
        proxy.log_line(&["outcome=cut", "status=200"]);
    }
}
