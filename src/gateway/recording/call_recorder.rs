//! The recorder as one worker uses it, and the sample. Used by `recording` and `worker`.

use std::cell::Cell;
use std::rc::Rc;

use crate::telemetry::recorder::{ActiveRecording, Recorder};
use dualgauge_net::{BodyCopy, CopyBudget};

/// The memory of a worker for the bodies of calls in progress that are recorded, in bytes.
const BODY_MEMORY: usize = 8 * 1024 * 1024;

/// The multiplier of a Weyl sequence: 2^64 divided by the golden ratio. Its multiples are spread evenly.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The recorder as one worker uses it.
#[derive(Debug)]
pub(in crate::gateway) struct CallRecorder {
    recorder: Recorder,
    /// The number of calls that could be recorded.
    calls: Cell<u64>,
    budget: Rc<CopyBudget>,
}

impl CallRecorder {
    /// Creates the recorder of a worker.
    pub(in crate::gateway) fn new(recorder: Recorder) -> CallRecorder {
        let budget = Rc::new(CopyBudget::default());
        budget.set_limit(BODY_MEMORY);
        CallRecorder {
            recorder,
            calls: Cell::default(),
            budget,
        }
    }

    /// Returns an empty copy of a body, within the memory for such copies.
    pub(super) fn new_copy(&self) -> BodyCopy {
        BodyCopy::new(&self.budget)
    }

    /// Returns the recorder of the process.
    pub(super) fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Returns the recording if the next call is in the sample.
    #[inline]
    pub(in crate::gateway) fn sample(&self) -> Option<ActiveRecording> {
        let recording = self.recorder.active()?;
        let number = self.calls.get();
        self.calls.set(number.wrapping_add(1));
        let place = number.wrapping_mul(GOLDEN) >> 32;
        let is_sampled = (place * 100_000) >> 32 < u64::from(recording.sample.thousandths());
        is_sampled.then_some(recording)
    }
}
