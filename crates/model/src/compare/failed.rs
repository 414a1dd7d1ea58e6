//! Candidates that failed while the control succeeded: both responses and the cause.

use std::fmt;

use super::mismatches::CallInfo;

/// The maximum number of characters of a cause in a sample.
const CAUSE: usize = 300;

/// The summary of a response, without its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RunEnding {
    /// A response to a REST call with this HTTP status.
    Status(u16),
    /// A JSON-RPC result.
    Result,
    /// A JSON-RPC error with this code.
    Error(i64),
    /// A response to an RPC call with this HTTP status that contains no JSON-RPC 2.0 response.
    NoResponse(u16),
    /// The responses were not read, because the comparison panicked.
    NotRead,
}

/// A sample of a failed candidate.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FailedCandidate {
    /// The call.
    pub called: CallInfo,
    /// The response that the client got.
    pub control: RunEnding,
    /// The response that the candidate got.
    pub candidate: RunEnding,
    /// The label of the proxy's own failure, if it is one.
    pub reason: Option<&'static str>,
    /// The cause as logged, without secrets.
    cause: Option<String>,
}

impl FailedCandidate {
    /// Creates a sample. A long cause is truncated.
    #[must_use]
    pub fn new(
        called: CallInfo,
        control: RunEnding,
        candidate: RunEnding,
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

    /// Returns the cause, if known.
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
                write!(f, "status {status} without a JSON-RPC 2.0 response")
            }
            RunEnding::NotRead => f.write_str("not read"),
        }
    }
}
