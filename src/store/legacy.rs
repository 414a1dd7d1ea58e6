//! What earlier versions left: `flips.json`, of version 1. It is read once, so that no flip is lost, and never
//! written again by whoever has a [`crate::store::Store`].

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::config::regular;
use crate::domain::rollout::{Percent, Stage};
use crate::store::error::{Corruption, StoreError};
use crate::store::state_dir::refused;

/// The file of flips.
pub(super) const FLIPS: &str = "flips.json";
/// Its only version.
pub(super) const VERSION: u32 = 1;

/// A change of one flag at run time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flip {
    /// The name of the flag.
    pub flag: String,
    /// The hash of the text of the flag that was flipped, as [`crate::config::raw::RawFlag::text_hash`] gives it.
    pub text_hash: String,
    /// Its stage from then on.
    pub stage: Stage,
    /// Its share from then on.
    pub percent: Percent,
    /// Who flipped it.
    pub who: String,
    /// When, in RFC 3339.
    pub at: String,
}

/// The flips that an earlier version left in a state folder; none where there is no such file.
///
/// The file stays. It is for a store at revision 0: one that holds a state has taken the flips over, or has begun
/// without them.
///
/// # Errors
/// [`StoreError`] where the system refuses or the file is damaged.
pub fn legacy(folder: &Path) -> Result<Option<Vec<Flip>>, StoreError> {
    Ok(read(&folder.join(FLIPS))?.map(|(_, flips)| flips))
}

/// The file as a whole.
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
    /// A decimal; as a JSON number it would be read through `f64`.
    pub(super) percent: String,
    pub(super) who: String,
    pub(super) at: String,
}

/// What every version of every file says.
#[derive(Deserialize)]
pub(super) struct Header {
    pub(super) version: u32,
}

/// The revision and the flips of the file, if there is one.
pub(super) fn read(path: &Path) -> Result<Option<(u64, Vec<Flip>)>, StoreError> {
    let text = match regular::read(path, regular::LONGEST_STATE) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(refused(path, "read")(error)),
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
            return Err(Corruption::Twice(flip.flag));
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
