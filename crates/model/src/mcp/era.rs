//! The era of a call by an MCP client: with a handshake, up to revision 2025-11-25, or stateless, from 2026-07-28 on.
//!
//! The evidence is in the call itself. A call without any is no MCP call. Law: all words are from closed sets, so that
//! they can be metric labels.
//!
//! Used by `lifecycle`, `gateway` and `telemetry`.

use http::{HeaderMap, HeaderName};

use super::envelope::VERSION_KEY;
use crate::jsonrpc::Call;
use crate::local_reply::{HANDSHAKES, STATELESS};

static VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
static SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// The revision of a call that names none. Clients up to 2025-03-26 name theirs in `initialize` only.
const UNNAMED: &str = "unnamed";
/// A revision that this program does not know.
const OTHER: &str = "other";

/// The two eras of MCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Era {
    /// Clients begin with `initialize`, and may have a session: up to 2025-11-25.
    Handshake,
    /// Each request describes its client: from 2026-07-28 on.
    Stateless,
}

impl Era {
    /// Both eras.
    pub const ALL: [Era; 2] = [Era::Handshake, Era::Stateless];

    /// Returns the word used in metrics and reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Era::Handshake => "handshake",
            Era::Stateless => "stateless",
        }
    }
}

/// The era and the revision of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallEra {
    era: Era,
    revision: &'static str,
}

impl CallEra {
    /// Returns the era of a call. `headers` are those of its request; a message on a WebSocket has none.
    #[must_use]
    pub fn of_call(headers: Option<&HeaderMap>, call: &Call) -> Option<CallEra> {
        let params = call.params.as_ref();
        if *call.method == *"initialize" {
            let version = params.and_then(|params| params.member("protocolVersion")?.text()?.ok());
            return Some(CallEra::handshake(version.as_deref()));
        }
        let known = match headers {
            Some(headers) => CallEra::of_headers(headers),
            None => {
                let meta = params.and_then(|params| params.member("_meta"));
                let version = meta.and_then(|meta| meta.member(VERSION_KEY)?.text()?.ok());
                version.map(|version| CallEra::of_version(&version))
            }
        };
        known.or_else(|| is_mcp_method(&call.method).then(|| CallEra::handshake(None)))
    }

    /// Returns the era of a request by its headers alone.
    #[must_use]
    pub fn of_headers(headers: &HeaderMap) -> Option<CallEra> {
        match headers.get(&VERSION) {
            Some(version) => Some(CallEra::of_version(version.to_str().unwrap_or_default())),
            None => headers
                .contains_key(&SESSION)
                .then(|| CallEra::handshake(None)),
        }
    }

    /// Returns the era of these words, as in a stored record; `None` for an unknown era.
    #[must_use]
    pub fn from_words(era: &str, revision: &str) -> Option<CallEra> {
        let era = Era::ALL.into_iter().find(|known| known.as_str() == era)?;
        let words = CallEra::revisions(era);
        let revision = words.into_iter().find(|known| *known == revision);
        Some(CallEra {
            era,
            revision: revision.unwrap_or(OTHER),
        })
    }

    /// Returns the era.
    #[must_use]
    pub const fn era(self) -> Era {
        self.era
    }

    /// Returns the revision that the call names, from a closed set of words.
    #[must_use]
    pub const fn revision(self) -> &'static str {
        self.revision
    }

    /// Returns true if the call names this revision or a later one.
    #[must_use]
    pub fn is_from(self, revision: &str) -> bool {
        match self.era {
            Era::Stateless => true,
            // Revisions are dates, so their order is that of their texts.
            Era::Handshake => HANDSHAKES.contains(&self.revision) && self.revision >= revision,
        }
    }

    fn revisions(era: Era) -> Vec<&'static str> {
        match era {
            Era::Handshake => HANDSHAKES.into_iter().chain([UNNAMED]).collect(),
            Era::Stateless => STATELESS.to_vec(),
        }
    }

    fn of_version(version: &str) -> CallEra {
        let [.., newest] = HANDSHAKES;
        // Revisions are dates, so their order is that of their texts.
        if version <= newest {
            return CallEra::handshake(Some(version));
        }
        let known = STATELESS.into_iter().find(|known| *known == version);
        CallEra {
            era: Era::Stateless,
            revision: known.unwrap_or(OTHER),
        }
    }

    fn handshake(version: Option<&str>) -> CallEra {
        let revision = version.map_or(UNNAMED, |version| {
            let known = HANDSHAKES.into_iter().find(|known| *known == version);
            known.unwrap_or(OTHER)
        });
        CallEra {
            era: Era::Handshake,
            revision,
        }
    }
}

/// Returns true for methods that only MCP has. `ping` is not one of them: other JSON-RPC servers have it.
fn is_mcp_method(method: &str) -> bool {
    const GROUPS: [&str; 6] = [
        "tools/",
        "resources/",
        "prompts/",
        "completion/",
        "logging/",
        "notifications/",
    ];
    GROUPS.iter().any(|group| method.starts_with(group))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jsonrpc::{Incoming, MessageItem, MessageLimits, parse};

    fn call(method: &str, params: &str) -> Call {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        let limits = MessageLimits {
            depth: 16,
            batch: 1,
        };
        match parse(&text.clone().into(), limits) {
            Ok(Incoming::Single(MessageItem::Call(call))) => call,
            _ => panic!("{text}"),
        }
    }

    fn words(found: Option<CallEra>) -> Option<(&'static str, &'static str)> {
        found.map(|found| (found.era().as_str(), found.revision()))
    }

    fn over_http(
        headers: &[(&'static str, &'static str)],
        method: &str,
        params: &str,
    ) -> Option<(&'static str, &'static str)> {
        let fields = headers.iter();
        let fields =
            fields.map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
        let headers: HeaderMap = fields.collect();
        words(CallEra::of_call(Some(&headers), &call(method, params)))
    }

    #[test]
    fn a_header_names_the_revision() {
        let named = |version| over_http(&[("mcp-protocol-version", version)], "x", "{}");
        assert_eq!(named("2026-07-28"), Some(("stateless", "2026-07-28")));
        assert_eq!(named("2025-11-25"), Some(("handshake", "2025-11-25")));
        assert_eq!(named("2024-10-07"), Some(("handshake", "other")));
        assert_eq!(named("2027-01-01"), Some(("stateless", "other")));
        assert_eq!(named("DRAFT"), Some(("stateless", "other")));
    }

    #[test]
    fn without_a_header_the_method_and_the_session_tell() {
        let initialize = |params| over_http(&[], "initialize", params);
        let newest = r#"{"protocolVersion":"2025-11-25"}"#;
        assert_eq!(initialize(newest), Some(("handshake", "2025-11-25")));
        let unknown = r#"{"protocolVersion":"2099-01-01"}"#;
        assert_eq!(initialize(unknown), Some(("handshake", "other")));
        assert_eq!(initialize("{}"), Some(("handshake", "unnamed")));
        let unnamed = Some(("handshake", "unnamed"));
        assert_eq!(over_http(&[], "tools/list", "{}"), unnamed);
        assert_eq!(over_http(&[("mcp-session-id", "s")], "ping", "{}"), unnamed);
        for plain in ["ping", "item.get", "toolset", "initialized"] {
            assert_eq!(over_http(&[], plain, "{}"), None, "{plain}");
        }
    }

    #[test]
    fn a_message_on_a_socket_names_its_revision_in_its_metadata() {
        let meta = r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#;
        let found = |method, params| words(CallEra::of_call(None, &call(method, params)));
        assert_eq!(found("x", meta), Some(("stateless", "2026-07-28")));
        assert_eq!(found("tools/call", "{}"), Some(("handshake", "unnamed")));
        assert_eq!(found("x", "{}"), None);
    }

    #[test]
    fn words_survive_a_store_and_unknown_ones_are_not_taken() {
        for era in Era::ALL {
            for revision in CallEra::revisions(era).into_iter().chain([OTHER]) {
                let found = CallEra::from_words(era.as_str(), revision);
                assert_eq!(words(found), Some((era.as_str(), revision)));
            }
        }
        assert_eq!(
            words(CallEra::from_words("stateless", "2030-01-01")),
            Some(("stateless", "other"))
        );
        assert_eq!(CallEra::from_words("third", "2026-07-28"), None);
    }
}
