//! Requests and notifications of servers for a client of MCP with a session: on a socket, or over an event stream with
//! messages that the client posts. Used by `rpc::event_session` and [`super::WebSocketSession`].

use std::rc::Rc;

use bytes::Bytes;
use http::header::ACCEPT;
use http::{HeaderValue, request};

use super::{Intake, WebSocketSession, message_head};
use crate::gateway::cancellation::CancelScope;
use crate::gateway::request_origin::RequestOrigin;
use crate::gateway::rpc::client_channel::{ClientChannel, EventChannel};
use crate::gateway::rpc::in_flight::InFlight;
use crate::gateway::session_listener::{self, Listener, SessionListener};
use crate::gateway::session_streams::SessionStreams;
use crate::gateway::worker::Worker;
use dualgauge_model::plan::ClientSocketPlan;
use dualgauge_net::ReadMode;
use dualgauge_patterns::json::Json;

/// The start of the ids of the proxy's requests to clients.
const OWN_ID: &[u8] = b"\"dualgauge-";

/// A session on a socket; dropping it ends the session in the registry.
struct SocketScope<'a> {
    streams: &'a SessionStreams,
    scope: CancelScope<'static>,
}

impl Drop for SocketScope<'_> {
    fn drop(&mut self) {
        self.streams.end(self.scope);
    }
}

impl WebSocketSession {
    /// Creates the session of a client whose GET has the head `head`.
    pub(in crate::gateway::rpc) fn over_events(
        worker: &Rc<Worker>,
        head: Box<request::Parts>,
        origin: &RequestOrigin,
        sockets: ClientSocketPlan,
    ) -> WebSocketSession {
        let mut head = message_head(head);
        // The client accepts an event stream, but the answer to each message is JSON.
        let json = HeaderValue::from_static("application/json");
        head.headers.insert(ACCEPT, json);
        WebSocketSession::new(worker, head, origin.for_session(), sockets)
    }

    /// Serves the session until the client leaves or the program ends.
    pub(in crate::gateway::rpc) async fn serve(self, channel: EventChannel) {
        Box::pin(Rc::new(self).run_and_listen(channel)).await;
    }

    /// Serves the messages of the client, and delivers notifications of the server of its session.
    pub(super) async fn run_and_listen(self: Rc<Self>, frames: impl ClientChannel) {
        let listener = self.clone();
        let _scope = SocketScope {
            streams: self.worker.session_streams(),
            scope: CancelScope::Socket(self.number),
        };
        tokio::select! {
            () = self.clone().run(frames) => {}
            () = listener.listen() => {}
        }
    }

    /// Subscribes for the client each time it begins a session. Never ends.
    async fn listen(&self) {
        loop {
            self.begun.notified().await;
            let Some(client) = self.origin.links().notifications() else {
                continue;
            };
            let scope = CancelScope::Socket(self.number);
            let streams = session_listener::open_streams(&self.worker, scope);
            let listeners = streams.map(|(way, stream)| SessionListener {
                worker: self.worker.clone(),
                stream,
                way,
                client: Listener::Socket(client.clone()),
            });
            tokio::select! {
                () = session_listener::listen(&listeners) => {}
                // The client begins anew.
                () = self.begun.notified() => self.begun.notify_one(),
            }
        }
    }

    /// Returns the read mode of the client's socket. Responses of the client are read even at the concurrency limit
    /// and during shutdown: a call that waits for one would not end otherwise.
    pub(super) fn read_mode(&self, intake: Intake, in_flight: &InFlight) -> ReadMode {
        if intake == Intake::Open && in_flight.has_capacity() {
            return ReadMode::Open;
        }
        let requests = self.worker.client_requests();
        let session = CancelScope::Socket(self.number);
        if !requests.is_asked(session) {
            return ReadMode::Shut;
        }
        if intake == Intake::Open && !in_flight.has_capacity_for_response() {
            // The limit is reached and the response has not come: the calls continue without it.
            requests.withdraw(session);
            return ReadMode::Shut;
        }
        ReadMode::Open
    }

    /// Delivers a client's response to the call that waits for it, even if the client may start no more calls. Returns
    /// false if the message is no response, the client may not respond, or no call waits for it.
    pub(super) fn take_response(&self, message: &Bytes) -> bool {
        if memchr::memmem::find(message, OWN_ID).is_none() {
            return false;
        }
        let runtime_plan = self.worker.runtime_plan();
        let response = Json::parse(message.clone(), runtime_plan.plan.limits.depth);
        let response = response.ok().filter(|response| !response.has("method"));
        let id = response.and_then(|response| response.member("id")?.text()?.ok());
        let Some(id) = id.filter(|_| self.check_credentials(&runtime_plan).is_ok()) else {
            return false;
        };
        let requests = self.worker.client_requests();
        requests.respond(CancelScope::Socket(self.number), &id, message.clone())
    }
}
