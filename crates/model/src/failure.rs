//! The table of failures: reason → blame, HTTP status, JSON-RPC code, label, retry.
//!
//! No other module knows both a status and a code. A new reason makes the compiler ask for its row, and a snapshot test
//! prints the whole table. JSON-RPC 2.0 codes and MCP codes (-32020..-32022) are used where their specifications define
//! them. Every other reason has a code of its own in -31000..-31099, outside of the range that JSON-RPC reserves.
//!
//! Used by `cli`, `config`, `model`, `gateway` and `telemetry`.

use std::borrow::Cow;
use std::fmt;

use super::time::Timestamp;
use dualgauge_patterns::json::Json;

mod codes;
mod violations;

pub use codes::FailureCodes;

/// The party at fault for a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Blame {
    /// The client sent a request that cannot be served.
    Client,
    /// The upstream did not respond correctly.
    Upstream,
    /// The proxy itself.
    Proxy,
}

impl Blame {
    /// Returns the word used in responses, metrics and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Blame::Client => "client",
            Blame::Upstream => "upstream",
            Blame::Proxy => "proxy",
        }
    }
}

impl Blame {
    /// Returns the party at fault according to an upstream's HTTP status, if that is an error.
    #[must_use]
    pub const fn of_status(status: u16) -> Option<Blame> {
        match status {
            400..=499 => Some(Blame::Client),
            500.. => Some(Blame::Upstream),
            _ => None,
        }
    }

    /// Returns the party at fault according to an upstream's RPC error. The upstream may be another proxy with these
    /// codes.
    #[must_use]
    pub fn of_code(code: i64) -> Blame {
        let is_client = |reason: &Reason| {
            let row = reason.row();
            row.blame == Blame::Client && i64::from(row.code) == code
        };
        match code {
            -31499..=-31400 => Blame::Client,
            _ if Reason::ALL.iter().any(is_client) => Blame::Client,
            _ => Blame::Upstream,
        }
    }
}

/// Returns the code that an RPC client gets for an upstream's HTTP status.
#[must_use]
pub const fn code_of_status(status: u16) -> i64 {
    match status {
        400 | 422 => -32602,
        404 => -31404,
        410 => -31410,
        405 | 501 => -32601,
        500.. => -32603,
        _ => -31400,
    }
}

/// Returns the HTTP status that a REST client gets for an upstream's RPC error.
#[must_use]
pub const fn status_of_code(code: i64) -> u16 {
    match code {
        -32700 | -32600 | -32602 | -31400 => 400,
        -32601 | -31404 => 404,
        -31410 => 410,
        _ => 500,
    }
}

/// Permission for the proxy to retry a failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// A retry would fail in the same way, or might do the work twice.
    Never,
    /// Nothing of the call reached the upstream.
    NotSent,
}

/// The reason of a failure: the key of the table, and a metric label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// HTTP framing that two parsers could read differently (RFC 9112).
    MalformedHttp,
    /// A request head beyond the limit.
    HeadTooLarge,
    /// A request target beyond the limit.
    TargetTooLong,
    /// A path near a route that is migrated for this client, or malformed percent-encoding.
    MalformedTarget,
    /// An unrouted path that a lenient server may read as the path of a route.
    IrregularPath,
    /// A body beyond the limit.
    BodyTooLarge,
    /// The body ended before it was complete.
    BodyCut,
    /// The request did not arrive in time, or left the upstream too little time.
    RequestTimeout,
    /// An unsupported content type, charset or content coding.
    UnsupportedMediaType,
    /// A body that does not match its content coding.
    MalformedBody,
    /// The body is not JSON.
    MalformedJson,
    /// Nesting beyond the limit.
    TooDeep,
    /// JSON, but not a JSON-RPC 2.0 message.
    InvalidRequest,
    /// More calls in one batch than the limit.
    BatchTooLarge,
    /// A batch from a client whose MCP revision has no batches.
    NoBatch,
    /// An MCP header that contradicts the message.
    HeaderMismatch,
    /// An unsupported MCP revision.
    UnsupportedVersion,
    /// An MCP call without a member of `params._meta` that its revision requires.
    MissingMeta,
    /// A sessionless MCP call without a capability that the server requires.
    MissingCapability,
    /// Arguments that no pattern of the route accepts.
    InvalidParams,
    /// Query parameters of a translated call that its route does not know.
    UnknownQuery,
    /// Params whose validation exceeds the step budget.
    SchemaTooCostly,
    /// No route, and no upstream for unrouted calls.
    RouteNotFound,
    /// A path that exists with other HTTP methods only.
    MethodNotAllowed,
    /// A route whose legacy side is retired.
    Retired,
    /// A route whose legacy side is closed for an announced brownout.
    Brownout,
    /// A call without credentials where the listener requires them.
    Unauthenticated,
    /// The `Origin` or the `Host` of a call that is not passed through is not allowed.
    OriginRefused,
    /// No connection to the upstream.
    UpstreamUnreachable,
    /// No answer within the upstream's timeout.
    UpstreamTimeout,
    /// The response was cut off.
    UpstreamCut,
    /// The response is not valid HTTP.
    UpstreamMalformedHttp,
    /// The response is not JSON where JSON was expected.
    UpstreamNotJson,
    /// JSON, but not one JSON-RPC 2.0 response.
    UpstreamNotProtocol,
    /// A response to another id.
    UpstreamWrongId,
    /// A result that violates the schema of its route.
    UpstreamInvalid,
    /// A result whose validation exceeds the step budget.
    UpstreamTooCostly,
    /// A success without the required content.
    UpstreamEmpty,
    /// A response beyond the limit.
    UpstreamTooLarge,
    /// A redirect, which is never followed.
    UpstreamRedirect,
    /// An event stream where a complete response was expected.
    UpstreamStream,
    /// The upstream answered 101 to a call that requested no upgrade.
    UpstreamUpgrade,
    /// The server requires input during the call, which the client cannot or does not supply.
    UpstreamInputRequired,
    /// The circuit breaker of the upstream is open.
    UpstreamCircuitOpen,
    /// The upstream's concurrency limit is reached and no slot came free in time, or its queue is full.
    UpstreamBusy,
    /// More calls in flight than the limit.
    Overloaded,
    /// The memory budget for buffered bodies is exhausted.
    MemoryFull,
    /// The process stopped before the upstream responded.
    Draining,
    /// A call without a route, while the routes are still to come.
    RoutesPending,
    /// An internal error of the proxy.
    Internal,
}

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailureRow {
    /// The party at fault.
    pub blame: Blame,
    /// The status for a REST client.
    pub status: u16,
    /// The code for an RPC client.
    pub code: i32,
    /// The metric label, and `data.reason`.
    pub label: &'static str,
    /// Permission for the proxy to retry the call.
    pub retry: Retry,
}

const fn client(status: u16, code: i32, label: &'static str) -> FailureRow {
    FailureRow {
        blame: Blame::Client,
        status,
        code,
        label,
        retry: Retry::Never,
    }
}

const fn upstream(status: u16, code: i32, label: &'static str) -> FailureRow {
    FailureRow {
        blame: Blame::Upstream,
        status,
        code,
        label,
        retry: Retry::Never,
    }
}

const fn proxy(status: u16, code: i32, label: &'static str) -> FailureRow {
    FailureRow {
        blame: Blame::Proxy,
        status,
        code,
        label,
        retry: Retry::Never,
    }
}

impl Reason {
    /// Every reason, in the order of the table.
    pub const ALL: [Reason; 50] = [
        Reason::MalformedHttp,
        Reason::HeadTooLarge,
        Reason::TargetTooLong,
        Reason::MalformedTarget,
        Reason::IrregularPath,
        Reason::BodyTooLarge,
        Reason::BodyCut,
        Reason::RequestTimeout,
        Reason::UnsupportedMediaType,
        Reason::MalformedBody,
        Reason::MalformedJson,
        Reason::TooDeep,
        Reason::InvalidRequest,
        Reason::BatchTooLarge,
        Reason::NoBatch,
        Reason::HeaderMismatch,
        Reason::UnsupportedVersion,
        Reason::MissingMeta,
        Reason::MissingCapability,
        Reason::InvalidParams,
        Reason::UnknownQuery,
        Reason::SchemaTooCostly,
        Reason::RouteNotFound,
        Reason::MethodNotAllowed,
        Reason::Retired,
        Reason::Brownout,
        Reason::Unauthenticated,
        Reason::OriginRefused,
        Reason::UpstreamUnreachable,
        Reason::UpstreamTimeout,
        Reason::UpstreamCut,
        Reason::UpstreamMalformedHttp,
        Reason::UpstreamNotJson,
        Reason::UpstreamNotProtocol,
        Reason::UpstreamWrongId,
        Reason::UpstreamInvalid,
        Reason::UpstreamTooCostly,
        Reason::UpstreamEmpty,
        Reason::UpstreamTooLarge,
        Reason::UpstreamRedirect,
        Reason::UpstreamStream,
        Reason::UpstreamUpgrade,
        Reason::UpstreamInputRequired,
        Reason::UpstreamCircuitOpen,
        Reason::UpstreamBusy,
        Reason::Overloaded,
        Reason::MemoryFull,
        Reason::Draining,
        Reason::RoutesPending,
        Reason::Internal,
    ];

    /// Returns the row of this reason.
    #[must_use]
    pub const fn row(self) -> FailureRow {
        match self {
            Reason::MalformedHttp => client(400, -31001, "malformed_http"),
            Reason::HeadTooLarge => client(431, -31002, "head_too_large"),
            Reason::TargetTooLong => client(414, -31003, "target_too_long"),
            Reason::MalformedTarget => client(400, -31004, "malformed_target"),
            Reason::IrregularPath => client(400, -31014, "irregular_path"),
            Reason::BodyTooLarge => client(413, -31005, "body_too_large"),
            Reason::BodyCut => client(400, -32700, "body_cut"),
            Reason::RequestTimeout => client(408, -31006, "request_timeout"),
            Reason::UnsupportedMediaType => client(415, -31007, "unsupported_media_type"),
            Reason::MalformedBody => client(400, -32700, "malformed_body"),
            Reason::MalformedJson => client(400, -32700, "malformed_json"),
            Reason::TooDeep => client(400, -31008, "too_deep"),
            Reason::InvalidRequest => client(400, -32600, "invalid_request"),
            Reason::BatchTooLarge => client(400, -31009, "batch_too_large"),
            Reason::NoBatch => client(400, -32600, "no_batch"),
            Reason::HeaderMismatch => client(400, -32020, "header_mismatch"),
            Reason::UnsupportedVersion => client(400, -32022, "unsupported_version"),
            Reason::MissingMeta => client(400, -32602, "missing_meta"),
            Reason::MissingCapability => client(400, -32021, "missing_capability"),
            Reason::InvalidParams => client(400, -32602, "invalid_params"),
            Reason::UnknownQuery => client(400, -32602, "unknown_query"),
            Reason::SchemaTooCostly => client(422, -31080, "schema_too_costly"),
            Reason::RouteNotFound => client(404, -32601, "route_not_found"),
            Reason::MethodNotAllowed => client(405, -31010, "method_not_allowed"),
            Reason::Retired => client(410, -31011, "retired"),
            Reason::Brownout => client(410, -31012, "brownout"),
            Reason::Unauthenticated => client(401, -31015, "unauthenticated"),
            Reason::OriginRefused => client(403, -31013, "origin_refused"),
            Reason::UpstreamUnreachable => FailureRow {
                retry: Retry::NotSent,
                ..upstream(502, -31021, "upstream_unreachable")
            },
            Reason::UpstreamTimeout => upstream(504, -31022, "upstream_timeout"),
            Reason::UpstreamCut => upstream(502, -31023, "upstream_cut"),
            Reason::UpstreamMalformedHttp => upstream(502, -31024, "upstream_malformed_http"),
            Reason::UpstreamNotJson => upstream(502, -31025, "upstream_not_json"),
            Reason::UpstreamNotProtocol => upstream(502, -31026, "upstream_not_protocol"),
            Reason::UpstreamWrongId => upstream(502, -31027, "upstream_wrong_id"),
            Reason::UpstreamInvalid => upstream(502, -31028, "upstream_invalid"),
            Reason::UpstreamTooCostly => upstream(502, -31081, "upstream_too_costly"),
            Reason::UpstreamEmpty => upstream(502, -31029, "upstream_empty"),
            Reason::UpstreamTooLarge => upstream(502, -31030, "upstream_too_large"),
            Reason::UpstreamRedirect => upstream(502, -31031, "upstream_redirect"),
            Reason::UpstreamStream => upstream(502, -31075, "upstream_stream"),
            Reason::UpstreamUpgrade => upstream(502, -31032, "upstream_upgrade"),
            Reason::UpstreamInputRequired => upstream(502, -31034, "upstream_input_required"),
            Reason::UpstreamCircuitOpen => upstream(503, -31033, "upstream_resting"),
            Reason::UpstreamBusy => proxy(503, -31041, "upstream_busy"),
            Reason::Overloaded => proxy(503, -31042, "overloaded"),
            Reason::MemoryFull => proxy(503, -31043, "memory_full"),
            Reason::Draining => proxy(503, -31044, "draining"),
            Reason::RoutesPending => proxy(503, -31045, "routes_pending"),
            Reason::Internal => proxy(500, -32603, "internal"),
        }
    }

    /// Returns whether a rejected notification gets an error, with a null id and the HTTP status. The client must not
    /// believe that it was accepted (MCP, "Streamable HTTP": 403 for an `Origin` that is not allowed).
    #[must_use]
    pub const fn answers_notifications(self) -> bool {
        matches!(self, Reason::OriginRefused | Reason::Unauthenticated)
    }

    /// Returns the HTTP status on the RPC side: 200 for a response, the status itself if no message was read.
    #[must_use]
    pub const fn rpc_face_status(self) -> u16 {
        // Requests that are not valid HTTP, or not for an RPC path, are not JSON-RPC either. The other reasons have a
        // status by MCP (2026-07-28, "Streamable HTTP", "Per-Request Protocol Fields").
        if matches!(
            self,
            Reason::MalformedHttp
                | Reason::MalformedTarget
                | Reason::IrregularPath
                | Reason::NoBatch
                | Reason::HeaderMismatch
                | Reason::UnsupportedVersion
                | Reason::MissingMeta
                | Reason::MissingCapability
        ) {
            return 400;
        }
        match self.row().status {
            status @ (401 | 403 | 405 | 408 | 413 | 414 | 415 | 429 | 431 | 503) => status,
            _ => 200,
        }
    }
}

/// Advice to the caller about a failure, as a response header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Advice {
    /// `Allow`: the HTTP methods that the path has (RFC 9110 §15.5.6).
    Allow(String),
    /// `WWW-Authenticate`: the schemes of the credentials (RFC 9110 §11.6.1).
    Authenticate(&'static [&'static str]),
    /// `Retry-After`, in seconds (RFC 9110 §10.2.3).
    RetryAfter(u32),
    /// `Link` with `rel="successor-version"` (RFC 5829), if the replacement has an address; otherwise text only.
    Successor {
        /// The replacement in words: a method of the other side, or the text in the route table.
        name: String,
        /// The address of the replacement.
        link: Option<String>,
        /// The end of the refusal, if it is temporary.
        pause: Option<Pause>,
    },
    /// The supported MCP revisions; sent in `error.data`, not in a header.
    Versions {
        /// The supported revisions.
        supported: Vec<String>,
        /// The requested revision.
        requested: String,
    },
    /// The MCP capabilities that the client lacks; sent in `error.data`, not in a header.
    Capabilities(Json),
}

/// A temporary refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    /// The time at which the call is served again.
    pub until: Timestamp,
    /// The seconds until that time, for `Retry-After`.
    pub seconds: u32,
    /// The announced date of retirement.
    pub sunset: Option<Timestamp>,
}

/// One failure: the reason, with a text for the client and a text for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The key of the table.
    pub reason: Reason,
    /// The text for the client: where, what, and what is allowed. Never an address or a secret.
    pub message: Cow<'static, str>,
    /// The text for the log only.
    pub cause: Option<String>,
    /// Advice for the client, as a header.
    pub advice: Option<Box<Advice>>,
    /// The upstream's error, for `data.upstream`.
    pub detail: Option<Json>,
    /// The HTTP status of the upstream's error response, if it differs from the status that the client gets.
    pub upstream_status: Option<u16>,
}

impl Failure {
    /// Returns a failure with a text for the client.
    #[must_use]
    pub fn new(reason: Reason, message: impl Into<Cow<'static, str>>) -> Self {
        Failure {
            reason,
            message: message.into(),
            cause: None,
            advice: None,
            detail: None,
            upstream_status: None,
        }
    }

    /// Adds the text for the log.
    #[must_use]
    pub fn because(mut self, cause: impl fmt::Display) -> Self {
        self.cause = Some(cause.to_string());
        self
    }

    /// Adds the HTTP status of the upstream's response, if that is 400 or more.
    #[must_use]
    pub fn upstream_status(mut self, status: u16) -> Self {
        self.upstream_status = (status >= 400).then_some(status);
        self
    }

    /// Adds advice for the client.
    #[must_use]
    pub fn advise(mut self, advice: Advice) -> Self {
        self.advice = Some(Box::new(advice));
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason.row().label, self.message)
    }
}

impl std::error::Error for Failure {}
