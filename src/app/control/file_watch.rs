//! Detection of changed files.
//!
//! Contents are compared, not times: this handles editors that rename, volumes that swap a symbolic link, and clock
//! changes. The files are small, so reading them is cheap. A change counts once two checks in a row have seen the same
//! contents, so that a file is not read while it is being written.
//!
//! Used by `control::reading` and `control::task`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::config::problem::{Problems, SourceLocation};
use crate::config::raw::RawConfig;
use crate::config::{Digest, Digests, progress, regular};

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileChange {
    /// The files are unchanged since they were read.
    Quiet,
    /// The files have changed since the last check.
    Settling,
    /// The files have changed and settled, and must be read.
    Due,
}

/// The digests of files' contents and of folders' names; `None` if unreadable.
pub(super) type FileContents = BTreeMap<PathBuf, Option<Digest>>;

#[derive(Debug, Default)]
pub(super) struct FileWatch {
    /// The contents when the files were last read.
    read: FileContents,
    /// The contents at the last check.
    seen: FileContents,
}

impl FileWatch {
    /// Starts with the contents at the time when `config` was read, if `digests` covers everything that is checked;
    /// otherwise with nothing.
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

    /// Compares the present contents of everything that [`paths`] returns.
    ///
    /// After a start with nothing, and after files were added, the first checks find more than was known when the files
    /// were read. That counts as a change; the reload then finds nothing new.
    pub(super) fn look(&mut self, now: FileContents, refused: Option<&Problems>) -> FileChange {
        let at_rest = now == self.seen;
        self.seen = now;
        if !at_rest {
            return FileChange::Settling;
        }
        // A problem may come from a file that is not known here, such as an `include` that does not exist yet. Hence
        // the files are read at each check as long as there are problems.
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

/// Returns all paths to check: the files that were read for `config`, and those that `refused` names.
pub(super) fn paths<'p>(
    config: &'p RawConfig,
    refused: Option<&'p Problems>,
) -> impl Iterator<Item = &'p Path> {
    let files = config.files.iter().map(PathBuf::as_path);
    // The first file is the main one. The others are included, and their folders are checked for added files.
    let folders = config.files.iter().skip(1).filter_map(|file| file.parent());
    let flags = config.rollout.flags.iter();
    let named = refused.into_iter().flatten();
    let named = named.filter_map(|problem| match &problem.place {
        SourceLocation::File { path, .. } => Some(path.as_path()),
        SourceLocation::Default
        | SourceLocation::Variable(_)
        | SourceLocation::Argument(_)
        | SourceLocation::Flip(_)
        | SourceLocation::Source(_) => None,
    });
    let flags = flags.map(|file| file.value.as_path());
    files.chain(folders).chain(flags).chain(named)
}

fn digest(path: &Path) -> Option<Digest> {
    // A bare file name has the empty path as its parent, which the operating system rejects.
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
    // A file name never contains a zero byte.
    Some(names.join(&0))
}
