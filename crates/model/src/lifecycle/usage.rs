//! Counts of calls by route, client and side, with the time of the last call.
//!
//! Processes report [`Usage`] to the store, which merges it. Laws: merging is commutative, counts add up, and merging a
//! last moment with itself changes nothing. A record that is written is read back unchanged.
//!
//! Used by `lifecycle::report`.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::eras::EraUsage;
use super::observation::{Interval, Observation};
use super::prefixes::is_under;
use crate::plan::Plan;
use crate::rollout::{OTHER, Way};
use crate::route::Route;
use crate::time::Timestamp;
use dualgauge_patterns::side::Side;

/// A number of calls, with the time of the last one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageCount {
    /// The number of calls.
    pub calls: u64,
    /// The time when the last one began; none where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Timestamp>,
}

impl UsageCount {
    /// Returns true when there was no call.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == UsageCount::default()
    }

    /// Counts one call.
    pub fn add(&mut self, at: Timestamp) {
        self.merge(&UsageCount {
            calls: 1,
            last: Some(at),
        });
    }

    /// Adds another count.
    pub fn merge(&mut self, other: &UsageCount) {
        self.calls = self.calls.saturating_add(other.calls);
        self.last = self.last.max(other.last);
    }

    /// Limits the last moment to `at`; it is later only if another clock is ahead.
    pub(super) fn bound(&mut self, at: Timestamp) {
        self.last = self.last.map(|last| last.min(at));
    }

    /// Returns the calls counted after an earlier state of the same counter. The time of the last call stays.
    #[must_use]
    pub fn since(&self, earlier: &UsageCount) -> UsageCount {
        UsageCount {
            calls: self.calls.saturating_sub(earlier.calls),
            last: self.last,
        }
    }
}

/// The calls of one client on one side of one route, by the way they were served.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientUsage {
    /// Calls served untranslated, by the upstream of their own side.
    #[serde(default)]
    pub old: UsageCount,
    /// Calls translated for the upstream of the other side.
    #[serde(default)]
    pub new: UsageCount,
    /// Calls refused, because the side was retired or in a brownout.
    #[serde(default)]
    pub refused: UsageCount,
    /// Calls, of all of these, that got a tool result with an error.
    #[serde(default, skip_serializing_if = "UsageCount::is_empty")]
    pub tool_errors: UsageCount,
}

impl ClientUsage {
    /// Counts one call; without a way it was refused.
    pub fn add(&mut self, way: Option<Way>, at: Timestamp) {
        match way {
            Some(Way::Old) => self.old.add(at),
            Some(Way::New) => self.new.add(at),
            None => self.refused.add(at),
        }
    }

    /// Adds other counts.
    pub fn merge(&mut self, other: &ClientUsage) {
        self.old.merge(&other.old);
        self.new.merge(&other.new);
        self.refused.merge(&other.refused);
        self.tool_errors.merge(&other.tool_errors);
    }

    /// Returns the calls counted after an earlier state of the same counters.
    #[must_use]
    pub fn since(&self, earlier: &ClientUsage) -> ClientUsage {
        ClientUsage {
            old: self.old.since(&earlier.old),
            new: self.new.since(&earlier.new),
            refused: self.refused.since(&earlier.refused),
            tool_errors: self.tool_errors.since(&earlier.tool_errors),
        }
    }

    /// Returns all calls, served or refused.
    #[must_use]
    pub fn all(&self) -> UsageCount {
        let mut all = self.old;
        all.merge(&self.new);
        all.merge(&self.refused);
        all
    }
}

/// The calls of one client on all routes, by the way they were served.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UsageTotals {
    /// Calls served untranslated, by the upstream of their own side.
    pub old: u64,
    /// Calls translated for the upstream of the other side.
    pub new: u64,
    /// Calls refused, because the side was retired or in a brownout.
    pub refused: u64,
    /// The time when the last one began.
    pub last: Option<Timestamp>,
}

impl UsageTotals {
    /// Adds the calls of one route.
    pub fn add(&mut self, seen: &ClientUsage) {
        self.old = self.old.saturating_add(seen.old.calls);
        self.new = self.new.saturating_add(seen.new.calls);
        self.refused = self.refused.saturating_add(seen.refused.calls);
        self.last = self.last.max(seen.all().last);
    }

    /// Returns the number of all calls.
    #[must_use]
    pub const fn calls(&self) -> u64 {
        self.old
            .saturating_add(self.new)
            .saturating_add(self.refused)
    }
}

/// All counts, with the times in which calls were counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Usage {
    /// Counts by route, client and side.
    calls: BTreeMap<(String, String, Side), ClientUsage>,
    /// Counts of calls of no route, by prefix.
    unrouted: BTreeMap<String, UsageCount>,
    /// The time since which each route is counted in its present form: by name, REST side and RPC side.
    routes: BTreeMap<[String; 3], Timestamp>,
    /// The times in which calls were counted.
    watching: Observation,
    /// The eras of MCP clients.
    eras: EraUsage,
}

/// Returned when a text is no record of usage.
#[derive(Debug, thiserror::Error)]
#[error("the text is not a usage record")]
pub struct UsageError(#[from] serde_json::Error);

fn add_by<'u>(
    totals: &mut BTreeMap<String, UsageTotals>,
    rows: impl Iterator<Item = (&'u str, &'u ClientUsage)>,
) {
    for (name, seen) in rows {
        match totals.get_mut(name) {
            Some(known) => known.add(seen),
            None => totals.entry(name.to_owned()).or_default().add(seen),
        }
    }
}

impl Usage {
    /// Records calls of a client on a side of a route.
    pub fn note(&mut self, route: &str, client: &str, side: Side, seen: &ClientUsage) {
        let key = (route.to_owned(), client.to_owned(), side);
        self.calls.entry(key).or_default().merge(seen);
    }

    /// Records calls of no route under a prefix.
    pub fn note_unrouted(&mut self, prefix: &str, count: &UsageCount) {
        self.unrouted
            .entry(prefix.to_owned())
            .or_default()
            .merge(count);
    }

    /// Records that the routes of a plan are counted at a moment.
    pub fn note_routes(&mut self, routes: &[Route], at: Timestamp) {
        for route in routes {
            let since = self.routes.entry(shape(route)).or_insert(at);
            *since = at.min(*since);
        }
    }

    /// Records that a replica counted, eras as well, without a break between two moments.
    pub fn note_observed(&mut self, replica: &str, from: Timestamp, until: Timestamp) {
        self.watching.note(replica, Interval { from, until });
        self.eras.note_observed(replica, from, until);
    }

    /// Returns the eras of MCP clients.
    #[must_use]
    pub const fn eras(&self) -> &EraUsage {
        &self.eras
    }

    /// Returns the eras of MCP clients, to add to them.
    pub const fn eras_mut(&mut self) -> &mut EraUsage {
        &mut self.eras
    }

    /// Adds the record of another process, or of the same one at another time.
    pub fn merge(&mut self, other: &Usage) {
        self.merge_routes(other, |_| true);
    }

    /// Adds another record, but of its routes only those whose name `is_wanted` accepts.
    pub fn merge_routes(&mut self, other: &Usage, is_wanted: impl Fn(&str) -> bool) {
        for ((route, client, side), seen) in &other.calls {
            if is_wanted(route) {
                self.note(route, client, *side, seen);
            }
        }
        for (prefix, count) in &other.unrouted {
            self.note_unrouted(prefix, count);
        }
        let known = other.routes.iter();
        for (shape, at) in known.filter(|([name, ..], _)| is_wanted(name)) {
            let since = self.routes.entry(shape.clone()).or_insert(*at);
            *since = *at.min(since);
        }
        self.watching.merge(&other.watching);
        self.eras.merge(&other.eras);
    }

    /// Limits all times to `at`. A time is later if this clock was ahead and was set back, or if another replica's is
    /// ahead.
    #[must_use]
    pub fn until(mut self, at: Timestamp) -> Usage {
        for seen in self.calls.values_mut() {
            for count in [
                &mut seen.old,
                &mut seen.new,
                &mut seen.refused,
                &mut seen.tool_errors,
            ] {
                count.bound(at);
            }
        }
        self.unrouted.values_mut().for_each(|count| count.bound(at));
        self.routes
            .values_mut()
            .for_each(|since| *since = at.min(*since));
        self.watching.bound_by(at);
        self.eras.bound_by(at);
        self
    }

    /// Returns the calls counted after an earlier record of the same process. Times stay as they are, since merging
    /// them twice changes nothing.
    #[must_use]
    pub fn since(&self, earlier: &Usage) -> Usage {
        let mut since = self.clone();
        for (key, seen) in &mut since.calls {
            if let Some(earlier) = earlier.calls.get(key) {
                *seen = seen.since(earlier);
            }
        }
        for (prefix, count) in &mut since.unrouted {
            if let Some(earlier) = earlier.unrouted.get(prefix) {
                *count = count.since(earlier);
            }
        }
        since.eras.subtract(&earlier.eras);
        since
    }

    /// Drops routes that a plan does not have, so that an archive stays as small as its plan. Calls of a client that it
    /// does not have are counted under [`OTHER`], and calls under a removed prefix under the longest prefix that
    /// contains it.
    pub fn keep(&mut self, plan: &Plan) {
        let routes = plan.routes.routes();
        let names: BTreeSet<&str> = routes.iter().map(|route| &*route.name).collect();
        let clients = plan.rollout.clients.all().iter();
        let clients: BTreeSet<&str> = clients.map(|client| &*client.name).collect();
        for ((route, client, side), seen) in std::mem::take(&mut self.calls) {
            let client = clients.get(&*client).copied().unwrap_or(OTHER);
            if names.contains(&*route) {
                self.note(&route, client, side, &seen);
            }
        }
        let prefixes = &plan.lifecycle.prefixes;
        for (prefix, count) in std::mem::take(&mut self.unrouted) {
            if let Some(index) = prefixes.find(&prefix) {
                self.note_unrouted(&prefixes.all()[index], &count);
            }
        }
        let shapes: BTreeSet<[String; 3]> = routes.iter().map(shape).collect();
        self.routes.retain(|known, _| shapes.contains(known));
        self.eras.keep(&clients);
    }

    /// Returns the counts by route, client and side.
    pub fn rows(&self) -> impl Iterator<Item = (&str, &str, Side, &ClientUsage)> {
        let rows = self.calls.iter();
        rows.map(|((route, client, side), seen)| (route.as_str(), client.as_str(), *side, seen))
    }

    /// Adds the calls of each client on all routes to totals.
    pub fn add_by_client(&self, totals: &mut BTreeMap<String, UsageTotals>) {
        let rows = self.rows();
        add_by(totals, rows.map(|(_, client, _, seen)| (client, seen)));
    }

    /// Adds the calls of each route by all clients to totals.
    pub fn add_by_route(&self, totals: &mut BTreeMap<String, UsageTotals>) {
        let rows = self.rows();
        add_by(totals, rows.map(|(route, _, _, seen)| (route, seen)));
    }

    /// Returns the times in which calls were counted.
    #[must_use]
    pub fn observation(&self) -> &Observation {
        &self.watching
    }

    /// Returns the time since which a route is counted in its present form.
    pub(super) fn known_since(&self, route: &Route) -> Option<Timestamp> {
        self.routes.get(&shape(route)).copied()
    }

    /// Returns the callers of a route, by client and side.
    pub(super) fn callers(&self, route: &str) -> impl Iterator<Item = (&str, Side, &ClientUsage)> {
        let first = (route.to_owned(), String::new(), Side::Rest);
        let rows = self.calls.range(first..);
        let name = route.to_owned();
        rows.take_while(move |((route, _, _), _)| *route == name)
            .map(|((_, client, side), seen)| (client.as_str(), *side, seen))
    }

    /// Returns the calls of no route under a prefix, including the prefixes under it.
    pub(super) fn under(&self, prefix: &str) -> UsageCount {
        let mut all = UsageCount::default();
        for (known, count) in &self.unrouted {
            if is_under(known, prefix) {
                all.merge(count);
            }
        }
        all
    }

    /// Renders the record as JSON, for a store.
    #[must_use]
    pub fn to_json(&self) -> String {
        let calls = self.calls.iter();
        let unrouted = self.unrouted.iter();
        let routes = self.routes.iter();
        let text = UsageText {
            calls: calls
                .map(|((route, client, side), seen)| CallsText {
                    route: route.clone(),
                    client: client.clone(),
                    side: *side,
                    seen: *seen,
                })
                .collect(),
            unrouted: unrouted
                .map(|(prefix, count)| (prefix.clone(), *count))
                .collect(),
            routes: routes
                .map(|([name, rest, rpc], since)| RouteText {
                    name: name.clone(),
                    rest: rest.clone(),
                    rpc: rpc.clone(),
                    since: *since,
                })
                .collect(),
            watching: self.watching.clone(),
            eras: self.eras.to_value(),
        };
        // Names and numbers only: serialization cannot fail.
        serde_json::to_string(&text).unwrap_or_else(|_| "{}".to_owned())
    }

    /// Parses the JSON of [`Usage::to_json`].
    ///
    /// # Errors
    /// [`UsageError`].
    pub fn from_json(text: &str) -> Result<Usage, UsageError> {
        let text: UsageText = serde_json::from_str(text)?;
        let mut usage = Usage::default();
        for row in text.calls {
            usage.note(&row.route, &row.client, row.side, &row.seen);
        }
        for (prefix, count) in text.unrouted {
            usage.note_unrouted(&prefix, &count);
        }
        for row in text.routes {
            usage
                .routes
                .insert([row.name, row.rest, row.rpc], row.since);
        }
        // Merging sorts and limits the intervals, so the text need not be in order.
        usage.watching.merge(&text.watching);
        usage.eras = EraUsage::from_value(text.eras);
        Ok(usage)
    }
}

fn shape(route: &Route) -> [String; 3] {
    [route.name.clone(), route.rest.clone(), route.rpc.clone()]
}

/// The stored form. Unknown members, which a later version may add, are ignored.
#[derive(Debug, Default, Serialize, Deserialize)]
struct UsageText {
    #[serde(default)]
    calls: Vec<CallsText>,
    #[serde(default)]
    unrouted: BTreeMap<String, UsageCount>,
    #[serde(default)]
    routes: Vec<RouteText>,
    #[serde(default)]
    watching: Observation,
    #[serde(default)]
    eras: Value,
}

#[derive(Debug, Serialize, Deserialize)]
struct CallsText {
    route: String,
    client: String,
    #[serde(with = "crate::side_word")]
    side: Side,
    #[serde(flatten)]
    seen: ClientUsage,
}

#[derive(Debug, Serialize, Deserialize)]
struct RouteText {
    name: String,
    rest: String,
    rpc: String,
    since: Timestamp,
}
