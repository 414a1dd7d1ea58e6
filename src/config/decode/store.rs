//! `[rollout.store]`: the shared store of runtime changes for replicas.
//!
//! No message shows the address, which may contain a password.
//!
//! Used by `decode::rollout`.

use std::path::PathBuf;
use std::time::Duration;

use super::tls;
use crate::config::key::{Key, SubTable, key, section, table};
use crate::config::kind::{ANY_TEXT, DURATIONS, FILE, NAME, other};
use crate::config::raw::{RawStore, StoreUrl, StoreUrlError};
use crate::config::replica::host_name;
use crate::config::table_reader::{Shape, Table};
use crate::config::value::{RawValue, ValueError, cut, string, timeout};

/// Shorter than an operator waits for a flip.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(2);

section! {
    /// `[rollout.store]`
    pub(super) STORE {
        /// Address of Redis or Valkey
        ADDRESS: Key<StoreUrl> = key(
            "url",
            other(
                "address of a store; write one such as `redis://127.0.0.1:6379/0` or `redis+unix:///run/redis/redis.sock?db=0`",
                ANY_TEXT,
                url,
            ),
        ).required();
        /// File with the password, replacing a password in the address
        PASSWORD_FILE: Key<PathBuf> = key("password_file", FILE);
        /// TLS for a `rediss://` address
        TLS: SubTable = table("tls", &tls::CLIENT);
        /// Prefix of all keys of the store
        PREFIX: Key<String> = key(
            "prefix",
            other(
                "prefix; write 1 to 64 letters, digits, `.`, `_`, `-`, `:` or `/`",
                r#"{ "type": "string", "pattern": "^[A-Za-z0-9._:/-]{1,64}$" }"#,
                prefix,
            ),
        ).or("dualgauge");
        /// Longest time of a store call, including connecting
        CALL_TIMEOUT: Key<Duration> = key(
            "timeout",
            other("duration from `1ms` to `2s`", DURATIONS, short_timeout),
        ).or("500ms");
        /// Name of this replica
        REPLICA: Key<String> = key("replica", NAME).or_computed("name of the host", host_name);
    }
}

pub(super) fn within(rollout: &mut Table<'_>, key: &SubTable) -> Option<RawStore> {
    if rollout.shape(key.name) == Shape::Value {
        let wrong = "this is not a table; write the address as `url` in `[rollout.store]`";
        rollout.report(key.name, ValueError::new(wrong));
        return None;
    }
    rollout.table(key, store)
}

fn store(table: &mut Table<'_>) -> Option<RawStore> {
    let url = table.get(&ADDRESS);
    let password_file = table.get(&PASSWORD_FILE);
    let tls = table.table(&TLS, tls::client);
    if let Some((url, _)) = url.as_ref().zip(tls.as_ref())
        && !url.value.is_secured()
    {
        let wrong = "TLS needs an address that begins with `rediss://`";
        table.report(TLS.name, ValueError::new(wrong));
    }
    let prefix = table.get(&PREFIX);
    let timeout = table.get(&CALL_TIMEOUT);
    let replica = table.get(&REPLICA);
    Some(RawStore {
        url: url?,
        password_file,
        tls,
        prefix: prefix?,
        timeout: timeout?,
        replica: replica?,
    })
}

fn url(found: RawValue<'_>) -> Result<StoreUrl, ValueError> {
    StoreUrl::parse(&string(found)?).map_err(|error| match error {
        StoreUrlError::Unverified => ValueError::new("server certificates are always verified")
            .hint("name the CA that signed it in `ca` of `[rollout.store.tls]`, and remove `#` and everything after it"),
        StoreUrlError::Shape => ValueError::new(
            "this is not the address of a store; write one such as `redis://127.0.0.1:6379/0` or \
             `redis+unix:///run/redis/redis.sock?db=0`",
        ),
    })
}

/// Decodes the prefix of every key, without characters of key patterns or hash tags.
fn prefix(found: RawValue<'_>) -> Result<String, ValueError> {
    const LONGEST: usize = 64;
    let prefix = string(found)?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | ':' | '/');
    if (1..=LONGEST).contains(&prefix.len()) && prefix.chars().all(plain) {
        return Ok(prefix);
    }
    Err(ValueError::new(format!(
        "`{}` is not a prefix; write 1 to {LONGEST} letters, digits, `.`, `_`, `-`, `:` or `/`",
        cut(&prefix)
    )))
}

fn short_timeout(found: RawValue<'_>) -> Result<Duration, ValueError> {
    let timeout = timeout(found)?;
    if timeout <= LONGEST_TIMEOUT {
        return Ok(timeout);
    }
    let wrong = "flag commands wait for the store; write at most `2s`";
    Err(ValueError::new(wrong))
}
