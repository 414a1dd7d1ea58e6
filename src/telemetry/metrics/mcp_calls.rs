//! The calls of MCP clients that one worker has seen, by era, with the programs that the clients declare.
//!
//! Used by `metrics::named`, `metrics::shard` and `metrics::usage`.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use super::hasher::IdHasher;
use super::labels::LabelId;
use dualgauge_model::lifecycle::{DeclaredName, DeclaredNames, UsageCount};
use dualgauge_model::mcp::{CallEra, ClientInfo};
use dualgauge_model::time::Timestamp;

/// A call of an MCP client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpCall {
    /// The era and the revision that the call names.
    pub era: CallEra,
    /// The program that the client declares to be, if it does.
    pub program: Option<ClientInfo>,
}

/// The counts of one worker.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct McpCounts {
    /// By client and era.
    pub(super) eras: HashMap<(LabelId, CallEra), UsageCount, BuildHasherDefault<IdHasher>>,
    /// By client. Never a label: clients choose these names.
    pub(super) programs: DeclaredNames<LabelId>,
}

impl McpCounts {
    pub(super) fn note(&mut self, client: LabelId, call: McpCall, at: Timestamp) {
        let McpCall { era, program } = call;
        self.eras.entry((client, era)).or_default().add(at);
        if let Some(info) = program {
            let name = DeclaredName { era, info };
            self.programs.note(client, name, at);
        }
    }

    /// Adds the counts of another worker, without its programs.
    pub(super) fn add(&mut self, other: &McpCounts) {
        for (caller, count) in &other.eras {
            self.eras.entry(*caller).or_default().merge(count);
        }
    }
}
