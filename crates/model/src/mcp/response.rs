//! Classification of responses to a POST: by status, type and, unless it is a stream, the body.
//!
//! Used by `upstream::mcp::get_stream` and `upstream::mcp::post`.

use bytes::Bytes;

use crate::jsonrpc::{self, RequestId, ResponseReply, parse_response};
use crate::sse;
use dualgauge_patterns::json::Json;

/// The kind of a response, before its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseKind {
    /// One message.
    Json,
    /// An event stream of messages.
    Events,
    /// Something else.
    Other,
}

/// Classifies a response by its `Content-Type`. A stream with an error status does not count as a stream.
#[must_use]
pub fn kind_of(status: u16, content_type: Option<&str>) -> ResponseKind {
    let kind = content_type.unwrap_or_default();
    if sse::is_event_stream(kind) && (200..300).contains(&status) {
        return ResponseKind::Events;
    }
    let essence = kind.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        ResponseKind::Json
    } else {
        ResponseKind::Other
    }
}

/// The meaning of a response other than a stream to the GET for server messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoStream {
    /// The server does not serve GET, in any session.
    Never,
    /// The server opens no stream in this session.
    Refused,
    /// The server opened a stream in this session before. Either the session or the stream alone is gone.
    Doubtful,
    /// The server cannot open a stream for now.
    Later,
}

/// The presence of an earlier server stream in the same session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormerStream {
    /// There was one.
    Opened,
    /// There was none.
    None,
}

/// Classifies such a response by its status.
///
/// A server without a stream must respond with 405 (MCP 2025-11-25, "Listening for Messages from the Server"); many
/// respond with 404 or 501. Only a POST of the session proves that the session is gone.
#[must_use]
pub fn no_stream(status: u16, former: FormerStream) -> NoStream {
    match status {
        405 | 501 => NoStream::Never,
        400 | 404 if former == FormerStream::Opened => NoStream::Doubtful,
        // Another stream of this session may still be open (409), or the server is busy.
        408 | 409 | 429 | 500..=599 => NoStream::Later,
        _ => NoStream::Refused,
    }
}

/// The classification of a complete body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResponseBody {
    /// The response to the request.
    Answer(Bytes),
    /// The server does not know the session, and did not process the message.
    Forgotten,
    /// No response.
    Nothing,
}

/// Classifies the body of a response to the request with this id, or to a notification.
///
/// An error with another id still belongs to this request, since it was the only one; servers that could not read the
/// id send null or a placeholder. Only a session can be unknown: reported by 404, or by 400 with a message, as servers
/// do that route by session (MCP 2025-11-25, "Session Management").
#[must_use]
pub fn read_body(
    status: u16,
    body: &Bytes,
    id: Option<u64>,
    session: Option<&str>,
    depth: u16,
) -> ResponseBody {
    let response = parse_response(body, depth).ok();
    let wanted = id.map(|id| id.to_string());
    let is_for_request = |id: &Option<Json>| {
        let id = id.as_ref().map(Json::as_bytes);
        id.is_some() && id == wanted.as_deref().map(str::as_bytes)
    };
    let has_response = response
        .as_ref()
        .is_some_and(|response| is_for_request(&response.id));
    if has_response {
        return ResponseBody::Answer(body.clone());
    }
    if session.is_some() && (status == 404 || (status == 400 && mentions_session(body))) {
        return ResponseBody::Forgotten;
    }
    let id = wanted.and_then(|id| RequestId::new(Json::written(id)));
    match (response.map(|response| response.reply), id) {
        (Some(ResponseReply::Error(error)), Some(id)) => {
            ResponseBody::Answer(jsonrpc::error(&id, &error).into_bytes())
        }
        _ => ResponseBody::Nothing,
    }
}

fn mentions_session(body: &[u8]) -> bool {
    const WORD: &[u8] = b"session";
    body.windows(WORD.len())
        .any(|part| part.eq_ignore_ascii_case(WORD))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_json_and_streams_are_read_as_messages() {
        assert_eq!(
            kind_of(200, Some("Application/JSON; charset=utf-8")),
            ResponseKind::Json
        );
        assert_eq!(kind_of(404, Some("application/json")), ResponseKind::Json);
        assert_eq!(
            kind_of(200, Some("text/event-stream;charset=utf-8")),
            ResponseKind::Events
        );
        for (status, other) in [
            (500, Some("text/event-stream")),
            (200, Some("text/html")),
            (202, None),
        ] {
            assert_eq!(kind_of(status, other), ResponseKind::Other, "{other:?}");
        }
    }

    #[test]
    fn a_get_that_is_not_found_ends_no_session() {
        for former in [FormerStream::None, FormerStream::Opened] {
            assert_eq!(no_stream(405, former), NoStream::Never);
            assert_eq!(no_stream(501, former), NoStream::Never);
            assert_eq!(no_stream(403, former), NoStream::Refused);
            for busy in [408, 409, 429, 500, 503] {
                assert_eq!(no_stream(busy, former), NoStream::Later);
            }
        }
        for status in [400, 404] {
            assert_eq!(no_stream(status, FormerStream::None), NoStream::Refused);
            assert_eq!(no_stream(status, FormerStream::Opened), NoStream::Doubtful);
        }
    }

    #[test]
    fn an_answer_is_the_one_that_was_asked_for() {
        let read = |status, body: &'static str, session| {
            read_body(status, &body.into(), Some(3), session, 8)
        };
        let answer = r#"{"id":3,"result":{}}"#;
        assert_eq!(read(200, answer, None), ResponseBody::Answer(answer.into()));
        let unknown = r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"no"}}"#;
        assert_eq!(
            read(404, unknown, Some("s")),
            ResponseBody::Answer(unknown.into())
        );
        for id in ["null", "\"server-error\"", "4"] {
            let body =
                format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-1,"message":"m"}}}}"#);
            let wanted = r#"{"jsonrpc":"2.0","id":3,"error":{"code":-1,"message":"m"}}"#;
            let got = read_body(400, &body.into(), Some(3), Some("s"), 8);
            assert_eq!(got, ResponseBody::Answer(wanted.into()));
        }
        assert_eq!(
            read(200, r#"{"id":4,"result":{}}"#, None),
            ResponseBody::Nothing
        );
        assert_eq!(read(200, "<html>", None), ResponseBody::Nothing);
    }

    #[test]
    fn a_session_is_forgotten_by_a_server_that_had_one() {
        let lost =
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}"#;
        for (status, body) in [
            (404, lost),
            (400, lost),
            (404, ""),
            (400, "No valid session ID"),
        ] {
            let read = |session| read_body(status, &body.into(), Some(3), session, 8);
            assert_eq!(read(Some("s")), ResponseBody::Forgotten, "{status} {body}");
            assert_ne!(read(None), ResponseBody::Forgotten, "{status} {body}");
        }
        let not_found = read_body(404, &Bytes::new(), None, Some("s"), 8);
        assert_eq!(not_found, ResponseBody::Forgotten);
    }
}
