//! `dualgauge health` and `dualgauge sample`: what an image without a shell asks itself, and what it may stand before.

use crate::support::{Proxy, Upstream, program, rest_only, run_to_end};

fn health(proxy: &Proxy, more: &[&str]) -> (Option<i32>, String) {
    let admin = format!("http://{}", proxy.admin());
    let arguments = [&["health", "--admin", &admin], more].concat();
    let ended = run_to_end(program(&arguments));
    (ended.code, ended.output + &ended.errors)
}

#[test]
fn health_tells_by_its_exit_code_whether_calls_are_taken() {
    let upstream = Upstream::nowhere();
    let proxy = Proxy::start(&rest_only(&upstream));
    assert_eq!(health(&proxy, &[]), (Some(0), "ready".to_owned()));
    assert_eq!(health(&proxy, &["--live"]).0, Some(0));
    let admin = proxy.admin();
    proxy.stop();
    let ended = run_to_end(program(&["health", "--admin", &format!("http://{admin}")]));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.errors.contains("no connection to"), "{ended:?}");
}

#[test]
fn a_process_that_drains_lives_and_takes_no_calls() {
    let upstream = Upstream::start();
    let proxy = Proxy::start(&rest_only(&upstream));
    let mut client = proxy.connect();
    client.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut server = upstream.accept();
    server.read_request();
    proxy.signal("TERM");
    proxy.log_line(&["draining"]);
    let (code, said) = health(&proxy, &[]);
    assert_eq!(code, Some(1), "{said}");
    assert_eq!(health(&proxy, &["--live"]).0, Some(0));
    server.send("HTTP/1.1 204 No Content\r\n\r\n");
    assert_eq!(client.read_answer().status(), 204);
    assert!(proxy.wait().status.success());
}

#[cfg(feature = "demo")]
#[test]
fn the_sample_server_stands_alone_and_ends_when_it_is_told() {
    use std::io::{BufRead, BufReader};
    use std::process::Command;

    use crate::support::Wire;

    let mut sample = program(&["sample", "--listen", "127.0.0.1:0"])
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut output = BufReader::new(sample.stdout.take().unwrap());
    output.read_line(&mut line).unwrap();
    let address = line.trim_end().strip_prefix("serving http://").unwrap();
    let mut wire = Wire::connect(address.parse().unwrap());
    wire.send("GET /health HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(wire.read_answer().status(), 200);
    let pid = sample.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-s", "TERM", &pid])
            .status()
            .unwrap()
            .success()
    );
    assert!(sample.wait().unwrap().success());
}
