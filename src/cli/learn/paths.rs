//! Paths with their varying segments. Used by `learn::documents`.
//!
//! Laws: each call fits the template that it is part of; two templates differ in a literal or in their length.

use std::collections::{BTreeMap, BTreeSet};

use super::observed::RestCall;
use dualgauge_model::unrouted::is_word;

/// The number of different words at one place that make it a varying segment.
const VARYING: usize = 12;

/// A segment of a template.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Segment {
    /// The same in all calls.
    Word(String),
    /// Different in different calls.
    Varies,
}

/// The calls of all methods, by template.
pub(super) type Templates<'c> = BTreeMap<Vec<Segment>, Vec<&'c RestCall>>;

/// Groups calls by the template of their path.
pub(super) fn templates(calls: &[RestCall]) -> Templates<'_> {
    let mut found: Templates<'_> = BTreeMap::new();
    for call in calls {
        let template = call.segments.iter().enumerate().map(|(at, text)| {
            let is_end = at + 1 == call.segments.len() && text.is_empty();
            match is_end || is_word(text) {
                true => Segment::Word(text.clone()),
                false => Segment::Varies,
            }
        });
        found.entry(template.collect()).or_default().push(call);
    }
    let longest = found.keys().map(Vec::len).max().unwrap_or_default();
    for at in 0..longest {
        found = merge(found, at);
    }
    found
}

/// Merges templates that differ only in many words at one place.
fn merge(found: Templates<'_>, at: usize) -> Templates<'_> {
    let around = |template: &[Segment]| {
        let mut around = template.to_vec();
        around[at] = Segment::Varies;
        around
    };
    let mut words: BTreeMap<Vec<Segment>, BTreeSet<&Segment>> = BTreeMap::new();
    for template in found.keys().filter(|template| template.len() > at) {
        if matches!(&template[at], Segment::Word(word) if !word.is_empty()) {
            words
                .entry(around(template))
                .or_default()
                .insert(&template[at]);
        }
    }
    let many: BTreeSet<Vec<Segment>> = words
        .into_iter()
        .filter(|(_, words)| words.len() >= VARYING)
        .map(|(around, _)| around)
        .collect();
    let mut merged: Templates<'_> = BTreeMap::new();
    for (template, calls) in found {
        let is_word = |it: &Segment| matches!(it, Segment::Word(word) if !word.is_empty());
        let key = match template.get(at) {
            Some(segment) if is_word(segment) && many.contains(&around(&template)) => {
                around(&template)
            }
            _ => template,
        };
        merged.entry(key).or_default().extend(calls);
    }
    merged
}
