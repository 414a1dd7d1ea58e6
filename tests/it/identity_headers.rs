//! Headers that servers take as proof of who calls: no stranger's reaches a server, and those of the proxy say what it knows,
//! whichever way the call takes.

use crate::scene::{body_of, call, json, saying};
use crate::support::{Message, Proxy, Upstream, both, eventually};

const LISTEN: &str = r#"
remove_headers = ["x-ssl-client-*", "X-Original-URL"]
set_headers = { x-caller = "{client};{proof};{address}", x-subject = "{subject}", x-hop = "edge" }
"#;
const ROUTES: &str = r#"
[[client]]
name = "phones"
match = { header = { x-client-id = "ios-*" } }
[[client]]
name = "forged"
match = { header = { x-ssl-client-cn = "*" } }
[[route]]
name = "items.new"
rest = "GET /new/{id}"
rpc = "items/new"
"#;
const FLAGS: &str = "[[flag]]\nname = \"go\"\nroute = \"items.new\"\nstage = \"translate\"\n";

/// What a client may send of itself, and what it may not.
const SENT: [(&str, &str); 8] = [
    ("X-Ssl-Client-Cn", "root"),
    ("X_SSL_Client_Verify", "SUCCESS"),
    ("x-original-url", "/admin"),
    ("X-Caller", "root;authenticated;::1"),
    ("X_Caller", "root"),
    ("X-Subject", "CN=root"),
    ("X-Client-Id", "ios-1"),
    ("Connection", "keep-alive, x-caller"),
];

/// A call of every way, as both servers get it: passed on and translated, of each side, and a batch.
fn asked(listen: &str) -> Vec<Message> {
    let (rest, rpc) = (Upstream::answering(json("1")), saying(r#""result":1"#));
    let names = SENT.map(|(name, _)| name.to_ascii_lowercase());
    let [names @ .., _] = &names;
    let ends = both(&rest, &rpc).replace("[listen]\n", &format!("[listen]\n{listen}\n{LISTEN}"));
    let ends = ends.replace("\nurl = ", &format!("\nforward = {names:?}\nurl = "));
    let proxy = Proxy::start_with_flags(&format!("{ends}{ROUTES}"), FLAGS);
    for path in ["/plain", "/new/1"] {
        body_of(&proxy.rest("GET", path, &SENT, ""), 200);
    }
    let one = call("other", "{}");
    let translated = call("items/new", r#"{"id":"1"}"#);
    let batch = format!("[{one},{translated}]");
    for body in [one, translated, batch] {
        let answer = proxy.rest("POST", "/rpc", &SENT, &body);
        assert_eq!(answer.status(), 200, "{answer:?}");
    }
    // A client by a header that was removed is nobody.
    let forged = [("X-Ssl-Client-Cn", "root")];
    body_of(&proxy.rest("GET", "/forged", &forged, ""), 200);
    let client = if listen.is_empty() { "other" } else { "forged" };
    let line = proxy.log_line(&["path=/forged"]);
    assert!(line.contains(&format!("client={client} ")), "{line}");
    eventually("all calls at the servers", || {
        let requests = [rest.requests(), rpc.requests()].concat();
        (requests.len() == 7).then_some(requests)
    });
    let requests = [rest.requests(), rpc.requests()].concat().into_iter();
    requests
        .filter(|request| !request.head.start.contains("/forged"))
        .collect()
}

#[test]
fn no_server_hears_a_strangers_proof_and_each_hears_the_proxys() {
    for request in asked("") {
        let head = &request.head;
        for name in ["x-ssl-client-cn", "x_ssl_client_verify", "x-original-url"] {
            assert_eq!(head.one(name), None, "{head}");
        }
        assert_eq!(head.all("x-caller"), ["phones;declared;127.0.0.1"]);
        assert_eq!(head.all("x-hop"), ["edge"]);
        for name in ["x_caller", "x-subject"] {
            assert_eq!(head.one(name), None, "{head}");
        }
    }
}

#[test]
fn a_trusted_hop_says_what_the_proxy_does_not_say_itself() {
    for request in asked("trusted = [\"127.0.0.1\"]") {
        let head = &request.head;
        assert_eq!(head.one("x-ssl-client-cn"), Some("root"), "{head}");
        assert_eq!(head.one("x-original-url"), Some("/admin"));
        assert_eq!(head.all("x-caller"), ["phones;declared;127.0.0.1"]);
        assert_eq!(head.one("x-subject"), None);
    }
}
