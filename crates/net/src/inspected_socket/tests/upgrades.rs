//! Bytes that follow an upgrade request are held back until its response.

use futures_util::StreamExt;
use http_body_util::StreamBody;
use hyper::body::Frame;

use super::*;

const ASK: &str = "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n";
const SWITCHED: &str = "HTTP/1.1 101 Switching Protocols\r\nserver: service\r\n\r\n";

/// Responds with 101, and returns the upgraded stream.
async fn switch(server: DuplexStream) -> hyper::upgrade::Upgraded {
    let inspection = Inspection::default();
    let inspected = Inspected::new(server, HeadLimits::default(), inspection.clone());
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let sender = std::sync::Mutex::new(Some(sender));
    let service = service_fn(move |request: Request<Incoming>| {
        let number = inspection.begin().number;
        let upgrade = hyper::upgrade::on(request);
        let sender = sender.lock().unwrap().take().unwrap();
        assert!(sender.send(upgrade).is_ok());
        inspection.record_status(number, StatusCode::SWITCHING_PROTOCOLS);
        let reply = reply(StatusCode::SWITCHING_PROTOCOLS, "");
        async move { Ok::<_, Infallible>(reply) }
    });
    http1::Builder::new()
        .auto_date_header(false)
        .half_close(true)
        .serve_connection(DisconnectWatch::new(inspected), service)
        .with_upgrades()
        .await
        .unwrap();
    receiver.await.unwrap().await.unwrap()
}

/// Sends bytes that are not HTTP directly after the request, and more after the response.
async fn talk(client: DuplexStream) -> String {
    let (mut from, mut to) = tokio::io::split(client);
    let send = async {
        to.write_all(ASK.as_bytes()).await.unwrap();
        to.write_all(b"\x81early").await.unwrap();
    };
    let mut head = vec![0; SWITCHED.len()];
    let (_, head_read) = tokio::join!(send, from.read_exact(&mut head));
    head_read.unwrap();
    assert_eq!(String::from_utf8(head).unwrap(), SWITCHED);
    to.write_all(b"\x82late").await.unwrap();
    to.shutdown().await.unwrap();
    let mut echo = String::new();
    from.read_to_string(&mut echo).await.unwrap();
    echo
}

const SENT: &[u8] = b"\x81early\x82late";

#[tokio::test]
async fn after_an_upgrade_the_inspector_is_transparent() {
    for width in WIDTHS {
        let (client, server) = duplex(width);
        let tunnel = async {
            let mut upgraded = TokioIo::new(switch(server).await);
            let mut came = Vec::new();
            upgraded.read_to_end(&mut came).await.unwrap();
            assert_eq!(came, SENT, "{width}");
            upgraded.write_all(b"echo").await.unwrap();
        };
        let ((), echo) = within(async { tokio::join!(tunnel, talk(client)) }).await;
        assert_eq!(echo, "echo");
    }
}

#[tokio::test]
async fn after_a_declined_upgrade_http_goes_on() {
    let closing = "GET /2 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let told = "2 GET /ws te=Some(\"TRAILERS\") trailers=0 ";
    for width in WIDTHS {
        let output = exchange(width, [FIRST, ASK, closing].concat().as_bytes()).await;
        let last = "3 GET /2 te=Some(\"TRAILERS\") trailers=0 ";
        assert_eq!(bodies(&output), [FIRST_TOLD, told, last], "{width}");
        let output = exchange(width, [FIRST, ASK, "\x01"].concat().as_bytes()).await;
        assert_eq!(bodies(&output), [FIRST_TOLD, told, "3 Method"], "{width}");
    }
}

#[tokio::test]
async fn a_declined_upgrade_wakes_a_reader_that_hyper_left_waiting() {
    let (mut client, server) = duplex(1 << 20);
    let talk = async {
        // In two steps: the second request arrives when the reader already waits for bytes.
        client.write_all(ASK.as_bytes()).await.unwrap();
        let mut start = [0; 15];
        client.read_exact(&mut start).await.unwrap();
        let closing = "GET /2 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        client.write_all(closing.as_bytes()).await.unwrap();
        let mut output = String::new();
        client.read_to_string(&mut output).await.unwrap();
        assert!(
            output.ends_with("2 GET /2 te=Some(\"TRAILERS\") trailers=0 "),
            "{output}"
        );
    };
    within(async { tokio::join!(serve(server), talk) }).await;
}

#[tokio::test]
async fn a_client_that_goes_before_the_answer_ends_the_connection() {
    for behind in ["early", ""] {
        let (mut client, server) = duplex(1 << 20);
        let inspection = Inspection::default();
        let inspected = Inspected::new(server, HeadLimits::default(), inspection.clone());
        let service = service_fn(move |_: Request<Incoming>| {
            let _ = inspection.begin();
            std::future::pending::<Result<Reply, Infallible>>()
        });
        client.write_all(ASK.as_bytes()).await.unwrap();
        client.write_all(behind.as_bytes()).await.unwrap();
        let served = http1::Builder::new()
            .half_close(true)
            .serve_connection(DisconnectWatch::new(inspected), service);
        let goes = async {
            tokio::task::yield_now().await;
            drop(client);
        };
        let (served, ()) = within(async { tokio::join!(served, goes) }).await;
        assert!(served.is_err(), "{behind:?}");
    }
}

#[tokio::test]
async fn a_client_that_leaves_during_a_declining_response_ends_the_connection() {
    let (mut client, server) = duplex(1 << 20);
    let inspection = Inspection::default();
    let inspected = Inspected::new(server, HeadLimits::default(), inspection.clone());
    let service = service_fn(move |_: Request<Incoming>| {
        let number = inspection.begin().number;
        inspection.record_status(number, StatusCode::OK);
        // The body starts and never ends.
        let pieces = futures_util::stream::once(async {
            Ok::<_, Infallible>(Frame::data(Bytes::from_static(b"piece")))
        });
        let body = StreamBody::new(pieces.chain(futures_util::stream::pending()));
        std::future::ready(Ok::<_, Infallible>(Response::new(body)))
    });
    client.write_all(ASK.as_bytes()).await.unwrap();
    let served = http1::Builder::new()
        .half_close(true)
        .serve_connection(DisconnectWatch::new(inspected), service);
    let goes = async {
        let mut head = [0; 15];
        client.read_exact(&mut head).await.unwrap();
        assert_eq!(&head, b"HTTP/1.1 200 OK");
        tokio::task::yield_now().await;
        drop(client);
    };
    let (served, ()) = within(async { tokio::join!(served, goes) }).await;
    assert!(served.is_err());
}
