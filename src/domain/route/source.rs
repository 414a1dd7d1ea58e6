//! What a route table says of one route, before it is understood.

use std::sync::Arc;
use std::time::Duration;

use crate::domain::json::Json;
use crate::domain::outcome::RowSource;
use crate::domain::pattern::SourceTree;
use crate::domain::rollout::Glob;
use crate::domain::schema::Schema;
use crate::domain::side::Side;

use super::{Effect, Extra, Wire};

/// What the route table says of one route.
#[derive(Debug, Clone, Default)]
pub struct RouteSource {
    /// The key of the route's table: `route[3]`.
    pub key: String,
    /// `name`
    pub name: String,
    /// `rest = "METHOD /path?query"`
    pub rest: String,
    /// `frame`, in place of `rest`; that is a line for people then.
    pub frame: Option<SourceTree>,
    /// `silence`
    pub silence: Option<Duration>,
    /// `rpc = "method"`
    pub rpc: String,
    /// `params`
    pub params: Option<SourceTree>,
    /// `body`; the text `none` says that requests have no content.
    pub body: Option<SourceTree>,
    /// `query = { key = "{hole}" }`
    pub query: Vec<(String, SourceTree)>,
    /// `headers = { name = "{hole}" }`
    pub headers: Vec<(String, SourceTree)>,
    /// `extra`
    pub extra: Option<Extra>,
    /// `ignore_query` of the route, else of all routes.
    pub ignore_query: Vec<Glob>,
    /// `from`
    pub from: Option<Side>,
    /// `notify = true`
    pub notify: Notify,
    /// `effect`; by the HTTP method where absent.
    pub effect: Option<Effect>,
    /// `timeout`
    pub timeout: Option<Duration>,
    /// `affinity`
    pub affinity: Option<String>,
    /// `successor`
    pub successor: Option<String>,
    /// The rows of the route, then those of the sets that it names, in order.
    pub rows: Vec<RowSource>,
    /// `lossy`
    pub lossy: Option<String>,
    /// `[[route.example]]`
    pub examples: Vec<Example>,
    /// `schema`
    pub schema: Schemas,
}

/// The value of `body` that says that requests have no content.
const NO_BODY: &str = "none";

impl RouteSource {
    /// Returns whether `body = "none"` is said.
    #[must_use]
    pub fn has_no_body(&self) -> bool {
        matches!(&self.body, Some(SourceTree::Text(text)) if text == NO_BODY)
    }

    /// Returns the pattern of the body, if one is named.
    #[must_use]
    pub fn named_body(&self) -> Option<&SourceTree> {
        self.body.as_ref().filter(|_| !self.has_no_body())
    }

    /// How its REST side is spoken.
    #[must_use]
    pub fn speech(&self) -> Wire {
        match self.frame {
            Some(_) => Wire::Frame,
            None => Wire::Http,
        }
    }
}

/// `schema`: what params and results must be like, beside what the patterns say.
#[derive(Debug, Clone, Default)]
pub struct Schemas {
    /// The params of a call, whichever side it comes from.
    pub params: Option<Arc<Schema>>,
    /// The result of an answer, whichever side it comes from.
    pub result: Option<Arc<Schema>>,
}

/// `notify`
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Notify {
    /// The call is answered.
    #[default]
    No,
    /// A notification is sent, and the caller is answered at once.
    Yes,
}

/// A call that shows what a route does; `check` runs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// `example[2]` of its route: where the table says it.
    pub key: String,
    /// The directions in which it holds.
    pub way: ExampleWay,
    /// `rest.call`: `GET /api/trainers/7`
    pub call: String,
    /// `rest.headers`
    pub headers: Vec<(String, String)>,
    /// `rest.body`
    pub body: Option<Json>,
    /// `rpc.method`
    pub method: String,
    /// `rpc.params`
    pub params: Option<Json>,
    /// `reply`
    pub reply: Option<ExampleReply>,
}

/// The directions in which an example holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ExampleWay {
    /// Both.
    #[default]
    Both,
    /// What comes from one side only: a call of a client of that side, the answer of the other side's server.
    From(Side),
}

/// The answer of an example, on both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExampleReply {
    /// `rest.status`
    pub status: u16,
    /// `rest.headers`
    pub headers: Vec<(String, String)>,
    /// `rest.body`
    pub body: Option<Json>,
    /// `rest.text`
    pub text: Option<String>,
    /// `rpc.result`, or the whole of `rpc.error`.
    pub rpc: Result<Json, Json>,
}
