//! The outcomes of a route: the row that a response matches, on each side. Used by `check`, `outcome` and `route`.

use super::builtin::{self, EMPTY_TOOL_RESULT, EmptySuccess, ReplyLimits};
use super::compare;
use super::draft::RowSource;
use super::problem::write_problem;
use super::response::{RestAnswer, RestReply, RpcAnswer, TranslatedReply, is_json};
use super::row::{
    OutcomeRow, Rendered, ReplyContent, ReplyReader, RpcReplyPattern, ToolResult, reports_failure,
    rope_reports_failure,
};
use super::row_order::{DeclaredRows, order};
use super::status::{ErrorStatus, asks_for_credentials, forwarded};
use super::tool_value::{self, ToolValue};
use crate::failure::{Failure, Reason};
use crate::jsonrpc::{ErrorObject, ResponseReply};
use crate::mcp::ResultType;
use crate::translate::TranslateContext;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::{Bindings, HoleFacts, PatternError};
use dualgauge_patterns::rope::Rope;
use dualgauge_patterns::side::Side;

/// The rows of a route. The built-in table translates a response that matches none.
#[derive(Debug, Clone)]
pub struct Outcomes {
    rows: Vec<OutcomeRow>,
    /// The order in which rows are tried on responses of each side's upstream: the most specific first.
    orders: [Vec<usize>; 2],
    tool: ToolResult,
    tool_value: ToolValue,
    /// The REST status of a tool error that matches no row.
    tool_error_status: u16,
    empty: EmptySuccess,
    /// True in an old dialect, whose successes the built-in table does not know.
    is_old: bool,
}

impl Default for Outcomes {
    fn default() -> Outcomes {
        Outcomes::new(Vec::new())
    }
}

/// The default REST status of a tool error.
pub const TOOL_ERROR_STATUS: u16 = 422;

const fn index(side: Side) -> usize {
    match side {
        Side::Rest => 0,
        Side::Rpc => 1,
    }
}

impl Outcomes {
    /// Compiles the rows of a route.
    ///
    /// # Errors
    /// Every invalid row, by its key.
    pub fn build(
        sources: Vec<RowSource>,
        call: &HoleFacts,
        tool: ToolResult,
    ) -> Result<Outcomes, Vec<PatternError>> {
        let mut errors = Vec::new();
        let mut rows = Vec::with_capacity(sources.len());
        for source in sources {
            match OutcomeRow::build(source, call, tool) {
                Ok(row) => rows.push(row),
                Err(error) => errors.push(error),
            }
        }
        let declared = DeclaredRows::new(&rows, &mut errors);
        let orders = Side::ALL.map(|side| order(&rows, side, &declared, &mut errors));
        let outcomes = Outcomes {
            empty: EmptySuccess::new(&rows),
            rows,
            orders,
            tool,
            tool_value: ToolValue::Whole,
            tool_error_status: TOOL_ERROR_STATUS,
            is_old: false,
        };
        for (index, row) in outcomes.rows.iter().enumerate() {
            let never = Side::ALL.map(|side| outcomes.hides(index, side));
            // A row of the route may override one of a set; the order takes care of that.
            let replaced = |other: usize| row.origin != outcomes.rows[other].origin;
            if let [Some(one), Some(other)] = never
                && !replaced(one)
                && !replaced(other)
            {
                let what = format!(
                    "the row is never used: {} matches everything that it matches, on both sides",
                    outcomes.rows[one].key
                );
                errors.push(PatternError::new(what).under(&row.key));
            }
        }
        if errors.is_empty() {
            Ok(outcomes)
        } else {
            Err(errors)
        }
    }

    /// Returns whether both tables give the same responses. The order of their rows in the file may differ.
    #[must_use]
    pub fn answers_like(&self, other: &Outcomes) -> bool {
        let Outcomes {
            rows,
            orders,
            tool,
            tool_value,
            tool_error_status,
            empty,
            is_old,
        } = self;
        orders == &other.orders
            && (tool, tool_error_status) == (&other.tool, &other.tool_error_status)
            && (tool_value, empty) == (&other.tool_value, &other.empty)
            && *is_old == other.is_old
            && rows.len() == other.rows.len()
            && rows
                .iter()
                .zip(&other.rows)
                .all(|(one, other)| one.answers_like(other))
    }

    /// Returns a table of rows that are known to be distinguishable.
    #[must_use]
    pub fn new(rows: Vec<OutcomeRow>) -> Outcomes {
        let declared = DeclaredRows::default();
        let orders = Side::ALL.map(|side| order(&rows, side, &declared, &mut Vec::new()));
        let tool = ToolResult::Any;
        Outcomes {
            empty: EmptySuccess::new(&rows),
            rows,
            orders,
            tool,
            tool_value: ToolValue::Whole,
            tool_error_status: TOOL_ERROR_STATUS,
            is_old: false,
        }
    }

    /// Refuses successes that no row describes: the built-in table knows no old dialect.
    pub(crate) fn refuse_unmapped_successes(&mut self) {
        self.is_old = true;
    }

    /// Sets the REST status of a tool error.
    pub fn set_tool_error_status(&mut self, status: u16) {
        self.tool_error_status = forwarded(status);
    }

    /// Returns the REST status of a tool error.
    #[must_use]
    pub const fn tool_error_status(&self) -> u16 {
        self.tool_error_status
    }

    /// Sets the part of a tool's result that is the REST body.
    pub(crate) fn set_tool_value(&mut self, value: ToolValue) {
        self.tool_value = value;
    }

    /// Returns the part of a tool's result that is the REST body.
    #[must_use]
    pub const fn tool_value(&self) -> ToolValue {
        self.tool_value
    }

    /// Makes `null` the result of every success without content, regardless of the rows.
    pub(crate) fn take_empty_success(&mut self) {
        self.empty = EmptySuccess::Null;
    }

    /// Returns the rows: those of the route, then those of the sets.
    #[must_use]
    pub fn rows(&self) -> &[OutcomeRow] {
        &self.rows
    }

    /// Returns true if a row reads a response without a result: its pattern may be absent, and reads `null`.
    #[must_use]
    pub fn reads_no_result(&self, depth: u16) -> bool {
        let null = ResponseReply::Result(Json::literal("null"));
        self.rows.iter().any(|row| match &row.rpc {
            RpcReplyPattern::Result(pattern) => {
                pattern.may_be_absent() && row.read_rpc(&null, depth).is_ok()
            }
            RpcReplyPattern::Error { .. } => false,
        })
    }

    /// Returns whether the results of the route can report failure (MCP tools).
    #[must_use]
    pub const fn tool(&self) -> ToolResult {
        self.tool
    }

    /// Returns the order in which rows are tried on responses of a side's upstream.
    #[must_use]
    pub fn order(&self, side: Side) -> &[usize] {
        &self.orders[index(side)]
    }

    /// Returns a row that matches every response of a side's upstream that this one matches.
    #[must_use]
    pub fn hides(&self, row: usize, side: Side) -> Option<usize> {
        let earlier = self.order(side).iter().take_while(|index| **index != row);
        let hides = |index: &&usize| compare::within(&self.rows[row], &self.rows[**index], side);
        earlier.copied().find(|index| hides(&index))
    }

    /// Translates a REST response for an RPC client.
    ///
    /// # Errors
    /// A [`Failure`] if the response cannot be translated.
    pub fn rest_to_rpc(
        &self,
        reply: &RestReply,
        call: &Bindings,
        limits: ReplyLimits,
        context: TranslateContext,
    ) -> Result<TranslatedReply<RpcAnswer>, Failure> {
        if !self.rows.is_empty() {
            let seen = ReplyReader::new(reply, context.depth);
            for index in self.order(Side::Rest) {
                let row = &self.rows[*index];
                if self.is_old && !row.repeats_call(&seen, call) {
                    continue;
                }
                let read = row.read_rest(&seen, context.depth);
                if let Ok(written) = read.and_then(|reading| row.write_rpc(&reading, call, context))
                {
                    return Ok(self.answered_rpc(written, *index));
                }
            }
        }
        let failed = match self.tool {
            ToolResult::Succeeded => builtin::tool_result(reply, limits),
            ToolResult::Any => None,
        };
        let value = tool_value::to_result(self.tool_value, reply, limits);
        let (answer, result_type) = match (failed, value) {
            (Some(result), _) => (RpcAnswer::Result(result), ResultType::Possible),
            // The proxy wrote the members of this result.
            (None, Some(answer)) => (answer, ResultType::Absent),
            (None, None) => {
                if self.is_old && (200..=299).contains(&reply.status) {
                    return Err(unmapped());
                }
                let (answer, result_type) = builtin::rest_to_rpc(reply, limits, self.empty)?;
                (self.tool_result(answer), result_type)
            }
        };
        Ok(TranslatedReply {
            tool_error: self.is_tool_error(&answer),
            result_type,
            answer,
            dropped: 0,
            row: None,
        })
    }

    /// Returns the response that a row wrote for an RPC client.
    pub(super) fn answered_rpc(
        &self,
        written: Rendered<RpcAnswer>,
        row: usize,
    ) -> TranslatedReply<RpcAnswer> {
        TranslatedReply {
            tool_error: self.is_tool_error(&written.answer),
            answer: written.answer,
            dropped: written.dropped,
            row: Some(row),
            result_type: ResultType::Possible,
        }
    }

    /// Returns the result of a tool that the built-in table turned into an error for a REST client.
    fn tool_result(&self, answer: RpcAnswer) -> RpcAnswer {
        match answer {
            RpcAnswer::Error(ErrorObject {
                data: Some(result), ..
            }) if self.tool == ToolResult::Succeeded && reports_failure(&result) => {
                RpcAnswer::Result(result.into_bytes().into())
            }
            answer @ (RpcAnswer::Result(_) | RpcAnswer::Error(_)) => answer,
        }
    }

    /// Returns the response in the form that an RPC client gets. A tool must not return `null`, so it becomes a result
    /// without content; read back, both are equal for a row that ignores the result. A value without `content` gets its
    /// text.
    #[must_use]
    pub fn completed(&self, answer: RpcAnswer) -> RpcAnswer {
        match answer {
            RpcAnswer::Result(result) if self.tool == ToolResult::Succeeded && is_null(&result) => {
                let empty = Json::literal(EMPTY_TOOL_RESULT);
                RpcAnswer::Result(empty.into_bytes().into())
            }
            RpcAnswer::Result(result) => {
                RpcAnswer::Result(tool_value::with_content(self.tool_value, result))
            }
            answer @ RpcAnswer::Error(_) => answer,
        }
    }

    /// Returns the REST response of a tool's failure, and whether it is a tool error. One made from a REST response
    /// with a truncated body keeps that response's status and headers.
    fn tool_failure(&self, result: Json) -> (RestAnswer, bool) {
        let stored = builtin::stored_head(&result);
        let error = builtin::tool_failure(result);
        match stored {
            Some((status, headers)) => {
                let answer = RestAnswer {
                    headers,
                    ..write_problem(status, "", &error)
                };
                (answer, false)
            }
            None => (write_problem(self.tool_error_status, "", &error), true),
        }
    }

    pub(super) fn is_tool_error(&self, answer: &RpcAnswer) -> bool {
        match answer {
            RpcAnswer::Result(result) if self.tool == ToolResult::Succeeded => {
                rope_reports_failure(result)
            }
            RpcAnswer::Result(_) | RpcAnswer::Error(_) => false,
        }
    }

    /// Translates an RPC response for a REST client.
    #[must_use]
    pub fn rpc_to_rest(
        &self,
        reply: ResponseReply,
        call: &Bindings,
        context: TranslateContext,
    ) -> TranslatedReply<RestAnswer> {
        let valued = match &reply {
            ResponseReply::Result(result) if !self.rows.is_empty() => {
                tool_value::with_value(self.tool_value, result).map(ResponseReply::Result)
            }
            ResponseReply::Result(_) | ResponseReply::Error(_) => None,
        };
        for index in self.order(Side::Rpc) {
            let row = &self.rows[*index];
            let read = row.read_rpc(valued.as_ref().unwrap_or(&reply), context.depth);
            if let Ok(written) = read.and_then(|reading| row.write_rest(&reading, call, context)) {
                return answered(written, *index);
            }
        }
        // A tool failure written by the built-in table is restored.
        if let (ToolResult::Succeeded, ResponseReply::Result(result)) = (self.tool, &reply)
            && let Some(answer) = builtin::restore_tool(result)
        {
            return TranslatedReply {
                answer,
                dropped: 0,
                row: None,
                tool_error: false,
                result_type: ResultType::Possible,
            };
        }
        if let ResponseReply::Result(result) = &reply
            && let Some(answer) = tool_value::to_rest(self.tool_value, result)
        {
            return TranslatedReply {
                answer,
                dropped: 0,
                row: None,
                tool_error: false,
                result_type: ResultType::Possible,
            };
        }
        // The built-in success row does not apply to a tool's failure.
        let (answer, tool_error) = match reply {
            ResponseReply::Result(result)
                if self.tool == ToolResult::Succeeded && reports_failure(&result) =>
            {
                self.tool_failure(result)
            }
            reply @ (ResponseReply::Result(_) | ResponseReply::Error(_)) => {
                (builtin::rpc_to_rest(reply), false)
            }
        };
        TranslatedReply {
            answer,
            dropped: 0,
            row: None,
            tool_error,
            result_type: ResultType::Possible,
        }
    }

    /// Translates an RPC response for a REST client, or for a client of an old dialect.
    ///
    /// # Errors
    /// A [`Failure`] of the upstream if no row describes a result in an old dialect.
    pub fn answer_rest(
        &self,
        reply: ResponseReply,
        call: &Bindings,
        context: TranslateContext,
    ) -> Result<TranslatedReply<RestAnswer>, Failure> {
        let is_result = matches!(reply, ResponseReply::Result(_));
        let translated = self.rpc_to_rest(reply, call, context);
        match self.is_old && is_result && translated.row.is_none() {
            true => Err(unmapped()),
            false => Ok(translated),
        }
    }

    /// Returns the HTTP status of a response to a single call (not in a batch).
    #[must_use]
    pub fn rpc_status(&self, reply: &RestReply, answer: &RpcAnswer, errors: ErrorStatus) -> u16 {
        let keeps = match (answer, errors) {
            (RpcAnswer::Result(_), _) | (_, ErrorStatus::Always200) => false,
            (RpcAnswer::Error(_), ErrorStatus::OfServer) => match self.tool() {
                ToolResult::Succeeded => asks_for_credentials(reply),
                ToolResult::Any => matches!(reply.status, 401 | 403 | 429 | 503),
            },
        };
        if keeps { reply.status } else { 200 }
    }
}

/// Returns the failure for a response that no row of an old dialect describes.
fn unmapped() -> Failure {
    let message = "no outcome of the route maps the server's answer to the other dialect";
    Failure::new(Reason::UpstreamNotProtocol, message)
}

/// Returns whether a result is `null`; one made from content may have white space around it.
fn is_null(result: &Rope) -> bool {
    matches!(result.chunks(), [chunk] if chunk.trim_ascii() == b"null")
}

fn answered<A>(written: Rendered<A>, row: usize) -> TranslatedReply<A> {
    TranslatedReply {
        answer: written.answer,
        dropped: written.dropped,
        row: Some(row),
        tool_error: false,
        result_type: ResultType::Possible,
    }
}

impl ReplyReader<'_> {
    pub(super) fn new(reply: &RestReply, depth: u16) -> ReplyReader<'_> {
        let body = &reply.body;
        let text = || match std::str::from_utf8(body) {
            Ok(text) => ReplyContent::Text(text.to_owned()),
            Err(_) => ReplyContent::Bytes,
        };
        let content_type = reply.content_type().unwrap_or_default();
        let says_text = content_type.starts_with("text/");
        let content = if body.iter().all(u8::is_ascii_whitespace) {
            ReplyContent::Nothing
        } else if says_text && !is_json(content_type) {
            text()
        } else {
            Json::read(body.clone(), depth).map_or_else(|_| text(), ReplyContent::Json)
        };
        ReplyReader { reply, content }
    }
}
