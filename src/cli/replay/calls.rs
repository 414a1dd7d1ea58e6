//! The calls of a file as `replay` takes them. Used by `input`, `prepare`, `driver` and `cli::har`.

use dualgauge_recording::recording::RecordedCall;

/// A call, and its place in the file.
#[derive(Debug)]
pub(in crate::cli) struct FileCall {
    /// The number of its line, or of its entry in a HAR file, from 1.
    pub(super) number: u64,
    pub(in crate::cli) call: RecordedCall,
    pub(super) kind: FileKind,
}

/// The kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum FileKind {
    /// A recording of dualgauge, or a HAR file made from one, with the headers that were allowed.
    Recording,
    /// A HAR file of another program, with all headers.
    Har,
}

/// The next part of a file.
#[derive(Debug)]
pub(in crate::cli) enum FilePart {
    Call(Box<FileCall>),
    /// A line or an entry that is no call, and why.
    NoCall(u64, String),
    /// The file cannot be read further from this line on, and why.
    End(u64, String),
}
