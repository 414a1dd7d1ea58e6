//! Comparison of the candidate's response with the control's response to the same call.
//!
//! Both responses are normalised and walked side by side; a JSON pointer names each place where they differ. Laws: a
//! response does not differ from itself; white space, member order and spelling make no difference; swapping control
//! and candidate swaps only `missing` and `extra`; an ignored path hides everything in it; the cost grows like that of
//! sorting, and the stored differences are bounded.
//!
//! Used in most modules.

mod canonical_key;
mod comparison;
mod control_repeat;
mod decimal;
mod diff;
mod failed;
mod mismatches;
mod noise;
mod parts;
mod path;
mod pointer;
mod redacted;
mod replies;
mod response;
mod rules;
mod stream;
mod tally;
mod verdict;

#[cfg(test)]
mod tests;

pub use comparison::{Comparison, DIFFERENCES, Difference, Kind, Terms};
pub use control_repeat::{Confidence, ControlRepeats, RepeatOutcome};
pub use failed::{FailedCandidate, RunEnding};
pub use mismatches::{
    CallInfo, Failed, Field, ForgottenDifference, MismatchDetail, MismatchSample, Mismatches,
};
pub use noise::{Judgement, Noise, NoiseCounts};
pub use parts::compare;
pub use path::{PLACES, Path, PathError, Token};
pub use redacted::{RedactedValue, Salt};
pub use replies::{ReplyPair, ReplyPairs, ReplySketch, Translated};
pub use response::ComparedResponse;
pub use rules::{RuleSource, Rules, Show, Tolerance};
pub use stream::{EventCounter, STREAM_BYTES, STREAM_EVENTS, StreamBound, StreamPair, StreamPart};
pub use tally::Tally;
pub use verdict::{Run, Skip, Verdict};
