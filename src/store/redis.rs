//! The store of many replicas: Redis or Valkey.
//!
//! ```text
//! connection  one connection, with a timeout for every call and a backoff after failures
//! connect     opening a connection, plain or with TLS
//! script      the scripts that the server runs atomically
//! ```
//!
//! Laws: a call ends within its timeout; two replicas at one revision have the same text, or the next read reports the
//! difference; a confirmed commit is on the server; a commit whose reply was lost is never made twice, and repeating
//! the call finds out if it was made.
//!
//! Used by `backend`.

mod connect;
mod connection;
mod script;

use std::fmt;
use std::time::Duration;

use redis::{Cmd, ConnectionInfo, FromRedisValue};
use sha2::{Digest, Sha256};

use crate::store::error::{CommitError, StoreError};
use crate::store::record::{Record, beginning, record};
use crate::store::state::{
    HIGHEST_REVISION, Health, HealthTracker, LONGEST_TEXT, MOST_REPORTS, ReplicaReport, Reports,
    boot, check,
};
use crate::store::versioned::Versioned;
use crate::telemetry::clock::wall;
use connect::Connector;
use connection::RedisConnection;
use dualgauge_net::random_u64;
use dualgauge_transport::tls::ClientTls;
use script::Script;

/// The maximum total size of the reports returned at once, in bytes.
const MOST_REPORTED: usize = 64 << 20;
/// The number of commits whose marks are kept. A commit whose reply was lost is found as long as fewer commits
/// followed.
const MARKS: usize = 128;

/// The location of a shared store and its options. `Debug` shows no password.
#[derive(Debug, Clone)]
pub struct RedisSettings {
    /// The server, with credentials and the database number.
    pub server: ConnectionInfo,
    /// The TLS settings, if TLS is used.
    pub tls: Option<Box<ClientTls>>,
    /// The prefix of the keys.
    pub prefix: String,
    /// The timeout of a call, including the connection setup.
    pub timeout: Duration,
}

/// The state and the counts on a server.
pub struct RedisStore {
    connection: RedisConnection,
    keys: RedisKeys,
    /// Identifies the commits of this store.
    writer: String,
    /// The state that was last read or stored.
    seen: Option<SeenRevision>,
    health_tracker: HealthTracker,
}

/// A known state.
#[derive(Debug)]
struct SeenRevision {
    revision: u64,
    /// The revision with the digest of its text, as stored.
    stored: String,
}

/// The keys. The braces are a hash tag: a cluster keeps these keys on one node, as scripts need them.
#[derive(Debug)]
struct RedisKeys {
    text: String,
    revision: String,
    marks: String,
    archive: String,
    archive_revision: String,
    reports: String,
}

/// The reply to a commit: a status, a revision, and the current text if it is another one.
type CommitOutcome = (String, String, Option<String>);

impl RedisKeys {
    fn new(prefix: &str) -> Self {
        let key = |name: &str| format!("{{{prefix}}}:{name}");
        RedisKeys {
            text: key("rollout"),
            revision: key("rollout:revision"),
            marks: key("rollout:marks"),
            archive: key("archive"),
            archive_revision: key("archive:revision"),
            reports: key("reports"),
        }
    }

    fn state(&self) -> [&str; 2] {
        [&self.text, &self.revision]
    }

    fn watch(&self) -> [&str; 3] {
        [&self.archive, &self.archive_revision, &self.reports]
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore")
            .field("address", &self.connection.address())
            .field("keys", &self.keys)
            .field("health", &self.health_tracker)
            .finish_non_exhaustive()
    }
}

impl RedisSettings {
    /// Returns the identity of the store: its address, database and key prefix. Contains no secrets.
    #[must_use]
    pub fn identity(&self) -> String {
        let database = self.server.redis_settings().db();
        format!("{} {database} {}", self.server.addr(), self.prefix)
    }
}

impl RedisStore {
    /// Creates the store without connecting.
    pub fn open(settings: &RedisSettings) -> Result<RedisStore, StoreError> {
        let connector = Connector::new(&settings.server, settings.tls.as_deref());
        let connector = connector.map_err(|error| StoreError::Away {
            address: settings.server.addr().to_string(),
            source: error.into(),
        })?;
        Ok(RedisStore {
            connection: RedisConnection::new(connector, settings.timeout, random_u64()),
            keys: RedisKeys::new(&settings.prefix),
            writer: boot(),
            seen: None,
            health_tracker: HealthTracker::default(),
        })
    }

    pub(super) async fn read(&mut self, known: u64) -> Result<Option<Versioned>, StoreError> {
        let mut command = Script::Read.on(&self.keys.state());
        command.arg(self.stored(known)).arg(LONGEST_TEXT);
        let found: Option<(String, Option<String>)> = self.call(&command).await?;
        let Some((revision, text)) = found else {
            return Ok(None);
        };
        let stored = revision;
        let found = self.versioned(StorePart::State, &stored, text)?;
        if found.revision < known {
            let found = found.revision;
            return Err(StoreError::Forgot { known, found });
        }
        self.record_seen(&found, stored);
        Ok(Some(found))
    }

    pub(super) fn mark_known(&mut self, good: &Versioned) {
        self.record_seen(good, with_digest(good.revision, &good.text));
    }

    pub(super) async fn commit(&mut self, expected: u64, text: &str) -> Result<u64, CommitError> {
        check(text)?;
        let [stored, revision] = self.keys.state();
        let mut command = Script::Commit.on(&[stored, revision, &self.keys.marks]);
        let revision = expected + 1;
        let stored = with_digest(revision, text);
        command.arg(LONGEST_TEXT).arg(self.stored(expected));
        command.arg(&stored).arg(text);
        command.arg(self.mark(expected, text)).arg(MARKS);
        let outcome: CommitOutcome = self.call(&command).await?;
        self.check_outcome(StorePart::State, expected, outcome)?;
        self.seen = Some(SeenRevision { revision, stored });
        Ok(revision)
    }

    pub(super) async fn restore(&mut self, good: &Versioned) -> Result<(), StoreError> {
        check(&good.text)?;
        let mut command = Script::Restore.on(&self.keys.state());
        command
            .arg(good.revision)
            .arg(with_digest(good.revision, &good.text))
            .arg(&good.text);
        self.call::<u8>(&command).await.map(drop)
    }

    pub(super) async fn exchange(&mut self, own: &ReplicaReport) -> Result<Reports, StoreError> {
        check(&own.text)?;
        let mut command = Script::Exchange.on(&self.keys.watch());
        command.arg(LONGEST_TEXT).arg(field(own)).arg(record(own));
        command.arg(MOST_REPORTS - 1).arg(MOST_REPORTED);
        let replied: (String, Option<String>, Vec<String>) = self.call(&command).await?;
        let (revision, archive, records) = replied;
        let archive = self.versioned(StorePart::Archive, &revision, archive)?;
        let mut reports = vec![own.clone()];
        for record in &records {
            reports.push(self.report(record)?);
        }
        Ok(Reports { archive, reports })
    }

    pub(super) async fn fold(
        &mut self,
        expected: u64,
        text: &str,
        folded: &[ReplicaReport],
    ) -> Result<(), CommitError> {
        check(text)?;
        let mut command = Script::Fold.on(&self.keys.watch());
        command
            .arg(LONGEST_TEXT)
            .arg(expected)
            .arg(expected + 1)
            .arg(text);
        for report in folded {
            command.arg(field(report)).arg(beginning(report));
        }
        let outcome: CommitOutcome = self.call(&command).await?;
        self.check_outcome(StorePart::Archive, expected, outcome)
    }

    pub(super) async fn restore_archive(&mut self, good: &Versioned) -> Result<(), StoreError> {
        check(&good.text)?;
        let [archive, revision, _] = self.keys.watch();
        let mut command = Script::Restore.on(&[archive, revision]);
        command.arg(1).arg(good.revision).arg(&good.text);
        self.call::<u8>(&command).await.map(drop)
    }

    pub(super) fn health(&self) -> Health {
        self.health_tracker.health()
    }

    async fn call<T: FromRedisValue>(&mut self, command: &Cmd) -> Result<T, StoreError> {
        let reply = self.connection.call(command).await;
        let reply = reply.map_err(|source| StoreError::Away {
            address: self.connection.address(),
            source,
        });
        self.health_tracker.note(reply, wall())
    }

    /// Returns the mark of a commit: the same for a repetition by this store, different for all others.
    fn mark(&self, expected: u64, text: &str) -> String {
        digest(&[
            self.writer.as_bytes(),
            &expected.to_be_bytes(),
            text.as_bytes(),
        ])
    }

    fn check_outcome(
        &mut self,
        part: StorePart,
        expected: u64,
        outcome: CommitOutcome,
    ) -> Result<(), CommitError> {
        let (status, revision, text) = outcome;
        if status == "done" {
            return Ok(());
        }
        let stored = revision;
        let found = self.versioned(part, &stored, text)?;
        match part {
            StorePart::State if found.revision < expected => {
                let (known, found) = (expected, found.revision);
                return Err(CommitError::Store(StoreError::Forgot { known, found }));
            }
            StorePart::State => self.record_seen(&found, stored),
            StorePart::Archive => {}
        }
        Err(CommitError::Conflict(found))
    }

    /// Records a state that is returned to the caller. A state behind the known one is not recorded: if the known one
    /// returns with another text, its digest must show the difference.
    fn record_seen(&mut self, found: &Versioned, stored: String) {
        let revision = found.revision;
        self.seen = Some(SeenRevision { revision, stored });
    }

    /// Returns the stored form of a revision: with the digest of its text if this store has seen it.
    fn stored(&self, revision: u64) -> String {
        match &self.seen {
            Some(seen) if seen.revision == revision => seen.stored.clone(),
            Some(_) | None => revision.to_string(),
        }
    }

    fn versioned(
        &mut self,
        part: StorePart,
        stored: &str,
        text: Option<String>,
    ) -> Result<Versioned, StoreError> {
        let (text_key, revision_key) = match part {
            StorePart::State => (&self.keys.text, &self.keys.revision),
            StorePart::Archive => (&self.keys.archive, &self.keys.archive_revision),
        };
        let number = stored.split(':').next().unwrap_or_default();
        let parsed = number.parse().ok();
        let Some(revision) = parsed.filter(|found| *found <= HIGHEST_REVISION) else {
            let error = foreign(revision_key, "something other than a revision");
            return self.health_tracker.note(Err(error), wall());
        };
        if revision == 0 {
            return Ok(Versioned::default());
        }
        let Some(text) = text else {
            let error = foreign(text_key, "a text beyond the size limit");
            return self.health_tracker.note(Err(error), wall());
        };
        Ok(Versioned { revision, text })
    }

    fn report(&mut self, text: &str) -> Result<ReplicaReport, StoreError> {
        let record = serde_json::from_str::<Record<'_>>(text);
        let report = record.map_err(Into::into).and_then(ReplicaReport::try_from);
        let report =
            report.map_err(|_| foreign(&self.keys.reports, "something other than a report"));
        match report {
            Ok(report) => Ok(report),
            Err(error) => self.health_tracker.note(Err(error), wall()),
        }
    }
}

/// The two texts that have revisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StorePart {
    State,
    Archive,
}

/// Returns the stored form of a state's revision.
fn with_digest(revision: u64, text: &str) -> String {
    format!("{revision}:{}", digest(&[text.as_bytes()]))
}

/// Returns the first 16 bytes of a SHA-256 in hexadecimal, enough to tell any two texts apart.
fn digest(parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part);
    }
    let bytes = hash.finalize();
    bytes
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn field(report: &ReplicaReport) -> String {
    format!("{}/{}", report.replica, report.boot)
}

fn foreign(key: &str, what: &'static str) -> StoreError {
    StoreError::Foreign {
        key: key.to_owned(),
        what,
    }
}
