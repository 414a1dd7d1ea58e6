//! Messages that two rows or two routes have in common: one writes them, and the other may read them.
//!
//! Used by `check::rivals` and `check::verify`.

use super::message::Message;
use crate::jsonrpc::ResponseReply;
use crate::outcome::{BodyPattern, OutcomeRow, RpcReplyPattern};
use crate::route::Route;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::{MemberPolicy, Pattern, intersection};

/// Returns a plain reply of the first row, with content that both rows read.
pub(super) fn reply(plain: &Message, one: &OutcomeRow, other: &OutcomeRow) -> Option<Message> {
    let both = |one: Option<&Pattern>, other: Option<&Pattern>| match (one, other) {
        (Some(one), Some(other)) => intersection(one, other, MemberPolicy::Open).map(Some),
        (Some(_), None) | (None, Some(_)) | (None, None) => Some(None),
    };
    match plain {
        Message::RestReply(reply) => {
            one.rest.status.common_number(&other.rest.status)?;
            let (BodyPattern::Json(one), BodyPattern::Json(other)) =
                (&one.rest.body, &other.rest.body)
            else {
                return Some(plain.clone());
            };
            let mut reply = reply.clone();
            reply.body = intersection(one, other, MemberPolicy::Open)?.into_bytes();
            Some(Message::RestReply(reply))
        }
        Message::RpcReply(reply) => match (&one.rpc, &other.rpc, reply) {
            (RpcReplyPattern::Result(one), RpcReplyPattern::Result(other), _) => {
                let result = intersection(one, other, MemberPolicy::Open)?;
                Some(Message::RpcReply(ResponseReply::Result(result)))
            }
            (
                RpcReplyPattern::Error {
                    code,
                    message,
                    data,
                },
                RpcReplyPattern::Error {
                    code: other_code,
                    message: other_message,
                    data: other_data,
                },
                ResponseReply::Error(error),
            ) => {
                code.common_number(other_code)?;
                let mut error = error.clone();
                if let Some(common) = both(message.as_ref(), other_message.as_ref())? {
                    error.message = common;
                }
                if let Some(common) = both(data.as_ref(), other_data.as_ref())? {
                    error.data = Some(common);
                }
                Some(Message::RpcReply(ResponseReply::Error(error)))
            }
            (RpcReplyPattern::Result(_) | RpcReplyPattern::Error { .. }, _, _) => None,
        },
        Message::RestCall { .. } | Message::RpcCall { .. } => None,
    }
}

/// Returns params that both routes read.
pub(super) fn params(one: &Route, other: &Route) -> Option<Json> {
    intersection(
        &one.rpc_call.params,
        &other.rpc_call.params,
        MemberPolicy::Closed,
    )
}
