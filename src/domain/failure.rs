//! The one table of failures: reason → blame, HTTP status, JSON-RPC code, label, retry.
//!
//! No other module knows both a status and a code. A new reason makes the compiler ask for its row, and a
//! snapshot test prints the whole table. A code that JSON-RPC 2.0 defines stands where its specification says so,
//! and a code of MCP (-32020..-32022) where MCP says so. Every other reason has a code of its own in
//! -31000..-31099, outside of the range that JSON-RPC reserves.

use std::borrow::Cow;
use std::fmt;

use super::json::Json;
use super::time::Timestamp;

mod codes;

pub use codes::FailureCodes;

/// Whose fault a failure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Blame {
    /// The caller sent something that cannot be served as it is.
    Client,
    /// The server behind did not answer as it should.
    Upstream,
    /// The proxy itself.
    Proxy,
}

impl Blame {
    /// The word used in answers, metrics and logs.
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
    /// Whose fault an upstream's own HTTP status reports, if it reports one.
    #[must_use]
    pub const fn of_status(status: u16) -> Option<Blame> {
        match status {
            400..=499 => Some(Blame::Client),
            500.. => Some(Blame::Upstream),
            _ => None,
        }
    }

    /// Whose fault an upstream's own RPC error reports. The upstream may be another proxy with the codes of the table.
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

/// The code that an HTTP status of an upstream has for an RPC client.
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

/// The HTTP status that an RPC error of an upstream has for a REST client.
#[must_use]
pub const fn status_of_code(code: i64) -> u16 {
    match code {
        -32700 | -32600 | -32602 | -31400 => 400,
        -32601 | -31404 => 404,
        -31410 => 410,
        _ => 500,
    }
}

/// Whether a call that failed this way may be sent again by the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// Sending it again would fail in the same way, or might do the work twice.
    Never,
    /// Nothing of the call reached the upstream.
    NotSent,
}

/// What went wrong: the key of the table, and a metric label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// HTTP framing that two parsers could read in two ways (RFC 9112).
    MalformedHttp,
    /// A request head beyond the limit.
    HeadTooLarge,
    /// A request target beyond the limit.
    TargetTooLong,
    /// A path near a route on which the client is moved, or malformed percent-encoding.
    MalformedTarget,
    /// A path of no route that a lenient server may read as the path of one.
    IrregularPath,
    /// A body beyond the limit.
    BodyTooLarge,
    /// The body ended before it was complete.
    BodyCut,
    /// The request did not arrive in time, or left too little time to the server.
    RequestTimeout,
    /// A content type, charset or content coding that is not read.
    UnsupportedMediaType,
    /// The body is not what its content coding says.
    MalformedBody,
    /// The body is not JSON.
    MalformedJson,
    /// Nesting beyond the limit.
    TooDeep,
    /// JSON, but not a JSON-RPC 2.0 message.
    InvalidRequest,
    /// More calls in one batch than the limit.
    BatchTooLarge,
    /// A batch of a client whose revision of MCP has none.
    NoBatch,
    /// A header of MCP does not say what the message says.
    HeaderMismatch,
    /// A revision of MCP that is not spoken.
    UnsupportedVersion,
    /// A call of MCP without a member of `params._meta` that its revision requires.
    MissingMeta,
    /// Arguments that no pattern of the route accepts.
    InvalidParams,
    /// Names in the query of a translated call that its route does not know.
    UnknownQuery,
    /// Params whose check against the schema of the route exceeds the budget of steps.
    SchemaTooCostly,
    /// No route, and no upstream to pass the call to.
    RouteNotFound,
    /// A path that exists with other HTTP methods.
    MethodNotAllowed,
    /// A route whose old way is closed.
    Retired,
    /// A route whose old way is closed for a while, which was announced.
    Brownout,
    /// The `Origin` or the `HostField` of a call that is not passed through is not allowed.
    OriginRefused,
    /// No connection to the upstream.
    UpstreamUnreachable,
    /// No answer within the upstream's timeout.
    UpstreamTimeout,
    /// The answer broke off.
    UpstreamCut,
    /// The answer is not valid HTTP.
    UpstreamMalformedHttp,
    /// The answer is not JSON where JSON was due.
    UpstreamNotJson,
    /// JSON, but not one JSON-RPC 2.0 response.
    UpstreamNotProtocol,
    /// A response to another id.
    UpstreamWrongId,
    /// A result that the schema of its route does not allow.
    UpstreamInvalid,
    /// A result whose check against the schema of its route exceeds the budget of steps.
    UpstreamTooCostly,
    /// A success without the content that it promises.
    UpstreamEmpty,
    /// An answer beyond the limit.
    UpstreamTooLarge,
    /// A redirect, which is never followed.
    UpstreamRedirect,
    /// An event stream where one whole answer was due.
    UpstreamStream,
    /// The upstream answered 101 to a call that asked for no upgrade.
    UpstreamUpgrade,
    /// The result asks for input, which the client's revision of MCP cannot give in this way.
    UpstreamInputRequired,
    /// The breaker of the upstream is open.
    UpstreamResting,
    /// All places for calls at the upstream are taken, and none came free in time, or as many calls wait as may.
    UpstreamBusy,
    /// More calls in flight than the limit.
    Overloaded,
    /// No room for one more body that is read whole.
    MemoryFull,
    /// The program ends before the upstream has answered.
    Draining,
    /// A fault of the proxy.
    Internal,
}

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailureRow {
    /// Whose fault it is.
    pub blame: Blame,
    /// The status that a REST client gets.
    pub status: u16,
    /// The code that an RPC client gets.
    pub code: i32,
    /// The metric label, and `data.reason`.
    pub label: &'static str,
    /// Whether the proxy may send the call again.
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
    pub const ALL: [Reason; 47] = [
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
        Reason::InvalidParams,
        Reason::UnknownQuery,
        Reason::SchemaTooCostly,
        Reason::RouteNotFound,
        Reason::MethodNotAllowed,
        Reason::Retired,
        Reason::Brownout,
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
        Reason::UpstreamResting,
        Reason::UpstreamBusy,
        Reason::Overloaded,
        Reason::MemoryFull,
        Reason::Draining,
        Reason::Internal,
    ];

    /// The row of this reason.
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
            Reason::InvalidParams => client(400, -32602, "invalid_params"),
            Reason::UnknownQuery => client(400, -32602, "unknown_query"),
            Reason::SchemaTooCostly => client(422, -31080, "schema_too_costly"),
            Reason::RouteNotFound => client(404, -32601, "route_not_found"),
            Reason::MethodNotAllowed => client(405, -31010, "method_not_allowed"),
            Reason::Retired => client(410, -31011, "retired"),
            Reason::Brownout => client(410, -31012, "brownout"),
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
            Reason::UpstreamResting => upstream(503, -31033, "upstream_resting"),
            Reason::UpstreamBusy => proxy(503, -31041, "upstream_busy"),
            Reason::Overloaded => proxy(503, -31042, "overloaded"),
            Reason::MemoryFull => proxy(503, -31043, "memory_full"),
            Reason::Draining => proxy(503, -31044, "draining"),
            Reason::Internal => proxy(500, -32603, "internal"),
        }
    }

    /// Whether a notification that is refused so gets an error, with a null id and the HTTP status. Nobody may take it for
    /// accepted (MCP, "Streamable HTTP": 403 where an `Origin` is not allowed).
    #[must_use]
    pub const fn is_told_to_notifications(self) -> bool {
        matches!(self, Reason::OriginRefused)
    }

    /// The HTTP status on the RPC face: 200 for an answer, the status itself where no message was read.
    #[must_use]
    pub const fn rpc_face_status(self) -> u16 {
        // What is no HTTP request, or has no RPC path, is no JSON-RPC message either. The others are told so by MCP
        // (2026-07-28, "Streamable HTTP", "Per-Request Protocol Fields").
        if matches!(
            self,
            Reason::MalformedHttp
                | Reason::MalformedTarget
                | Reason::IrregularPath
                | Reason::NoBatch
                | Reason::HeaderMismatch
                | Reason::UnsupportedVersion
                | Reason::MissingMeta
        ) {
            return 400;
        }
        match self.row().status {
            status @ (403 | 405 | 408 | 413 | 414 | 415 | 429 | 431 | 503) => status,
            _ => 200,
        }
    }
}

/// What a caller may do about a failure, as an HTTP header of the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Advice {
    /// `Allow`: the HTTP methods that the path has (RFC 9110 §15.5.6).
    Allow(String),
    /// `Retry-After`, in seconds (RFC 9110 §10.2.3).
    RetryAfter(u32),
    /// What to call instead; with `HoleLink` and `rel="successor-version"` (RFC 5829) where that has an address.
    Successor {
        /// In words: a method of the other side, or what the route table says.
        name: String,
        /// Its address.
        link: Option<String>,
        /// Where the refusal is for a while only: when it ends.
        pause: Option<Pause>,
    },
    /// Which revisions of MCP are spoken; in the answer's data, no header.
    Versions {
        /// Those.
        supported: Vec<String>,
        /// The one that was asked for.
        requested: String,
    },
}

/// A refusal for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    /// When the call is served again.
    pub until: Timestamp,
    /// In how many seconds that is, for `Retry-After`.
    pub seconds: u32,
    /// When it is expected to end for good.
    pub sunset: Option<Timestamp>,
}

/// One failure: the reason, and the two texts of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The key of the table.
    pub reason: Reason,
    /// What the caller reads: where, what, what is allowed. Never an address or a secret.
    pub message: Cow<'static, str>,
    /// What only the log keeps.
    pub cause: Option<String>,
    /// What the caller may do, as a header.
    pub advice: Option<Box<Advice>>,
    /// What the upstream said, for `data.upstream`.
    pub detail: Option<Json>,
    /// The HTTP status of the upstream's answer, where that reports an error and is not the status that the caller gets.
    pub upstream_status: Option<u16>,
}

impl Failure {
    /// A failure that the caller may read about in full.
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

    /// Adds what only the log keeps.
    #[must_use]
    pub fn because(mut self, cause: impl fmt::Display) -> Self {
        self.cause = Some(cause.to_string());
        self
    }

    /// Adds the HTTP status of the upstream's answer, if that is 400 or more.
    #[must_use]
    pub fn upstream_status(mut self, status: u16) -> Self {
        self.upstream_status = (status >= 400).then_some(status);
        self
    }

    /// Adds what the caller may do.
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
