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
        Some(hypothesis(located, messages.collect()))
    });
    let there = subject.there.holes.iter().filter_map(|located| {
        let Codec::Keys(styles) = located.slot.codec else {
            return None;
        };
        let hole = located.slot.binds()?;
        let keys = styles.refused_values();
        let messages = keys.filter_map(|key| subject.message(None, &[(hole, Some(object(key)))]));
        Some(hypothesis(located, messages.collect()))
    });
    here.chain(there).collect()
}

fn object(key: &str) -> Json {
    Json::written(format!("{{\"{key}\":1}}"))
}

fn hypothesis(located: &LocatedHole<'_>, messages: Vec<Message>) -> Hypothesis {
    Hypothesis {
        rule: CheckRule::KeyStyle,
        weight: Weight::Refused,
        at: located.at.clone(),
        messages,
    }
}
