//! Messages of sockets that have no receiver. Used by `frame::machine`, `gateway`, `upstream` and `telemetry`.

/// The reason why a message of a socket with frames is not delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undelivered {
    /// It belongs to no protocol of this socket.
    Noise,
    /// It answers a call that is not pending: it is late or a duplicate.
    Late,
}

impl Undelivered {
    /// Every reason.
    pub const ALL: [Undelivered; 2] = [Undelivered::Noise, Undelivered::Late];

    /// Returns the label used in the metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Undelivered::Noise => "noise",
            Undelivered::Late => "late",
        }
    }
}
