//! What a comparison comes to, and why there was none.

/// What the candidate of a call came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verdict {
    /// Nothing differs that counts.
    Match,
    /// Something does.
    Mismatch,
    /// The control got no answer, the candidate did.
    ControlFailed,
    /// The candidate got no answer, the control did.
    CandidateFailed,
    /// Neither got one.
    BothFailed,
    /// There was nothing to compare.
    Skipped(Skip),
}

/// How a control or a candidate ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Run {
    /// With an answer of the upstream, whatever it says.
    Answered,
    /// Without one: not sent, timed out, cut, not readable.
    Failed,
}

impl Verdict {
    /// Every word of a verdict.
    pub const WORDS: [&'static str; 6] = [
        "match",
        "mismatch",
        "control-failed",
        "candidate-failed",
        "both-failed",
        "skipped",
    ];

    /// The word used in metrics and reports; why something was skipped is [`Skip::as_str`].
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Verdict::Match => "match",
            Verdict::Mismatch => "mismatch",
            Verdict::ControlFailed => "control-failed",
            Verdict::CandidateFailed => "candidate-failed",
            Verdict::BothFailed => "both-failed",
            Verdict::Skipped(_) => "skipped",
        }
    }

    /// The verdict where not both were answered; where both were, their answers are to be compared.
    #[must_use]
    pub const fn of_failures(control: Run, candidate: Run) -> Option<Verdict> {
        match (control, candidate) {
            (Run::Answered, Run::Answered) => None,
            (Run::Failed, Run::Answered) => Some(Verdict::ControlFailed),
            (Run::Answered, Run::Failed) => Some(Verdict::CandidateFailed),
            (Run::Failed, Run::Failed) => Some(Verdict::BothFailed),
        }
    }
}

/// Why a candidate did not run, or was not compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Skip {
    /// The share of calls that is compared left it out.
    NotSampled,
    /// The route is not safe: a second call might do something twice.
    Unsafe,
    /// As many candidates run as may.
    Busy,
    /// A request or an answer is larger than what is kept for comparing.
    Large,
    /// An answer is a stream or an upgrade, which has no end to compare.
    Stream,
    /// The client went away.
    Cancelled,
    /// Its batch has run as many candidates as one request may.
    BatchLimit,
    /// Its turn came after its time.
    Late,
    /// The answer cannot be brought into the caller's form without losing something.
    Lossy,
    /// The call belongs to no route, or its route is not entered from the other side.
    NoRoute,
    /// The program is about to end.
    Drain,
}

impl Skip {
    /// Every reason.
    pub const ALL: [Skip; 11] = [
        Skip::NotSampled,
        Skip::Unsafe,
        Skip::Busy,
        Skip::Large,
        Skip::Stream,
        Skip::Cancelled,
        Skip::BatchLimit,
        Skip::Late,
        Skip::Lossy,
        Skip::NoRoute,
        Skip::Drain,
    ];

    /// The word used in metrics and reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Skip::NotSampled => "not_sampled",
            Skip::Unsafe => "unsafe",
            Skip::Busy => "busy",
            Skip::Large => "large",
            Skip::Stream => "stream",
            Skip::Cancelled => "cancelled",
            Skip::BatchLimit => "batch_limit",
            Skip::Late => "late",
            Skip::Lossy => "lossy",
            Skip::NoRoute => "no_route",
            Skip::Drain => "drain",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_verdict_and_every_reason_has_a_word_of_its_own() {
        let words: BTreeSet<_> = Skip::ALL.map(Skip::as_str).into();
        assert_eq!(words.len(), Skip::ALL.len());
        let all = [
            Verdict::Match,
            Verdict::Mismatch,
            Verdict::ControlFailed,
            Verdict::CandidateFailed,
            Verdict::BothFailed,
            Verdict::Skipped(Skip::Busy),
        ];
        assert_eq!(all.map(Verdict::as_str), Verdict::WORDS);
    }

    #[test]
    fn answers_are_compared_only_where_there_are_two() {
        let of = Verdict::of_failures;
        assert_eq!(of(Run::Answered, Run::Answered), None);
        assert_eq!(of(Run::Failed, Run::Answered), Some(Verdict::ControlFailed));
        assert_eq!(
            of(Run::Answered, Run::Failed),
            Some(Verdict::CandidateFailed)
        );
        assert_eq!(of(Run::Failed, Run::Failed), Some(Verdict::BothFailed));
    }
}
