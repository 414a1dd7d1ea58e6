//! Stub of the relation.

use super::{Pattern, Words};
use crate::domain::json::Json;

/// Whether unknown members are fine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum World {
    /// Replies.
    Open,
    /// Requests.
    Closed,
}

/// x
#[must_use]
pub fn within(one: &Pattern, other: &Pattern, _world: World) -> bool {
    one == other
}

/// x
#[must_use]
pub fn meeting(one: &Pattern, other: &Pattern, _world: World) -> Option<Json> {
    match (one, other) {
        (Pattern::Literal(one), Pattern::Literal(other)) if one != other => None,
        (Pattern::Object(a), Pattern::Object(b)) => {
            for (n, p) in &a.members {
                if let Some((_, q)) = b.members.iter().find(|(m, _)| m == n) {
                    meeting(p, q, World::Open)?;
                }
            }
            Some(Json::literal("{}"))
        }
        _ => Some(Json::literal("null")),
    }
}

/// x
#[must_use]
pub fn words_within(one: &Words, other: &Words) -> bool {
    one == other || matches!((one, other), (Words::Literal(_), Words::Hole(_)))
}

/// x
#[must_use]
pub fn words_meeting(one: &Words, other: &Words) -> Option<Vec<String>> {
    match (one, other) {
        (Words::Literal(one), Words::Literal(other)) if one != other => None,
        _ => Some(Vec::new()),
    }
}
