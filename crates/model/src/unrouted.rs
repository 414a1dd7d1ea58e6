//! Calls without a route, by method and path template: the material for a draft of routes.
//!
//! A segment that looks like an id or a name is a placeholder at once. If many words were seen at one place, they become
//! one placeholder when the table is full and in reports. Few words suffice where other calls show that the place
//! varies. All numbers and lengths are bounded; values of the query and bodies are never kept. Law: the calls of all
//! entries and of the excess are the calls that were counted.
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
/// The number of different words that make a place a placeholder in reports, if other calls show that it varies.
const FEW: usize = 3;
/// The maximum number of pairs of a query that are read.
const PAIRS: usize = 64;
/// The number of letters of a segment without a hyphen that make it a token.
const LETTERS: usize = 20;
/// The number of letters of a query name without a separator that make it a token.
const NAME_LETTERS: usize = 24;
/// The number of calls that find a full table between two attempts to make room.
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

/// A template without one place: the method, and the segments before and after the place.
type Around<'k> = (&'static str, &'k [TemplateSegment], &'k [TemplateSegment]);

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
    /// Calls that were not kept.
    more: u64,
    /// Calls of other workers for which a table that was merged had no room.
    beyond: u64,
    /// Calls with a new path that found a full table.
    full: u64,
    /// The last calls, which are not in `entries` yet.
    last: Option<RepeatedCalls>,
}

/// Calls with the same target, one after another.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RepeatedCalls {
    method: Box<str>,
    path: Box<str>,
    query: Option<Box<str>>,
    calls: UsageCount,
}

impl RepeatedCalls {
    /// Returns true if the table has entries for calls of this method and path.
    fn is_countable(&self) -> bool {
        PathKey::new(&self.method, &self.path).is_some()
    }
}

/// Calls without a route, as the admin API shows them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnroutedReport {
    /// The paths, in order.
    pub paths: Vec<UnroutedPath>,
    /// The number of calls beyond the limits, with other methods (`HEAD` and `OPTIONS`, for example), with more than 24
    /// segments or with `//` in the path.
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
        if let Some(last) = &mut self.last
            && *last.path == *path
            && *last.method == *method
            && last.query.as_deref() == query
        {
            last.calls.add(at);
            return;
        }
        let mut calls = UsageCount::default();
        calls.add(at);
        let next = RepeatedCalls {
            method: method.into(),
            path: path.into(),
            query: query.map(Box::from),
            calls,
        };
        if let Some(last) = self.last.replace(next) {
            self.more += self.add_repeated(&last);
        }
    }

    /// Returns the number of calls that were not kept.
    fn add_repeated(&mut self, repeated: &RepeatedCalls) -> u64 {
        let Some(key) = PathKey::new(&repeated.method, &repeated.path) else {
            return repeated.calls.calls;
        };
        let mut key = self.folded(key);
        if !self.entries.contains_key(&key) && self.entries.len() >= ENTRIES {
            if self.full.is_multiple_of(ATTEMPT) {
                self.compact();
                key = self.folded(key);
            }
            self.full += 1;
            if !self.entries.contains_key(&key) && self.entries.len() >= ENTRIES {
                return repeated.calls.calls;
            }
        }
        let count = self.entries.entry(key).or_default();
        count.calls.merge(&repeated.calls);
        let query = repeated.query.as_deref();
        let names = query.unwrap_or_default().split('&').take(PAIRS);
        let names = names.filter_map(|pair| decode(pair.split('=').next()?, Plus::Space).ok());
        let names: BTreeSet<Box<str>> = names
            .filter(|name| is_query_name(name))
            .map(Box::from)
            .collect();
        for name in names {
            if count.names.len() < NAMES || count.names.contains_key(&name) {
                *count.names.entry(name).or_default() += repeated.calls.calls;
            }
        }
        0
    }

    /// Adds the calls of another worker.
    pub fn merge(&mut self, other: &UnroutedCalls) {
        self.more += other.more;
        self.beyond += other.beyond;
        self.merged.extend(other.merged.iter().cloned());
        for (key, count) in &other.entries {
            if self.entries.contains_key(key) || self.entries.len() < ENTRIES {
                self.entries.entry(key.clone()).or_default().add(count);
            } else {
                self.beyond += count.calls.calls;
            }
        }
        if let Some(last) = &other.last {
            if last.is_countable() {
                self.beyond += self.add_repeated(last);
            } else {
                self.more += last.calls.calls;
            }
        }
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn entry_count(&self) -> usize {
        self.entries.len()
    }

    /// Returns the number of calls that no worker has kept. It never decreases, as the number in a report may. A call
    /// that finds a full table counts when one with another target follows.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        let last = self.last.as_ref().filter(|last| !last.is_countable());
        self.more + last.map_or(0, |last| last.calls.calls)
    }

    /// Returns true if nothing was counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.last.is_none() && self.more + self.beyond == 0
    }

    /// Returns the report, with places of many words as placeholders.
    #[must_use]
    pub fn report(mut self) -> UnroutedReport {
        if let Some(last) = self.last.take() {
            self.beyond += self.add_repeated(&last);
        }
        self.compact();
        self.merge_few();
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
            more: self.more + self.beyond,
        }
    }

    /// Returns the template that the words of a path have become, or the path itself.
    fn folded(&self, mut key: PathKey) -> PathKey {
        if self.merged.is_empty() {
            return key;
        }
        for at in 0..key.segments.len() {
            if key.has_word(at) {
                let word = std::mem::replace(&mut key.segments[at], TemplateSegment::Text);
                if !self.merged.contains(&key) {
                    key.segments[at] = word;
                }
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
        let mut words: BTreeMap<Around<'_>, (&PathKey, usize)> = BTreeMap::new();
        for key in self.entries.keys().filter(|key| key.has_word(at)) {
            words.entry(key.around(at)).or_insert((key, 0)).1 += 1;
        }
        let is_merged =
            |key: &PathKey| !self.merged.is_empty() && self.merged.contains(&key.with_text(at));
        let words = words.into_values();
        let words = words.filter(|(key, count)| *count >= VARYING || is_merged(key));
        let words: BTreeSet<PathKey> = words.map(|(key, _)| key.with_text(at)).collect();
        self.replace_at(at, words);
    }

    /// Merges few words at a place if the collection before it is called, or if other calls have a placeholder there: with
    /// such neighbours, a word is rather a value than a part of the API.
    fn merge_few(&mut self) {
        let longest = self.entries.keys().map(|key| key.segments.len()).max();
        for at in 1..longest.unwrap_or_default() {
            let mut varying: BTreeSet<&[TemplateSegment]> = BTreeSet::new();
            for key in self.entries.keys() {
                if key.segments.len() == at && key.is_collection() {
                    varying.insert(&key.segments);
                } else if key.segments.len() > at && !key.is_literal(at) {
                    varying.insert(&key.segments[..at]);
                }
            }
            let mut words: BTreeMap<Around<'_>, (&PathKey, usize)> = BTreeMap::new();
            for key in self.entries.keys().filter(|key| key.has_word(at)) {
                if varying.contains(&key.segments[..at]) {
                    words.entry(key.around(at)).or_insert((key, 0)).1 += 1;
                }
            }
            let words = words.into_values().filter(|(_, count)| *count >= FEW);
            let words: BTreeSet<PathKey> = words.map(|(key, _)| key.with_text(at)).collect();
            self.replace_at(at, words);
        }
    }

    /// Replaces the words at one place of entries by a placeholder, if that gives one of the templates.
    fn replace_at(&mut self, at: usize, templates: BTreeSet<PathKey>) {
        if templates.is_empty() {
            return;
        }
        for (mut key, count) in std::mem::take(&mut self.entries) {
            if key.has_word(at) {
                let word = std::mem::replace(&mut key.segments[at], TemplateSegment::Text);
                if !templates.contains(&key) {
                    key.segments[at] = word;
                }
            }
            self.entries.entry(key).or_default().add(&count);
        }
        // A merged template of an earlier place has changed, too.
        self.merged.extend(templates);
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

    fn is_literal(&self, at: usize) -> bool {
        matches!(self.segments.get(at), Some(TemplateSegment::Word(_)))
    }

    /// Returns true if the last segment is the name of a collection, as opposed to a root such as `/api/v1`.
    fn is_collection(&self) -> bool {
        matches!(self.segments.last(), Some(TemplateSegment::Word(word))
            if !word.is_empty() && &**word != "api" && !word.contains(|c: char| c.is_ascii_digit()))
    }

    /// Returns the template without one of its places.
    fn around(&self, at: usize) -> Around<'_> {
        (self.method, &self.segments[..at], &self.segments[at + 1..])
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
        match segment.is_empty() || (is_word(segment) && !is_name(segment)) {
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

/// Returns true for a word that is likely a person, an account or a token: `alice.smith`, `anna42`, `dGVzdA`.
fn is_name(word: &str) -> bool {
    const ENDINGS: [&str; 10] = [
        "json", "xml", "csv", "txt", "html", "pdf", "php", "do", "aspx", "svc",
    ];
    let letters = |text: &str| text.bytes().filter(u8::is_ascii_alphabetic).count();
    if word.contains('~') || (letters(word) > LETTERS && !word.contains('-')) {
        return true;
    }
    // A file such as `report.json` and versions such as `v1.2` are no names.
    let stem = word.rsplit_once('.');
    let stem = stem.filter(|(_, end)| ENDINGS.contains(end));
    let stem = stem.map_or(word, |(stem, _)| stem);
    if stem.contains('.') && stem.split('.').all(|part| letters(part) > 0) {
        return true;
    }
    // Short words have versions: `v1`, `s3`, `api2`, `oauth2`.
    let word = stem.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let is_version = word.len() <= 2 || matches!(word, "api" | "oauth" | "version");
    (word != stem && !is_version) || !stem.split(['-', '_', '.']).all(is_one_case)
}

/// Returns true for `users`, `getItems`, `userID` and `URL`, as opposed to a mix such as `dGVzdA`: a capital follows two
/// small letters at least.
fn is_one_case(text: &str) -> bool {
    let mut small = 0;
    for byte in text.bytes() {
        if !byte.is_ascii_uppercase() {
            small += 1;
        } else if small == 1 {
            return false;
        } else {
            small = 0;
        }
    }
    true
}

/// Returns true for a name of an API, as opposed to an id or a token.
fn is_query_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.~[]$@:".contains(c);
    let digits = name.bytes().filter(u8::is_ascii_digit).count();
    let is_short = name.len() <= WORD && (digits == 0 || name.len() <= 16);
    let mut parts = name.split(|c: char| !c.is_ascii_alphanumeric());
    let is_token = parts.any(|part| part.len() > NAME_LETTERS || !is_one_case(part));
    !name.is_empty() && is_short && !is_token && digits <= 2 && name.chars().all(plain)
}

#[cfg(test)]
mod tests;
