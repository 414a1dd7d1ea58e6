//! The files of recordings: created with mode 0600, rotated by size, and deleted beyond a number. Used by
//! `recorder::thread`.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use dualgauge_recording::recording::{RecordedTime, header_line};

use crate::telemetry::clock;
use dualgauge_model::record::RecordLimits;

/// The start and the end of the names of recordings. Other files of the folder are never deleted.
const PREFIX: &str = "recording-";
const SUFFIX: &str = ".jsonl";

/// The maximum number of further names that are tried if a file exists.
const MAX_SAME_TIME: u64 = 100;

/// The program in the header of a file.
const PROGRAM: &str = concat!("dualgauge ", env!("CARGO_PKG_VERSION"));

/// The files of one recording.
#[derive(Debug)]
pub(super) struct RecordingFiles {
    directory: PathBuf,
    limits: RecordLimits,
    file: File,
    name: String,
    /// The number of files begun.
    pub(super) begun: u64,
    /// The bytes in the current file.
    length: u64,
    has_calls: bool,
    /// The bytes of all files.
    pub(super) written: u64,
}

impl RecordingFiles {
    /// Creates the folder if it is missing, and the first file.
    pub(super) fn create(directory: &Path, limits: RecordLimits) -> io::Result<RecordingFiles> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)?;
        let (file, name, length) = open(directory, 1)?;
        let files = RecordingFiles {
            directory: directory.to_owned(),
            limits,
            file,
            name,
            begun: 1,
            length,
            has_calls: false,
            written: length,
        };
        files.delete_oldest()?;
        Ok(files)
    }

    /// Returns the name of the current file.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of bytes that fit into the current file; the first line of a file may be longer.
    pub(super) fn left(&self) -> u64 {
        self.limits.file_size.saturating_sub(self.length)
    }

    /// Returns true if the current file has more than its header.
    pub(super) fn has_calls(&self) -> bool {
        self.has_calls
    }

    /// Writes whole lines. After an error the file ends with the last line before them.
    pub(super) fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        if let Err(error) = self.file.write_all(lines) {
            // A file that cannot be cut either has a truncated line at its end, which readers report.
            let _ = self.file.set_len(self.length);
            return Err(error);
        }
        self.has_calls = true;
        self.length += lines.len() as u64;
        self.written += lines.len() as u64;
        Ok(())
    }

    /// Begins the next file, and deletes the oldest ones beyond the number that is kept.
    pub(super) fn rotate(&mut self) -> io::Result<()> {
        let (file, name, length) = open(&self.directory, self.begun + 1)?;
        (self.file, self.name, self.length) = (file, name, length);
        self.has_calls = false;
        self.begun += 1;
        self.written += length;
        self.delete_oldest()
    }

    /// Deletes the oldest recordings. A file that is locked stays: during a hot restart the other process still writes to
    /// it.
    fn delete_oldest(&self) -> io::Result<()> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            let name = entry.file_name();
            let is_recording = name
                .to_str()
                .is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX));
            // A clock that steps back makes the name of the current file the first.
            let is_recording = is_recording && name != *self.name;
            if is_recording && entry.file_type()?.is_file() {
                names.push(name);
            }
        }
        // Names begin with the time, so this is the order of creation.
        names.sort_unstable();
        let excess = (names.len() + 1).saturating_sub(self.limits.files);
        for name in names.iter().take(excess) {
            let path = self.directory.join(name);
            if is_locked(&path) {
                continue;
            }
            match fs::remove_file(path) {
                // Another process may have deleted it.
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }
}

/// Returns true if a process writes to a recording.
fn is_locked(path: &Path) -> bool {
    let file = File::open(path);
    file.is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
}

/// Creates a file with its header line; returns its name and its length too. Recordings of the same millisecond get
/// different numbers.
fn open(directory: &Path, number: u64) -> io::Result<(File, String, u64)> {
    let last = number.saturating_add(MAX_SAME_TIME);
    let mut number = number;
    loop {
        match open_new(directory, number) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < last => {
                number += 1;
            }
            opened => return opened,
        }
    }
}

fn open_new(directory: &Path, number: u64) -> io::Result<(File, String, u64)> {
    let now = clock::wall();
    let time = clock::Rfc3339(now).to_string().replace(['-', ':'], "");
    let process = std::process::id();
    let name = format!("{PREFIX}{time}-{process}-{number:04}{SUFFIX}");
    // A new file, so that no link leads elsewhere and no one has it open.
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(directory.join(&name))?;
    // Tells other processes that this one writes to it. Some file systems have no locks: there, it may be deleted.
    let _ = file.try_lock();
    let milliseconds = i64::try_from(clock::millis(now)).unwrap_or(i64::MAX);
    let header = header_line(RecordedTime::from_unix_ms(milliseconds), PROGRAM);
    file.write_all(&header)?;
    Ok((file, name, header.len() as u64))
}
