//! Variables and arguments over files.

use super::Fixture;

#[test]
fn variables_are_over_files_and_arguments_over_all() {
    let mut fixture = Fixture::new("[listen]\naddress = '127.0.0.1:1'\n[limits]\nbatch = 1\n")
        .variable("DUALGAUGE_LISTEN__ADDRESS", "127.0.0.1:2")
        .variable("DUALGAUGE_LIMITS__BATCH", "2")
        .variable("DUALGAUGE_LIMITS__BODY", "3KiB")
        .variable("DUALGAUGE_ROLLOUT__FLAGS", "10")
        .variable("DUALGAUGE_RPC__PATHS", "[\"/only\"]")
        .variable(
            "DUALGAUGE_UPSTREAM__OLD",
            "{ side = 'rest', url = 'http://h' }",
        )
        .variable("DUALGAUGE_UPSTREAM__OLD__CONNECTIONS", "7")
        .variable("OTHER", "x");
    let config = fixture.config();
    assert_eq!(config.listen.address.value.port(), 2);
    assert_eq!(config.limits.batch.value, 2);
    assert_eq!(
        config.limits.batch.place.to_string(),
        "DUALGAUGE_LIMITS__BATCH"
    );
    assert_eq!(config.limits.body.value, 3 << 10);
    assert_eq!(config.rollout.flags.unwrap().value, fixture.path("10"));
    assert_eq!(config.rpc.paths.len(), 1);
    assert_eq!(
        config.rpc.paths[0].place.to_string(),
        "DUALGAUGE_RPC__PATHS"
    );
    assert_eq!(config.upstreams[0].connections.value, 7);

    fixture.sources.listen = Some("127.0.0.1:3".to_owned());
    let config = fixture.config();
    assert_eq!(config.listen.address.value.port(), 3);
    assert_eq!(config.listen.address.place.to_string(), "--listen");
}

#[test]
fn a_bad_variable_or_argument_is_named() {
    let mut fixture = Fixture::new("")
        .variable("DUALGAUGE_LIMITS__DEPTH", "deep")
        .variable("DUALGAUGE_LIMTS__DEPTH", "1")
        .variable("DUALGAUGE_LOG", "debug")
        .variable("DUALGAUGE_RPC__PATHS", "[\"/a\"")
        .variable("DUALGAUGE_LISTEN_ADDRESS", "127.0.0.1:1")
        .variable("DUALGAUGE_ROLLOUT__STORE_URL", "redis://a")
        .variable("DUALGAUGE_INCLUDE", "['x']");
    fixture.sources.admin = Some("localhost".to_owned());
    assert_eq!(
        fixture.problems(),
        r#"DUALGAUGE_INCLUDE: include: only the main file can include others
DUALGAUGE_LIMITS__DEPTH: limits.depth: `deep` is not a whole number from 1 to 512
DUALGAUGE_LIMTS__DEPTH: limts: unknown key
  hint: did you mean `limits`?
DUALGAUGE_LISTEN_ADDRESS: listen_address: unknown key
  hint: did you mean `DUALGAUGE_LISTEN__ADDRESS`? `__` separates a table from its key
DUALGAUGE_LOG: log: `debug` is not a table
  hint: write a key of the table as `DUALGAUGE_LOG__KEY`
DUALGAUGE_ROLLOUT__STORE_URL: rollout.store_url: unknown key
  hint: did you mean `DUALGAUGE_ROLLOUT__STORE__URL`? `__` separates a table from its key
DUALGAUGE_RPC__PATHS: rpc.paths: unclosed array, expected `]`
--admin: admin.address: `localhost` is not an address; write an IP address and a port, such as `127.0.0.1:8080` or `[::]:8080`"#
    );
}

#[test]
fn variables_that_a_cluster_makes_for_a_service_of_our_name_are_not_ours() {
    Fixture::new("")
        .variable("DUALGAUGE_PORT", "tcp://10.0.0.1:80")
        .variable("DUALGAUGE_PORT_80_TCP_ADDR", "10.0.0.1")
        .variable("DUALGAUGE_SERVICE_HOST", "10.0.0.1")
        .variable("DUALGAUGE_SERVICE_PORT_HTTP", "80")
        .config();
}
