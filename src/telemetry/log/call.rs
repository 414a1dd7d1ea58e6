//! The access log line of a call.

use std::borrow::Cow;
use std::time::Duration;

use memchr::memchr2;
use tracing::Level;
use tracing::dispatcher::get_default;
use tracing::level_filters::LevelFilter;

use super::format::{Fields, LineFormat, LogFields, LogLayer, label};

use crate::telemetry::metrics::Outcome;
use dualgauge_model::dialect::OldTransport;
use dualgauge_model::failure::{Blame, Reason};
use dualgauge_model::mcp::BridgeActions;
use dualgauge_model::posted::MessageFault;
use dualgauge_model::rollout::{Proof, Stage};
use dualgauge_patterns::side::Side;

/// The target of the line, for filters.
const TARGET: &str = "dualgauge::call";

/// The maximum number of characters of a text from the caller.
const CALLER_TEXT: usize = 200;

/// The maximum number of characters of a cause, which may quote an upstream.
const CAUSE: usize = 1000;

/// The access log line of one call. Absent fields are not printed.
///
/// The whole line is escaped, so texts are passed unescaped. Texts that are too long are cut and end in `…`.
#[derive(Debug, Clone, Copy)]
pub struct CallLine<'a> {
    /// The protocol side of the call.
    pub side: Side,
    /// The HTTP method.
    pub method: &'a str,
    /// The path of the request; a query in it is not printed.
    pub path: &'a str,
    /// The method of the RPC call.
    pub rpc_method: Option<&'a str>,
    /// The route.
    pub route: Option<&'a str>,
    /// The client.
    pub client: &'a str,
    /// The proof of the client's identity; not printed if there is none.
    pub proof: Proof,
    /// The stage of the call; absent if the proxy itself responded.
    pub stage: Option<Stage>,
    /// The rule that chose the stage, as worded by [`dualgauge_model::rollout::Rollout::describe`].
    pub decision: &'a str,
    /// The outcome of the call.
    pub outcome: Outcome,
    /// The party at fault, if any.
    pub blame: Option<Blame>,
    /// The HTTP status of the response, if its head was sent.
    pub status: Option<u16>,
    /// The code of the RPC error in the response.
    pub code: Option<i64>,
    /// The reason of a failure.
    pub reason: Option<Reason>,
    /// The HTTP status of the upstream, if the client received a different one.
    pub upstream_status: Option<u16>,
    /// Details of the failure that only the log receives.
    pub cause: Option<&'a str>,
    /// The time from the head of the call to the end of the response.
    pub duration: Duration,
    /// The part of the duration spent on the upstream.
    pub upstream: Option<Duration>,
    /// The trace of the call.
    pub trace: Option<u128>,
    /// The number of members that the route cannot map to the other side.
    pub dropped: Option<u64>,
    /// The number of events of a response that streamed.
    pub events: Option<u64>,
    /// The deviation of the message from valid JSON-RPC 2.0.
    pub message: Option<MessageFault>,
    /// The transport of a message of an old dialect.
    pub old: Option<OldTransport>,
    /// The conversions between the eras of MCP; not printed if there is none.
    pub conversions: BridgeActions,
}

impl CallLine<'_> {
    /// Returns true if [`CallLine::emit`] may write the line: callers check it before they build its texts. Only `emit`
    /// checks a filter for the target.
    #[must_use]
    pub fn is_wanted() -> bool {
        LevelFilter::current() >= Level::INFO
    }

    /// Logs the call. Nothing is cut or formatted if the level is off.
    ///
    /// The filter is checked as for any event, with all fields. The line then bypasses tracing, which would pass each
    /// field separately: that costs more than writing them.
    pub fn emit(&self) {
        let is_enabled = tracing::event_enabled!(
            target: TARGET,
            Level::INFO,
            side, method, path, rpc_method, route, client, proof, stage, decision, outcome, blame, status, code, reason,
            upstream_status, cause, duration_ms, upstream_ms, trace_id, dropped, events, message, old, conversions
        );
        if is_enabled {
            get_default(|log| {
                if let Some(lines) = log.downcast_ref::<LogLayer>() {
                    lines.write(Level::INFO, TARGET, self);
                }
            });
        }
    }
}

impl LogFields for CallLine<'_> {
    fn write<L: LineFormat>(&self, fields: &mut Fields<'_, L>) {
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
            fields.integer(label!("status"), status);
        }
        if let Some(code) = self.code {
            fields.integer(label!("code"), code);
        }
        if let Some(reason) = self.reason {
            fields.word(label!("reason"), reason.row().label);
        }
        if let Some(status) = self.upstream_status {
            fields.integer(label!("upstream_status"), status);
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
        if let Some(conversions) = self.conversions.words() {
            fields.word(label!("conversions"), &conversions);
        }
        if let Some(dropped) = self.dropped {
            fields.integer(label!("dropped"), dropped);
        }
        if let Some(events) = self.events {
            fields.integer(label!("events"), events);
        }
        if let Some(fault) = self.message {
            fields.word(label!("message"), fault.as_str());
        }
        if let Some(transport) = self.old {
            fields.word(label!("old"), transport.as_str());
        }
    }
}

fn without_query(path: &str) -> &str {
    let end = memchr2(b'?', b'#', path.as_bytes());
    &path[..end.unwrap_or(path.len())]
}

/// Returns at most `characters` characters of a text, with a mark if some are missing.
fn cut(text: &str, characters: usize) -> Cow<'_, str> {
    if text.len() <= characters {
        return Cow::Borrowed(text);
    }
    match text.char_indices().nth(characters) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}
