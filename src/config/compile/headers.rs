//! Configured headers of an upstream, including those from files.
//!
//! Used by `compile::mcp`, `compile::upstreams` and `compile::websocket`.

use http::HeaderValue;

use crate::config::problem::Problem;
use crate::config::raw::{RawHeaderValue, RawHeaders};
use dualgauge_model::plan::SecretMap;

/// Checks the values from files; they are never shown.
pub(super) fn check(headers: &RawHeaders, problems: &mut Vec<Problem>) {
    for (_, value) in &headers.0 {
        if let RawHeaderValue::File(file) = value
            && text(value).is_none()
        {
            let shown = file.path.value.display();
            problems.push(file.path.problem(format!(
                "`{shown}` is invalid: a header value is one line of visible ASCII and spaces"
            )));
        }
    }
}

pub(super) fn plan(headers: &RawHeaders) -> SecretMap {
    let pairs = headers.0.iter();
    SecretMap::from_files(pairs.filter_map(|(name, value)| {
        let file = match value {
            RawHeaderValue::Text(_) => None,
            RawHeaderValue::File(file) => Some(file.path.value.clone()),
        };
        Some((name.value.clone(), text(value)?, file))
    }))
}

fn text(value: &RawHeaderValue) -> Option<String> {
    let bytes = match value {
        RawHeaderValue::Text(text) => &text.0,
        RawHeaderValue::File(file) => &file.content.0,
    };
    let text = std::str::from_utf8(bytes)
        .ok()?
        .trim_end_matches(['\r', '\n']);
    let fits = !text.is_empty() || matches!(value, RawHeaderValue::Text(_));
    (fits && HeaderValue::from_str(text).is_ok()).then(|| text.to_owned())
}
