//! The facts that a record collects while its call runs. Used by `access_record` and `shadow`.

use crate::telemetry::metrics::Outcome;
use dualgauge_model::dialect::OldTransport;
use dualgauge_model::failure::{Blame, Reason};
use dualgauge_model::jsonrpc::RequestId;
use dualgauge_model::posted::{Handling, MessageFault};

/// The end of a call, as far as it is known.
#[derive(Debug, Default)]
pub(super) struct CallOutcome {
    pub(super) kind: Option<(Outcome, Option<Blame>)>,
    pub(super) status: Option<u16>,
    pub(super) code: Option<i64>,
    pub(super) reason: Option<Reason>,
    pub(super) upstream_status: Option<u16>,
    pub(super) cause: Option<String>,
    /// Set if the RPC server's result was parsed. Only a parsed one shows a tool failure.
    pub(super) is_result_read: bool,
}

/// The cause of a failed call, for the report of a candidate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::gateway) struct FailureCause {
    /// The proxy's own failure reason.
    pub(in crate::gateway) reason: Option<Reason>,
    /// A description of the cause; secrets in it are not yet redacted.
    pub(in crate::gateway) cause: Option<String>,
}

/// Messages of an old dialect.
#[derive(Debug, Clone, Copy)]
pub(super) struct OldNote {
    pub(super) transport: OldTransport,
    pub(super) messages: u64,
}

/// Facts about the message of a call.
#[derive(Debug, Default)]
pub(super) struct MessageNote {
    /// The deviation from JSON-RPC 2.0, and how the proxy handled it.
    pub(super) fault: Option<(MessageFault, Handling)>,
    /// The transport of a message of an old dialect, with the number of messages.
    pub(super) old: Option<OldNote>,
    /// The id of the call within its batch.
    pub(super) part: Option<RequestId>,
}
