//! The text of a route table, decoded but not yet compiled. Used by `config`, `check` and `route`.

use std::sync::Arc;
use std::time::Duration;

use crate::form::BodyFormat;
use crate::outcome::RowSource;
use crate::rollout::Glob;
use crate::stream_format::{RouteStream, StreamFormat};
use crate::subscription::{SubscriptionRule, SubscriptionSource};
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::{PatternError, SourceTree};
use dualgauge_patterns::schema::Schema;
use dualgauge_patterns::side::Side;

use super::docs::RouteDocs;
use super::http_pass::HttpPass;
use super::options::{Effect, Extra, ResultForm, RouteForm};
use super::wire::Wire;

/// One route, as the route table declares it.
#[derive(Debug, Clone, Default)]
pub struct RouteSource {
    /// The key of the route's table: `route[3]`.
    pub key: String,
    /// True for a method of two MCP servers between which flags choose.
    pub is_paired: bool,
    /// `name`
    pub name: String,
    /// `rest = "METHOD /path?query"`
    pub rest: String,
    /// `old`: `rest`, `query`, `headers` and `body` are those of an old RPC dialect. For a message on a socket, `rest` is
    /// a text for people.
    pub old: Option<OldSource>,
    /// `silence`
    pub silence: Option<Duration>,
    /// `rpc = "method"`
    pub rpc: String,
    /// `params`
    pub params: Option<SourceTree>,
    /// `body`; the text `none` means that requests have no content.
    pub body: Option<SourceTree>,
    /// `body_format`
    pub body_format: BodyFormat,
    /// `query = { key = "{hole}" }`
    pub query: Vec<(String, SourceTree)>,
    /// `headers = { name = "{hole}" }`
    pub headers: Vec<(String, SourceTree)>,
    /// `rpc_headers = { name = "{hole}" }`
    pub rpc_headers: Vec<(String, SourceTree)>,
    /// `extra`
    pub extra: Option<Extra>,
    /// `ignore_query` of the route, or that of all routes.
    pub ignore_query: Vec<Glob>,
    /// `after`
    pub after: Vec<String>,
    /// `from`
    pub from: Option<Side>,
    /// `notify`: a notification is sent, and the caller is answered immediately.
    pub is_notification: bool,
    /// `stage = "passthrough"`
    pub always_passes: bool,
    /// `effect`; the HTTP method decides if it is absent.
    pub effect: Option<Effect>,
    /// `timeout`
    pub timeout: Option<Duration>,
    /// `stream`
    pub stream: RouteStream,
    /// `stream_timeout`
    pub stream_timeout: Option<Duration>,
    /// `subscription`
    pub subscription: Option<SubscriptionSource>,
    /// `affinity`
    pub affinity: Option<String>,
    /// `successor`
    pub successor: Option<String>,
    /// The rows of the route, followed by those of its outcome sets, in order.
    pub rows: Vec<RowSource>,
    /// `lossy`
    pub lossy: Option<String>,
    /// `[[route.example]]`
    pub examples: Vec<Example>,
    /// `schema`, unless its `validate` is false.
    pub schema: Schemas,
    /// `title`, `summary`, `description`, `tags` and `schema`
    pub docs: RouteDocs,
    /// `result`
    pub result: ResultForm,
}

/// `old` of a route, apart from the patterns of its messages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OldSource {
    /// True for `message`, or `frame` for short: the body is a message on a socket.
    pub is_on_socket: bool,
    /// `pass`
    pub pass: HttpPass,
    /// The other RPC paths at which messages arrive, if the route has no path of its own.
    pub paths: Vec<String>,
    /// `parameter`: the query parameter that is the message, in place of a request body.
    pub parameter: Option<String>,
}

impl OldSource {
    /// Returns the source of a route whose messages are on a socket.
    #[must_use]
    pub fn on_socket() -> OldSource {
        OldSource {
            is_on_socket: true,
            ..OldSource::default()
        }
    }
}

/// The value of `body` for requests without content.
const NO_BODY: &str = "none";

impl RouteSource {
    /// Returns true when the route has `body = "none"`.
    #[must_use]
    pub fn has_no_body(&self) -> bool {
        matches!(&self.body, Some(SourceTree::Text(text)) if text == NO_BODY)
    }

    /// Returns the pattern of the body, if there is one.
    #[must_use]
    pub fn named_body(&self) -> Option<&SourceTree> {
        self.body.as_ref().filter(|_| !self.has_no_body())
    }

    /// Returns the protocol of the REST side.
    #[must_use]
    pub fn rest_protocol(&self) -> Wire {
        match &self.old {
            Some(old) if old.is_on_socket => Wire::Frame,
            Some(_) => Wire::Old,
            None => Wire::Http,
        }
    }
}

/// `schema`: the schemas of params and results, in addition to the patterns.
#[derive(Debug, Clone, Default)]
pub struct Schemas {
    /// The params of a call from either side.
    pub params: Option<Arc<Schema>>,
    /// The result of an answer from either side.
    pub result: Option<Arc<Schema>>,
}

impl Schemas {
    /// Returns true when both accept the same values.
    pub(super) fn allows_like(&self, other: &Schemas) -> bool {
        let Schemas { params, result } = self;
        let pairs = [(params, &other.params), (result, &other.result)];
        pairs.into_iter().all(|pair| match pair {
            (None, None) => true,
            (Some(one), Some(other)) => Schema::has_source_of(one, other),
            (Some(_), None) | (None, Some(_)) => false,
        })
    }
}

/// An example call of a route; `check` executes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// The key of the example in its route: `example[2]`.
    pub key: String,
    /// The directions in which the example holds.
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
    /// `rpc.headers`
    pub rpc_headers: Vec<(String, String)>,
    /// `reply`
    pub reply: Option<ExampleReply>,
}

/// The directions in which an example holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ExampleWay {
    /// Both.
    #[default]
    Both,
    /// Only for calls of a client of this side and answers of the other side's server.
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

impl RouteSource {
    /// Returns the reason why responses of a route that says so cannot stream.
    pub(super) fn unstreamable(&self) -> Option<&'static str> {
        let RouteStream::Formats { .. } = self.stream else {
            return None;
        };
        if self.rest_protocol() == Wire::Frame {
            return Some(
                "a frame is one message; only a route with `rest` has responses that stream",
            );
        }
        self.is_notification
            .then_some("a notification has no answer that could stream")
    }

    /// Refuses what a route with a subscription cannot have, and sets what it implies: REST clients open the
    /// subscription, and its response is an event stream.
    pub(super) fn settle_subscription(&mut self) -> Result<(), PatternError> {
        if self.subscription.is_none() {
            return Ok(());
        }
        let refuse = |key: &str, what: &str| Err(PatternError::new(what).under(key));
        if self.from == Some(Side::Rpc) {
            let what = "a subscription turns notifications into events for REST clients; remove `from` or write `\"rest\"`";
            return refuse("from", what);
        }
        if self.is_notification {
            return refuse(
                "notify",
                "a notification has no answer, and so no subscription",
            );
        }
        if self.rest_protocol() == Wire::Frame {
            let what = "events of a subscription are for routes with `rest`, not with `frame`";
            return refuse("subscription", what);
        }
        if self.result == ResultForm::Tool {
            return refuse("result", "the result of a tool opens no subscription");
        }
        let streams = match self.stream {
            RouteStream::Undeclared => true,
            RouteStream::Never => false,
            RouteStream::Formats { rest, .. } => rest == StreamFormat::EventStream,
        };
        if !streams {
            let what = "the events of a subscription are server-sent events; remove `stream` or write `\"sse\"`";
            return refuse("stream", what);
        }
        self.from = Some(Side::Rest);
        self.stream = RouteStream::Formats {
            rest: StreamFormat::EventStream,
            rpc: StreamFormat::EventStream,
        };
        Ok(())
    }

    /// Compiles the rule of the subscription, if the route has one.
    pub(super) fn subscription_rule(&self) -> Result<Option<Arc<SubscriptionRule>>, PatternError> {
        let source = self.subscription.as_ref();
        let rule = source.map(SubscriptionRule::new).transpose();
        rule.map(|rule| rule.map(Arc::new))
            .map_err(|error| error.under("subscription"))
    }

    /// Returns the form of the route.
    ///
    /// # Errors
    ///
    /// Fails for a `body` without `params`.
    pub(super) fn form(&self) -> Result<RouteForm, PatternError> {
        match (&self.params, self.named_body()) {
            (None, None) if self.rest_protocol() == Wire::Http => Ok(RouteForm::Short),
            (None, None) | (Some(_), _) => Ok(RouteForm::Full),
            (None, Some(_)) if self.rest_protocol().is_old() => Ok(RouteForm::Full),
            (None, Some(_)) => {
                let what = "a route with `body` needs `params`; write `params = { … }`";
                Err(PatternError::new(what).under("body"))
            }
        }
    }
}
