//! Operations of either side as plain values, the same for all kinds of documents. Used by `import`.

use std::collections::{BTreeMap, BTreeSet};

use super::name_words;
use super::refs::DocumentFault;
use super::report::LeftOut;
use super::schema::{NamedValue, Type};
use super::shape::Shape;
use super::unsupported::Unsupported;
use crate::form::BodyFormat;
use crate::stream_format::StreamFormat;

/// The operations of all documents.
#[derive(Debug, Default)]
pub(super) struct Operations {
    pub(super) rest: Vec<RestOperation>,
    pub(super) rpc: Vec<RpcOperation>,
    /// REST operations that no route can express.
    pub(super) left_out: Vec<LeftOut>,
    /// RPC operations that no route can express.
    pub(super) rpc_left_out: Vec<LeftOut>,
    /// Notes for the reader of the whole table.
    pub(super) notes: Vec<String>,
}

impl Operations {
    /// Adds the operations of another document.
    pub(super) fn join(&mut self, other: Operations) {
        self.rest.extend(other.rest);
        self.rpc.extend(other.rpc);
        self.left_out.extend(other.left_out);
        self.rpc_left_out.extend(other.rpc_left_out);
        self.notes.extend(other.notes);
    }

    /// Returns the number of REST operations that were read, including those left out.
    pub(super) fn rest_count(&self) -> usize {
        self.rest.len() + self.left_out.len()
    }

    /// Returns the number of RPC operations that were read, including those left out.
    pub(super) fn rpc_count(&self) -> usize {
        self.rpc.len() + self.rpc_left_out.len()
    }

    /// Records a REST operation that is left out.
    ///
    /// # Errors
    /// Returns a fault of the whole document.
    pub(super) fn leave_out(&mut self, what: &str, stop: Unsupported) -> Result<(), DocumentFault> {
        self.left_out.push(stop.left_out_as(what)?);
        Ok(())
    }

    /// Records an RPC operation that is left out.
    ///
    /// # Errors
    /// Returns a fault of the whole document.
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
    /// The path with the prefix of the server, as the document spells it: `/v1/pets/{petId}`.
    pub(super) path: String,
    pub(super) segments: Vec<Segment>,
    pub(super) id: Option<String>,
    pub(super) parameters: Vec<Parameter>,
    /// Query names for which the route has no parameter.
    pub(super) unread: Vec<String>,
    pub(super) body: BodyModel,
    /// The form that the body is, if it is not JSON.
    pub(super) form: Option<FormModel>,
    pub(super) reply: ReplyModel,
    /// The format of a success that streams.
    pub(super) stream: Option<StreamFormat>,
    /// Notes for the reader of the route.
    pub(super) notes: Vec<String>,
    /// The index of its document among the documents of the import.
    pub(super) document: usize,
    /// The path item of the operation, as the document names it.
    pub(super) origin: String,
}

impl RestOperation {
    /// Returns the title: `GET /v1/pets/{petId}`.
    pub(super) fn title(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// Returns the last segment that is not empty: a path may end in a slash.
    pub(super) fn last_segment(&self) -> Option<&Segment> {
        let is_empty =
            |segment: &Segment| matches!(segment, Segment::Literal(text) if text.is_empty());
        self.segments.iter().rfind(|segment| !is_empty(segment))
    }

    /// Returns true when its body has named members.
    pub(super) fn names_members(&self) -> bool {
        matches!(&self.body, BodyModel::Members { members, .. } if !members.is_empty())
    }

    /// Returns the kind of a field of its form, if it is not a plain text.
    pub(super) fn field(&self, name: &str) -> Option<&FieldKind> {
        self.form.as_ref()?.fields.get(name)
    }

    /// Returns the place of a field of its form in an object, if it is a member of one.
    pub(super) fn inside(&self, field: &str) -> Option<&Inside> {
        self.form.as_ref()?.inside.get(field)
    }

    /// Returns true when members can be added to its body.
    pub(super) fn has_members(&self) -> bool {
        matches!(self.body, BodyModel::Members { .. })
    }

    /// Returns true when the short form of its route has a body (RFC 9110 §9.3).
    pub(super) fn short_form_carries(&self) -> bool {
        matches!(self.method.as_str(), "POST" | "PUT" | "PATCH")
    }
}

/// A segment of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Segment {
    Literal(String),
    /// A parameter of the path, with the verb after it.
    Hole {
        name: String,
        verb: Option<String>,
    },
    /// Texts and parameters: `{base}...{head}`.
    Mixed(Vec<SegmentPart>),
}

/// A part of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SegmentPart {
    Text(String),
    Hole(String),
}

impl Segment {
    /// Returns true if a parameter is in the segment.
    pub(super) fn has_hole(&self) -> bool {
        match self {
            Segment::Literal(_) => false,
            Segment::Hole { .. } | Segment::Mixed(_) => true,
        }
    }

    /// Renders the segment by the functions for its texts and its parameters; `None` if one parameter has no spelling.
    pub(super) fn render(
        &self,
        text: impl Fn(&str) -> String,
        hole: impl Fn(&str) -> Option<String>,
    ) -> Option<String> {
        match self {
            Segment::Literal(own) => Some(text(own)),
            Segment::Hole { name, verb } => {
                let hole = hole(name)?;
                let verb = verb.as_ref();
                let verb = verb.map(|verb| format!(":{}", text(verb)));
                Some(hole + &verb.unwrap_or_default())
            }
            Segment::Mixed(parts) => {
                let parts = parts.iter().map(|part| match part {
                    SegmentPart::Text(own) => Some(text(own)),
                    SegmentPart::Hole(name) => hole(name),
                });
                parts.collect()
            }
        }
    }

    /// Returns the names of the parameters.
    pub(super) fn holes(&self) -> Vec<&str> {
        match self {
            Segment::Literal(_) => Vec::new(),
            Segment::Hole { name, .. } => vec![name],
            Segment::Mixed(parts) => {
                let holes = parts.iter().filter_map(|part| match part {
                    SegmentPart::Hole(name) => Some(name.as_str()),
                    SegmentPart::Text(_) => None,
                });
                holes.collect()
            }
        }
    }
}

/// A parameter of a path, a query or a header.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Parameter {
    pub(super) location: ParameterLocation,
    pub(super) named: NamedValue,
    pub(super) list: Option<List>,
    /// The object of which the parameter is a member.
    pub(super) inside: Option<Inside>,
}

/// A member of an object that a query spells member by member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Inside {
    pub(super) object: String,
    pub(super) member: String,
}

impl Inside {
    /// Returns true when a param of this name is its object.
    pub(super) fn is_named(&self, param: &str) -> bool {
        name_words::same_name(&self.object, param)
    }
}

/// The location of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParameterLocation {
    Path,
    Query,
    Header,
}

/// The spelling of a list in a URL.
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

/// The body of a request.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum BodyModel {
    None,
    /// An object with named members.
    Members {
        members: Vec<NamedValue>,
        /// True if it may have further members.
        has_others: bool,
    },
    /// A single value.
    Whole {
        kind: Type,
        is_required: bool,
    },
}

/// The reply to a successful call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReplyModel {
    /// 200 with JSON, or 204, as in the built-in table.
    Usual,
    /// Another status, with JSON.
    Json(u16),
    /// Another status with JSON, or 204.
    JsonOrNothing(u16),
    /// A status other than 204, without a body.
    Empty(u16),
    /// A body of text.
    Text(u16),
}

/// A method or a tool.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RpcOperation {
    pub(super) name: String,
    pub(super) call: CallModel,
    /// True if it accepts params both as an array and as an object.
    pub(super) accepts_both_forms: bool,
    pub(super) params: Vec<NamedValue>,
    /// True if the params may have further members.
    pub(super) has_others: bool,
    /// The index of its document among the documents of the import.
    pub(super) document: usize,
    /// Its index in the list of its document.
    pub(super) index: usize,
    /// The value of a tool, if its document describes it.
    pub(super) result: Option<Shape>,
    /// The promised effect of a second call.
    pub(super) effect: Option<&'static str>,
    /// Notes for the reader of the route.
    pub(super) notes: Vec<String>,
}

impl RpcOperation {
    /// Creates the counterpart of a REST operation that has none. No document describes it.
    pub(super) fn invented(name: String, call: CallModel) -> RpcOperation {
        RpcOperation {
            name,
            call,
            accepts_both_forms: false,
            params: Vec::new(),
            has_others: false,
            result: None,
            document: 0,
            index: 0,
            effect: None,
            notes: Vec::new(),
        }
    }

    /// Returns the title used in comments.
    pub(super) fn title(&self) -> String {
        match self.call {
            CallModel::ByName | CallModel::ByPosition => self.name.clone(),
            CallModel::Tool => format!("tools/call {}", self.name),
        }
    }

    /// Returns the same operation with params by name, if it accepts both forms.
    pub(super) fn by_name(&self) -> Option<RpcOperation> {
        if !self.accepts_both_forms {
            return None;
        }
        let mut names = BTreeSet::new();
        let params = self.params.iter();
        let params = params.filter(|param| names.insert(param.name.as_str()));
        let params = params.cloned().collect();
        Some(RpcOperation {
            call: CallModel::ByName,
            accepts_both_forms: false,
            params,
            ..self.clone()
        })
    }
}

/// A form as the body of an operation.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FormModel {
    pub(super) format: BodyFormat,
    /// The kinds of the fields that are not plain texts.
    pub(super) fields: BTreeMap<String, FieldKind>,
    /// The fields that are members of an object: `filter[eq]`.
    pub(super) inside: BTreeMap<String, Inside>,
}

/// The kind of a field.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum FieldKind {
    /// A list of texts of a type.
    List(List, Type),
    /// JSON in a text.
    Json,
    /// A file.
    File,
    /// A repeated file.
    Files,
}

/// The form in which an RPC operation is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallModel {
    /// A method whose params are an object.
    ByName,
    /// A method whose params are an array.
    ByPosition,
    /// `tools/call` with the name of the tool, and an object of arguments.
    Tool,
}
