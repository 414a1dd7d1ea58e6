//! The formats of `rollout.json` and `watch.json`, which contain the stored texts as JSON, not as strings.

use std::collections::VecDeque;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::store::error::Corruption;
use crate::store::legacy::Header;
use crate::store::pretty_json::pretty;
use crate::store::record::{Record, compact, push_record};
use crate::store::state::{HIGHEST_REVISION, ReplicaReport};
use crate::store::versioned::Versioned;

const VERSION: u32 = 1;
/// The expected length of a record, or of the whole file, without the texts in it.
const FRAME: usize = 256;

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

/// Returns the text with line breaks, for people.
pub(super) fn state(state: &Versioned) -> Vec<u8> {
    let Versioned { revision, text } = state;
    let whole = format!(r#"{{"version":{VERSION},"revision":{revision},"state":{text}}}"#);
    pretty(&whole).into_bytes()
}

/// Returns the text without line breaks: it is written every ten seconds, and long.
pub(super) fn watch(watch: &WatchContents) -> Vec<u8> {
    let reports = watch.reports.iter().map(|report| report.text.len() + FRAME);
    let length = watch.archive.text.len() + FRAME + reports.sum::<usize>();
    // The text grows for some time. A capacity of a power of two lets the allocator reuse the memory of the last text.
    let mut out = String::with_capacity(length.next_power_of_two());
    out.push_str(&format!(r#"{{"version":{VERSION},"archive":"#));
    match &watch.archive {
        Versioned { revision: 0, .. } => out.push_str("null"),
        Versioned { revision, text } => {
            out.push_str(&format!(r#"{{"revision":{revision},"archive":"#));
            out.push_str(text);
            out.push('}');
        }
    }
    out.push_str(r#","reports":["#);
    for (at, report) in watch.reports.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        push_record(&mut out, report);
    }
    out.push_str("]}");
    out.into_bytes()
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
