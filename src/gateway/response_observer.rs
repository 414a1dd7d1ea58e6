//! Observation of the response to a call on its way to the client.
//!
//! Used by `progress_stream`, `response`, `response_body` and the adapters of `gateway`'s protocols; implemented by
//! `shadow`.

use std::fmt::Debug;

use http::response;

use super::call_response::FullResponse;
use dualgauge_model::compare::Skip;
use dualgauge_model::failure::Failure;

/// The observer of one response.
pub(super) type Observer = Box<dyn ResponseObserver>;

/// Observes the response to one call. An observer that is dropped before the end of the response learns that the client
/// disconnected.
pub(super) trait ResponseObserver: Debug {
    /// Observes a complete response, and the failure that it reports, if any.
    fn on_full(&mut self, full: &FullResponse, failure: Option<&Failure>);

    /// Observes the head of a response that streams from an upstream.
    fn on_head(&mut self, head: &response::Parts);

    /// Observes a chunk of a response that streams from an upstream.
    fn on_chunk(&mut self, chunk: &[u8]);

    /// Ends the observation: the client has the whole response.
    fn on_sent(self: Box<Self>);

    /// Ends the observation: the response broke off.
    fn on_cut(self: Box<Self>);

    /// Ends the observation, because the response is of no use to the observer.
    fn skip(self: Box<Self>, why: Skip);
}

/// Tells observers that the client has the whole response.
pub(super) fn notify_sent(observers: impl IntoIterator<Item = Observer>) {
    for observer in observers {
        observer.on_sent();
    }
}
