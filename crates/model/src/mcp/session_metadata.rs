//! The log level and capabilities of a client with sessions, as members of each request to a stateless server.
//!
//! Used by `mcp` and `gateway`.

use bytes::Bytes;

use super::envelope::{CAPABILITIES_KEY, with_metadata};
use super::input::InputCapabilities;
use super::log_level::{LEVEL_KEY, LogLevel};
use dualgauge_patterns::json::Json;

/// Returns a request of a session that names the log level and the capabilities of its client, unless it names them
/// itself. Every other byte is unchanged.
#[must_use]
pub fn with_session_metadata(
    message: &Bytes,
    level: Option<LogLevel>,
    capabilities: InputCapabilities,
    depth: u16,
) -> Option<Bytes> {
    let whole = Json::parse(message.clone(), depth).ok()?;
    let mut metadata = Vec::with_capacity(2);
    metadata.extend(level.map(|level| (LEVEL_KEY, Json::string(level.as_str()))));
    if capabilities != InputCapabilities::default() {
        metadata.push((CAPABILITIES_KEY, capabilities.to_json()));
    }
    with_metadata(&whole, &metadata)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_gets_what_its_session_has_and_keeps_what_it_says() {
        let initialize = Json::literal(r#"{"capabilities":{"roots":{}}}"#);
        let roots = InputCapabilities::of_initialize(Some(&initialize));
        let level = Some(LogLevel::Info);
        for (params, wanted) in [
            (
                r#"{"a":1.0}"#,
                r#"{"_meta":{"io.modelcontextprotocol/logLevel":"info","io.modelcontextprotocol/clientCapabilities":{"roots":{}}},"a":1.0}"#,
            ),
            (
                r#"{"_meta":{"io.modelcontextprotocol/logLevel":"error","io.modelcontextprotocol/clientCapabilities":{}}}"#,
                r#"{"_meta":{"io.modelcontextprotocol/logLevel":"error","io.modelcontextprotocol/clientCapabilities":{}}}"#,
            ),
        ] {
            let message = |params: &str| Bytes::from(format!(r#"{{"id":1,"params":{params}}}"#));
            let changed = with_session_metadata(&message(params), level, roots, 8);
            assert_eq!(changed, Some(message(wanted)));
        }
        let unread = Bytes::from_static(br#"{"id":1,"params":[]}"#);
        assert_eq!(with_session_metadata(&unread, level, roots, 8), None);
    }
}
