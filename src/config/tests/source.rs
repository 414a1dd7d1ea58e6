//! `[rollout.source]`: the server with the values of flags; its token is never shown.

use std::time::Duration;

use super::Fixture;
use crate::config::compile::source::source;

#[test]
fn a_source_needs_no_more_than_its_address() {
    let config = Fixture::new("[rollout.source]\nurl = 'http://127.0.0.1:9090'\n").config();
    let raw = config.rollout.source.unwrap();
    assert_eq!(raw.prefix.value, "flag:");
    assert_eq!(raw.interval.value, Duration::from_secs(5));
    assert_eq!(raw.timeout.value, Duration::from_secs(2));
    let address = source(&raw, &mut Vec::new());
    assert_eq!(
        (&*address.server, &*address.authority),
        ("127.0.0.1:9090", "127.0.0.1:9090")
    );
    assert_eq!(address.path, "/ofrep/v1/evaluate/flags");
    assert_eq!((address.tls, address.authorization), (None, None));
}

#[test]
fn a_base_url_may_have_a_path_and_tls() {
    let text = "[rollout.source]\nurl = 'https://flags.internal/edge/'\ntoken_file = 'token'\n";
    let config = Fixture::new(text).file("token", "opensesame\n").config();
    let raw = config.rollout.source.unwrap();
    let address = source(&raw, &mut Vec::new());
    assert_eq!(
        (&*address.server, &*address.authority),
        ("flags.internal:443", "flags.internal")
    );
    assert_eq!(address.path, "/edge/ofrep/v1/evaluate/flags");
    assert_eq!(address.tls.unwrap().server_name, "flags.internal");
    assert_eq!(address.authorization.as_ref().unwrap(), "Bearer opensesame");
    assert!(!format!("{raw:?}{:?}", address.authorization).contains("opensesame"));
}
