//! The clients with their calls, in their JSON form.

use std::collections::BTreeMap;

use serde::Serialize;

use super::overview::ServedCalls;
use crate::telemetry::metrics::{CallErrors, StageCalls};
use dualgauge_model::lifecycle::EraClientReport;
use dualgauge_model::rollout::Stage;

/// A client with its calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClientRow {
    /// The name; `other` for calls that match no client.
    pub name: String,
    /// The key of the client's `match`; `null` for `other`.
    pub source: Option<&'static str>,
    /// `authenticated` or `declared`; `null` for `other`.
    pub proof: Option<&'static str>,
    /// The calls since counting began, on all replicas.
    pub calls: ServedCalls,
    /// The time when the last call began.
    pub last: Option<String>,
    /// The calls of this process by stage, since its start.
    #[serde(flatten)]
    pub served: ServedByStage,
    /// The eras, revisions and programs of an MCP client.
    pub eras: Vec<EraClientReport>,
}

/// The calls of this process by stage, with errors.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ServedByStage {
    /// The number of calls of each stage.
    pub stages: BTreeMap<&'static str, u64>,
    /// The calls that the old side served.
    pub old: ErrorCounts,
    /// The calls that the new side served.
    pub new: ErrorCounts,
}

/// Calls, and those of them that ended with an error.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ErrorCounts {
    /// The number of calls.
    pub calls: u64,
    /// The number of calls with an error.
    pub errors: u64,
}

impl From<CallErrors> for ErrorCounts {
    fn from(counts: CallErrors) -> ErrorCounts {
        ErrorCounts {
            calls: counts.calls,
            errors: counts.errors,
        }
    }
}

impl From<StageCalls> for ServedByStage {
    fn from(calls: StageCalls) -> ServedByStage {
        let stages = Stage::ALL.into_iter().zip(calls.stages);
        ServedByStage {
            stages: stages
                .map(|(stage, count)| (stage.as_str(), count))
                .collect(),
            old: calls.old.into(),
            new: calls.new.into(),
        }
    }
}
