//! Old messages that are the value of a query parameter, in place of a request body: `?request={"jsonrpc":"2.0",…}`.
//!
//! Such a message is read and written as the body of its route. Its length is limited by that of a request's target,
//! its depth by `limits.depth`. Used by `dialect`, `route::draft` and `translate`.

use bytes::Bytes;

use super::query::Query;
use super::source::RouteSource;
use super::template::QueryItem;
use dualgauge_patterns::json::same_ignoring_case;
use dualgauge_patterns::pattern::{HoleRef, PatternError};
use dualgauge_patterns::percent::{self, Keep, Plus};

/// Returns the query parameter that has the messages of a route. `query` has its other parameters.
pub(super) fn parameter(
    source: &RouteSource,
    query: &[QueryItem<HoleRef>],
) -> Result<Option<String>, PatternError> {
    let Some(name) = source.old.as_ref().and_then(|old| old.parameter.as_ref()) else {
        return Ok(None);
    };
    let refuse = |what: &str| Err(PatternError::new(what).under("parameter"));
    if source.named_body().is_none() {
        return refuse("the message is missing; write its members in `body`");
    }
    if !source.rest.starts_with("GET ") {
        return refuse("only a GET has its message in the query; write `method = \"GET\"`");
    }
    if query.iter().any(|item| same_ignoring_case(&item.key, name)) {
        return refuse("`query` has a pattern of this parameter; `body` is its pattern");
    }
    Ok(Some(name.clone()))
}

/// Returns the message in a query; `None` if the parameter is absent, repeated or malformed.
#[must_use]
pub fn message_in(query: &str, parameter: &str) -> Option<Bytes> {
    let query = Query::parse(Some(query)).ok()?;
    let mut named = query.pairs.iter().filter(|(name, _)| name == parameter);
    let (Some((_, value)), None) = (named.next(), named.next()) else {
        return None;
    };
    let text = percent::decode(value, Plus::Space).ok()?;
    Some(Bytes::from(text.into_owned().into_bytes()))
}

/// Adds a message to the query of a target.
pub(crate) fn write_message(target: &mut String, parameter: &str, message: &[u8]) {
    target.push(if target.contains('?') { '&' } else { '?' });
    percent::encode(parameter, Keep::Nothing, target);
    target.push('=');
    percent::encode(&String::from_utf8_lossy(message), Keep::Nothing, target);
}

/// Checks that a query has at most one message, and that a written message is read again.
///
/// # Panics
///
/// If a check fails: this is the body of a fuzz target.
pub fn check_any_query(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let name = text.chars().take(3).collect::<String>();
    let found = message_in(&text, &name);
    if let Some(message) = &found {
        assert!(message.len() <= text.len(), "a message grew");
        let repeated = format!("{text}&{text}");
        assert_eq!(message_in(&repeated, &name), None, "two messages are none");
    }
    for start in ["/", "/jsonrpc?", "/jsonrpc?longer=1"] {
        let mut target = start.to_owned();
        write_message(&mut target, &name, text.as_bytes());
        let query = target.split_once('?').map_or("", |(_, query)| query);
        let read = message_in(query, &name);
        assert_eq!(read.as_deref(), Some(text.as_bytes()), "{target}");
    }
}
