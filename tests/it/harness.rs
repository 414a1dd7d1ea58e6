//! The harness itself: what the other tests stand on.

use crate::support::{Proxy, Upstream, Wire, both, rest_only, rpc_only};

#[test]
fn the_program_serves_and_ends_when_told_to() {
    let upstream = Upstream::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
    let proxy = Proxy::start(&rest_only(&upstream));
    let answer = proxy.rest("GET", "/hello?x=1", &[], "");
    assert_eq!((answer.status(), answer.text()), (200, "hi"));
    assert_eq!(upstream.request().head.start, "GET /hello?x=1 HTTP/1.1");
    let line = proxy.log_line(&["path=/hello"]);
    assert!(line.contains("status=200"), "{line}");
    let stopped = proxy.stop();
    assert!(stopped.status.success(), "{stopped:?}");
    assert!(stopped.log.contains("outcome=success"), "{stopped:?}");
}

#[test]
fn a_test_can_drive_the_upstream_itself() {
    let upstream = Upstream::start();
    let proxy = Proxy::start(&rpc_only(&upstream));
    let mut client = proxy.connect();
    upstream.expect_no_connection();

    client.send("POST /rpc HTTP/1.1\r\nHost: a\r\nContent-Length: 39\r\n\r\n");
    client.send(r#"{"jsonrpc":"2.0","id":"a","method":"m"}"#);
    let mut server = upstream.accept();
    assert_eq!(server.read_request().json()["method"], "m");
    server.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(client.read_answer().text(), "");
}

#[test]
fn a_test_can_say_flags_and_find_everything_again() {
    let (old, new) = (Upstream::start(), Upstream::start());
    let route =
        "[[route]]\nname = \"items.read\"\nrest = \"GET /items/{id}\"\nrpc = \"items/read\"\n";
    let flag =
        "[[flag]]\nname = \"off\"\nroute = \"items.*\"\nside = \"rest\"\nstage = \"retired\"\n";
    let proxy = Proxy::start_with_flags(&format!("{}{route}", both(&old, &new)), flag);
    assert_eq!(proxy.rest("GET", "/items/7", &[], "").status(), 410);
    proxy.log_line(&["route=items.read", "stage=retired"]);
    assert!(proxy.folder().join("flags.toml").is_file());
    for address in [proxy.address(), proxy.admin()] {
        assert_eq!(Wire::connect(address).peer(), address);
    }
}
