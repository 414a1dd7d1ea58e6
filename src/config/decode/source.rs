//! `[rollout.source]`: the server with the values of flags. Used by `decode::rollout`.

use std::path::PathBuf;
use std::time::Duration;

use http::Uri;

use super::tls;
use crate::config::key::{Key, SubTable, key, section, table};
use crate::config::kind::{DURATIONS, FILE, URL, other};
use crate::config::raw::{RawFile, RawSource};
use crate::config::table_reader::Table;
use crate::config::value::{RawValue, ValueError, cut, duration, string, timeout};

const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);
const LONGEST_INTERVAL: Duration = Duration::from_secs(3600);
const LONGEST_TIMEOUT: Duration = Duration::from_secs(30);

section! {
    /// `[rollout.source]`
    pub(super) SOURCE {
        /// Base URL of an OFREP server, such as the admin listener of another dualgauge
        BASE: Key<Uri> = key("url", URL).required();
        /// File with the bearer token
        TOKEN: Key<PathBuf> = key("token_file", FILE);
        /// TLS for an `https://` URL
        TLS: SubTable = table("tls", &tls::CLIENT);
        /// Prefix of the keys of flags at the source, at most 100 bytes
        PREFIX: Key<String> = key(
            "prefix",
            other("string", r#"{ "type": "string", "maxLength": 100 }"#, prefix),
        ).or("flag:");
        /// Time between polls
        INTERVAL: Key<Duration> = key(
            "interval",
            other("duration from `1s` to `1h`", DURATIONS, interval),
        ).or("5s");
        /// Longest time of a poll, including connecting
        POLL_TIMEOUT: Key<Duration> = key(
            "timeout",
            other("duration from `1ms` to `30s`", DURATIONS, poll_timeout),
        ).or("2s");
    }
}

pub(super) fn source(table: &mut Table<'_>) -> Option<RawSource> {
    let url = table.get(&BASE);
    let token_file = table.get(&TOKEN);
    let tls = table.table(&TLS, tls::client);
    let prefix = table.get(&PREFIX);
    let interval = table.get(&INTERVAL);
    let timeout = table.get(&POLL_TIMEOUT);
    Some(RawSource {
        url: url?,
        token_file: token_file.map(RawFile::at),
        tls,
        prefix: prefix?,
        interval: interval?,
        timeout: timeout?,
    })
}

/// Decodes the prefix, which may be empty.
fn prefix(found: RawValue<'_>) -> Result<String, ValueError> {
    const LONGEST: usize = 100;
    let prefix = string(found)?;
    if prefix.len() <= LONGEST {
        return Ok(prefix);
    }
    let shown = cut(&prefix);
    Err(ValueError::new(format!(
        "`{shown}` is too long; write at most {LONGEST} bytes"
    )))
}

fn interval(found: RawValue<'_>) -> Result<Duration, ValueError> {
    let interval = duration(found)?;
    if (SHORTEST_INTERVAL..=LONGEST_INTERVAL).contains(&interval) {
        return Ok(interval);
    }
    Err(ValueError::new("write a duration from `1s` to `1h`"))
}

fn poll_timeout(found: RawValue<'_>) -> Result<Duration, ValueError> {
    let timeout = timeout(found)?;
    if timeout <= LONGEST_TIMEOUT {
        return Ok(timeout);
    }
    Err(ValueError::new("write at most `30s`"))
}
