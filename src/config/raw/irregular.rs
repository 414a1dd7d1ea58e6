//! `unrouted_irregular`. Used by `compile` and `decode`.

/// `unrouted_irregular`: calls without a route that a lenient server may read as one with a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IrregularWord {
    /// It passes like any other call without a route.
    Pass,
    /// The proxy rejects it.
    Reject,
}
