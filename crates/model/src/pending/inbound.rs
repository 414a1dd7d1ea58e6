//! Inbound messages of a link and the callers that they belong to.

use std::time::Duration;

use bytes::Bytes;

use super::link_machine::LinkMachine;
use super::recipients::recipients;
use super::server_requests::ServerRequest;
use super::state::{Handshake, LinkState, WriteState};
use super::unattributed::UnattributedReply;
use super::{LinkFault, LinkOutput, LogMessages, MessageOrigin, Outbound, RequestError};
use crate::jsonrpc::{self, PeerMessage, ResponseReply, parse_response};
use crate::mcp::{check_revision, initialize_error};
use dualgauge_patterns::rope::Rope;

const LOG_MESSAGE: &str = "notifications/message";

impl LinkMachine {
    /// Handles a message from the server. `stream` is the id of the request in whose response stream it arrived, if
    /// any.
    pub(super) fn message(&mut self, now: Duration, message: Bytes, stream: Option<u64>) {
        if !self.is_open() {
            return;
        }
        self.on_received(now);
        // The origin is determined first: a response in the same array may remove the request.
        let origin = self.origin(stream);
        match jsonrpc::split_batch(&message, self.settings.depth) {
            Some(parts) => parts
                .into_iter()
                .for_each(|part| self.one(now, part, origin)),
            None => self.one(now, message, origin),
        }
    }

    fn origin(&self, stream: Option<u64>) -> MessageOrigin {
        let Some(id) = stream else {
            return MessageOrigin::Link;
        };
        match (self.in_flight.get(id), self.subscriptions.ticket(id)) {
            (Some(in_flight), _) => MessageOrigin::Call(in_flight.request.ticket),
            (None, Some(_)) => MessageOrigin::Subscription(id),
            (None, None) => MessageOrigin::Abandoned,
        }
    }

    fn one(&mut self, now: Duration, message: Bytes, origin: MessageOrigin) {
        match PeerMessage::new(&message, self.settings.depth) {
            PeerMessage::Answer(id) => self.answer(now, id, message),
            PeerMessage::Unaddressed => self.unaddressed(message),
            PeerMessage::Misnumbered(id) => self.misnumbered(id),
            PeerMessage::Request { id, method } => {
                let request = ServerRequest {
                    id,
                    method,
                    message,
                };
                self.server_request(now, request, origin);
            }
            PeerMessage::Notification { method } => {
                self.counts.notified += 1;
                self.notified(method, message, origin);
            }
            PeerMessage::NotAMessage => self.counts.skipped += 1,
        }
    }

    fn notified(&mut self, method: String, message: Bytes, origin: MessageOrigin) {
        if self.notify_listeners(&method, &message, origin) {
            return;
        }
        let Some((method, message)) = self.route_by_id(method, message) else {
            return;
        };
        let Some((message, subscriber)) = self.route_to_subscription(&method, message, origin)
        else {
            return;
        };
        let origin = self.origin_of_log(&method, origin);
        let recipients =
            subscriber.unwrap_or_else(|| recipients(&method, origin, self.settings.log_messages));
        self.out.push_back(LinkOutput::Notified {
            method,
            message,
            recipients,
        });
    }

    /// Returns the origin of a notification. On a link without response streams, a log message belongs to the only call
    /// that the server can be working on.
    fn origin_of_log(&self, method: &str, origin: MessageOrigin) -> MessageOrigin {
        let is_attributed = self.settings.log_messages == LogMessages::OnlyCaller;
        if method != LOG_MESSAGE || !is_attributed {
            return origin;
        }
        self.caller_of(origin).map_or(origin, MessageOrigin::Call)
    }

    pub(super) fn overlong(&mut self, now: Duration) {
        if !self.is_open() {
            return;
        }
        self.on_received(now);
        if matches!(self.state, LinkState::Greeting { .. }) {
            return self.close(LinkFault::Refused("its response is too long".to_owned()));
        }
        if matches!(self.state, LinkState::LoggingIn { id: Some(_), .. }) {
            return self.login_refused("its response is too long".to_owned());
        }
        let Some(id) = self.only_addressee() else {
            self.counts.skipped += 1;
            return;
        };
        if let Some(in_flight) = self.in_flight.end(id) {
            self.consecutive_timeouts = 0;
            self.fail(in_flight.request.ticket, RequestError::TooLarge(0));
        }
    }

    fn is_open(&self) -> bool {
        matches!(
            self.state,
            LinkState::Greeting { .. }
                | LinkState::LoggingIn { .. }
                | LinkState::Ready(_)
                | LinkState::Leaving(_)
        )
    }

    fn answer(&mut self, now: Duration, id: u64, message: Bytes) {
        if let LinkState::Greeting { id: expected, by } = self.state
            && expected == id
        {
            return self.greeted(now, by, Handshake { id, message });
        }
        if matches!(self.state, LinkState::LoggingIn { id: Some(expected), .. } if expected == id) {
            return self.logged_in(now, &message);
        }
        if let Some(in_flight) = self.in_flight.end(id) {
            self.consecutive_timeouts = 0;
            let ticket = in_flight.request.ticket;
            if let Some(why) = self.refused_without_input(in_flight.missing, &message) {
                self.fail(ticket, why);
            } else if let Outbound::IdSubscription(_, rule) = in_flight.request.message {
                self.id_subscription_answered(id, ticket, rule, message);
            } else {
                self.out.push_back(LinkOutput::Answer {
                    ticket,
                    id,
                    message,
                });
            }
        } else if self.subscription_answered(id, &message) {
            self.consecutive_timeouts = 0;
        } else {
            match self.unattributed.answered(id) {
                Some(UnattributedReply::Abandoned(_)) => {
                    self.counts.late += 1;
                    self.end_abandoned_subscription(id, &message);
                }
                Some(UnattributedReply::Own) => {}
                Some(UnattributedReply::Notice) | None => {
                    self.counts.foreign += 1;
                    return;
                }
            }
        }
        self.unattributed.passed(id, self.settings.order);
    }

    /// Handles the server's response to `initialize`.
    fn greeted(&mut self, now: Duration, by: Duration, handshake: Handshake) {
        let answer = parse_response(&handshake.message, self.settings.depth);
        match answer.map(|answer| answer.reply) {
            Ok(ResponseReply::Result(result)) => {
                if let Err(why) = check_revision(&result, &self.settings.revisions) {
                    return self.close(LinkFault::Foreign(why));
                }
                self.greeted = Some(handshake);
                let params = Rope::from(Bytes::from_static(b"{}"));
                let method = "notifications/initialized";
                self.control(jsonrpc::notification(method, params, &[]).into_bytes());
                self.log_in(now, by);
            }
            Ok(ResponseReply::Error(error)) => {
                self.close(LinkFault::Refused(initialize_error(&error)));
            }
            Err(fault) => self.close(LinkFault::Refused(fault.to_string())),
        }
    }

    /// Assigns an error without an id to the only request that can have caused it; otherwise counts it as foreign.
    fn unaddressed(&mut self, message: Bytes) {
        if matches!(self.state, LinkState::Greeting { .. }) && self.unattributed.none() {
            let why = match parse_response(&message, self.settings.depth).map(|it| it.reply) {
                Ok(ResponseReply::Error(error)) => initialize_error(&error),
                Ok(ResponseReply::Result(_)) | Err(_) => "its response has no id".to_owned(),
            };
            return self.close(LinkFault::Refused(why));
        }
        if self.is_about_login(None) {
            return self.login_refused("it answered with an error without an id".to_owned());
        }
        let Some(id) = self.only_addressee() else {
            self.counts.foreign += 1;
            return;
        };
        if let Some(in_flight) = self.in_flight.end(id) {
            self.consecutive_timeouts = 0;
            let ticket = in_flight.request.ticket;
            self.out.push_back(LinkOutput::Answer {
                ticket,
                id,
                message,
            });
        }
    }

    /// Fails a request because the id in the response has another form than the proxy's. `spelled` is the number in
    /// that id; without it, the only possible request fails. No other response will arrive for that request.
    fn misnumbered(&mut self, spelled: Option<u64>) {
        if let LinkState::Greeting { id: expected, .. } = self.state
            && spelled.map_or_else(|| self.unattributed.none(), |id| id == expected)
        {
            let why = "its response has an id of another type".to_owned();
            return self.close(LinkFault::Refused(why));
        }
        if self.is_about_login(spelled) {
            return self.login_refused("its response has an id of another type".to_owned());
        }
        let id = spelled.or_else(|| self.only_addressee());
        let ended = id.and_then(|id| Some((id, self.in_flight.end(id)?)));
        let Some((id, in_flight)) = ended else {
            self.counts.foreign += 1;
            return;
        };
        self.consecutive_timeouts = 0;
        self.fail(in_flight.request.ticket, RequestError::Misnumbered);
        if spelled.is_some() {
            // The id only looks like that number: the response may belong to something else.
            let never = UnattributedReply::Abandoned(Duration::MAX);
            self.unattributed.add(id, never);
        }
    }

    /// Returns the only request in flight if nothing else that was written can still cause a reply.
    fn only_addressee(&self) -> Option<u64> {
        let is_sure = self.unattributed.none() && !self.subscriptions.may_fail();
        let only = self.in_flight.only();
        only.filter(|_| is_sure && self.wire == WriteState::Free)
    }
}
