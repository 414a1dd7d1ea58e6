//! The identifiers of the requests of callers. Used by `frame`, `pending`, `gateway` and `upstream`.

/// Identifies one request of a caller; never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);
