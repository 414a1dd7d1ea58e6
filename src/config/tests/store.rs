//! `[rollout.store]`: the shared store of replicas; its address is never shown.

use std::time::Duration;

use super::Fixture;
use crate::config::replica::name_of;
use crate::config::value::{NameForm, RawValue, name};

#[test]
fn a_shared_store_needs_no_more_than_its_address() {
    let fixture = Fixture::new("[rollout.store]\nurl = 'redis://anna:hunter2@redis.internal/3'\n");
    let store = fixture.config().rollout.store.unwrap();
    let server = store.url.value.server();
    assert_eq!(server.addr().to_string(), "redis.internal:6379");
    assert_eq!(server.redis_settings().db(), 3);
    assert_eq!(server.redis_settings().username(), Some("anna"));
    assert_eq!(store.url.value.password(), Some("hunter2"));
    assert_eq!(store.prefix.value, "dualgauge");
    assert_eq!(store.timeout.value, Duration::from_millis(500));
    assert!(!store.replica.value.is_empty());
    assert!(fixture.config().rollout.store == Some(store));
}

#[test]
fn without_one_the_store_is_a_folder() {
    assert_eq!(Fixture::new("").config().rollout.store, None);
}

#[test]
fn a_shared_store_is_read_from_variables_too() {
    let fixture =
        Fixture::new("[rollout.store]\nprefix = 'stage/a'\ntimeout = '1s'\nreplica = 'a-1'\n")
            .variable(
                "DUALGAUGE_ROLLOUT__STORE__URL",
                "redis+unix:///run/redis.sock?db=2&pass=hunter2",
            );
    let store = fixture.config().rollout.store.unwrap();
    assert_eq!(
        store.url.value.server().addr().to_string(),
        "/run/redis.sock"
    );
    assert_eq!(store.url.value.password(), Some("hunter2"));
    assert_eq!(store.prefix.value, "stage/a");
    assert_eq!(store.timeout.value, Duration::from_secs(1));
    assert_eq!(store.replica.value, "a-1");
}

#[test]
fn the_password_may_lie_in_a_file() {
    let fixture =
        Fixture::new("[rollout.store]\nurl = 'valkey://anna@h'\npassword_file = 'secrets/redis'\n")
            .file("secrets/redis", "hunter 2\n");
    let store = fixture.config().rollout.store.unwrap();
    assert_eq!(store.url.value.password(), Some("hunter 2"));
    assert_eq!(
        store.url.value.server().redis_settings().username(),
        Some("anna")
    );
    assert_eq!(
        store.password_file.unwrap().value,
        fixture.path("secrets/redis")
    );
}

#[test]
fn a_file_of_a_password_that_is_not_there_or_not_needed_is_a_problem() {
    let main = |user: &str| {
        format!("[rollout.store]\nurl = 'redis://{user}@h'\npassword_file = 'secret'\n")
    };
    let problem = |fixture: Fixture| {
        let folder = format!("{}/", fixture.path("").display());
        fixture.problems().replace(&folder, "")
    };
    let message = problem(Fixture::new(&main("a")));
    assert!(
        message.starts_with(
            "dualgauge.toml:3: rollout.store.password_file: `secret` cannot be read: "
        ),
        "{message}"
    );
    let message = problem(Fixture::new(&main("a")).file("secret", "\n"));
    assert_eq!(
        message,
        "dualgauge.toml:3: rollout.store.password_file: `secret` is empty"
    );
    let message = problem(Fixture::new(&main("a:b")).file("secret", "c"));
    assert_eq!(
        message,
        "dualgauge.toml:3: rollout.store.password_file: `rollout.store.url` already has a password; write one of the two"
    );
}

#[test]
fn every_problem_of_a_shared_store_names_what_is_allowed() {
    let fixture = Fixture::new(
        "[rollout.store]\nurl = 'rediss://:hunter2@h#insecure'\nprefix = 'a b{c}'\ntimeout = '3s'\nreplica = ''\npassword = 'hunter2'\n",
    );
    assert_eq!(
        fixture.problems(),
        "dualgauge.toml:2: rollout.store.url: server certificates are always verified\n  \
         hint: name the CA that signed it in `ca` of `[rollout.store.tls]`, and remove `#` and everything after it\n\
         dualgauge.toml:3: rollout.store.prefix: `a b{c}` is not a prefix; write 1 to 64 letters, digits, `.`, `_`, `-`, `:` or `/`\n\
         dualgauge.toml:4: rollout.store.timeout: flag commands wait for the store; write at most `2s`\n\
         dualgauge.toml:5: rollout.store.replica: `` is not a name; write 1 to 100 bytes without spaces\n\
         dualgauge.toml:6: rollout.store.password: unknown key"
    );
}

#[test]
fn no_address_is_ever_shown() {
    let addresses = [
        "http://:hunter2@h",
        "hunter2",
        "redis://:hunter2@h/x",
        "redis://:hunter2@h/-1",
        "redis://:hunter2@0.0.0.0",
        "redis://:hunter2@:1:2",
        "redis+unix:?pass=hunter2",
    ];
    let key = "dualgauge.toml:2: rollout.store.url: this is not the address of a store; write one such as \
               `redis://127.0.0.1:6379/0` or `redis+unix:///run/redis/redis.sock?db=0`";
    for address in addresses {
        let fixture = Fixture::new(&format!("[rollout.store]\nurl = \"{address}\"\n"));
        assert_eq!(fixture.problems(), key, "{address}");
    }
    let message = Fixture::new("rollout.store = 'redis://:hunter2@h'\n").problems();
    let expected = "dualgauge.toml:1: rollout.store: this is not a table; write the address as `url` in `[rollout.store]`";
    assert_eq!(message, expected);
    let config = Fixture::new("rollout.store.url = 'redis://anna:hunter2@h'\n").config();
    let shown = format!("{config:?}");
    assert!(
        shown.contains("anna") && !shown.contains("hunter2"),
        "{shown}"
    );
}

#[test]
fn an_address_may_ask_for_tls() {
    let fixture = Fixture::new("[rollout.store]\nurl = 'rediss://anna:hunter2@redis.internal/3'\n");
    let store = fixture.config().rollout.store.unwrap();
    let url = &store.url.value;
    assert!(url.is_secured() && store.tls.is_none());
    assert_eq!(url.host(), "redis.internal");
    assert_eq!(url.server().addr().to_string(), "redis.internal:6379");
    assert_eq!(url.server().redis_settings().db(), 3);
    assert_eq!(url.password(), Some("hunter2"));
    let fixture = Fixture::new(
        "[rollout.store]\nurl = 'valkeys://h:7000'\n[rollout.store.tls]\nca = 'ca.pem'\nserver_name = 'redis'\n",
    )
    .file("ca.pem", "an authority");
    let store = fixture.config().rollout.store.unwrap();
    let ca = store.tls.unwrap().ca.unwrap();
    assert_eq!(ca.path.value, fixture.path("ca.pem"));
    assert_eq!(ca.content.0, b"an authority");
}

#[test]
fn tls_without_an_address_that_requires_it_is_a_problem() {
    let fixture =
        Fixture::new("[rollout.store]\nurl = 'redis://h'\n[rollout.store.tls]\nca = 'ca.pem'\n")
            .file("ca.pem", "");
    assert_eq!(
        fixture.problems(),
        "dualgauge.toml:3: rollout.store.tls: TLS needs an address that begins with `rediss://`"
    );
}

#[test]
fn the_name_of_a_replica_is_cut_to_a_valid_one() {
    let hosts = [
        ("a b\tc".to_owned(), "abc".to_owned()),
        ("ü".repeat(100), "ü".repeat(50)),
        ("\u{65e5}".repeat(100), "\u{65e5}".repeat(33)),
        (" ".to_owned(), "replica".to_owned()),
    ];
    for (host, expected) in hosts {
        let replica = name_of(&host);
        assert_eq!(replica, expected);
        let found = RawValue {
            value: &replica.as_str().into(),
            spelling: NameForm::Text,
        };
        assert_eq!(name(found).unwrap(), replica);
    }
}
