//! `[cors]` and `[[local]]`: responses by the proxy itself. Used by `compile` and `decode`.

use std::time::Duration;

use http::{HeaderName, Method};
use serde_json::{Map, Value};

use crate::config::problem::Spanned;
use dualgauge_model::cors::WebOrigin;
use dualgauge_model::jsonrpc::ErrorObject;
use dualgauge_model::rollout::Glob;
use dualgauge_model::route::frame_line;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::SourceTree;

/// `[cors]`
#[derive(Debug, Clone, PartialEq)]
pub struct RawCors {
    /// `origins`: at least one.
    pub origins: Vec<Spanned<RawOrigin>>,
    /// `headers`; if absent, those that the browser requests.
    pub headers: Option<Vec<Spanned<HeaderName>>>,
    /// `expose`
    pub expose: Vec<Spanned<HeaderName>>,
    /// `credentials`
    pub credentials: Spanned<bool>,
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
    /// The keys for `answer = "initialize"` and `answer = "discover"`.
    pub server_info: RawServerInfo,
    /// `page`: the most tools of one page, for `answer = "tools"`.
    pub page: Option<Spanned<usize>>,
    /// `title`: that of the document, for `answer = "openapi"` and `answer = "openrpc"`.
    pub title: Option<Spanned<String>>,
}

/// The server information of the proxy as an MCP server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RawServerInfo {
    /// `server`
    pub server: Option<Spanned<Map<String, Value>>>,
    /// `capabilities`
    pub capabilities: Option<Spanned<Map<String, Value>>>,
    /// `instructions`
    pub instructions: Option<Spanned<String>>,
    /// `versions`
    pub versions: Vec<Spanned<String>>,
}

impl RawServerInfo {
    /// Returns the first key that is set, with its location.
    #[must_use]
    pub fn first_key(&self) -> Option<Spanned<()>> {
        let server = self.server.as_ref().or(self.capabilities.as_ref());
        let table = server.map(|table| table.clone().map(|_| ()));
        let texts = self.instructions.as_ref().or(self.versions.first());
        table.or_else(|| texts.map(|text| text.clone().map(|_| ())))
    }
}

/// The calls that a `[[local]]` answers.
#[derive(Debug, Clone, PartialEq)]
pub enum RawLocalCall {
    /// `rest`: a method and a path.
    Rest(Spanned<(Method, String)>),
    /// `rpc`: a method, or a glob of methods.
    Rpc(Spanned<Glob>),
    /// `frame`: a pattern for frames of clients.
    Frame(Spanned<SourceTree>),
}

impl RawLocalCall {
    /// Returns the calls as text.
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

/// The answer of a `[[local]]`.
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
    /// `body`: excludes `text`.
    pub body: Option<Json>,
    /// `text`
    pub text: Option<String>,
    /// `headers`
    pub headers: Vec<(Spanned<String>, Spanned<String>)>,
}

/// A built-in answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocalWord {
    /// The OpenAPI document of the routes.
    OpenApi,
    /// The OpenRPC document of the routes.
    OpenRpc,
    /// The page that shows the OpenAPI document.
    Docs,
    /// An empty result: `null`, if a response is required.
    Nothing,
    /// The server information, for `initialize`.
    Initialize,
    /// The server information, for `server/discover`.
    Discover,
    /// The tools of the routes, for `tools/list`.
    Tools,
}
