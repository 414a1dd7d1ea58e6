//! What a server says that answers no call, and what becomes of subscriptions.

use super::*;
use crate::domain::jsonrpc::RequestId;

/// A subscription, with a client's id that names the caller.
pub(super) fn subscription(ticket: u64) -> Outbound {
    let params = Rope::from(Bytes::from(format!("[{ticket}]")));
    let call = RequestTemplate::new("subscriptions/listen", params, &[]);
    let own = RequestId::new(Json::string(&format!("c{ticket}"))).unwrap();
    Outbound::Subscription(call, own)
}

impl World {
    pub(super) fn chatters(&mut self) {
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
        self.says(text);
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

    /// The server tells something of a subscription that it has read, or ends one that it has acknowledged.
    pub(super) fn tells(&mut self, id: u64, ticket: Option<u64>) -> bool {
        let waits = ticket.and_then(|ticket| self.callers.get_mut(&ticket));
        let Some(caller) = waits.filter(|caller| caller.subscribes.is_some()) else {
            return false;
        };
        let known = caller.subscribes == Some(Acknowledged::Yes);
        if self.link != Link::Open || (!known && self.dice.one_in(3)) {
            return false;
        }
        (caller.subscribes, caller.deadline) = (Some(Acknowledged::Yes), Duration::MAX);
        let whose = ticket.unwrap_or_default();
        match self.dice.below(6) {
            0 if known => self.says(format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"for":{whose}}}}}"#
            )),
            1 if known => self.says(format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
            )),
            2 if known => self.link_takes(LinkInput::Failed(id, RequestError::Cut)),
            _ => {
                self.says(format!(
                    r#"{{"jsonrpc":"2.0","method":"notifications/x","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}}}"#
                ));
                self.read.push(Read { id: Some(id), ticket });
            }
        }
        true
    }

    /// Whether a notification may reach a caller: it bears the id that the caller gave.
    pub(super) fn hears(&self, hearers: Recipients, message: &Bytes) {
        let Recipients::Caller(Ticket(ticket)) = hearers else {
            return;
        };
        let own = format!(r#""io.modelcontextprotocol/subscriptionId":"c{ticket}""#);
        let text = std::str::from_utf8(message).unwrap();
        check!(self, text.contains(&own), format!("{ticket} heard {text}"));
        let waits = self.callers[&ticket].ending == Ending::Waits;
        check!(self, waits, format!("{ticket} heard {text} at its end"));
    }

    /// Whether a subscription may end in good order.
    pub(super) fn ends(&mut self, ticket: Ticket) {
        let known = self.callers[&ticket.0].subscribes == Some(Acknowledged::Yes);
        check!(self, known, "ended before it was acknowledged");
        self.settle(ticket);
    }
}
