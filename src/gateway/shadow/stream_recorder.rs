//! The record of a response that streams, up to a bound. Used by `shadow` and `shadow::replay`.

use bytes::Bytes;

use dualgauge_model::compare::{EventCounter, STREAM_BYTES, StreamBound};
use dualgauge_model::stream_format::StreamFormat;

/// The recorder of one response.
#[derive(Debug)]
pub(super) struct StreamRecorder {
    counter: EventCounter,
    most_events: usize,
    events: usize,
    body: Vec<u8>,
}

impl StreamRecorder {
    /// Creates a recorder that ends after `most_events` events.
    pub(super) fn new(format: StreamFormat, most_events: usize) -> StreamRecorder {
        StreamRecorder {
            counter: EventCounter::new(format),
            most_events,
            events: 0,
            body: Vec::new(),
        }
    }

    /// Records a chunk; returns the bound that it reaches.
    pub(super) fn record(&mut self, chunk: &[u8]) -> Option<StreamBound> {
        let space = STREAM_BYTES.saturating_sub(self.body.len());
        let taken = &chunk[..chunk.len().min(space)];
        self.body.extend_from_slice(taken);
        self.events += self.counter.feed(taken);
        if self.events >= self.most_events {
            return Some(StreamBound::Events);
        }
        (taken.len() < chunk.len()).then_some(StreamBound::Bytes)
    }

    /// Returns the recorded bytes.
    pub(super) fn into_body(self) -> Bytes {
        self.body.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_ends_at_its_bounds() {
        let mut recorder = StreamRecorder::new(StreamFormat::EventStream, 2);
        assert_eq!(recorder.record(b"data: 1\n\ndata"), None);
        assert_eq!(recorder.record(b": 2\n\n"), Some(StreamBound::Events));
        assert_eq!(recorder.into_body(), "data: 1\n\ndata: 2\n\n");
        let mut recorder = StreamRecorder::new(StreamFormat::EventStream, 1);
        assert_eq!(recorder.record(b"id: 1\n\nretry: 1\n\ndata:\n\n"), None);
        let mut recorder = StreamRecorder::new(StreamFormat::JsonLines, 100);
        assert_eq!(recorder.record(b"1\n2\n"), None);
        let long = vec![b'x'; STREAM_BYTES];
        assert_eq!(recorder.record(&long), Some(StreamBound::Bytes));
        assert_eq!(recorder.into_body().len(), STREAM_BYTES);
    }
}
