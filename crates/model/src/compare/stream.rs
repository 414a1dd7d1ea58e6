//! Responses that stream, as values that can be compared: event by event, as far as both were read.
//!
//! Laws: ids of events and of calls make no difference; events are compared by their position; events that only one
//! side could deliver before a bound are never a difference.
//!
//! Used by `gateway::shadow`.

use bytes::Bytes;

use crate::jsonrpc::{ResponseReply, parse_response};
use crate::sse::{MESSAGE, RawEvent, SseReader, StreamPiece};
use crate::stream_format::StreamFormat;
use dualgauge_patterns::json::{Json, encode};
use dualgauge_patterns::side::Side;

/// The most events of a response that are compared.
pub const STREAM_EVENTS: usize = 256;

/// The maximum number of bytes of a streamed response that are compared.
pub const STREAM_BYTES: usize = 256 * 1024;

/// The bound at which a response was no longer read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StreamBound {
    /// [`STREAM_EVENTS`], or as many events as the control has.
    Events,
    /// [`STREAM_BYTES`].
    Bytes,
    /// The time of a candidate.
    Time,
}

impl StreamBound {
    /// Every bound.
    pub const ALL: [StreamBound; 3] = [StreamBound::Events, StreamBound::Bytes, StreamBound::Time];

    /// Returns the word used in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            StreamBound::Events => "events",
            StreamBound::Bytes => "bytes",
            StreamBound::Time => "time",
        }
    }
}

/// The read part of a response that streams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamPart {
    /// The events, each as one value.
    events: Vec<Json>,
    /// The bound at which reading ended; `None` for a complete response.
    bound: Option<StreamBound>,
}

/// Two responses in the form that is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamPair {
    /// The control.
    pub control: Json,
    /// The candidate.
    pub candidate: Json,
    /// The bound that made the comparison partial.
    pub bound: Option<StreamBound>,
}

impl StreamPart {
    /// Reads the events of a body for a client of `side`; an unfinished event is ignored. A text deeper than `depth` is
    /// compared as text.
    #[must_use]
    pub fn read(
        body: &Bytes,
        format: StreamFormat,
        side: Side,
        depth: u16,
        bound: Option<StreamBound>,
    ) -> StreamPart {
        let value = |event: &str, data: Bytes| value(event, data, side, depth);
        let mut events = Vec::new();
        match format {
            StreamFormat::JsonLines => {
                let text = String::from_utf8_lossy(body);
                let whole = match bound {
                    None => text.as_ref(),
                    Some(_) => text.rsplit_once('\n').map_or("", |(whole, _)| whole),
                };
                let lines = whole.lines().map(str::trim_ascii);
                let lines = lines.filter(|line| !line.is_empty());
                let lines = lines.map(|line| Bytes::copy_from_slice(line.as_bytes()));
                events.extend(lines.map(|line| value(MESSAGE, line)));
            }
            StreamFormat::EventStream => {
                let mut reader = SseReader::new(STREAM_BYTES);
                reader.feed(body);
                while let Some(piece) = reader.next() {
                    if let Some((block, data)) = dispatched(&piece) {
                        events.push(value(block.event(), data));
                    }
                }
            }
        }
        let bound = match events.len() > STREAM_EVENTS {
            true => Some(StreamBound::Events),
            false => bound,
        };
        events.truncate(STREAM_EVENTS);
        StreamPart { events, bound }
    }

    /// Returns the number of events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Returns whether the response was read to its end.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.bound.is_none()
    }

    /// Returns whether no event was read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }
}

impl StreamPair {
    /// Pairs two responses: the events that both have, and the numbers of events where both are complete. `None` if
    /// nothing was read that could be compared.
    #[must_use]
    pub fn new(control: &StreamPart, candidate: &StreamPart) -> Option<StreamPair> {
        // A complete response with fewer events than the other delivered is a difference; an incomplete one is not.
        let (shorter, longer) = if control.len() <= candidate.len() {
            (control, candidate)
        } else {
            (candidate, control)
        };
        let bound = control.bound.or(candidate.bound);
        let is_short = shorter.bound.is_none() && longer.len() > shorter.len();
        let is_whole = bound.is_none() || is_short;
        let common = shorter.len();
        if common == 0 && !is_whole {
            return None;
        }
        let shown = |part: &StreamPart| {
            let mut text = Vec::from(&b"{\"events\":["[..]);
            for (index, event) in part.events.iter().take(common).enumerate() {
                if index > 0 {
                    text.push(b',');
                }
                text.extend_from_slice(event.as_bytes());
            }
            text.push(b']');
            if is_whole {
                text.extend_from_slice(format!(",\"length\":{}", part.len()).as_bytes());
            }
            text.push(b'}');
            Json::written(text)
        };
        Some(StreamPair {
            control: shown(control),
            candidate: shown(candidate),
            bound: bound.filter(|_| !is_whole),
        })
    }
}

/// Returns an event that clients dispatch, and its data.
fn dispatched(piece: &StreamPiece) -> Option<(RawEvent, Bytes)> {
    let StreamPiece::Event(text) = piece else {
        return None;
    };
    let block = RawEvent::read(text)?;
    let data = block.dispatched_data()?;
    Some((block, data))
}

/// A count of the events of a body as it arrives: those that [`StreamPart::read`] finds in it.
#[derive(Debug)]
pub struct EventCounter(CountedFormat);

#[derive(Debug)]
enum CountedFormat {
    Events(SseReader),
    Lines {
        /// True if the current line has been blank so far.
        is_blank: bool,
    },
}

impl EventCounter {
    /// Returns the counter at the start of a body.
    #[must_use]
    pub fn new(format: StreamFormat) -> EventCounter {
        EventCounter(match format {
            StreamFormat::EventStream => CountedFormat::Events(SseReader::new(STREAM_BYTES)),
            StreamFormat::JsonLines => CountedFormat::Lines { is_blank: true },
        })
    }

    /// Returns the number of events that a chunk completes.
    pub fn feed(&mut self, chunk: &[u8]) -> usize {
        match &mut self.0 {
            CountedFormat::Events(reader) => {
                reader.feed(chunk);
                let pieces = std::iter::from_fn(|| reader.next());
                pieces.filter(|piece| dispatched(piece).is_some()).count()
            }
            CountedFormat::Lines { is_blank } => {
                let mut events = 0;
                for byte in chunk {
                    if *byte == b'\n' {
                        events += usize::from(!std::mem::replace(is_blank, true));
                    } else {
                        *is_blank &= byte.is_ascii_whitespace();
                    }
                }
                events
            }
        }
    }
}

/// Returns an event as one value: its type and its data, without the id of the call.
fn value(event: &str, data: Bytes, side: Side, depth: u16) -> Json {
    let mut text = Vec::from(&b"{\"event\":"[..]);
    encode(event, &mut text);
    let response = match side {
        Side::Rpc => parse_response(&data, depth).ok(),
        Side::Rest => None,
    };
    match response.map(|response| response.reply) {
        Some(ResponseReply::Result(result)) => member(&mut text, "data", &result),
        Some(ResponseReply::Error(error)) => {
            let code = Json::written(error.code.to_string());
            member(&mut text, "code", &code);
            member(&mut text, "message", &error.message);
            if let Some(data) = &error.data {
                member(&mut text, "error", data);
            }
        }
        None => match Json::parse(data.clone(), depth) {
            Ok(json) => member(&mut text, "data", &json),
            Err(_) => {
                let shown = String::from_utf8_lossy(&data);
                member(&mut text, "text", &Json::string(&shown));
            }
        },
    }
    text.push(b'}');
    Json::written(text)
}

fn member(text: &mut Vec<u8>, name: &str, value: &Json) {
    text.extend_from_slice(format!(",\"{name}\":").as_bytes());
    text.extend_from_slice(value.as_bytes());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(body: &str, bound: Option<StreamBound>) -> StreamPart {
        let format = StreamFormat::EventStream;
        StreamPart::read(&body.to_owned().into(), format, Side::Rest, 32, bound)
    }

    fn events(count: usize) -> String {
        (0..count)
            .map(|n| format!("id: {n}\ndata: {n}\n\n"))
            .collect()
    }

    fn text(json: &Json) -> &str {
        std::str::from_utf8(json.as_bytes()).unwrap()
    }

    #[test]
    fn ids_comments_and_unfinished_events_make_no_difference() {
        let one = read(
            "id: 1\ndata: {\"a\": 1}\n\n: c\n\nevent: error\ndata: no\n\ndata: half",
            None,
        );
        let two = read(
            "data: {\"a\": 1}\n\nid: 9\nevent: error\r\ndata: no\r\n\r\n",
            None,
        );
        let pair = StreamPair::new(&one, &two).unwrap();
        assert_eq!(pair.control, pair.candidate);
        let expected = r#"{"events":[{"event":"message","data":{"a": 1}},{"event":"error","text":"no"}],"length":2}"#;
        assert_eq!(text(&pair.control), expected);
    }

    #[test]
    fn the_ids_of_calls_make_no_difference() {
        let of = |id: &str| {
            let body = format!(
                "data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":[1]}}\n\nevent: error\ndata: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":1,\"message\":\"m\"}}}}\n\n"
            );
            StreamPart::read(&body.into(), StreamFormat::EventStream, Side::Rpc, 32, None)
        };
        let pair = StreamPair::new(&of("1"), &of("\"x\"")).unwrap();
        assert_eq!(pair.control, pair.candidate);
        assert!(text(&pair.control).contains(r#"{"event":"error","code":1,"message":"m"}"#));
    }

    #[test]
    fn a_shorter_complete_response_differs_and_a_cut_one_does_not() {
        let differs = |one: &StreamPart, two: &StreamPart| {
            StreamPair::new(one, two).map(|pair| (pair.control != pair.candidate, pair.bound))
        };
        let time = Some(StreamBound::Time);
        let whole = |count| read(&events(count), None);
        let cut = |count| read(&events(count), time);
        assert_eq!(differs(&whole(2), &whole(3)), Some((true, None)));
        assert_eq!(
            differs(&whole(2), &cut(3)),
            Some((true, None)),
            "the control ended"
        );
        assert_eq!(differs(&whole(3), &cut(2)), Some((false, time)));
        assert_eq!(differs(&cut(2), &cut(3)), Some((false, time)));
        assert_eq!(differs(&cut(0), &whole(3)), None);
        let many = whole(STREAM_EVENTS + 1);
        assert_eq!(
            differs(&many, &many),
            Some((false, Some(StreamBound::Events)))
        );
    }

    #[test]
    fn lines_are_events() {
        let lines = |text: &str, bound| {
            let body = Bytes::copy_from_slice(text.as_bytes());
            StreamPart::read(&body, StreamFormat::JsonLines, Side::Rest, 32, bound)
        };
        assert_eq!(lines("1\n\n{\"a\":2}", None).len(), 2);
        assert_eq!(lines("1\n{\"a\":", Some(StreamBound::Bytes)).len(), 1);
    }

    proptest! {
        /// Recording ends after as many events as are compared.
        #[test]
        fn as_many_events_are_counted_as_are_read(
            pieces in prop::collection::vec(prop::sample::select(vec![
                "data: 1\n\n", "data:\n\n", "id: 1\n\n", ": c\n\n", "retry: 1\r\n\r\n", "1\n", " \n", "\r\n", "\u{a0}\n", "\n", "x",
            ]), 0..20),
            size in 1..9_usize,
        ) {
            let body = pieces.concat();
            for format in StreamFormat::ALL {
                let mut counter = EventCounter::new(format);
                let counted: usize = body.as_bytes().chunks(size).map(|chunk| counter.feed(chunk)).sum();
                let bound = Some(StreamBound::Bytes);
                let part = StreamPart::read(&body.clone().into(), format, Side::Rest, 32, bound);
                prop_assert_eq!(counted, part.len(), "{:?}", format);
            }
        }

        /// A part of a response is never a difference to the whole one.
        #[test]
        fn a_cut_is_no_difference(
            bodies in prop::collection::vec("[a-c{}1]{1,5}", 1..8),
            cut in 0..200_usize,
        ) {
            let body: String = bodies.iter().map(|body| format!("data: {body}\n\n")).collect();
            let whole = read(&body, None);
            let part = read(&body[..cut.min(body.len())], Some(StreamBound::Bytes));
            if let Some(pair) = StreamPair::new(&whole, &part) {
                prop_assert_eq!(pair.control, pair.candidate);
            }
            if let Some(pair) = StreamPair::new(&part, &whole) {
                prop_assert_eq!(pair.control, pair.candidate);
            }
        }
    }
}
