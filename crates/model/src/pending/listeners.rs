//! Emulation of `subscriptions/listen` (MCP 2026-07-28) before a server with sessions.
//!
//! The link acknowledges the subscription itself, subscribes to its resources at the server, and copies the server's
//! notifications to the client. The decisions are in [`super::listen_table`]. Laws: the server receives no message that
//! its revision does not have; a listener ends with its link.
//!
//! Used by `pending`.

use bytes::Bytes;
use serde_json::{Value, json};

use super::link_machine::LinkMachine;
use super::listen_table::{ListenEvent, ListenFilter};
use super::unattributed::UnattributedReply;
use super::{LinkOutput, MessageOrigin, Recipients, RequestError, Ticket};
use crate::jsonrpc::{self, ACKNOWLEDGED, RequestId, RequestTemplate};
use crate::mcp::{ServerEra, with_subscription};
use dualgauge_patterns::rope::Rope;

const UPDATED: &str = "notifications/resources/updated";

impl LinkMachine {
    /// Sets the era of the server, once the link is open. It decides whether subscriptions are emulated.
    pub fn set_era(&mut self, era: ServerEra) {
        self.emulates_listen = match era {
            // A link without a handshake speaks no known revision.
            ServerEra::Sessions => self.settings.initialize_params.is_some(),
            ServerEra::Stateless | ServerEra::Unknown => false,
        };
    }

    /// Begins an emulated subscription.
    pub(super) fn listen(&mut self, ticket: Ticket, call: &RequestTemplate, client: RequestId) {
        let params: Value = serde_json::from_slice(&call.with_id(0)).unwrap_or_default();
        let mut filter = ListenFilter::of_params(&params["params"]);
        filter.limit_to(&self.capabilities());
        let (honoured, first) = self.listeners.add(ticket, client.clone(), filter);
        for uri in first {
            self.own_request("resources/subscribe", &uri);
        }
        let params = json!({ "notifications": honoured.to_json() }).to_string();
        let acknowledgement =
            jsonrpc::notification(ACKNOWLEDGED, Rope::from(Bytes::from(params)), &[]);
        self.tell(ticket, &client, ACKNOWLEDGED, &acknowledgement.into_bytes());
    }

    /// Returns the capabilities in the server's response to `initialize`.
    fn capabilities(&self) -> Value {
        let greeted = self.greeted.as_ref();
        let greeted =
            greeted.and_then(|greeted| serde_json::from_slice::<Value>(&greeted.message).ok());
        greeted.map_or(Value::Null, |mut greeted| {
            greeted["result"]["capabilities"].take()
        })
    }

    /// Ends an emulated subscription. Returns false if `ticket` is none.
    pub(super) fn unlisten(&mut self, ticket: Ticket) -> bool {
        let Some(last) = self.listeners.remove(ticket) else {
            return false;
        };
        for uri in last {
            self.own_request("resources/unsubscribe", &uri);
        }
        true
    }

    /// Ends all emulated subscriptions normally.
    pub(super) fn end_listeners(&mut self) {
        for ticket in self.listeners.clear() {
            self.out.push_back(LinkOutput::Ended(ticket));
        }
    }

    /// Fails all emulated subscriptions, because they ended with the link.
    pub(super) fn cut_listeners(&mut self) {
        for ticket in self.listeners.clear() {
            self.fail(ticket, RequestError::Cut);
        }
    }

    /// Sends a request of the link itself about a resource. Its response is not used.
    fn own_request(&mut self, method: &str, uri: &str) {
        let id = self.next_id();
        let params = Rope::from(Bytes::from(json!({ "uri": uri }).to_string()));
        self.unattributed.add(id, UnattributedReply::Own);
        // Bounded by the resources of the table.
        let message = jsonrpc::request(id, method, params, &[]).into_bytes();
        self.controls.push_back(message);
    }

    /// Copies a notification to the listeners that it is for. Returns true if there are any.
    pub(super) fn notify_listeners(
        &mut self,
        method: &str,
        message: &Bytes,
        origin: MessageOrigin,
    ) -> bool {
        if self.listeners.is_empty() || matches!(origin, MessageOrigin::Subscription(_)) {
            return false;
        }
        let parsed: Value;
        let event = match method.strip_prefix("notifications/") {
            Some("resources/updated") => {
                parsed = serde_json::from_slice(message).unwrap_or_default();
                parsed["params"]["uri"].as_str().map(ListenEvent::Resource)
            }
            Some(other) => other.strip_suffix("/list_changed").map(ListenEvent::List),
            None => None,
        };
        let recipients = event.map(|event| self.listeners.recipients(&event));
        let recipients = recipients.unwrap_or_default();
        for (ticket, client) in &recipients {
            self.tell(*ticket, client, method, message);
        }
        !recipients.is_empty() && method == UPDATED
    }

    fn tell(&mut self, ticket: Ticket, client: &RequestId, method: &str, message: &Bytes) {
        let Some(message) = with_subscription(message, client, self.settings.depth) else {
            return;
        };
        self.out.push_back(LinkOutput::Notified {
            method: method.to_owned(),
            message,
            recipients: Recipients::Caller(ticket),
        });
    }
}
