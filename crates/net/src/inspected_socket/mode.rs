//! The state of an inspected socket, and the results of its reads. Used by `inspected_socket`.

use dualgauge_transport::wire::Violation;

/// The treatment of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// The input is inspected.
    Following,
    /// An upgrade request has no response yet.
    Waiting,
    /// The connection was upgraded to another protocol.
    Transparent,
    /// hyper reads a substitute for the refused request.
    Refused,
    /// The body that hyper is reading is refused.
    Broken(Violation),
}

/// The result of a read step.
pub(super) enum Flow {
    /// The reader has bytes, or the end.
    Done,
    /// The reader's buffer has no bytes yet.
    Again,
}
