//! The listener over real sockets.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};

use super::obey;
use crate::server::admin::{AdminTokens, LiveStreams, serve};

/// Runs `test` against a listener with the scripted owner; then ends the listener, and waits until it has ended.
async fn listening<F: Future>(test: impl FnOnce(SocketAddr) -> F) {
    listening_within(Duration::from_secs(60), test).await;
}

async fn listening_within<F: Future>(limit: Duration, test: impl FnOnce(SocketAddr) -> F) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (control, mut commands) = mpsc::channel(1);
    let (end, ended) = oneshot::channel::<()>();
    let served = serve(
        listener,
        control,
        AdminTokens::default(),
        LiveStreams::default(),
        async { drop(ended.await) },
    );
    let script = async {
        while let Some(command) = commands.recv().await {
            obey(command);
        }
    };
    let tested = async {
        let held = test(address).await;
        drop(end);
        held
    };
    // The output of the test, such as an open connection, is held until the listener has ended.
    let all = timeout(limit, async { tokio::join!(served, script, tested) });
    let (served, (), _held) = all.await.unwrap();
    served.unwrap();
}

/// Sends a text and reads until the listener closes.
async fn exchange(stream: &mut TcpStream, text: &str) -> String {
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn requests_follow_each_other_on_one_connection() {
    listening(|address| async move {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let body = r#"{"stage":"translate","percent":25}"#;
        let text = format!(
            "HEAD /healthz HTTP/1.1\r\nhost: {address}\r\n\r\n\
             PUT /api/v1/flags/ios-first HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let answers = exchange(&mut stream, &text).await;
        let (head, put) = answers.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(head.contains("content-length: 3"), "{head}");
        assert!(put.starts_with("HTTP/1.1 200 OK\r\n"), "{put}");
        assert!(put.contains("\"percent\":25,"), "{put}");
    })
    .await;
}

#[tokio::test]
async fn a_check_of_a_load_balancer_needs_no_host() {
    listening(|address| async move {
        for (path, status) in [
            ("/healthz", "200 OK"),
            // The scripted owner is not ready.
            ("/readyz", "503 Service Unavailable"),
            ("/metrics", "400 Bad Request"),
            ("/api/v1/flags", "400 Bad Request"),
        ] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let answer = exchange(&mut stream, &format!("GET {path} HTTP/1.0\r\n\r\n")).await;
            let expected = format!("HTTP/1.0 {status}\r\n");
            assert!(answer.starts_with(&expected), "{path}: {answer}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_body_with_too_large_a_length_is_refused_before_it_arrives() {
    listening(|address| async move {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let text = format!(
            "PUT /api/v1/flags/ios-first HTTP/1.1\r\nhost: {address}\r\n\
             content-type: application/json\r\ncontent-length: 65537\r\n\r\n"
        );
        let answer = exchange(&mut stream, &text).await;
        assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    })
    .await;
}

#[tokio::test]
async fn a_chunked_body_is_cut_at_the_limit() {
    listening(|address| async move {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let chunk = " ".repeat(0x8001);
        let text = format!(
            "PUT /api/v1/flags/ios-first HTTP/1.1\r\nhost: {address}\r\n\
             content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n\
             8001\r\n{chunk}\r\n8001\r\n{chunk}\r\n"
        );
        let answer = exchange(&mut stream, &text).await;
        assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    })
    .await;
}

#[tokio::test]
async fn the_end_closes_idle_connections() {
    listening(|address| async move {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let text = format!("GET /healthz HTTP/1.1\r\nhost: {address}\r\n\r\n");
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut first = [0; 15];
        stream.read_exact(&mut first).await.unwrap();
        assert_eq!(&first, b"HTTP/1.1 200 OK");
        // Still open: only the listener can end it.
        stream
    })
    .await;
}

#[tokio::test]
async fn probes_are_answered_despite_600_slow_clients() {
    listening(|address| async move {
        let mut slow = Vec::new();
        for _ in 0..600 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(b"GET /metr").await.unwrap();
            slow.push(stream);
        }
        // The scripted owner is not ready.
        for (path, status) in [("/healthz", 200), ("/readyz", 503)] {
            let text =
                format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
            let mut probe = TcpStream::connect(address).await.unwrap();
            let answer = exchange(&mut probe, &text).await;
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status} ")),
                "{answer}"
            );
        }
        slow
    })
    .await;
}

#[tokio::test]
async fn the_kill_switch_acts_despite_slow_clients_of_the_api() {
    listening(|address| async move {
        let body = "content-type: application/json\r\ncontent-length: 9\r\n\r\n";
        let flag = format!("PUT /api/v1/flags/ios-first HTTP/1.1\r\nhost: {address}\r\n{body}");
        let kill = format!("PUT /api/v1/kill HTTP/1.1\r\nhost: {address}\r\n{body}");
        let page = format!("GET /metrics HTTP/1.1\r\nhost: {address}\r\n\r\n");
        let mut slow = Vec::new();
        for (clients, text) in [(20, &*page), (60, &flag), (100, &kill), (100, "PUT /ap")] {
            for _ in 0..clients {
                let mut stream = TcpStream::connect(address).await.unwrap();
                stream.write_all(text.as_bytes()).await.unwrap();
                slow.push(stream);
            }
        }
        for method in ["PUT", "DELETE"] {
            let text = format!(
                "{method} /api/v1/kill HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
                 content-type: application/json\r\ncontent-length: 15\r\n\r\n{{\"who\":\"anna\"}} "
            );
            let mut operator = TcpStream::connect(address).await.unwrap();
            let answer = exchange(&mut operator, &text).await;
            assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        }
        slow
    })
    .await;
}

#[tokio::test]
async fn slow_clients_of_the_api_leave_connections_to_probes() {
    listening(|address| async move {
        let mut slow = Vec::new();
        for number in 0..60 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let text = format!(
                "PUT /api/v1/flags/ios-first HTTP/1.1\r\nhost: {address}\r\n\
                 content-type: application/json\r\ncontent-length: 9\r\n\r\n"
            );
            stream.write_all(text.as_bytes()).await.unwrap();
            if number >= 48 {
                let mut answer = String::new();
                stream.read_to_string(&mut answer).await.unwrap();
                assert!(answer.starts_with("HTTP/1.1 503 "), "{number}: {answer}");
            }
            slow.push(stream);
        }
        let text = format!("GET /healthz HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
        let mut probe = TcpStream::connect(address).await.unwrap();
        let answer = exchange(&mut probe, &text).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        slow
    })
    .await;
}

/// Reads the status of a response whose body may go on.
async fn status(stream: &mut TcpStream) -> String {
    let mut line = [0; 12];
    stream.read_exact(&mut line).await.unwrap();
    String::from_utf8(line.to_vec()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_stream_on_a_reused_connection_ends_whole_at_its_lifetime() {
    listening_within(Duration::from_secs(300), |address| async move {
        let mut stream = TcpStream::connect(address).await.unwrap();
        // A HEAD opens a stream that ends at once.
        let head = format!("HEAD /api/v1/live HTTP/1.1\r\nhost: {address}\r\n\r\n");
        for _ in 0..10 {
            stream.write_all(head.as_bytes()).await.unwrap();
            let mut answer = Vec::new();
            while !answer.ends_with(b"\r\n\r\n") {
                answer.push(stream.read_u8().await.unwrap());
            }
            sleep(Duration::from_secs(3)).await;
        }
        let text = format!("GET /api/v1/live HTTP/1.1\r\nhost: {address}\r\n\r\n");
        let answer = exchange(&mut stream, &text).await;
        assert!(answer.contains("event: overview\n"), "{answer}");
        assert!(answer.ends_with("\r\n0\r\n\r\n"), "{answer}");
    })
    .await;
}

#[tokio::test]
async fn live_streams_leave_connections_to_requests() {
    listening(|address| async move {
        let mut open = Vec::new();
        for number in 0..60 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let text = format!("GET /api/v1/live HTTP/1.1\r\nhost: {address}\r\n\r\n");
            stream.write_all(text.as_bytes()).await.unwrap();
            let expected = if number < 16 {
                "HTTP/1.1 200"
            } else {
                "HTTP/1.1 503"
            };
            assert_eq!(status(&mut stream).await, expected, "{number}");
            // A refused client goes away.
            if number < 16 {
                open.push(stream);
            }
        }
        let text = format!("GET /metrics HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
        let mut scrape = TcpStream::connect(address).await.unwrap();
        let answer = exchange(&mut scrape, &text).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        open
    })
    .await;
}
