//! A session over an event stream: the messages of a client that posts them. Used by `rpc::event_session`.

use super::*;
use crate::gateway::rpc::client_channel::EventChannel;

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
        WebSocketSession {
            number: worker.sessions().next_socket_number(),
            head,
            origin: origin.for_session(),
            sockets,
            worker: worker.clone(),
            form: Cell::new(None),
            close_reason: Cell::new(None),
            program: RefCell::new(None),
            input: Cell::default(),
            begun: Notify::new(),
        }
    }

    /// Serves the session until the client leaves or the program ends.
    pub(in crate::gateway::rpc) async fn serve(self, channel: EventChannel) {
        Box::pin(Rc::new(self).run_and_listen(channel)).await;
    }
}
