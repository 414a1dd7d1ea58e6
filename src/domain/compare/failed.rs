//! Candidates that failed where the control succeeded: the responses of both, and why.

use std::fmt;

use super::CallInfo;

/// Characters of a cause that a sample keeps.
const CAUSE: usize = 300;

/// A response in a few words, without its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RunEnding {
    /// The HTTP status of a response to a REST call.
    Status(u16),
    /// A result of JSON-RPC.
    Result,
    /// An error of JSON-RPC, by its code.
    Error(i64),
    /// A response with this HTTP status to an RPC call, without a response of JSON-RPC 2.0 in it.
    NoResponse(u16),
    /// The responses were not read, because comparing them panicked.
    NotRead,
}

/// A sample of a failed candidate.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FailedCandidate {
    /// The call.
    pub called: CallInfo,
    /// The response that the client got.
    pub control: RunEnding,
    /// The response that the client would have got.
    pub candidate: RunEnding,
    /// The label of the proxy's own failure, if it is one.
    pub reason: Option<&'static str>,
    /// The cause as the log tells it, without secrets.
    cause: Option<String>,
}

impl FailedCandidate {
    /// Returns a sample. The cause is cut after some characters.
    #[must_use]
    pub fn new(
        called: CallInfo,
        (control, candidate): (RunEnding, RunEnding),
        reason: Option<&'static str>,
        cause: Option<&str>,
    ) -> FailedCandidate {
        FailedCandidate {
            called,
            control,
            candidate,
            reason,
            cause: cause.map(|cause| cause.chars().take(CAUSE).collect()),
        }
    }

    /// Returns the cause, if one is known.
    #[must_use]
    pub fn cause(&self) -> Option<&str> {
        self.cause.as_deref()
    }
}

impl fmt::Display for RunEnding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunEnding::Status(status) => write!(f, "status {status}"),
            RunEnding::Result => f.write_str("result"),
            RunEnding::Error(code) => write!(f, "error {code}"),
            RunEnding::NoResponse(status) => {
                write!(f, "status {status} without a response of JSON-RPC 2.0")
            }
            RunEnding::NotRead => f.write_str("not read"),
        }
    }
}
