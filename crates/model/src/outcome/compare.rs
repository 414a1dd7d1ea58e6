//! Comparison of rows by specificity, on the responses of one side's upstream. Used by `outcome::table`.

use super::number::NumberPattern;
use super::row::{BodyPattern, IS_ERROR, OutcomeRow, RpcReplyPattern, ToolResult};
use crate::route::HeaderItem;
use dualgauge_patterns::pattern::{
    MemberPolicy, Pattern, TextPatterns, may_intersect, within as within_json, words_intersection,
    words_within,
};
use dualgauge_patterns::side::Side;

/// Returns whether every response that matches `one` matches `other`.
pub(super) fn within(one: &OutcomeRow, other: &OutcomeRow, side: Side) -> bool {
    match side {
        Side::Rest => {
            let (one, other) = (&one.rest, &other.rest);
            one.status.within(&other.status)
                && headers_within(&one.headers, &other.headers)
                && body_within(&one.body, &other.body)
        }
        Side::Rpc => match (&one.rpc, &other.rpc) {
            (RpcReplyPattern::Result(first), RpcReplyPattern::Result(second)) => {
                let spared = other.tool == ToolResult::Any
                    || one.tool == ToolResult::Succeeded
                    || success_constraint(first) == Some(ToolSuccess::Success);
                spared && within_json(first, second, MemberPolicy::Open)
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
            ) => {
                code.within(other_code)
                    && part_within(message.as_ref(), other_message.as_ref())
                    && part_within(data.as_ref(), other_data.as_ref())
            }
            (RpcReplyPattern::Result(_), RpcReplyPattern::Error { .. })
            | (RpcReplyPattern::Error { .. }, RpcReplyPattern::Result(_)) => false,
        },
    }
}

/// Returns whether some response matches both.
pub(super) fn overlaps(one: &OutcomeRow, other: &OutcomeRow, side: Side) -> bool {
    match side {
        Side::Rest => {
            let (one, other) = (&one.rest, &other.rest);
            one.status.common_number(&other.status).is_some()
                && headers_meet(&one.headers, &other.headers)
                && bodies_meet(&one.body, &other.body)
        }
        Side::Rpc => match (&one.rpc, &other.rpc) {
            (RpcReplyPattern::Result(first), RpcReplyPattern::Result(second)) => {
                let spares = |row: &OutcomeRow, pattern: &Pattern| {
                    row.tool == ToolResult::Succeeded
                        && success_constraint(pattern) == Some(ToolSuccess::Failure)
                };
                !spares(one, second)
                    && !spares(other, first)
                    && may_intersect(first, second, MemberPolicy::Open)
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
            ) => {
                code.common_number(other_code).is_some()
                    && parts_meet(message.as_ref(), other_message.as_ref())
                    && parts_meet(data.as_ref(), other_data.as_ref())
            }
            (RpcReplyPattern::Result(_), RpcReplyPattern::Error { .. })
            | (RpcReplyPattern::Error { .. }, RpcReplyPattern::Result(_)) => false,
        },
    }
}

impl OutcomeRow {
    /// Returns whether the row maps a success on one side to a success on the other.
    #[must_use]
    pub fn maps_success(&self) -> bool {
        let is_success = match &self.rest.status {
            NumberPattern::Among(first, _) => (200..300).contains(first),
            NumberPattern::Hole(slot) => {
                let mut numbers = self.rest.status.numbers();
                slot.codec.map().is_none() || numbers.any(|status| (200..300).contains(&status))
            }
        };
        let RpcReplyPattern::Result(pattern) = &self.rpc else {
            return false;
        };
        is_success && success_constraint(pattern) != Some(ToolSuccess::Failure)
    }

    /// Returns whether the row matches a tool's result with `isError: true`.
    #[must_use]
    pub fn maps_tool_failure(&self) -> bool {
        let RpcReplyPattern::Result(pattern) = &self.rpc else {
            return false;
        };
        self.tool == ToolResult::Any && success_constraint(pattern) != Some(ToolSuccess::Success)
    }
}

/// The constraint of a pattern on a tool's success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ToolSuccess {
    Success,
    Failure,
}

/// Returns the constraint of a result pattern on success, if it has one.
fn success_constraint(pattern: &Pattern) -> Option<ToolSuccess> {
    let Pattern::Object(object) = pattern else {
        return None;
    };
    let mut members = object.members.iter();
    let (_, member) = members.find(|(name, _)| name == IS_ERROR)?;
    match member {
        Pattern::Literal(literal) if literal.as_bytes() == b"true" => Some(ToolSuccess::Failure),
        Pattern::Literal(_) => Some(ToolSuccess::Success),
        Pattern::Hole(_)
        | Pattern::Text(_)
        | Pattern::Object(_)
        | Pattern::List(_)
        | Pattern::Each(_)
        | Pattern::Either(_) => None,
    }
}

/// Returns whether one list of headers is narrower; headers that a row does not name are ignored.
fn headers_within(one: &[HeaderItem], other: &[HeaderItem]) -> bool {
    other.iter().all(|item| {
        let twin = one.iter().find(|twin| twin.name == item.name);
        twin.is_some_and(|twin| words_within(&twin.words, &item.words))
    })
}

fn headers_meet(one: &[HeaderItem], other: &[HeaderItem]) -> bool {
    one.iter().all(|item| {
        let twin = other.iter().find(|twin| twin.name == item.name);
        twin.is_none_or(|twin| words_intersection(&item.words, &twin.words).is_some())
    })
}

fn body_within(one: &BodyPattern, other: &BodyPattern) -> bool {
    match (one, other) {
        (_, BodyPattern::Anything) | (BodyPattern::Nothing, BodyPattern::Nothing) => true,
        (BodyPattern::Json(one), BodyPattern::Json(other)) => {
            within_json(one, other, MemberPolicy::Open)
        }
        (BodyPattern::Text(one), BodyPattern::Text(other)) => words_within(one, other),
        (BodyPattern::Nothing, BodyPattern::Text(words)) => matches_empty(words),
        (
            BodyPattern::Nothing
            | BodyPattern::Anything
            | BodyPattern::Json(_)
            | BodyPattern::Text(_),
            BodyPattern::Nothing | BodyPattern::Json(_) | BodyPattern::Text(_),
        ) => false,
    }
}

fn bodies_meet(one: &BodyPattern, other: &BodyPattern) -> bool {
    match (one, other) {
        (BodyPattern::Anything, _)
        | (_, BodyPattern::Anything)
        | (BodyPattern::Nothing, BodyPattern::Nothing) => true,
        (BodyPattern::Json(one), BodyPattern::Json(other)) => {
            may_intersect(one, other, MemberPolicy::Open)
        }
        (BodyPattern::Text(one), BodyPattern::Text(other)) => {
            words_intersection(one, other).is_some()
        }
        (BodyPattern::Nothing, BodyPattern::Text(words))
        | (BodyPattern::Text(words), BodyPattern::Nothing) => matches_empty(words),
        (BodyPattern::Nothing | BodyPattern::Json(_) | BodyPattern::Text(_), _) => false,
    }
}

/// Returns whether the empty text matches: a response without a body has an empty one.
fn matches_empty(words: &TextPatterns) -> bool {
    words_intersection(words, &TextPatterns::Literal(String::new())).is_some()
}

fn part_within(one: Option<&Pattern>, other: Option<&Pattern>) -> bool {
    match (one, other) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(one), Some(other)) => {
            (other.may_be_absent() || !one.may_be_absent())
                && within_json(one, other, MemberPolicy::Open)
        }
    }
}

fn parts_meet(one: Option<&Pattern>, other: Option<&Pattern>) -> bool {
    match (one, other) {
        (None, _) | (_, None) => true,
        (Some(one), Some(other)) => {
            (one.may_be_absent() && other.may_be_absent())
                || may_intersect(one, other, MemberPolicy::Open)
        }
    }
}
