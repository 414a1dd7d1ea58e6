//! All outcomes of a route: which row an answer fits, on each side.

use std::cmp::Reverse;

use super::builtin::{self, EMPTY_TOOL_RESULT, EmptySuccess, ReplyLimits};
use super::draft::RowSource;
use super::problem::write_problem;
use super::row::{
    OutcomeRow, Rendered, ReplyContent, ReplyReader, ToolResult, pieces_say_failure, says_failure,
};
use super::status::forwarded;
use super::{RestAnswer, RestReply, RpcAnswer, compare, is_json};
use crate::domain::failure::Failure;
use crate::domain::json::Json;
use crate::domain::jsonrpc::{ErrorObject, ResponseReply};
use crate::domain::pattern::{Bindings, HoleFacts, PatternError};
use crate::domain::rope::Rope;
use crate::domain::side::Side;
use crate::domain::translate::TranslateContext;

/// The rows of a route. What fits none of them is for the built-in table.
#[derive(Debug, Clone)]
pub struct Outcomes {
    rows: Vec<OutcomeRow>,
    /// The order in which rows are tried on an answer of a side's server: the most specific first.
    orders: [Vec<usize>; 2],
    tool: ToolResult,
    /// The status of a tool's result that says that it failed and fits no row, for a REST client.
    tool_error_status: u16,
    empty: EmptySuccess,
}

impl Default for Outcomes {
    fn default() -> Outcomes {
        Outcomes::new(Vec::new())
    }
}

/// The status of a tool error for a REST client, unless the configuration names another one.
pub const TOOL_ERROR_STATUS: u16 = 422;

const fn index(side: Side) -> usize {
    match side {
        Side::Rest => 0,
        Side::Rpc => 1,
    }
}

/// An answer for the other side.
#[derive(Debug)]
pub struct TranslatedReply<A> {
    /// The answer.
    pub answer: A,
    /// Members that no pattern named.
    pub dropped: usize,
    /// The row that it fitted, by its place; none for the built-in table.
    pub row: Option<usize>,
    /// Whether it is a tool error: the result of a tool that says `isError: true`. For a REST client only one that
    /// fits no row is.
    pub tool_error: bool,
}

impl Outcomes {
    /// Compiles the rows of a route.
    ///
    /// # Errors
    /// Every row that is wrong, by its key.
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
        let orders = Side::ALL.map(|side| order(&rows, side, &mut errors));
        let outcomes = Outcomes {
            empty: EmptySuccess::new(&rows),
            rows,
            orders,
            tool,
            tool_error_status: TOOL_ERROR_STATUS,
        };
        for (place, row) in outcomes.rows.iter().enumerate() {
            let never = Side::ALL.map(|side| outcomes.hides(place, side));
            // That a route has its own row in place of one of a set is what the order is for.
            let replaced = |other: usize| row.origin != outcomes.rows[other].origin;
            if let [Some(one), Some(other)] = never
                && !replaced(one)
                && !replaced(other)
            {
                let what = format!(
                    "the row can never be used: {} fits whatever it fits, on both sides",
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

    /// Returns whether both tables give the same answers. The places of their rows in the file may differ.
    #[must_use]
    pub fn answers_like(&self, other: &Outcomes) -> bool {
        let Outcomes {
            rows,
            orders,
            tool,
            tool_error_status,
            empty,
        } = self;
        orders == &other.orders
            && (tool, tool_error_status) == (&other.tool, &other.tool_error_status)
            && empty == &other.empty
            && rows.len() == other.rows.len()
            && rows
                .iter()
                .zip(&other.rows)
                .all(|(one, other)| one.answers_like(other))
    }

    /// Rows that are known to be told apart.
    #[must_use]
    pub fn new(rows: Vec<OutcomeRow>) -> Outcomes {
        let orders = Side::ALL.map(|side| order(&rows, side, &mut Vec::new()));
        let tool = ToolResult::Any;
        Outcomes {
            empty: EmptySuccess::new(&rows),
            rows,
            orders,
            tool,
            tool_error_status: TOOL_ERROR_STATUS,
        }
    }

    /// Sets the status of a tool error for a REST client.
    pub fn set_tool_error_status(&mut self, status: u16) {
        self.tool_error_status = forwarded(status);
    }

    /// From now on a success without content is `null`, whatever the rows say.
    pub(in crate::domain) fn take_empty_success(&mut self) {
        self.empty = EmptySuccess::Null;
    }

    /// The rows: those of the route, then those of the sets.
    #[must_use]
    pub fn rows(&self) -> &[OutcomeRow] {
        &self.rows
    }

    /// Whether the results of the route say themselves that they are failures.
    #[must_use]
    pub const fn tool(&self) -> ToolResult {
        self.tool
    }

    /// The order in which rows are tried on an answer of a side's server.
    #[must_use]
    pub fn order(&self, side: Side) -> &[usize] {
        &self.orders[index(side)]
    }

    /// The row that takes all answers of a side's server that this one fits.
    #[must_use]
    pub fn hides(&self, row: usize, side: Side) -> Option<usize> {
        let earlier = self.order(side).iter().take_while(|place| **place != row);
        let hides = |place: &&usize| compare::within(&self.rows[row], &self.rows[**place], side);
        earlier.copied().find(|place| hides(&place))
    }

    /// A REST answer for an RPC client.
    ///
    /// # Errors
    /// A [`Failure`] where the answer is none.
    pub fn rest_to_rpc(
        &self,
        reply: &RestReply,
        call: &Bindings,
        (limits, terms): (ReplyLimits, TranslateContext),
    ) -> Result<TranslatedReply<RpcAnswer>, Failure> {
        if !self.rows.is_empty() {
            let seen = ReplyReader::new(reply, terms.depth);
            for place in self.order(Side::Rest) {
                let row = &self.rows[*place];
                let read = row.read_rest(&seen, terms.depth);
                if let Ok(written) = read.and_then(|reading| row.write_rpc(&reading, call, terms)) {
                    return Ok(self.answered_rpc(written, *place));
                }
            }
        }
        let failed = match self.tool {
            ToolResult::Succeeded => builtin::tool_result(reply, limits),
            ToolResult::Any => None,
        };
        let answer = match failed {
            Some(result) => RpcAnswer::Result(result),
            None => self.tool_result(builtin::rest_to_rpc(reply, (limits, self.empty))?),
        };
        Ok(TranslatedReply {
            tool_error: self.is_tool_error(&answer),
            answer,
            dropped: 0,
            row: None,
        })
    }

    /// The answer that a row has written for an RPC client.
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
        }
    }

    /// Returns the result of a tool where the built-in table made an error of it for a REST client.
    fn tool_result(&self, answer: RpcAnswer) -> RpcAnswer {
        match answer {
            RpcAnswer::Error(ErrorObject {
                data: Some(result), ..
            }) if self.tool == ToolResult::Succeeded && says_failure(&result) => {
                RpcAnswer::Result(result.into_bytes().into())
            }
            answer @ (RpcAnswer::Result(_) | RpcAnswer::Error(_)) => answer,
        }
    }

    /// Returns the answer as an RPC client gets it: a tool's `null`, which is no result of a tool, is a result without
    /// content. Read back, both are the same to a row that forgets the result.
    #[must_use]
    pub fn sent(&self, answer: RpcAnswer) -> RpcAnswer {
        match answer {
            RpcAnswer::Result(result) if self.tool == ToolResult::Succeeded && is_null(&result) => {
                let empty = Json::literal(EMPTY_TOOL_RESULT);
                RpcAnswer::Result(empty.into_bytes().into())
            }
            answer @ (RpcAnswer::Result(_) | RpcAnswer::Error(_)) => answer,
        }
    }

    /// The REST answer of a tool's failure, and whether it is a tool error. One that was made from a REST answer whose body
    /// was cut keeps that answer's status and headers.
    fn tool_failure(&self, result: Json) -> (RestAnswer, bool) {
        let kept = builtin::with_envelope_head(&result);
        let error = builtin::tool_failure(result);
        match kept {
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
                pieces_say_failure(result)
            }
            RpcAnswer::Result(_) | RpcAnswer::Error(_) => false,
        }
    }

    /// An RPC answer for a REST client.
    #[must_use]
    pub fn rpc_to_rest(
        &self,
        reply: ResponseReply,
        call: &Bindings,
        terms: TranslateContext,
    ) -> TranslatedReply<RestAnswer> {
        for place in self.order(Side::Rpc) {
            let row = &self.rows[*place];
            let read = row.read_rpc(&reply, terms.depth);
            if let Ok(written) = read.and_then(|reading| row.write_rest(&reading, call, terms)) {
                return answered(written, *place);
            }
        }
        // A tool's failure that the built-in table has written is what it was.
        if let (ToolResult::Succeeded, ResponseReply::Result(result)) = (self.tool, &reply)
            && let Some(answer) = builtin::restored_tool(result)
        {
            return TranslatedReply {
                answer,
                dropped: 0,
                row: None,
                tool_error: false,
            };
        }
        // The built-in row of success says nothing of a tool's failure, so it does not take one.
        let (answer, tool_error) = match reply {
            ResponseReply::Result(result)
                if self.tool == ToolResult::Succeeded && says_failure(&result) =>
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
        }
    }
}

/// Whether a result is `null`; one that came as content may have white space around it.
fn is_null(result: &Rope) -> bool {
    matches!(result.chunks(), [chunk] if chunk.trim_ascii() == b"null")
}

fn answered<A>(written: Rendered<A>, row: usize) -> TranslatedReply<A> {
    TranslatedReply {
        answer: written.answer,
        dropped: written.dropped,
        row: Some(row),
        tool_error: false,
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

/// The most specific first; between equals the order of their origins, then that of the table.
fn order(rows: &[OutcomeRow], side: Side, errors: &mut Vec<PatternError>) -> Vec<usize> {
    let mut refined = vec![0_usize; rows.len()];
    for (place, one) in rows.iter().enumerate() {
        for (other_place, other) in rows.iter().enumerate().skip(place + 1) {
            let down = compare::within(one, other, side);
            let up = compare::within(other, one, side);
            match (down, up) {
                (true, false) => refined[place] += 1,
                (false, true) => refined[other_place] += 1,
                (true, true) => {}
                (false, false) if one.origin == other.origin => {
                    if compare::meets(one, other, side) {
                        let what = format!(
                            "it fits answers of {} servers that {} fits as well, and neither is more specific; name a member or a text that tells them apart",
                            side, one.key
                        );
                        errors.push(PatternError::new(what).under(&other.key));
                    }
                }
                (false, false) => {}
            }
        }
    }
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by_key(|place| {
        let row = &rows[*place];
        // Of two that fit the same answers, the one that names more of them loses less.
        (
            Reverse(refined[*place]),
            Reverse(row.binds(side)),
            row.origin,
            *place,
        )
    });
    order
}
