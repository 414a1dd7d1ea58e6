//! The name and version that an MCP client declares: in the params of `initialize`, or in the metadata of each request
//! of a revision without sessions.
//!
//! Laws: both texts are bounded and contain no control characters, so that they can be shown in a terminal; they are no
//! proof of an identity.
//!
//! Used by `lifecycle`, `rollout`, `gateway` and `telemetry`.

use http::HeaderMap;

use super::envelope::CLIENT_KEY;
use crate::jsonrpc::{Call, Incoming, MessageItem};
use dualgauge_patterns::percent::{Keep, Plus, decode, encode};

/// The start of the ids of sessions that the proxy opens.
pub const SESSION_PREFIX: &str = "dualgauge-";
/// Maximum length of a name, in characters; a longer one ends with `…`.
const NAME: usize = 64;
/// Maximum length of a version, in characters; a longer one ends with `…`.
const VERSION: usize = 32;

/// The name and version of an MCP client, as it declares them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientInfo {
    name: Box<str>,
    version: Box<str>,
}

impl ClientInfo {
    /// Returns a client of this name and version, cut to their limits; `None` for an empty name.
    #[must_use]
    pub fn new(name: &str, version: &str) -> Option<ClientInfo> {
        let name = bounded(name, NAME);
        (!name.is_empty()).then(|| ClientInfo {
            name,
            version: bounded(version, VERSION),
        })
    }

    /// Returns the client that a call declares.
    #[must_use]
    pub fn of_call(call: &Call) -> Option<ClientInfo> {
        let params = call.params.as_ref()?;
        let info = match &*call.method {
            "initialize" => params.member("clientInfo")?,
            _ => params.member("_meta")?.member(CLIENT_KEY)?,
        };
        let name = info.member("name")?.text()?.ok()?;
        let version = info.member("version").and_then(|text| text.text()?.ok());
        ClientInfo::new(&name, version.as_deref().unwrap_or_default())
    }

    /// Returns the client that the first message of a body declares.
    #[must_use]
    pub fn of_messages(messages: &Incoming) -> Option<ClientInfo> {
        let first = match messages {
            Incoming::Single(item) => item,
            Incoming::Batch(items) => items.first()?,
        };
        match first {
            MessageItem::Call(call) => ClientInfo::of_call(call),
            MessageItem::Invalid(_) | MessageItem::Response(_) => None,
        }
    }

    /// Returns the client of the session that a request names.
    #[must_use]
    pub fn of_headers(headers: &HeaderMap) -> Option<ClientInfo> {
        ClientInfo::of_session(headers.get("mcp-session-id")?.to_str().ok()?)
    }

    /// Returns the client as the end of a session id: percent-encoded, after a dot. So any replica finds the client of a
    /// session without a table.
    #[must_use]
    pub fn session_suffix(&self) -> String {
        let mut suffix = String::from(".");
        encode(&self.name, Keep::Nothing, &mut suffix);
        suffix.push('/');
        encode(&self.version, Keep::Nothing, &mut suffix);
        suffix
    }

    /// Returns the client of a session id with [`ClientInfo::session_suffix`]. Clients can write any id, as they can
    /// declare any name.
    #[must_use]
    pub fn of_session(id: &str) -> Option<ClientInfo> {
        let (_, suffix) = id.strip_prefix(SESSION_PREFIX)?.split_once('.')?;
        let (name, version) = suffix.split_once('/')?;
        let name = decode(name, Plus::Literal).ok()?;
        let version = decode(version, Plus::Literal).ok()?;
        ClientInfo::new(&name, &version)
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the version; empty if the client declares none.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }
}

/// Returns a text of at most `limit` characters, with U+FFFD for each character that a terminal could act on.
fn bounded(text: &str, limit: usize) -> Box<str> {
    let shown = |character: char| match character.is_control() || is_direction(character) {
        true => char::REPLACEMENT_CHARACTER,
        false => character,
    };
    let mut bounded: String = text.chars().take(limit).map(shown).collect();
    if text.chars().nth(limit).is_some() {
        bounded.pop();
        bounded.push('…');
    }
    bounded.into()
}

/// Returns true for characters that change the direction of text (Unicode UAX #9).
const fn is_direction(character: char) -> bool {
    matches!(character, '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jsonrpc::{MessageLimits, parse};

    fn declared(text: &str) -> Option<(String, String)> {
        let limits = MessageLimits {
            depth: 16,
            batch: 1,
        };
        let message = text.to_owned().into_bytes().into();
        let Ok(Incoming::Single(MessageItem::Call(call))) = parse(&message, limits) else {
            panic!("{text}");
        };
        let info = ClientInfo::of_call(&call)?;
        Some((info.name().to_owned(), info.version().to_owned()))
    }

    #[test]
    fn a_client_declares_itself_in_initialize_or_in_the_metadata_of_each_request() {
        let some = |name: &str, version: &str| Some((name.to_owned(), version.to_owned()));
        for (params, method, wanted) in [
            (
                r#"{"clientInfo":{"name":"app","version":"1.2"}}"#,
                "initialize",
                some("app", "1.2"),
            ),
            (
                r#"{"clientInfo":{"name":"app"}}"#,
                "initialize",
                some("app", ""),
            ),
            (
                r#"{"_meta":{"io.modelcontextprotocol/clientInfo":{"name":"app","version":"2"}}}"#,
                "tools/call",
                some("app", "2"),
            ),
            (r#"{"clientInfo":{"name":"app"}}"#, "tools/call", None),
            (r#"{"clientInfo":{"name":7}}"#, "initialize", None),
            (r#"{"clientInfo":{"name":""}}"#, "initialize", None),
            (r#"{"clientInfo":"app"}"#, "initialize", None),
            ("[1]", "initialize", None),
        ] {
            let text =
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
            assert_eq!(declared(&text), wanted, "{text}");
        }
    }

    #[test]
    fn a_session_id_keeps_its_client() {
        for (name, version) in [("Example App", "1.2"), ("a.b/c%", ""), ("ü", "v/1.0")] {
            let info = ClientInfo::new(name, version).unwrap();
            let id = format!("{SESSION_PREFIX}0123{}", info.session_suffix());
            assert!(id.bytes().all(|byte| byte.is_ascii_graphic()), "{id}");
            assert_eq!(ClientInfo::of_session(&id), Some(info), "{id}");
        }
        for id in [
            "dualgauge-0123",
            "0123.app/1",
            "dualgauge-0.%zz/1",
            "dualgauge-0./1",
        ] {
            assert_eq!(ClientInfo::of_session(id), None, "{id}");
        }
    }

    #[test]
    fn declared_texts_are_bounded_and_cannot_control_a_terminal() {
        let long = "é".repeat(1_000);
        let info = ClientInfo::new(&long, &long).unwrap();
        assert_eq!(info.name().chars().count(), NAME);
        assert_eq!(info.version().chars().count(), VERSION);
        assert!(info.name().ends_with('…'));
        let info = ClientInfo::new("a\u{1b}[31m\n\u{202e}b", "").unwrap();
        assert_eq!(info.name(), "a\u{fffd}[31m\u{fffd}\u{fffd}b");
    }
}
