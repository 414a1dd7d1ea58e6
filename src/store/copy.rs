//! The last good state of a shared store, copied into the state folder: a process that starts while the store is away
//! begins with it.
//!
//! Laws: a copy is replaced whole, by a copy of what the store has told or taken; the copy of another store is never
//! told; what goes wrong with a copy is logged and changes nothing else.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::store::error::{Damage, StoreError, chain};
use crate::store::folder::Folder;
use crate::store::layout::pretty;
use crate::store::legacy::Header;
use crate::store::record::compact;
use crate::store::state::{HIGHEST_REVISION, Versioned};

const COPY: &str = "rollout.copy.json";
const VERSION: u32 = 1;

/// The folder in which the state of a shared store is copied, where this process may write there.
#[derive(Debug)]
pub struct Copies {
    folder: Option<Folder>,
    /// Which store; nothing of it is secret.
    of: String,
    fares: Fares,
}

/// Whether the last copy could be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fares {
    Well,
    Badly,
}

/// A state that was good once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    /// The state.
    pub state: Versioned,
    /// When it was copied, in RFC 3339.
    pub at: String,
}

/// The form on disk.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CopyFile<'t> {
    version: u32,
    store: String,
    at: String,
    revision: u64,
    #[serde(borrow)]
    state: &'t RawValue,
}

impl Copies {
    /// Takes the folder. Where that fails, for instance because another replica has the same one, this process goes
    /// without copies.
    #[must_use]
    pub fn open(folder: &Path, of: String) -> Copies {
        let taken = Folder::take(folder).and_then(|folder| {
            folder.clean(COPY)?;
            Ok(folder)
        });
        if let Err(error) = &taken {
            let error = chain(error);
            tracing::warn!(error, "no copy of what is changed at run time is kept here");
        }
        Copies {
            folder: taken.ok(),
            of,
            fares: Fares::Well,
        }
    }

    /// Reads the copy while the process of before still has the folder, and takes the folder as soon as it is free.
    #[must_use]
    pub fn await_turn(folder: &Path, of: String) -> Copies {
        Copies {
            folder: Some(Folder::await_turn(folder)),
            of,
            fares: Fares::Well,
        }
    }

    /// Whether a copy can be made, or never will be. Takes the folder if the process of before has left it.
    pub fn acquire(&mut self) -> bool {
        let Some(folder) = &mut self.folder else {
            return true;
        };
        match folder.acquire() {
            Ok(_) => folder.is_owned(),
            Err(error) => {
                let error = chain(&error);
                tracing::warn!(error, "no copy of what is changed at run time is kept here");
                self.folder = None;
                true
            }
        }
    }

    /// Leaves the folder to the process that follows.
    pub fn release(&mut self) {
        self.folder = None;
    }

    /// The copy, if there is one of this store. One that is damaged is set aside.
    #[must_use]
    pub fn read(&self) -> Option<Copied> {
        let folder = self.folder.as_ref()?;
        let text = match folder.read(COPY) {
            Ok(text) => text?,
            Err(error) => {
                tracing::warn!(error = chain(&error), "the copy cannot be read");
                return None;
            }
        };
        match parse(&text) {
            Ok((of, copied)) if of == self.of => Some(copied),
            Ok((of, _)) => {
                tracing::warn!(of, "the copy is of another store, and is not used");
                None
            }
            Err(damage) => {
                let own = Some(folder).filter(|folder| folder.is_owned());
                let aside = own.and_then(|folder| folder.set_aside(COPY).ok());
                let aside = aside.map(|path| path.display().to_string());
                tracing::warn!(error = %damage, aside, "`{COPY}` is damaged and was set aside");
                None
            }
        }
    }

    /// Copies a state. That this fails is said once, until it works again.
    pub fn keep(&mut self, state: &Versioned, at: String) {
        let Some(folder) = self.folder.as_ref().filter(|_| state.revision > 0) else {
            return;
        };
        match write(folder, &self.of, state, at) {
            Ok(()) => self.fares = Fares::Well,
            Err(error) => {
                if self.fares == Fares::Well {
                    let error = chain(&error);
                    tracing::warn!(error, "what was changed could not be copied");
                }
                self.fares = Fares::Badly;
            }
        }
    }
}

fn write(folder: &Folder, of: &str, state: &Versioned, at: String) -> Result<(), StoreError> {
    let not_json = |error: serde_json::Error| StoreError::Damaged {
        path: folder.file(COPY),
        source: error.into(),
    };
    let file = CopyFile {
        version: VERSION,
        store: of.to_owned(),
        at,
        revision: state.revision,
        state: serde_json::from_str(&state.text).map_err(not_json)?,
    };
    let text = serde_json::to_string(&file).map_err(not_json)?;
    folder.replace(COPY, pretty(&text).as_bytes())?;
    folder.flush(COPY)
}

/// Of which store it is, and the copy.
fn parse(text: &[u8]) -> Result<(String, Copied), Damage> {
    let header: Header = serde_json::from_slice(text)?;
    if header.version != VERSION {
        return Err(Damage::Version {
            found: header.version,
            known: VERSION,
        });
    }
    let file: CopyFile<'_> = serde_json::from_slice(text)?;
    if file.revision == 0 || file.revision > HIGHEST_REVISION {
        return Err(Damage::Revision(file.revision));
    }
    let state = Versioned {
        revision: file.revision,
        text: compact(file.state)?,
    };
    let copied = Copied { state, at: file.at };
    Ok((file.store, copied))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::tempdir;

    use super::*;

    const AT: &str = "2026-02-03T04:05:06.000Z";

    fn good(revision: u64) -> Versioned {
        Versioned {
            revision,
            text: format!(r#"{{"flags":{{}},"n":{revision}.0}}"#),
        }
    }

    #[test]
    fn the_last_copy_is_found_by_the_next_process_with_the_same_store() {
        let folder = tempdir().unwrap();
        let mut copies = Copies::open(folder.path(), "here".to_owned());
        assert_eq!(copies.read(), None);
        copies.keep(&Versioned::default(), AT.to_owned());
        assert_eq!(copies.read(), None);
        copies.keep(&good(1), AT.to_owned());
        copies.keep(&good(2), AT.to_owned());
        let expected = Copied {
            state: good(2),
            at: AT.to_owned(),
        };
        assert_eq!(copies.read(), Some(expected.clone()));
        // A folder has one owner; whoever comes second goes without.
        let mut second = Copies::open(folder.path(), "here".to_owned());
        second.keep(&good(7), AT.to_owned());
        assert_eq!(second.read(), None);
        drop(copies);
        let next = Copies::open(folder.path(), "here".to_owned());
        assert_eq!(next.read(), Some(expected));
        drop(next);
        let elsewhere = Copies::open(folder.path(), "elsewhere".to_owned());
        assert_eq!(elsewhere.read(), None);
    }

    #[test]
    fn a_damaged_copy_is_set_aside_and_the_next_one_takes_its_place() {
        let folder = tempdir().unwrap();
        fs::write(folder.path().join(COPY), r#"{"version":1,"#).unwrap();
        let mut copies = Copies::open(folder.path(), "here".to_owned());
        assert_eq!(copies.read(), None);
        assert!(folder.path().join(format!("{COPY}.damaged-1")).exists());
        copies.keep(&good(1), AT.to_owned());
        assert_eq!(copies.read().unwrap().state, good(1));
    }
}
