//! A call of a stateless revision, with the headers that repeat parts of its body, including those that its tool asks
//! for.
//!
//! The headers of tools are learnt from `tools/list`: from the lists that callers request, and from one that is
//! requested when a server rejects a call for its headers. Such a call was not executed, and is sent once more (MCP
//! 2026-07-28, "Client Behavior").
//!
//! Used by `mcp::session`.

use std::cell::RefCell;
use std::rc::Rc;

use bytes::Bytes;
use http::HeaderMap;

use super::post::PostClient;
use super::post_outcome::{OutboundPost, PostOutcome, PostResult};
use super::stateless::stateless_headers;
use dualgauge_model::jsonrpc::{ResponseReply, parse_response};
use dualgauge_model::mcp::{ParamHeaders, annotated, list_tools, next_page};
use dualgauge_patterns::json::Json;

/// The error code "Header mismatch" (MCP 2026-07-28).
const MISMATCH: i64 = -32020;
/// The maximum number of pages of a tool list that are requested.
const PAGES: usize = 16;

/// A call to send.
pub(super) struct McpCall {
    pub(super) id: u64,
    pub(super) method: String,
    pub(super) message: Bytes,
    pub(super) version: &'static str,
    pub(super) depth: u16,
}

impl McpCall {
    /// Sends the call and waits for its result. Dropping the future closes the connection.
    pub(super) async fn post(
        self,
        client: PostClient,
        param_headers: Rc<RefCell<ParamHeaders>>,
    ) -> PostResult {
        let first = self.outbound(&param_headers.borrow());
        let sent = first.headers.clone();
        let result = client.post(first).await;
        let answer = self.reply(&result.outcome);
        match (self.method.as_str(), answer) {
            ("tools/list", Some(ResponseReply::Result(result))) => {
                param_headers.borrow_mut().learn(&result)
            }
            ("tools/call", Some(ResponseReply::Error(error))) if error.code == MISMATCH => {
                self.fetch_tools(&client, &param_headers).await;
                let again = self.outbound(&param_headers.borrow());
                if again.headers != sent {
                    return client.post(again).await;
                }
            }
            _ => {}
        }
        result
    }

    fn outbound(&self, param_headers: &ParamHeaders) -> OutboundPost {
        let dressed = annotated(&self.message, &self.method, self.version, self.depth);
        let mut headers = stateless_headers(self.version, &self.method, dressed.name.as_deref());
        if self.method == "tools/call" {
            headers.extend(self.param_headers(param_headers));
        }
        OutboundPost {
            id: Some(self.id),
            body: dressed.body,
            headers,
        }
    }

    fn param_headers(&self, param_headers: &ParamHeaders) -> HeaderMap {
        let whole = Json::parse(self.message.clone(), self.depth).ok();
        let params = whole.and_then(|whole| whole.member("params"));
        params.map_or_else(HeaderMap::new, |params| param_headers.headers(&params))
    }

    fn reply(&self, outcome: &PostOutcome) -> Option<ResponseReply> {
        let PostOutcome::Answered(body) = outcome else {
            return None;
        };
        let answer = parse_response(body, self.depth).ok()?;
        Some(answer.reply)
    }

    /// Requests the list of tools, within the time limit of the call.
    async fn fetch_tools(&self, client: &PostClient, param_headers: &RefCell<ParamHeaders>) {
        let (id, method) = (0, "tools/list");
        let mut cursor = None;
        for _ in 0..PAGES {
            let asked = Bytes::from(list_tools(id, cursor.as_deref()));
            let post = OutboundPost {
                id: Some(id),
                body: annotated(&asked, method, self.version, self.depth).body,
                headers: stateless_headers(self.version, method, None),
            };
            let Some(ResponseReply::Result(result)) = self.reply(&client.post(post).await.outcome)
            else {
                return;
            };
            param_headers.borrow_mut().learn(&result);
            cursor = next_page(&result);
            if cursor.is_none() {
                return;
            }
        }
    }
}
