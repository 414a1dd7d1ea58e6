//! A request that is explained, and the parts of its explanation that all kinds of calls share.
//!
//! Used throughout `explain`.

use core::net::IpAddr;

use bytes::Bytes;
use http::{HeaderMap, Method};

use super::secrets::{self, Secrets};
use super::view::{
    Decided, Explanation, HoleValue, NamedRoute, PassedOver, Refusal, SentRequest, Value, text_of,
};
use crate::failure::Failure;
use crate::forwarding::is_hop_field;
use crate::hosts::ConnectionEntry;
use crate::jsonrpc::{self, RequestId};
use crate::outcome::{RestReply, error_object, problem};
use crate::plan::{Framing, Plan, Transport, UpstreamPlan};
use crate::redact::Redaction;
use crate::rollout::{
    Arming, Bucket, Caller, Decision, DecisionReason, Flag, Percent, Requester, Stage, Way,
    WithoutKey, bucket,
};
use crate::route::Route;
use crate::routing::{self, RequestHead};
use crate::shadow_limits;
use crate::time::Timestamp;
use crate::token::TokenFault;
use crate::translate::TranslateContext;
use dualgauge_patterns::pattern::{Bindings, BoundValue};
use dualgauge_patterns::side::Side;

/// A request to explain.
#[derive(Debug, Clone, Copy)]
pub struct ExplainRequest<'a> {
    /// The head; its target is in origin form.
    pub head: RequestHead<'a>,
    /// The address of the peer. Without one, the request's own headers are trusted and no rule by address matches.
    pub peer: Option<IpAddr>,
    /// The body, as it would arrive.
    pub body: &'a Bytes,
    /// The reply of the upstream, if it is to be explained, too.
    pub reply: Option<&'a RestReply>,
}

/// One request, with everything that its calls have in common.
pub(super) struct Case<'a> {
    pub(super) plan: &'a Plan,
    pub(super) request: ExplainRequest<'a>,
    pub(super) caller: Caller<'a>,
    /// The reason why the bearer token proves nothing, if there is one.
    pub(super) token: Option<TokenFault>,
    pub(super) side: Side,
    pub(super) context: TranslateContext,
    /// The message is an element of a batch of an old dialect.
    pub(super) in_old_batch: bool,
}

impl<'a> Case<'a> {
    /// Creates an explanation that names the client only.
    pub(super) fn begin(&self) -> Explanation {
        let secrets = self.secrets();
        let head = self.request.head;
        let target = head
            .uri
            .path_and_query()
            .map_or("/", |target| target.as_str());
        Explanation {
            side: self.side,
            request: secrets.hide(&format!("{} {target}", head.method)),
            client: self.caller.name.to_owned(),
            proof: self.caller.proof.as_str().into(),
            token: self.token.map(|fault| fault.as_str().into()),
            ..Explanation::default()
        }
    }

    pub(super) fn secrets(&self) -> Secrets {
        let bears = |name: &http::HeaderName| self.is_secret(name);
        let mut secrets = Secrets::new(self.request.head.headers, bears);
        let redaction = &self.plan.redaction;
        secrets.note_target(redaction, self.request.head.uri);
        secrets.note_members(redaction, self.request.body, self.context.depth);
        if let Some(reply) = self.request.reply {
            secrets.note_members(redaction, &reply.body, self.context.depth);
        }
        secrets
    }

    pub(super) fn is_secret(&self, name: &http::HeaderName) -> bool {
        self.plan.is_secret(name)
    }

    /// Returns the connection by which the request would come.
    pub(super) fn entry(&self) -> ConnectionEntry {
        ConnectionEntry {
            reach: self.plan.reach,
            peer: self.request.peer,
        }
    }

    /// Checks `Host` and `Origin` of a call that is not passed through.
    pub(super) fn guard(&self, stage: Stage) -> Result<(), Failure> {
        match stage.control() {
            Some(Way::Old) => Ok(()),
            Some(Way::New) | None => {
                routing::check_origin(self.plan, self.request.head, self.entry())
            }
        }
    }

    /// Returns the sender of the request.
    pub(super) fn requester(&self) -> Requester<'a> {
        Requester::new(self.caller, self.request.head.headers)
    }

    /// Returns the current time.
    pub(super) fn at(&self) -> Timestamp {
        Timestamp::parse(&(self.context.now)()).unwrap_or_default()
    }

    /// Records the route and the decision.
    pub(super) fn decide(&self, explanation: &mut Explanation, route: Option<usize>) -> Decision {
        let decision = routing::decide(self.plan, self.requester(), route, self.side, self.at());
        explanation.route = route.map(|index| NamedRoute::new(self.plan.routes.route(index)));
        explanation.decision = Some(Decided {
            stage: decision.stage.as_str().into(),
            why: self.plan.rollout.describe(decision.why).into_owned(),
            flag: self.flag(decision.why),
            changed: None,
            candidate: self.candidate(route, decision.stage).map(Into::into),
            passed_over: route.map_or_else(Vec::new, |index| {
                self.passed_over(&self.plan.routes.route(index).name)
            }),
        });
        decision
    }

    /// Returns the name of the flag that has decided.
    pub(super) fn flag(&self, why: DecisionReason) -> Option<String> {
        let flag = self.plan.rollout.flags.get(why.flag()?);
        flag.map(|flag| flag.name.clone())
    }

    /// Describes the shadow call that follows the answer.
    pub(super) fn candidate(&self, route: Option<usize>, stage: Stage) -> Option<&'static str> {
        let path = stage.candidate()?;
        let never = shadow_limits::never(self.plan.routes.route(route?));
        let is_refused =
            || routing::check_origin(self.plan, self.request.head, self.entry()).is_err();
        Some(match (never, path) {
            (None, Way::New) if is_refused() => {
                "not sent: its `Origin` or `Host` is not allowed, so it fails with `origin_refused`"
            }
            (Some(_), _) => "none: the route is not safe to call twice, or its calls get no answer",
            (None, Way::New) if self.is_paired(route) => "the same call, to the other MCP server",
            (None, Way::Old) if self.is_paired(route) => "the same call, to the first MCP server",
            (None, Way::New) => "the same call, translated for the other side's upstream",
            (None, Way::Old) => "the same call, unchanged, to the upstream of its own side",
        })
    }

    pub(super) fn is_paired(&self, route: Option<usize>) -> bool {
        self.side == Side::Rpc && self.plan.candidate_for(route).is_some()
    }

    /// Returns the flags for the call that were tried before the deciding one, each with the reason why it did not
    /// decide.
    pub(super) fn passed_over(&self, route: &str) -> Vec<PassedOver> {
        let call = self.requester().call(route, self.side);
        let covers = |flag: &&Flag| flag.covers(&call);
        let flags = self.plan.rollout.flags.iter().filter(covers);
        flags
            .map_while(|flag| {
                let (why, bucket) = skip_reason(flag, self.caller.key)?;
                Some(PassedOver {
                    flag: flag.name.clone(),
                    percent: flag.percent.to_string(),
                    why: why.into(),
                    changed: None,
                    bucket: bucket.map(Bucket::get),
                })
            })
            .collect()
    }

    /// Records the failure of a call.
    pub(super) fn refuse(&self, explanation: Explanation, failure: Failure) -> Explanation {
        self.refuse_call(explanation, failure, Some(&RequestId::null()))
    }

    /// Records the failure of one call; a call without an id gets no answer.
    pub(super) fn refuse_call(
        &self,
        mut explanation: Explanation,
        failure: Failure,
        id: Option<&RequestId>,
    ) -> Explanation {
        let secrets = self.secrets();
        let row = failure.reason.row();
        let codes = &self.plan.face.failure_codes;
        let (status, document) = match (self.side, id) {
            (Side::Rest, _) => (row.status, problem(&failure, codes).body),
            (Side::Rpc, Some(id)) => {
                let error = jsonrpc::error(id, &error_object(&failure, codes));
                let headers = self.request.head.headers;
                let status = routing::rpc_face_status(self.plan, headers, failure.reason);
                (status, error)
            }
            (Side::Rpc, None) => (
                routing::notification_status(self.plan, self.request.head.headers).as_u16(),
                dualgauge_patterns::rope::Rope::default(),
            ),
        };
        explanation.refused = Some(Refusal {
            status,
            code: codes.of(failure.reason),
            reason: row.label.into(),
            blame: row.blame.as_str().into(),
            message: secrets.hide(&failure.message),
            document: Value::from_text(secrets.hide_bytes(&document.into_bytes())),
        });
        explanation
    }

    /// Returns the headers that are sent with a translated call.
    pub(super) fn headers(&self, headers: &HeaderMap) -> Vec<(String, String)> {
        let clients = &self.plan.rollout.clients;
        let drops_hop_fields = self.request.peer.is_some_and(|peer| {
            let forwarding = &self.plan.forwarding;
            !forwarding.trusts(peer, clients.hops())
        });
        let headers = headers
            .iter()
            .filter(|(name, _)| !(drops_hop_fields && is_hop_field(name)))
            .filter(|(name, _)| !self.plan.identity_headers.writes(name));
        let shown = headers.map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            let value = if self.is_secret(name) {
                secrets::HIDDEN.to_owned()
            } else {
                value
            };
            (name.as_str().to_owned(), value)
        });
        // The values may contain secrets.
        let written = self.plan.identity_headers.written.iter();
        let written =
            written.map(|(name, _)| (name.as_str().to_owned(), secrets::HIDDEN.to_owned()));
        shown.chain(written).collect()
    }

    /// Describes the call as it is sent to the upstream of its own side.
    pub(super) fn passes(
        &self,
        upstream: &UpstreamPlan,
        target: &str,
        note: &'static str,
    ) -> SentRequest {
        SentRequest {
            upstream: upstream.name.clone(),
            authority: upstream.authority.as_str().to_owned(),
            method: match upstream.transport.link() {
                None => self.request.head.method.as_str().to_owned(),
                Some(_) => carrier(upstream).to_owned(),
            },
            target: self.secrets().hide(&upstream.with_base(target)),
            note: Some(note.into()),
            ..SentRequest::default()
        }
    }
}

/// Returns the reason why a flag skips a call, with the bucket; `None` if the flag takes it.
pub(super) fn skip_reason(
    flag: &Flag,
    key: Option<&str>,
) -> Option<(&'static str, Option<Bucket>)> {
    if flag.arming == Arming::Tripped {
        return Some(("tripped", None));
    }
    if flag.share() == Percent::ALL {
        return None;
    }
    match (key, flag.without_key) {
        (Some(key), _) => {
            let bucket = bucket(&flag.name, key);
            // A client in the holdback stays there at every percentage.
            let why = if flag.holdback.rest().takes(bucket) {
                "bucket"
            } else {
                "held_back"
            };
            (!flag.share().takes(bucket)).then_some((why, Some(bucket)))
        }
        (None, WithoutKey::Out) => Some(("no_key", None)),
        (None, WithoutKey::In) => None,
    }
}

/// A call that would be translated, with the source of its holes and its answer.
pub(super) struct TranslatedCall<'a> {
    pub(super) route: &'a Route,
    pub(super) call: &'a Bindings,
}

impl TranslatedCall<'_> {
    /// Returns the values of the holes. Credentials and values of hidden names are hidden.
    pub(super) fn holes(&self, secrets: &Secrets, redaction: &Redaction) -> Vec<HoleValue> {
        // Alternatives that were not read have no values.
        let is_read = |place: usize| {
            *self.call.get(place) != BoundValue::Unbound
                || self.route.facts.choices(place).is_empty()
        };
        let holes = self.route.facts.holes.iter().enumerate();
        let holes = holes.filter(|(place, _)| is_read(*place));
        let values = holes.map(|(place, hole)| HoleValue {
            name: match hole.is_choice() {
                true => "{|}".to_owned(),
                false => hole.name.clone(),
            },
            kind: hole.shape.to_notation(),
            value: text_of(self.call.get(place)).map(|text| {
                Value::from_text(match redaction.hides(&hole.name) {
                    true => format!("\"{}\"", secrets::HIDDEN),
                    false => secrets.hide(&text),
                })
            }),
        });
        values.collect()
    }
}

/// Replaces the method of a request where the message is sent as a line.
pub(super) const LINE: &str = "one line";
/// Replaces it where a header with its length precedes the message.
const HEADED: &str = "one message after its `Content-Length`";
/// Replaces it where the message is sent as a text message of a WebSocket.
pub(super) const FRAME: &str = "one message";

/// Returns the form in which a message is sent to a server with a link.
pub(super) fn carrier(upstream: &UpstreamPlan) -> &'static str {
    match &upstream.transport {
        Transport::Http | Transport::Mcp(_) => "POST",
        Transport::Stdio(child) => match child.framing {
            Framing::Lines => LINE,
            Framing::ContentLength => HEADED,
        },
        Transport::WebSocket(_) | Transport::Frames(_) => FRAME,
    }
}

/// The method of every RPC call.
pub(super) const POST: Method = Method::POST;
