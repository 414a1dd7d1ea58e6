//! `[rollout.store]`: the shared store of runtime changes for replicas.
//!
//! No message shows the address, which may contain a password.
//!
//! Used by `decode`.

use std::time::Duration;

use super::identity::client_tls;
use super::shared::file;
use crate::config::raw::{RawStore, StoreUrl, StoreUrlError};
use crate::config::replica::host_name;
use crate::config::table_reader::{Shape, Table};
use crate::config::value::{RawValue, ValueError, cut, name, string, timeout};

const PREFIX: &str = "dualgauge";
const TIMEOUT: Duration = Duration::from_millis(500);
/// Shorter than an operator waits for a flip.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(2);

pub(super) fn within(rollout: &mut Table<'_>) -> Option<RawStore> {
    if rollout.shape("store") == Shape::Value {
        let wrong = "this is not a table; write the address as `url` in `[rollout.store]`";
        rollout.report("store", ValueError::new(wrong));
        return None;
    }
    rollout.table("store", store)
}

fn store(table: &mut Table<'_>) -> Option<RawStore> {
    let url = table.require("url", url);
    let password_file = table.get("password_file", file);
    let tls = table.table("tls", client_tls);
    if let Some((url, _)) = url.as_ref().zip(tls.as_ref())
        && !url.value.is_secured()
    {
        let wrong = "TLS needs an address that begins with `rediss://`";
        table.report("tls", ValueError::new(wrong));
    }
    let prefix = table.get_or("prefix", prefix, PREFIX.to_owned());
    let timeout = table.get_or("timeout", short_timeout, TIMEOUT);
    let replica = table.get_or("replica", name, host_name());
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
