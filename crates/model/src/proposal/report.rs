//! The report of a replay, or the mismatches of a running proxy, as values. Used by `proposal`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::field::DifferingField;

/// The most routes, groups of a route, and fields of a route that are read.
const MOST: usize = 1024;
/// The most pairs of a group that are read.
const SAMPLES: usize = 16;

/// The mismatches of all routes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MismatchReport {
    /// Those of each route, by name.
    pub routes: Vec<RouteMismatches>,
}

/// The mismatches of one route.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RouteMismatches {
    /// The name of the route.
    pub route: String,
    /// Pairs of responses that differ, by their endings.
    pub groups: Vec<ReplyGroup>,
    /// The fields that differ.
    pub fields: Vec<DifferingField>,
}

/// Pairs of responses with the same endings.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ReplyGroup {
    /// `rest` or `rpc`: the side of the callers.
    pub(super) side: String,
    /// `control` or `candidate`: the response that the proxy translated.
    pub(super) translated: String,
    /// The status or the code of the control.
    pub control: String,
    /// The status or the code of the candidate.
    pub candidate: String,
    /// The number of calls.
    pub calls: u64,
    pub(super) samples: Vec<ReplySample>,
}

/// Both responses to one call, redacted.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct ReplySample {
    pub(super) control: Value,
    pub(super) candidate: Value,
}

/// The reason why a report cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReportFault {
    /// It is not JSON.
    #[error("it is not JSON: {0}")]
    NotJson(#[from] serde_json::Error),
    /// It is JSON of another kind.
    #[error("it is neither the JSON report of a replay nor the mismatches of a proxy")]
    OtherKind,
}

#[derive(Deserialize)]
struct Report {
    routes: Routes,
}

/// The routes of a replay are an object, those of a proxy a list.
#[derive(Deserialize)]
#[serde(untagged)]
enum Routes {
    Replay(BTreeMap<String, ReplayedRoute>),
    Proxy(Vec<ProxyRoute>),
}

#[derive(Deserialize)]
struct ReplayedRoute {
    fields: BTreeMap<String, ReplayedField>,
    #[serde(default)]
    replies: Vec<ReplyGroup>,
}

#[derive(Deserialize)]
struct ReplayedField {
    calls: u64,
    #[serde(default)]
    samples: Vec<FieldSample>,
}

#[derive(Deserialize)]
struct ProxyRoute {
    route: String,
    fields: Vec<ProxyField>,
    #[serde(default)]
    replies: Vec<ReplyGroup>,
}

#[derive(Deserialize)]
struct ProxyField {
    field: String,
    count: u64,
    #[serde(default)]
    samples: Vec<FieldSample>,
}

#[derive(Deserialize)]
struct FieldSample {
    kind: String,
    control: String,
    candidate: String,
}

impl ReplyGroup {
    /// Returns true if the responses of a call differ in a field.
    #[must_use]
    pub fn differs_at(&self, field: &str) -> bool {
        let pointer = match field {
            "/headers/content-type" => "/type",
            field => field,
        };
        // Elements are not told apart.
        let pointer = pointer.split("/*").next().unwrap_or_default();
        let differs = |sample: &ReplySample| {
            sample.control.pointer(pointer) != sample.candidate.pointer(pointer)
        };
        self.samples.iter().any(differs)
    }
}

impl MismatchReport {
    /// Returns true if a text may be such a report.
    #[must_use]
    pub fn is_report(data: &[u8]) -> bool {
        serde_json::from_slice::<Report>(data).is_ok()
    }

    /// Reads a report.
    ///
    /// # Errors
    /// [`ReportFault`]
    pub fn read(data: &[u8]) -> Result<MismatchReport, ReportFault> {
        let value: Value = serde_json::from_slice(data)?;
        let report: Report = serde_json::from_value(value).map_err(|_| ReportFault::OtherKind)?;
        let mut routes: Vec<RouteMismatches> = match report.routes {
            Routes::Replay(routes) => routes.into_iter().map(replayed).collect(),
            Routes::Proxy(routes) => routes.into_iter().map(of_proxy).collect(),
        };
        routes.truncate(MOST);
        for route in &mut routes {
            route.groups.truncate(MOST);
            for group in &mut route.groups {
                group.samples.truncate(SAMPLES);
            }
            route.fields.truncate(MOST);
        }
        Ok(MismatchReport { routes })
    }

    /// Adds the mismatches of another report.
    pub fn extend(&mut self, other: MismatchReport) {
        for more in other.routes {
            match self.routes.iter_mut().find(|own| own.route == more.route) {
                Some(own) => {
                    own.groups.extend(more.groups);
                    own.fields.extend(more.fields);
                }
                None => self.routes.push(more),
            }
        }
    }
}

fn replayed((route, found): (String, ReplayedRoute)) -> RouteMismatches {
    let fields = found.fields.into_iter();
    let fields = fields.map(|(name, field)| of_field(name, field.calls, &field.samples));
    RouteMismatches {
        route,
        groups: found.replies,
        fields: fields.collect(),
    }
}

fn of_proxy(found: ProxyRoute) -> RouteMismatches {
    let fields = found.fields.into_iter();
    let fields = fields.map(|field| of_field(field.field, field.count, &field.samples));
    RouteMismatches {
        route: found.route,
        groups: found.replies,
        fields: fields.collect(),
    }
}

fn of_field(field: String, calls: u64, samples: &[FieldSample]) -> DifferingField {
    let first = samples.first();
    let text = |of: fn(&FieldSample) -> &String| first.map(of).cloned().unwrap_or_default();
    DifferingField {
        field,
        calls,
        kind: text(|sample| &sample.kind),
        control: text(|sample| &sample.control),
        candidate: text(|sample| &sample.candidate),
    }
}
