//! The usage report of each route: the clients that still call its old side, and whether the route may be deleted.
//!
//! Laws: a route is safe to delete only if it was counted without a break for the requested time, and in that time no
//! client called its deprecated side, no call was translated for it, and no unrouted call had its prefix.
//! More calls, or less observed time, never make a route safer.
//!
//! Used by `app::control::task`.

use serde::{Deserialize, Serialize};

use super::era_report::{EraReport, era_report};
use super::usage::{ClientUsage, Usage, UsageCount};
use crate::plan::Plan;
use crate::rollout::Glob;
use crate::route::Route;
use crate::time::Timestamp;
use dualgauge_patterns::side::Side;

/// The time without calls that makes a route safe to delete if a query does not say, in seconds: 30 days.
pub const DEFAULT_IDLE: u64 = 30 * 86_400;

/// The parameters of a report.
#[derive(Debug, Clone)]
pub struct ReportQuery {
    /// The routes to report.
    pub route: Glob,
    /// The time without calls that makes a route safe to delete, in seconds.
    pub idle: u64,
    /// The current time.
    pub at: Timestamp,
}

/// The usage of the requested routes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageReport {
    /// The time of the report.
    pub at: String,
    /// The required time without calls, in seconds.
    pub idle_seconds: u64,
    /// The requested routes, in the order of the plan.
    pub routes: Vec<RouteReport>,
    /// The eras of MCP clients; absent in the answer of an earlier version.
    #[serde(default)]
    pub eras: Option<EraReport>,
}

/// The usage of one route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteReport {
    /// Its name.
    pub route: String,
    /// Its REST side.
    pub rest: String,
    /// Its RPC side.
    pub rpc: String,
    /// The announced deprecation, if any.
    pub deprecated: Option<DeprecationReport>,
    /// The verdict on deletion.
    pub verdict: DeletionVerdict,
    /// The reasons of the verdict, for people; empty where it is safe.
    pub reasons: Vec<String>,
    /// The clients that have called it.
    pub callers: Vec<CallerReport>,
    /// The evidence for the verdict.
    pub evidence: UsageEvidence,
}

/// The verdict on the deletion of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeletionVerdict {
    /// No client would notice the deletion.
    #[serde(rename = "safe to delete")]
    Safe,
    /// A client still depends on the route.
    #[serde(rename = "not yet")]
    NotYet,
    /// Calls were not counted for long enough to decide.
    #[serde(rename = "unknown")]
    Unknown,
    /// The route has no announced deprecation.
    #[serde(rename = "not deprecated")]
    NotDeprecated,
}

impl DeletionVerdict {
    /// Returns the word used in reports.
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

/// An announced deprecation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeprecationReport {
    /// The deprecated side.
    pub side: String,
    /// The start of the deprecation.
    pub since: String,
    /// The time when it is expected to stop answering.
    pub sunset: Option<String>,
}

/// The calls of a client on one side of a route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallerReport {
    /// The name of the client.
    pub client: String,
    /// The side that the client called.
    pub side: String,
    /// Calls served by the upstream of that side.
    pub old: CountReport,
    /// Calls translated for the upstream of the other side.
    pub new: CountReport,
    /// Calls refused: retired, or in a brownout.
    pub refused: CountReport,
    /// Calls, of all of these, that got a tool result with an error; omitted where there were none.
    #[serde(default, skip_serializing_if = "CountReport::is_empty")]
    pub tool_errors: CountReport,
}

/// A number of calls, with the time of the last one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountReport {
    /// The number of calls.
    pub calls: u64,
    /// The time when the last one began.
    pub last: Option<String>,
}

impl CountReport {
    /// Returns true when there was no call.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == CountReport::default()
    }
}

/// The evidence for a verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageEvidence {
    /// The time since which the route was counted without a break.
    pub watched_since: Option<String>,
    /// The length of that time, in seconds.
    pub watched_seconds: u64,
    /// The number of replicas that have counted.
    pub replicas: usize,
    /// The gaps in which a replica did not count, within the requested time.
    pub gaps: Vec<String>,
    /// Calls of no route that may have meant this one; none where the RPC side is deprecated.
    pub unrouted: Option<UnroutedReport>,
}

/// Calls of no route under the prefix of a route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnroutedReport {
    /// The prefix.
    pub prefix: String,
    /// The number of calls.
    pub calls: u64,
    /// The time when the last one began.
    pub last: Option<String>,
}

/// Reports the usage of the routes of a plan.
#[must_use]
pub fn report(plan: &Plan, usage: &Usage, query: &ReportQuery) -> UsageReport {
    let routes = plan.routes.routes().iter().enumerate();
    let usage = &usage.clone().until(query.at);
    let requested = routes.filter(|(_, route)| query.route.fits(&route.name));
    let reports = requested.map(|(index, route)| {
        let of_route = RouteUsage {
            plan,
            usage,
            query,
            index,
            route,
        };
        of_route.report()
    });
    UsageReport {
        at: query.at.to_string(),
        idle_seconds: query.idle,
        routes: reports.collect(),
        eras: Some(era_report(usage, query)),
    }
}

/// One route, with the inputs of its report.
struct RouteUsage<'a> {
    plan: &'a Plan,
    usage: &'a Usage,
    query: &'a ReportQuery,
    index: usize,
    route: &'a Route,
}

impl RouteUsage<'_> {
    fn report(&self) -> RouteReport {
        let deprecated = self.plan.lifecycle.routes.get(self.index);
        let announcement = deprecated
            .and_then(Option::as_ref)
            .map(|it| it.announcement());
        let (verdict, reasons) = match announcement {
            Some(announcement) => self.judge(announcement.side),
            None => (DeletionVerdict::NotDeprecated, Vec::new()),
        };
        RouteReport {
            route: self.route.name.clone(),
            rest: self.route.rest.clone(),
            rpc: self.route.rpc.clone(),
            verdict,
            reasons,
            callers: self.callers(),
            evidence: self
                .evidence(announcement.map_or(Side::Rest, |announcement| announcement.side)),
            deprecated: announcement.map(|announcement| DeprecationReport {
                side: announcement.side.as_str().to_owned(),
                since: announcement.since.to_string(),
                sunset: announcement.sunset.map(|sunset| sunset.to_string()),
            }),
        }
    }

    /// Returns the start of the requested time without calls.
    fn horizon(&self) -> Timestamp {
        self.query.at.before(self.query.idle)
    }

    fn judge(&self, side: Side) -> (DeletionVerdict, Vec<String>) {
        let mut calls = Vec::new();
        for (client, of, seen) in self.usage.callers(&self.route.name) {
            calls.extend(self.still_calls(side, client, of, seen));
        }
        if let Some((prefix, count)) = self.unrouted(side)
            && let Some(ago) = self.ago(&count)
        {
            calls.push(format!(
                "calls without a route arrived under `{prefix}`, the last {ago}; they may belong to this route"
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

    /// Returns the reason why a caller would notice the deletion.
    fn still_calls(
        &self,
        side: Side,
        client: &str,
        of: Side,
        seen: &ClientUsage,
    ) -> Option<String> {
        if of == side {
            let ago = self.ago(&seen.all())?;
            return Some(format!("`{client}` called the {side} side, last {ago}"));
        }
        // Without the route, these calls would not reach the server that served them.
        let ago = self.ago(&seen.new)?;
        Some(format!(
            "calls of `{client}` on the {of} side were translated for the {side} upstream, last {ago}"
        ))
    }

    /// Returns the age of the last call, for people, if it lies within the requested time.
    fn ago(&self, count: &UsageCount) -> Option<String> {
        let last = count.last.filter(|last| *last >= self.horizon())?;
        let ago = span(self.query.at.since(last));
        Some(format!("{ago} ago ({last})"))
    }

    /// Returns the reasons why the evidence allows no verdict.
    fn gaps_in_evidence(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        let observed = self.observed_since();
        let wanted = span(self.query.idle);
        match observed {
            None => doubts.push("no replica counts its calls".to_owned()),
            Some(since) if since > self.horizon() => {
                let known = span(self.query.at.since(since));
                doubts.push(format!(
                    "its calls have been counted without a gap for {known} only, not for {wanted}"
                ));
            }
            Some(_) => {}
        }
        let gaps = self.gaps().into_iter();
        doubts.extend(gaps.map(|gap| format!("there is a gap in the counts: {gap}")));
        doubts
    }

    /// Returns the time since which this route, in its present form, was counted without a break.
    fn observed_since(&self) -> Option<Timestamp> {
        let known = self.usage.known_since(self.route)?;
        let unbroken = self.usage.observation().unbroken_since(self.query.at)?;
        Some(unbroken.max(known))
    }

    fn gaps(&self) -> Vec<String> {
        let gaps = self.usage.observation().gaps_since(self.horizon());
        let reports = gaps.into_iter().map(|(replica, gap)| {
            format!("replica `{replica}` from {} to {}", gap.from, gap.until)
        });
        reports.collect()
    }

    /// Returns the calls of no route that may have meant a REST side.
    fn unrouted(&self, side: Side) -> Option<(&str, UsageCount)> {
        let prefix = self.plan.lifecycle.prefixes.of_route(self.index);
        (side == Side::Rest).then(|| (prefix, self.usage.under(prefix)))
    }

    fn callers(&self) -> Vec<CallerReport> {
        let callers = self.usage.callers(&self.route.name);
        let reports = callers.map(|(client, side, seen)| CallerReport {
            client: client.to_owned(),
            side: side.as_str().to_owned(),
            old: count_report(&seen.old),
            new: count_report(&seen.new),
            refused: count_report(&seen.refused),
            tool_errors: count_report(&seen.tool_errors),
        });
        reports.collect()
    }

    fn evidence(&self, side: Side) -> UsageEvidence {
        let observed = self.observed_since();
        let unrouted = self.unrouted(side);
        UsageEvidence {
            watched_since: observed.map(|since| since.to_string()),
            watched_seconds: observed.map_or(0, |since| self.query.at.since(since)),
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

fn count_report(count: &UsageCount) -> CountReport {
    CountReport {
        calls: count.calls,
        last: count.last.map(|last| last.to_string()),
    }
}

/// Formats a time in its largest whole unit, for people.
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

/// Parses a time without calls, such as `30d`, `12h`, `90m` or `45s`: from a second to ten years.
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
