//! The outcome of a call, as it is set while the call runs. Used by `access_record`.

use bytes::Bytes;
use http::Method;

use super::AccessRecord;
use super::facts::{CallOutcome, FailureCause};
use crate::telemetry::metrics::Outcome;
use dualgauge_model::failure::{Blame, Failure, Reason};
use dualgauge_model::jsonrpc::{ResponseReply, parse_response};
use dualgauge_model::outcome::{blame_behind_tool, reports_failure};
use dualgauge_model::route::TOOL_CALL;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::side::Side;

/// The largest passed-through response that is parsed for the record, in bytes.
pub(super) const SMALL: usize = 64 * 1024;

impl AccessRecord {
    /// Returns why the call failed; falls back to the upstream's status or error code.
    pub(in crate::gateway) fn failure_cause(&self) -> FailureCause {
        let CallOutcome {
            code,
            reason,
            upstream_status,
            ref cause,
            ..
        } = self.outcome;
        let upstream = || match (upstream_status, code) {
            (Some(status), _) => Some(format!("the upstream answered with status {status}")),
            (None, Some(code)) if reason.is_none() => {
                Some(format!("the upstream answered with error {code}"))
            }
            (None, _) => None,
        };
        FailureCause {
            reason,
            cause: cause.clone().or_else(upstream),
        }
    }

    /// Records an HTTP response of the upstream, original or translated.
    pub(in crate::gateway) fn set_response(&mut self, status: u16) {
        let blame = Blame::of_status(status);
        self.outcome.kind = Some((
            if blame.is_some() {
                Outcome::Error
            } else {
                Outcome::Success
            },
            blame,
        ));
        self.outcome.status = Some(status);
    }

    /// Records an error of the upstream that is an RPC error on one of the two sides.
    pub(in crate::gateway) fn set_error(&mut self, status: u16, code: i64, blame: Blame) {
        self.outcome.kind = Some((Outcome::Error, Some(blame)));
        self.outcome.status = Some(status);
        self.outcome.code = Some(code);
    }

    /// Records a response that an outcome row wrote for an upstream error with this code. A success counts as one, as
    /// it does when it passes through.
    pub(in crate::gateway) fn set_row_response(&mut self, status: u16, code: i64) {
        self.set_response(status);
        self.outcome.code = Some(code);
    }

    /// Records a tool result that reports a failure. If the result was made from a refusing status or a 5xx, the blame
    /// is that of the status.
    pub(in crate::gateway) fn set_tool_failure(&mut self, status: u16, result: &Json) {
        self.set_tool_error(status);
        if let Some(blame) = blame_behind_tool(result) {
            self.outcome.kind = Some((Outcome::Error, Some(blame)));
        }
    }

    /// Records a tool result that reports a failure; the call itself has no blame.
    pub(in crate::gateway) fn set_tool_error(&mut self, status: u16) {
        self.outcome.kind = Some((Outcome::ToolError, None));
        self.outcome.status = Some(status);
    }

    /// Records the status of the upstream, if the client receives another one.
    pub(in crate::gateway) fn set_upstream_status(&mut self, upstream_status: u16) {
        self.outcome.upstream_status = Some(upstream_status);
    }

    /// Records a result of the RPC server that the client receives with status 200.
    pub(in crate::gateway) fn set_result(&mut self, result: &Json) {
        if self.is_tool_error(result) {
            self.set_tool_failure(200, result);
        } else {
            self.set_response(200);
        }
        self.outcome.is_result_read = true;
    }

    fn is_tool_error(&self, result: &Json) -> bool {
        self.rpc_method.as_deref() == Some(TOOL_CALL) && reports_failure(result)
    }

    /// Records a response of the proxy itself that is not a failure.
    pub(in crate::gateway) fn set_local_response(
        &mut self,
        status: u16,
        error: Option<(Blame, Option<i64>)>,
    ) {
        self.outcome.kind = Some(match error {
            None => (Outcome::Success, None),
            Some((blame, _)) => (Outcome::Error, Some(blame)),
        });
        self.outcome.status = Some(status);
        self.outcome.code = error.and_then(|(_, code)| code);
    }

    /// Sets the status that the client receives, if it differs from the upstream's.
    pub(in crate::gateway) fn set_client_status(&mut self, status: u16) {
        self.outcome.status = Some(status);
    }

    /// Reads a complete response that passes through, up to [`SMALL`] bytes. On the RPC side the HTTP status does not
    /// show whether the call failed, so an error in the body counts as one.
    pub(in crate::gateway) fn inspect_response(&mut self, body: &Bytes) {
        if self.context.side != Side::Rpc || body.len() > SMALL {
            return;
        }
        let depth = self.context.runtime_plan.plan.limits.depth;
        if let (Some(status), Ok(response)) = (self.outcome.status, parse_response(body, depth)) {
            self.set_reply(status, &response.reply);
        }
    }

    /// Records the reply of the RPC server, which the client receives with `status`.
    pub(super) fn set_reply(&mut self, status: u16, reply: &ResponseReply) {
        match reply {
            ResponseReply::Error(error) => {
                self.set_error(status, error.code, Blame::of_code(error.code));
            }
            ResponseReply::Result(result) if status < 400 && self.is_tool_error(result) => {
                self.set_tool_failure(status, result);
            }
            ResponseReply::Result(_) => {}
        }
        self.outcome.is_result_read = true;
    }

    /// Records a failure that the proxy reports to the client.
    pub(in crate::gateway) fn set_failure(&mut self, status: u16, failure: &Failure) {
        let row = failure.reason.row();
        let code = self
            .context
            .runtime_plan
            .plan
            .face
            .failure_codes
            .of(failure.reason);
        self.outcome = CallOutcome {
            kind: Some((Outcome::Failed, Some(row.blame))),
            status: Some(status),
            code: (self.context.side == Side::Rpc).then_some(code.into()),
            reason: Some(failure.reason),
            upstream_status: failure.upstream_status,
            cause: failure.cause.clone(),
            is_result_read: false,
        };
    }

    /// Records that the response broke off after its head was sent.
    pub(in crate::gateway) fn cut(&mut self, cause: impl ToString) {
        self.outcome.kind = Some((Outcome::Cut, Some(Blame::Upstream)));
        self.outcome.reason = Some(Reason::UpstreamCut);
        self.outcome.cause = Some(cause.to_string());
    }

    /// Records that the response broke off after its head was sent for this reason, such as an exceeded deadline.
    pub(in crate::gateway) fn cut_because(&mut self, reason: Reason, cause: impl ToString) {
        self.cut(cause);
        self.outcome.kind = Some((Outcome::Cut, Some(reason.row().blame)));
        self.outcome.reason = Some(reason);
    }

    /// Returns true when the response has no content (RFC 9110 §6.4.1). Over HTTP/2 its stream may still end after the
    /// head.
    pub(in crate::gateway) fn has_no_content(&self) -> bool {
        self.context.method == Method::HEAD || matches!(self.outcome.status, Some(204 | 304))
    }

    /// Keeps the record of a complete response until the client has received it; reports it now if that is not
    /// observable.
    pub(in crate::gateway) fn hold_for_delivery(mut self: Box<Self>) -> Option<AccessRecord> {
        if !self.context.observes_delivery() {
            return None;
        }
        self.mark_complete();
        Some(*self)
    }

    /// Records that the client did not receive a complete response. A failed call stays failed.
    pub(in crate::gateway) fn mark_undelivered(&mut self, cause: Option<&str>) {
        if let Some((Outcome::Success | Outcome::Error | Outcome::ToolError, _)) = self.outcome.kind
        {
            self.mark_cancelled();
            self.outcome.cause = cause.map(str::to_owned);
        }
    }

    /// Records that the client disconnected before the response was complete.
    pub(in crate::gateway) fn mark_cancelled(&mut self) {
        self.outcome.kind = None;
        self.completed_at = None;
    }
}
