//! The one line of a call.

use std::borrow::Cow;
use std::time::Duration;

use memchr::memchr2;
use tracing::Level;
use tracing::dispatcher::get_default;
use tracing::level_filters::LevelFilter;

use super::format::{Fields, LineFormat, LogFields, LogLayer, label};

use crate::domain::failure::{Blame, Reason};
use crate::domain::posted::MessageFault;
use crate::domain::rollout::{Proof, Stage};
use crate::domain::side::Side;
use crate::telemetry::metrics::Outcome;

/// The target of the line, for filters.
const TARGET: &str = "dualgauge::call";

/// Characters of one text that the caller chose.
const CALLER_TEXT: usize = 200;

/// Characters of a cause, which may quote an upstream.
const CAUSE: usize = 1000;

/// What there is to say about one call. What is absent is not printed.
///
/// The line is escaped as a whole, so texts are given as they came; what is too long is cut and ends in `…`.
#[derive(Debug, Clone, Copy)]
pub struct CallLine<'a> {
    /// The language of the call.
    pub side: Side,
    /// The HTTP method.
    pub method: &'a str,
    /// The path of the request; a query that is still on it is not printed.
    pub path: &'a str,
    /// The method of the RPC call.
    pub rpc_method: Option<&'a str>,
    /// The route.
    pub route: Option<&'a str>,
    /// Who called.
    pub client: &'a str,
    /// Whether that is more than what the caller says; not printed for everyone else.
    pub proof: Proof,
    /// What happened to the call; no stage where the proxy itself answered.
    pub stage: Option<Stage>,
    /// Which rule said so, as [`crate::domain::rollout::Rollout::describe`] words it.
    pub decision: &'a str,
    /// How the call ended.
    pub outcome: Outcome,
    /// Whose fault it was, where it was one.
    pub blame: Option<Blame>,
    /// The HTTP status of the answer, where its head was sent.
    pub status: Option<u16>,
    /// The code of the RPC error in the answer.
    pub code: Option<i64>,
    /// Why the call failed.
    pub reason: Option<Reason>,
    /// The HTTP status of the upstream's answer, where the client got another one.
    pub upstream_status: Option<u16>,
    /// What only the log keeps about that.
    pub cause: Option<&'a str>,
    /// From the head of the call to the end of its answer.
    pub duration: Duration,
    /// The part of it that was spent on the upstream.
    pub upstream: Option<Duration>,
    /// The trace that the call belongs to.
    pub trace: Option<u128>,
    /// Members for which the route has no place on the other side.
    pub dropped: Option<u64>,
    /// How the message of the call differs from valid JSON-RPC 2.0.
    pub message: Option<MessageFault>,
}

impl CallLine<'_> {
    /// Whether [`CallLine::emit`] may write anything: to be asked before the texts of a line are made. A filter for the
    /// target is asked by `emit` alone.
    #[must_use]
    pub fn is_wanted() -> bool {
        LevelFilter::current() >= Level::INFO
    }

    /// Logs the call. Nothing is cut or formatted where the level is off.
    ///
    /// It is asked for as any event is, with all its fields, and written past tracing, which would hand each field over
    /// by itself: that costs more than to write them.
    pub fn emit(&self) {
        let is_asked_for = tracing::event_enabled!(
            target: TARGET,
            Level::INFO,
            side, method, path, rpc_method, route, client, proof, stage, decision, outcome, blame, status, code, reason,
            upstream_status, cause, duration_ms, upstream_ms, trace_id, dropped, message
        );
        if is_asked_for {
            get_default(|log| {
                if let Some(lines) = log.downcast_ref::<LogLayer>() {
                    lines.write((&Level::INFO, TARGET), self);
                }
            });
        }
    }
}

impl LogFields for CallLine<'_> {
    fn show<L: LineFormat>(&self, fields: &mut Fields<'_, L>) {
        fields.word(label!("side"), self.side.as_str());
        fields.text(label!("method"), &cut(self.method, CALLER_TEXT));
        fields.text(label!("path"), &cut(without_query(self.path), CALLER_TEXT));
        if let Some(method) = self.rpc_method {
            fields.text(label!("rpc_method"), &cut(method, CALLER_TEXT));
        }
        if let Some(route) = self.route {
            fields.text(label!("route"), route);
        }
        fields.text(label!("client"), self.client);
        if self.proof != Proof::None {
            fields.word(label!("proof"), self.proof.as_str());
        }
        if let Some(stage) = self.stage {
            fields.word(label!("stage"), stage.as_str());
        }
        fields.text(label!("decision"), self.decision);
        fields.word(label!("outcome"), self.outcome.as_str());
        if let Some(blame) = self.blame {
            fields.word(label!("blame"), blame.as_str());
        }
        if let Some(status) = self.status {
            fields.whole(label!("status"), status);
        }
        if let Some(code) = self.code {
            fields.whole(label!("code"), code);
        }
        if let Some(reason) = self.reason {
            fields.word(label!("reason"), reason.row().label);
        }
        if let Some(status) = self.upstream_status {
            fields.whole(label!("upstream_status"), status);
        }
        if let Some(cause) = self.cause {
            fields.text(label!("cause"), &cut(cause, CAUSE));
        }
        fields.milliseconds(label!("duration_ms"), self.duration);
        if let Some(time) = self.upstream {
            fields.milliseconds(label!("upstream_ms"), time);
        }
        if let Some(trace) = self.trace {
            fields.word(label!("trace_id"), &format!("{trace:032x}"));
        }
        if let Some(dropped) = self.dropped {
            fields.whole(label!("dropped"), dropped);
        }
        if let Some(fault) = self.message {
            fields.word(label!("message"), fault.as_str());
        }
    }
}

fn without_query(path: &str) -> &str {
    let end = memchr2(b'?', b'#', path.as_bytes());
    &path[..end.unwrap_or(path.len())]
}

/// At most so many characters of a text, and a mark where some are missing.
fn cut(text: &str, characters: usize) -> Cow<'_, str> {
    if text.len() <= characters {
        return Cow::Borrowed(text);
    }
    match text.char_indices().nth(characters) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}
