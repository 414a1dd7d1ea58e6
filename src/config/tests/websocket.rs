//! The keys of a WebSocket upstream, and of WebSocket clients.

use std::time::Duration;

use super::Fixture;
use crate::config::compile::compile;
use dualgauge_model::pending::{AnswerOrder, LogMessages};
use dualgauge_model::plan::{Plan, Sharing, Transport, WebSocketPlan};
use dualgauge_patterns::side::Side;

fn plan(text: &str) -> Plan {
    let fixture = Fixture::new(&format!("[upstream.s]\n{text}"));
    compile(&fixture.config(), &[]).unwrap()
}

fn socket(text: &str) -> WebSocketPlan {
    let plan = plan(&format!("side = 'rpc'\nurl = 'ws://h/live'\n{text}"));
    let upstream = plan.upstream(Side::Rpc).unwrap();
    assert_eq!(upstream.address(), "h:80");
    assert_eq!(upstream.path, "/live");
    match &upstream.transport {
        Transport::WebSocket(socket) => (**socket).clone(),
        Transport::Http | Transport::Stdio(_) | Transport::Mcp(_) | Transport::Frames(_) => {
            panic!("no socket")
        }
    }
}

#[test]
fn a_socket_needs_a_url_and_no_more() {
    let socket = socket("");
    assert_eq!(
        (socket.sharing, socket.message_limit),
        (Sharing::Shared, 16 << 20)
    );
    assert_eq!(socket.sockets, 1);
    let settings = &socket.link.settings;
    assert_eq!(
        (settings.order, settings.queue),
        (AnswerOrder::Pipelined(256), 256)
    );
    assert_eq!(settings.initialize_params, None);
    assert_eq!(settings.log_messages, LogMessages::Drop);
    let beat = settings.heartbeat.unwrap();
    assert_eq!(beat.every, Duration::from_secs(30));
    assert_eq!(beat.within, Duration::from_secs(10));
}

#[test]
fn a_socket_is_what_its_keys_say_and_shows_no_secret() {
    let socket = socket(
        "headers = { Authorization = 'hunter2' }\nsharing = 'client'\nconnections = 3\nhandshake = 'mcp'\n\
         heartbeat = '0s'\nin_flight = 7\n",
    );
    let headers: Vec<_> = socket.headers.iter().collect();
    assert_eq!(headers, [("authorization", "hunter2")]);
    assert!(!format!("{socket:?}").contains("hunter2"));
    assert_eq!(socket.sharing, Sharing::Client);
    let settings = &socket.link.settings;
    assert_eq!(settings.order, AnswerOrder::Pipelined(7));
    assert_eq!(settings.log_messages, LogMessages::AllSubscribers);
    assert!(settings.initialize_params.is_some() && settings.heartbeat.is_none());
}

#[test]
fn several_sockets_may_be_shared_and_a_greeting_says_what_may_be_agreed_on() {
    let several = socket("sockets = 64\nhandshake = 'mcp'\n");
    assert_eq!(several.sockets, 64);
    assert_eq!(several.link.settings.revisions.len(), 4);
    let own = socket("handshake = 'mcp'\ninitialize = { protocolVersion = '1.0' }\n");
    let revisions = own.link.settings.revisions;
    assert_eq!((revisions.len(), &*revisions[4]), (5, "1.0"));
    assert_eq!(socket("").link.settings.revisions, Vec::<String>::new());
}

#[test]
fn sockets_of_clients_are_served_where_they_cannot_pass() {
    let served = |text: &str| plan(text).face.sockets.is_some();
    let (socket, http) = (
        "side = 'rpc'\nurl = 'ws://h/'\n",
        "side = 'rpc'\nurl = 'http://h/'\n",
    );
    assert!(served(socket) && !served(http));
    assert!(!served(&format!("{socket}[rpc]\nwebsocket = false\n")));
    assert!(served(&format!("{http}[rpc]\nwebsocket = true\n")));
    assert!(!served("side = 'rest'\nurl = 'http://h/'\n"));
}

#[test]
fn keys_that_a_socket_does_not_have_are_refused() {
    for (keys, wanted) in [
        (
            "keep_alive = '1s'",
            "belongs to an upstream with an `http://` url",
        ),
        (
            "line_limit = '1MiB'",
            "belongs to an upstream with `command`",
        ),
        ("connections = 3", "but all clients share one"),
        (
            "headers = { Host = 'x' }",
            "is reserved in WebSocket requests",
        ),
        ("headers = { 'a b' = 'x' }", "not a header name"),
        ("headers = { a = \"\\n\" }", "visible ASCII"),
        ("initialize = {}", "without a handshake"),
        ("sockets = 0", "not a whole number from 1 to 64"),
        ("sockets = 65", "not a whole number from 1 to 64"),
        ("socket = 2", "sockets"),
        (
            "sharing = 'client'\nlog_messages = 'caller'",
            "each client receives every message of its socket",
        ),
        (
            "sharing = 'client'\nsockets = 2",
            "is the number of shared sockets, but each client has its own",
        ),
    ] {
        let fixture = Fixture::new(&format!(
            "[upstream.s]\nside = 'rpc'\nurl = 'ws://h/'\n{keys}\n"
        ));
        let problems = fixture.problems();
        assert!(problems.contains(wanted), "{keys}: {problems}");
    }
}

const OWN_LOGIN: &str =
    "login = { method = 'in', params = ['{file:key}', 7, { u = 'x{env:U}{{}}' }] }";

fn with_login(keys: &str) -> Fixture {
    Fixture::new(&format!(
        "[upstream.s]\nside = 'rpc'\nurl = 'ws://h/'\n{keys}\n"
    ))
}

#[test]
fn a_login_is_filled_in_and_shows_no_secret() {
    let fixture = with_login(OWN_LOGIN)
        .file("key", "hunter2\r\n")
        .variable("U", "a\"b");
    let config = fixture.config();
    let plan = compile(&config, &[]).unwrap();
    let link = plan.upstream(Side::Rpc).unwrap().transport.link().unwrap();
    let login = link.login.as_ref().unwrap();
    let call = login.call_for(&http::HeaderMap::new());
    assert_eq!(call, link.settings.login);
    let params = call.unwrap();
    assert_eq!(params.params(), "[\"hunter2\",7,{\"u\":\"xa\\\"b{}\"}]");
    let printed = format!("{config:?}{plan:?}");
    assert!(!printed.contains("hunter2"), "{printed}");
}

#[test]
fn logins_that_cannot_work_are_refused() {
    for (keys, wanted) in [
        ("login = { params = [] }", "method"),
        (
            "login = { method = 'in', params = 'x' }",
            "a list or a table",
        ),
        (
            "login = { method = 'in', params = ['{x'] }",
            "has no counterpart",
        ),
        (
            "login = { method = 'in', params = ['{x}'] }",
            "unknown placeholder",
        ),
        (
            "login = { method = 'in', params = ['{authorization:x}'] }",
            "unknown placeholder",
        ),
        (
            "login = { method = 'in', params = ['{file:absent}'] }",
            "cannot be read",
        ),
        (
            "login = { method = 'in', params = ['{env:ABSENT}'] }",
            "is not set",
        ),
        (
            "login = { method = 'in', params = ['{header:x-key}'] }",
            "all callers share the link",
        ),
        (
            "login = { method = 'in', expect = { token = '{x' } }",
            "login.expect.token",
        ),
        (
            "sharing = 'client'\ncredentials = 'drop'\nlogin = { method = 'in', params = ['{header:x-key}'] }",
            "keeps them from this upstream",
        ),
    ] {
        let fixture = with_login(keys);
        let problems = match fixture.load() {
            Ok(config) => compile(&config, &[]).unwrap_err().to_string(),
            Err(problems) => problems.to_string(),
        };
        assert!(problems.contains(wanted), "{keys}: {problems}");
    }
}
