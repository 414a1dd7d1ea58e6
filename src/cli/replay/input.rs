//! The file of `replay`: a recording, read in chunks, or a HAR file, read as a whole. Used by `replay`, `driver` and `cli::har`.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use super::calls::{FileCall, FileKind, FilePart};
use super::fault::ReplayFault;
use dualgauge_recording::har::{self, EntryFault, HarCall, MAX_FILE};
use dualgauge_recording::recording::{ReadError, Reader, Unread};

/// The bytes of a recording that are read at a time.
const CHUNK: usize = 64 * 1024;

/// A file of recorded calls.
#[derive(Debug)]
pub(in crate::cli) struct Input {
    path: PathBuf,
    /// The size of the file, and the bytes that were read.
    size: u64,
    read: u64,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Recording(RecordingFile),
    Har {
        entries: VecDeque<(u64, Result<HarCall, EntryFault>)>,
        count: u64,
    },
}

#[derive(Debug)]
struct RecordingFile {
    file: File,
    reader: Box<Reader>,
    has_ended: bool,
    /// True once a call was read: from then on a fault ends the file, and does not refuse it.
    has_call: bool,
}

impl Input {
    /// Opens a file, and finds out its kind.
    pub(in crate::cli) fn open(path: &Path) -> Result<Input, ReplayFault> {
        let read = |source| ReplayFault::Read {
            path: path.to_owned(),
            source,
        };
        let mut file = File::open(path).map_err(read)?;
        let size = file.metadata().map_err(read)?.len();
        let mut start = vec![0; CHUNK];
        let length = read_fully(&mut file, &mut start).map_err(read)?;
        start.truncate(length);
        let mut input = Input {
            path: path.to_owned(),
            size,
            read: length as u64,
            source: Source::Har {
                entries: VecDeque::new(),
                count: 0,
            },
        };
        match kind(&start) {
            Kind::Har => input.source = har_file(path, file, start)?,
            Kind::Recording => {
                let mut reader = Box::new(Reader::new());
                reader.push(&start);
                input.source = Source::Recording(RecordingFile {
                    file,
                    reader,
                    has_ended: length < CHUNK,
                    has_call: false,
                });
            }
            Kind::Other(what) => {
                let path = path.to_owned();
                return Err(ReplayFault::Foreign { path, what });
            }
        }
        Ok(input)
    }

    /// Returns the name of the parts that are counted.
    pub(in crate::cli) const fn unit(&self) -> &'static str {
        match self.source {
            Source::Har { .. } => "entry",
            Source::Recording(_) => "line",
        }
    }

    /// Returns the next part; `None` at the end.
    ///
    /// # Errors
    /// [`ReplayFault`] if the file cannot be used at all.
    pub(in crate::cli) fn next(&mut self) -> Result<Option<FilePart>, ReplayFault> {
        match &mut self.source {
            Source::Har { entries, .. } => Ok(entries.pop_front().map(har_part)),
            Source::Recording(recording) => {
                let next = recording.next(&mut self.read);
                next.map_err(|fault| fault.for_file(&self.path))
            }
        }
    }

    /// Returns the read share of the file, in percent; `None` for a pipe.
    pub(super) fn percent(&self) -> Option<u64> {
        let (read, of) = match &self.source {
            Source::Har { entries, count } => (count - entries.len() as u64, *count),
            Source::Recording(recording) => {
                let unread = recording.reader.unread() as u64;
                (self.read - unread, self.size)
            }
        };
        Some((read * 100).checked_div(of)?.min(100))
    }
}

/// A fault of a recording.
enum RecordingFault {
    Read(io::Error),
    Unusable(ReadError),
}

impl RecordingFault {
    fn for_file(self, path: &Path) -> ReplayFault {
        let path = path.to_owned();
        match self {
            RecordingFault::Read(source) => ReplayFault::Read { path, source },
            RecordingFault::Unusable(source) => ReplayFault::Recording { path, source },
        }
    }
}

impl RecordingFile {
    fn next(&mut self, read: &mut u64) -> Result<Option<FilePart>, RecordingFault> {
        loop {
            match self.reader.next_call() {
                Ok(Some(call)) => {
                    self.has_call = true;
                    return Ok(Some(FilePart::Call(Box::new(FileCall {
                        number: self.reader.line(),
                        call,
                        kind: FileKind::Recording,
                    }))));
                }
                Ok(None) if self.has_ended => {
                    let finished = self.reader.finish();
                    return finished.map_or_else(|fault| self.part(fault), |()| Ok(None));
                }
                Ok(None) => {
                    let mut chunk = vec![0; CHUNK];
                    let length = read_fully(&mut self.file, &mut chunk);
                    let length = length.map_err(RecordingFault::Read)?;
                    chunk.truncate(length);
                    *read += length as u64;
                    self.has_ended = length < CHUNK;
                    self.reader.push(&chunk);
                }
                Err(fault) => return self.part(fault),
            }
        }
    }

    /// Returns the part that a fault stands for; fails if no call can be read.
    fn part(&self, fault: ReadError) -> Result<Option<FilePart>, RecordingFault> {
        let why = fault.unread.to_string();
        match fault.unread {
            Unread::Invalid(_) => Ok(Some(FilePart::NoCall(fault.line, why))),
            Unread::Truncated | Unread::TooLong | Unread::Newer { .. } if self.has_call => {
                Ok(Some(FilePart::End(fault.line, why)))
            }
            Unread::Truncated
            | Unread::TooLong
            | Unread::Newer { .. }
            | Unread::Empty
            | Unread::Foreign(_) => Err(RecordingFault::Unusable(fault)),
        }
    }
}

fn har_part((number, entry): (u64, Result<HarCall, EntryFault>)) -> FilePart {
    match entry {
        Ok(found) => FilePart::Call(Box::new(FileCall {
            number,
            kind: match found.has_all_headers {
                true => FileKind::Har,
                false => FileKind::Recording,
            },
            call: found.call,
        })),
        Err(fault) => FilePart::NoCall(number, fault.to_string()),
    }
}

fn har_file(path: &Path, file: File, mut text: Vec<u8>) -> Result<Source, ReplayFault> {
    // One byte more than allowed, so that a longer file is noticed.
    let rest = file.take((MAX_FILE + 1 - text.len()) as u64);
    let read = { rest }.read_to_end(&mut text);
    read.map_err(|source| ReplayFault::Read {
        path: path.to_owned(),
        source,
    })?;
    let entries = har::read(&text).map_err(|source| ReplayFault::Har {
        path: path.to_owned(),
        source,
    })?;
    let entries: VecDeque<_> = (1..).zip(entries).collect();
    Ok(Source::Har {
        count: entries.len() as u64,
        entries,
    })
}

/// Fills a buffer as far as the file has bytes.
fn read_fully(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match file.read(&mut buffer[length..]) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Recording,
    Har,
    /// The apparent kind of the file.
    Other(&'static str),
}

/// Returns the kind of the file that begins with these bytes.
fn kind(start: &[u8]) -> Kind {
    let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
    let text = text.trim_ascii_start();
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let has = |part: &[u8]| line.windows(part.len()).any(|found| found == part);
    match text.first() {
        None => Kind::Recording,
        _ if start.starts_with(&[0x1f, 0x8b]) => {
            Kind::Other("it is compressed with gzip; decompress it first")
        }
        // Only a recording has a whole JSON object in its first line, with its format.
        Some(b'{') if has(b"\"format\"") && !has(b"\"log\"") => Kind::Recording,
        Some(b'{') => Kind::Har,
        Some(_) => Kind::Other("it does not begin with a JSON object"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_a_file_is_told_by_its_content() {
        for (start, expected) in [
            (
                "{\"format\":\"dualgauge-recording\",\"version\":1}\n",
                Kind::Recording,
            ),
            ("", Kind::Recording),
            ("{\"log\":{\"entries\":[]}}", Kind::Har),
            ("\u{feff} {\n \"log\" :", Kind::Har),
            ("{\"openapi\":\"3.1.0\"}", Kind::Har),
        ] {
            assert_eq!(kind(start.as_bytes()), expected, "{start}");
        }
        assert!(matches!(kind(b"127.0.0.1 - -"), Kind::Other(_)));
        let Kind::Other(gzip) = kind(&[0x1f, 0x8b, 8]) else {
            panic!("not gzip");
        };
        assert!(gzip.contains("decompress"));
    }
}
