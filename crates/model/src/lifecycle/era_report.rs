//! The report of MCP eras: the clients of each era, and whether the old era can be switched off.
//!
//! Laws: the old era can be switched off only if eras were counted without a break for the requested time, and in that
//! time no client called in it. More calls, or less observed time, never give a "yes".
//!
//! Used by `lifecycle::report`.

use serde::{Deserialize, Serialize};

use super::eras::EraUsage;
use super::observation::Interval;
use super::report::{ReportQuery, span};
use super::usage::{Usage, UsageCount};
use crate::mcp::{CallEra, Era};
use crate::time::Timestamp;

/// The most names that a reason lists.
const SHOWN: usize = 3;

/// The eras of all MCP clients.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EraReport {
    /// The verdict on the old era, with a handshake.
    pub verdict: EraVerdict,
    /// The reasons of the verdict, for people.
    pub reasons: Vec<String>,
    /// The clients that have called, by name, era and revision.
    pub clients: Vec<EraClientReport>,
    /// The time since which eras were counted without a break.
    pub watched_since: Option<String>,
    /// The length of that time, in seconds.
    pub watched_seconds: u64,
}

/// The verdict on the old era.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EraVerdict {
    /// No client would notice.
    #[serde(rename = "can be switched off")]
    Unused,
    /// A client still uses it.
    #[serde(rename = "in use")]
    InUse,
    /// Calls were not counted for long enough to decide.
    #[serde(rename = "unknown")]
    Unknown,
}

impl EraVerdict {
    /// Returns the word used in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            EraVerdict::Unused => "can be switched off",
            EraVerdict::InUse => "in use",
            EraVerdict::Unknown => "unknown",
        }
    }
}

/// The calls of a client in one era and revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EraClientReport {
    /// The name of the client in the configuration, or `other`.
    pub client: String,
    /// `handshake` or `stateless`.
    pub era: String,
    /// The revision that the calls name, `unnamed` or `other`.
    pub revision: String,
    /// The number of calls.
    pub calls: u64,
    /// The time when the last one began.
    pub last: Option<String>,
    /// The programs that have declared themselves, the latest first.
    pub programs: Vec<ProgramReport>,
}

/// A program, as it declares itself in `clientInfo`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramReport {
    /// The declared name.
    pub name: String,
    /// The declared version; empty if there is none.
    pub version: String,
    /// The time of the last call.
    pub last: String,
}

/// Reports the eras of all clients.
pub(super) fn era_report(usage: &Usage, query: &ReportQuery) -> EraReport {
    let found = Eras {
        usage,
        eras: usage.eras(),
        query,
    };
    let (verdict, reasons) = found.judge();
    let since = found.eras.observation().unbroken_since(query.at);
    EraReport {
        verdict,
        reasons,
        clients: found.clients(),
        watched_since: since.map(|since| since.to_string()),
        watched_seconds: since.map_or(0, |since| query.at.since(since)),
    }
}

struct Eras<'a> {
    usage: &'a Usage,
    eras: &'a EraUsage,
    query: &'a ReportQuery,
}

impl Eras<'_> {
    fn judge(&self) -> (EraVerdict, Vec<String>) {
        let in_use: Vec<String> = self
            .eras
            .calls()
            .filter(|(_, era, _)| era.era() == Era::Handshake)
            .filter_map(|(client, era, count)| self.still_calls(client, era, count))
            .collect();
        if !in_use.is_empty() {
            return (EraVerdict::InUse, in_use);
        }
        let gaps = self.gaps_in_evidence();
        if !gaps.is_empty() {
            return (EraVerdict::Unknown, gaps);
        }
        let idle = span(self.query.idle);
        let reason = format!("no MCP client has called with a handshake for {idle}");
        (EraVerdict::Unused, vec![reason])
    }

    /// Returns the reason why a client would notice, if its last call lies within the requested time.
    fn still_calls(&self, client: &str, era: CallEra, count: &UsageCount) -> Option<String> {
        let last = count.last.filter(|last| *last >= self.horizon())?;
        let ago = span(self.query.at.since(last));
        let names = self.eras.names(client, era);
        let recent = names.iter().filter(|(_, at)| *at >= self.horizon());
        let recent: Vec<String> = recent
            .map(|(info, _)| {
                format!("{} {}", info.name(), info.version())
                    .trim_end()
                    .to_owned()
            })
            .collect();
        let programs = match recent.len() {
            0 => String::new(),
            count if count > SHOWN => {
                let more = count - SHOWN;
                format!(" ({} and {more} more)", recent[..SHOWN].join(", "))
            }
            _ => format!(" ({})", recent.join(", ")),
        };
        let revision = era.revision();
        Some(format!(
            "`{client}`{programs} called with a handshake (revision {revision}), last {ago} ago ({last})"
        ))
    }

    /// Returns the reasons why the evidence allows no verdict.
    fn gaps_in_evidence(&self) -> Vec<String> {
        let mut gaps = Vec::new();
        let observation = self.eras.observation();
        match observation.unbroken_since(self.query.at) {
            None => gaps.push("no replica counts the eras of MCP clients".to_owned()),
            Some(since) if since > self.horizon() => {
                let known = span(self.query.at.since(since));
                let wanted = span(self.query.idle);
                gaps.push(format!(
                    "eras have been counted without a gap for {known} only, not for {wanted}"
                ));
            }
            Some(_) => {}
        }
        for (replica, gap) in observation.gaps_since(self.horizon()) {
            let (from, until) = (gap.from, gap.until);
            gaps.push(format!(
                "there is a gap in the counts: replica `{replica}` from {from} to {until}"
            ));
        }
        gaps.extend(self.uncounted_replicas());
        gaps
    }

    /// Returns the replicas that counted calls in the requested time, but not their eras: those of earlier versions.
    fn uncounted_replicas(&self) -> Vec<String> {
        let counting = self.eras.observation();
        let replicas = self.usage.observation().replicas();
        let without = replicas.filter(|(replica, observed)| {
            let intervals = observed.intervals().iter();
            let mut recent = intervals.filter(|interval| interval.until > self.horizon());
            recent.any(|interval| {
                let from = interval.from.max(self.horizon());
                !counting.contains(replica, Interval { from, ..*interval })
            })
        });
        let reasons = without.map(|(replica, _)| {
            format!("replica `{replica}` counted calls without their eras, as earlier versions do")
        });
        reasons.collect()
    }

    fn horizon(&self) -> Timestamp {
        self.query.at.before(self.query.idle)
    }

    fn clients(&self) -> Vec<EraClientReport> {
        let reports = self.eras.calls().map(|(client, era, count)| {
            let programs = self.eras.names(client, era).into_iter();
            let programs = programs.map(|(info, last)| ProgramReport {
                name: info.name().to_owned(),
                version: info.version().to_owned(),
                last: last.to_string(),
            });
            EraClientReport {
                client: client.to_owned(),
                era: era.era().as_str().to_owned(),
                revision: era.revision().to_owned(),
                calls: count.calls,
                last: count.last.map(|last| last.to_string()),
                programs: programs.collect(),
            }
        });
        reports.collect()
    }
}
