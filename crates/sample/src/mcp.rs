//! `/mcp`: the same JSON-RPC under MCP's streamable HTTP, with sessions and a stream of events. Used by `sample`.

use std::collections::VecDeque;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Request, StatusCode};

use crate::database::Database;
use crate::json::Spacing;
use crate::reply::{self, Content, Reply};
use crate::rpc;
use crate::value::Value;

const SESSION_ID: &str = "mcp-session-id";
const PROTOCOL_VERSION: &str = "mcp-protocol-version";

/// A client that never sends its session back gets a new one each time, so the oldest have to go.
const MAX_SESSIONS: usize = 1024;

/// The sessions that `GET /mcp` knows.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    /// Oldest first.
    open: VecDeque<Session>,
}

#[derive(Debug)]
struct Session {
    id: String,
    /// How many events its streams have carried; the number is the id of the last one.
    events: u64,
}

impl Sessions {
    /// `POST /mcp`: one call. A session that is missing or unknown is replaced by a new one.
    pub(super) fn post(&mut self, database: &mut Database, request: &Request<Bytes>) -> Reply {
        let call = match rpc::read(request) {
            Ok(call) => call,
            // Validation comes before sessions: this answer has no session headers.
            Err(refusal) => return refusal.into_reply(),
        };
        let Ok(session) = self.find_or_open(database, request.headers()) else {
            return reply::internal_error();
        };
        let answer = rpc::answer(database, &call);
        // The call is made even if its result is not sent.
        let reply = if call.id.is_some() || call.method == "initialize" {
            reply::json(StatusCode::OK, &answer, Spacing::Dumps)
        } else {
            reply::empty(StatusCode::ACCEPTED)
        };
        with_session(reply, &session)
    }

    /// `GET /mcp`: the stream of a session.
    pub(super) fn stream(&mut self, request: &Request<Bytes>) -> Reply {
        let Some(id) = session_id(request.headers()) else {
            let text = "No session ID provided. Initialize first.";
            return refuse(StatusCode::BAD_REQUEST, text);
        };
        let Some(session) = self.open.iter_mut().find(|session| session.id == id) else {
            return refuse(StatusCode::NOT_FOUND, "Invalid session ID");
        };
        session.events += 1;
        let event = format!(
            "id: {}\r\nevent: message\r\ndata: {}\r\n\r\n",
            session.events, r#"{"type": "connection", "message": "SSE stream established"}"#
        );
        with_session(
            reply::event_stream(Content::Open(event.into())),
            &session.id,
        )
    }

    fn find_or_open(
        &mut self,
        database: &Database,
        headers: &HeaderMap,
    ) -> Result<String, rusqlite::Error> {
        if let Some(id) = session_id(headers)
            && self.open.iter().any(|session| session.id == id)
        {
            return Ok(id.to_owned());
        }
        let id = database.random_uuid()?;
        if self.open.len() == MAX_SESSIONS {
            self.open.pop_front();
        }
        self.open.push_back(Session {
            id: id.clone(),
            events: 0,
        });
        Ok(id)
    }
}

fn session_id(headers: &HeaderMap) -> Option<&str> {
    let id = headers.get(SESSION_ID)?.to_str().ok()?;
    (!id.is_empty()).then_some(id)
}

fn with_session(reply: Reply, session: &str) -> Reply {
    let reply = reply::with(reply, HeaderName::from_static(SESSION_ID), session);
    let name = HeaderName::from_static(PROTOCOL_VERSION);
    reply::with(reply, name, rpc::PROTOCOL_VERSION)
}

fn refuse(status: StatusCode, text: &str) -> Reply {
    reply::json(
        status,
        &Value::dict([("error", text.into())]),
        Spacing::Dumps,
    )
}
