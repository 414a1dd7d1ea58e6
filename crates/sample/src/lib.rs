//! The sample server behind `dualgauge demo`: a small database service in the middle of its migration.
//!
//! It speaks the old REST and the new JSON-RPC at once, with the habits of a real system (a tool server in
//! Python, on FastAPI and SQLite) copied down to the texts of its exceptions. The proxy is tested against
//! it, so it shares no code with the proxy.
//!
//! | path | what |
//! |---|---|
//! | `GET /health` | is it up |
//! | `POST /mcp/v1/tools/list`, `POST /mcp/v1/tools/call` | the old way |
//! | `GET /mcp/v1/sse`, `GET /sse` | one event, then the end |
//! | `POST /`, `/rpc`, `/jsonrpc` | the new way |
//! | `POST /mcp`, `GET /mcp` | the new way with sessions, and the stream of a session |
//!
//! ```text
//! curl localhost:8080/mcp/v1/tools/call -H 'Content-Type: application/json' \
//!      -d '{"name":"query_records","arguments":{"table_name":"users"}}'
//! curl localhost:8080/rpc -H 'Content-Type: application/json' \
//!      -d '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_tables"}}'
//! ```
//!
//! [`Sample::answer`] is a function from request to reply; [`serve()`] puts it on a socket.
//!
//! Used by `cli`, `json` and `serve`.

mod body;
mod crud;
mod database;
mod exceptions;
mod json;
mod mcp;
mod reply;
mod repr;
mod rest;
mod rpc;
mod serve;
mod tools;
mod value;

pub use database::Database;
pub use reply::{Content, Reply};
/// The reason why a database cannot be opened.
pub use rusqlite::Error as DatabaseError;
pub use serve::{Outage, serve, serve_both};

use bytes::Bytes;
use http::header::HOST;
use http::{Method, Request};

/// The server without its socket: a database, and the sessions of its clients.
#[derive(Debug)]
pub struct Sample {
    database: Database,
    sessions: mcp::Sessions,
}

/// The release of the server that a listener belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// The server as it is.
    Current,
    /// A rewrite with one mistake: its JSON-RPC side describes a tool in other words.
    Rewrite,
}

/// The mistake of [`Release::Rewrite`]: the words before, and the words after.
const REWORDED: [&str; 2] = ["List all tables in the database", "List tables"];

/// What a route leads to.
#[derive(Debug, Clone, Copy)]
enum Endpoint {
    Health,
    ListTools,
    CallTool,
    OldEvents,
    NewEvents,
    Rpc,
    McpCall,
    McpStream,
}

/// A 405 names the method of the first route of the path, so `POST /mcp` stands before `GET /mcp`.
const ROUTES: [(Method, &str, Endpoint); 10] = [
    (Method::GET, "/health", Endpoint::Health),
    (Method::POST, "/mcp/v1/tools/list", Endpoint::ListTools),
    (Method::POST, "/mcp/v1/tools/call", Endpoint::CallTool),
    (Method::GET, "/mcp/v1/sse", Endpoint::OldEvents),
    (Method::GET, "/sse", Endpoint::NewEvents),
    (Method::POST, "/", Endpoint::Rpc),
    (Method::POST, "/rpc", Endpoint::Rpc),
    (Method::POST, "/jsonrpc", Endpoint::Rpc),
    (Method::POST, "/mcp", Endpoint::McpCall),
    (Method::GET, "/mcp", Endpoint::McpStream),
];

impl Sample {
    /// A server that has received no request yet.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Sample {
            database,
            sessions: mcp::Sessions::default(),
        }
    }

    /// Answers one request. Never fails: what goes wrong is part of the answer.
    pub fn answer(&mut self, request: &Request<Bytes>) -> Reply {
        let mut routes = routes_of(request.uri().path()).peekable();
        let Some((first_method, _)) = routes.peek().copied() else {
            return without_trailing_slash(request).unwrap_or_else(reply::not_found);
        };
        match routes.find(|(method, _)| method == request.method()) {
            Some((_, endpoint)) => self.reach(endpoint, request),
            None => reply::method_not_allowed(first_method.as_str()),
        }
    }

    /// Answers one request as a release of the server does.
    pub fn answer_as(&mut self, release: Release, request: &Request<Bytes>) -> Reply {
        let reply = self.answer(request);
        match release {
            Release::Current => reply,
            Release::Rewrite => reply.map(reworded),
        }
    }

    fn reach(&mut self, endpoint: Endpoint, request: &Request<Bytes>) -> Reply {
        match endpoint {
            Endpoint::Health => rest::health(),
            Endpoint::ListTools => rest::list_tools(),
            Endpoint::CallTool => rest::call_tool(&mut self.database, request),
            Endpoint::OldEvents => rest::old_events(),
            Endpoint::NewEvents => rest::new_events(),
            Endpoint::Rpc => rpc::post(&mut self.database, request),
            Endpoint::McpCall => self.sessions.post(&mut self.database, request),
            Endpoint::McpStream => self.sessions.stream(request),
        }
    }
}

/// Makes the mistake of [`Release::Rewrite`].
fn reworded(content: Content) -> Content {
    let Content::Whole(bytes) = &content else {
        return content;
    };
    let [before, after] = REWORDED;
    match std::str::from_utf8(bytes) {
        Ok(text) if text.contains(before) => Content::Whole(text.replace(before, after).into()),
        Ok(_) | Err(_) => content,
    }
}

fn routes_of(path: &str) -> impl Iterator<Item = (&'static Method, Endpoint)> {
    const { &ROUTES }
        .iter()
        .filter(move |(_, known, _)| *known == path)
        .map(|(method, _, endpoint)| (method, *endpoint))
}

/// A redirect, if there is a route without the slash. Its absolute address is built from the `Host` that the
/// caller named, which is the proxy's problem if that is a name only the proxy knows.
fn without_trailing_slash(request: &Request<Bytes>) -> Option<Reply> {
    let uri = request.uri();
    let path = uri.path().trim_end_matches('/');
    if path == uri.path() || routes_of(path).next().is_none() {
        return None;
    }
    let host = request
        .headers()
        .get(HOST)
        .and_then(|host| host.to_str().ok());
    let origin = host
        .map(|host| format!("http://{host}"))
        .unwrap_or_default();
    let query = uri
        .query()
        .map(|query| format!("?{query}"))
        .unwrap_or_default();
    Some(reply::moved(&format!("{origin}{path}{query}")))
}

#[cfg(test)]
mod tests;
