//! Rules about values that are refused, because they would not come back. Used by `check::rules`.

use super::holes::mutated;
use super::rule::{CheckRule, Hypothesis, Rivals, Weight};
use crate::check::locations::LocatedHole;
use crate::check::message::Message;
use crate::check::mutation::RawMutation;
use crate::check::subject::CheckSubject;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::Codec;

/// A key that would not come back from the other style is refused, on the side with the styles and on the other one.
/// Complete: each key is renamed and renamed back before it is passed on.
pub(in crate::check) fn key_style(subject: &CheckSubject<'_>, _: Rivals<'_>) -> Vec<Hypothesis> {
    let here = subject.here.holes.iter().filter_map(|located| {
        let Codec::Keys(styles) = located.slot.codec else {
            return None;
        };
        let messages = styles.refused().filter_map(|key| {
            let raw = RawMutation::Value(object(key));
            mutated(subject, located.slot, raw, &[])
        });
        Some(hypothesis(CheckRule::KeyStyle, located, messages.collect()))
    });
    let there = subject.there.holes.iter().filter_map(|located| {
        let Codec::Keys(styles) = located.slot.codec else {
            return None;
        };
        let hole = located.slot.binds()?;
        let keys = styles.refused_values();
        let messages = keys.filter_map(|key| subject.message(None, &[(hole, Some(object(key)))]));
        Some(hypothesis(CheckRule::KeyStyle, located, messages.collect()))
    });
    here.chain(there).collect()
}

/// An offset that is no multiple of the limit has no page, so it is refused by the side with offsets; a page beyond 64
/// bits is refused by the side with pages, and a limit below one by both. Complete: every offset is divided by the limit
/// before it is passed on.
pub(in crate::check) fn page_offset(subject: &CheckSubject<'_>, _: Rivals<'_>) -> Vec<Hypothesis> {
    let here = subject.here.holes.iter();
    let here = here.filter(|located| matches!(located.slot.codec, Codec::Page(_)));
    let here = here.map(|located| {
        let raw = RawMutation::Value(Json::literal("9223372036854775807"));
        let mut messages = Vec::from_iter(mutated(subject, located.slot, raw, &[]));
        messages.extend(without_items(subject, located));
        hypothesis(CheckRule::PageOffset, located, messages)
    });
    let there = subject.there.holes.iter().filter_map(|located| {
        let (Codec::Page(page), Some(offset)) = (&located.slot.codec, located.slot.binds()) else {
            return None;
        };
        let chosen = [
            (offset, Some(Json::literal("5"))),
            (page.limit_hole(), Some(Json::literal("2"))),
        ];
        let mut messages = Vec::from_iter(subject.message(None, &chosen));
        messages.extend(without_items(subject, located));
        Some(hypothesis(CheckRule::PageOffset, located, messages))
    });
    here.chain(there).collect()
}

/// Returns a call for the first page with the limit 0.
fn without_items(subject: &CheckSubject<'_>, located: &LocatedHole<'_>) -> Option<Message> {
    let Codec::Page(page) = &located.slot.codec else {
        return None;
    };
    let zero = || Some(Json::literal("0"));
    let offset = located.slot.binds()?;
    subject.message(None, &[(offset, zero()), (page.limit_hole(), zero())])
}

fn object(key: &str) -> Json {
    Json::written(format!("{{\"{key}\":1}}"))
}

fn hypothesis(rule: CheckRule, located: &LocatedHole<'_>, messages: Vec<Message>) -> Hypothesis {
    Hypothesis {
        rule,
        weight: Weight::Refused,
        at: located.at.clone(),
        messages,
    }
}
