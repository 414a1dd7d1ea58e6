//! `import --refresh`: the changes of documents, merged into an edited route file.
//!
//! The draft that a file was made from is kept beside it, as `FILE.draft`. The difference between that draft and the new
//! one is applied to the file; what people edited stays.
//!
//! ```text
//! pieces    a TOML text as headers and entries, byte for byte
//! blocks    routes, local replies and tables, found again in another version
//! units     the parts of a block, by key, in any spelling
//! edits     changes of the pieces of a block
//! spelling  drafted tables that an edited file writes without headers
//! comments  comments of three versions
//! lines     the line ends of a file
//! merge     the three-way merge
//! ```
//!
//! Used by `import`.

mod blocks;
mod comments;
mod edits;
mod lines;
mod merge;
mod pieces;
mod spelling;
mod units;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::limits::LARGEST;
use merge::RefreshReport;

/// The reason why a file cannot be refreshed.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum RefreshFault {
    /// The draft of the file is not there.
    #[error(
        "`{draft}` does not exist; `--refresh` compares with the draft that `{table}` was made from. Make it once from the documents \
         of that time, with `dualgauge import … --output FILE`, and move `FILE.draft` there"
    )]
    NoDraft {
        /// The table.
        table: PathBuf,
        /// Its draft.
        draft: PathBuf,
    },
    /// A file cannot be read.
    #[error("`{path}` cannot be read")]
    Read {
        /// The path.
        path: PathBuf,
        /// The system error.
        source: io::Error,
    },
    /// A file is too large.
    #[error("`{0}` is larger than {mib} MiB", mib = LARGEST / 1024 / 1024)]
    TooLarge(PathBuf),
    /// A file is not TOML.
    #[error("`{path}` is not TOML; nothing was written")]
    Toml {
        /// The path.
        path: PathBuf,
        /// The fault.
        source: toml::de::Error,
    },
    /// The merged text is not TOML.
    #[error(
        "`{path}` is not TOML with the changes of the documents merged into it; nothing was written. Draft into another file with \
         `--output`, and copy the changes"
    )]
    Merged {
        /// The table.
        path: PathBuf,
        /// The fault of the merged text.
        source: toml::de::Error,
    },
    /// A file cannot be written.
    #[error("`{path}` cannot be written")]
    Write {
        /// The path.
        path: PathBuf,
        /// The system error.
        source: io::Error,
    },
}

/// A refreshed table.
#[derive(Debug)]
pub(super) struct Refreshed {
    report: RefreshReport,
}

/// Returns the path of the draft of a table.
pub(super) fn draft_of(table: &Path) -> PathBuf {
    let mut name = table.as_os_str().to_owned();
    name.push(".draft");
    PathBuf::from(name)
}

/// Merges the changes between the kept draft and a new one into a table, and keeps the new draft.
///
/// # Errors
/// [`RefreshFault`]; the table is then unchanged.
pub(super) fn refresh(table: &Path, new: &str) -> Result<Refreshed, RefreshFault> {
    let draft = draft_of(table);
    let edited = read(table)?;
    if !draft.exists() {
        return Err(RefreshFault::NoDraft {
            table: table.to_path_buf(),
            draft,
        });
    }
    let base = read(&draft)?;
    for (path, text) in [(table, &edited), (&*draft, &base)] {
        check(text).map_err(|source| RefreshFault::Toml {
            path: path.to_path_buf(),
            source,
        })?;
    }
    let (text, report) = merge::merge(&base, &edited, new);
    check(&text).map_err(|source| RefreshFault::Merged {
        path: table.to_path_buf(),
        source,
    })?;
    if text != edited {
        replace(table, &text)?;
    }
    if base != new {
        replace(&draft, new)?;
    }
    Ok(Refreshed { report })
}

impl Refreshed {
    /// Returns true when people have to decide.
    pub(super) fn has_conflicts(&self) -> bool {
        !self.report.conflicts.is_empty()
    }

    /// Returns the summary, as text.
    pub(super) fn summary(&self) -> String {
        let report = &self.report;
        let mut text = format!(
            "refreshed: {} changed, {} added, {} removed, {} in conflict\n",
            report.changed,
            report.added,
            report.removed,
            report.conflicts.len()
        );
        for conflict in &report.conflicts {
            text.push_str(&format!("  conflict: {conflict}\n"));
        }
        for deleted in &report.deleted {
            let line = format!(
                "  {deleted} is not in the table; the documents changed it, and it stays out\n"
            );
            text.push_str(&line);
        }
        text
    }
}

fn read(path: &Path) -> Result<String, RefreshFault> {
    let unread = |source| RefreshFault::Read {
        path: path.to_path_buf(),
        source,
    };
    let length = fs::metadata(path).map_err(unread)?.len();
    if length > LARGEST as u64 {
        return Err(RefreshFault::TooLarge(path.to_path_buf()));
    }
    fs::read_to_string(path).map_err(unread)
}

fn check(text: &str) -> Result<(), toml::de::Error> {
    text.parse::<toml::Table>().map(drop)
}

/// Replaces a file as a whole, so that a reader never sees a part of it. A link stays a link.
pub(super) fn replace(path: &Path, text: &str) -> Result<(), RefreshFault> {
    let unwritten = |source| RefreshFault::Write {
        path: path.to_path_buf(),
        source,
    };
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let mut name = target.as_os_str().to_owned();
    name.push(".new");
    let temporary = PathBuf::from(name);
    let write = || {
        let mut file = fs::File::create(&temporary)?;
        if let Ok(known) = fs::metadata(&target) {
            file.set_permissions(known.permissions())?;
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&temporary, &target)
    };
    write().map_err(unwritten)
}
