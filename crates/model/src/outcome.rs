//! Outcomes: the translation of responses to the other side.
//!
//! A row is a pair of reply patterns, used in both directions. Of the rows that match a response the most specific is
//! chosen: first the route's own, then those of its sets, then the built-in ones. Laws of the built-in rows: a result
//! keeps its bytes; an error of either side that goes to the other and back keeps its status, code, message and data;
//! so does a failure that the proxy itself wrote. Success has a normal form: 200, or 204 for `null`.

mod builtin;
mod compare;
mod draft;
mod frames;
mod number;
mod problem;
mod refused;
mod response;
mod row;
mod row_order;
mod status;
mod table;
mod tool_media;
mod tool_value;

pub use builtin::{
    EMPTY_TOOL_RESULT, ReplyLimits, blame_behind_tool, envelope_of, redirect, rejection_head,
    rpc_to_rest,
};
pub use draft::{RestReplySource, RowSource, RpcReplySource};
pub use frames::Correlation;
pub use number::{Choice, NumberPattern};
pub(crate) use problem::write_problem;
pub use problem::{error_object, problem};
pub use refused::{Refused, refusal};
pub use response::{RestAnswer, RestReply, RpcAnswer, TranslatedReply, is_json};
pub use row::{
    BodyPattern, OutcomeRow, RestReplyPattern, RowOrder, RpcReplyPattern, ToolResult,
    reports_failure,
};
pub use status::{ErrorStatus, is_rejection_status};
pub use table::{Outcomes, TOOL_ERROR_STATUS};
pub use tool_value::ToolValue;

#[cfg(test)]
mod tests;
