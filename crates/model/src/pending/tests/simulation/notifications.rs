//! Server messages other than answers, and the course of subscriptions.

use super::*;
use crate::jsonrpc::RequestId;

/// A subscription, with a client's id that names the caller.
pub(super) fn subscription(ticket: u64) -> Outbound {
    let params = Rope::from(Bytes::from(format!("[{ticket}]")));
    let call = RequestTemplate::new("subscriptions/listen", params, &[]);
    let client_id = RequestId::new(Json::string(&format!("c{ticket}"))).unwrap();
    Outbound::Subscription(call, client_id)
}

impl World {
    pub(super) fn server_sends_other(&mut self) {
        let id = self.dice.below(1 << 60) + (1 << 50);
        let old = self.answered.last().copied().unwrap_or(id);
        let text = match self.dice.below(7) {
            0 => format!(r#"{{"id":{id},"result":{{"for":-1}}}}"#),
            1 => format!(r#"{{"id":{old},"result":{{"for":-1}}}}"#),
            2 => format!(r#"{{"id":"{}","result":{{"for":-1}}}}"#, id % 60),
            3 => r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#.to_owned(),
            4 => r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#.to_owned(),
            5 => r#"{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage"}"#.to_owned(),
            _ => "Starting up...".to_owned(),
        };
        self.server_sends(text);
    }

    pub(super) fn why(&mut self) -> RequestError {
        match self.dice.below(7) {
            0 => RequestError::Cut,
            1 => RequestError::TooLarge(200),
            2 => RequestError::Unusable(500),
            3 => RequestError::Unreachable,
            4 => RequestError::Busy,
            5 => RequestError::Late,
            _ => RequestError::Unusable(0),
        }
    }

    /// The server sends a notification of a subscription, or ends an acknowledged one.
    pub(super) fn server_notifies(&mut self, id: u64, ticket: Option<u64>) -> bool {
        let waiting = ticket.and_then(|ticket| self.callers.get_mut(&ticket));
        let Some(caller) = waiting.filter(|caller| caller.subscribes.is_some()) else {
            return false;
        };
        let known = caller.subscribes == Some(Acknowledged::Yes);
        if self.link != Link::Open || (!known && self.dice.one_in(3)) {
            return false;
        }
        (caller.subscribes, caller.deadline) = (Some(Acknowledged::Yes), Duration::MAX);
        let whose = ticket.unwrap_or_default();
        match self.dice.below(6) {
            0 if known => self.server_sends(format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"for":{whose}}}}}"#
            )),
            1 if known => self.server_sends(format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
            )),
            2 if known => self.link_receives(LinkInput::Failed(id, RequestError::Cut)),
            _ => {
                self.server_sends(format!(
                    r#"{{"jsonrpc":"2.0","method":"notifications/x","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}}}"#
                ));
                self.read.push(Read { id: Some(id), ticket });
            }
        }
        true
    }

    /// Checks that a notification that reaches a caller has the id that the caller chose.
    pub(super) fn recipients_for(&self, recipients: Recipients, message: &Bytes) {
        let Recipients::Caller(Ticket(ticket)) = recipients else {
            return;
        };
        let client_id = format!(r#""io.modelcontextprotocol/subscriptionId":"c{ticket}""#);
        let text = std::str::from_utf8(message).unwrap();
        check!(
            self,
            text.contains(&client_id),
            format!("{ticket} received {text}")
        );
        let waiting = self.callers[&ticket].ending == Ending::Waiting;
        check!(
            self,
            waiting,
            format!("{ticket} received {text} at its end")
        );
    }

    /// Whether a subscription may end in good order.
    pub(super) fn ends(&mut self, ticket: Ticket) {
        let known = self.callers[&ticket.0].subscribes == Some(Acknowledged::Yes);
        check!(self, known, "ended before it was acknowledged");
        self.settle(ticket);
    }
}
