//! What the tests of the systems have in common: the shipped tables, servers asked directly, and Python's JSON.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::scene::answer;
use crate::support::{Message, Proxy, Upstream, Wire};

/// The folder with the shipped tables.
pub(super) fn config() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("config")
}

/// The proxy with the routes of a shipped table; `rest` holds the upstreams.
pub(super) fn with_table(name: &str, rest: &str) -> Proxy {
    let file = format!("{name}.toml");
    let routes = fs::read_to_string(config().join(&file)).unwrap();
    let main = format!("include = [\"{file}\"]\n[listen]\nworkers = 1\n{rest}");
    Proxy::start_with(&main, &[(&file, &routes)])
}

/// An upstream for a configuration, at a path.
pub(super) fn upstream(name: &str, side: &str, server: &Upstream, path: &str) -> String {
    let address = server.address();
    format!("[upstream.{name}]\nside = \"{side}\"\nurl = \"http://{address}{path}\"\n")
}

/// One call to a server without the proxy: what the proxy is measured by.
pub(super) fn directly(server: &Upstream, method: &str, target: &str, body: &str) -> Message {
    let mut wire = Wire::connect(server.address());
    let length = body.len();
    let head = "Host: server.example\r\nContent-Type: application/json";
    wire.send(format!(
        "{method} {target} HTTP/1.1\r\n{head}\r\nContent-Length: {length}\r\n\r\n{body}"
    ));
    wire.read_answer_to(method)
}

/// A JSON-RPC message with the id 1.
pub(super) fn message(method: &str, params: &Value) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#)
}

/// The method and the target of a request.
pub(super) fn asked(request: &Message) -> (&str, &str) {
    let mut words = request.head.start.split(' ');
    (words.next().unwrap(), words.next().unwrap())
}

/// Compact JSON with the spaces of Python's `json.dumps`.
pub(super) fn spaced(compact: &str) -> String {
    let mut text = String::with_capacity(compact.len() * 2);
    let (mut quoted, mut escaped) = (false, false);
    for letter in compact.chars() {
        text.push(letter);
        quoted ^= letter == '"' && !escaped;
        escaped = quoted && letter == '\\' && !escaped;
        if !quoted && matches!(letter, ':' | ',') {
            text.push(' ');
        }
    }
    text
}

/// An answer with JSON, in the field names of a Python server.
pub(super) fn python_json(status: &str, server: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let headers = [("server", server), ("content-type", "application/json")];
    answer(status, &headers, body)
}

#[test]
fn spaces_stand_outside_of_texts_only() {
    let compact = r#"{"a":[1,"b,:\",c\\"],"d":{}}"#;
    assert_eq!(spaced(compact), r#"{"a": [1, "b,:\",c\\"], "d": {}}"#);
}
