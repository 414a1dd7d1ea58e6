//! The file `flips.json` that earlier versions left. It is read once, so that no flip is lost. A process that has a
//! [`crate::store::Store`] never writes it.
//!
//! Used by `app::control::replication`, `file::contents` and `snapshot`.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::config::regular;
use crate::store::error::{Corruption, StoreError};
use crate::store::state_dir::io_error;
use dualgauge_model::rollout::{Percent, Stage};

/// The name of the file.
pub(super) const FLIPS: &str = "flips.json";
/// The only version of its format.
pub(super) const VERSION: u32 = 1;

/// A runtime change of one flag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flip {
    /// The name of the flag.
    pub flag: String,
    /// The hash of the flag's configuration text at the time of the flip, as returned by
    /// [`crate::config::raw::RawFlag::text_hash`].
    pub text_hash: String,
    /// The new stage.
    pub stage: Stage,
    /// The new percentage.
    pub percent: Percent,
    /// The author of the change.
    pub who: String,
    /// The time of the change, in RFC 3339.
    pub at: String,
}

/// Returns the flips in the state folder, or `None` if there is no such file.
///
/// The file is kept. Its contents apply only to a store at revision 0: a store with a state has already imported the
/// flips, or has started without them.
///
/// # Errors
/// Returns a [`StoreError`] if the operating system reports an error or the file is damaged.
pub fn legacy(folder: &Path) -> Result<Option<Vec<Flip>>, StoreError> {
    Ok(read(&folder.join(FLIPS))?.map(|(_, flips)| flips))
}

/// The contents of the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LegacyContents {
    pub(super) version: u32,
    pub(super) revision: u64,
    pub(super) flips: Vec<LegacyRecord>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LegacyRecord {
    pub(super) flag: String,
    pub(super) text_hash: String,
    pub(super) stage: String,
    /// A decimal number as a string: a JSON number would be parsed as `f64`.
    pub(super) percent: String,
    pub(super) who: String,
    pub(super) at: String,
}

/// The part of a file that every version has.
#[derive(Deserialize)]
pub(super) struct Header {
    pub(super) version: u32,
}

/// Returns the revision and the flips in the file, if it exists.
pub(super) fn read(path: &Path) -> Result<Option<(u64, Vec<Flip>)>, StoreError> {
    let text = match regular::read(path, regular::LONGEST_STATE) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error(path, "read")(error)),
    };
    let flips = parse(&text).map_err(|source| StoreError::Damaged {
        path: path.to_path_buf(),
        source,
    })?;
    Ok(Some(flips))
}

fn parse(text: &[u8]) -> Result<(u64, Vec<Flip>), Corruption> {
    let header: Header = serde_json::from_slice(text)?;
    if header.version != VERSION {
        return Err(Corruption::Version {
            found: header.version,
            known: VERSION,
        });
    }
    let contents: LegacyContents = serde_json::from_slice(text)?;
    let mut flips: Vec<Flip> = Vec::with_capacity(contents.flips.len());
    for record in contents.flips {
        let flip = flip(record)?;
        if flips.iter().any(|other| other.flag == flip.flag) {
            return Err(Corruption::Duplicate(flip.flag));
        }
        flips.push(flip);
    }
    Ok((contents.revision, flips))
}

fn flip(record: LegacyRecord) -> Result<Flip, Corruption> {
    let Some(stage) = Stage::parse(&record.stage) else {
        return Err(Corruption::Stage(record.stage));
    };
    let Some(percent) = Percent::parse(&record.percent) else {
        return Err(Corruption::Percent(record.percent));
    };
    Ok(Flip {
        flag: record.flag,
        text_hash: record.text_hash,
        stage,
        percent,
        who: record.who,
        at: record.at,
    })
}
