//! Problems of `[rollout.source]`.

use super::*;

fn of_source(keys: &str) -> String {
    let main = format!("[rollout.source]\n{keys}\n{BOTH}");
    let fixture = Fixture::new(&main).file("token", "two words\n");
    problems_of(&fixture).replace("dualgauge.toml:", "")
}

#[test]
fn an_address_of_another_kind_is_a_problem() {
    let base = "2: rollout.source.url: this is not the base URL of an OFREP server\n  hint: write one such as `https://flags.example:9090`, without a query";
    for url in ["ws://h", "http://h/?a=1"] {
        assert_eq!(of_source(&format!("url = '{url}'")), base, "{url}");
    }
    assert_eq!(
        of_source("url = 'http://h:0'"),
        "2: rollout.source.url: the port of this URL is not from 1 to 65535"
    );
    let text = of_source("url = 'http://h'\ntls = { server_name = 'x' }");
    assert!(
        text.contains("TLS needs a URL that begins with `https://`"),
        "{text}"
    );
}

#[test]
fn a_token_is_one_line_without_spaces() {
    let text = of_source("url = 'http://h'\ntoken_file = 'token'");
    assert!(
        text.contains("`token` is not a token: one line without spaces"),
        "{text}"
    );
    assert!(!text.contains("two words"), "{text}");
}

#[test]
fn times_and_the_prefix_have_limits() {
    let prefix = "x".repeat(101);
    let text = of_source(&format!(
        "url = 'http://h'\ninterval = '500ms'\ntimeout = '31s'\nprefix = '{prefix}'"
    ));
    for expected in [
        "rollout.source.interval: write a duration from `1s` to `1h`",
        "rollout.source.timeout: write at most `30s`",
        "rollout.source.prefix: ",
        "is too long; write at most 100 bytes",
    ] {
        assert!(text.contains(expected), "{text}");
    }
}
