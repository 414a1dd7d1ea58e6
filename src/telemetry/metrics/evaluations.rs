//! Counts of evaluations of flags for applications (OFREP). Used by `app::control` and `metrics::render`.

use std::collections::BTreeMap;

/// The kind of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EvaluationRequest {
    /// The value of one flag.
    One,
    /// The values of all flags.
    All,
}

impl EvaluationRequest {
    /// Returns the word used in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            EvaluationRequest::One => "one",
            EvaluationRequest::All => "all",
        }
    }
}

/// The result of an evaluation: the reason for the value, or the error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "they are the words of OpenFeature")]
pub enum EvaluatedAs {
    Static,
    Default,
    TargetingMatch,
    Split,
    Disabled,
    /// All flags, whose reasons differ.
    All,
    ParseError,
    InvalidContext,
    TargetingKeyMissing,
    FlagNotFound,
}

impl EvaluatedAs {
    /// Returns the word used in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            EvaluatedAs::Static => "static",
            EvaluatedAs::Default => "default",
            EvaluatedAs::TargetingMatch => "targeting_match",
            EvaluatedAs::Split => "split",
            EvaluatedAs::Disabled => "disabled",
            EvaluatedAs::All => "evaluated",
            EvaluatedAs::ParseError => "parse_error",
            EvaluatedAs::InvalidContext => "invalid_context",
            EvaluatedAs::TargetingKeyMissing => "targeting_key_missing",
            EvaluatedAs::FlagNotFound => "flag_not_found",
        }
    }
}

/// The counts of evaluations since the start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EvaluationCounts(BTreeMap<(EvaluationRequest, EvaluatedAs), u64>);

impl EvaluationCounts {
    /// Counts an evaluation.
    pub fn add(&mut self, request: EvaluationRequest, result: EvaluatedAs) {
        *self.0.entry((request, result)).or_default() += 1;
    }

    /// Returns the labels and the counts.
    pub(super) fn rows(&self) -> impl Iterator<Item = ([&'static str; 2], u64)> {
        let rows = self.0.iter();
        rows.map(|((request, result), count)| ([request.as_str(), result.as_str()], *count))
    }
}
