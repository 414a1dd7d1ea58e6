//! Verdicts of comparisons, and the reasons for skipping one.

/// The verdict on the candidate of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verdict {
    /// No counted difference.
    Match,
    /// At least one counted difference.
    Mismatch,
    /// Only the control failed.
    ControlFailed,
    /// Only the candidate failed.
    CandidateFailed,
    /// Both failed.
    BothFailed,
    /// There was nothing to compare.
    Skipped(Skip),
}

/// The result of a control or candidate call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Run {
    /// A response, including one that reports an error of the client.
    Answered,
    /// A failure of the upstream or of the proxy: the call was not sent, or it timed out, or the response was cut,
    /// unreadable or reported a server error.
    Failed,
}

impl Verdict {
    /// The names of all verdicts.
    pub const WORDS: [&'static str; 6] = [
        "match",
        "mismatch",
        "control-failed",
        "candidate-failed",
        "both-failed",
        "skipped",
    ];

    /// Returns the name used in metrics and reports; [`Skip::as_str`] names the reason for skipping.
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

    /// Returns the verdict if a call failed; `None` if both have responses to compare.
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

/// The reason why a candidate did not run, or was not compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Skip {
    /// The route is not safe: a second call might have its effect twice.
    Unsafe,
    /// The caller expects no response.
    Notification,
    /// The call is conditional or asks for a range; a translated call cannot be either.
    Conditional,
    /// The sampling rate left the call out.
    NotSampled,
    /// The batch has reached the limit of candidates.
    BatchLimit,
    /// The client disconnected before it had its response.
    Cancelled,
    /// The call was answered before it was fully received.
    Unread,
    /// The call or a response exceeds the buffer limit.
    Large,
    /// A response is a stream or an upgrade, which has no end to compare.
    Stream,
    /// A response has an unsupported content coding.
    Coded,
    /// The limit of concurrent candidates is reached.
    Busy,
    /// The process is shutting down.
    Drain,
}

impl Skip {
    /// All reasons.
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

    /// Returns the name used in metrics and reports.
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
    fn every_verdict_and_every_reason_has_a_distinct_word() {
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
        let docs = include_str!("../../../../docs/explanation/shadow.md");
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
    fn the_page_on_comparing_defines_no_verdict_and_no_reason() {
        let docs = include_str!("../../../../docs/explanation/compare.md");
        assert!(docs.contains("shadow.md#calls-with-a-candidate"));
        assert!(docs.contains("shadow.md#verdicts"));
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
