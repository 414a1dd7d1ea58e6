//! Messages of sockets that reach nobody.

/// Why a message of a socket where frames are spoken reaches nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stray {
    /// It is of no protocol that is spoken there.
    Noise,
    /// It answers a call for which nobody waits: it is late, or given twice.
    Late,
}

impl Stray {
    /// Every reason.
    pub const ALL: [Stray; 2] = [Stray::Noise, Stray::Late];

    /// The word in the metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Stray::Noise => "noise",
            Stray::Late => "late",
        }
    }
}
