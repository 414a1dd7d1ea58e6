//! Requests of the server during calls.

use super::*;

/// The capabilities of a caller.
pub(super) fn input(answers: bool) -> InputCapabilities {
    let params = match answers {
        true => Json::literal(r#"{"capabilities":{"roots":{}}}"#),
        false => Json::literal("{}"),
    };
    InputCapabilities::of_initialize(Some(&params))
}

impl World {
    /// The server sends a request in the response stream of a call, or outside it, and goes on with the call.
    pub(super) fn server_asks(&mut self, id: u64, ticket: Option<u64>) {
        self.read.insert(
            0,
            Read {
                id: Some(id),
                ticket,
            },
        );
        let text = Bytes::from_static(br#"{"jsonrpc":"2.0","id":"s","method":"roots/list"}"#);
        let input = match self.dice.one_in(2) {
            true => LinkInput::InResponseStream(id, text),
            false => LinkInput::Message(text),
        };
        self.link_receives(input);
    }

    /// The link hands a request of the server to a caller.
    pub(super) fn is_asked(&mut self, ticket: Ticket) {
        let now = self.now;
        let caller = self.callers.get_mut(&ticket.0).unwrap();
        let is_waiting = caller.ending == Ending::Waiting;
        let is_able = caller.answers && !caller.written.is_empty();
        let (open, rest) = caller.asked.unwrap_or((0, caller.deadline - now));
        caller.asked = Some((open + 1, rest));
        caller.deadline = now + INPUT_TIMEOUT;
        check!(self, is_waiting && is_able, "a wrong caller was asked");
    }

    /// A caller answers some of the requests. Returns false if none waits for an answer.
    pub(super) fn answer_server(&mut self) -> bool {
        let now = self.now;
        let mut asked = self.callers.iter_mut();
        let asked = asked.find_map(|(ticket, caller)| {
            let is_waiting = caller.ending == Ending::Waiting;
            let (open, rest) = caller.asked.filter(|_| is_waiting)?;
            Some((*ticket, caller, open, rest))
        });
        let Some((ticket, caller, open, rest)) = asked else {
            return false;
        };
        caller.asked = (open > 1).then_some((open - 1, rest));
        caller.deadline = now + if open > 1 { INPUT_TIMEOUT } else { rest };
        let response = Bytes::from_static(br#"{"jsonrpc":"2.0","id":"s","result":{}}"#);
        self.take(LinkInput::Respond(Ticket(ticket), vec![response]));
        true
    }
}
