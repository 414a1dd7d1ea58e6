//! Negotiation of the MCP revision with a server. Used by `config`, `model` and `upstream`.

use bytes::Bytes;
use serde_json::{Value, json};

use super::envelope::VERSION_KEY;
use crate::jsonrpc::{ErrorObject, ResponseReply};
use crate::local_reply::{HANDSHAKES, STATELESS};
use crate::pending::ServerRequests;
use dualgauge_patterns::json::Json;

/// The client information of the proxy.
pub(super) const CLIENT_INFO: &str = concat!(
    r#"{"name":"dualgauge","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#""}"#
);
/// The capabilities of the proxy: it passes requests of the server on to the client of the call.
const CAPABILITIES: &str = r#"{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}"#;
/// The member with the server information in revisions without sessions.
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// Maximum length of server text in messages.
const SHOWN: usize = 40;
/// "Unsupported protocol version" (MCP 2026-07-28).
const UNSUPPORTED: i64 = -32022;

/// The configured revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revision {
    /// The revision without sessions if the server supports it, else one with sessions.
    Auto,
    /// A revision with `initialize`: this one is requested, and an older one is accepted.
    Sessions(&'static str),
    /// This revision, without sessions.
    Stateless(&'static str),
}

impl Revision {
    /// Returns the revision of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Revision> {
        let known = |all: &[&'static str]| all.iter().find(|known| **known == name).copied();
        match name {
            "auto" => Some(Revision::Auto),
            _ => known(&HANDSHAKES)
                .map(Revision::Sessions)
                .or(known(&STATELESS).map(Revision::Stateless)),
        }
    }

    /// Returns the params of `initialize`. The capabilities are those for requests that the proxy hands to clients.
    #[must_use]
    pub fn initialize(self, server_requests: ServerRequests) -> Json {
        let [.., newest] = HANDSHAKES;
        let version = match self {
            Revision::Sessions(version) => version,
            Revision::Auto | Revision::Stateless(_) => newest,
        };
        let capabilities = match server_requests {
            ServerRequests::Caller => CAPABILITIES,
            ServerRequests::Decline => "{}",
        };
        Json::written(format!(
            r#"{{"protocolVersion":"{version}","capabilities":{capabilities},"clientInfo":{CLIENT_INFO}}}"#
        ))
    }
}

/// The result of `server/discover`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiscoverResult {
    /// The server supports this revision without sessions; the value is its information in the form of an `initialize`
    /// result.
    Stateless(&'static str, Json),
    /// The server names no revision without sessions.
    Sessions,
    /// The server supports no known revision.
    Unknown(String),
}

/// Returns the `server/discover` request with an id.
#[must_use]
pub fn discover(id: u64) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"server/discover","params":{{}}}}"#)
}

/// Interprets the response to [`discover`]. Without evidence of a revision without sessions, the server has sessions.
#[must_use]
pub fn discover_result(answer: &ResponseReply) -> DiscoverResult {
    match answer {
        ResponseReply::Result(result) => match offered_revision(result.member("supportedVersions"))
        {
            OfferedRevision::Stateless(version) => {
                DiscoverResult::Stateless(version, initialize_result(result))
            }
            OfferedRevision::Sessions | OfferedRevision::Nothing | OfferedRevision::Others(_) => {
                DiscoverResult::Sessions
            }
        },
        ResponseReply::Error(error) if is_unsupported(error) => {
            let supported = error
                .data
                .as_ref()
                .and_then(|data| data.member("supported"));
            match offered_revision(supported) {
                OfferedRevision::Others(versions) => DiscoverResult::Unknown(versions),
                OfferedRevision::Stateless(_)
                | OfferedRevision::Sessions
                | OfferedRevision::Nothing => DiscoverResult::Sessions,
            }
        }
        ResponseReply::Error(_) => DiscoverResult::Sessions,
    }
}

enum OfferedRevision {
    Stateless(&'static str),
    Sessions,
    Others(String),
    Nothing,
}

fn offered_revision(versions: Option<Json>) -> OfferedRevision {
    let Some(versions) = versions else {
        return OfferedRevision::Nothing;
    };
    let offered: Vec<String> = serde_json::from_slice(versions.as_bytes()).unwrap_or_default();
    let known = |all: &[&'static str]| {
        let mut newest = all.iter().rev();
        newest
            .find(|known| offered.iter().any(|offered| offered == *known))
            .copied()
    };
    match (known(&STATELESS), known(&HANDSHAKES)) {
        (Some(version), _) => OfferedRevision::Stateless(version),
        (None, Some(_)) => OfferedRevision::Sessions,
        (None, None) if offered.is_empty() => OfferedRevision::Nothing,
        (None, None) => OfferedRevision::Others(offered.join(", ")),
    }
}

/// Requests of revisions with sessions that 2026-07-28 lacks. Their result is empty.
const DROPPED: [&str; 4] = [
    "ping",
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
];

/// Returns the response to a call of a client with sessions that a server without them does not know: the client treats
/// an error of `ping` as a lost connection. The server itself answers a call that names a revision without sessions.
#[must_use]
pub fn answer_locally(id: u64, method: &str, message: &Bytes, depth: u16) -> Option<String> {
    if !DROPPED.contains(&method) {
        return None;
    }
    let whole = Json::parse(message.clone(), depth).ok();
    let meta = whole.and_then(|whole| whole.member("params")?.member("_meta"));
    let version = meta.and_then(|meta| meta.member(VERSION_KEY)?.text()?.ok());
    let is_stateless = version.is_some_and(|version| STATELESS.contains(&&*version));
    (!is_stateless).then(|| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#))
}

/// Returns the server's information as an `initialize` result, for clients that begin with `initialize`.
fn initialize_result(result: &Json) -> Json {
    let [.., newest] = HANDSHAKES;
    let discovered: Value = serde_json::from_slice(result.as_bytes()).unwrap_or_default();
    let member = |value: &Value, other: Value| {
        if value.is_object() {
            value.clone()
        } else {
            other
        }
    };
    let unnamed = json!({ "name": "", "version": "" });
    let mut initialize_result = json!({
        "protocolVersion": newest,
        "capabilities": member(&discovered["capabilities"], json!({})),
        "serverInfo": member(&discovered["_meta"][SERVER_INFO], unnamed),
    });
    if discovered["instructions"].is_string() {
        initialize_result["instructions"] = discovered["instructions"].clone();
    }
    Json::written(initialize_result.to_string())
}

/// Returns the response to an `initialize` with this id.
#[must_use]
pub fn initialize_response(id: u64, initialize_result: &Json) -> String {
    let result = String::from_utf8_lossy(initialize_result.as_bytes());
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

/// Returns the revisions that a link accepts after a handshake with these params: the known ones, and the one that the
/// params name. Returns none, which means any, if they name none.
#[must_use]
pub fn accepted_revisions(initialize: &Json) -> Vec<String> {
    let wanted = initialize.member("protocolVersion");
    let Some(Ok(wanted)) = wanted.and_then(|wanted| wanted.text()) else {
        return Vec::new();
    };
    let known = HANDSHAKES.iter().map(|known| (*known).to_owned());
    let mut all: Vec<String> = known.collect();
    if !all.contains(&wanted) {
        all.push(wanted);
    }
    all
}

/// Checks that the result of `initialize` names one of these revisions; an empty list allows any.
///
/// # Errors
/// The revision that the server names instead, as a message.
pub fn check_revision(result: &Json, revisions: &[String]) -> Result<(), String> {
    let revision = result.member("protocolVersion");
    let revision = revision.and_then(|revision| revision.text()?.ok());
    if revisions.is_empty()
        || revision
            .as_ref()
            .is_some_and(|revision| revisions.contains(revision))
    {
        return Ok(());
    }
    let offer = match revision {
        Some(revision) => {
            let shown: String = revision.chars().take(SHOWN).collect();
            format!("it offers the revision `{}`", shown.escape_debug())
        }
        None => "it offers no revision".to_owned(),
    };
    let supported = revisions.join(", ");
    Err(format!("{offer}; supported revisions are {supported}"))
}

/// Returns true for the error of a server that supports no revision with sessions.
#[must_use]
pub fn is_unsupported(error: &ErrorObject) -> bool {
    error.code == UNSUPPORTED
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jsonrpc::parse_response;

    fn reply(text: &'static str) -> ResponseReply {
        parse_response(&text.into(), 16).unwrap().reply
    }

    #[test]
    fn only_a_server_that_names_a_stateless_revision_has_no_sessions() {
        let modern = reply(
            r#"{"id":0,"result":{"supportedVersions":["2025-11-25","2026-07-28"],"capabilities":
                {"tools":{"listChanged":true},"resources":{"subscribe":true,"x":1},"logging":{}},"instructions":"i","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}}"#,
        );
        let DiscoverResult::Stateless("2026-07-28", initialize_result) = discover_result(&modern)
        else {
            panic!("{:?}", discover_result(&modern));
        };
        let response: Value =
            serde_json::from_str(&initialize_response(3, &initialize_result)).unwrap();
        let wanted = json!({ "jsonrpc": "2.0", "id": 3, "result": { "protocolVersion": "2025-11-25",
            "capabilities": { "tools": { "listChanged": true }, "resources": { "subscribe": true, "x": 1 }, "logging": {} }, "serverInfo": { "name": "s", "version": "1" }, "instructions": "i" } });
        assert_eq!(response, wanted);
        for text in [
            r#"{"id":0,"result":{"supportedVersions":["2025-11-25"]}}"#,
            r#"{"id":0,"result":{}}"#,
            r#"{"id":0,"error":{"code":-32601,"message":"no"}}"#,
            r#"{"id":0,"error":{"code":-32022,"message":"no"}}"#,
            r#"{"id":0,"error":{"code":-32022,"message":"no","data":{"supported":["2025-06-18"]}}}"#,
        ] {
            assert_eq!(
                discover_result(&reply(text)),
                DiscoverResult::Sessions,
                "{text}"
            );
        }
        let newer = reply(
            r#"{"id":0,"error":{"code":-32022,"message":"","data":{"supported":["2099-01-01"]}}}"#,
        );
        assert_eq!(
            discover_result(&newer),
            DiscoverResult::Unknown("2099-01-01".to_owned())
        );
    }

    #[test]
    fn requests_that_only_older_clients_know_are_answered() {
        let answer = |method, meta| {
            let message = format!(r#"{{"id":3,"method":"{method}","params":{{{meta}}}}}"#);
            answer_locally(3, method, &message.into(), 8)
        };
        let empty = Some(r#"{"jsonrpc":"2.0","id":3,"result":{}}"#.to_owned());
        for method in DROPPED {
            for meta in [
                "",
                r#""_meta":{"progressToken":1}"#,
                r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2025-11-25"}"#,
            ] {
                assert_eq!(answer(method, meta), empty, "{method} {meta}");
            }
            let modern = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;
            assert_eq!(answer(method, modern), None, "{method}");
        }
        assert_eq!(answer("tools/list", ""), None);
    }

    #[test]
    fn a_link_accepts_known_revisions_and_the_requested_one() {
        let json = |text: &'static str| Json::parse(text.into(), 8).unwrap();
        let usual = accepted_revisions(&Revision::Auto.initialize(ServerRequests::Caller));
        assert_eq!(usual, HANDSHAKES);
        let requested = accepted_revisions(&json(r#"{"protocolVersion":"1.0"}"#));
        assert_eq!(requested.last().map(String::as_str), Some("1.0"));
        let old = json(r#"{"protocolVersion":"2024-11-05"}"#);
        assert_eq!(
            (
                check_revision(&old, &usual),
                check_revision(&old, &requested)
            ),
            (Ok(()), Ok(()))
        );
        let strange = json(r#"{"protocolVersion":"1.0"}"#);
        assert_eq!(check_revision(&strange, &requested), Ok(()));
        for (result, shown) in [
            (r#"{"protocolVersion":"1.0"}"#, "the revision `1.0`"),
            (r#"{"protocolVersion":1.0}"#, "no revision"),
            (r#"{"protocolVersion":null}"#, "no revision"),
            ("{}", "no revision"),
            ("7", "no revision"),
        ] {
            let why = check_revision(&json(result), &usual).unwrap_err();
            assert!(why.contains(shown) && why.contains("2025-03-26"), "{why}");
        }
        // Without a requested revision, any is accepted.
        assert_eq!(accepted_revisions(&json("{}")), Vec::<String>::new());
        assert_eq!(check_revision(&json("{}"), &[]), Ok(()));
    }

    #[test]
    fn revisions_have_names() {
        assert_eq!(
            Revision::named("2025-06-18"),
            Some(Revision::Sessions("2025-06-18"))
        );
        assert_eq!(
            Revision::named("2026-07-28"),
            Some(Revision::Stateless("2026-07-28"))
        );
        assert_eq!(Revision::named("2026"), None);
    }
}
