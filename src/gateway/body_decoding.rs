//! Content codings of request bodies, and the JSON in them.
//!
//! Used by `offloaded_parsing`, `request_body` and `rpc`.

use bytes::Bytes;
use http::HeaderMap;

use super::failures::memory_exhausted;
use dualgauge_model::failure::{Failure, Reason};
use dualgauge_model::form::FormType;
use dualgauge_model::plan::Limits;
use dualgauge_model::rejections;
use dualgauge_net::{BodyCopy, BudgetExhausted, ContentEncoding, DecodeError, MemoryBudget};
use dualgauge_patterns::json::Json;

/// The encoding of a request body: its content coding, and the format of the content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BodyEncoding {
    pub(super) coding: ContentEncoding,
    /// The type of a form; `None` for JSON.
    pub(super) form_type: Option<FormType>,
}

/// Decodes and parses a body; `None` for an empty one.
pub(super) fn decode_json(
    encoding: &BodyEncoding,
    body: Bytes,
    limits: &Limits,
    memory: &MemoryBudget,
    budget: Option<&BodyCopy>,
) -> Result<Option<Json>, Failure> {
    let decoded = encoding
        .coding
        .decode_within(body, limits.body, memory, budget);
    let body = decoded.map_err(|error| match (&error, budget) {
        (DecodeError::Malformed(_), _) => Failure::new(Reason::MalformedBody, error.to_string()),
        (DecodeError::TooLarge(_), _) => Failure::new(Reason::BodyTooLarge, error.to_string()),
        (DecodeError::NoRoom, None) => memory_exhausted(BudgetExhausted),
        // A second run has its own budget; exhausting that does not mean that the proxy is out of memory.
        (DecodeError::NoRoom, Some(_)) => rejections::large_body(limits.body),
    })?;
    let parsed = rejections::parse_body(body, encoding.form_type.as_ref(), limits.depth)?;
    match (parsed, &encoding.form_type) {
        // The object of a form is a copy, and may be larger than the form.
        (Some(parsed), Some(_)) => {
            let text = memory.account(parsed.into_bytes());
            text.map(|text| Some(Json::written(text)))
                .map_err(memory_exhausted)
        }
        (parsed, _) => Ok(parsed),
    }
}

/// Returns the decoded text of an RPC request body; `None` if it cannot be decoded.
pub(super) fn message_text(
    headers: &HeaderMap,
    body: &Bytes,
    limits: &Limits,
    memory: &MemoryBudget,
) -> Result<Option<Bytes>, Failure> {
    match coding(headers) {
        Ok(ContentEncoding::Identity) => Ok(Some(body.clone())),
        Ok(coding) => match coding.decode(body.clone(), limits.body, |_| true) {
            Ok(text) => memory.account(text).map(Some).map_err(memory_exhausted),
            Err(_) => Ok(None),
        },
        Err(_) => Ok(None),
    }
}

/// Returns the content coding of a request; fails if it is not supported.
pub(super) fn coding(headers: &HeaderMap) -> Result<ContentEncoding, Failure> {
    ContentEncoding::from_headers(headers).map_err(|name| {
        let message = format!(
            "the content coding `{}` is not supported; send gzip, br or an unencoded body",
            name.escape_default()
        );
        Failure::new(Reason::UnsupportedMediaType, message)
    })
}
