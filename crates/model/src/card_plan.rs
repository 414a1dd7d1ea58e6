//! The agent card (A2A) that names the proxy, as it is configured.
//!
//! Used by `agent_card` and `plan`.

/// The agent card that names the proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardPlan {
    /// The path of the card.
    pub path: String,
    /// The versions whose clients find the proxy in the card of an agent of another version.
    pub versions: Vec<A2aVersion>,
}

/// A version of A2A.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum A2aVersion {
    /// A2A 0.3
    V0_3,
    /// A2A 1.0
    V1_0,
}
