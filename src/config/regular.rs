//! Reading of configuration files: regular files only, up to a size limit.
//!
//! Opening a FIFO without a writer would block forever, and a device may have no end. A file on a hung mount still
//! blocks its reader, so work that must continue reads on another thread.
//!
//! Used by `app`, `config` and `store`.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::config::progress;

/// Maximum size of a configuration file or a schema, in bytes.
pub const LONGEST: u64 = 64 * 1024 * 1024;
/// Maximum size of a file of the state folder, in bytes.
pub const LONGEST_STATE: u64 = 256 * 1024 * 1024;

/// `O_NONBLOCK`, by its number on this system.
#[cfg(target_os = "linux")]
const NONBLOCK: i32 = 0o4000;
#[cfg(not(target_os = "linux"))]
const NONBLOCK: i32 = 4;

/// Reads a regular file; follows symbolic links.
///
/// # Errors
/// System errors, and [`io::ErrorKind::InvalidInput`] for other kinds of files, or files longer than `limit`.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    progress::note(path);
    let mut options = OpenOptions::new();
    // Without this flag, opening a FIFO blocks until it has a writer.
    let file = options.read(true).custom_flags(NONBLOCK).open(path)?;
    let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidInput, what);
    let found = file.metadata()?;
    // Reading a folder fails with a clear system error.
    if !found.is_file() && !found.is_dir() {
        return Err(invalid("it is not a regular file".to_owned()));
    }
    let mut content = Vec::new();
    // The length may change during reading, and files such as those of procfs report none.
    file.take(limit.saturating_add(1))
        .read_to_end(&mut content)?;
    if content.len() as u64 > limit {
        return Err(invalid(format!("it is longer than {limit} bytes")));
    }
    Ok(content)
}

/// Reads a regular text file.
///
/// # Errors
/// Those of [`read`], and [`io::ErrorKind::InvalidData`] for invalid UTF-8.
pub fn read_text(path: &Path, limit: u64) -> io::Result<String> {
    let content = read(path, limit)?;
    String::from_utf8(content).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regular_files_are_read_up_to_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("a"), folder.path().join("b"));
        std::fs::write(&file, "text").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(read(&file, 4).unwrap(), b"text");
        assert_eq!(read_text(&link, 4).unwrap(), "text");
        let long = read(&file, 3).unwrap_err();
        assert_eq!(long.to_string(), "it is longer than 3 bytes");
        let missing = read(&folder.path().join("c"), 4).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn neither_a_fifo_nor_a_device_nor_a_folder_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status();
        assert!(made.unwrap().success());
        for path in [&*fifo, Path::new("/dev/zero")] {
            let refused = read(path, LONGEST).unwrap_err();
            assert_eq!(refused.to_string(), "it is not a regular file", "{path:?}");
        }
        let refused = read(folder.path(), LONGEST).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::IsADirectory);
    }
}
