//! The state of the whole migration, for the console.

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;

use super::replication::REFUSED;
use super::state::Control;
use crate::config::problem::{Problem, SourceLocation};
use crate::server::admin::{
    AttentionKind, AttentionView, MAX_ATTENTION, OverviewView, ProblemView, Readiness,
    ReloadCounts, ServedCalls, Severity, StatusView, TimelineView,
};
use crate::telemetry::clock::{Rfc3339, millis, rfc3339_ms};
use dualgauge_model::compare::Mismatches;
use dualgauge_model::lifecycle::{Usage, UsageTotals};
use dualgauge_model::plan::Plan;

/// The time for which an overview is answered again.
const FRESH_MS: u64 = 900;

/// The last overview, which all streams share.
#[derive(Debug, Default)]
pub(super) struct OverviewCache(Option<CachedOverview>);

#[derive(Debug)]
struct CachedOverview {
    at_ms: u64,
    revision: u64,
    plan: Arc<Plan>,
    page: Bytes,
}

impl OverviewCache {
    /// Returns the last overview, if nothing of it can have changed much.
    pub(super) fn fresh(&self, control: &Control, at: SystemTime) -> Option<Bytes> {
        let last = self.0.as_ref()?;
        // An overview of a later time is stale: the clock was set back.
        let age = millis(at).checked_sub(last.at_ms);
        let is_fresh = age.is_some_and(|age| age < FRESH_MS)
            && last.revision == control.revision
            && Arc::ptr_eq(&last.plan, &control.plan);
        is_fresh.then(|| last.page.clone())
    }

    /// Renders and stores an overview.
    pub(super) fn keep(&mut self, control: &Control, view: &OverviewView, at: SystemTime) -> Bytes {
        let mut text = serde_json::to_vec(view).unwrap_or_default();
        text.push(b'\n');
        let page = Bytes::from(text);
        self.0 = Some(CachedOverview {
            at_ms: millis(at),
            revision: control.revision,
            plan: control.plan(),
            page: page.clone(),
        });
        page
    }
}

impl Control {
    /// Returns the overview, with the readiness and the mismatches of the workers.
    pub(super) fn overview(&self, readiness: Readiness, mismatches: &Mismatches) -> OverviewView {
        let mut attention = self.attention(readiness);
        attention.extend(differences(mismatches));
        attention.sort_by_key(|item| (item.severity, item.kind));
        let more = attention.len().saturating_sub(MAX_ATTENTION);
        attention.truncate(MAX_ATTENTION);
        let mut calls = ServedCalls::default();
        for totals in self.totals(Usage::add_by_client).values() {
            add(&mut calls, totals);
        }
        OverviewView {
            revision: self.revision,
            reloads: self.reloads.succeeded,
            routes: self.config.routes.len(),
            clients: self.plan.rollout.clients.all().len(),
            flags: self.flags.len(),
            kill: self.kill_over(self.overrides.kill.as_ref()),
            calls,
            timeline: TimelineView {
                seconds: self.timeline.seconds(),
                intervals: self.timeline.intervals().to_vec(),
            },
            attention,
            more,
        }
    }

    /// Returns the items that need attention, without differences.
    fn attention(&self, readiness: Readiness) -> Vec<AttentionView> {
        let mut items = Vec::new();
        if let Some(kill) = self.kill_over(self.overrides.kill.as_ref()) {
            let why = kill.why.map_or(String::new(), |why| format!(": {why}"));
            items.push(AttentionView {
                severity: Severity::Error,
                kind: AttentionKind::KillSwitch,
                subject: None,
                text: format!("the kill switch is on, by {}{why}", kill.who),
                at: Some(kill.at),
            });
        }
        items.extend(self.flags.iter().filter_map(|flag| {
            let name = &flag.name.value;
            let stands = self.overrides.of(name, &flag.text_hash);
            let trip = stands.and_then(|stands| stands.trip.as_ref());
            let here = self.tripped_here.get(name);
            let reason = trip.map(|trip| &trip.reason).or(here)?;
            Some(AttentionView {
                severity: Severity::Error,
                kind: AttentionKind::Tripped,
                subject: Some(name.clone()),
                text: format!("the guard has tripped the flag: {reason}"),
                at: trip.map(|trip| trip.at.clone()),
            })
        }));
        if let Some(problems) = &self.refused {
            let count = problems.iter().count();
            let first = problems.iter().next().map(ToString::to_string);
            items.push(AttentionView {
                severity: Severity::Error,
                kind: AttentionKind::Configuration,
                subject: None,
                text: format!(
                    "the configuration has {count} problem{}; the previous one stays in force: {}",
                    if count == 1 { "" } else { "s" },
                    first.unwrap_or_default()
                ),
                at: None,
            });
        }
        let readiness = [
            (Severity::Error, readiness.obstacles),
            (Severity::Warning, readiness.notes),
        ];
        // The problems themselves are listed above.
        let is_new = |text: &String| text != REFUSED;
        for (severity, texts) in readiness {
            items.extend(texts.into_iter().filter(is_new).map(|text| AttentionView {
                severity,
                kind: AttentionKind::Readiness,
                subject: None,
                text,
                at: None,
            }));
        }
        items
    }

    /// Returns the state of the process and of its configuration.
    pub(super) fn status(&self, readiness: Readiness) -> StatusView {
        let flags = self.config.rollout.flags.iter().map(|file| &file.value);
        StatusView {
            version: env!("CARGO_PKG_VERSION"),
            replica: self.replica().to_owned(),
            revision: self.revision,
            loaded_at: Rfc3339(self.reloads.loaded_at).to_string(),
            reloads: ReloadCounts {
                succeeded: self.reloads.succeeded,
                failed: self.reloads.failed,
            },
            files: (self.config.files.iter().chain(flags))
                .map(|path| path.display().to_string())
                .collect(),
            upstreams: self.upstreams(),
            defaults: self.defaults(),
            problems: self.refused.iter().flatten().map(problem).collect(),
            obstacles: readiness.obstacles,
            notes: readiness.notes,
        }
    }
}

pub(super) fn add(calls: &mut ServedCalls, totals: &UsageTotals) {
    calls.old = calls.old.saturating_add(totals.old);
    calls.new = calls.new.saturating_add(totals.new);
    calls.refused = calls.refused.saturating_add(totals.refused);
}

/// Returns an item for each route with failed candidates, and for each route with mismatches.
fn differences(mismatches: &Mismatches) -> Vec<AttentionView> {
    let mut items = Vec::new();
    let item = |kind, route: &str, text: String, last_ms| AttentionView {
        severity: Severity::Warning,
        kind,
        subject: Some(route.to_owned()),
        text,
        at: Some(rfc3339_ms(last_ms)),
    };
    for route in mismatches.routes() {
        let failed = mismatches.failed(route).map(|failed| failed.tally());
        if let Some(failed) = failed.filter(|failed| failed.count > 0) {
            let text = match failed.count {
                1 => "1 candidate failed".to_owned(),
                count => format!("{count} candidates failed"),
            };
            items.push(item(
                AttentionKind::FailedCandidates,
                route,
                text,
                failed.last_ms,
            ));
        }
        let fields: Vec<_> = mismatches.fields(route).collect();
        if let Some(last_ms) = fields.iter().map(|(_, field)| field.tally().last_ms).max() {
            let text = match fields[..] {
                [(name, _)] => format!("the responses differ at {name}"),
                _ => format!("the responses differ in {} fields", fields.len()),
            };
            items.push(item(AttentionKind::Mismatches, route, text, last_ms));
        }
    }
    items
}

fn problem(problem: &Problem) -> ProblemView {
    let (file, line) = match &problem.place {
        SourceLocation::File { path, position } => (
            Some(path.display().to_string()),
            position.map(|position| position.line),
        ),
        SourceLocation::Default
        | SourceLocation::Variable(_)
        | SourceLocation::Argument(_)
        | SourceLocation::Flip(_)
        | SourceLocation::Source(_) => (None, None),
    };
    ProblemView {
        place: problem.place.to_string(),
        file,
        line,
        key: problem.key.clone(),
        message: problem.message.clone(),
        hint: problem.hint.clone(),
    }
}
