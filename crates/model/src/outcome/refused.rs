//! Rejections that an RPC server reports by HTTP status: 401, 403, 429 and 503.
//!
//! Authentication, rate limits and overload are often handled before the JSON-RPC handler, so the body need not be
//! JSON-RPC. A REST client gets the status for any body.
//!
//! Used by `upstream::mcp::session`.

use bytes::Bytes;
use http::HeaderValue;
use http::header::CONTENT_TYPE;

use super::builtin::{ReplyLimits, envelope_of, failure};
use super::problem::{PROBLEM, write_problem};
use super::response::{RestAnswer, RestReply, TranslatedReply};
use super::table::Outcomes;
use crate::failure::code_of_status;
use crate::jsonrpc::{self, ErrorObject, RequestId, ResponseReply, parse_response};
use crate::mcp::ResultType;
use crate::translate::TranslateContext;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::Bindings;

/// A rejection for a REST client.
#[derive(Debug)]
pub struct Refused {
    /// The response, with the status of the server's.
    pub answered: TranslatedReply<RestAnswer>,
    /// The code, if the body was a JSON-RPC error.
    pub code: Option<i64>,
}

impl Outcomes {
    /// Translates a response with a [rejection status](super::is_rejection_status).
    ///
    /// A JSON-RPC error is written by the matching row if that row has the same status, otherwise as a problem document
    /// with this status. Any other body stays unchanged.
    #[must_use]
    pub fn refused(
        &self,
        reply: &RestReply,
        call: &Bindings,
        context: TranslateContext,
    ) -> Refused {
        let response = parse_response(&reply.body, context.depth).ok();
        let Some(ResponseReply::Error(error)) = response.map(|response| response.reply) else {
            let content_type = reply.content_type().filter(|_| !reply.body.is_empty());
            let answer = RestAnswer {
                status: reply.status,
                content_type: content_type.map(str::to_owned),
                headers: Vec::new(),
                body: reply.body.clone().into(),
            };
            return Refused {
                answered: plain(answer),
                code: None,
            };
        };
        let answered = self.rpc_to_rest(ResponseReply::Error(error.clone()), call, context);
        let code = Some(error.code);
        if answered.answer.status == reply.status {
            return Refused { answered, code };
        }
        Refused {
            answered: plain(write_problem(reply.status, "", &error)),
            code,
        }
    }
}

/// Writes the rejection of a request on a link as a JSON-RPC error. [`Outcomes::rpc_to_rest`] turns it back into the
/// original response for a REST client, or into the problem document of the JSON-RPC error in it.
#[must_use]
pub fn refusal(id: u64, reply: &RestReply, limits: ReplyLimits) -> Bytes {
    let id = RequestId::from_number(id);
    let parsed = parse_response(&reply.body, limits.depth).ok();
    let error = match parsed.map(|parsed| parsed.reply) {
        Some(ResponseReply::Error(error)) => with_status(reply, error, limits),
        Some(ResponseReply::Result(_)) | None => failure(reply, limits),
    };
    jsonrpc::error(&id, &error).into_bytes()
}

/// Returns a JSON-RPC error with the code of the reply's status. Its data contains the reply, with the problem document
/// of the error as body.
fn with_status(reply: &RestReply, error: ErrorObject, limits: ReplyLimits) -> ErrorObject {
    let mut headers = reply.headers.clone();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM));
    let document = RestReply {
        status: reply.status,
        headers,
        body: write_problem(reply.status, "", &error).body.into_bytes(),
    };
    let json = Json::read(document.body.clone(), u16::MAX).ok();
    ErrorObject {
        code: code_of_status(reply.status),
        message: error.message,
        data: Some(envelope_of(&document, json.as_ref(), limits.error_text)),
    }
}

fn plain(answer: RestAnswer) -> TranslatedReply<RestAnswer> {
    TranslatedReply {
        answer,
        dropped: 0,
        row: None,
        tool_error: false,
        result_type: ResultType::Possible,
    }
}
