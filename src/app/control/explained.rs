//! The explanation of a hypothetical call under the plan in force, including runtime changes.

use http::Uri;
use sha2::{Digest as _, Sha256};

use super::state::Control;
use crate::server::admin::HypotheticalCall;
use crate::telemetry::clock;
use dualgauge_model::explain::{ExplainEnvironment, ExplainRequest, Explanation, explain};
use dualgauge_model::plan::Plan;
use dualgauge_model::rollout::overrides::ChangeMeta;
use dualgauge_model::rollout::{Kill, SourcedFlag};
use dualgauge_model::routing::RequestHead;

/// Explains a call. Nothing is sent, counted or changed.
pub(super) fn explained(plan: &Plan, call: &HypotheticalCall) -> Vec<Explanation> {
    let rpc = plan.face.paths.first();
    let rpc = || {
        rpc.and_then(|path| path.parse().ok())
            .unwrap_or(Uri::from_static("/"))
    };
    let target = call.target.clone().unwrap_or_else(rpc);
    let asked = ExplainRequest {
        head: RequestHead {
            method: &call.method,
            uri: &target,
            headers: &call.headers,
        },
        peer: call.from,
        body: &call.body,
        reply: None,
    };
    let environment = ExplainEnvironment {
        digest: |key| Sha256::digest(key).into(),
        now: clock::rfc3339,
        unix_seconds: clock::whole_unix_seconds,
    };
    explain(plan, asked, environment)
}

impl Control {
    /// Explains a call, with the runtime changes that its decisions rest on.
    pub(super) fn explained(&self, call: &HypotheticalCall) -> Vec<Explanation> {
        let mut explanations = explained(&self.plan, call);
        let decisions = explanations.iter_mut();
        for decision in decisions.filter_map(|one| one.decision.as_mut()) {
            decision.changed = match &decision.flag {
                Some(flag) => self.changed(flag),
                None => self.kill_in_words(),
            };
            for passed in &mut decision.passed_over {
                passed.changed = self.changed(&passed.flag);
            }
        }
        explanations
    }

    /// Describes the kill switch if it is on, since nothing else decides then.
    fn kill_in_words(&self) -> Option<String> {
        if self.plan.rollout.kill == Kill::Off {
            return None;
        }
        let by = self.kill_over(self.overrides.kill.as_ref())?;
        Some(format!("the kill switch was thrown by {}", signed(&by)))
    }

    /// Describes the runtime change of a flag.
    fn changed(&self, flag: &str) -> Option<String> {
        let stands = self.overrides.of(flag, &self.text_hash(flag));
        let trip = stands.and_then(|stands| stands.trip.as_ref());
        if let Some(trip) = trip {
            return Some(format!("tripped {}: {}", trip.at, trip.reason));
        }
        if let Some(reason) = self.tripped_here.get(flag) {
            return Some(format!("tripped: {reason}"));
        }
        if let Some((sourced, url)) = self.source.of(flag) {
            let SourcedFlag { value, at } = sourced;
            return Some(format!("set to {value} by the source {url} at {at}"));
        }
        if let Some(flip) = stands.and_then(|stands| stands.flip.as_ref()) {
            let (stage, percent) = (flip.stage.as_str(), flip.percent);
            return Some(format!(
                "flipped to {stage} {percent} % by {}",
                signed(&flip.by)
            ));
        }
        let ramp = stands.and_then(|stands| stands.ramp)?;
        Some(format!("step {} of its ramp", ramp.step + 1))
    }
}

fn signed(by: &ChangeMeta) -> String {
    match &by.why {
        Some(why) => format!("{} {} ({why})", by.who, by.at),
        None => format!("{} {}", by.who, by.at),
    }
}
