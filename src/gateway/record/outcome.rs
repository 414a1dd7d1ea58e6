//! How a call ended, as far as it is settled while it runs.

use bytes::Bytes;
use http::{Method, Version};

use super::{CallOutcome, Record};
use crate::domain::failure::{Blame, Failure, Reason};
use crate::domain::json::Json;
use crate::domain::jsonrpc::{ResponseReply, parse_response};
use crate::domain::outcome::{blame_behind_tool, says_failure};
use crate::domain::route::TOOL_CALL;
use crate::domain::side::Side;
use crate::telemetry::metrics::Outcome;

/// The largest answer that is looked into as it passes by, in bytes.
pub(super) const SMALL: usize = 64 * 1024;

/// Whether the result of the RPC server was read, so that it is known whether it says that a tool failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum ResultRead {
    #[default]
    No,
    Yes,
}

/// Why a call failed, for the report of a candidate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::gateway) struct FailureCause {
    /// The proxy's own failure.
    pub(in crate::gateway) reason: Option<Reason>,
    /// The cause in words; secrets in it are not hidden yet.
    pub(in crate::gateway) cause: Option<String>,
}

impl Record {
    /// Returns why the call failed. Where the proxy knows no cause, that is what the upstream answered.
    pub(in crate::gateway) fn failure_cause(&self) -> FailureCause {
        let CallOutcome {
            code,
            reason,
            upstream_status,
            ref cause,
            ..
        } = self.ending;
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

    /// The call has this HTTP answer: an upstream's own, or one translated from it.
    pub(in crate::gateway) fn answered(&mut self, status: u16) {
        let blame = Blame::of_status(status);
        self.ending.outcome = Some((
            if blame.is_some() {
                Outcome::Error
            } else {
                Outcome::Success
            },
            blame,
        ));
        self.ending.status = Some(status);
    }

    /// The call has an error of the upstream as its answer, as an RPC error on one of the two sides.
    pub(in crate::gateway) fn answered_error(&mut self, status: u16, code: i64, blame: Blame) {
        self.ending.outcome = Some((Outcome::Error, Some(blame)));
        self.ending.status = Some(status);
        self.ending.code = Some(code);
    }

    /// The call has an answer that a row wrote for an error with this code of the upstream. A success is one, as it is where
    /// it passes through.
    pub(in crate::gateway) fn answered_by_row(&mut self, status: u16, code: i64) {
        self.answered(status);
        self.ending.code = Some(code);
    }

    /// The call has this result of a tool, which says that it failed. Where the result was made from a status that refuses
    /// the call, or from a 5xx, the blame is as if the status itself were the answer.
    pub(in crate::gateway) fn answered_tool_failure(&mut self, status: u16, result: &Json) {
        self.answered_tool_error(status);
        if let Some(blame) = blame_behind_tool(result) {
            self.ending.outcome = Some((Outcome::Error, Some(blame)));
        }
    }

    /// The call has the result of a tool that says that it failed: the call itself is nobody's fault.
    pub(in crate::gateway) fn answered_tool_error(&mut self, status: u16) {
        self.ending.outcome = Some((Outcome::ToolError, None));
        self.ending.status = Some(status);
    }

    /// Notes the status of the upstream, where the client gets another one.
    pub(in crate::gateway) fn served_with(&mut self, upstream_status: u16) {
        self.ending.upstream_status = Some(upstream_status);
    }

    /// The call has a result of the RPC server, which the client gets with the status 200.
    pub(in crate::gateway) fn answered_result(&mut self, result: &Json) {
        if self.is_tool_error(result) {
            self.answered_tool_failure(200, result);
        } else {
            self.answered(200);
        }
        self.ending.result = ResultRead::Yes;
    }

    fn is_tool_error(&self, result: &Json) -> bool {
        self.rpc_method.as_deref() == Some(TOOL_CALL) && says_failure(result)
    }

    /// The call has an answer of the proxy's own, which is no failure.
    pub(in crate::gateway) fn answered_here(
        &mut self,
        status: u16,
        error: Option<(Blame, Option<i64>)>,
    ) {
        self.ending.outcome = Some(match error {
            None => (Outcome::Success, None),
            Some((blame, _)) => (Outcome::Error, Some(blame)),
        });
        self.ending.status = Some(status);
        self.ending.code = error.and_then(|(_, code)| code);
    }

    /// The status that the client gets, where it is not the upstream's.
    pub(in crate::gateway) fn sent(&mut self, status: u16) {
        self.ending.status = Some(status);
    }

    /// A whole answer passes by. On the RPC side its status says nothing of the call, so a small one is
    /// looked into: an error counts as one, however the call was served.
    pub(in crate::gateway) fn passed(&mut self, body: &Bytes) {
        if self.side != Side::Rpc || body.len() > SMALL {
            return;
        }
        let depth = self.installed.plan.limits.depth;
        if let (Some(status), Ok(response)) = (self.ending.status, parse_response(body, depth)) {
            self.replied(status, &response.reply);
        }
    }

    /// The client gets this reply of the RPC server with this status.
    pub(super) fn replied(&mut self, status: u16, reply: &ResponseReply) {
        match reply {
            ResponseReply::Error(error) => {
                self.answered_error(status, error.code, Blame::of_code(error.code));
            }
            ResponseReply::Result(result) if status < 400 && self.is_tool_error(result) => {
                self.answered_tool_failure(status, result);
            }
            ResponseReply::Result(_) => {}
        }
        self.ending.result = ResultRead::Yes;
    }

    /// The proxy itself answers, with a failure.
    pub(in crate::gateway) fn failed(&mut self, status: u16, failure: &Failure) {
        let row = failure.reason.row();
        let code = self.installed.plan.face.failure_codes.of(failure.reason);
        self.ending = CallOutcome {
            outcome: Some((Outcome::Failed, Some(row.blame))),
            status: Some(status),
            code: (self.side == Side::Rpc).then_some(code.into()),
            reason: Some(failure.reason),
            upstream_status: failure.upstream_status,
            cause: failure.cause.clone(),
            result: ResultRead::No,
        };
    }

    /// The answer broke off after its head was out.
    pub(in crate::gateway) fn cut(&mut self, cause: impl ToString) {
        if let Some(candidate) = self.take_candidate() {
            candidate.start_without_control();
        }
        self.ending.outcome = Some((Outcome::Cut, Some(Blame::Upstream)));
        self.ending.reason = Some(Reason::UpstreamCut);
        self.ending.cause = Some(cause.to_string());
    }

    /// The answer broke off after its head was out, since the call as a whole took too long, for this reason.
    pub(in crate::gateway) fn overdue(&mut self, reason: Reason, cause: impl ToString) {
        self.cut(cause);
        self.ending.outcome = Some((Outcome::Cut, Some(reason.row().blame)));
        self.ending.reason = Some(reason);
    }

    /// Whether there is none behind the head of the answer (RFC 9110 §6.4.1), although a stream of HTTP/2 may end behind
    /// it only.
    pub(in crate::gateway) fn has_no_content(&self) -> bool {
        self.method == Method::HEAD || matches!(self.ending.status, Some(204 | 304))
    }

    /// Whether it is known for a while whether the client takes its answer: over HTTP/2, where a stream has its own room
    /// (RFC 9113 §5.2). Over HTTP/1.1 what is written is given.
    pub(in crate::gateway) fn waits_for_its_client(&self) -> bool {
        self.version == Version::HTTP_2 && self.method != Method::HEAD
    }

    /// The record of a call whose answer is there whole, where it is kept until the client has that; otherwise it is
    /// written now.
    pub(in crate::gateway) fn held(mut self: Box<Self>) -> Option<Record> {
        if !self.waits_for_its_client() {
            return None;
        }
        self.is_whole();
        Some(*self)
    }

    /// The client has not taken the whole of an answer that was there; what has failed besides has failed all the same.
    pub(in crate::gateway) fn not_delivered(&mut self, cause: Option<&str>) {
        if let Some((Outcome::Success | Outcome::Error | Outcome::ToolError, _)) =
            self.ending.outcome
        {
            self.cancelled();
            self.ending.cause = cause.map(str::to_owned);
        }
    }

    /// The client went away before the answer was complete.
    pub(in crate::gateway) fn cancelled(&mut self) {
        self.ending.outcome = None;
        self.completed_at = None;
    }
}
