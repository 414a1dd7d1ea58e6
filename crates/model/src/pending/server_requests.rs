//! Requests that a server sends during a call: elicitation, sampling and roots.
//!
//! They go to the caller if it answers such requests. Until it does, its call is suspended: the time limit of the call
//! does not run, [`INPUT_TIMEOUT`] does. Laws: a request reaches only the caller in whose call the server sent it; every
//! other request gets an error at once; the suspended calls leave at least half of the slots to others.
//!
//! Used by `gateway` and `pending`.

use std::time::Duration;

use bytes::Bytes;

use super::link_machine::LinkMachine;
use super::queue::Suspension;
use super::state::LinkState;
use super::{LinkOutput, MessageOrigin, RequestError, ServerRequests, Ticket};
use crate::jsonrpc::{self, ErrorObject, RequestId, ResponseReply, parse_response};
use crate::mcp::InputCapabilities;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::rope::Rope;

/// The time that a client has to supply input: a person may have to do it.
pub const INPUT_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// The maximum number of open requests of a server during one call.
const MOST_REQUESTS: usize = 16;

/// The code for a request that the client does not support (MCP 2025-11-25, "Roots", "Error Handling").
const UNSUPPORTED: i64 = -32601;

/// A request of the server.
pub(super) struct ServerRequest {
    pub(super) id: RequestId,
    pub(super) method: String,
    pub(super) message: Bytes,
}

/// The reason why a request of the server is declined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decline {
    /// It belongs to no call that is known.
    NoCall,
    /// The caller does not answer such requests.
    Unable,
    /// Too many requests wait for clients.
    TooMany,
}

impl Decline {
    fn error(self) -> ErrorObject {
        let (code, message) = match self {
            Decline::NoCall => (
                -32601,
                "\"the proxy cannot tell to which client's call this request belongs\"",
            ),
            Decline::Unable => (
                UNSUPPORTED,
                "\"the client of this call answers no such requests\"",
            ),
            Decline::TooMany => (-32603, "\"too many requests wait for clients\""),
        };
        ErrorObject {
            code,
            message: Json::literal(message),
            data: None,
        }
    }
}

impl LinkMachine {
    /// Hands a request of the server to the caller in whose call it was sent, or declines it. A `ping` is answered here:
    /// it asks only whether the link is alive.
    pub(super) fn server_request(
        &mut self,
        now: Duration,
        request: ServerRequest,
        origin: MessageOrigin,
    ) {
        let ServerRequest {
            id,
            method,
            message,
        } = request;
        if method == "ping" {
            let nothing = Rope::from(Bytes::from_static(b"{}"));
            return self.control(jsonrpc::result(&id, nothing).into_bytes());
        }
        let addressee = self
            .addressee(origin)
            .and_then(|call| self.suspend(now, call, &method, &message));
        match addressee {
            Ok(ticket) => self.out.push_back(LinkOutput::ServerRequest {
                ticket,
                id,
                message,
            }),
            Err(why) => {
                self.counts.declined += 1;
                self.control(jsonrpc::error(&id, &why.error()).into_bytes());
            }
        }
    }

    /// Returns the id of the call during which the server sent a request. Outside a response stream, that is the only
    /// call that the server can be working on.
    fn addressee(&self, origin: MessageOrigin) -> Result<u64, Decline> {
        let id = match origin {
            MessageOrigin::Call(ticket) => self.call_of(ticket),
            MessageOrigin::Link if !self.unattributed.has_abandoned(self.now) => {
                self.in_flight.only()
            }
            MessageOrigin::Link | MessageOrigin::Subscription(_) | MessageOrigin::Abandoned => None,
        };
        let is_ready = matches!(self.state, LinkState::Ready(_) | LinkState::Leaving(_));
        id.filter(|_| is_ready).ok_or(Decline::NoCall)
    }

    /// Returns the caller of the call during which the server sent a message, as far as that is certain.
    pub(super) fn caller_of(&self, origin: MessageOrigin) -> Option<Ticket> {
        let id = self.addressee(origin).ok()?;
        let mut calls = self.in_flight.calls();
        let call = calls.find(|(known, _)| *known == id);
        call.map(|(_, call)| call.request.ticket)
    }

    fn call_of(&self, ticket: Ticket) -> Option<u64> {
        let mut calls = self.in_flight.calls();
        let call = calls.find(|(_, call)| call.request.ticket == ticket);
        call.map(|(id, _)| id)
    }

    /// Suspends a call, unless its caller cannot answer the request.
    fn suspend(
        &mut self,
        now: Duration,
        id: u64,
        method: &str,
        message: &Bytes,
    ) -> Result<Ticket, Decline> {
        let most = (self.settings.order.in_flight() / 2).max(1);
        let suspended = self.in_flight.calls();
        let suspended = suspended.filter(|(_, call)| call.suspension.is_some());
        let suspended = suspended.count();
        let depth = self.settings.depth;
        let call = self.in_flight.get_mut(id).ok_or(Decline::NoCall)?;
        let params = Json::parse(message.clone(), depth).ok();
        let params = params.and_then(|whole| whole.member("params"));
        let is_declined = self.settings.server_requests == ServerRequests::Decline;
        if is_declined || !call.request.input.allow(method, params.as_ref()) {
            let required = InputCapabilities::required_by(method, params.as_ref());
            call.missing = call.missing.with(required);
            return Err(Decline::Unable);
        }
        let suspension = match call.suspension {
            Some(Suspension { open, .. }) if open >= MOST_REQUESTS => return Err(Decline::TooMany),
            Some(Suspension { open, rest }) => Suspension {
                open: open + 1,
                rest,
            },
            None if suspended >= most => return Err(Decline::TooMany),
            None => Suspension {
                open: 1,
                rest: call.request.deadline.saturating_sub(now),
            },
        };
        call.suspension = Some(suspension);
        call.request.deadline = now + INPUT_TIMEOUT;
        Ok(call.request.ticket)
    }

    /// Returns the failure of a call that the server refuses because its requests during the call were declined. It
    /// passes on the code that they got.
    pub(super) fn refused_without_input(
        &self,
        missing: InputCapabilities,
        message: &Bytes,
    ) -> Option<RequestError> {
        if missing == InputCapabilities::default() {
            return None;
        }
        let reply = parse_response(message, self.settings.depth).ok()?.reply;
        match reply {
            ResponseReply::Error(error) if error.code == UNSUPPORTED => {
                Some(RequestError::InputRequired(missing))
            }
            ResponseReply::Error(_) | ResponseReply::Result(_) => None,
        }
    }

    /// Sends a caller's answers to the server. Once all requests of the call are answered, its time limit runs again.
    pub(super) fn respond(&mut self, now: Duration, ticket: Ticket, responses: Vec<Bytes>) {
        let id = self.call_of(ticket);
        let Some(call) = id.and_then(|id| self.in_flight.get_mut(id)) else {
            return;
        };
        let Some(Suspension { open, rest }) = call.suspension else {
            return;
        };
        let open = open.saturating_sub(responses.len());
        call.suspension = (open > 0).then_some(Suspension { open, rest });
        call.request.deadline = now + if open > 0 { INPUT_TIMEOUT } else { rest };
        // Bounded by what the server asked, unlike messages that it can do without.
        self.controls.extend(responses);
    }
}
