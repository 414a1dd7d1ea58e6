//! The counts of an import, and the operations without a route.
//!
//! Used by `import::model`, `import::table` and `import::unsupported`.

/// The outcome of an import.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImportReport {
    /// REST operations that were read.
    pub rest: usize,
    /// RPC operations that were read.
    pub rpc: usize,
    /// Routes made of one operation of each side.
    pub paired: usize,
    /// Routes made of a REST operation alone.
    pub rest_alone: usize,
    /// Routes made of an RPC operation alone.
    pub rpc_alone: usize,
    /// The operations without a route.
    pub left_out: Vec<LeftOut>,
    /// Notes for the person who checks the draft: information that the documents lack, and differences of the sides.
    pub notes: Vec<RouteNote>,
}

/// A note on a drafted route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteNote {
    /// The name of the route.
    pub route: String,
    /// The note, for people.
    pub text: String,
}

/// An operation without a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The operation, for people.
    pub what: String,
    /// The reason why it has no route.
    pub why: String,
}
