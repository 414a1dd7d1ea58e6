//! Messages of sockets that reach nobody.

/// Why a message of a socket where frames are spoken reaches nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undelivered {
    /// It is of no protocol that is spoken there.
    Noise,
    /// It answers a call for which nobody waits: it is late, or given twice.
    Late,
}

impl Undelivered {
    /// Every reason.
    pub const ALL: [Undelivered; 2] = [Undelivered::Noise, Undelivered::Late];

    /// The word in the metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Undelivered::Noise => "noise",
            Undelivered::Late => "late",
        }
    }
}
