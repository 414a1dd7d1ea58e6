//! Bytes on a socket.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::oneshot;

use super::*;

/// No test may hang; this is far more than any of them needs.
async fn within<T>(future: impl Future<Output = T>) -> T {
    let limit = Duration::from_secs(20);
    time::timeout(limit, future)
        .await
        .expect("it took too long")
}

/// Runs `talk` against a served sample; `talk` ends the server through the sender, or by dropping it.
async fn with_server<F: Future<Output = ()>>(talk: impl FnOnce(String, oneshot::Sender<()>) -> F) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (end, ended) = oneshot::channel();
    let server = serve(listener, Database::seeded().unwrap(), async {
        let _ = ended.await;
    });
    within(async { tokio::join!(server, talk(address, end)) }).await;
}

async fn read_until(stream: &mut TcpStream, end: &str) -> String {
    let mut read = Vec::new();
    while !read.ends_with(end.as_bytes()) {
        assert_ne!(
            stream.read_buf(&mut read).await.unwrap(),
            0,
            "cut short: {read:?}"
        );
    }
    String::from_utf8(read).unwrap()
}

async fn read_all(stream: &mut TcpStream) -> String {
    let mut read = String::new();
    stream.read_to_string(&mut read).await.unwrap();
    read
}

#[tokio::test]
async fn one_connection_carries_both_languages_and_ends_when_asked() {
    with_server(async |address, end| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream
            .write_all(b"POST /mcp/v1/tools/call HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 39\r\n\r\n{\"name\":\"list_tables\",\"arguments\":{}}  ")
            .await
            .unwrap();
        let rest = read_until(&mut stream, "}").await;
        assert!(rest.starts_with("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: "));
        assert!(rest.ends_with(r#"{"content":[{"type":"text","text":"['users']"}],"isError":false}"#));
        stream
            .write_all(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n16\r\n{\"id\":1,\"method\":\"ping\r\n2\r\n\"}\r\n0\r\n\r\n")
            .await
            .unwrap();
        let rpc = read_until(&mut stream, "{}}").await;
        assert!(rpc.ends_with(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#));
        end.send(()).unwrap();
        assert_eq!(read_all(&mut stream).await, "");
    })
    .await;
}

#[tokio::test]
async fn a_head_request_gets_the_length_and_no_body() {
    with_server(async |address, _end| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = b"HEAD /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        stream.write_all(head).await.unwrap();
        let reply = read_all(&mut stream).await;
        assert!(
            reply.starts_with("HTTP/1.1 405 Method Not Allowed\r\n"),
            "{reply}"
        );
        assert!(reply.contains("\r\nallow: GET\r\n"), "{reply}");
        assert!(reply.contains("\r\ncontent-length: 31\r\n"), "{reply}");
        assert!(reply.ends_with("\r\n\r\n"), "{reply}");
    })
    .await;
}

#[tokio::test]
async fn a_short_stream_comes_in_chunks() {
    with_server(async |address, _end| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let get = b"GET /mcp/v1/sse HTTP/1.1\r\nHost: x\r\n\r\n";
        stream.write_all(get).await.unwrap();
        let reply = read_until(&mut stream, "\r\n0\r\n\r\n").await;
        assert!(reply.contains("\r\ntransfer-encoding: chunked\r\n"), "{reply}");
        assert!(
            reply.contains(
                "event: message\r\ndata: {\"type\": \"notification\", \"message\": \"Connected to MCP server\"}\r\n\r\n"
            ),
            "{reply}"
        );
    })
    .await;
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_whether_or_not_it_tells_its_length() {
    with_server(async |address, _end| {
        let told = format!("Content-Length: {}\r\n\r\n", MAX_BODY + 1);
        let chunk = format!("{:x}\r\n{}", MAX_BODY + 1, "x".repeat(MAX_BODY + 1));
        let untold = format!("Transfer-Encoding: chunked\r\n\r\n{chunk}");
        for rest in [told, untold] {
            let mut stream = TcpStream::connect(&address).await.unwrap();
            let head = "POST /rpc HTTP/1.1\r\nHost: x\r\n";
            stream.write_all(head.as_bytes()).await.unwrap();
            stream.write_all(rest.as_bytes()).await.unwrap();
            let reply = read_until(&mut stream, "}").await;
            assert!(reply.starts_with("HTTP/1.1 413 "), "{reply}");
            assert!(
                reply.ends_with(r#"{"detail":"Request Entity Too Large"}"#),
                "{reply}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn an_open_stream_ends_with_the_server() {
    with_server(async |address, end| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream
            .write_all(b"POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 17\r\n\r\n{\"method\":\"ping\"}")
            .await
            .unwrap();
        let reply = read_until(&mut stream, "\r\n\r\n").await;
        let session = reply.split_once("mcp-session-id: ").unwrap().1;
        let session = session.split_once("\r\n").unwrap().0;
        let get = format!("GET /mcp HTTP/1.1\r\nHost: x\r\nMcp-Session-Id: {session}\r\n\r\n");
        stream.write_all(get.as_bytes()).await.unwrap();
        read_until(&mut stream, "established\"}\r\n\r\n\r\n").await;
        end.send(()).unwrap();
        assert_eq!(read_all(&mut stream).await, "0\r\n\r\n");
    })
    .await;
}

#[tokio::test]
async fn a_call_that_never_comes_does_not_hold_up_the_end() {
    with_server(async |address, end| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let half =
            b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n";
        stream.write_all(half).await.unwrap();
        // The server says that it waits for the body, so the call is under way.
        read_until(&mut stream, "HTTP/1.1 100 Continue\r\n\r\n").await;
        // From here on only the grace passes, and without a real wait.
        time::pause();
        end.send(()).unwrap();
        assert_eq!(read_all(&mut stream).await, "");
    })
    .await;
}

#[tokio::test(flavor = "local")]
async fn a_local_runtime_serves_as_well() {
    with_server(async |address, _end| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let get = b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        stream.write_all(get).await.unwrap();
        assert!(read_all(&mut stream).await.contains("\"healthy\""));
    })
    .await;
}
