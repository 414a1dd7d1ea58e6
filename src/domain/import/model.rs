//! Operations of either side, as plain values: what the documents of all kinds have in common.

use std::collections::BTreeSet;

use serde_json::Value;

use super::LeftOut;
use super::name_words;
use super::openapi::Unsupported;
use super::refs::DocumentFault;
use super::schema::{NamedValue, Others, Requirement, Type};

/// What all documents describe.
#[derive(Debug, Default)]
pub(super) struct Operations {
    pub(super) rest: Vec<RestOperation>,
    pub(super) rpc: Vec<RpcOperation>,
    /// REST operations that no route can express.
    pub(super) left_out: Vec<LeftOut>,
    /// RPC operations that no route can express.
    pub(super) rpc_left_out: Vec<LeftOut>,
    /// What a reader of the whole table should know.
    pub(super) notes: Vec<String>,
}

impl Operations {
    /// Adds those of another document.
    pub(super) fn join(&mut self, other: Operations) {
        self.rest.extend(other.rest);
        self.rpc.extend(other.rpc);
        self.left_out.extend(other.left_out);
        self.rpc_left_out.extend(other.rpc_left_out);
        self.notes.extend(other.notes);
    }

    /// How many REST operations were read, with those that are left out.
    pub(super) fn rest_count(&self) -> usize {
        self.rest.len() + self.left_out.len()
    }

    /// How many RPC operations were read, with those that are left out.
    pub(super) fn rpc_count(&self) -> usize {
        self.rpc.len() + self.rpc_left_out.len()
    }

    /// Leaves out a REST operation.
    ///
    /// # Errors
    /// A fault of the whole document.
    pub(super) fn leave_out(&mut self, what: &str, stop: Unsupported) -> Result<(), DocumentFault> {
        self.left_out.push(stop.left_out_as(what)?);
        Ok(())
    }

    /// Leaves out an RPC operation.
    ///
    /// # Errors
    /// A fault of the whole document.
    pub(super) fn leave_out_rpc(
        &mut self,
        what: &str,
        stop: Unsupported,
    ) -> Result<(), DocumentFault> {
        self.rpc_left_out.push(stop.left_out_as(what)?);
        Ok(())
    }
}

/// An operation of an OpenAPI document.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RestOperation {
    /// `GET`
    pub(super) method: String,
    /// With the prefix of the server, as the document spells it: `/v1/pets/{petId}`.
    pub(super) path: String,
    pub(super) segments: Vec<Segment>,
    pub(super) id: Option<String>,
    pub(super) parameters: Vec<Parameter>,
    /// Names of the query that no parameter of the route has.
    pub(super) unread: Vec<String>,
    pub(super) body: BodyModel,
    pub(super) reply: ReplyModel,
    /// What a reader of the route should know.
    pub(super) notes: Vec<String>,
}

impl RestOperation {
    /// `GET /v1/pets/{petId}`
    pub(super) fn title(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// The last segment that is not empty: a path may end in a slash.
    pub(super) fn last_segment(&self) -> Option<&Segment> {
        let is_empty =
            |segment: &Segment| matches!(segment, Segment::Literal(text) if text.is_empty());
        self.segments.iter().rfind(|segment| !is_empty(segment))
    }

    /// Whether members can be added to its body.
    pub(super) fn has_members(&self) -> bool {
        matches!(self.body, BodyModel::Members { .. })
    }

    /// Whether a short form has a body (RFC 9110 §9.3).
    pub(super) fn short_form_carries(&self) -> bool {
        matches!(self.method.as_str(), "POST" | "PUT" | "PATCH")
    }
}

/// A segment of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Segment {
    Literal(String),
    /// A parameter of the path, and the verb behind it.
    Hole {
        name: String,
        verb: Option<String>,
    },
}

/// A parameter of a path, a query or a header.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Parameter {
    pub(super) place: ParameterPlace,
    pub(super) named: NamedValue,
    pub(super) list: Option<List>,
    /// The object that it is a member of.
    pub(super) inside: Option<Inside>,
}

/// A member of an object that a query spells member by member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Inside {
    pub(super) object: String,
    pub(super) member: String,
}

impl Inside {
    /// Whether a param of this name is its object.
    pub(super) fn is_of(&self, param: &str) -> bool {
        name_words::same_name(&self.object, param)
    }
}

/// Where a parameter lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParameterPlace {
    Path,
    Query,
    Header,
}

/// How a list is written in a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum List {
    /// `a=1&a=2`
    Repeated,
    /// `a=1,2`, `/1,2`
    Commas,
    /// `a=1%7C2`
    Pipes,
    /// `a=1%202`
    Spaces,
}

/// What a request bears.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum BodyModel {
    None,
    /// An object, member by member.
    Members {
        members: Vec<NamedValue>,
        others: Others,
    },
    /// A value of its own.
    Whole {
        kind: Type,
        need: Requirement,
    },
}

/// What the answer of a call that went well looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReplyModel {
    /// 200 with JSON, or 204: what the built-in table says.
    Usual,
    /// Another status, with JSON.
    Json(u16),
    /// A status other than 204, without a body.
    Empty(u16),
    /// A body of text.
    Text(u16),
}

/// A method, or a tool.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RpcOperation {
    pub(super) name: String,
    pub(super) call: CallModel,
    pub(super) forms: Forms,
    pub(super) params: Vec<NamedValue>,
    pub(super) others: Others,
    /// What it promises of a second call.
    pub(super) effect: Option<&'static str>,
    /// What a reader of the route should know.
    pub(super) notes: Vec<String>,
}

impl RpcOperation {
    /// What it is called in comments.
    pub(super) fn title(&self) -> String {
        match self.call {
            CallModel::ByName | CallModel::ByPosition => self.name.clone(),
            CallModel::Tool => format!("tools/call {}", self.name),
        }
    }

    /// Returns the same operation with its params by name, if it takes either form.
    pub(super) fn by_name(&self) -> Option<RpcOperation> {
        if self.forms == Forms::One {
            return None;
        }
        let mut names = BTreeSet::new();
        let params = self.params.iter();
        let params = params.filter(|param| names.insert(param.name.as_str()));
        let params = params.cloned().collect();
        Some(RpcOperation {
            call: CallModel::ByName,
            forms: Forms::One,
            params,
            ..self.clone()
        })
    }
}

/// The forms of params that an RPC operation takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Forms {
    /// That of its call alone.
    One,
    /// An array and an object.
    Either,
}

/// How an RPC operation is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallModel {
    /// A method whose params are an object.
    ByName,
    /// A method whose params are an array.
    ByPosition,
    /// `tools/call` with the name of the tool, and an object of arguments.
    Tool,
}

/// A text member, if there is one.
pub(super) fn text<'v>(value: &'v Value, name: &str) -> Option<&'v str> {
    value.get(name)?.as_str()
}
