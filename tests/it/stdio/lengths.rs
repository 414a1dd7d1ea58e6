//! Children that frame messages by their lengths, as servers of the Language Server Protocol do, and logins of children.

use serde_json::Value;

use crate::scene::{call, rpc_failure};
use crate::support::{Proxy, becomes};

/// A child that reads messages with their lengths. It answers each with the length of the message, in several lines,
/// and `log_in` with `$LOGIN`.
const CHILD: &str = r#"
say() { printf 'Content-Length: %d\r\n\r\n%s' "${#1}" "$1"; }
while IFS= read -r header; do
    length=$(printf %s "$header" | tr -cd 0-9)
    IFS= read -r empty
    message=$(dd bs=1 count="$length" 2>/dev/null)
    id=$(printf %s "$message" | tr '\n' ' ' | sed 's/.*"id":\([0-9]*\).*/\1/')
    case $message in
        *'"log_in"'*) say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":$LOGIN}" ;;
        *'"noise"'*) echo starting up ;;
        *'"large"'*) say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":\"$(printf %03000d 7)\"}" ;;
        *) say "{\"jsonrpc\":\"2.0\",
\"id\":$id,
\"result\":$length}" ;;
    esac
done
"#;

fn start(login: &str, keys: &str) -> Proxy {
    let command = format!(
        "command = [\"/bin/sh\", \"child.sh\"]\nenv = {{ LOGIN = \"{login}\" }}\ndirectory = \".\"\n"
    );
    let config = format!(
        "[upstream.child]\nside = \"rpc\"\nhandshake = \"none\"\nframing = \"content-length\"\n{command}{keys}"
    );
    Proxy::start_with(&config, &[("child.sh", CHILD), ("key", "s3cret\n")])
}

fn ask(proxy: &Proxy, method: &str) -> Value {
    proxy.rpc(call(method, "{}")).json()
}

fn logins(proxy: &Proxy, result: &str) -> f64 {
    let series = format!(r#"dualgauge_link_logins_total{{upstream="child",result="{result}"}}"#);
    proxy.metrics().value(&series)
}

#[test]
fn messages_with_their_lengths_may_have_line_ends() {
    let proxy = start("true", "");
    let message = "{\"jsonrpc\":\"2.0\",\n\"id\":\"a\",\n\"method\":\"do\",\"params\":{}}";
    let answer = proxy.rpc(message).json();
    assert_eq!(answer["id"], "a", "{answer}");
    let inner = r#"{"jsonrpc":"2.0","id":1,"method":"do","params":{}}"#;
    assert!(
        answer["result"].as_u64() >= Some(inner.len() as u64),
        "{answer}"
    );
}

#[test]
fn output_without_a_length_ends_the_child_and_an_overlong_message_its_call() {
    let proxy = start("true", "line_limit = 1024\n");
    assert_eq!(
        rpc_failure(&ask(&proxy, "large")),
        (-31030, "upstream_too_large")
    );
    assert_eq!(rpc_failure(&ask(&proxy, "noise")), (-31023, "upstream_cut"));
    proxy.log_line(&[
        "the link is lost",
        "its output is no message: a line of a header is not",
    ]);
    assert!(ask(&proxy, "do")["result"].is_u64());
}

#[test]
fn a_child_is_logged_in_to_before_its_first_call() {
    let login = "login = { method = \"log_in\", params = [\"{file:key}\"] }\n";
    let proxy = start("true", login);
    assert!(ask(&proxy, "do")["result"].is_u64());
    assert_eq!(logins(&proxy, "ok"), 1.0);
    let proxy = start("false", &format!("{login}queue_timeout = \"300ms\"\n"));
    let failure = ask(&proxy, "do");
    assert_eq!(
        rpc_failure(&failure),
        (-31021, "upstream_unreachable"),
        "{failure}"
    );
    becomes(|| logins(&proxy, "refused") >= 1.0, &true);
    assert_eq!(logins(&proxy, "ok"), 0.0);
}
