//! Servers that do not answer as they should: a clear failure for the caller, a line in the log, and a proxy that
//! serves the next call.

use crate::quadrant::{
    ALL, Quadrant, RestPassed, RestTranslated, RpcPassed, RpcTranslated, STREAMED, WHOLE,
};
use crate::scene::{before_rest, before_rpc, call, json, rpc_failure};
use crate::support::{Proxy, Upstream, Wire};

const CUT: (u16, i64, &str) = (502, -31023, "upstream_cut");
const MALFORMED: (u16, i64, &str) = (502, -31024, "upstream_malformed_http");
const TIMEOUT: (u16, i64, &str) = (504, -31022, "upstream_timeout");
const UNREACHABLE: (u16, i64, &str) = (502, -31021, "upstream_unreachable");

/// A server that has read a call of this way, with the client that waits for it.
struct Scene {
    quadrant: Quadrant,
    upstream: Upstream,
    proxy: Proxy,
    client: Wire,
    server: Wire,
}

impl Scene {
    fn of(quadrant: Quadrant, more: &str) -> Scene {
        let upstream = Upstream::start();
        let proxy = quadrant.start(&upstream, more);
        let mut client = proxy.connect();
        quadrant.send(&mut client);
        let mut server = upstream.accept();
        server.read_request();
        Scene {
            quadrant,
            upstream,
            proxy,
            client,
            server,
        }
    }

    /// The call fails like this, is logged like this, and was sent once.
    fn expect_failure(&mut self, wanted: (u16, i64, &str)) {
        let answer = self.client.read_answer();
        self.quadrant.expect_failure(&answer, wanted);
        let reason = format!("reason={}", wanted.2);
        let pieces = ["outcome=failed", "blame=upstream", &reason];
        self.proxy.log_line(&pieces);
        self.upstream.expect_no_connection();
    }

    /// Another call is served, on another connection.
    fn expect_health(mut self) {
        let mut client = self.proxy.connect();
        self.quadrant.send(&mut client);
        let mut server = self.upstream.accept();
        let request = server.read_request();
        server.send(self.quadrant.answer(&request));
        self.quadrant.expect_answer(&client.read_answer());
        self.proxy.log_line(&["outcome=success"]);
        // The client of the failure is served as well, where its connection is still whole.
        if self.quadrant != RestPassed && self.quadrant != RpcPassed {
            self.quadrant.send(&mut self.client);
            let request = server.read_request();
            server.send(self.quadrant.answer(&request));
            self.quadrant.expect_answer(&self.client.read_answer());
        }
    }
}

#[test]
fn a_server_that_refuses_connections_is_unreachable() {
    for quadrant in ALL {
        let upstream = Upstream::nowhere();
        let proxy = quadrant.start(&upstream, "");
        let mut client = proxy.connect();
        for _ in 0..2 {
            quadrant.send(&mut client);
            quadrant.expect_failure(&client.read_answer(), UNREACHABLE);
        }
        let line = proxy.log_line(&["outcome=failed", "reason=upstream_unreachable"]);
        assert!(line.contains("blame=upstream"), "{line}");
        assert!(line.contains("refused"), "the cause is missing: {line}");
    }
}

#[test]
fn a_server_that_closes_before_it_answers_has_cut_the_call() {
    for quadrant in ALL {
        let mut scene = Scene::of(quadrant, "");
        drop(std::mem::replace(&mut scene.server, scene.proxy.connect()));
        scene.expect_failure(CUT);
        scene.expect_health();
    }
}

#[test]
fn a_server_that_resets_the_connection_has_cut_the_call() {
    for quadrant in ALL {
        let mut scene = Scene::of(quadrant, "");
        std::mem::replace(&mut scene.server, scene.proxy.connect()).reset();
        scene.expect_failure(CUT);
        scene.expect_health();
    }
}

#[test]
fn a_server_that_closes_within_the_head_has_cut_the_call() {
    for quadrant in ALL {
        let mut scene = Scene::of(quadrant, "");
        scene.server.send("HTTP/1.1 200 OK\r\nContent-Le");
        drop(std::mem::replace(&mut scene.server, scene.proxy.connect()));
        scene.expect_failure(CUT);
        scene.expect_health();
    }
}

#[test]
fn bytes_that_are_no_http_are_told_as_such() {
    let garbage: [&[u8]; 6] = [
        b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03\r\n\r\n",
        b"220 mail.example ESMTP\r\n\r\n",
        b"HTTP/1.1 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n7",
    ];
    for quadrant in ALL {
        for bytes in garbage {
            let mut scene = Scene::of(quadrant, "");
            scene.server.send(bytes);
            scene.expect_failure(MALFORMED);
            scene.server.expect_gone();
            scene.expect_health();
        }
    }
}

/// Checks the duration that a line of the log tells: 300 ms, and no more than a busy machine adds.
fn expect_limit(line: &str) {
    let (_, behind) = line.split_once("duration_ms=").unwrap();
    let took: f64 = behind.split(' ').next().unwrap().parse().unwrap();
    assert!((300.0..5000.0).contains(&took), "{line}");
}

#[test]
fn a_server_that_never_answers_is_waited_for_no_longer_than_configured() {
    for quadrant in ALL {
        let mut scene = Scene::of(quadrant, "timeout = \"300ms\"\n");
        scene.expect_failure(TIMEOUT);
        expect_limit(&scene.proxy.log_line(&["outcome=failed"]));
        // A late answer would reach nobody.
        scene.server.expect_gone();
        scene.expect_health();
    }
}

#[test]
fn a_route_may_wait_for_less_than_its_upstream() {
    let upstream = Upstream::start();
    let route = "[[route]]\nname = \"m\"\nrest = \"POST /m\"\nrpc = \"m\"\ntimeout = \"300ms\"\n";
    let proxy = before_rest(&upstream, route);
    let answer = proxy.rpc(call("m", "{}")).json();
    assert_eq!(rpc_failure(&answer), (-31022, "upstream_timeout"));
    let proxy = before_rpc(&upstream, route);
    assert_eq!(proxy.rest("POST", "/m", &[], "").status(), 504);
}

#[test]
fn a_body_that_breaks_off_is_a_failure_where_it_is_read_whole() {
    let bodies: [(&[u8], _); 3] = [
        (b"Content-Length: 100\r\n\r\n[7]", CUT),
        (b"Transfer-Encoding: chunked\r\n\r\n3\r\n[7]\r\n", CUT),
        (
            b"Transfer-Encoding: chunked\r\n\r\nzz\r\n[7]\r\n0\r\n\r\n",
            MALFORMED,
        ),
    ];
    for quadrant in WHOLE {
        for (rest, wanted) in bodies {
            let mut scene = Scene::of(quadrant, "");
            scene.server.send("HTTP/1.1 200 OK\r\n");
            scene.server.send(rest);
            drop(std::mem::replace(&mut scene.server, scene.proxy.connect()));
            scene.expect_failure(wanted);
            scene.expect_health();
        }
    }
}

#[test]
fn a_body_that_breaks_off_breaks_the_client_off_where_it_streams() {
    for quadrant in STREAMED {
        for head in [
            "Content-Length: 100\r\n\r\n[7]",
            "Transfer-Encoding: chunked\r\n\r\n3\r\n[7]\r\n",
        ] {
            let mut scene = Scene::of(quadrant, "");
            scene.server.send(format!("HTTP/1.1 200 OK\r\n{head}"));
            let came = scene.client.read_until("[7]");
            assert!(came.starts_with(b"HTTP/1.1 200 OK\r\n"));
            drop(std::mem::replace(&mut scene.server, scene.proxy.connect()));
            // Nobody takes a piece for the whole: no last chunk, and fewer bytes than announced.
            let (rest, _) = scene.client.read_rest();
            assert!(rest.is_empty() || rest == b"\r\n", "{rest:?}");
            let pieces = ["outcome=cut", "blame=upstream", "reason=upstream_cut"];
            let line = scene.proxy.log_line(&pieces);
            assert!(line.contains("status=200"), "{line}");
            scene.expect_health();
        }
    }
}

/// What stands behind a status line, and breaks off with it.
pub(crate) const TORN: [&str; 4] = [
    "Content-Length: 100\r\n\r\n",
    "Content-Length: 100\r\n\r\n[7]",
    "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    "Transfer-Encoding: chunked\r\n\r\n3\r\n[7]\r\nzz\r\n",
];

/// The client has the head, however soon the rest breaks off: nothing at all would be no answer.
#[test]
fn an_answer_that_breaks_off_with_its_head_has_its_head() {
    for quadrant in STREAMED {
        for answer in TORN {
            let mut scene = Scene::of(quadrant, "");
            scene.server.send(format!("HTTP/1.1 200 OK\r\n{answer}"));
            drop(std::mem::replace(&mut scene.server, scene.proxy.connect()));
            let (came, _) = scene.client.read_rest();
            let came = String::from_utf8_lossy(&came);
            assert!(came.starts_with("HTTP/1.1 200 OK\r\n"), "{came:?}");
            assert_eq!(came.contains("[7]"), answer.contains("[7]"), "{came:?}");
            assert!(!came.ends_with("0\r\n\r\n"), "{came:?}");
            scene.proxy.log_line(&["outcome=cut", "status=200"]);
        }
    }
}

#[test]
fn a_body_that_is_too_slow_is_a_timeout_where_it_is_read_whole() {
    for quadrant in WHOLE {
        let mut scene = Scene::of(quadrant, "timeout = \"300ms\"\n");
        scene
            .server
            .send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{");
        scene.expect_failure(TIMEOUT);
        expect_limit(&scene.proxy.log_line(&["outcome=failed"]));
        scene.server.expect_gone();
        scene.expect_health();
    }
}

#[test]
fn a_body_that_falls_silent_breaks_off_where_it_streams() {
    for quadrant in STREAMED {
        let mut scene = Scene::of(quadrant, "idle_timeout = \"300ms\"\n");
        scene
            .server
            .send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n[7]");
        scene.client.read_until("[7]");
        let (rest, _) = scene.client.read_rest();
        assert!(rest.is_empty());
        scene.server.expect_gone();
        let line = scene.proxy.log_line(&["outcome=cut"]);
        assert!(line.contains("sent nothing for 300ms"), "{line}");
        expect_limit(&line);
        scene.expect_health();
    }
}

#[test]
fn what_a_server_says_behind_its_answer_is_nobodys_answer() {
    for quadrant in ALL {
        let upstream = Upstream::start();
        let proxy = quadrant.start(&upstream, "");
        let mut client = proxy.connect();
        quadrant.send(&mut client);
        let mut server = upstream.accept();
        let request = server.read_request();
        let other = json(r#"{"jsonrpc":"2.0","id":1,"result":"of another call"}"#);
        server.send([quadrant.answer(&request), other].concat());
        quadrant.expect_answer(&client.read_answer());
        server.expect_gone();

        quadrant.send(&mut client);
        let mut server = upstream.accept();
        let request = server.read_request();
        server.send(quadrant.answer(&request));
        quadrant.expect_answer(&client.read_answer());
    }
}

#[test]
fn a_connection_that_the_server_wants_closed_is_not_used_again() {
    for quadrant in ALL {
        let upstream = Upstream::start();
        let proxy = quadrant.start(&upstream, "");
        let mut client = proxy.connect();
        for _ in 0..2 {
            quadrant.send(&mut client);
            let mut server = upstream.accept();
            let request = server.read_request();
            let answer = String::from_utf8(quadrant.answer(&request)).unwrap();
            server.send(answer.replacen("\r\n", "\r\nConnection: close\r\n", 1));
            quadrant.expect_answer(&client.read_answer());
            server.expect_gone();
        }
    }
}

/// A kept connection, which has served one call of this way and has read a second one.
fn reused(quadrant: Quadrant, method: &str, name: &str) -> Scene {
    let upstream = Upstream::start();
    let proxy = quadrant.start(&upstream, "");
    let mut client = proxy.connect();
    quadrant.send_to(method, name, &mut client);
    let mut server = upstream.accept();
    let request = server.read_request();
    server.send(quadrant.answer(&request));
    quadrant.expect_answer(&client.read_answer());
    quadrant.send_to(method, name, &mut client);
    server.read_request();
    Scene {
        quadrant,
        upstream,
        proxy,
        client,
        server,
    }
}

#[test]
fn a_call_that_may_be_repeated_is_sent_once_more_when_a_kept_connection_closes() {
    let ways = [
        (RestPassed, "GET", "look"),
        (RestPassed, "DELETE", "look"),
        (RestTranslated, "GET", "look"),
        (RestTranslated, "PUT", "put"),
        (RpcTranslated, "GET", "look"),
        (RpcTranslated, "PUT", "put"),
    ];
    for (quadrant, method, name) in ways {
        let mut scene = reused(quadrant, method, name);
        drop(std::mem::replace(&mut scene.server, scene.proxy.connect()));
        let mut server = scene.upstream.accept();
        let request = server.read_request();
        server.send(quadrant.answer(&request));
        quadrant.expect_answer(&scene.client.read_answer());
        scene.upstream.expect_no_connection();

        // Once more, not for ever.
        let mut scene = reused(quadrant, method, name);
        drop(std::mem::replace(&mut scene.server, scene.proxy.connect()));
        let mut server = scene.upstream.accept();
        server.read_request();
        drop(server);
        quadrant.expect_failure(&scene.client.read_answer(), CUT);
        scene.upstream.expect_no_connection();
    }
}

#[test]
fn a_call_is_repeated_in_the_bytes_that_it_had() {
    let upstream = Upstream::start();
    let proxy = RestPassed.start(&upstream, "");
    let mut client = proxy.connect();
    let request = "GET /look?a=%7e HTTP/1.1\r\nhOST: a\r\nX-Odd: 1\r\nx-ODD: 2\r\n\r\n";
    client.send(request);
    let mut server = upstream.accept();
    server.read_request();
    server.send(json("[7]"));
    RestPassed.expect_answer(&client.read_answer());
    client.send(request);
    let first = server.read_until("\r\n\r\n");
    drop(server);
    let mut server = upstream.accept();
    let second = server.read_until("\r\n\r\n");
    assert_eq!(
        String::from_utf8(second).unwrap(),
        String::from_utf8(first).unwrap()
    );
    server.send(json("[7]"));
    RestPassed.expect_answer(&client.read_answer());
}

#[test]
fn a_call_that_must_not_be_repeated_is_not_sent_twice() {
    let ways = [
        (RestPassed, "POST", "do"),
        (RpcPassed, "POST", "look"),
        (Quadrant::RpcRenumbered, "POST", "look"),
        (RestTranslated, "POST", "do"),
        (RpcTranslated, "POST", "do"),
    ];
    for (quadrant, method, name) in ways {
        let mut scene = reused(quadrant, method, name);
        drop(std::mem::replace(&mut scene.server, scene.proxy.connect()));
        scene.expect_failure(CUT);
    }
}

#[test]
fn a_route_says_itself_whether_its_calls_may_be_repeated() {
    for (effect, times) in [("safe", 2), ("idempotent", 2), ("unsafe", 1)] {
        let upstream = Upstream::start();
        let route = format!(
            "[[route]]\nname = \"m\"\nrest = \"POST /m\"\nrpc = \"m\"\neffect = \"{effect}\"\n"
        );
        let proxy = before_rest(&upstream, &route);
        let mut client = proxy.connect();
        RpcTranslated.send_to("POST", "m", &mut client);
        let mut server = upstream.accept();
        server.read_request();
        server.send(json("[7]"));
        RpcTranslated.expect_answer(&client.read_answer());

        RpcTranslated.send_to("POST", "m", &mut client);
        server.read_request();
        drop(server);
        if times == 2 {
            let mut again = upstream.accept();
            again.read_request();
            again.send(json("[7]"));
            RpcTranslated.expect_answer(&client.read_answer());
        } else {
            RpcTranslated.expect_failure(&client.read_answer(), CUT);
        }
        upstream.expect_no_connection();
    }
}

#[test]
fn the_end_of_a_connection_is_the_end_of_an_answer_without_a_length() {
    for quadrant in [RestPassed, RpcTranslated] {
        for version in ["1.0", "1.1"] {
            let mut scene = Scene::of(quadrant, "");
            scene
                .server
                .send(format!("HTTP/{version} 200 OK\r\n\r\n[7]"));
            drop(std::mem::replace(&mut scene.server, scene.proxy.connect()));
            quadrant.expect_answer(&scene.client.read_answer());
        }
    }
}

#[test]
fn a_server_that_never_comes_to_the_point_is_cut_and_holds_nobody_up() {
    for quadrant in ALL {
        let mut scene = Scene::of(quadrant, "timeout = \"10s\"\n");
        let mut server = std::mem::replace(&mut scene.server, scene.proxy.connect());
        let flood = std::thread::spawn(move || {
            let interim = "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n".repeat(1000);
            while server.try_send(&interim).is_ok() {}
        });
        // A client that is passed through gets interim responses first (RFC 9110 §15.2).
        let mut came = scene.client.read_answer();
        while came.status() == 103 && STREAMED.contains(&quadrant) {
            came = scene.client.read_answer();
        }
        quadrant.expect_failure(&came, MALFORMED);
        flood.join().unwrap();
        scene.expect_health();
    }
}
