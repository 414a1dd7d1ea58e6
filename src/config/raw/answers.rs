//! What the proxy answers itself: `[cors]` and `[[local]]`.

use std::time::Duration;

use http::{HeaderName, Method};
use serde_json::{Map, Value};

use crate::config::problem::Spanned;
use crate::domain::cors::{WebOrigin, WithCredentials};
use crate::domain::json::Json;
use crate::domain::jsonrpc::ErrorObject;
use crate::domain::pattern::SourceTree;
use crate::domain::rollout::Glob;
use crate::domain::route::frame_line;

/// `[cors]`
#[derive(Debug, Clone, PartialEq)]
pub struct RawCors {
    /// `origins`: at least one.
    pub origins: Vec<Spanned<RawOrigin>>,
    /// `headers`; those that are asked for where it is absent.
    pub headers: Option<Vec<Spanned<HeaderName>>>,
    /// `expose`
    pub expose: Vec<Spanned<HeaderName>>,
    /// `credentials`
    pub credentials: Spanned<WithCredentials>,
    /// `max_age`
    pub max_age: Option<Spanned<Duration>>,
}

/// One of `origins`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RawOrigin {
    /// `*`
    Any,
    /// An origin.
    One(WebOrigin),
}

/// `[[local]]`
#[derive(Debug, Clone, PartialEq)]
pub struct RawLocal {
    /// `rest`, `rpc` or `frame`
    pub call: RawLocalCall,
    /// `answer`
    pub answer: Spanned<RawAnswer>,
    /// What is said beside `answer = "initialize"` and `answer = "discover"`.
    pub greeting: RawGreeting,
}

/// How the proxy presents itself as an MCP server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RawGreeting {
    /// `server`
    pub server: Option<Spanned<Map<String, Value>>>,
    /// `capabilities`
    pub capabilities: Option<Spanned<Map<String, Value>>>,
    /// `instructions`
    pub instructions: Option<Spanned<String>>,
    /// `versions`
    pub versions: Vec<Spanned<String>>,
}

impl RawGreeting {
    /// The first key that is said, with its place.
    #[must_use]
    pub fn said(&self) -> Option<Spanned<()>> {
        let server = self.server.as_ref().or(self.capabilities.as_ref());
        let table = server.map(|table| table.clone().map(|_| ()));
        let texts = self.instructions.as_ref().or(self.versions.first());
        table.or_else(|| texts.map(|text| text.clone().map(|_| ())))
    }
}

/// Which calls a `[[local]]` answers.
#[derive(Debug, Clone, PartialEq)]
pub enum RawLocalCall {
    /// `rest`: a method and a path.
    Rest(Spanned<(Method, String)>),
    /// `rpc`: a method, or a glob of methods.
    Rpc(Spanned<Glob>),
    /// `frame`: what a client of frames says.
    Frame(Spanned<SourceTree>),
}

impl RawLocalCall {
    /// The calls, as they are written.
    #[must_use]
    pub fn line(&self) -> Spanned<String> {
        match self {
            RawLocalCall::Rest(call) => call
                .clone()
                .map(|(method, path)| format!("{method} {path}")),
            RawLocalCall::Rpc(method) => method.clone().map(|glob| glob.as_str().to_owned()),
            RawLocalCall::Frame(frame) => frame.clone().map(|frame| frame_line(&frame)),
        }
    }
}

/// What a `[[local]]` answers.
#[derive(Debug, Clone, PartialEq)]
pub enum RawAnswer {
    /// A word.
    Word(LocalWord),
    /// `result`
    Result(Json),
    /// `error`
    Error(ErrorObject),
    /// `frame`
    Frame(SourceTree),
    /// `status`
    Reply(RawReply),
}

/// The answer to a REST call.
#[derive(Debug, Clone, PartialEq)]
pub struct RawReply {
    /// `status`: 200 to 599.
    pub status: Spanned<u16>,
    /// `body`: not beside `text`.
    pub body: Option<Json>,
    /// `text`
    pub text: Option<String>,
    /// `headers`
    pub headers: Vec<(Spanned<String>, Spanned<String>)>,
}

/// An answer that is made here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocalWord {
    /// The REST side of the routes.
    OpenApi,
    /// The RPC side of the routes.
    OpenRpc,
    /// Nothing: `null`, where an answer is due.
    Nothing,
    /// The greeting of an MCP server, for `initialize`.
    Initialize,
    /// The same, for `server/discover`.
    Discover,
}
