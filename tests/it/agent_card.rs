//! The agent card of an A2A server, which names the proxy.

use crate::scene::{answer, body_of};
use crate::support::{Proxy, Upstream};

const PATH: &str = "/.well-known/agent-card.json";
const CARD: &str = r#"{"name":"A","supportedInterfaces":[{"url":"http://10.0.0.5/","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}"#;
const NAMED: &str = r#"{"name":"A","supportedInterfaces":[{"url":"https://p.example/gw/rpc","protocolBinding":"JSONRPC","protocolVersion":"1.0"},{"url":"https://p.example/gw","protocolBinding":"HTTP+JSON","protocolVersion":"1.0"}]}"#;

fn server(status: &'static str, body: &'static str) -> Upstream {
    let headers = [("Content-Type", "application/json"), ("ETag", "\"1\"")];
    Upstream::serving(move |_| answer(status, &headers, body))
}

fn before(server: &Upstream, card: &str) -> Proxy {
    let address = server.address();
    Proxy::start(&format!(
        "[listen]\nworkers = 1\npublic_url = \"https://p.example/gw\"\n[rpc]\npaths = [\"/rpc\"]\n{card}\n\
         [upstream.rest]\nside = \"rest\"\nurl = \"http://{address}\"\n"
    ))
}

fn counted(proxy: &Proxy, kind: &str) -> f64 {
    let series = format!(r#"dualgauge_agent_cards_total{{kind="{kind}"}}"#);
    proxy.metrics().value(&series)
}

const KEY: &str = r#"agent_card = "/.well-known/agent-card.json""#;
const HEADERS: &[(&str, &str)] = &[("Accept-Encoding", "gzip"), ("Range", "bytes=0-9")];

#[test]
fn an_agent_card_names_the_proxy() {
    let server = server("200 OK", CARD);
    let proxy = before(&server, KEY);
    let came = proxy.rest("GET", PATH, HEADERS, "");
    assert_eq!(body_of(&came, 200), NAMED);
    assert_eq!(came.head.one("etag"), None);
    assert_eq!(counted(&proxy, "rewritten"), 1.0);
    let asked = &server.requests()[0].head;
    assert_eq!(asked.one("accept-encoding"), None);
    assert_eq!(asked.one("range"), None);
    // A document at another path passes unchanged.
    let other = proxy.rest("GET", "/other", HEADERS, "");
    assert_eq!(body_of(&other, 200), CARD);
    assert_eq!(other.head.one("etag"), Some("\"1\""));
}

#[test]
fn an_agent_card_passes_unchanged_without_the_key() {
    let server = server("200 OK", CARD);
    let proxy = before(&server, "");
    let came = proxy.rest("GET", PATH, HEADERS, "");
    assert_eq!(body_of(&came, 200), CARD);
    assert_eq!(came.head.one("etag"), Some("\"1\""));
    assert_eq!(server.requests()[0].head.one("range"), Some("bytes=0-9"));
}

#[test]
fn other_documents_at_the_path_of_an_agent_card_stay() {
    let no_card = server("200 OK", r#"{"name":"A"}"#);
    let proxy = before(&no_card, KEY);
    let came = proxy.rest("GET", PATH, HEADERS, "");
    assert_eq!(body_of(&came, 200), r#"{"name":"A"}"#);
    assert_eq!(counted(&proxy, "unchanged"), 1.0);
    let missing = server("404 Not Found", CARD);
    let proxy = before(&missing, KEY);
    assert_eq!(body_of(&proxy.rest("GET", PATH, HEADERS, ""), 404), CARD);
}

#[test]
fn clients_of_another_version_find_the_proxy_in_an_agent_card() {
    let server = server("200 OK", CARD);
    let proxy = before(&server, &format!("{KEY}\nagent_card_versions = [\"0.3\"]"));
    let came = proxy.rest("GET", PATH, HEADERS, "");
    let former = r#","url":"https://p.example/gw/rpc","preferredTransport":"JSONRPC","protocolVersion":"0.3.0","additionalInterfaces":[{"url":"https://p.example/gw/rpc","transport":"JSONRPC"},{"url":"https://p.example/gw","transport":"HTTP+JSON"}]}"#;
    let named = NAMED.strip_suffix('}').unwrap();
    assert_eq!(body_of(&came, 200), format!("{named}{former}"));
    assert_eq!(counted(&proxy, "rewritten"), 1.0);
}
