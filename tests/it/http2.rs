//! Clients that speak HTTP/2: the same calls, and what a connection may cost.

mod malformed;
mod torn;

use std::future::poll_fn;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use h2::client::{Builder, SendRequest};
use http::{Method, Request, Response, StatusCode};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::scene::{Called, json};
use crate::support::certificates::{
    Authority, Certified, authority, certified, client_config, secured_with,
};
use crate::support::{Proxy, Upstream, WITHIN, becomes, both, rest_only};

const TLS: &str =
    "[listen.tls]\ncertificate = \"own.pem\"\nkey = \"own.key\"\nclient_ca = \"ca.pem\"\n";

/// A proxy behind TLS.
pub(crate) fn begin(config: &str) -> (Authority, Proxy) {
    let ours = authority();
    let own = certified(&ours, "proxy", "proxy.example");
    let files = [
        ("own.pem", own.pem.clone()),
        ("own.key", own.key_pem()),
        ("ca.pem", ours.pem()),
    ];
    let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
    let proxy = Proxy::start_with(
        &config.replace("[limits]", &format!("{TLS}[limits]")),
        &files,
    );
    (ours, proxy)
}

/// A client's connection, which is polled beside the test.
pub(crate) struct Client {
    pub(crate) send: SendRequest<Bytes>,
    pings: h2::PingPong,
    ends: JoinSet<Result<(), h2::Error>>,
}

impl Client {
    pub(crate) async fn connect(
        proxy: &Proxy,
        ours: &Authority,
        shows: Option<&Certified>,
    ) -> Client {
        Client::connect_by(proxy, (ours, shows), &Builder::new()).await
    }

    pub(crate) async fn connect_by(
        proxy: &Proxy,
        (ours, shows): (&Authority, Option<&Certified>),
        builder: &Builder,
    ) -> Client {
        Client::open(proxy.address(), (ours, shows), builder).await
    }

    /// A client of an address, which may be one process's after another.
    pub(crate) async fn at(address: SocketAddr, ours: &Authority) -> Client {
        Client::open(address, (ours, None), &Builder::new()).await
    }

    async fn open(
        address: SocketAddr,
        (ours, shows): (&Authority, Option<&Certified>),
        builder: &Builder,
    ) -> Client {
        let config = client_config(ours, shows, &["h2", "http/1.1"]);
        let name = ServerName::try_from("proxy.example").unwrap();
        let stream = TcpStream::connect(address).await.unwrap();
        let stream = TlsConnector::from(config)
            .connect(name, stream)
            .await
            .unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let (send, mut connection) = builder.handshake(stream).await.unwrap();
        let pings = connection.ping_pong().unwrap();
        let mut ends = JoinSet::new();
        ends.spawn(connection);
        Client { send, pings, ends }
    }

    /// Sends a call, and gives the head of its answer.
    pub(crate) async fn ask(
        &mut self,
        request: Request<()>,
        body: &'static str,
    ) -> Response<h2::RecvStream> {
        poll_fn(|cx| self.send.poll_ready(cx)).await.unwrap();
        let (answer, mut sent) = self.send.send_request(request, body.is_empty()).unwrap();
        if !body.is_empty() {
            sent.send_data(Bytes::from_static(body.as_bytes()), true)
                .unwrap();
        }
        answer.await.unwrap()
    }

    /// Waits until the proxy has read all that was sent.
    pub(crate) async fn settle(&mut self) {
        self.pings.ping(h2::Ping::opaque()).await.unwrap();
    }

    /// Goes away without a word.
    pub(crate) async fn goes(mut self) {
        self.ends.shutdown().await;
    }

    /// Waits for the end of the connection.
    async fn end(&mut self) -> Result<(), h2::Error> {
        timeout(WITHIN, self.ends.join_next())
            .await
            .unwrap()
            .unwrap()
            .unwrap()
    }
}

pub(crate) async fn text(answer: Response<h2::RecvStream>) -> String {
    let mut body = answer.into_body();
    let mut read = Vec::new();
    while let Some(piece) = body.data().await {
        let piece = piece.unwrap();
        body.flow_control().release_capacity(piece.len()).unwrap();
        read.extend_from_slice(&piece);
    }
    String::from_utf8(read).unwrap()
}

pub(crate) fn request(method: Method, target: &str, fields: &[(&str, &str)]) -> Request<()> {
    let uri = format!("https://proxy.example{target}");
    let mut request = Request::builder().method(method).uri(uri);
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap()
}

pub(crate) fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(test);
}

#[test]
fn calls_are_what_they_are_over_http_1() {
    let rest = Upstream::answering(json("\"rest\""));
    let rpc = Upstream::serving(|asked| {
        let called = Called::of(asked);
        json(format!(
            r#"{{"jsonrpc":"2.0","id":{},"result":{}}}"#,
            called.id(),
            called.params()
        ))
    });
    let more = "[[client]]\nname = \"phones\"\nmatch = { subject = { cn = \"ios-*\" } }\n\
        [[route]]\nname = \"a\"\nrest = \"PUT /a/{id}\"\nrpc = \"a.put\"\nbody = { n = \"{n}\" }\n\
        params = { id = \"{id}\", n = \"{n}\" }\n[rollout.default]\nrest = \"translate\"\n";
    let (ours, proxy) = begin(&format!("{}[limits]\n{more}", both(&rest, &rpc)));
    let phone = certified(&ours, "ios-1", "a.phones.example");
    run(async {
        let mut client = Client::connect(&proxy, &ours, Some(&phone)).await;
        let fields = [("cookie", "a=1"), ("cookie", "b=2"), ("x-a", "1")];
        let answer = client
            .ask(request(Method::GET, "/p?q=1", &fields), "")
            .await;
        assert_eq!(
            (answer.status(), answer.version()),
            (StatusCode::OK, http::Version::HTTP_2)
        );
        assert_eq!(text(answer).await, "\"rest\"");
        let fields = [("content-type", "application/json")];
        let put = request(Method::PUT, "/a/7", &fields);
        assert_eq!(
            text(client.ask(put, r#"{"n":1.50}"#).await).await,
            r#"{"id":"7","n":1.50}"#
        );
        let call = r#"{"jsonrpc":"2.0","id":"x","method":"m","params":{"k":[1]}}"#;
        let posted = text(
            client
                .ask(request(Method::POST, "/rpc", &fields), call)
                .await,
        )
        .await;
        assert_eq!(posted, r#"{"jsonrpc":"2.0","id":"x","result":{"k":[1]}}"#);
    });
    let head = &rest.request().head;
    assert_eq!(head.start, "GET /p?q=1 HTTP/1.1");
    assert_eq!(head.one("cookie"), Some("a=1; b=2"));
    assert_eq!(head.one("host"), Some("proxy.example"));
    assert_eq!(head.one("via"), Some("2.0 dualgauge"));
    let expected = "for=127.0.0.1;host=\"proxy.example\";proto=https";
    assert_eq!(head.one("forwarded"), Some(expected));
    let line = proxy.log_line(&["path=/p "]);
    assert!(line.contains("client=phones proof=authenticated"), "{line}");
}

#[test]
fn a_response_to_head_has_a_length_and_no_body_whoever_writes_it() {
    let rest = Upstream::serving(|asked| match asked.head.start.starts_with("HEAD /bad") {
        true => b"HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n".to_vec(),
        false => b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n".to_vec(),
    });
    let rpc = Upstream::serving(|asked| {
        let id = Called::of(asked).id().to_owned();
        json(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"a":1}}}}"#
        ))
    });
    let more = "[[route]]\nname = \"a\"\nrest = \"GET /a/{id}\"\nrpc = \"a.get\"\n\
        [rollout.default]\nrest = \"translate\"\n\
        [[local]]\nrest = \"GET /own\"\nanswer = { status = 200, body = { b = 2 } }\n";
    let (ours, proxy) = begin(&format!("{}[limits]\n{more}", both(&rest, &rpc)));
    run(async {
        let mut client = Client::connect(&proxy, &ours, None).await;
        for (target, status, length) in [
            ("/x", 200, Some(5)),
            ("/bad", 502, None),
            ("/a/7", 200, Some(7)),
            ("/a/7?zz=1", 400, None),
            ("/a/7/", 400, None),
            ("/own", 200, Some(7)),
        ] {
            let answer = client.ask(request(Method::HEAD, target, &[]), "").await;
            assert_eq!(answer.status(), status, "{target}");
            let told = answer.headers()["content-length"].to_str().unwrap();
            let told: usize = told.parse().unwrap();
            assert!(
                told > 0 && length.is_none_or(|length| length == told),
                "{target}: {told}"
            );
            assert_eq!(text(answer).await, "", "{target}");
        }
    });
}

#[test]
fn what_could_be_read_in_two_ways_is_refused_and_the_connection_goes_on() {
    let rest = Upstream::answering(json("1"));
    let (ours, proxy) = begin(&format!(
        "{}[limits]\ntarget = \"100B\"\n",
        rest_only(&rest)
    ));
    run(async {
        let mut client = Client::connect(&proxy, &ours, None).await;
        let tunnel = Request::builder()
            .method(Method::CONNECT)
            .uri("a.example:443");
        let answer = client.ask(tunnel.body(()).unwrap(), "").await;
        assert_eq!(answer.status(), 400);
        let answer = client
            .ask(request(Method::GET, "/", &[("host", "another")]), "")
            .await;
        assert_eq!(answer.status(), 400);
        let long = format!("/{}", "a".repeat(200));
        assert_eq!(
            client
                .ask(request(Method::GET, &long, &[]), "")
                .await
                .status(),
            414
        );
        assert_eq!(
            client
                .ask(request(Method::GET, "/", &[]), "")
                .await
                .status(),
            200
        );
    });
    assert_eq!(rest.requests().len(), 1);
}

#[test]
fn a_header_list_beyond_the_limit_is_refused_told_and_counted() {
    let rest = Upstream::answering(json("1"));
    let (ours, proxy) = begin(&format!("{}[limits]\nhead = \"8KiB\"\n", rest_only(&rest)));
    run(async {
        let mut client = Client::connect(&proxy, &ours, None).await;
        let long = "a".repeat(9000);
        let fields = [("x-long", &*long)];
        let answer = client.ask(request(Method::GET, "/long", &fields), "").await;
        assert_eq!(answer.status(), 431);
        let short = "a".repeat(7000);
        let fields = [("x-long", &*short)];
        let answer = client.ask(request(Method::GET, "/", &fields), "").await;
        assert_eq!(answer.status(), 200);
    });
    proxy.log_line(&[
        "path=/long",
        "status=431",
        "blame=client",
        "reason=head_too_large",
    ]);
    let labels = ["route", "client", "side", "stage", "outcome", "blame"];
    let calls = proxy.metrics().table("dualgauge_calls_total", &labels);
    assert_eq!(calls.values().sum::<f64>(), 2.0);
    assert_eq!(rest.requests().len(), 1);
}

#[test]
fn http_2_may_be_off() {
    let rest = Upstream::answering(json("1"));
    let config = format!("{}[limits]\n", rest_only(&rest));
    let ours = authority();
    let own = certified(&ours, "proxy", "proxy.example");
    let files = [
        ("own.pem", own.pem.clone()),
        ("own.key", own.key_pem()),
        ("ca.pem", ours.pem()),
    ];
    let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
    let proxy = Proxy::start_with(&format!("{config}{TLS}http2 = false\n"), &files);
    let mut stream = secured_with(&proxy, &ours, None, &["h2", "http/1.1"]);
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200 "));
    let mut only = secured_with(&proxy, &ours, None, &["h2"]);
    assert!(only.write_all(b"PRI").and_then(|()| only.flush()).is_err());
}

#[test]
fn a_client_that_resets_in_a_loop_is_cut() {
    let rest = Upstream::start();
    let (ours, proxy) = begin(&format!("{}[limits]\n", rest_only(&rest)));
    run(async {
        let mut client = Client::connect(&proxy, &ours, None).await;
        let mut resets = 0;
        loop {
            if poll_fn(|cx| client.send.poll_ready(cx)).await.is_err() {
                break;
            }
            match client
                .send
                .send_request(request(Method::GET, "/", &[]), true)
            {
                // It has the time to be taken, and is reset before it is answered.
                Ok((_, mut sent)) => {
                    tokio::task::yield_now().await;
                    sent.send_reset(h2::Reason::CANCEL);
                }
                Err(_) => break,
            }
            resets += 1;
            assert!(resets < 100_000, "nobody minds");
        }
        assert!(client.end().await.is_err());
        // Others are served as before, and nothing is left of it.
        let mut other = Client::connect(&proxy, &ours, None).await;
        poll_fn(|cx| other.send.poll_ready(cx)).await.unwrap();
    });
    becomes(|| proxy.metrics().value("dualgauge_calls_in_flight"), &0.0);
}

#[test]
fn a_flood_of_streams_is_bounded() {
    let rest = Upstream::start();
    let (ours, proxy) = begin(&format!("{}[limits]\n", rest_only(&rest)));
    run(async {
        let mut client = Client::connect(&proxy, &ours, None).await;
        let mut asked = Vec::new();
        for _ in 0..100 {
            poll_fn(|cx| client.send.poll_ready(cx)).await.unwrap();
            asked.push(
                client
                    .send
                    .send_request(request(Method::GET, "/", &[]), true)
                    .unwrap(),
            );
        }
        client.settle().await;
        assert_eq!(client.send.current_max_send_streams(), 100);
        let admitted = || proxy.metrics().value("dualgauge_calls_in_flight");
        becomes(admitted, &100.0);
        let more = timeout(
            Duration::from_millis(200),
            poll_fn(|cx| client.send.poll_ready(cx)),
        );
        // The library holds one more back by itself.
        let _ = more.await.map(|ready| {
            ready.unwrap();
            client
                .send
                .send_request(request(Method::GET, "/", &[]), true)
                .unwrap()
        });
        client.settle().await;
        assert_eq!(admitted(), 100.0);
    });
}

#[test]
fn a_drain_lets_streams_end() {
    let rest = Upstream::start();
    let (ours, proxy) = begin(&format!("{}[limits]\n", rest_only(&rest)));
    run(async {
        let mut client = Client::connect(&proxy, &ours, None).await;
        poll_fn(|cx| client.send.poll_ready(cx)).await.unwrap();
        let (answer, _) = client
            .send
            .send_request(request(Method::GET, "/", &[]), true)
            .unwrap();
        // The client's connection goes on beside what waits here for the upstream.
        let mut waiting = JoinSet::new();
        waiting.spawn_blocking(move || {
            let mut wire = rest.accept();
            wire.next_request().unwrap();
            (rest, wire)
        });
        let (_rest, mut wire) = waiting.join_next().await.unwrap().unwrap();
        proxy.signal("TERM");
        proxy.log_line(&["draining"]);
        wire.send(json("1"));
        assert_eq!(text(answer.await.unwrap()).await, "1");
        // That it ends is what counts: the client may be writing while it does.
        drop(client.end().await);
    });
    assert!(proxy.wait().status.success());
}

#[test]
fn a_connection_without_streams_ends_in_its_time() {
    let rest = Upstream::answering(json("1"));
    let (ours, proxy) = begin(&format!(
        "{}[limits]\nheader_timeout = \"3s\"\n",
        rest_only(&rest)
    ));
    run(async {
        let mut client = Client::connect(&proxy, &ours, None).await;
        let answer = client.ask(request(Method::GET, "/", &[]), "").await;
        assert_eq!(text(answer).await, "1");
        // That it ends is what counts: the client may be writing while it does.
        drop(client.end().await);
    });
}

#[test]
fn a_client_that_takes_nothing_of_an_answer_loses_it() {
    let long = "x".repeat(3_000_000);
    let rest = Upstream::answering(json(&long));
    let (ours, proxy) = begin(&format!(
        "{}[limits]\nwrite_timeout = \"500ms\"\n",
        rest_only(&rest)
    ));
    run(async {
        let mut builder = Builder::new();
        builder.initial_window_size(1000);
        let mut client = Client::connect_by(&proxy, (&ours, None), &builder).await;
        let answer = client.ask(request(Method::GET, "/", &[]), "").await;
        let mut body = answer.into_body();
        let mut last = Ok(Bytes::new());
        while let Ok(piece) = last {
            let _ = piece;
            match timeout(WITHIN, body.data()).await.unwrap() {
                Some(next) => last = next,
                None => panic!("the answer is whole"),
            }
        }
        assert!(last.unwrap_err().is_reset());
    });
}
