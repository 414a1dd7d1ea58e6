//! Whether the files are what they were.
//!
//! Their contents are compared, not their times: editors that rename, volumes that swap a symbolic link and clocks
//! that jump all come out right. They are small, so reading them costs less than being wrong. A change counts once
//! two looks in a row have seen the same, so that a file is not read while somebody writes it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::config::problem::{Problems, SourceLocation};
use crate::config::raw::RawConfig;
use crate::config::{Digest, Digests, progress, regular};

/// What a look at the files has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileChange {
    /// They are what they were when they were read.
    Quiet,
    /// They have changed since the last look.
    Settling,
    /// They have changed and come to rest: read them.
    Due,
}

/// The contents of files and the names in folders, each as a digest; nothing for what cannot be read.
pub(super) type FileContents = BTreeMap<PathBuf, Option<Digest>>;

#[derive(Debug, Default)]
pub(super) struct FileWatch {
    /// What was there when the files were last read.
    read: FileContents,
    /// What was there at the last look.
    seen: FileContents,
}

impl FileWatch {
    /// Knows what was there when `config` was read, where that was noted of everything that is looked at. Else it begins
    /// with nothing.
    pub(super) fn begun(config: &RawConfig, digests: Digests) -> FileWatch {
        let digests = digests.into_iter();
        let read: FileContents = digests.map(|(path, seen)| (path, Some(seen))).collect();
        match paths(config, None).all(|path| read.contains_key(path)) {
            true => FileWatch {
                seen: read.clone(),
                read,
            },
            false => FileWatch::default(),
        }
    }

    /// Takes the present contents of all that [`paths`] names.
    ///
    /// Where it began with nothing, and after files were added, the first looks find more than was there when the files were read.
    /// That is a change like any other; reading them again then shows that nothing is new.
    pub(super) fn look(&mut self, now: FileContents, refused: Option<&Problems>) -> FileChange {
        let at_rest = now == self.seen;
        self.seen = now;
        if !at_rest {
            return FileChange::Settling;
        }
        // A problem may lie in a file that is not known here, such as one that an `include` does not find yet: as long
        // as there are problems the files are read at each look.
        if self.seen == self.read && refused.is_none() {
            return FileChange::Quiet;
        }
        self.read.clone_from(&self.seen);
        FileChange::Due
    }
}

/// Reads files and folders.
pub(super) fn contents(paths: Vec<PathBuf>) -> FileContents {
    let digests = paths.into_iter().map(|path| {
        let digest = digest(&path);
        (path, digest)
    });
    digests.collect()
}

/// Everything that is looked at: the files that were read for `config`, and those that `refused` names.
pub(super) fn paths<'p>(
    config: &'p RawConfig,
    refused: Option<&'p Problems>,
) -> impl Iterator<Item = &'p Path> {
    let files = config.files.iter().map(PathBuf::as_path);
    // The first is the main file; the others are included, and so will be what is laid beside them.
    let folders = config.files.iter().skip(1).filter_map(|file| file.parent());
    let flags = config.rollout.flags.iter();
    let named = refused.into_iter().flatten();
    let named = named.filter_map(|problem| match &problem.place {
        SourceLocation::File { path, .. } => Some(path.as_path()),
        SourceLocation::Default
        | SourceLocation::Variable(_)
        | SourceLocation::Argument(_)
        | SourceLocation::Flip(_) => None,
    });
    let flags = flags.map(|file| file.value.as_path());
    files.chain(folders).chain(flags).chain(named)
}

fn digest(path: &Path) -> Option<Digest> {
    // A bare file name has the empty folder as its parent, which the system does not know.
    let path = if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    };
    progress::note(path);
    let bytes = if path.is_dir() {
        names(path)?
    } else {
        regular::read(path, regular::LONGEST).ok()?
    };
    Some(Digest::from_bytes(&bytes))
}

fn names(folder: &Path) -> Option<Vec<u8>> {
    let mut names: Vec<Vec<u8>> = fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.file_name().into_encoded_bytes()))
        .collect();
    names.sort();
    // No name has a zero byte in it.
    Some(names.join(&0))
}
