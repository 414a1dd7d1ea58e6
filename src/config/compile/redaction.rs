//! Rules for hidden values. Used by `compile`.

use crate::config::raw::RawConfig;
use dualgauge_model::redact::Redaction;

/// Compiles the redaction rules.
pub(super) fn redaction(raw: &RawConfig) -> Redaction {
    let rules = &raw.log.redact;
    Redaction {
        headers: rules
            .headers
            .iter()
            .map(|name| name.value.clone())
            .collect(),
        keys: rules.keys.iter().map(|key| key.value.clone()).collect(),
        paths: rules.paths.iter().map(|path| path.value.clone()).collect(),
    }
}
