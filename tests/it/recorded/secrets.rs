//! Secrets outside of members and headers of their own: in paths, URLs, errors, forms and encoded texts.

use std::fs;

use super::{PLANTED, files, state};
use crate::scene::{Called, answer, json};
use crate::support::{Message, Proxy, Upstream, both, program, run_to_end};

const TABLES: &str = r#"
[[route]]
name = "reset"
rest = "GET /reset/{token}"
rpc = "reset/{token}"
params = {}

[[route]]
name = "notes.make"
rest = "POST /notes"
rpc = "notes/make"

[record]
directory = "recordings"
bodies = true
sample = 100
headers = ["content-type", "location", "link", "referer"]
"#;

/// The URL of a page, with secrets in all of its parts.
const URL: &str = "https://user:PLANTED@host/reset/PLANTED;sid=1?a=kept&filter=%7B%22pin%22:%22PLANTED%22%7D#access_token=PLANTED";

/// `user:PLANTED` in base64.
const ENCODED: &str = "dXNlcjpQTEFOVEVE";
/// `Basic` with that, in base64.
const ENCODED_TWICE: &str = "QmFzaWMgZFhObGNqcFFURUZPVkVWRQ==";

fn rest(_: &Message) -> Vec<u8> {
    let headers = [
        ("Content-Type", "application/json"),
        ("Location", "/reset/PLANTED?code=1&token=PLANTED"),
        (
            "Link",
            "</reset/PLANTED>; rel=\"next\", <https://user:PLANTED@host/>",
        ),
    ];
    let body = format!(
        r#"{{"seen":1,"next":"{URL}","told":"see {URL} or 'Cookie: a=1; sid=PLANTED'","sent":"{ENCODED_TWICE}","text":"use Basic {ENCODED} here"}}"#
    );
    answer("201 Created", &headers, body)
}

fn rpc(request: &Message) -> Vec<u8> {
    let id = Called::of(request).id().to_owned();
    let error =
        r#"{"code":-32000,"message":"no token PLANTED","data":["PLANTED",{"of":"PLANTED"}]}"#;
    json(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#))
}

fn calls(proxy: &Proxy) -> usize {
    let form =
        "a=kept&password=PLANTED&nested%5Bpin%5D=PLANTED&next=https%3A%2F%2Fuser%3APLANTED%40host";
    let parts =
        "--b\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\nPLANTED\r\n--b--\r\n";
    for (kind, body) in [
        ("application/x-www-form-urlencoded", form),
        ("multipart/form-data; boundary=b", parts),
        ("text/plain", "password: PLANTED"),
    ] {
        let headers = [("Content-Type", kind), ("Referer", URL)];
        proxy.rest("POST", "/notes", &headers, body);
    }
    proxy.rest("GET", "/reset/PLANTED?PLANTED", &[("Referer", URL)], "");
    proxy.rest("GET", "/unknown;token=PLANTED/x", &[], "");
    proxy.rpc(r#"{"jsonrpc":"2.0","id":1,"method":"reset/PLANTED"}"#);
    proxy.rpc(r#"{"jsonrpc":"2.0","id":2,"method":"get_token"}"#);
    7
}

#[test]
fn secrets_in_paths_urls_errors_forms_and_encoded_texts_are_not_recorded() {
    let servers = [Upstream::serving(rest), Upstream::serving(rpc)];
    let config = format!("{}{TABLES}", both(&servers[0], &servers[1]));
    let proxy = Proxy::start(&config);
    let played = calls(&proxy);
    let stopped = state(&proxy, "DELETE", "{}");
    assert_eq!(stopped["recording"]["calls"], played);
    let file = files(&proxy).remove(0);
    let text = fs::read_to_string(&file).unwrap();
    let har = run_to_end({
        let mut command = program(&["har"]);
        command.arg(&file);
        command
    });
    assert_eq!(har.code, Some(0), "{har:?}");
    for recorded in [&text, &har.output] {
        for secret in [PLANTED, ENCODED, ENCODED_TWICE] {
            let lines = recorded.lines().filter(|line| line.contains(secret));
            assert_eq!(lines.collect::<Vec<_>>(), [""; 0], "{secret}");
        }
    }
    for kept in [
        r#""seen":1"#,
        "a=kept&password=***&nested%5Bpin%5D=***",
        r#""target":"/reset/***?***""#,
        r#""target":"/unknown;token=***/x""#,
        r#""/reset/***?code=1&token=***""#,
        r#""code":-32000"#,
    ] {
        assert!(text.contains(kept), "{kept}\n{text}");
    }
}
