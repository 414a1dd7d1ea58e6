//! Reports of finished calls: metrics, guards of flags, usage by client, trace spans and the access log.

use std::time::Duration;

use super::AccessRecord;
use crate::gateway::call_context::CallRole;
use crate::gateway::guard_recorder::{GuardRecorder, call_end};
use crate::gateway::worker::DrainMode;
use crate::telemetry::clock;
use crate::telemetry::log::CallLine;
use crate::telemetry::metrics::{CallLabels, DecisionLabels, Outcome, Shard, Timing};
use crate::telemetry::spans::{Attribute, Span};
use dualgauge_model::failure::{Blame, Reason};
use dualgauge_model::rollout::{CallEnd, DecidedBy, Stage, Way};
use dualgauge_model::route::TOOL_CALL;
use dualgauge_model::trace::Trace;
use dualgauge_patterns::side::Side;

impl Drop for AccessRecord {
    fn drop(&mut self) {
        if let Some(since) = self.upstream_since {
            self.add_upstream_time(since);
        }
        match self.context.role {
            CallRole::Call => {
                self.context.worker.count_call_end(self.context.peer());
                self.report();
            }
            CallRole::SplitRequest => self.context.worker.count_call_end(self.context.peer()),
            CallRole::Candidate(_) => self.report_candidate(),
            CallRole::NotStarted | CallRole::Noise(_) => {}
        }
    }
}

impl AccessRecord {
    /// Returns the outcome and the blame. A call without an outcome was cancelled by its client, or cut by the
    /// shutdown.
    fn final_outcome(&self) -> (Outcome, Option<Blame>) {
        let default = match self.context.worker.drain_mode() {
            DrainMode::Graceful => (Outcome::Cancelled, Some(Blame::Client)),
            DrainMode::Aborting => (Outcome::Cut, Some(Blame::Proxy)),
        };
        self.outcome.kind.unwrap_or(default)
    }

    /// Counts a finished candidate: its dropped members, its failure and its outcome for the guards.
    fn report_candidate(&mut self) {
        let route = self.context.runtime_plan.route_label(self.context.route);
        let dropped = self.dropped as u64;
        let way = self.context.stage.and_then(Stage::candidate);
        let (outcome, blame) = self.final_outcome();
        let duration = self.context.elapsed();
        self.context.worker.count(|shard| {
            shard.dropped(route, dropped);
            if let Some(reason) = self.outcome.reason {
                shard.candidate_failed(route, reason);
            }
            if let Some(way) = way
                && let Some(end) = self.call_end(way, outcome, blame)
            {
                self.guard_recorder(&[])
                    .count_call(shard, way, end, duration);
            }
        });
    }

    /// Returns the outcome for the guards. The body of a passed-through RPC response is not always parsed: it may be an
    /// event stream, compressed, chunked or large.
    fn call_end(&self, way: Way, outcome: Outcome, blame: Option<Blame>) -> Option<CallEnd> {
        let end = call_end(outcome, blame)?;
        let is_unread = end == CallEnd::Served
            && self.context.side == Side::Rpc
            && way == Way::Old
            && !self.outcome.is_result_read
            && self.rpc_method.as_deref() == Some(TOOL_CALL);
        Some(if is_unread { CallEnd::ToolUnknown } else { end })
    }

    /// Returns the recorder for the flags whose guards count the call.
    fn guard_recorder<'a>(&'a self, excluded_by: &'a [usize]) -> GuardRecorder<'a> {
        GuardRecorder {
            runtime_plan: &self.context.runtime_plan,
            why: self.context.why,
            excluded_by,
        }
    }

    /// Reports a finished call to metrics, guards, log and traces.
    fn report(&mut self) {
        let total = self.completed_at.unwrap_or_else(|| self.context.elapsed());
        if std::thread::panicking() {
            // A panic of the proxy cost the client its response.
            self.outcome.kind = Some((Outcome::Failed, Some(Blame::Proxy)));
            self.outcome.reason = Some(Reason::Internal);
        }
        let (outcome, blame) = self.final_outcome();
        let labels = CallLabels {
            route: self.context.label(),
            client: self.context.runtime_plan.client_label(self.context.client),
            side: self.context.side,
            stage: self.context.stage,
            outcome,
            blame,
        };
        self.context.worker.count(|shard| {
            shard.record(
                labels,
                Timing {
                    total,
                    upstream: self.upstream,
                    head: self.head.unwrap_or(total),
                },
                self.outcome.reason,
            );
            if self.dropped > 0 {
                shard.dropped(labels.route, self.dropped as u64);
            }
            if let Some((fault, action)) = self.message.fault {
                shard.invalid_message(fault, action);
            }
            if let Some(old) = self.message.old {
                shard.old_messages(labels.route, old.transport, old.messages);
            }
            if let Some(way) = self.context.stage.and_then(Stage::control)
                && let Some(end) = self.call_end(way, outcome, blame)
            {
                let duration = self.head.unwrap_or(total);
                let recorder = self.guard_recorder(&self.excluded_by);
                recorder.count_call(shard, way, end, duration);
            }
            self.count_decision(shard, labels);
            self.count_usage(shard, labels);
        });
        if CallLine::is_wanted() {
            self.log(labels, total);
        }
        if let (Some(trace), Some(spans)) = (self.context.trace, self.context.worker.spans())
            && trace.context.is_sampled()
        {
            spans.offer(self.span(trace, labels, total));
        }
    }

    /// Counts the rule that chose the stage, and the percentages that lacked a key.
    fn count_decision(&self, shard: &mut Shard, labels: CallLabels) {
        shard.decided(DecisionLabels {
            client: labels.client,
            side: labels.side,
            by: self.context.why.decided_by(),
            flag: self
                .context
                .runtime_plan
                .flag_label(self.context.why.flag()),
        });
        if self.has_key {
            return;
        }
        let deciding_flag = self
            .context
            .why
            .flag()
            .filter(|_| self.context.why.decided_by() == DecidedBy::Keyless);
        for flag in self.excluded_by.iter().copied().chain(deciding_flag) {
            shard.keyless(self.context.runtime_plan.flag_label(Some(flag)));
        }
    }

    /// Counts which client used which route, so that operators know when a route can be removed.
    fn count_usage(&self, shard: &mut Shard, labels: CallLabels) {
        let Some(stage) = labels.stage else {
            // The proxy itself responded.
            return;
        };
        if self.context.route.is_some() || self.context.stream.is_some() {
            shard.seen(labels, stage.control(), self.context.start.wall_time);
        } else if self.context.side == Side::Rest
            && self.outcome.reason != Some(Reason::MalformedHttp)
        {
            self.count_unrouted(shard);
        }
    }

    /// Counts a REST call without a route by the prefix of routes, and by its path if the server knows that.
    fn count_unrouted(&self, shard: &mut Shard) {
        let at = self.context.start.wall_time;
        if let Some(prefix) = self.context.runtime_plan.prefix_label(self.path()) {
            shard.unrouted(prefix, at);
        }
        if !matches!(self.outcome.status, None | Some(404 | 405)) {
            let path = self.context.runtime_plan.plan.redaction.path(self.path());
            let (method, query) = (self.context.method.as_str(), self.context.target.query());
            let calls = shard.unrouted_calls();
            calls.count(method, &path, query, at);
        }
    }

    /// Returns the requested path.
    fn path(&self) -> &str {
        self.context.target.path()
    }

    /// Returns the name of the route or of the event stream.
    fn route_name(&self) -> Option<&str> {
        let plan = &self.context.runtime_plan.plan;
        match (self.context.stream, self.context.route) {
            (Some(stream), _) => plan.streams.all().get(stream).map(|one| one.name.as_str()),
            (None, Some(route)) => Some(plan.routes.route(route).name.as_str()),
            (None, None) => None,
        }
    }

    /// Returns the trace span, with OpenTelemetry's semantic conventions for HTTP and JSON-RPC.
    fn span(&self, trace: Trace, labels: CallLabels, duration: Duration) -> Span {
        let text = |text: &str| Attribute::Text(text.to_owned());
        let plan = &self.context.runtime_plan.plan;
        let mut attributes = vec![
            ("http.request.method", text(self.context.method.as_str())),
            ("url.path", text(&plan.redaction.path(self.path()))),
            (
                "dualgauge.client",
                text(plan.rollout.clients.name(self.context.client)),
            ),
            ("dualgauge.side", text(self.context.side.as_str())),
            (
                "dualgauge.decision",
                text(&plan.rollout.describe(self.context.why)),
            ),
            ("dualgauge.outcome", text(labels.outcome.as_str())),
        ];
        if self.context.side == Side::Rpc {
            attributes.push(("rpc.system.name", text("jsonrpc")));
        }
        let optional = self.optional_attributes(labels).into_iter();
        attributes.extend(optional.filter_map(|(key, value)| Some((key, value?))));
        let failed = self.outcome.reason.map(|reason| reason.row().label);
        Span {
            trace,
            name: format!(
                "{} {}",
                self.context.side,
                self.route_name().unwrap_or("unrouted")
            ),
            ended: clock::wall(),
            took: duration,
            error: failed.or(match labels.outcome {
                Outcome::Success | Outcome::Cancelled => None,
                outcome
                @ (Outcome::Error | Outcome::ToolError | Outcome::Failed | Outcome::Cut) => {
                    Some(outcome.as_str())
                }
            }),
            attributes,
        }
    }

    /// Returns the attributes of the span that not every call has.
    fn optional_attributes(&self, labels: CallLabels) -> [(&'static str, Option<Attribute>); 7] {
        let text = |text: &str| Attribute::Text(text.to_owned());
        let stage = labels.stage.map(|stage| text(stage.as_str()));
        let status = self
            .outcome
            .status
            .map(|status| Attribute::Integer(status.into()));
        let upstream = self
            .upstream
            .map(|time| Attribute::Milliseconds(time.as_secs_f64() * 1000.0));
        [
            ("http.route", self.route_name().map(text)),
            ("rpc.method", self.redacted_method().map(text)),
            ("dualgauge.stage", stage),
            ("http.response.status_code", status),
            (
                "rpc.response.status_code",
                self.outcome.code.map(|code| text(&code.to_string())),
            ),
            (
                "dualgauge.blame",
                labels.blame.map(|blame| text(blame.as_str())),
            ),
            ("dualgauge.upstream_ms", upstream),
        ]
    }

    /// Returns the RPC method, redacted where the route says so.
    fn redacted_method(&self) -> Option<&str> {
        let plan = &self.context.runtime_plan.plan;
        let route = self.context.route.map(|route| plan.routes.route(route));
        let method = self.rpc_method.as_deref()?;
        Some(plan.redaction.method(method, route))
    }

    fn log(&self, labels: CallLabels, duration: Duration) {
        let plan = &self.context.runtime_plan.plan;
        let cause = self.outcome.cause.as_deref();
        let cause = cause.map(|cause| plan.redaction.text(cause));
        CallLine {
            side: self.context.side,
            method: self.context.method.as_str(),
            path: &plan.redaction.path(self.path()),
            rpc_method: self.redacted_method(),
            route: self.route_name(),
            client: plan.rollout.clients.name(self.context.client),
            proof: self.context.proof,
            stage: labels.stage,
            decision: &plan.rollout.describe(self.context.why),
            outcome: labels.outcome,
            blame: labels.blame,
            status: self.outcome.status,
            code: self.outcome.code,
            reason: self.outcome.reason,
            upstream_status: self.outcome.upstream_status,
            cause: cause.as_deref(),
            duration,
            upstream: self.upstream,
            trace: self.context.trace.map(|trace| trace.context.trace),
            dropped: (self.dropped > 0).then_some(self.dropped as u64),
            events: self.events,
            message: self.message.fault.map(|(fault, _)| fault),
            old: self.message.old.map(|old| old.transport),
            conversions: self.conversions.get(),
        }
        .emit();
    }
}
