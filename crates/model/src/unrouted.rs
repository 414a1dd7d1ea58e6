//! Calls without a route, by method and path template: the material for a draft of routes.
//!
//! A segment that looks like an id is a placeholder at once. If many words were seen at one place, they become one
//! placeholder when the table is full. All numbers and lengths are bounded; values of the query and bodies are never
//! kept. Law: the calls of all entries and of the excess are the calls that were counted.
//!
//! Used by `telemetry`, `server`, `app` and `cli`.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::lifecycle::UsageCount;
use crate::time::Timestamp;
use dualgauge_patterns::percent::{Plus, decode};

/// The maximum number of entries.
const ENTRIES: usize = 512;
/// The maximum number of segments of a path.
const SEGMENTS: usize = 24;
/// The maximum length of a word, in bytes.
const WORD: usize = 40;
/// The maximum number of query names of an entry.
const NAMES: usize = 24;
/// The number of different words at one place that make it a placeholder.
const VARYING: usize = 12;
/// The number of calls without room between two attempts to make room.
const ATTEMPT: u64 = 512;

/// The methods of calls that are kept.
const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

/// A segment of a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum TemplateSegment {
    /// A word of the API; empty for a slash at the end.
    Word(Box<str>),
    /// Integers.
    Integer,
    /// Other values.
    Text,
}

/// A method and a path template.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct PathKey {
    method: &'static str,
    segments: Vec<TemplateSegment>,
}

/// The calls of one method and template.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct PathCount {
    calls: UsageCount,
    /// The number of calls with each name in the query.
    names: BTreeMap<Box<str>, u64>,
}

/// Calls without a route.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnroutedCalls {
    entries: BTreeMap<PathKey, PathCount>,
    /// The templates that many words have become.
    merged: BTreeSet<PathKey>,
    /// Calls that had no room.
    more: u64,
}

/// Calls without a route, as the admin API shows them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnroutedReport {
    /// The paths, in order.
    pub paths: Vec<UnroutedPath>,
    /// The number of calls beyond the limits.
    pub more: u64,
}

/// The calls of one method and path template.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnroutedPath {
    /// The HTTP method.
    pub method: String,
    /// The path; `{integer}` and `{string}` are placeholders of segments.
    pub path: String,
    /// The number of calls.
    pub calls: u64,
    /// The time of the last one.
    pub last: Option<String>,
    /// The number of calls with each name in the query.
    pub query: BTreeMap<String, u64>,
}

impl UnroutedPath {
    /// The placeholder of integers.
    pub const INTEGER: &'static str = "{integer}";
    /// The placeholder of other values.
    pub const STRING: &'static str = "{string}";
}

impl UnroutedCalls {
    /// Counts a call with a target of this path and query.
    pub fn count(&mut self, method: &str, path: &str, query: Option<&str>, at: Timestamp) {
        let Some(key) = PathKey::new(method, path) else {
            self.more += 1;
            return;
        };
        let mut key = self.folded(key);
        if !self.entries.contains_key(&key) && self.entries.len() >= ENTRIES {
            if self.more.is_multiple_of(ATTEMPT) {
                self.compact();
                key = self.folded(key);
            }
            if !self.entries.contains_key(&key) && self.entries.len() >= ENTRIES {
                self.more += 1;
                return;
            }
        }
        let count = self.entries.entry(key).or_default();
        count.calls.add(at);
        let names = query.unwrap_or_default().split('&');
        let names = names.filter_map(|pair| decode(pair.split('=').next()?, Plus::Space).ok());
        let names: BTreeSet<Box<str>> = names
            .filter(|name| is_query_name(name))
            .map(Box::from)
            .collect();
        for name in names {
            if count.names.len() < NAMES || count.names.contains_key(&name) {
                *count.names.entry(name).or_default() += 1;
            }
        }
    }

    /// Adds the calls of another worker.
    pub fn merge(&mut self, other: &UnroutedCalls) {
        self.more += other.more;
        self.merged.extend(other.merged.iter().cloned());
        for (key, count) in &other.entries {
            if self.entries.contains_key(key) || self.entries.len() < ENTRIES {
                self.entries.entry(key.clone()).or_default().add(count);
            } else {
                self.more += count.calls.calls;
            }
        }
    }

    /// Returns true if nothing was counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.more == 0
    }

    /// Returns the report, with places of many words as placeholders.
    #[must_use]
    pub fn report(mut self) -> UnroutedReport {
        self.compact();
        let paths = self.entries.iter().map(|(key, count)| UnroutedPath {
            method: key.method.to_owned(),
            path: key.path(),
            calls: count.calls.calls,
            last: count.calls.last.map(|last| last.to_string()),
            query: count
                .names
                .iter()
                .map(|(name, calls)| (name.to_string(), *calls))
                .collect(),
        });
        UnroutedReport {
            paths: paths.collect(),
            more: self.more,
        }
    }

    /// Returns the template that the words of a path have become, or the path itself.
    fn folded(&self, mut key: PathKey) -> PathKey {
        if self.merged.is_empty() {
            return key;
        }
        for at in 0..key.segments.len() {
            let folded = key.with_text(at);
            if key.has_word(at) && self.merged.contains(&folded) {
                key = folded;
            }
        }
        key
    }

    /// Merges entries that differ only in many words at one place.
    fn compact(&mut self) {
        let longest = self.entries.keys().map(|key| key.segments.len()).max();
        for at in 0..longest.unwrap_or_default() {
            self.compact_at(at);
        }
    }

    fn compact_at(&mut self, at: usize) {
        let mut words: BTreeMap<PathKey, usize> = BTreeMap::new();
        for key in self.entries.keys().filter(|key| key.has_word(at)) {
            *words.entry(key.with_text(at)).or_default() += 1;
        }
        words.retain(|key, count| *count >= VARYING || self.merged.contains(key));
        if words.is_empty() {
            return;
        }
        let known = std::mem::take(&mut self.entries);
        for (key, count) in known {
            let merged = key.with_text(at);
            let is_merged = key.has_word(at) && words.contains_key(&merged);
            let key = if is_merged { merged } else { key };
            self.entries.entry(key).or_default().add(&count);
        }
        // A merged template of an earlier place has changed, too.
        self.merged.extend(words.into_keys());
        self.merged.retain(|key| self.entries.contains_key(key));
    }
}

impl PathCount {
    fn add(&mut self, other: &PathCount) {
        self.calls.merge(&other.calls);
        for (name, calls) in &other.names {
            if self.names.len() < NAMES || self.names.contains_key(name) {
                *self.names.entry(name.clone()).or_default() += calls;
            }
        }
    }
}

impl PathKey {
    fn new(method: &str, path: &str) -> Option<PathKey> {
        let method = METHODS.into_iter().find(|known| *known == method)?;
        let mut segments = Vec::new();
        let mut raw = path.strip_prefix('/')?.split('/').peekable();
        while let Some(segment) = raw.next() {
            let is_inside = raw.peek().is_some();
            if segments.len() >= SEGMENTS || (segment.is_empty() && is_inside) {
                return None;
            }
            segments.push(TemplateSegment::new(segment));
        }
        Some(PathKey { method, segments })
    }

    fn has_word(&self, at: usize) -> bool {
        let segment = self.segments.get(at);
        matches!(segment, Some(TemplateSegment::Word(word)) if !word.is_empty())
    }

    /// Returns the template with a placeholder at one place.
    fn with_text(&self, at: usize) -> PathKey {
        let mut key = self.clone();
        if let Some(segment) = key.segments.get_mut(at) {
            *segment = TemplateSegment::Text;
        }
        key
    }

    fn path(&self) -> String {
        let mut path = String::new();
        for segment in &self.segments {
            path.push('/');
            path.push_str(match segment {
                TemplateSegment::Word(word) => word,
                TemplateSegment::Integer => UnroutedPath::INTEGER,
                TemplateSegment::Text => UnroutedPath::STRING,
            });
        }
        path
    }
}

impl TemplateSegment {
    fn new(segment: &str) -> TemplateSegment {
        let number = segment.parse::<i64>();
        if number.is_ok_and(|number| number.to_string() == segment) {
            return TemplateSegment::Integer;
        }
        match segment.is_empty() || is_word(segment) {
            true => TemplateSegment::Word(Box::from(segment)),
            false => TemplateSegment::Text,
        }
    }
}

/// Returns true for a segment that is a word of an API: not an id, an address, a time or a file name with digits.
#[must_use]
pub fn is_word(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.~".contains(c);
    if text.is_empty() || text.len() > WORD || !text.chars().all(plain) {
        return false;
    }
    let digits = text.chars().filter(char::is_ascii_digit).count();
    if digits == 0 {
        return true;
    }
    // `v1`, `2.0` of a version, `oauth2`, `s3`: a word with at most two digits at its end.
    let trimmed = text.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    digits <= 2 && !trimmed.is_empty() && trimmed.chars().all(|c| !c.is_ascii_digit())
}

/// Returns true for a name of an API, as opposed to an id or a token.
fn is_query_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.~[]$@:".contains(c);
    let digits = name.bytes().filter(u8::is_ascii_digit).count();
    let is_short = name.len() <= WORD && (digits == 0 || name.len() <= 16);
    !name.is_empty() && is_short && digits <= 2 && name.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn report(calls: &UnroutedCalls) -> UnroutedReport {
        calls.clone().report()
    }

    fn counted(calls: &[&str]) -> UnroutedCalls {
        let mut found = UnroutedCalls::default();
        for call in calls {
            let (method, target) = call.split_once(' ').unwrap();
            let (path, query) = target.split_once('?').unzip();
            let path = path.unwrap_or(target);
            found.count(method, path, query, Timestamp::from_unix(7));
        }
        found
    }

    fn lines(calls: &UnroutedCalls) -> Vec<String> {
        let paths = report(calls).paths.into_iter();
        let line = |path: UnroutedPath| format!("{} {} {}", path.method, path.path, path.calls);
        paths.map(line).collect()
    }

    #[test]
    fn ids_are_placeholders_and_values_of_the_query_are_not_kept() {
        let calls = counted(&[
            "GET /users/7/orders/a1b2c3?page=2&q=secret",
            "GET /users/8/orders/x9y8z7?page=3",
            "GET /users/alice%40example.com/orders/1",
            "GET /v1/health",
            "POST /v1/health/",
            "GET /reset?eyJhbGciOiJIUzI1NiJ9=1&0193f1c0-aaaa=2",
            "TRACE /v1/health",
            "GET //x",
        ]);
        assert_eq!(
            lines(&calls),
            [
                "GET /reset 1",
                "GET /users/{integer}/orders/{string} 2",
                "GET /users/{string}/orders/{integer} 1",
                "GET /v1/health 1",
                "POST /v1/health/ 1",
            ]
        );
        let report = report(&calls);
        assert_eq!(report.more, 2);
        let query = &report.paths[1].query;
        assert_eq!((query["page"], query["q"]), (2, 1));
        assert!(report.paths[0].query.is_empty());
        assert_eq!(
            report.paths[0].last.as_deref(),
            Some("1970-01-01T00:00:07Z")
        );
    }

    #[test]
    fn a_full_table_merges_many_words_and_counts_the_rest() {
        let mut calls = UnroutedCalls::default();
        let word = |number: usize| -> String {
            let letter = |digit: usize| char::from(b'a' + (digit % 26) as u8);
            [letter(number / 676), letter(number / 26), letter(number)]
                .iter()
                .collect()
        };
        let at = Timestamp::from_unix(1);
        for number in 0..3 * ENTRIES {
            calls.count("GET", &format!("/users/{}", word(number)), None, at);
        }
        assert_eq!(
            lines(&calls),
            [format!("GET /users/{{string}} {}", 3 * ENTRIES)]
        );
        // Words of different depths are no values of one place.
        let mut scanned = UnroutedCalls::default();
        for number in 0..3 * ENTRIES {
            let path: String = (0..=number % 20).map(|_| "/x").collect();
            let path = format!("{path}/{}{}", word(number / 11), "/y".repeat(number % 3));
            scanned.count("GET", &path, None, at);
        }
        assert!(scanned.entries.len() <= ENTRIES);
        let kept = report(&scanned);
        let counted: u64 = kept.paths.iter().map(|path| path.calls).sum();
        assert_eq!(counted + kept.more, 3 * ENTRIES as u64);
    }

    #[test]
    fn workers_add_up() {
        let mut one = counted(&["GET /a?x=1", "GET /b"]);
        one.merge(&counted(&["GET /a?x=1&y=2", "PUT /b"]));
        assert_eq!(lines(&one), ["GET /a 2", "GET /b 1", "PUT /b 1"]);
        assert_eq!(report(&one).paths[0].query["x"], 2);
    }

    proptest! {
        #[test]
        fn no_target_panics_and_every_call_is_counted(
            targets in prop::collection::vec("(/|[a-z0-9%{}.]|é){0,30}", 0..20)
        ) {
            let mut calls = UnroutedCalls::default();
            for target in &targets {
                calls.count("GET", target, Some(target), Timestamp::from_unix(1));
            }
            let report = report(&calls);
            let counted: u64 = report.paths.iter().map(|path| path.calls).sum();
            prop_assert_eq!(counted + report.more, targets.len() as u64);
        }
    }
}
