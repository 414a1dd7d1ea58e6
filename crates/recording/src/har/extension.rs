//! The member of an entry with what HAR has no member for. Used by `har`.

use serde::{Deserialize, Serialize};

use crate::recording::Responder;
use dualgauge_patterns::side::Side;

/// The member of an entry with what HAR has no member for.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Extension {
    pub(super) side: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) route: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) client: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) stage: Option<String>,
    pub(super) reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) from: Option<Responder>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) failure: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) redacted: Vec<String>,
    pub(super) complete: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) latency_us: Option<u64>,
}

impl Extension {
    /// Returns the side, if it is one.
    pub(super) fn side(&self) -> Option<Side> {
        Side::ALL
            .into_iter()
            .find(|side| side.as_str() == self.side)
    }
}
