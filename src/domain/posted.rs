//! What is posted to an RPC path: valid messages, calls that are not valid JSON-RPC 2.0, and what is no JSON-RPC.
//!
//! Translation takes valid messages only. A call that passes through is forwarded as it came, unless that would bypass a
//! flag; what is no JSON-RPC goes where its path would lead without `rpc.paths`. Law: who serves a body and who
//! explains it decide by the same functions.

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
use super::rollout::{Caller, FlagHistory, ProcessTime};
use super::route::Segments;
use super::routing::{self, RequestHead, may_move};
use super::side::Side;
use super::time::Timestamp;

/// How a posted body differs from valid JSON-RPC 2.0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageFault {
    /// A method can be read.
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

/// What becomes of a message that is not valid JSON-RPC 2.0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handling {
    /// It goes to the RPC upstream as it came.
    Forwarded,
    /// The proxy answers with an error.
    Refused,
}

impl Handling {
    /// Both.
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

/// A body that was posted to an RPC path.
#[derive(Debug)]
pub struct PostedBody {
    /// Its text without its content coding, where that is read.
    pub text: Option<Bytes>,
    /// Why translation does not take it, whatever the text is: its content type or coding.
    pub fault: Option<Failure>,
}

/// What a body is.
#[derive(Debug)]
pub enum Posted {
    /// Valid messages, or a batch of which some are.
    Messages(Incoming),
    /// A call that is forwarded as it came, or fails so.
    Call(Box<Call>, Failure),
    /// A batch that is forwarded as it came, or fails so.
    Batch(Vec<MessageItem>, Failure),
    /// It is forwarded to the upstream of this place as it came.
    Unread(MessageFault, usize),
    /// It is refused.
    Refused(MessageFault, RequestId, Failure),
    /// It is no JSON-RPC, and a call of the REST side.
    Rest,
}

/// Whose body it is.
#[derive(Debug, Clone, Copy)]
pub struct Poster<'a> {
    /// Who calls.
    pub caller: Caller<'a>,
    /// The head of the request.
    pub head: RequestHead<'a>,
    /// When it began.
    pub at: Timestamp,
    /// What flags were before, and the time now, where sessions may keep that.
    pub past: Option<(&'a FlagHistory, ProcessTime)>,
}

/// Tells what a body is. Callers may skip this for valid messages.
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
            Posted::Call(Box::new(call.answered()), fault)
        }
        (Ok(Incoming::Single(MessageItem::Response(_))), Some(fault)) => {
            sorter.unreadable(RequestId::null(), fault)
        }
        (Err(error), fault) => sorter.broken(&text, error, fault),
    }
}

/// What an item of a batch that is not valid calls, read as the message of a request would be.
#[must_use]
pub fn reread(plan: &Plan, invalid: &Invalid) -> Loose {
    read_loosely(&invalid.text, plan.limits.depth)
}

/// Whether a message that cannot be read may pass by: nothing could give this client another stage than passthrough and
/// shadow, also by what a flag was when a session began: a message that cannot be read does not name its session.
#[must_use]
pub fn may_pass_unread(plan: &Plan, poster: Poster<'_>) -> bool {
    let browned_out = |route| routing::browned_out(plan, (Some(route), Side::Rpc), poster.at);
    let client = (poster.caller, poster.head.headers);
    let rollout = &plan.rollout;
    let may_keep = |past| rollout.session_may_move(past, Side::Rpc, client);
    !may_move(plan, Some(client))
        && !poster.past.is_some_and(may_keep)
        && !(0..plan.routes.routes().len()).any(|route| browned_out(route).is_some())
}

/// Whether a message that may be read in two ways may pass by: nothing looks at messages.
#[must_use]
pub fn may_pass_ambiguous(plan: &Plan) -> bool {
    let mut flags = plan.rollout.flags.iter();
    plan.routes.routes().is_empty()
        && !plan.locals.answers_rpc()
        && !flags.any(|flag| flag.side != Some(Side::Rest))
}

/// Whether an upstream may have messages whose members are not looked at: it takes every credential that an envelope may
/// bear.
#[must_use]
pub fn takes_envelopes(plan: &Plan, upstream: &UpstreamPlan) -> bool {
    let mut known = plan.face.envelope.iter();
    known.all(|paired| takes_member(upstream, &paired.member))
}

/// The message of a call without the credentials that its envelope bears and an upstream does not get; none where it bears
/// none of these.
#[must_use]
pub fn refused_message(plan: &Plan, upstream: &UpstreamPlan, call: &Call) -> Option<Bytes> {
    if takes_envelopes(plan, upstream) {
        return None;
    }
    let is_credential = |name: &str| {
        let mut known = plan.face.envelope.iter();
        known.any(|paired| paired.member == name)
    };
    call.without(|name| is_credential(name) && !takes_member(upstream, name))
}

/// A call whose envelope bears credentials that its upstream does not take there.
#[derive(Debug)]
pub struct RewrittenCall {
    /// The message without these members, and otherwise as it came.
    pub body: Bytes,
    /// Their headers, where the upstream gets credentials and has headers.
    pub headers: HeaderMap,
}

/// Returns a call as an upstream gets it that does not take all of its credentials as members; none where it takes them.
///
/// # Errors
/// A [`Failure`] where a value has no place in its header.
pub fn rewritten(
    plan: &Plan,
    upstream: &UpstreamPlan,
    call: &Call,
) -> Result<Option<RewrittenCall>, Failure> {
    let Some(body) = refused_message(plan, upstream, call) else {
        return Ok(None);
    };
    // The headers of a link are those of its handshake.
    let has_headers = upstream.transport.link().is_none();
    let headers = if has_headers && upstream.credentials == Credentials::Forward {
        let members = plan.face.envelope.iter();
        let moved = members.filter(|paired| !takes_member(upstream, &paired.member));
        credentials_of(moved, call, plan.limits.depth)?
    } else {
        HeaderMap::new()
    };
    Ok(Some(RewrittenCall { body, headers }))
}

fn takes_member(upstream: &UpstreamPlan, name: &str) -> bool {
    let mut named = upstream.envelope.iter();
    upstream.credentials == Credentials::Forward && named.any(|paired| paired.member == name)
}

/// Where a path leads without `rpc.paths`.
enum PathTarget {
    /// To the RPC upstream of this place.
    Rpc(usize),
    /// To the REST upstream.
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

    /// A value that is no valid message.
    fn invalid(&self, Invalid { id, why, text }: Invalid, fault: Option<Failure>) -> Posted {
        let fault = fault.unwrap_or_else(|| Failure::new(Reason::InvalidRequest, why));
        let loose = read_loosely(&text, self.plan.limits.depth);
        self.loosely_read(loose, id, fault)
    }

    fn loosely_read(&self, loose: Loose, id: RequestId, fault: Failure) -> Posted {
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

    /// A text that is no JSON, or nested too deeply, or a batch of none or too many.
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
        // Servers that take a byte order mark read the message behind it.
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
            // The first message of a batch, as far as it goes.
            Some(behind) => text.slice_ref(behind.trim_ascii_start()),
            None => text.clone(),
        };
        let loose = read_loosely(&first, self.plan.limits.depth);
        match self.is_message(&loose) {
            true => self.unreadable(RequestId::null(), fault),
            false => self.not_json_rpc(RequestId::null(), fault),
        }
    }

    /// What is no JSON-RPC.
    fn not_json_rpc(&self, id: RequestId, fault: Failure) -> Posted {
        match self.target_of() {
            PathTarget::Rest => Posted::Rest,
            PathTarget::Rpc(place) => self.unread(place, id, fault),
            PathTarget::Nowhere => Posted::Refused(MessageFault::Unreadable, id, fault),
        }
    }

    /// A message whose method cannot be read.
    fn unreadable(&self, id: RequestId, fault: Failure) -> Posted {
        match self.usual() {
            Some(place) => self.unread(place, id, fault),
            None => Posted::Refused(MessageFault::Unreadable, id, fault),
        }
    }

    fn unread(&self, place: usize, id: RequestId, fault: Failure) -> Posted {
        match self.takes(place) && may_pass_unread(self.plan, self.poster) {
            true => Posted::Unread(MessageFault::Unreadable, place),
            false => Posted::Refused(MessageFault::Unreadable, id, fault),
        }
    }

    fn ambiguous(&self, id: RequestId, fault: Failure) -> Posted {
        match self.usual() {
            Some(place) if self.takes(place) && may_pass_ambiguous(self.plan) => {
                Posted::Unread(MessageFault::Ambiguous, place)
            }
            Some(_) | None => Posted::Refused(MessageFault::Ambiguous, id, fault),
        }
    }

    /// Whether it is JSON-RPC: it says so, or calls what a route or the proxy itself has.
    fn is_message(&self, loose: &Loose) -> bool {
        let knows = |method: &String| {
            self.plan.routes.knows_rpc(method) || self.plan.locals.rpc(method).is_some()
        };
        loose.has_version || loose.methods.iter().any(knows)
    }

    /// Whether what is no JSON-RPC is a call of the REST side.
    fn is_not_rpc(&self) -> bool {
        matches!(self.target_of(), PathTarget::Rest)
    }

    /// Whether the proxy alone answers batches here: an array without a message is one, too (JSON-RPC 2.0 §6).
    fn answers_batches(&self) -> bool {
        self.plan.upstream(Side::Rpc).is_none() && !self.plan.routes.routes().is_empty()
    }

    fn target_of(&self) -> PathTarget {
        let path = Segments::split(self.poster.head.uri.path()).normal();
        let all = &self.plan.upstreams.all;
        let is_there = |place: &usize| {
            let upstream = &all[*place];
            let is_http = upstream.transport.link().is_none();
            let own = upstream.path.path().trim_end_matches('/');
            upstream.side == Side::Rpc && is_http && own == path.trim_end_matches('/')
        };
        let usual = self.usual();
        let mut places = usual.into_iter().chain(0..all.len());
        match (places.find(is_there), usual) {
            (Some(place), _) => PathTarget::Rpc(place),
            _ if self.plan.upstream(Side::Rest).is_some() => PathTarget::Rest,
            (None, Some(place)) => PathTarget::Rpc(place),
            (None, None) => PathTarget::Nowhere,
        }
    }

    /// The place of the RPC upstream that takes HTTP requests.
    fn usual(&self) -> Option<usize> {
        self.plan.rpc_over_http()?;
        self.plan.upstreams.of(None, Side::Rpc)
    }

    fn takes(&self, place: usize) -> bool {
        let upstream = self.plan.upstreams.all.get(place);
        upstream.is_some_and(|upstream| takes_envelopes(self.plan, upstream))
    }
}

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
