//! Failures of the transport: timeouts, broken bodies, exhausted budgets, and upstreams that do not answer.
//!
//! Used throughout `gateway`.

use std::time::Duration;

use dualgauge_model::failure::{Advice, Failure, Reason};
use dualgauge_net::{BudgetExhausted, CollectError, UploadBreak, UpstreamError, chain};

/// Returns the failure of a client that stopped sending its body.
pub(super) fn upload_stalled(limit: Duration) -> Failure {
    let message = format!("the request body stalled for {limit:?}");
    Failure::new(Reason::RequestTimeout, message)
}

/// Returns the failure of a call that exceeded its deadline while waiting for the client.
pub(super) fn total_timeout(limit: Duration) -> Failure {
    let message =
        format!("the request was not complete within {limit:?}, the time limit of a call");
    Failure::new(Reason::RequestTimeout, message)
}

/// Returns the failure for a client's body that broke off.
pub(super) fn aborted_upload(why: UploadBreak) -> Failure {
    match why {
        UploadBreak::Refused(violation) => {
            Failure::new(Reason::from(violation), violation.as_str())
        }
        UploadBreak::Cut => Failure::new(
            Reason::BodyCut,
            "the request body ended before it was complete",
        ),
        UploadBreak::TooSlow(rate) => {
            let message = format!(
                "the request body arrived more slowly than {} bytes a second",
                rate.bytes
            );
            Failure::new(Reason::RequestTimeout, message)
        }
        UploadBreak::Contended => Failure::new(
            Reason::RequestTimeout,
            "the request body arrived slowly while other calls waited for the server",
        ),
    }
}

/// Returns the failure of a server that exceeded its time limit.
pub(super) fn upstream_timeout(limit: Duration) -> Failure {
    Failure::new(
        Reason::UpstreamTimeout,
        format!("the server did not answer within {limit:?}"),
    )
}

/// Returns the failure of an exchange that the upstream did not complete.
pub(super) fn from_upstream_error(error: UpstreamError) -> Failure {
    let (reason, message) = match &error {
        UpstreamError::Unreachable { .. } => {
            (Reason::UpstreamUnreachable, "the server cannot be reached")
        }
        UpstreamError::CircuitOpen { retry_in, .. } => {
            let message = "circuit breaker open: the server keeps failing; retry later";
            let seconds = u32::try_from(retry_in.as_secs() + 1).unwrap_or(u32::MAX);
            let circuit_open = Failure::new(Reason::UpstreamCircuitOpen, message);
            return circuit_open
                .advise(Advice::RetryAfter(seconds))
                .because(chain(&error));
        }
        UpstreamError::Busy { .. } => {
            let message = "upstream concurrency limit reached; retry later";
            let busy = Failure::new(Reason::UpstreamBusy, message).advise(Advice::RetryAfter(1));
            return busy.because(chain(&error));
        }
        UpstreamError::Broken(_) => (
            Reason::UpstreamCut,
            "the server closed the connection before it answered",
        ),
        UpstreamError::Malformed(_)
        | UpstreamError::InvalidFraming(_)
        | UpstreamError::PaddedHeaderValue => (
            Reason::UpstreamMalformedHttp,
            "the server's answer is not valid HTTP",
        ),
    };
    Failure::new(reason, message).because(chain(&error))
}

/// Returns the failure of a response body that could not be read.
pub(super) fn unreadable_response(fault: CollectError) -> Failure {
    match &fault {
        CollectError::TooLarge(limit) => Failure::new(
            Reason::UpstreamTooLarge,
            format!("the server's answer is longer than {limit} bytes"),
        ),
        CollectError::NoRoom(full) => memory_exhausted(*full),
        CollectError::Cut(_) if fault.is_malformed() => Failure::new(
            Reason::UpstreamMalformedHttp,
            "the server's answer is not valid HTTP",
        )
        .because(chain(&fault)),
        CollectError::Cut(_) => Failure::new(Reason::UpstreamCut, "the server's answer broke off")
            .because(chain(&fault)),
    }
}

/// Returns the failure of an exhausted memory budget.
pub(super) fn memory_exhausted(full: BudgetExhausted) -> Failure {
    let message = "memory limit of the proxy for calls and answers reached; retry later";
    Failure::new(Reason::MemoryFull, message)
        .advise(Advice::RetryAfter(1))
        .because(full)
}
