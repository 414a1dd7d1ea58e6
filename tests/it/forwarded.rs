//! What servers are told of the hops before the proxy: a stranger's word never goes on, a trusted hop's does, whichever
//! way the call takes.

use std::collections::BTreeSet;

use http::Method;

use crate::http2::{Client, begin, request, run};
use crate::scene::{answer, body_of, call, json, saying};
use crate::support::{Message, Proxy, Upstream, Wire, both, eventually, rest_only};

const ROUTES: &str = r#"
[rollout.candidates]
noise = 0
[[route]]
name = "items.get"
rest = "GET /items/{id}"
rpc = "items/get"
[[route]]
name = "items.new"
rest = "GET /new/{id}"
rpc = "items/new"
"#;
const FLAGS: &str = r#"
[[flag]]
name = "compare"
route = "items.get"
stage = "shadow"
[[flag]]
name = "go"
route = "items.new"
stage = "translate"
"#;

const TOLD: [(&str, &str); 7] = [
    ("Forwarded", "for=192.0.2.7;proto=https"),
    ("X-Forwarded-For", "192.0.2.7"),
    ("X-Forwarded-Proto", "https"),
    ("X-Forwarded-Host", "a.example"),
    ("X-Forwarded-Port", "443"),
    ("X-Real-IP", "192.0.2.7"),
    ("X_Forwarded_For", "192.0.2.7"),
];
const OURS: &str = "for=127.0.0.1;host=\"proxy.example\";proto=http";

struct Scene {
    rest: Upstream,
    rpc: Upstream,
    proxy: Proxy,
}

impl Scene {
    fn of(listen: &str) -> Scene {
        Scene::forwarding(listen, "[]")
    }

    /// Fields of these names go along with translated calls.
    fn forwarding(listen: &str, names: &str) -> Scene {
        let rest = Upstream::serving(|request| match request.head.one("upgrade") {
            Some(_) => answer("426 Upgrade Required", &[], ""),
            None => json("1"),
        });
        let rpc = saying(r#""result":1"#);
        let ends = both(&rest, &rpc).replace("[listen]\n", &format!("[listen]\n{listen}\n"));
        let ends = ends.replace("\nurl = ", &format!("\nforward = {names}\nurl = "));
        let proxy = Proxy::start_with_flags(&format!("{ends}{ROUTES}"), FLAGS);
        Scene { rest, rpc, proxy }
    }

    /// What is told of hops in the calls that both servers get, whichever way they have gone.
    fn told(&self) -> Vec<BTreeSet<(String, String)>> {
        self.asked(&TOLD).iter().map(hops_of).collect()
    }

    /// A call of every way with these fields, as both servers get it.
    fn asked(&self, sent: &[(&str, &str)]) -> Vec<Message> {
        let rest = [
            "/plain",   // passed
            "/items/1", // passed, and a candidate beside it
            "/new/1",   // translated
        ];
        for path in rest {
            body_of(&self.proxy.rest("GET", path, sent, ""), 200);
        }
        let lines = sent
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"));
        let fields: String = lines.collect();
        // A tunnel that the server does not want.
        let mut wire = self.proxy.connect();
        wire.send(format!(
            "GET /chat HTTP/1.1\r\nHost: proxy.example\r\nConnection: upgrade\r\nUpgrade: websocket\r\n{fields}\r\n"
        ));
        assert_eq!(wire.read_answer_to("GET").status(), 426);
        let one = call("items/new", r#"{"id":"1"}"#); // passed
        let other = call("other", "{}");
        let many = format!("[{other},{}]", other.replace(":1,", ":2,"));
        for body in [one, other, many] {
            post(&mut wire, &fields, &body);
        }
        // Each call once, that with a candidate twice, and the batch.
        eventually("all calls at the servers", || {
            let requests = [self.rest.requests(), self.rpc.requests()].concat();
            (requests.len() == 8).then_some(requests)
        })
    }
}

fn post(wire: &mut Wire, fields: &str, body: &str) {
    let length = body.len();
    wire.send(format!(
        "POST /rpc HTTP/1.1\r\nHost: proxy.example\r\n{fields}Content-Length: {length}\r\n\r\n{body}"
    ));
    assert_eq!(wire.read_answer_to("POST").status(), 200);
}

fn hops_of(request: &Message) -> BTreeSet<(String, String)> {
    let fields = request.head.fields.iter();
    let fields = fields.map(|(name, value)| (name.to_ascii_lowercase(), value.clone()));
    let told = fields.filter(|(name, _)| name.contains("forwarded") || name.contains("real"));
    told.collect()
}

fn set(rows: &[(&str, &str)]) -> BTreeSet<(String, String)> {
    let rows = rows.iter();
    rows.map(|(name, value)| (name.to_ascii_lowercase(), (*value).to_owned()))
        .collect()
}

#[test]
fn no_server_hears_what_a_stranger_says_of_others() {
    for listen in ["", "trusted = [\"192.0.2.1\"]"] {
        for told in Scene::of(listen).told() {
            assert_eq!(told, set(&[("forwarded", OURS)]));
        }
    }
}

#[test]
fn every_server_hears_what_a_trusted_hop_says_with_the_hop_behind_it() {
    for listen in ["trusted = [\"127.0.0.1\"]", "forwarded_from = \"everyone\""] {
        let mut expected = set(&TOLD);
        expected.insert(("forwarded".to_owned(), OURS.to_owned()));
        expected.remove(&("x-forwarded-for".to_owned(), "192.0.2.7".to_owned()));
        expected.insert((
            "x-forwarded-for".to_owned(),
            "192.0.2.7, 127.0.0.1".to_owned(),
        ));
        // A trusted hop does not write this one: its client has.
        let scene = Scene::of(listen);
        let told = match listen.contains("everyone") {
            true => scene.told(),
            false => {
                expected.remove(&("x_forwarded_for".to_owned(), "192.0.2.7".to_owned()));
                let [sent @ .., _] = TOLD;
                scene.asked(&sent).iter().map(hops_of).collect()
            }
        };
        for told in told {
            assert_eq!(told, expected);
        }
    }
}

#[test]
fn no_server_hears_addresses_beside_a_list_in_another_spelling() {
    for told in Scene::of("trusted = [\"127.0.0.1\"]").told() {
        let expected = [
            ("forwarded", OURS),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-host", "a.example"),
            ("x-forwarded-port", "443"),
        ];
        assert_eq!(told, set(&expected));
    }
}

#[test]
fn every_server_is_told_by_the_fields_that_it_knows() {
    let fields = r#""x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-real-ip""#;
    let expected = [
        ("x-forwarded-for", "127.0.0.1"),
        ("x-forwarded-proto", "http"),
        ("x-forwarded-host", "proxy.example"),
        ("x-real-ip", "127.0.0.1"),
    ];
    for told in Scene::of(&format!("forwarded = [{fields}]")).told() {
        assert_eq!(told, set(&expected));
    }
}

/// RFC 9110 §7.6.1: what `Connection` names in any of its lines is of the connection, whichever way the call goes on.
#[test]
fn no_server_gets_a_field_that_any_connection_names() {
    let sent = [
        ("Connection", "X-One, keep-alive"),
        ("X-One", "1"),
        ("X-Two", "2"),
        ("connection", "x-two ,, X-THREE,"),
        ("X-Three", "3"),
        ("Keep-Alive", "timeout=5"),
        ("Proxy-Connection", "keep-alive"),
        ("Proxy-Authorization", "Basic eA=="),
        ("X-Four", "4"),
    ];
    let named = r#"["x-one", "x-two", "x-three", "x-four"]"#;
    let scene = Scene::forwarding("", named);
    for request in scene.asked(&sent) {
        let head = &request.head;
        assert_eq!(head.one("x-four"), Some("4"), "{head}");
        let others = [
            "x-one",
            "x-two",
            "x-three",
            "keep-alive",
            "proxy-connection",
        ];
        for name in others.into_iter().chain(["proxy-authorization"]) {
            assert_eq!(head.all(name), [""; 0], "{head}");
        }
        let is_upgrade = head.one("upgrade").is_some();
        assert_eq!(head.one("connection").is_some(), is_upgrade, "{head}");
    }
}

#[test]
fn over_http_2_a_stranger_is_believed_as_little() {
    let rest = Upstream::answering(json("1"));
    let (ours, proxy) = begin(&format!("{}[limits]\n", rest_only(&rest)));
    run(async {
        let mut client = Client::connect(&proxy, &ours, None).await;
        let sent = TOLD.map(|(name, value)| (name.to_ascii_lowercase(), value));
        let sent = sent.each_ref().map(|(name, value)| (name.as_str(), *value));
        let answer = client.ask(request(Method::GET, "/a", &sent), "").await;
        assert_eq!(answer.status(), 200);
    });
    let ours = OURS.replace("proto=http", "proto=https");
    assert_eq!(hops_of(&rest.request()), set(&[("forwarded", &ours)]));
}

/// Header maps are used again, and what was in them is not.
#[test]
fn a_translated_call_has_nothing_of_the_one_before() {
    let scene = Scene::forwarding("", r#"["x-four"]"#);
    let sent = [
        ("Authorization", "Bearer one"),
        ("Cookie", "a=b"),
        ("X-Request-Id", "one"),
        ("X-Four", "4"),
        ("X-Four", "5"),
    ];
    let mut wire = scene.proxy.connect();
    for fields in [&sent[..], &[]] {
        body_of(&scene.proxy.rest("GET", "/new/1", fields, ""), 200);
        let lines = fields
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"));
        let lines: String = lines.collect();
        post(&mut wire, &lines, &call("items/new", r#"{"id":"1"}"#));
    }
    for requests in [scene.rest.requests(), scene.rpc.requests()] {
        let [first, second] = &requests[..] else {
            panic!("{requests:?}")
        };
        assert_eq!(first.head.all("x-four"), ["4", "5"], "{}", first.head);
        for (name, _) in sent {
            assert_eq!(second.head.all(name), [""; 0], "{}", second.head);
        }
    }
}
