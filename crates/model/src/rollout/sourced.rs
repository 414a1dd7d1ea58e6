//! Values of flags from a source outside of this proxy.
//!
//! Laws: a value that cannot be read changes nothing; a value that stays the same keeps its time.
//!
//! Used by `app` and `ofrep`.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::percent::Percent;
use super::stage::Stage;

/// The value of a flag at the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum SourcedValue {
    /// The flag takes no caller, not even one without a key.
    Off,
    /// The flag has these values.
    On {
        /// The stage; absent for that of the flags file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stage: Option<Stage>,
        /// The share.
        percent: Percent,
    },
}

impl fmt::Display for SourcedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SourcedValue::Off => f.write_str("off"),
            SourcedValue::On {
                stage: Some(stage),
                percent,
            } => write!(f, "{} {percent} %", stage.as_str()),
            SourcedValue::On {
                stage: None,
                percent,
            } => write!(f, "{percent} %"),
        }
    }
}

/// A value with the time at which this proxy first received it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourcedFlag {
    /// The value.
    pub value: SourcedValue,
    /// The time, in RFC 3339.
    pub at: String,
}

/// The flags that a source governs, by name.
pub type SourcedFlags = BTreeMap<String, SourcedFlag>;

/// The flags in a response of a source, by name: their values, `None` for a flag without one, or the reasons why they
/// cannot be used.
pub type ReceivedValues = BTreeMap<String, Result<Option<SourcedValue>, String>>;

/// Returns the flags that the source governs after a response at a time. A flag whose value cannot be used stays as it
/// was before.
#[must_use]
pub fn follow(before: &SourcedFlags, received: &ReceivedValues, at: &str) -> SourcedFlags {
    let flags = received.iter().filter_map(|(name, value)| {
        let known = before.get(name);
        let flag = match (value, known) {
            (Err(_), known) => known?.clone(),
            (Ok(None), _) => return None,
            (Ok(Some(value)), Some(known)) if known.value == *value => known.clone(),
            (Ok(Some(value)), _) => SourcedFlag {
                value: *value,
                at: at.to_owned(),
            },
        };
        Some((name.clone(), flag))
    });
    flags.collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_value() -> impl Strategy<Value = SourcedValue> {
        let stage = prop::option::of(prop::sample::select(Stage::ALL.to_vec()));
        let percent = (0_u32..=100_000).prop_map(|part| Percent::from_thousandths(part).unwrap());
        prop_oneof![
            Just(SourcedValue::Off),
            (stage, percent).prop_map(|(stage, percent)| SourcedValue::On { stage, percent }),
        ]
    }

    fn any_values() -> impl Strategy<Value = ReceivedValues> {
        let value = prop_oneof![
            prop::option::of(any_value()).prop_map(Ok),
            Just(Err("wrong".to_owned()))
        ];
        prop::collection::btree_map("[abc]", value, 0..4)
    }

    proptest! {
        #[test]
        fn each_flag_has_its_value_or_the_one_before(first in any_values(), second in any_values()) {
            let before = follow(&SourcedFlags::new(), &first, "first");
            let after = follow(&before, &second, "second");
            prop_assert!(after.keys().all(|name| second.contains_key(name)));
            for (name, value) in &second {
                let found = after.get(name);
                match value {
                    Err(_) => prop_assert_eq!(found, before.get(name)),
                    Ok(None) => prop_assert_eq!(found, None),
                    Ok(Some(value)) => {
                        let found = found.unwrap();
                        prop_assert_eq!(&found.value, value);
                        let same = before.get(name).is_some_and(|known| known.value == *value);
                        prop_assert_eq!(&*found.at, if same { "first" } else { "second" });
                    }
                }
            }
            let text = serde_json::to_string(&after).unwrap();
            prop_assert_eq!(serde_json::from_str::<SourcedFlags>(&text).unwrap(), after);
        }
    }

    #[test]
    fn a_value_is_described_by_what_it_sets() {
        let percent = Percent::from_thousandths(12_500).unwrap();
        let on = |stage| SourcedValue::On { stage, percent };
        assert_eq!(SourcedValue::Off.to_string(), "off");
        assert_eq!(on(None).to_string(), "12.5 %");
        assert_eq!(on(Some(Stage::Shadow)).to_string(), "shadow 12.5 %");
    }
}
