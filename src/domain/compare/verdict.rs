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
    /// With an answer, though it says that the call was wrong.
    Answered,
    /// Without one, by the fault of the upstream or of the proxy: not sent, timed out, cut, not readable, or an answer
    /// that says that the server has failed.
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
    /// The route is not safe: a second call might do something twice.
    Unsafe,
    /// The caller does not wait for an answer.
    Notification,
    /// The call asks for an answer on a condition or for a part of one, which a translated call does not.
    Conditional,
    /// The share of calls that is compared left it out.
    NotSampled,
    /// Its request has as many candidates as one may have.
    BatchLimit,
    /// The client went away before it had its answer.
    Cancelled,
    /// The call was answered before all of it had come.
    Unread,
    /// What is to be kept of the call or of an answer does not fit.
    Large,
    /// An answer is a stream or an upgrade, which has no end to compare.
    Stream,
    /// An answer has a content coding that is not read.
    Coded,
    /// As many candidates run as may.
    Busy,
    /// The program is about to end.
    Drain,
}

impl Skip {
    /// Every reason.
    pub const ALL: [Skip; 12] = [
        Skip::Unsafe,
        Skip::Notification,
        Skip::Conditional,
        Skip::NotSampled,
        Skip::BatchLimit,
        Skip::Cancelled,
        Skip::Unread,
        Skip::Large,
        Skip::Stream,
        Skip::Coded,
        Skip::Busy,
        Skip::Drain,
    ];

    /// The word used in metrics and reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Skip::Unsafe => "unsafe",
            Skip::Notification => "notification",
            Skip::Conditional => "conditional",
            Skip::NotSampled => "not_sampled",
            Skip::BatchLimit => "batch_limit",
            Skip::Cancelled => "cancelled",
            Skip::Unread => "unread",
            Skip::Large => "large",
            Skip::Stream => "stream",
            Skip::Coded => "coded",
            Skip::Busy => "busy",
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
    fn the_documentation_has_every_verdict_and_every_reason_and_no_other() {
        let docs = include_str!("../../../docs/explanation/shadow.md");
        let words = |head: &str| -> Vec<&str> {
            let table = docs.split_once(head).unwrap().1;
            let rows = table
                .lines()
                .skip(2)
                .take_while(|line| line.starts_with('|'));
            rows.map(|row| row.split('`').nth(1).unwrap()).collect()
        };
        assert_eq!(words("| verdict | meaning |"), Verdict::WORDS);
        let reasons = "| reason | why there was no candidate, or no comparison |";
        assert_eq!(words(reasons), Skip::ALL.map(Skip::as_str));
    }

    #[test]
    fn the_page_on_comparing_defines_no_verdict_and_no_reason_of_its_own() {
        let docs = include_str!("../../../docs/explanation/compare.md");
        assert!(docs.contains("shadow.md#what-is-made-twice"));
        assert!(docs.contains("shadow.md#what-it-comes-to"));
        assert!(!docs.contains("| skipped | because |"));
        assert!(!docs.contains("| verdict | meaning |"));
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
