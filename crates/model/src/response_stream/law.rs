//! Laws of streamed responses, as a function that fuzzing and tests run on any bytes.

use bytes::Bytes;
use http::HeaderMap;

use super::call::{StreamClient, StreamScope, StreamedCall};
use super::output::single_event;
use super::{ResponseStream, StreamStep};
use crate::event::Events;
use crate::failure::FailureCodes;
use crate::jsonrpc::RequestId;
use crate::mcp::ClientRevision;
use crate::outcome::ReplyLimits;
use crate::route::{Route, RouteSource, parse_route};
use crate::sse::{MESSAGE, RawEvent, SseReader, StreamPiece};
use crate::stream_format::{StreamFormat, StreamFormats};
use crate::translate::TranslateContext;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::Bindings;
use dualgauge_patterns::side::Side;

/// The translation of a whole stream.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct StreamTrace {
    pub(super) out: Vec<u8>,
    /// The kinds of its events.
    pub(super) kinds: Vec<&'static str>,
}

impl StreamTrace {
    fn note(&mut self, step: &StreamStep) {
        self.out.extend_from_slice(&step.out);
        let kind = step.result.as_ref().map(|result| result.kind.as_str());
        self.kinds.extend(kind);
    }
}

/// The most bytes that streams of tests buffer: the largest event, and the end of its line.
const MOST_HELD: usize = 304;

/// Translates a stream in chunks of the given size; in small chunks, by jobs.
pub(super) fn trace(
    mut stream: ResponseStream,
    input: &[u8],
    size: usize,
    scope: StreamScope<'_>,
) -> StreamTrace {
    let mut trace = StreamTrace::default();
    let mut translate_all = |stream: &mut ResponseStream| {
        while let Some(input) = stream.next_input() {
            let step = match size {
                0..4 => stream.accept(stream.job(input).run(scope)),
                4.. => stream.translate(input, scope),
            };
            trace.note(&step);
        }
    };
    for chunk in input.chunks(size.max(1)) {
        stream.feed(chunk);
        translate_all(&mut stream);
        assert!(stream.held() <= MOST_HELD, "too much is held");
    }
    stream.end_input();
    translate_all(&mut stream);
    trace
}

/// Returns the call of a client of `side` under the ids of tests.
pub(super) fn streamed_call(side: Side) -> StreamedCall {
    let client = match side {
        Side::Rest => StreamClient::Rest { upstream_id: 7 },
        Side::Rpc => StreamClient::Rpc {
            id: RequestId::null(),
            method: "m".into(),
            revision: ClientRevision::Sessions,
            status: 200,
            headers: HeaderMap::new(),
        },
    };
    StreamedCall {
        bindings: Bindings::default(),
        client,
    }
}

/// Checks that the translation of a stream does not depend on its chunks, and that the output consists of whole events.
///
/// # Panics
///
/// If a check fails: this is the body of a fuzz target.
pub fn check_any_stream(data: &[u8]) {
    let Some(route) = plain_route() else {
        return;
    };
    let scope = StreamScope {
        route: &route,
        events: &Events::default(),
        limits: ReplyLimits {
            depth: 32,
            error_text: 64,
        },
        codes: &FailureCodes::default(),
        context: TranslateContext {
            depth: 32,
            now: String::new,
        },
    };
    for side in Side::ALL {
        for upstream in StreamFormat::ALL {
            for client in StreamFormat::ALL {
                let formats = StreamFormats { upstream, client };
                let new = || ResponseStream::new(streamed_call(side), formats, 64);
                let whole = trace(new(), data, usize::MAX, scope);
                for size in [1, 2, 5, 1 + data.len() / 2] {
                    let cut = trace(new(), data, size, scope);
                    assert_eq!(cut.kinds, whole.kinds, "{formats:?} in pieces of {size}");
                    assert_eq!(cut.out, whole.out, "{formats:?} in pieces of {size}");
                }
                check_whole(&whole.out, client, side);
            }
        }
    }
}

/// Checks that a complete response, which is JSON, becomes one event with the same JSON as data.
///
/// # Panics
///
/// If a check fails: this is the body of a fuzz target.
pub fn check_any_complete(data: &[u8]) {
    let is_json = |text: &[u8]| Json::parse(Bytes::copy_from_slice(text), 32).is_ok();
    if !is_json(data) {
        return;
    }
    let mut reader = SseReader::new(usize::MAX / 2);
    reader.feed(single_event(data).as_bytes());
    let piece = reader.next();
    let event = match &piece {
        Some(StreamPiece::Event(text)) => RawEvent::read(text),
        Some(_) | None => None,
    };
    let event = event.as_ref().filter(|event| event.event() == MESSAGE);
    let read = event.and_then(RawEvent::data).unwrap_or_default();
    assert!(is_json(read.as_bytes()), "no JSON: {piece:?}");
    // The comparison ignores spaces and line ends, also those within strings.
    let packed = |text: &str| text.replace(['\r', '\n', ' '], "");
    assert_eq!(packed(&read), packed(&String::from_utf8_lossy(data)));
    assert_eq!(reader.next(), None, "more than one event");
    assert_eq!(reader.finish(), None, "half an event");
}

fn plain_route() -> Option<Route> {
    let source = RouteSource {
        name: "r".to_owned(),
        rest: "POST /r".to_owned(),
        rpc: "m".to_owned(),
        ..RouteSource::default()
    };
    parse_route(source).ok()
}

/// Checks that an output has no half event, and that each event for an RPC client is a message.
pub(super) fn check_whole(out: &[u8], format: StreamFormat, side: Side) {
    match format {
        StreamFormat::JsonLines => {
            assert!(out.is_empty() || out.ends_with(b"\n"), "a half line");
            for line in out
                .split(|byte| *byte == b'\n')
                .filter(|line| !line.is_empty())
            {
                check_message(line, side);
            }
        }
        StreamFormat::EventStream => {
            let mut reader = SseReader::new(usize::MAX / 2);
            reader.feed(out);
            while let Some(piece) = reader.next() {
                if let StreamPiece::Event(text) = piece
                    && let Some(data) = RawEvent::read(&text).as_ref().and_then(RawEvent::data)
                    && !data.is_empty()
                {
                    check_message(data.as_bytes(), side);
                }
            }
            let rest = reader.finish();
            let is_half =
                matches!(&rest, Some(StreamPiece::Unfinished(text)) if !text.starts_with(b":"));
            assert!(!is_half, "a half event: {rest:?}");
        }
    }
}

fn check_message(data: &[u8], side: Side) {
    let json = Json::parse(bytes::Bytes::copy_from_slice(data), u16::MAX);
    if side == Side::Rpc {
        let is_message = json.is_ok_and(|json| json.has("jsonrpc"));
        assert!(is_message, "not a message: {data:?}");
    }
}
