//! The MCP eras in which each client calls, with the names that its programs declare.
//!
//! Laws: merging is commutative; call counts add up, and times are the latest ones. Names come from clients, so their
//! number is bounded: at the limit the one that was seen the longest ago is dropped. A dropped name changes no count.
//!
//! Used by `lifecycle::usage` and `lifecycle::era_report`.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::observation::{Interval, Observation};
use super::usage::UsageCount;
use crate::mcp::{CallEra, ClientInfo};
use crate::rollout::OTHER;
use crate::time::Timestamp;

/// The most names kept for one client.
const NAMES_OF_CLIENT: usize = 64;
/// The most names kept for all clients.
const NAMES: usize = 1_000;

/// The calls of MCP clients by era.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EraUsage {
    /// Counts by client.
    calls: BTreeMap<(String, CallEra), UsageCount>,
    names: DeclaredNames<String>,
    /// The times in which eras were counted. Replicas of an earlier version count calls without them.
    watching: Observation,
}

/// A name that a program declares in calls of an era.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeclaredName {
    /// The era and the revision of the calls.
    pub era: CallEra,
    /// The name and the version of the program.
    pub info: ClientInfo,
}

/// The names that programs declare, by client, with the time of the last call. `K` identifies a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredNames<K>(BTreeMap<K, BTreeMap<DeclaredName, Timestamp>>);

impl<K> Default for DeclaredNames<K> {
    fn default() -> Self {
        DeclaredNames(BTreeMap::new())
    }
}

impl<K: Ord + Clone> DeclaredNames<K> {
    /// Records a call. Drops the name that was seen the longest ago if the client, or all clients, have too many.
    pub fn note(&mut self, client: K, name: DeclaredName, at: Timestamp) {
        let of_client = self.0.entry(client).or_default();
        if let Some(last) = of_client.get_mut(&name) {
            *last = at.max(*last);
            return;
        }
        of_client.insert(name, at);
        if of_client.len() > NAMES_OF_CLIENT {
            drop_oldest(of_client);
        }
        while self.0.values().map(BTreeMap::len).sum::<usize>() > NAMES {
            // The client with the most names loses one, so that one client cannot push out the names of others.
            if let Some(most) = self.0.values_mut().max_by_key(|names| names.len()) {
                drop_oldest(most);
            }
        }
    }

    /// Adds the names of another record.
    pub fn merge(&mut self, other: &DeclaredNames<K>) {
        for (client, names) in &other.0 {
            for (name, at) in names {
                self.note(client.clone(), name.clone(), *at);
            }
        }
    }

    /// Returns all names, by client, era, name and version.
    pub fn iter(&self) -> impl Iterator<Item = (&K, CallEra, &ClientInfo, Timestamp)> {
        self.0.iter().flat_map(|(client, names)| {
            let names = names.iter();
            names.map(move |(name, at)| (client, name.era, &name.info, *at))
        })
    }
}

fn drop_oldest(names: &mut BTreeMap<DeclaredName, Timestamp>) {
    let oldest = names.iter().min_by_key(|(_, at)| **at);
    if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
        names.remove(&oldest);
    }
}

impl EraUsage {
    /// Records calls of a client.
    pub fn note(&mut self, client: &str, era: CallEra, count: &UsageCount) {
        let calls = self.calls.entry((client.to_owned(), era)).or_default();
        calls.merge(count);
    }

    /// Records the name that a program of a client declares.
    pub fn note_name(&mut self, client: &str, era: CallEra, info: &ClientInfo, at: Timestamp) {
        let info = info.clone();
        let name = DeclaredName { era, info };
        self.names.note(client.to_owned(), name, at);
    }

    /// Records that a replica counted eras without a break between two moments.
    pub fn note_observed(&mut self, replica: &str, from: Timestamp, until: Timestamp) {
        self.watching.note(replica, Interval { from, until });
    }

    /// Adds the eras that another process has counted.
    pub fn merge(&mut self, other: &EraUsage) {
        for ((client, era), count) in &other.calls {
            self.note(client, *era, count);
        }
        self.names.merge(&other.names);
        self.watching.merge(&other.watching);
    }

    /// Limits all times to `at`.
    pub(super) fn bound_by(&mut self, at: Timestamp) {
        self.calls.values_mut().for_each(|count| count.bound(at));
        for names in self.names.0.values_mut() {
            names.values_mut().for_each(|last| *last = at.min(*last));
        }
        self.watching.bound_by(at);
    }

    /// Subtracts the calls of an earlier record of the same process. Times stay as they are.
    pub(super) fn subtract(&mut self, earlier: &EraUsage) {
        for (key, count) in &mut self.calls {
            if let Some(earlier) = earlier.calls.get(key) {
                *count = count.since(earlier);
            }
        }
    }

    /// Counts the calls of clients that are not in `clients` under [`OTHER`].
    pub(super) fn keep(&mut self, clients: &BTreeSet<&str>) {
        let kept = |client: &str| clients.get(client).copied().unwrap_or(OTHER);
        for ((client, era), count) in std::mem::take(&mut self.calls) {
            self.note(kept(&client), era, &count);
        }
        for (client, era, info, at) in std::mem::take(&mut self.names).iter() {
            self.note_name(kept(client), era, info, at);
        }
    }

    /// Returns the counts by client and era.
    pub(super) fn calls(&self) -> impl Iterator<Item = (&str, CallEra, &UsageCount)> {
        let calls = self.calls.iter();
        calls.map(|((client, era), count)| (client.as_str(), *era, count))
    }

    /// Returns the names of a client in an era, the latest first.
    pub(super) fn names(&self, client: &str, era: CallEra) -> Vec<(&ClientInfo, Timestamp)> {
        let names = self.names.0.get(client).into_iter().flatten();
        let names = names.filter(|(name, _)| name.era == era);
        let mut names: Vec<_> = names.map(|(name, at)| (&name.info, *at)).collect();
        names.sort_by_key(|(_, at)| std::cmp::Reverse(*at));
        names
    }

    /// Returns the times in which eras were counted.
    pub(super) const fn observation(&self) -> &Observation {
        &self.watching
    }

    pub(super) fn to_value(&self) -> Value {
        let calls = self.calls.iter().map(|((client, era), count)| EraText {
            client: client.clone(),
            era: era.era().as_str().to_owned(),
            revision: era.revision().to_owned(),
            count: *count,
        });
        let names = self.names.iter().map(|(client, era, info, last)| NameText {
            client: client.clone(),
            era: era.era().as_str().to_owned(),
            revision: era.revision().to_owned(),
            name: info.name().to_owned(),
            version: info.version().to_owned(),
            last,
        });
        let text = ErasText {
            calls: calls.collect(),
            names: names.collect(),
            watching: self.watching.clone(),
        };
        // Names and numbers only: serialization cannot fail.
        serde_json::to_value(text).unwrap_or_default()
    }

    /// Reads the form of [`EraUsage::to_value`]. A form of another version counts as not observed.
    pub(super) fn from_value(value: Value) -> EraUsage {
        let text: ErasText = serde_json::from_value(value).unwrap_or_default();
        let mut eras = EraUsage::default();
        for row in text.calls {
            match CallEra::from_words(&row.era, &row.revision) {
                Some(era) => eras.note(&row.client, era, &row.count),
                // The record counts an era that this version does not know, so it proves nothing here.
                None => return EraUsage::default(),
            }
        }
        for row in text.names {
            let info = ClientInfo::new(&row.name, &row.version);
            if let (Some(era), Some(info)) = (CallEra::from_words(&row.era, &row.revision), info) {
                eras.note_name(&row.client, era, &info, row.last);
            }
        }
        eras.watching.merge(&text.watching);
        eras
    }
}

/// The stored form. Unknown members, which a later version may add, are ignored.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct ErasText {
    calls: Vec<EraText>,
    names: Vec<NameText>,
    watching: Observation,
}

#[derive(Debug, Serialize, Deserialize)]
struct EraText {
    client: String,
    era: String,
    revision: String,
    #[serde(flatten)]
    count: UsageCount,
}

#[derive(Debug, Serialize, Deserialize)]
struct NameText {
    client: String,
    era: String,
    revision: String,
    name: String,
    version: String,
    last: Timestamp,
}
