//! Results of tools that the proxy makes from its own failures.
//!
//! Used by `gateway`.

use http::HeaderMap;

use super::era::CallEra;
use crate::failure::{Failure, Reason};
use crate::jsonrpc::Call;
use crate::local_reply::LocalReplies;
use crate::route::TOOL_CALL;
use dualgauge_patterns::json::{Json, encode};

/// The first revision in which invalid arguments are an error of the tool, which a model can read and correct (MCP
/// 2025-11-25, "Tools", "Error Handling"). In older ones they are a protocol error.
const FIRST_REVISION: &str = "2025-11-25";

/// Returns the result for a call of a published tool with invalid arguments; `None` where the failure is a JSON-RPC
/// error. The call has a route. `headers` are those of its request; a message on a WebSocket has none.
#[must_use]
pub fn invalid_arguments(
    locals: &LocalReplies,
    headers: Option<&HeaderMap>,
    call: &Call,
    failure: &Failure,
) -> Option<Json> {
    let is_tool = *call.method == *TOOL_CALL && locals.publishes_tools();
    if !is_tool || failure.reason != Reason::InvalidParams {
        return None;
    }
    let era = CallEra::of_call(headers, call)?;
    if !era.is_from(FIRST_REVISION) {
        return None;
    }
    let mut result = br#"{"content":[{"type":"text","text":"#.to_vec();
    encode(&failure.message, &mut result);
    result.extend_from_slice(br#"}],"isError":true}"#);
    Some(Json::written(result))
}
