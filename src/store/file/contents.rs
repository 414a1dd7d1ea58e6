//! The formats of `rollout.json` and `watch.json`, which contain the stored texts as JSON, not as strings.

use std::collections::VecDeque;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::store::error::Corruption;
use crate::store::legacy::Header;
use crate::store::pretty_json::pretty;
use crate::store::record::{Record, compact, record};
use crate::store::state::{HIGHEST_REVISION, ReplicaReport};
use crate::store::versioned::Versioned;

const VERSION: u32 = 1;

/// The contents of `watch.json`.
#[derive(Debug, Clone, Default)]
pub(super) struct WatchContents {
    pub(super) archive: Versioned,
    /// The reports, newest first.
    pub(super) reports: VecDeque<ReplicaReport>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StateFile<'t> {
    #[serde(rename = "version")]
    _version: u32,
    revision: u64,
    #[serde(borrow)]
    state: &'t RawValue,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WatchFile<'t> {
    #[serde(rename = "version")]
    _version: u32,
    /// Absent if nothing was ever folded.
    #[serde(borrow)]
    archive: Option<ArchiveRecord<'t>>,
    #[serde(borrow)]
    reports: VecDeque<Record<'t>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ArchiveRecord<'t> {
    revision: u64,
    #[serde(borrow)]
    archive: &'t RawValue,
}

pub(super) fn state(state: &Versioned) -> Vec<u8> {
    let Versioned { revision, text } = state;
    let whole = format!(r#"{{"version":{VERSION},"revision":{revision},"state":{text}}}"#);
    pretty(&whole).into_bytes()
}

pub(super) fn watch(watch: &WatchContents) -> Vec<u8> {
    let archive = match &watch.archive {
        Versioned { revision: 0, .. } => "null".to_owned(),
        Versioned { revision, text } => format!(r#"{{"revision":{revision},"archive":{text}}}"#),
    };
    let reports: Vec<_> = watch.reports.iter().map(record).collect();
    let reports = reports.join(",");
    let whole = format!(r#"{{"version":{VERSION},"archive":{archive},"reports":[{reports}]}}"#);
    pretty(&whole).into_bytes()
}

pub(super) fn read_state(text: &[u8]) -> Result<Versioned, Corruption> {
    known_version(text)?;
    let file: StateFile<'_> = serde_json::from_slice(text)?;
    versioned(file.revision, file.state)
}

pub(super) fn read_watch(text: &[u8]) -> Result<WatchContents, Corruption> {
    known_version(text)?;
    let file: WatchFile<'_> = serde_json::from_slice(text)?;
    let archive = match file.archive {
        Some(archive) => versioned(archive.revision, archive.archive)?,
        None => Versioned::default(),
    };
    let reports = file.reports.into_iter().map(ReplicaReport::try_from);
    Ok(WatchContents {
        archive,
        reports: reports.collect::<Result<_, _>>()?,
    })
}

fn known_version(text: &[u8]) -> Result<(), Corruption> {
    let header: Header = serde_json::from_slice(text)?;
    if header.version == VERSION {
        return Ok(());
    }
    Err(Corruption::Version {
        found: header.version,
        known: VERSION,
    })
}

fn versioned(revision: u64, text: &RawValue) -> Result<Versioned, Corruption> {
    if revision == 0 || revision > HIGHEST_REVISION {
        return Err(Corruption::Revision(revision));
    }
    let text = compact(text)?;
    Ok(Versioned { revision, text })
}
