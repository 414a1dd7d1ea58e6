//! What the counts say of each route: who still calls its old side, and whether it may be deleted.
//!
//! Laws: a route is safe to delete only where it was counted without a break for the time asked for, and within that
//! time nobody has called its deprecated side, nobody's calls were translated for it, and no call of no route came
//! under its prefix. More calls, or less watching, never make a route safer.

use serde::{Deserialize, Serialize};

use super::usage::{ClientUsage, Usage, UsageCount};
use crate::domain::plan::Plan;
use crate::domain::rollout::Glob;
use crate::domain::route::Route;
use crate::domain::side::Side;
use crate::domain::time::Timestamp;

/// What is asked.
#[derive(Debug, Clone)]
pub struct ReportQuery {
    /// Which routes.
    pub route: Glob,
    /// How long nobody may have called, in seconds.
    pub idle: u64,
    /// What time it is.
    pub at: Timestamp,
}

/// What the counts say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageReport {
    /// When it was made.
    pub at: String,
    /// How long nobody may have called, in seconds.
    pub idle_seconds: u64,
    /// The routes that were asked for, in the order of the plan.
    pub routes: Vec<RouteReport>,
}

/// What the counts say of a route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteReport {
    /// Its name.
    pub route: String,
    /// Its REST side.
    pub rest: String,
    /// Its RPC side.
    pub rpc: String,
    /// What was announced, if anything.
    pub deprecated: Option<DeprecationReport>,
    /// Whether it may be deleted.
    pub verdict: DeletionVerdict,
    /// Why, in words; empty where it is safe.
    pub reasons: Vec<String>,
    /// Who has called it.
    pub callers: Vec<CallerReport>,
    /// What the verdict stands on.
    pub evidence: UsageEvidence,
}

/// Whether a route may be deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeletionVerdict {
    /// Nobody would notice.
    #[serde(rename = "safe to delete")]
    Safe,
    /// Somebody would.
    #[serde(rename = "not yet")]
    NotYet,
    /// Nobody has looked for long enough.
    #[serde(rename = "unknown")]
    Unknown,
    /// Nobody has announced its end.
    #[serde(rename = "not deprecated")]
    NotDeprecated,
}

impl DeletionVerdict {
    /// The words used in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            DeletionVerdict::Safe => "safe to delete",
            DeletionVerdict::NotYet => "not yet",
            DeletionVerdict::Unknown => "unknown",
            DeletionVerdict::NotDeprecated => "not deprecated",
        }
    }
}

/// What was announced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeprecationReport {
    /// The side whose clients are told.
    pub side: String,
    /// Since when.
    pub since: String,
    /// When it is expected to stop answering.
    pub sunset: Option<String>,
}

/// The calls of a client on a side of a route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallerReport {
    /// Who.
    pub client: String,
    /// In which language.
    pub side: String,
    /// Served by the upstream of that side.
    pub old: CountReport,
    /// Translated.
    pub new: CountReport,
    /// Refused: retired, or browned out.
    pub refused: CountReport,
    /// Those of all of them that got the result of a tool that says that it failed; left out where there were none.
    #[serde(default, skip_serializing_if = "CountReport::is_empty")]
    pub tool_errors: CountReport,
}

/// How often, and when last.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountReport {
    /// How many calls.
    pub calls: u64,
    /// When the last one began.
    pub last: Option<String>,
}

impl CountReport {
    /// Returns whether there was no call.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == CountReport::default()
    }
}

/// What a verdict stands on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageEvidence {
    /// Since when the route was counted without a break.
    pub observed_since: Option<String>,
    /// For how long, in seconds.
    pub watched_seconds: u64,
    /// How many replicas have counted.
    pub replicas: usize,
    /// When a replica did not count, within the time that nobody may have called.
    pub gaps: Vec<String>,
    /// Calls of no route that may have meant this one; none where its RPC side is the deprecated one.
    pub unrouted: Option<UnroutedReport>,
}

/// Calls of no route under the prefix of a route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnroutedReport {
    /// The prefix.
    pub prefix: String,
    /// The calls.
    pub calls: u64,
    /// When the last one began.
    pub last: Option<String>,
}

/// Tells what the counts say of the routes of a plan.
#[must_use]
pub fn report(plan: &Plan, usage: &Usage, question: &ReportQuery) -> UsageReport {
    let routes = plan.routes.routes().iter().enumerate();
    let usage = &usage.clone().until(question.at);
    let asked = routes.filter(|(_, route)| question.route.fits(&route.name));
    let told = asked.map(|(index, route)| {
        let of_route = RouteUsage {
            plan,
            usage,
            question,
            index,
            route,
        };
        of_route.report()
    });
    UsageReport {
        at: question.at.to_string(),
        idle_seconds: question.idle,
        routes: told.collect(),
    }
}

/// One route, and all that is known of it.
struct RouteUsage<'a> {
    plan: &'a Plan,
    usage: &'a Usage,
    question: &'a ReportQuery,
    index: usize,
    route: &'a Route,
}

impl RouteUsage<'_> {
    fn report(&self) -> RouteReport {
        let deprecated = self.plan.lifecycle.routes.get(self.index);
        let said = deprecated.and_then(Option::as_ref).map(|it| it.said());
        let (verdict, reasons) = match said {
            Some(said) => self.judge(said.side),
            None => (DeletionVerdict::NotDeprecated, Vec::new()),
        };
        RouteReport {
            route: self.route.name.clone(),
            rest: self.route.rest.clone(),
            rpc: self.route.rpc.clone(),
            verdict,
            reasons,
            callers: self.callers(),
            evidence: self.evidence(said.map_or(Side::Rest, |said| said.side)),
            deprecated: said.map(|said| DeprecationReport {
                side: said.side.as_str().to_owned(),
                since: said.since.to_string(),
                sunset: said.sunset.map(|sunset| sunset.to_string()),
            }),
        }
    }

    /// The first moment of the time in which nobody may have called.
    fn horizon(&self) -> Timestamp {
        self.question.at.before(self.question.idle)
    }

    fn judge(&self, side: Side) -> (DeletionVerdict, Vec<String>) {
        let mut calls = Vec::new();
        for (client, of, seen) in self.usage.callers(&self.route.name) {
            calls.extend(self.still_calls(side, (client, of, seen)));
        }
        if let Some((prefix, count)) = self.unrouted(side)
            && let Some(ago) = self.ago(&count)
        {
            calls.push(format!(
                "calls of no route came under `{prefix}`, the last {ago}; they may have meant this one"
            ));
        }
        if !calls.is_empty() {
            return (DeletionVerdict::NotYet, calls);
        }
        let doubts = self.gaps_in_evidence();
        if doubts.is_empty() {
            (DeletionVerdict::Safe, doubts)
        } else {
            (DeletionVerdict::Unknown, doubts)
        }
    }

    /// Why one caller would notice.
    fn still_calls(
        &self,
        side: Side,
        (client, of, seen): (&str, Side, &ClientUsage),
    ) -> Option<String> {
        if of == side {
            let ago = self.ago(&seen.all())?;
            return Some(format!("`{client}` called the {side} side, last {ago}"));
        }
        // Without the route, these calls would not find the server that has served them.
        let ago = self.ago(&seen.new)?;
        Some(format!(
            "calls of `{client}` on the {of} side were translated for the {side} upstream, last {ago}"
        ))
    }

    /// How long ago the last of some calls began, if that is too recent.
    fn ago(&self, count: &UsageCount) -> Option<String> {
        let last = count.last.filter(|last| *last >= self.horizon())?;
        let ago = span(self.question.at.since(last));
        Some(format!("{ago} ago ({last})"))
    }

    /// Why nobody can know.
    fn gaps_in_evidence(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        let watched = self.observed_since();
        let wanted = span(self.question.idle);
        match watched {
            None => doubts.push("nobody counts its calls".to_owned()),
            Some(since) if since > self.horizon() => {
                let known = span(self.question.at.since(since));
                doubts.push(format!(
                    "its calls are counted without a break for {known} only, not for {wanted}"
                ));
            }
            Some(_) => {}
        }
        let gaps = self.gaps().into_iter();
        doubts.extend(gaps.map(|gap| format!("there is a gap in watching: {gap}")));
        doubts
    }

    /// Since when this route, as it is, was counted by somebody at every moment.
    fn observed_since(&self) -> Option<Timestamp> {
        let known = self.usage.known_since(self.route)?;
        let unbroken = self.usage.observation().unbroken_since(self.question.at)?;
        Some(unbroken.max(known))
    }

    fn gaps(&self) -> Vec<String> {
        let gaps = self.usage.observation().gaps_since(self.horizon());
        let told = gaps.into_iter().map(|(replica, gap)| {
            format!("replica `{replica}` from {} to {}", gap.from, gap.until)
        });
        told.collect()
    }

    /// The calls of no route that may have meant a REST side.
    fn unrouted(&self, side: Side) -> Option<(&str, UsageCount)> {
        let prefix = self.plan.lifecycle.prefixes.of_route(self.index);
        (side == Side::Rest).then(|| (prefix, self.usage.under(prefix)))
    }

    fn callers(&self) -> Vec<CallerReport> {
        let callers = self.usage.callers(&self.route.name);
        let told = callers.map(|(client, side, seen)| CallerReport {
            client: client.to_owned(),
            side: side.as_str().to_owned(),
            old: last_call(&seen.old),
            new: last_call(&seen.new),
            refused: last_call(&seen.refused),
            tool_errors: last_call(&seen.tool_errors),
        });
        told.collect()
    }

    fn evidence(&self, side: Side) -> UsageEvidence {
        let watched = self.observed_since();
        let unrouted = self.unrouted(side);
        UsageEvidence {
            observed_since: watched.map(|since| since.to_string()),
            watched_seconds: watched.map_or(0, |since| self.question.at.since(since)),
            replicas: self.usage.observation().replicas().count(),
            gaps: self.gaps(),
            unrouted: unrouted.map(|(prefix, count)| UnroutedReport {
                prefix: prefix.to_owned(),
                calls: count.calls,
                last: count.last.map(|last| last.to_string()),
            }),
        }
    }
}

fn last_call(count: &UsageCount) -> CountReport {
    CountReport {
        calls: count.calls,
        last: count.last.map(|last| last.to_string()),
    }
}

/// A time for people, in its largest whole unit.
#[must_use]
pub fn span(seconds: u64) -> String {
    const UNITS: [(u64, &str); 4] = [
        (86_400, "day"),
        (3_600, "hour"),
        (60, "minute"),
        (1, "second"),
    ];
    let fits = UNITS.into_iter().find(|(length, _)| seconds >= *length);
    let (length, name) = fits.unwrap_or((1, "second"));
    let count = seconds / length;
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {name}{plural}")
}

/// Reads a time that nobody may have called in, such as `30d`, `12h`, `90m` or `45s`: from a second to ten years.
#[must_use]
pub fn parse_idle(text: &str) -> Option<u64> {
    const LONGEST: u64 = 3_650 * 86_400;
    let unit = text.chars().next_back()?;
    let length: u64 = match unit {
        'd' => 86_400,
        'h' => 3_600,
        'm' => 60,
        's' => 1,
        _ => return None,
    };
    let digits = &text[..text.len() - 1];
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let seconds = digits.parse::<u64>().ok()?.checked_mul(length)?;
    (1..=LONGEST).contains(&seconds).then_some(seconds)
}
