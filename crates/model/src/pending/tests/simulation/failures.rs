//! Failures that the link reports.

use super::message::read;
use super::*;

impl World {
    /// A request fails.
    pub(super) fn fails(&mut self, ticket: Ticket, why: RequestError) {
        let writes = self.callers[&ticket.0].written.len();
        let agrees = match why {
            RequestError::Busy
            | RequestError::Unreachable
            | RequestError::LoginFailed
            | RequestError::Unauthenticated => writes == 0,
            RequestError::Cut
            | RequestError::Late
            | RequestError::TooLarge(_)
            | RequestError::NoMemory
            | RequestError::CodedStream
            | RequestError::Misnumbered
            | RequestError::InputRequired(_)
            | RequestError::Unusable(_) => writes > 0,
        };
        let agrees = agrees || self.failed.contains(&(ticket.0, format!("{why:?}")));
        check!(self, agrees, format!("{why:?} after {writes} writes"));
        self.settle(ticket);
    }

    /// The link reports that a request gets no answer.
    pub(super) fn fail_request(&mut self, id: u64, ticket: Option<u64>) {
        let why = self.why();
        if let Some(ticket) = ticket {
            self.failed.insert((ticket, format!("{why:?}")));
        }
        self.link_receives(LinkInput::Failed(id, why));
    }

    /// The server forgets the session, either in its response to a request or without one.
    pub(super) fn forget_session(&mut self, id: u64, ticket: Option<u64>) {
        let to = if self.dice.one_in(3) { None } else { Some(id) };
        self.refused.extend(ticket.filter(|_| to.is_some()));
        self.link_receives(LinkInput::Forgotten(to));
    }

    /// The message that is being written is lost. A link reports that only for a notice.
    pub(super) fn drop_notice(&mut self) {
        let bears_id = |message: &Bytes| read(message).id.is_some();
        if self.link != Link::Open || self.writing.as_ref().is_none_or(bears_id) {
            return;
        }
        let why = self.why();
        let message = self.writing.take();
        if let Some(ticket) = message.and_then(|message| read(&message).ticket) {
            self.failed.insert((ticket, format!("{why:?}")));
        }
        self.take(LinkInput::Unwritten(why));
    }
}
