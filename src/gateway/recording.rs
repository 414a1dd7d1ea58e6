//! Recordings of calls: a sample of the calls over HTTP, with the response that the client receives.
//!
//! ```text
//! mod        the calls that are recorded, and the request
//! observer   the response on its way to the client
//! ended      the recorded call, made on the thread of the recorder
//! ```
//!
//! A call is recorded after its stage is decided, so refused requests and the proxy's own replies are not; nor are
//! messages of sockets and requests for event streams. Laws: without a recording a call costs one comparison; a call
//! that is not in the sample is not copied; no call waits for the recorder.
//!
//! Used by the adapters of `gateway`'s protocols, and by `worker`.

mod ended;
mod observer;

use std::cell::Cell;
use std::rc::Rc;
use std::time::SystemTime;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, request};
use tokio::time::Instant;

use super::access_record::AccessRecord;
use super::response_observer::Observer;
use crate::telemetry::clock;
use crate::telemetry::recorder::Recorder;
use dualgauge_model::record::RecordedBodies;
use dualgauge_net::{BodyCopy, CopyBudget};
use dualgauge_patterns::side::Side;

use ended::RecordedCaller;
use observer::RecordingObserver;

/// The memory of a worker for the bodies of calls in progress that are recorded, in bytes.
const BODY_MEMORY: usize = 8 * 1024 * 1024;

/// The multiplier of a Weyl sequence: 2^64 divided by the golden ratio. Its multiples are spread evenly.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The recorder as one worker uses it.
#[derive(Debug)]
pub(super) struct CallRecorder {
    recorder: Recorder,
    /// The number of calls that could be recorded.
    calls: Cell<u64>,
    budget: Rc<CopyBudget>,
}

impl CallRecorder {
    /// Creates the recorder of a worker.
    pub(super) fn new(recorder: Recorder) -> CallRecorder {
        let budget = Rc::new(CopyBudget::default());
        budget.set_limit(BODY_MEMORY);
        CallRecorder {
            recorder,
            calls: Cell::default(),
            budget,
        }
    }

    /// Returns the bodies to record if the next call is in the sample.
    #[inline]
    pub(super) fn sample(&self) -> Option<RecordedBodies> {
        let (share, bodies) = self.recorder.active()?;
        let number = self.calls.get();
        self.calls.set(number.wrapping_add(1));
        let place = number.wrapping_mul(GOLDEN) >> 32;
        let is_sampled = place * 100_000 >> 32 < u64::from(share.thousandths());
        is_sampled.then_some(bodies)
    }
}

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
    pub(super) content: RequestContent<'r>,
    pub(super) bodies: RecordedBodies,
}

/// The body of a request, until the call ends.
#[derive(Debug)]
enum KeptContent {
    Whole(Bytes),
    Copied(BodyCopy),
    /// Not recorded, with its length as far as it is known.
    Omitted(u64),
    Empty,
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
    let content = match (&request.content, request.bodies) {
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
            let copy = copy.get_or_insert_with(|| BodyCopy::new(&recorder.budget));
            KeptContent::Copied(copy.clone())
        }
    };
    let caller = RecordedCaller {
        plan: plan.clone(),
        settings: settings.clone(),
        time: started(context.call_start().started),
        side: context.side(),
        route: context.route(),
        client: context.client(),
        stage: context.stage(),
        why: context.why(),
        bodies: request.bodies,
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

/// Returns the length of a body that its head announces; zero if it does not.
fn announced_length(headers: &HeaderMap) -> u64 {
    let length = headers.get(CONTENT_LENGTH);
    length
        .and_then(|length| length.to_str().ok()?.parse().ok())
        .unwrap_or(0)
}

/// Returns the headers that describe the content of a body.
fn coding(headers: &HeaderMap) -> HeaderMap {
    picked(headers, &[CONTENT_TYPE, CONTENT_ENCODING])
}

/// Returns the headers with these names.
fn picked(headers: &HeaderMap, names: &[HeaderName]) -> HeaderMap {
    let mut found = HeaderMap::new();
    for name in names {
        for value in headers.get_all(name) {
            found.append(name, value.clone());
        }
    }
    found
}
