//! TLS to upstreams, and headers from files.

use rcgen::{KeyPair, generate_simple_self_signed};

use super::Fixture;
use crate::config::compile::compile;
use dualgauge_model::plan::{Plan, Transport};
use dualgauge_patterns::side::Side;

fn fixture(main: &str) -> Fixture {
    let made = generate_simple_self_signed(vec!["a.example".to_owned()]).unwrap();
    Fixture::new(main)
        .file("own.pem", made.cert.pem())
        .file("own.key", made.signing_key.serialize_pem())
        .file("other.key", KeyPair::generate().unwrap().serialize_pem())
        .file("token", "Bearer hunter2\n")
        .file("lines", "one\ntwo\n")
        .file("empty", "\n")
}

fn plan(main: &str) -> Plan {
    compile(&fixture(main).config(), &[]).unwrap()
}

fn problems(main: &str) -> String {
    let fixture = fixture(main);
    let found = match fixture.load() {
        Ok(config) => compile(&config, &[]).unwrap_err(),
        Err(problems) => problems,
    };
    let folder = fixture.path("").display().to_string();
    let found = found.to_string().replace(&folder, "");
    found.replace("dualgauge.toml:", "")
}

#[test]
fn the_scheme_says_whether_there_is_tls_and_the_port() {
    for (url, address, authority, secured) in [
        ("https://a.example", "a.example:443", "a.example", true),
        ("https://a.example:443", "a.example:443", "a.example", true),
        ("https://a.example:80", "a.example:80", "a.example:80", true),
        (
            "http://a.example:443",
            "a.example:443",
            "a.example:443",
            false,
        ),
        ("https://[::1]:8443", "[::1]:8443", "[::1]:8443", true),
        ("wss://a.example/live", "a.example:443", "a.example", true),
    ] {
        let plan = plan(&format!("[upstream.s]\nside = 'rpc'\nurl = '{url}'\n"));
        let upstream = plan.upstream(Side::Rpc).unwrap();
        assert_eq!(
            (upstream.address().as_str(), upstream.authority.as_str()),
            (address, authority)
        );
        assert_eq!(upstream.tls.is_some(), secured, "{url}");
    }
}

#[test]
fn tls_is_in_the_plan_and_shows_no_key() {
    let plan = plan(
        "[upstream.s]\nside = 'rest'\nurl = 'https://10.0.0.1'\n[upstream.s.tls]\nca = 'own.pem'\n\
         certificate = 'own.pem'\nkey = 'own.key'\nserver_name = 'a.example'\n",
    );
    let upstream = plan.upstream(Side::Rest).unwrap();
    let tls = upstream.tls.as_ref().unwrap();
    assert_eq!(tls.server_name, "a.example");
    assert!(tls.ca.is_some() && tls.own.is_some());
    assert!(!format!("{upstream:?}").contains("PRIVATE"));
}

#[test]
fn every_problem_of_tls_is_told_with_its_key() {
    let main = "[upstream.a]\nside = 'rest'\nurl = 'https://a.example'\ndefault = true\n\
        tls = { ca = 'own.key', certificate = 'own.pem', key = 'other.key' }\n\
        [upstream.b]\nside = 'rest'\nurl = 'https://a.example'\n\
        tls = { certificate = 'own.pem', key = 'token', server_name = 'not a name' }\n\
        [upstream.c]\nside = 'rest'\nurl = 'https://-a_/'\n\
        [upstream.d]\nside = 'rpc'\nurl = 'wss://a.example'\nheaders = { a = { file = 'lines' }, b = { file = 'empty' } }\n";
    insta::assert_snapshot!(problems(main));
}

#[test]
fn keys_of_tls_that_do_not_fit_are_told() {
    let main = "[upstream.a]\nside = 'rest'\nurl = 'http://a.example'\ntls = { ca = 'own.pem' }\n\
        [upstream.b]\nside = 'rest'\nurl = 'https://a.example'\n\
        tls = { certificate = 'own.pem', verify = false, cert = 'own.pem' }\n\
        [upstream.c]\nside = 'rpc'\nurl = 'https://a.example'\nheaders = { a = '1' }\n\
        [upstream.d]\nside = 'rpc'\nurl = 'https://a.example'\nprotocol = 'mcp'\n\
        headers = { mcp-session-id = '1', accept = 'x' }\n\
        [upstream.f]\nside = 'rpc'\nurl = 'ws://a.example'\nheaders = { b = { files = 'token' } }\n\
        [upstream.e]\nside = 'rpc'\nurl = 'https://a.example'\ntls = { ca = 'gone.pem', key = 'own.key' }\n";
    insta::assert_snapshot!(problems(main));
}

#[test]
fn headers_of_an_mcp_server_may_be_in_files() {
    let plan = plan(
        "[upstream.m]\nside = 'rpc'\nurl = 'https://a.example/mcp'\nprotocol = 'mcp'\n\
         headers = { Authorization = { file = 'token' }, x-a = 'b' }\n",
    );
    let upstream = plan.upstream(Side::Rpc).unwrap();
    let Transport::Mcp(server) = &upstream.transport else {
        panic!("no MCP")
    };
    let headers: Vec<_> = server.headers.iter().collect();
    assert_eq!(headers, [("authorization", "Bearer hunter2"), ("x-a", "b")]);
    assert!(!format!("{upstream:?}").contains("hunter2"));
}
