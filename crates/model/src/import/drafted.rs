//! A drafted route, as the values of its keys. Used by `import`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::model::CallModel;
use super::values::{BoundParameter, RpcLocation};

/// A pattern of JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Pattern {
    Text(String),
    /// A number or a boolean, as TOML spells it.
    Literal(String),
    Object(Vec<(String, Pattern)>),
    List(Vec<Pattern>),
}

/// The part of an RPC result that is the REST body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum DraftedResult {
    #[default]
    Whole,
    /// The value of a tool.
    ToolValue,
    /// The value of a tool, in another form.
    MappedToolValue,
}

/// The schemas of a field among the params.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FieldSchemas {
    pub(super) own: Value,
    /// The members next to it.
    pub(super) beside: Vec<(String, Value)>,
    pub(super) is_required: bool,
}

/// A route with the values of its keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Drafted {
    pub(super) name: String,
    pub(super) rest: String,
    pub(super) rpc: String,
    /// The only side from which the route is called.
    pub(super) from: Option<&'static str>,
    pub(super) effect: Option<&'static str>,
    /// The format of responses that stream on the REST side.
    pub(super) stream: Option<&'static str>,
    pub(super) headers: Vec<(String, Pattern)>,
    /// Query names of the document that the route does not have.
    pub(super) unread: Vec<String>,
    pub(super) params: Option<Pattern>,
    pub(super) body: Option<Pattern>,
    /// The format of the body, if it is a form.
    pub(super) body_format: Option<&'static str>,
    /// The values of the call.
    pub(super) bounds: Vec<BoundParameter>,
    /// The schemas of files among the params, by hole.
    pub(super) files: BTreeMap<String, FieldSchemas>,
    /// True if unnamed members are passed on.
    pub(super) has_others: bool,
    pub(super) outcomes: Vec<DraftedOutcome>,
    pub(super) result: DraftedResult,
    /// True if calls always pass to the server of their own side.
    pub(super) always_passes: bool,
    pub(super) comments: Vec<String>,
    /// The reason why the route is written as a comment.
    pub(super) refused: Option<String>,
    /// The route for clients that send params by name, if this one has them by position.
    pub(super) by_name: Option<Box<Drafted>>,
    /// The documentation, if the route is a tool whose value is the REST body.
    pub(super) docs: Option<Box<DraftedDocs>>,
}

impl Drafted {
    /// Returns the form of the RPC calls.
    pub(super) fn call(&self) -> CallModel {
        let is_position = |location: &RpcLocation| match location {
            RpcLocation::Position(_) => true,
            RpcLocation::Inside(object, _) => matches!(**object, RpcLocation::Position(_)),
            RpcLocation::Named(_) | RpcLocation::Twin | RpcLocation::Equal => false,
        };
        if self.result != DraftedResult::Whole {
            CallModel::Tool
        } else if self.bounds.iter().any(|bound| is_position(&bound.rpc)) {
            CallModel::ByPosition
        } else {
            CallModel::ByName
        }
    }
}

/// An outcome of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DraftedOutcome {
    pub(super) rest: Pattern,
    pub(super) rpc: Pattern,
    /// The reason for an accepted loss.
    pub(super) lossy: Option<&'static str>,
}

impl DraftedOutcome {
    pub(super) fn new(rest: Vec<(&str, Pattern)>, rpc: Vec<(&str, Pattern)>) -> DraftedOutcome {
        DraftedOutcome {
            rest: object(rest),
            rpc: object(rpc),
            lossy: None,
        }
    }
}

/// Returns the pattern of an object.
pub(super) fn object(members: Vec<(&str, Pattern)>) -> Pattern {
    let members = members.into_iter();
    Pattern::Object(
        members
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
    )
}

/// Returns the pattern of a text.
pub(super) fn text(text: &str) -> Pattern {
    Pattern::Text(text.to_owned())
}

/// Returns the pattern of a number or a boolean.
pub(super) fn literal(value: impl std::fmt::Display) -> Pattern {
    Pattern::Literal(value.to_string())
}

/// The documentation of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DraftedDocs {
    pub(super) summary: Option<String>,
    pub(super) description: Option<String>,
    pub(super) tags: Vec<String>,
    /// The description of the REST body.
    pub(super) body: Option<String>,
    /// The schema of the params.
    pub(super) params: Option<Value>,
    /// The schema of the result.
    pub(super) result: Option<Value>,
    /// The declared successes, by status.
    pub(super) successes: Option<Value>,
    /// The declared failures, by status.
    pub(super) failures: Option<Value>,
}
