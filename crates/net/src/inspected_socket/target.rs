//! Request lines that hyper gets in another form: those with raw characters in the target, and refused ones.

use super::{Inspected, Mode};
use dualgauge_transport::wire::{MessagePosition, RawTarget, RefusedLine, SentTarget, Violation};

/// The substitute for a message whose request line is refused.
const SUBSTITUTE: &[u8] = b"GET / HTTP/1.1\r\nhost: refused.invalid\r\nconnection: close\r\n\r\n";

/// The substitute for the rest of a refused head.
const REST_OF_HEAD: &[u8] = b"connection: close\r\n\r\n";

impl<S> Inspected<S> {
    /// Passes on a request line with a percent-encoded target, and records the original.
    #[cold]
    pub(super) fn encode(&mut self, line: &[u8]) {
        let Some((written, target)) = RawTarget::take(line) else {
            return self.ready.extend_from_slice(line);
        };
        self.ready.extend_from_slice(&written);
        let number = self.follower.message();
        self.inspection
            .record_target(number, SentTarget::Raw(target));
    }

    /// Refuses a message; `rest` is the part that was not passed on.
    pub(super) fn refuse(&mut self, place: MessagePosition, violation: Violation, rest: &[u8]) {
        if place == MessagePosition::BeforeMessage
            && let Some(line) = RefusedLine::read(rest)
        {
            let number = self.follower.message();
            self.inspection
                .record_target(number, SentTarget::Refused(line));
        }
        self.inspection.refuse(self.follower.message(), violation);
        self.mode = match place {
            MessagePosition::BeforeMessage => {
                self.ready.extend_from_slice(SUBSTITUTE);
                Mode::Refused
            }
            MessagePosition::InHead => {
                self.ready.extend_from_slice(REST_OF_HEAD);
                Mode::Refused
            }
            MessagePosition::InBody => Mode::Broken(violation),
        };
    }
}
