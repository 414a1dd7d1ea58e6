//! Members of the envelope that stand for HTTP headers: they move with the call, and go nowhere else.

use crate::scene::{json, rpc_failure};
use crate::support::{Proxy, Upstream, both, rest_only, rpc_only};

const ENVELOPE: &str =
    "[rpc]\nenvelope = { auth = { header = \"authorization\", value = \"Bearer {token}\" } }\n";
const ROUTE: &str = "[[route]]\nname = \"a\"\nrest = \"POST /a\"\nrpc = \"a\"\n";
const SECRET: &str = "s3cr3t-t0k3n";

fn call(members: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,{members}"method":"a","params":{{}}}}"#)
}

#[test]
fn a_member_of_a_message_is_a_header_of_the_rest_call() {
    let rest = Upstream::answering(json("7"));
    let proxy = Proxy::start(&format!("{}{ENVELOPE}{ROUTE}", rest_only(&rest)));
    let said = proxy.rpc(call(&format!(r#""auth":"{SECRET}","#)));
    assert_eq!(said.json()["result"], 7, "{said:?}");
    let asked = rest.request();
    assert_eq!(
        asked.head.one("authorization"),
        Some(&*format!("Bearer {SECRET}"))
    );
    assert!(!proxy.log().contains(SECRET), "the log has the secret");
}

#[test]
fn a_header_of_a_rest_call_is_a_member_of_the_message() {
    let rpc = crate::scene::saying(r#""result":7"#);
    let proxy = Proxy::start(&format!("{}{ENVELOPE}{ROUTE}", rpc_only(&rpc)));
    let bearer = format!("Bearer {SECRET}");
    let said = proxy.rest("POST", "/a", &[("Authorization", &bearer)], "{}");
    assert_eq!(said.text(), "7");
    assert_eq!(rpc.request().json()["auth"], SECRET);
    // One of another form is none.
    proxy.rest("POST", "/a", &[("Authorization", "Basic eA==")], "{}");
    assert!(rpc.requests()[1].json().get("auth").is_none());
    assert!(!proxy.log().contains(SECRET), "the log has the secret");
}

#[test]
fn an_upstream_that_gets_no_credentials_gets_them_in_neither_form() {
    let (rest, rpc) = (
        Upstream::answering(json("7")),
        crate::scene::saying(r#""result":7"#),
    );
    let drop = |config: String| config.replace("side = ", "credentials = \"drop\"\nside = ");
    let before_rest = Proxy::start(&format!("{}{ENVELOPE}{ROUTE}", drop(rest_only(&rest))));
    before_rest.rpc(call(&format!(r#""auth":"{SECRET}","#)));
    assert_eq!(rest.request().head.one("authorization"), None);
    let before_rpc = Proxy::start(&format!("{}{ENVELOPE}{ROUTE}", drop(rpc_only(&rpc))));
    let bearer = format!("Bearer {SECRET}");
    before_rpc.rest("POST", "/a", &[("Authorization", &bearer)], "{}");
    let translated = rpc.request();
    assert!(!translated.text().contains(SECRET), "{translated:?}");
    // What passes is the message without the member, and otherwise as it came.
    let passed = format!(
        "{}[rollout]\ndefault = {{ rpc = \"passthrough\" }}\n",
        drop(rpc_only(&rpc))
    );
    let passing = Proxy::start(&format!("{passed}{ENVELOPE}"));
    passing.rpc(
        r#"{"jsonrpc":"2.0", "auth":"s3cr3t-t0k3n","id":1,"method":"x", "params":{"a": 1.10}}"#,
    );
    let passed = &rpc.requests()[1];
    assert_eq!(
        passed.text(),
        r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"a": 1.10}}"#
    );
    assert_eq!(passed.head.one("authorization"), None);
}

#[test]
fn an_upstream_that_names_no_member_gets_its_header() {
    let rpc = crate::scene::saying(r#""result":7"#);
    let own = rpc_only(&rpc).replace("side = ", "envelope = {}\nside = ");
    let envelope = "[rpc.envelope]\nauth = { header = \"authorization\", value = \"Bearer {token}\" }\n\
        key = { header = \"x-key\", value = \"{key}\" }\n";
    let proxy = Proxy::start(&format!("{own}{envelope}"));
    let members = format!(r#""auth":"{SECRET}","other":1,"key":"k","#);
    let alone = call(&members);
    // An id that does not travel: the call is written anew.
    let renumbered = alone.replace("\"id\":1", "\"id\":1.5");
    let batch = format!("[{alone},{alone}]");
    for (sent, count) in [(alone, 1), (renumbered, 1), (batch, 2)] {
        let before = rpc.requests().len();
        let headers = [
            ("Content-Type", "application/json"),
            ("Authorization", "Basic eA=="),
        ];
        let said = proxy.rest("POST", "/rpc", &headers, &sent);
        assert_eq!(said.status(), 200, "{said:?}");
        let requests = rpc.requests().split_off(before);
        assert_eq!(requests.len(), count);
        for request in requests {
            let bearer = format!("Bearer {SECRET}");
            assert_eq!(request.head.all("authorization"), [&*bearer], "{sent}");
            assert_eq!(request.head.all("x-key"), ["k"]);
            let passed = request.json();
            assert!(passed.get("auth").is_none() && passed.get("key").is_none());
            assert_eq!(passed["other"], 1);
        }
    }
    assert!(!proxy.log().contains(SECRET), "the log has the secret");
    let before = rpc.requests().len();
    let broken = proxy.rpc(call(r#""auth":7,"#)).json();
    assert_eq!(rpc_failure(&broken), (-32600, "invalid_request"));
    assert_eq!(rpc.requests().len(), before);
}

#[test]
fn an_upstream_that_names_some_members_gets_the_others_as_headers() {
    let rpc = crate::scene::saying(r#""result":7"#);
    let own = "envelope = { key = { header = \"x-key\", value = \"{key}\" } }\nside = ";
    let own = rpc_only(&rpc).replace("side = ", own);
    let envelope = "[rpc.envelope]\nauth = { header = \"authorization\", value = \"Bearer {token}\" }\n\
        key = { header = \"x-key\", value = \"{key}\" }\n";
    let proxy = Proxy::start(&format!("{own}{envelope}"));
    proxy.rpc(call(&format!(r#""auth":"{SECRET}","key":"k","#)));
    let request = rpc.request();
    let bearer = format!("Bearer {SECRET}");
    assert_eq!(request.head.all("authorization"), [&*bearer]);
    assert_eq!(request.head.one("x-key"), None);
    assert_eq!(request.json()["key"], "k");
}

#[test]
fn a_credential_that_two_programs_could_read_twice_is_refused() {
    let (rest, rpc) = (Upstream::start(), Upstream::start());
    let proxy = Proxy::start(&format!("{}{ENVELOPE}{ROUTE}", both(&rest, &rpc)));
    for members in [
        r#""auth":"a","auth":"b","#,
        r#""auth":"a","Auth":"b","#,
        r#""AUTH":"b","#,
    ] {
        let said = proxy.rpc(call(members)).json();
        assert_eq!(rpc_failure(&said), (-32600, "invalid_request"), "{members}");
    }
    let broken = r#""auth":7,"#;
    let proxy = Proxy::start(&format!("{}{ENVELOPE}{ROUTE}", rest_only(&rest)));
    let said = proxy.rpc(call(broken)).json();
    assert_eq!(rpc_failure(&said), (-32600, "invalid_request"));
    rest.expect_no_connection();
    rpc.expect_no_connection();
}
