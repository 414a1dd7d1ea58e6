//! The state folder: `flips.json`, replaced whole, and `lock`, which keeps a second process away.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::domain::rollout::{Percent, Stage};
use crate::store::Flip;

const LOCK: &str = "lock";
const FLIPS: &str = "flips.json";
/// What a replacement is called until it is complete. One that is found was never said to be stored.
const UNFINISHED: &str = "flips.json.new";
const VERSION: u32 = 1;

/// The flips on disk. Whoever holds this is the only owner of the state folder.
#[derive(Debug)]
pub struct FlipStore {
    folder: PathBuf,
    revision: u64,
    /// Locked as long as it is open.
    _lock: File,
}

/// Why flips cannot be read or stored.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process owns the folder.
    #[error(
        "the state folder `{}` is in use by another process; give each its own with `rollout.state`",
        .0.display()
    )]
    InUse(PathBuf),
    /// The system refuses.
    #[error("`{}` cannot be {action}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was tried with it.
        action: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// The file is not what this program writes.
    #[error("`{}` is damaged; mend it, or move it away to begin without flips", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: Damage,
    },
}

/// What is wrong with the file of flips.
#[derive(Debug, thiserror::Error)]
pub enum Damage {
    /// No JSON, or other members than there should be.
    #[error(transparent)]
    Form(#[from] serde_json::Error),
    /// A form that this version does not know.
    #[error("its version is {0}, and this program knows version {VERSION}")]
    Version(u32),
    /// No stage.
    #[error("`{0}` is no stage")]
    Stage(String),
    /// No percentage.
    #[error("`{0}` is no percentage from 0 to 100 in steps of 0.001")]
    Percent(String),
    /// Two flips of one flag.
    #[error("the flag `{0}` is flipped twice")]
    Twice(String),
}

impl FlipStore {
    /// Takes the state folder, which is made where it is missing, and reads the flips in it.
    ///
    /// # Errors
    /// [`StoreError`] where another process has the folder, the system refuses, or the file is damaged.
    pub fn open(folder: &Path) -> Result<(FlipStore, Vec<Flip>), StoreError> {
        fs::create_dir_all(folder).map_err(refused(folder, "made"))?;
        let lock = lock(folder)?;
        let unfinished = folder.join(UNFINISHED);
        match fs::remove_file(&unfinished) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(refused(&unfinished, "removed")(error));
            }
            Ok(()) | Err(_) => {}
        }
        let (revision, flips) = read(&folder.join(FLIPS))?;
        let store = FlipStore {
            folder: folder.to_path_buf(),
            revision,
            _lock: lock,
        };
        Ok((store, flips))
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
        let unfinished = self.folder.join(UNFINISHED);
        write(&unfinished, revision, flips).map_err(refused(&unfinished, "written"))?;
        let file = self.folder.join(FLIPS);
        fs::rename(&unfinished, &file).map_err(refused(&file, "replaced"))?;
        // From here on the file has this revision, whatever follows.
        self.revision = revision;
        File::open(&self.folder)
            .and_then(|folder| folder.sync_all())
            .map_err(refused(&self.folder, "flushed"))?;
        Ok(revision)
    }
}

fn refused(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_path_buf();
    move |source| StoreError::Io {
        path,
        action,
        source,
    }
}

fn lock(folder: &Path) -> Result<File, StoreError> {
    let path = folder.join(LOCK);
    let mut options = File::options();
    options.create(true).truncate(false).write(true);
    let file = options.open(&path).map_err(refused(&path, "opened"))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::InUse(folder.to_path_buf())),
        Err(TryLockError::Error(error)) => Err(refused(&path, "locked")(error)),
    }
}

/// The file as a whole.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents {
    version: u32,
    revision: u64,
    flips: Vec<Record>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    flag: String,
    text_hash: String,
    stage: String,
    /// A decimal; as a JSON number it would be read through `f64`.
    percent: String,
    who: String,
    at: String,
}

/// What every version of the file says.
#[derive(Deserialize)]
struct Header {
    version: u32,
}

fn write(path: &Path, revision: u64, flips: &[Flip]) -> io::Result<()> {
    let contents = Contents {
        version: VERSION,
        revision,
        flips: flips.iter().map(record).collect(),
    };
    let mut text = serde_json::to_vec_pretty(&contents)?;
    text.push(b'\n');
    let mut file = File::create(path)?;
    file.write_all(&text)?;
    file.sync_all()
}

fn read(path: &Path) -> Result<(u64, Vec<Flip>), StoreError> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((0, Vec::new())),
        Err(error) => return Err(refused(path, "read")(error)),
    };
    parse(&text).map_err(|source| StoreError::Damaged {
        path: path.to_path_buf(),
        source,
    })
}

fn parse(text: &[u8]) -> Result<(u64, Vec<Flip>), Damage> {
    let header: Header = serde_json::from_slice(text)?;
    if header.version != VERSION {
        return Err(Damage::Version(header.version));
    }
    let contents: Contents = serde_json::from_slice(text)?;
    let mut flips: Vec<Flip> = Vec::with_capacity(contents.flips.len());
    for record in contents.flips {
        let flip = flip(record)?;
        if flips.iter().any(|other| other.flag == flip.flag) {
            return Err(Damage::Twice(flip.flag));
        }
        flips.push(flip);
    }
    Ok((contents.revision, flips))
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

fn flip(record: Record) -> Result<Flip, Damage> {
    let Some(stage) = Stage::parse(&record.stage) else {
        return Err(Damage::Stage(record.stage));
    };
    let Some(percent) = Percent::parse(&record.percent) else {
        return Err(Damage::Percent(record.percent));
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
