//! Recordings of calls: a sample of the calls, with the response that the client receives. A message on a socket is
//! recorded as if it were posted to the path of the socket.
//!
//! ```text
//! mod             the calls that are recorded, and the request
//! call_recorder   the recorder of a worker, and the sample
//! kept            the parts of messages that are kept
//! observer        the response on its way to the client
//! ended           the recorded call, made on the thread of the recorder
//! ```
//!
//! A call is recorded after its stage is decided, so refused requests and the proxy's own replies are not; nor are
//! requests for event streams. Laws: without a recording a call costs one comparison; a call
//! that is not in the sample is not copied; no call waits for the recorder.
//!
//! Used by the adapters of `gateway`'s protocols, and by `worker`.

pub(super) mod call_recorder;
mod ended;
mod kept;
mod observer;

use std::time::SystemTime;

use bytes::Bytes;
use http::request;
use tokio::time::Instant;

use super::access_record::AccessRecord;
use super::response_observer::Observer;
use crate::telemetry::clock;
use crate::telemetry::recorder::ActiveRecording;
use dualgauge_model::record::RecordedBodies;
use dualgauge_net::BodyCopy;
use dualgauge_patterns::side::Side;

pub(super) use kept::RequestKind;

use ended::RecordedCaller;
use kept::{KeptContent, announced_length, coding, picked};
use observer::RecordingObserver;

/// The body of a request that is recorded.
pub(super) enum RequestContent<'r> {
    /// Read completely: the whole body, or one message of a batch.
    Read(&'r Bytes),
    /// Arriving.
    Arriving,
    /// Empty.
    Empty,
}

/// The request of a call that is in the sample.
pub(super) struct SampledRequest<'r> {
    pub(super) head: &'r request::Parts,
    pub(super) kind: RequestKind,
    pub(super) content: RequestContent<'r>,
    pub(super) recording: ActiveRecording,
}

/// Returns an observer that records the call, in front of its other observer. `copy` is the copy that the caller must fill
/// with the body of the request, if there is one already or one is needed.
pub(super) fn observer(
    record: &AccessRecord,
    request: &SampledRequest<'_>,
    copy: &mut Option<BodyCopy>,
    inner: Option<Observer>,
) -> Option<Observer> {
    let context = &record.context;
    let plan = &context.runtime_plan().plan;
    let Some(settings) = &plan.record else {
        return inner;
    };
    let recorder = context.worker().call_recorder();
    let head = request.head;
    let content = match (&request.content, request.recording.bodies) {
        (RequestContent::Empty, _) => KeptContent::Empty,
        (RequestContent::Read(whole), RecordedBodies::Redacted) => {
            KeptContent::Whole(Bytes::clone(whole))
        }
        // The envelope of a message is recorded; the thread of the recorder reads it.
        (RequestContent::Read(whole), RecordedBodies::Omitted) => match context.side() {
            Side::Rpc => KeptContent::Whole(Bytes::clone(whole)),
            Side::Rest => KeptContent::Omitted(whole.len() as u64),
        },
        (RequestContent::Arriving, RecordedBodies::Omitted) => {
            KeptContent::Omitted(announced_length(&head.headers))
        }
        (RequestContent::Arriving, RecordedBodies::Redacted) => {
            let copy = copy.get_or_insert_with(|| recorder.new_copy());
            KeptContent::Copied(copy.clone())
        }
    };
    let caller = RecordedCaller {
        plan: plan.clone(),
        settings: settings.clone(),
        time: started(context.call_start().started),
        side: context.side(),
        kind: request.kind,
        route: context.route(),
        client: context.client(),
        stage: context.stage(),
        why: context.why(),
        bodies: request.recording.bodies,
        generation: request.recording.generation,
        method: head.method.clone(),
        target: head.uri.path_and_query().cloned(),
        headers: picked(&head.headers, &settings.headers),
        coding: coding(&head.headers),
    };
    let observer = RecordingObserver::new(
        recorder,
        caller,
        content,
        context.call_start().started,
        inner,
    );
    Some(Box::new(observer))
}

/// Returns the time of day at which a call started.
fn started(started: Instant) -> SystemTime {
    let wall = clock::wall();
    wall.checked_sub(clock::now() - started).unwrap_or(wall)
}
