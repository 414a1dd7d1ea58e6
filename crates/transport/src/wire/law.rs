//! The law of partitions, as a function that fuzzing and tests run on any bytes.

use super::{Finding, HeadLimits, MessagePosition, RequestInspector, Violation};

/// The result of inspecting a connection's bytes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Trace {
    /// The number of bytes that passed.
    pub(super) passed: usize,
    /// The positions where heads ended and upgrades were due.
    pub(super) events: Vec<(usize, Finding)>,
    /// The violation, if there was one, with the part of its message that passed.
    pub(super) refused: Option<(MessagePosition, Violation)>,
    /// The number of the last message.
    pub(super) message: u64,
}

/// Inspects an input that arrives in pieces of the given sizes, the last of which is repeated. Every upgrade is
/// declined.
pub(super) fn follow(limits: HeadLimits, input: &[u8], pieces: &[usize]) -> Trace {
    let mut follower = RequestInspector::new(limits);
    let mut trace = Trace::default();
    let mut sizes = pieces.iter().copied();
    let mut size = 1;
    let mut arrived = 0;
    while arrived < input.len() && trace.refused.is_none() {
        size = sizes.next().unwrap_or(size).max(1);
        arrived = input.len().min(arrived.saturating_add(size));
        follow_piece(&mut follower, &input[..arrived], &mut trace);
    }
    trace.message = follower.message();
    trace
}

fn follow_piece(follower: &mut RequestInspector, arrived: &[u8], trace: &mut Trace) {
    loop {
        let step = follower.feed(&arrived[trace.passed..]);
        trace.passed += step.passed;
        match step.found {
            Finding::More => return,
            Finding::Refused { place, violation } => {
                trace.refused = Some((place, violation));
                return;
            }
            Finding::Upgrade => follower.resume(),
            // Another line replaces it.
            Finding::RawTarget { line } => trace.passed += line,
            Finding::HeadEnd { .. } => {}
        }
        trace.events.push((trace.passed, step.found));
    }
}

/// Checks that verdict, events and passed bytes do not depend on the partition of an input.
///
/// # Panics
///
/// If a check fails: this is the body of a fuzz target.
pub fn check_any_cut(data: &[u8]) {
    let small = HeadLimits {
        head: 160,
        target: 48,
    };
    // The chunk boundary depends on the input, so that a fuzzer can move it.
    let cut = data.iter().fold(data.len(), |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(usize::from(*byte))
    });
    for limits in [HeadLimits::default(), small] {
        let whole = follow(limits, data, &[usize::MAX]);
        assert!(
            whole.passed <= data.len(),
            "more was passed on than came in"
        );
        for pieces in [&[1][..], &[cut % 64, 1 + cut / 64 % 16], &[cut % 1024, 700]] {
            assert_eq!(
                follow(limits, data, pieces),
                whole,
                "cut into pieces of {pieces:?} with {limits:?}"
            );
        }
    }
}
