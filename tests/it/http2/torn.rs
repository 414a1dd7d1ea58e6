//! Uploads that their client resets: whatever it says of its reasons, half a body goes on as no whole one.

use std::future::poll_fn;

use bytes::Bytes;
use h2::Reason;
use http::Method;
use tokio::sync::oneshot;

use super::{Client, begin, request, run};
use crate::scene::{Called, json};
use crate::support::{Upstream, becomes, both};

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
