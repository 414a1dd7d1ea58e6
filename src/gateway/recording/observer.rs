//! The response to a recorded call on its way to the client. Used by `recording`.

use std::mem;

use bytes::Bytes;
use http::{HeaderMap, StatusCode, response};
use tokio::time::Instant;

use super::call_recorder::CallRecorder;
use super::ended::{EndedResponse, RecordedCaller};
use super::kept::{EndedBody, KeptContent, coding, picked};
use crate::gateway::call_response::FullResponse;
use crate::gateway::response_observer::{Observer, ResponseObserver};
use crate::gateway::stream_end::is_event_stream;
use crate::telemetry::clock;
use crate::telemetry::recorder::Recorder;
use dualgauge_model::compare::Skip;
use dualgauge_model::failure::Failure;
use dualgauge_model::record::RecordedBodies;
use dualgauge_net::BodyCopy;

/// The memory of a call without its bodies, in bytes.
const CALL_SIZE: usize = 2048;

/// Records one call, and passes all that it observes to another observer.
#[derive(Debug)]
pub(super) struct RecordingObserver {
    inner: Option<Observer>,
    recorder: Recorder,
    call: Option<Box<PendingCall>>,
}

/// A call whose response is not complete.
#[derive(Debug)]
struct PendingCall {
    caller: RecordedCaller,
    content: KeptContent,
    started: Instant,
    response: Option<PendingResponse>,
    /// Copies the body of a response that streams.
    copy: BodyCopy,
}

/// The response as far as it was sent.
#[derive(Debug)]
struct PendingResponse {
    status: StatusCode,
    headers: HeaderMap,
    coding: HeaderMap,
    failure: Option<&'static str>,
    body: PendingBody,
}

#[derive(Debug)]
enum PendingBody {
    Whole(Bytes),
    Copied,
    /// Not recorded, with its length so far.
    Omitted(u64),
}

impl RecordingObserver {
    pub(super) fn new(
        recorder: &CallRecorder,
        caller: RecordedCaller,
        content: KeptContent,
        started: Instant,
        inner: Option<Observer>,
    ) -> RecordingObserver {
        RecordingObserver {
            inner,
            recorder: recorder.recorder().clone(),
            call: Some(Box::new(PendingCall {
                caller,
                content,
                started,
                response: None,
                copy: recorder.new_copy(),
            })),
        }
    }

    /// Queues the call for the thread of the recorder.
    fn end(&mut self, is_whole: bool) {
        let Some(call) = self.call.take() else {
            return;
        };
        let latency = clock::now() - call.started;
        let PendingCall {
            caller,
            content,
            response,
            copy,
            ..
        } = *call;
        let request = match content {
            KeptContent::Whole(whole) => EndedBody::Whole(whole),
            KeptContent::Empty => EndedBody::Whole(Bytes::new()),
            KeptContent::Omitted(length) => EndedBody::Omitted(length),
            KeptContent::Copied(copy) => EndedBody::copied(&copy),
        };
        if is_whole {
            copy.finish();
        }
        let response = response.map(|response| EndedResponse {
            status: response.status,
            headers: response.headers,
            coding: response.coding,
            failure: response.failure,
            body: match response.body {
                PendingBody::Whole(whole) => EndedBody::Whole(whole),
                PendingBody::Omitted(0) => EndedBody::Whole(Bytes::new()),
                PendingBody::Omitted(length) => EndedBody::Omitted(length),
                PendingBody::Copied => EndedBody::copied(&copy),
            },
            latency,
        });
        let bodies = request.size() + response.as_ref().map_or(0, |one| one.body.size());
        self.recorder.offer(
            caller.generation,
            CALL_SIZE + bodies,
            Box::new(move || caller.call(&request, response.as_ref(), is_whole)),
        );
    }
}

impl PendingCall {
    /// Returns the headers of the response that are recorded.
    fn allowed(&self, headers: &HeaderMap) -> HeaderMap {
        picked(headers, &self.caller.settings.headers)
    }
}

impl ResponseObserver for RecordingObserver {
    fn on_full(&mut self, full: &FullResponse, failure: Option<&Failure>) {
        if let Some(call) = &mut self.call {
            let body = match call.caller.bodies {
                RecordedBodies::Redacted => PendingBody::Whole(full.body.clone().into_bytes()),
                RecordedBodies::Omitted => PendingBody::Omitted(full.body.len() as u64),
            };
            call.response = Some(PendingResponse {
                status: full.status,
                headers: call.allowed(&full.headers),
                coding: coding(&full.headers),
                failure: failure.map(|failure| failure.reason.row().label),
                body,
            });
        }
        if let Some(inner) = &mut self.inner {
            inner.on_full(full, failure);
        }
    }

    fn on_head(&mut self, head: &response::Parts) {
        if let Some(call) = &mut self.call {
            // An event stream may be endless.
            let body = match call.caller.bodies {
                RecordedBodies::Redacted if !is_event_stream(&head.headers) => PendingBody::Copied,
                RecordedBodies::Redacted | RecordedBodies::Omitted => PendingBody::Omitted(0),
            };
            call.response = Some(PendingResponse {
                status: head.status,
                headers: call.allowed(&head.headers),
                coding: coding(&head.headers),
                failure: None,
                body,
            });
        }
        if let Some(inner) = &mut self.inner {
            inner.on_head(head);
        }
    }

    fn on_chunk(&mut self, chunk: &[u8]) {
        if let Some(call) = &mut self.call
            && let Some(response) = &mut call.response
        {
            match &mut response.body {
                PendingBody::Copied => call.copy.record(chunk),
                PendingBody::Omitted(length) => *length += chunk.len() as u64,
                PendingBody::Whole(_) => {}
            }
        }
        if let Some(inner) = &mut self.inner {
            inner.on_chunk(chunk);
        }
    }

    fn on_sent(mut self: Box<Self>) {
        self.end(true);
        if let Some(inner) = mem::take(&mut self.inner) {
            inner.on_sent();
        }
    }

    fn on_cut(mut self: Box<Self>) {
        self.end(false);
        if let Some(inner) = mem::take(&mut self.inner) {
            inner.on_cut();
        }
    }

    fn skip(mut self: Box<Self>, why: Skip) {
        self.end(false);
        if let Some(inner) = mem::take(&mut self.inner) {
            inner.skip(why);
        }
    }
}

impl Drop for RecordingObserver {
    /// Records a call whose client disconnected.
    fn drop(&mut self) {
        self.end(false);
    }
}
