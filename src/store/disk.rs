//! The flips as they lie in the state folder: `flips.json`, replaced whole.

use std::path::Path;

use crate::store::Flip;
use crate::store::error::StoreError;
use crate::store::folder::Folder;
use crate::store::legacy::{self, Contents, FLIPS, Record, VERSION};

/// The flips on disk. Whoever holds this is the only owner of the state folder.
#[derive(Debug)]
pub struct FlipStore {
    folder: Folder,
    revision: u64,
}

impl FlipStore {
    /// Takes the state folder, which is made where it is missing, and reads the flips in it.
    ///
    /// # Errors
    /// [`StoreError`] where another process has the folder, the system refuses, or the file is damaged.
    pub fn open(folder: &Path) -> Result<(FlipStore, Vec<Flip>), StoreError> {
        let folder = Folder::take(folder)?;
        folder.clean(FLIPS)?;
        let (revision, flips) = legacy::read(&folder.file(FLIPS))?.unwrap_or_default();
        Ok((FlipStore { folder, revision }, flips))
    }

    /// How often the flips have changed.
    #[must_use]
    pub const fn revision(&self) -> u64 {
        self.revision
    }

    /// Replaces the flips by these; when this returns, they survive a loss of power. Tells the new revision.
    ///
    /// # Errors
    /// [`StoreError::Io`]; the flips of before are then still there, unless the last step, the flush of the
    /// folder, is what failed.
    pub fn save(&mut self, flips: &[Flip]) -> Result<u64, StoreError> {
        let revision = self.revision + 1;
        self.folder.replace(FLIPS, &text(revision, flips)?)?;
        // From here on the file has this revision, whatever follows.
        self.revision = revision;
        self.folder.flush()?;
        Ok(revision)
    }
}

fn text(revision: u64, flips: &[Flip]) -> Result<Vec<u8>, StoreError> {
    let contents = Contents {
        version: VERSION,
        revision,
        flips: flips.iter().map(record).collect(),
    };
    let written = serde_json::to_vec_pretty(&contents);
    let mut text = written.map_err(|error| StoreError::Io {
        path: FLIPS.into(),
        action: "written",
        source: error.into(),
    })?;
    text.push(b'\n');
    Ok(text)
}

fn record(flip: &Flip) -> Record {
    Record {
        flag: flip.flag.clone(),
        text_hash: flip.text_hash.clone(),
        stage: flip.stage.as_str().to_owned(),
        percent: flip.percent.to_string(),
        who: flip.who.clone(),
        at: flip.at.clone(),
    }
}
