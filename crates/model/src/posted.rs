//! Bodies posted to an RPC path: valid messages, calls that are not valid JSON-RPC 2.0, and other content.
//!
//! Translation takes valid messages only. A call that passes through is forwarded unchanged, unless that would bypass a
//! flag. Content that is not JSON-RPC is routed as if `rpc.paths` did not exist. Law: serving and `explain`
//! classify a body with the same functions.
//!
//! Used by `batch`, `explain`, `gateway` and `telemetry`.

use bytes::Bytes;
use http::HeaderMap;

use super::failure::{Failure, Reason};
use super::headers::credentials_of;
use super::jsonrpc::{
    self, Call, Incoming, Invalid, Loose, LooseCall, MessageError, MessageItem, RequestId,
    read_loosely,
};
use super::plan::{Credentials, Plan, UpstreamPlan};
use super::rejections;
use super::rollout::{Caller, FlagHistory, ProcessTime, Requester};
use super::route::Segments;
use super::routing::{self, RequestHead, may_move};
use super::time::Timestamp;
use dualgauge_patterns::side::Side;

/// The deviation of a posted body from valid JSON-RPC 2.0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageFault {
    /// Invalid, but one method can be read.
    Invalid,
    /// No method can be read.
    Unreadable,
    /// Several methods can be read.
    Ambiguous,
}

impl MessageFault {
    /// Every fault.
    pub const ALL: [MessageFault; 3] = [
        MessageFault::Invalid,
        MessageFault::Unreadable,
        MessageFault::Ambiguous,
    ];

    /// The word used in metrics and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            MessageFault::Invalid => "invalid_request",
            MessageFault::Unreadable => "unreadable",
            MessageFault::Ambiguous => "ambiguous",
        }
    }
}

/// The treatment of a message that is not valid JSON-RPC 2.0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handling {
    /// The message is forwarded to the RPC upstream unchanged.
    Forwarded,
    /// The proxy answers with an error.
    Refused,
}

impl Handling {
    /// Both kinds.
    pub const ALL: [Handling; 2] = [Handling::Forwarded, Handling::Refused];

    /// The word used in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Handling::Forwarded => "forwarded",
            Handling::Refused => "refused",
        }
    }
}

/// A body posted to an RPC path.
#[derive(Debug)]
pub struct PostedBody {
    /// The decoded text, if its content coding is supported.
    pub text: Option<Bytes>,
    /// The reason why translation rejects the body regardless of its text: its content type or coding.
    pub fault: Option<Failure>,
}

/// The classification of a body.
#[derive(Debug)]
pub enum Posted {
    /// Valid messages, or a batch with at least one.
    Messages(Incoming),
    /// A call to forward unchanged, or to reject with this failure.
    Call(Box<Call>, Failure),
    /// A batch to forward unchanged, or to reject with this failure.
    Batch(Vec<MessageItem>, Failure),
    /// A body to forward unchanged to the upstream with this index.
    Unread(MessageFault, usize),
    /// A body to reject.
    Refused(MessageFault, RequestId, Failure),
    /// A body that is not JSON-RPC: a call of the REST side.
    Rest,
}

/// The request that posted a body.
#[derive(Debug, Clone, Copy)]
pub struct Poster<'a> {
    /// The caller.
    pub caller: Caller<'a>,
    /// The head of the request.
    pub head: RequestHead<'a>,
    /// The time at which the request began.
    pub at: Timestamp,
    /// The flag history and the current time, if sessions may keep former flags.
    pub past: Option<(&'a FlagHistory, ProcessTime)>,
}

impl<'a> Poster<'a> {
    /// Returns the sender, without a session.
    #[must_use]
    pub fn requester(&self) -> Requester<'a> {
        Requester::new(self.caller, self.head.headers)
    }
}

/// Classifies a body. Callers may skip this for valid messages.
#[must_use]
pub fn classify(plan: &Plan, poster: Poster<'_>, body: PostedBody) -> Posted {
    let PostedBody { text, fault } = body;
    let sorter = PostClassifier { plan, poster };
    let Some(text) = text else {
        let fault = fault.unwrap_or_else(rejections::coded_message);
        return sorter.not_json_rpc(RequestId::null(), fault);
    };
    match (jsonrpc::parse(&text, plan.limits.message()), fault) {
        (Ok(Incoming::Batch(items)), fault) => sorter.batch(items, fault),
        (Ok(Incoming::Single(MessageItem::Invalid(invalid))), fault) => {
            sorter.invalid(invalid, fault)
        }
        (Ok(incoming), None) => Posted::Messages(incoming),
        (Ok(Incoming::Single(MessageItem::Call(call))), Some(fault)) => {
            Posted::Call(Box::new(call.into_request()), fault)
        }
        (Ok(Incoming::Single(MessageItem::Response(_))), Some(fault)) => {
            sorter.unreadable(RequestId::null(), fault)
        }
        (Err(error), fault) => sorter.broken(&text, error, fault),
    }
}

/// Reads the call of an invalid batch item as if it were a message of its own.
#[must_use]
pub fn reread(plan: &Plan, invalid: &Invalid) -> Loose {
    read_loosely(&invalid.text, plan.limits.depth)
}

/// Returns whether an unreadable message may pass: no flag could give this client a stage other than passthrough or
/// shadow. Former flags count too, since an unreadable message does not name its session.
#[must_use]
pub fn may_pass_unread(plan: &Plan, poster: Poster<'_>) -> bool {
    let browned_out = |route| routing::browned_out(plan, Some(route), Side::Rpc, poster.at);
    let requester = poster.requester();
    let rollout = &plan.rollout;
    let may_keep = |(past, now)| rollout.session_may_move(past, now, Side::Rpc, requester);
    !may_move(plan, Some(requester))
        && !poster.past.is_some_and(may_keep)
        && !(0..plan.routes.routes().len()).any(|route| browned_out(route).is_some())
}

/// Returns whether a message that can be read in two ways may pass: nothing inspects messages.
#[must_use]
pub fn may_pass_ambiguous(plan: &Plan) -> bool {
    let mut flags = plan.rollout.flags.iter();
    plan.routes.routes().is_empty()
        && !plan.locals.answers_rpc()
        && !flags.any(|flag| flag.side != Some(Side::Rest))
}

/// Returns whether an upstream may get messages without inspection: it accepts every credential that an envelope can
/// contain.
#[must_use]
pub fn takes_envelopes(plan: &Plan, upstream: &UpstreamPlan) -> bool {
    let mut known = plan.face.envelope.iter();
    known.all(|paired| accepts_member(upstream, &paired.member))
}

/// Returns the message without the credentials that the upstream must not get; `None` if it contains none of them.
#[must_use]
pub fn without_credentials(plan: &Plan, upstream: &UpstreamPlan, call: &Call) -> Option<Bytes> {
    if takes_envelopes(plan, upstream) {
        return None;
    }
    let is_credential = |name: &str| {
        let mut known = plan.face.envelope.iter();
        known.any(|paired| paired.member == name)
    };
    call.without(|name| is_credential(name) && !accepts_member(upstream, name))
}

/// A call after removal of the envelope credentials that its upstream does not accept there.
#[derive(Debug)]
pub struct RewrittenCall {
    /// The message without these members, otherwise unchanged.
    pub body: Bytes,
    /// The credentials as headers, if the upstream gets credentials and has headers.
    pub headers: HeaderMap,
}

/// Returns a call rewritten for an upstream that does not accept all of its envelope credentials; `None` if it does.
///
/// # Errors
/// A [`Failure`] if a value is not a valid header value.
pub fn rewritten(
    plan: &Plan,
    upstream: &UpstreamPlan,
    call: &Call,
) -> Result<Option<RewrittenCall>, Failure> {
    let Some(body) = without_credentials(plan, upstream, call) else {
        return Ok(None);
    };
    // A link has only the headers of its handshake.
    let has_headers = upstream.transport.link().is_none();
    let headers = if has_headers && upstream.credentials == Credentials::Forward {
        let members = plan.face.envelope.iter();
        let moved = members.filter(|paired| !accepts_member(upstream, &paired.member));
        credentials_of(moved, call, plan.limits.depth)?
    } else {
        HeaderMap::new()
    };
    Ok(Some(RewrittenCall { body, headers }))
}

fn accepts_member(upstream: &UpstreamPlan, name: &str) -> bool {
    let mut named = upstream.envelope.iter();
    upstream.credentials == Credentials::Forward && named.any(|paired| paired.member == name)
}

/// The target of a path without `rpc.paths`.
enum PathTarget {
    /// The RPC upstream with this index.
    Rpc(usize),
    /// The REST upstream.
    Rest,
    Nowhere,
}

struct PostClassifier<'a> {
    plan: &'a Plan,
    poster: Poster<'a>,
}

impl PostClassifier<'_> {
    fn batch(&self, items: Vec<MessageItem>, fault: Option<Failure>) -> Posted {
        let is_message = |item: &MessageItem| match item {
            MessageItem::Call(_) | MessageItem::Response(_) => true,
            MessageItem::Invalid(invalid) => self.is_message(&reread(self.plan, invalid)),
        };
        if !items.iter().any(is_message) && self.is_not_rpc() && !self.answers_batches() {
            return Posted::Rest;
        }
        match fault {
            None => Posted::Messages(Incoming::Batch(items)),
            Some(fault) => Posted::Batch(items, fault),
        }
    }

    /// Classifies a value that is not a valid message.
    fn invalid(&self, Invalid { id, why, text }: Invalid, fault: Option<Failure>) -> Posted {
        let fault = fault.unwrap_or_else(|| Failure::new(Reason::InvalidRequest, why));
        let loose = read_loosely(&text, self.plan.limits.depth);
        self.classify_loose(loose, id, fault)
    }

    fn classify_loose(&self, loose: Loose, id: RequestId, fault: Failure) -> Posted {
        let is_message = self.is_message(&loose);
        match loose.reading {
            LooseCall::Unreadable if is_message => self.unreadable(id, fault),
            LooseCall::Unreadable => self.not_json_rpc(id, fault),
            _ if !is_message && self.is_not_rpc() => Posted::Rest,
            LooseCall::Call(mut call) => {
                call.id = Some(id);
                Posted::Call(call, fault)
            }
            LooseCall::Ambiguous => self.ambiguous(id, fault),
        }
    }

    /// Classifies a text that is not JSON, is nested too deeply, or is a batch of an invalid size.
    fn broken(&self, text: &Bytes, error: MessageError, fault: Option<Failure>) -> Posted {
        let (is_long, is_empty) = match error {
            MessageError::BatchTooLarge { .. } => (true, false),
            MessageError::EmptyBatch => (false, true),
            MessageError::Json(_) | MessageError::TooDeep(_) => (false, false),
        };
        let fault = fault.unwrap_or_else(|| rejections::no_message(error));
        if is_long {
            return Posted::Refused(MessageFault::Invalid, RequestId::null(), fault);
        }
        if is_empty && self.answers_batches() {
            return Posted::Refused(MessageFault::Unreadable, RequestId::null(), fault);
        }
        // Servers that accept a byte order mark read the message after it.
        if let Some(marked) = text.strip_prefix(BYTE_ORDER_MARK)
            && !marked.starts_with(BYTE_ORDER_MARK)
        {
            let body = PostedBody {
                text: Some(text.slice_ref(marked)),
                fault: Some(fault),
            };
            return classify(self.plan, self.poster, body);
        }
        let begins = text.trim_ascii_start();
        let first = match begins.strip_prefix(b"[") {
            // The first message of a batch, as far as it is complete.
            Some(rest) => text.slice_ref(rest.trim_ascii_start()),
            None => text.clone(),
        };
        let loose = read_loosely(&first, self.plan.limits.depth);
        match self.is_message(&loose) {
            true => self.unreadable(RequestId::null(), fault),
            false => self.not_json_rpc(RequestId::null(), fault),
        }
    }

    /// Classifies content that is not JSON-RPC.
    fn not_json_rpc(&self, id: RequestId, fault: Failure) -> Posted {
        match self.target_of() {
            PathTarget::Rest => Posted::Rest,
            PathTarget::Rpc(index) => self.unread(index, id, fault),
            PathTarget::Nowhere => Posted::Refused(MessageFault::Unreadable, id, fault),
        }
    }

    /// Classifies a message without a readable method.
    fn unreadable(&self, id: RequestId, fault: Failure) -> Posted {
        match self.plan.rpc_over_http_index() {
            Some(index) => self.unread(index, id, fault),
            None => Posted::Refused(MessageFault::Unreadable, id, fault),
        }
    }

    fn unread(&self, index: usize, id: RequestId, fault: Failure) -> Posted {
        match self.accepts_uninspected(index) && may_pass_unread(self.plan, self.poster) {
            true => Posted::Unread(MessageFault::Unreadable, index),
            false => Posted::Refused(MessageFault::Unreadable, id, fault),
        }
    }

    fn ambiguous(&self, id: RequestId, fault: Failure) -> Posted {
        match self.plan.rpc_over_http_index() {
            Some(index) if self.accepts_uninspected(index) && may_pass_ambiguous(self.plan) => {
                Posted::Unread(MessageFault::Ambiguous, index)
            }
            Some(_) | None => Posted::Refused(MessageFault::Ambiguous, id, fault),
        }
    }

    /// Returns whether the body is JSON-RPC: it has a version, or calls a method of a route or of the proxy.
    fn is_message(&self, loose: &Loose) -> bool {
        let knows = |method: &String| {
            self.plan.routes.knows_rpc(method) || self.plan.locals.rpc(method).is_some()
        };
        loose.has_version || loose.methods.iter().any(knows)
    }

    /// Returns whether content that is not JSON-RPC belongs to the REST side.
    fn is_not_rpc(&self) -> bool {
        matches!(self.target_of(), PathTarget::Rest)
    }

    /// Returns whether only the proxy answers batches here: an array without a message is one, too (JSON-RPC 2.0 §6).
    fn answers_batches(&self) -> bool {
        self.plan.upstream(Side::Rpc).is_none() && !self.plan.routes.routes().is_empty()
    }

    fn target_of(&self) -> PathTarget {
        let path = Segments::split(self.poster.head.uri.path()).normal();
        let all = &self.plan.upstreams.all;
        let is_there = |index: &usize| {
            let upstream = &all[*index];
            let is_http = upstream.transport.link().is_none();
            let upstream_path = upstream.path.path().trim_end_matches('/');
            upstream.side == Side::Rpc && is_http && upstream_path == path.trim_end_matches('/')
        };
        let default = self.plan.rpc_over_http_index();
        let mut indexes = default.into_iter().chain(0..all.len());
        match (indexes.find(is_there), default) {
            (Some(index), _) => PathTarget::Rpc(index),
            _ if self.plan.upstream(Side::Rest).is_some() => PathTarget::Rest,
            (None, Some(index)) => PathTarget::Rpc(index),
            (None, None) => PathTarget::Nowhere,
        }
    }

    fn accepts_uninspected(&self, index: usize) -> bool {
        let upstream = self.plan.upstreams.all.get(index);
        upstream.is_some_and(|upstream| takes_envelopes(self.plan, upstream))
    }
}

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
